"""A rank that watches itself: the laws are asked while it serves, and it stops at the first event that breaks one.

Not for every day: each event is judged before it is recorded, and with `STATE` the whole state behind each command. A
rank without a watch stops at what `evolve` notices of its own books. Rule: a watch reads and never writes; what it
lets through is what would have happened without it.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Any, TypeVar

from radixledger.cache.decide.pages import Decision
from radixledger.cache.laws.invariants import broken_laws
from radixledger.cache.laws.of_events import EventLaws
from radixledger.cache.refusals import LawBroken
from radixledger.cache.state import Finding, State
from radixledger.journal.events import AnyEvent

T = TypeVar("T")


class Watched(StrEnum):
    """How much a rank asks of itself."""

    BOOKS = "books"
    """What `evolve` notices: who had which page, what was mapped, held, running."""
    EVENTS = "events"
    """Before each event, every law of it, too."""
    STATE = "state"
    """Behind each command, every law of the state, too: costs what the state is large."""


Watch = Callable[[State, Decision[T]], Decision[T]]


def watch(level: Watched) -> "EventWatch | None":
    """The watch for a level; None for the one that every rank keeps."""
    return None if level is Watched.BOOKS else EventWatch(whole=level is Watched.STATE)


class EventWatch:
    """Stands between a rank's deciders and its journal; raises LawBroken before a wrong event is recorded."""

    def __init__(self, *, whole: bool) -> None:
        self._laws = EventLaws()
        self._whole = whole

    def __call__(self, state: State, decision: Decision[T]) -> Decision[T]:
        """The same decision, judged."""
        watched: Any = self._judged(state, decision)
        watched.__name__ = getattr(decision, "__name__", "")  # by which a refusal tells what was asked
        judged: Decision[T] = watched
        return judged

    def _judged(self, state: State, decision: Decision[T]) -> Decision[T]:
        command: list[AnyEvent] = []
        while True:
            try:
                event = next(decision)
            except StopIteration as stop:
                self._stop_at([*self._laws.at_the_end(state, command)])
                if self._whole and command:
                    self._stop_at([*broken_laws(state)])
                result: T = stop.value
                return result
            command.append(event)
            self._stop_at([*self._laws.broken_by(state, command, len(command) - 1)])
            yield event

    def _stop_at(self, findings: list[Finding]) -> None:
        if findings:
            first = findings[0]
            text = f"event {first.seq} breaks a law: {first.law}: {first.detail}"
            raise LawBroken(text, seq=first.seq, law=first.law)
