"""States that were spoiled for one law, and whether the law notices: how every law is shown able to fail (J28)."""

from collections.abc import Callable

from radixledger.cache.laws.invariants import broken_laws
from radixledger.cache.laws.law import Law
from radixledger.cache.state import State

Spoil = Callable[[State], object]


def name(value: object) -> str:
    """The name of a law or of what spoils a state, for the id of a test."""
    return getattr(value, "__name__", "").strip("<>")


def set_of(number: int, field: str, value: object) -> Spoil:
    """Spoil one field of a node."""

    def spoil(state: State) -> None:
        setattr(state.nodes[number], field, value)

    return spoil


def check_that_it_fails(broken: Law, spoil: Spoil, state: State) -> None:
    """A lawful state, spoiled, breaks the law, and what the law tells names itself and the last event."""
    assert list(broken_laws(state)) == []
    spoil(state)
    findings = list(broken(state))
    assert findings, "the law did not notice"
    assert {(finding.law, finding.seq) for finding in findings} == {(name(broken), state.seq)}
