"""What all readings of commands share: the words they use for events, and what they may ask the reader.

A reading looks at the state before a command's events, waits until they are folded, and answers. Rule: total; where an
event names what there is not, nobody can tell what was asked, and the answer is None or Unplayable.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Protocol, TypeVar

from radixledger.cache.state import State
from radixledger.journal.events import AnyEvent, Matched, Unlocked
from radixledger.journal.units import UNBOUND
from radixledger.replay.schedule.commands import AnyCommand
from radixledger.replay.schedule.letters import Letters
from radixledger.replay.schedule.names import NameBook

E = TypeVar("E")
Events = Sequence[AnyEvent]
Reading = Generator[None, None, AnyCommand | None]


class Reads(Protocol):
    """The reader of a journal, as readings know it."""

    state: State
    letters: Letters
    names: NameBook
    titles: list[str]
    """The names that the command under way gave."""

    def cached(self, name: str, key: str) -> str:
        """The key itself, remembered as what the request of this name was cached under."""
        ...

    def path(self, node: int) -> str:
        """The letters of the path to a node."""
        ...

    def space_of(self, node: int) -> str:
        """The name of a node's namespace."""
        ...

    def asked(self, found: Matched, name: str = "", *, from_the_root: bool = False) -> str:
        """The letters of a key of which exactly that can be found.

        name: of the request that asked. from_the_root: the nodes that were found are not there yet, or not any more.
        """
        ...

    def padded(self, key: str, pages: int) -> str:
        """A key of so many pages that begins like `key` and goes on like no other."""
        ...

    def rid(self, rid: str, name: str = "") -> str:
        """What a request id is called here."""
        ...

    def lock_of(self, event: Unlocked) -> str:
        """The name of the lock whose receipt is given back; empty for none that is known."""
        ...

    def page(self, number: int) -> str:
        """The name of a FULL page."""
        ...

    def slot(self, number: int) -> str:
        """The name of a state slot."""
        ...


ReadingOf = Callable[[Reads, Events], Reading]


def one(events: Events, kind: type[E]) -> E | None:
    """The first event of a kind."""
    return next((event for event in events if isinstance(event, kind)), None)


def request_of(events: Events) -> int:
    """The request that a command is about."""
    return next((number for event in events if (number := getattr(event, "request", UNBOUND))), UNBOUND)
