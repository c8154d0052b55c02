"""Fold a journal's frames into a state, and tell where it first went wrong.

Folding is total: what a lawful writer cannot have written is a finding, its word is taken, and the fold goes on. Rules:
frames are folded in the order of their numbers; a `Gap` moves the number on and nothing else; a state is built on
a journal's word only within the bound that `cache.config` sets.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from radixledger.cache.config import bounded
from radixledger.cache.evolve import begin, evolve
from radixledger.cache.laws.invariants import LAWS
from radixledger.cache.laws.law import Law
from radixledger.cache.state import Finding, State
from radixledger.journal.errors import ReaderError
from radixledger.journal.events import AnyEvent, Gap, Opened
from radixledger.journal.frame import Frame
from radixledger.journal.sizes import BadConfig
from radixledger.journal.units import Seq

FINDINGS_KEPT = 64
"""So many findings, the first, a state keeps while somebody looks at every event."""


class Unfoldable(ReaderError):
    """The journal, from event `seq` on, gives nothing that a state could be made of."""

    def __init__(self, seq: int, reason: str) -> None:
        super().__init__(f"event {seq} cannot be folded: {reason}")
        self.seq, self.reason = Seq(seq), reason


class FirstWrong(NamedTuple):
    """The first frame that broke something: what it broke, and the state behind it."""

    frame: Frame
    findings: list[Finding]
    state: State


def opened_state(event: AnyEvent, seq: int = 1) -> State:
    """The state right after a journal's first event; raises Unfoldable where that opens nothing."""
    if isinstance(event, Gap):
        raise Unfoldable(
            seq, "the first events are lost, with what the rank was opened with, and no snapshot stands in"
        )
    if not isinstance(event, Opened):
        raise Unfoldable(
            seq, f"a journal begins with Opened or with a snapshot, not with {type(event).__name__}"
        )
    check_opened(event, seq)
    state = begin(event)
    state.seq = Seq(seq)
    return state


def begun(frame: Frame, opened: Opened | None = None) -> tuple[State, list[AnyEvent]]:
    """The state that a journal's first frame gives to begin with, and those of its events that are still to be folded.

    opened: what the journal was opened with, for one whose first events are lost: a gap stands in for them, and is folded
    onto an empty state. Raises Unfoldable.
    """
    first = frame.events[0]
    if opened is not None and isinstance(first, Gap):
        state = opened_state(opened)
        state.seq = Seq(frame.seq_first - 1)
        return state, frame.events
    return opened_state(first, frame.seq_first), frame.events[1:]


def check_opened(event: Opened, seq: int) -> None:
    """Raise Unfoldable where no state can be built as `event` says."""
    try:
        bounded(event)
    except BadConfig as error:
        raise Unfoldable(seq, f"no state can be built as it says: {error}") from error


def enter(state: State, frame: Frame) -> None:
    """Stand before a frame's first event; raises Unfoldable where its number is not the next one.

    A gap, always a frame of its own, stands in the last of the places that were lost.
    """
    if frame.seq_first != state.seq + 1:
        if frame.seq_first <= state.seq or type(frame.events[0]) is not Gap:
            raise Unfoldable(frame.seq_first, f"it stands behind event {state.seq}")
        state.seq = Seq(frame.seq_first - 1)


def fold(
    frames: Iterable[Frame], state: State | None = None, *, until: int | None = None, opened: Opened | None = None
) -> State:  # fmt: skip
    """The state after event `until` (default: after the last one), folded onto `state`, which is changed.

    opened: as in `begun`. What broke on the way stands in the state's `findings`. Raises Unfoldable, also where there is
    nothing to fold.
    """
    for frame in frames:
        events = frame.events
        if state is not None:
            enter(state, frame)
        elif until is not None and until < frame.seq_first:
            raise Unfoldable(frame.seq_first, f"nothing is left of the events up to {until}")
        else:
            state, events = begun(frame, opened)
        if until is not None:
            events = events[: max(0, until - state.seq)]
        for event in events:
            if type(event) is Opened:
                check_opened(event, state.seq + 1)
            evolve(state, event)
        if until is not None and state.seq >= until:
            break
    if state is None:
        raise Unfoldable(1, "there are no events")
    return state


class Moment(NamedTuple):
    """An event with the number `seq`, and the state just before it: what is asked for next changes that."""

    state: State
    frame: Frame
    seq: int
    event: AnyEvent


def moments(
    frames: Iterable[Frame],
    state: State | None = None,
    opened: Opened | None = None,
    onto: Callable[[State, AnyEvent], State] = lambda state, _: state,
) -> Iterator[Moment]:
    """Every event behind `state` (None: behind the first one) with the state before it, which is changed as they are asked for.

    opened: as in `begun`. onto: what an event is folded onto, `known.Known.see` for who has to know whether it is known. Findings of
    the state are cut to the first `FINDINGS_KEPT`. Raises Unfoldable, also where there is nothing to fold.
    """
    for frame in frames:
        events = frame.events
        if state is None:
            state, events = begun(frame, opened)
        else:
            enter(state, frame)
        for event in events:
            if type(event) is Opened:
                check_opened(event, state.seq + 1)
            state = onto(state, event)
            yield Moment(state, frame, state.seq + 1, event)
            evolve(state, event)
        if len(state.findings) > FINDINGS_KEPT:
            del state.findings[FINDINGS_KEPT:]
    if state is None:
        raise Unfoldable(1, "there are no events")


def first_wrong(
    frames: Iterable[Frame],
    state: State | None = None,
    laws: Sequence[Law] = LAWS,
    opened: Opened | None = None,
) -> FirstWrong | None:
    """The first frame that breaks something by itself, or after which one of `laws` does not hold (J14).

    Laws hold between commands, and a frame ends with one. The whole state is looked at after every frame: for
    short journals, or for the stretch between a lawful point and a broken one. `state` is changed; opened: as in `begun`.
    """
    for frame in frames:
        state = fold((frame,), state, opened=opened)
        broken = state.findings or [finding for law in laws for finding in law(state)]
        if broken:
            return FirstWrong(frame, list(broken), state)
    return None
