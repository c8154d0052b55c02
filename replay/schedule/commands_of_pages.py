"""Commands that need no request: pages, free groups, state slots, ledgers, and copies on the host.

Part of the commands, see `commands` for their rules.
"""

from radixledger.replay.schedule.commands_of_requests import Command


class Allocate(Command, frozen=True):
    """Pages for whoever asks."""

    name: str
    count: int


class Free(Command, frozen=True):
    """FULL pages are freed with their SWA; giver: the name of a request, where one was told."""

    pages: list[str]
    giver: str = ""


class FreeFull(Command, frozen=True):
    """FULL pages alone are freed."""

    pages: list[str]
    giver: str = ""


class FreeSwa(Command, frozen=True):
    """The SWA of FULL pages is freed."""

    pages: list[str]
    giver: str = ""


class GiveUp(Command, frozen=True):
    """A server frees the last pages of rows."""

    pages: list[str]
    giver: str = ""


class Remap(Command, frozen=True):
    """A mapping moves from FULL pages to others."""

    source: list[str]
    target: list[str]


class OpenGroup(Command, frozen=True):
    """A free group begins."""


class FlushGroup(Command, frozen=True):
    """It ends."""


class Clear(Command, frozen=True):
    """What was handed out to nobody is taken back."""


class TakeStates(Command, frozen=True):
    """State slots for whoever asks."""

    name: str
    count: int


class FreeStates(Command, frozen=True):
    """They are given back."""

    states: list[str]


class TakeLedger(Command, frozen=True):
    """The accounts are taken."""

    phase: str


# -- copies on the host --------------------------------------------------------------------------------------


class WriteThrough(Command, frozen=True):
    """What of a path was used often enough is copied to the host; the copies that begin are called `names`."""

    node: str
    names: list[str]
    space: str = ""


class WriteBack(Command, frozen=True):
    """The next victim of FULL pressure is copied to the host."""

    name: str


class Gather(Command, frozen=True):
    """A copy has read its FULL pages."""

    copy: str


class EndBackup(Command, frozen=True):
    """A copy to the host is over."""

    copy: str
    landed: bool


class EvictCopies(Command, frozen=True):
    """The host is asked for free pages."""

    pages: int


class LoadBack(Command, frozen=True):
    """A path is copied back from the host."""

    name: str
    node: str
    space: str = ""


class EndLoad(Command, frozen=True):
    """A copy back is over."""

    copy: str
    landed: bool
