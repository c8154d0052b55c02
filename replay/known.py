"""Whether a fold has the writer's state: not behind a gap or a broken chain, until something says that it has it again.

The one account of this: who folds and shows, asks or judges a state has a `Known` beside the fold. Rule: a recorded digest that
agrees with the folded state, a snapshot that stands in, or a new epoch ends what is not known, and nothing else does.
"""

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from radixledger.cache.digest import digest
from radixledger.cache.evolve import STRANGE
from radixledger.cache.state import Finding, State
from radixledger.journal.events import AnyEvent, Closed, Digested, Gap, LedgerTaken, Opened, Snapshotted
from radixledger.journal.frame import Frame
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Seq
from radixledger.replay.fold import moments
from radixledger.replay.seek import (
    Watch,
    beginning_before,
    check_known,
    opened_of,
    standing_in,
    state_at,
)

SnapshotAt = Callable[[Seq], State | None]
"""The state that a snapshot of the journal holds after an event, None where there is none that is good."""

STRETCHES_KEPT = 1024
"""So many stretches are told apart; what comes behind that many is one with the last of them, and so is what lies between."""

_SAYS = frozenset({Gap, Opened, Digested, Closed, LedgerTaken, Snapshotted})


class Unknown(Struct, array_like=True):
    """A stretch behind whose events the state is not known.

    since: the first number that is missing, or that need not follow. lost_at: the event that says so, a gap that stands in the last
    place that was lost. until: the last event of the stretch; 0 while it goes on. last: where track was lost in it for the last time, so
    that events behind that tell of each other.
    """

    since: int
    lost_at: int
    until: int = 0
    last: int = 0


class Known:
    """Follows a fold: its frames go through `frames`, or `meet`, and each event through `see`, which says what to fold it onto.

    lost_at: the event behind which the state is not known, 0 while it is. lost_before: what that was before the event seen
    last. losses: how often track was lost. stretches: where it was not known so far.
    """

    def __init__(self, snapshot_at: SnapshotAt = lambda _: None) -> None:
        self.lost_at = self.lost_before = self.losses = 0
        self.stretches: list[Unknown] = []
        self._snapshot_at = snapshot_at
        self._breaks = 0

    @property
    def found(self) -> bool:
        """Whether the state is known again since the event seen last."""
        return self.lost_before > 0 and not self.lost_at

    def frames(self, reader: JournalReader, frames: Iterable[Frame]) -> Iterator[Frame]:
        """The same frames; where the chain is broken in front of one, track is lost: what is told need not follow what was."""
        self.start(reader)
        for frame in frames:
            self.meet(reader, frame)
            yield frame

    def start(self, reader: JournalReader) -> None:
        """Before the first frame is read, by who cannot use `frames`."""
        self._breaks = len(reader.breaks)

    def meet(self, reader: JournalReader, frame: Frame) -> None:
        """Look at a frame that was read, before its events."""
        if len(reader.breaks) > self._breaks:
            self._breaks = len(reader.breaks)
            self._lose(frame.seq_first, frame.seq_first)

    def see(self, state: State, event: AnyEvent) -> State:
        """Look at the next event, before it is folded; onto which state: `state` or, where that is not known, a snapshot's."""
        if type(event) not in _SAYS:
            self.lost_before = self.lost_at
            return state
        return self.look(state.seq + 1, event, state) or state

    def look(self, seq: int, event: AnyEvent, state: State | None = None) -> State | None:
        """As `see`, also for who folds nothing, and so cannot agree with a digest: the state of a snapshot that stands in, or None."""
        self.lost_before = self.lost_at
        match event:
            case Gap(lost=lost):
                self._lose(seq, max(1, seq + 1 - lost))
            case Opened():
                self._find(seq)
            case Digested() | Closed() | LedgerTaken() | Snapshotted() if self.lost_at and event.digest:
                return self._compared(seq, event, state)
            case _:
                pass
        return None

    def _lose(self, seq: int, since: int) -> None:
        if not self.lost_at:
            self.lost_at = int(seq)
            if len(self.stretches) < STRETCHES_KEPT:
                self.stretches.append(Unknown(int(since), self.lost_at))
        self.stretches[-1].until, self.stretches[-1].last = 0, int(seq)
        self.losses += 1

    def _find(self, seq: int) -> None:
        """The state just before event `seq` is known."""
        if self.lost_at:
            self.stretches[-1].until = int(seq) - 1
            self.lost_at = 0

    def _compared(
        self, seq: int, event: Digested | Closed | LedgerTaken | Snapshotted, state: State | None
    ) -> State | None:
        if state is not None and _is_of(event.digest, state):
            self._find(seq)
            return None
        kept = self._snapshot_at(Seq(seq - 1)) if isinstance(event, Snapshotted) else None
        if kept is None or not _is_of(event.digest, kept):
            return None
        self._find(seq)
        return kept


def _is_of(recorded: bytes, state: State) -> bool:
    """Whether this is the digest of a state; a lawless one may have none."""
    try:
        return digest(state) == recorded
    except STRANGE:
        return False


def unknown_words(lost_at: int) -> str:
    """What is to be said of a place behind `lost_at`."""
    return (
        f"events are missing at event {lost_at}: behind it the state is not known, until a recorded digest agrees, a snapshot stands in,"
        " or a new epoch begins"
    )


def reached(reader: JournalReader, seq: int, watch: Watch = iter) -> tuple[State, int]:
    """The state after event `seq` and, where that is not known to be the writer's, the event behind which it is not; else 0.

    What was found while it was not known is left out of its findings, which are cut as by `moments`. Raises as `seek.state_at`.
    """
    check_known(reader, seq)
    begin, known = beginning_before(reader, seq), Known(standing_in(reader))
    state, sound = begin.state, list[Finding]()
    if state is not None and state.seq == seq:
        return state, 0
    frames = upto(known.frames(reader, watch(reader.frames(begin.next_seq))), seq)
    for moment in moments(frames, state, opened_of(reader), known.see):
        state = moment.state
        if not known.lost_before:
            sound = list(state.findings)
        elif known.found:
            state.findings[:] = sound
    if state is None:  # nothing but the event that opens it
        return state_at(reader, seq), 0
    if known.lost_at:
        state.findings[:] = sound
    return state, known.lost_at


def upto(frames: Iterable[Frame], seq: int) -> Iterator[Frame]:
    """The frames up to the one that holds event `seq`, and of that the events up to it."""
    for frame in frames:
        if frame.seq_first > seq:
            return
        yield frame._replace(events=frame.events[: seq - frame.seq_first + 1])
        if frame.seq_last >= seq:
            return
