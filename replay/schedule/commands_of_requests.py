"""Commands of a request's life, as data: it comes, grows, gives back, is cached, ends.

Part of the commands, see `commands` for their rules.
"""

from msgspec import Struct


class Command(Struct, frozen=True, tag=True, repr_omit_defaults=True, omit_defaults=True):
    """The parent of all commands."""


class Admit(Command, frozen=True):
    """A request comes with a prompt of `prompt` tokens; `key` has a letter for each page that could be matched.

    rid: what the server calls it, where that is not `name`.
    """

    name: str
    key: str
    prompt: int
    space: str = ""
    rid: str = ""
    miss: bool = False
    priority: int = 0


class Seat(Command, frozen=True):
    """A server puts a request into a row of its own choice, behind the path `node`, whose lock it took before."""

    name: str
    node: str
    prompt: int
    row: int
    lock: str = ""
    space: str = ""
    rid: str = ""
    priority: int = 0


class MakeRoom(Command, frozen=True):
    """State slots for a request that is going to start behind a path."""

    node: str
    space: str = ""


class Extend(Command, frozen=True):
    """Requests grow, each by so many tokens."""

    grown: dict[str, int]


class Decode(Command, frozen=True):
    """Requests grow by one token each."""

    names: list[str]


class Written(Struct, frozen=True, repr_omit_defaults=True, omit_defaults=True):
    """Tokens [start, stop) of a row, in these FULL pages."""

    name: str
    start: int
    stop: int
    pages: list[str]


class Write(Command, frozen=True):
    """What a server wrote into rows."""

    rows: list[Written]


class Reclaim(Command, frozen=True):
    """A request's SWA below its window is given back; the window is counted from `pre`."""

    name: str
    pre: int
    in_flight: int = 0


class Keep(Command, frozen=True):
    """A running request's pages become the tree's (`cache_unfinished`)."""

    name: str
    key: str


class Finish(Command, frozen=True):
    """A request ends well, and `key` is cached; None: nothing is."""

    name: str
    key: str | None = None


class Retract(Command, frozen=True):
    """Everything is taken back from a request."""

    name: str


class Abort(Command, frozen=True):
    """A request ends without being cached."""

    name: str


class BeginStep(Command, frozen=True):
    """A device step begins: each request's first written token, and the one behind the last."""

    step: int
    ranges: dict[str, tuple[int, int]]


class EndStep(Command, frozen=True):
    """Its results are here."""

    step: int
