"""How full the pools were: the numbers of a rank at the end of each of a few hundred equal stretches of its events.

Beside them the fewest free pages of each pool within the stretch, and what else a time line marks, counted. A stretch is known or
is not: it ends where that changes. Rule: a
look costs a few additions a frame, and what is kept does not grow with the journal.
"""

from collections.abc import Sequence

from msgspec import Struct

from radixledger.cache.state import State
from radixledger.journal.accounts import Kind
from radixledger.journal.events import (
    Aborted,
    AnyEvent,
    Gap,
    Healed,
    Opened,
    Refused,
    Removed,
    Retracted,
    Tombstoned,
    Violated,
)
from radixledger.journal.frame import Frame
from radixledger.replay.report.cells import POOLS, numbers_of
from radixledger.replay.report.packet import Record

CUT_MOST = 3
"""So many times the buckets asked for there may be, with those that end where the state becomes known or not; behind so many a bucket is
not known as a whole."""

MARKS = ("tombstones", "heals", "evictions", "refusals", "retractions", "gaps", "epochs", "told")
"""What is counted for the time line; `told` are violations that the writer told of itself."""

_MARK_OF: dict[type, int] = {
    Tombstoned: 0, Healed: 1, Removed: 2, Refused: 3, Retracted: 4, Aborted: 4, Gap: 5, Opened: 6, Violated: 7,
}  # fmt: skip


class Bucket(Struct):
    """The stretch of events that ends with `seq`."""

    seq: int
    time_ns: int
    step: int
    numbers: Record
    least_free: list[int]
    marks: list[int]
    known: bool = True
    """Whether the state is; where it is not, `numbers` and `least_free` say nothing."""


class Occupancy:
    """Collects buckets of a journal that holds events [first, last]."""

    def __init__(self, first: int, last: int, buckets: int) -> None:
        self.buckets: list[Bucket] = []
        self._first, self._span, self._count = first, max(1, last - first + 1), buckets
        self._most = CUT_MOST * buckets
        self._marks = [0] * len(MARKS)
        self._least: list[int] | None = None
        self._next = self._end_of(0)
        self._known = True

    def take(self, frame: Frame, events: Sequence[AnyEvent], state: State, *, known: bool = True) -> None:
        """Look at the state behind a frame; known: whether it is that of the writer."""
        if known and not self._known and len(self.buckets) < self._most:
            self._close(frame, state, frame.seq_first - 1)
            self._known = True
        self._known = self._known and known
        for event in events:
            mark = _MARK_OF.get(type(event))
            if mark is not None:
                self._marks[mark] += 1
        free = [book.held[Kind.FREE] for book in state.books]
        least = self._least
        self._least = free if least is None else list(map(min, least, free))
        if state.seq >= self._next:
            self._close(frame, state, state.seq)
            self._known = known

    def cut(self, frame: Frame, state: State) -> None:
        """What comes behind a frame, the last that was looked at, is not known: what is known ends there."""
        if self._known and self._least is not None and len(self.buckets) < self._most:
            self._close(frame, state, frame.seq_last)
        self._known = False

    def finish(self, frame: Frame | None, state: State | None) -> None:
        """Close what is open at the end."""
        if frame is not None and state is not None and self._least is not None:
            self._close(frame, state, state.seq)

    def _close(self, frame: Frame, state: State, seq: int) -> None:
        least = self._least or [0] * len(POOLS)
        self.buckets.append(
            Bucket(seq, frame.time_ns, frame.step, numbers_of(state), least, self._marks, self._known)
        )
        self._marks, self._least = [0] * len(MARKS), None
        self._next = self._end_of((seq - self._first + 1) * self._count // self._span)

    def _end_of(self, bucket: int) -> int:
        """The last event of a stretch."""
        return self._first - 1 - (-(bucket + 1) * self._span // self._count)
