"""What a law of an event is: a small function whose name says what holds of a fact, given the state it came upon.

`evolve` takes an event's word and notes what its own books contradict; a law of an event asks more, and before the
event is believed: did the decider choose as it must? It reads the state as it was, and never writes. Rule: a law is
total, as a law of the state is (`law`); and it works out what it needs by itself, never by the function that decided.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any

from radixledger.cache.law import FINDINGS_PER_LAW, Breach
from radixledger.cache.state import Finding, State
from radixledger.journal.units import Seq

EventLaw = Callable[[State, Any], Sequence[Finding]]
"""The state before an event, and the event; what it breaks."""


def event_law(check: Callable[[State, Any], Iterator[Breach]]) -> EventLaw:
    """Make a check a law: its breaches become findings of the event that comes next, under its name."""

    @wraps(check)
    def findings(state: State, event: Any) -> Sequence[Finding]:
        try:
            breaches = [*check(state, event)]
        except (KeyError, IndexError, AttributeError, ValueError, TypeError, OverflowError) as error:
            # The event names what does not exist, so that this law cannot even be asked.
            text = f"cannot be asked: {type(error).__name__} {error}"
            return [Finding(Seq(state.seq + 1), check.__name__, text)]
        if not breaches:
            return ()
        return [
            Finding(Seq(state.seq + 1), check.__name__, *breach) for breach in breaches[:FINDINGS_PER_LAW]
        ]

    return findings
