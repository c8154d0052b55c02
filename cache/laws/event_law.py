"""What a law of an event is: a small function whose name says what holds of a fact, given the state it came upon.

`evolve` takes an event's word and notes what its own books contradict; a law of an event asks more, and before the
event is believed: did the decider choose as it must? It reads the state as it was, and never writes. Rule: a law is
total, as a law of the state is (`law`); and it works out what it needs by itself, never by the function that decided.

A check tells its breaches, or yields them where it is asked seldom. Almost every event is lawful, and then a check that
tells makes nothing at all: `EventLaws` asks the checks of a kind in a row, and goes through the laws only where one of them told.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from inspect import isgeneratorfunction
from typing import Any

from radixledger.cache.laws.law import FINDINGS_PER_LAW, Breach
from radixledger.cache.state import Finding, State, in_words
from radixledger.journal.units import Seq

EventLaw = Callable[[State, Any], Sequence[Finding]]
"""The state before an event, and the event; what it breaks."""

Check = Callable[[State, Any], Sequence[Breach]]

LAWFUL: Sequence[Breach] = ()
"""What a check tells of almost every event."""

UNASKABLE = (KeyError, IndexError, AttributeError, ValueError, TypeError, OverflowError)
"""What a check raises when the event names what does not exist."""


def event_law(check: Check | Callable[[State, Any], Iterator[Breach]]) -> EventLaw:
    """Make a check a law: its breaches become findings of the event that comes next, under its name."""
    told = _told(check)

    @wraps(told)
    def findings(state: State, event: Any) -> Sequence[Finding]:
        try:
            breaches = told(state, event)
        except UNASKABLE as error:
            return [Finding(Seq(state.seq + 1), told.__name__, f"cannot be asked: {in_words(error)}")]
        if not breaches:
            return ()
        return [Finding(Seq(state.seq + 1), told.__name__, *breach) for breach in breaches[:FINDINGS_PER_LAW]]

    return findings


def _told(check: Check | Callable[[State, Any], Iterator[Breach]]) -> Check:
    """The check as one that tells, under its name."""
    if not isgeneratorfunction(check):
        return check  # type: ignore[return-value]  # it does not yield, so it tells

    @wraps(check)
    def told(state: State, event: Any) -> Sequence[Breach]:
        return [*check(state, event)]

    return told


def check_of(law: EventLaw) -> Check:
    """The check that a law was made of."""
    check: Check = law.__wrapped__  # type: ignore[attr-defined]  # `wraps` keeps it
    return check
