"""What a seeded fault is, as data: what it changes, the schedule that shows it, and the event that will be wrong first.

The prediction is written down with the fault, as a predicate on the state before an event and the event; no detector is
asked for it, and no law. Rule: a fault changes the cache through one named seam (`decides`, or one function of it), so
that what it means can be read off its own lines.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from msgspec.structs import replace

from radixledger.cache.decide.pages import Decision
from radixledger.cache.shell import Shell
from radixledger.cache.state import State
from radixledger.journal.events import AnyEvent, Config

from .desk import SMALL, Desk

T = TypeVar("T")


class Patch(Protocol):
    """Something that changes attributes and gives them back later; pytest's `monkeypatch` is one."""

    def setattr(self, target: Any, name: str, value: Any, /) -> None:
        """Put `value` in the place of an attribute."""

    def setitem(self, mapping: Any, name: Any, value: Any, /) -> None:
        """Put `value` in the place of an entry."""


Change = Callable[[Patch], None]
Rewrite = Callable[[State, Any], Iterable[AnyEvent]]
Predicate = Callable[[State, Any], bool]


@dataclass(frozen=True)
class Mutant:
    """One wrong version of the cache.

    change: what makes it so. script: a short schedule, deterministic. wrong: the first event of which this holds is the
    wrong one. law, check: what names it, live and in `verify`, and in SQL; no check where SQL is not asked, and `unseen`
    says why. rows: requirements it breaks; bugs: the ones of the corpus (B1-B26) that it is.
    """

    name: str
    what: str
    change: Change
    script: Callable[[Desk], None]
    says: str
    wrong: Predicate
    law: str
    check: str
    rows: tuple[str, ...]
    bugs: tuple[str, ...] = ()
    config: Config = SMALL
    unseen: str = ""
    route: str = "unified"


def decides(*kinds: type, as_: Rewrite) -> Change:
    """A decider yields other events than it should: each event of these kinds is what `as_` makes of it."""

    def change(patch: Patch) -> None:
        lawful = Shell._decided

        def run(shell: Shell, decision: Decision[T]) -> T:
            return lawful(shell, _spoiled(shell.state, decision, kinds, as_))

        patch.setattr(Shell, "_decided", run)

    return change


def _spoiled(state: State, decision: Decision[T], kinds: tuple[type, ...], rewrite: Rewrite) -> Decision[T]:
    while True:
        try:
            event = next(decision)
        except StopIteration as stop:
            result: T = stop.value
            return result
        yield from rewrite(state, event) if isinstance(event, kinds) else (event,)


def puts(target: Any, name: str, value: Any) -> Change:
    """A function of the cache is another one."""
    return lambda patch: patch.setattr(target, name, value)


def where(holds: Predicate, then: Rewrite) -> Rewrite:
    """`then` for the events of which this holds, the others as they are."""
    return lambda state, event: then(state, event) if holds(state, event) else (event,)


def dropped(_: State, __: AnyEvent) -> Iterable[AnyEvent]:
    """The event does not happen."""
    return ()


def twice(_: State, event: AnyEvent) -> Iterable[AnyEvent]:
    """The event happens, and happens again."""
    return event, event


def saying(**fields: Any) -> Rewrite:
    """The event says something else."""
    return lambda _, event: (replace(event, **fields),)
