"""Work on several ranks at a time: they share nothing, so each may be gone through by a process of its own.

Not here: processes and their end (`crew`). Rule: what a rank is told is the same, however many are gone through at once.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TypeVar

from radixledger.journal.frame import Frame
from radixledger.journal.units import Rank
from radixledger.replay.crew import Steps, done_by
from radixledger.replay.seek import Watch

T = TypeVar("T")

Watched = Callable[[Path, Rank, str], AbstractContextManager[Watch]]
"""Gives a `Watch` over the frames of a rank, for work that a label names."""


def unwatched(_: Path, __: Rank, ___: str) -> AbstractContextManager[Watch]:
    """Nobody looks on."""
    return nullcontext(iter)


def by_rank(
    work: Callable[[Path, Rank, Watched], T],
    places: Sequence[tuple[Path, Rank]],
    processes: int,
    advance: Callable[[int], None],
) -> list[T]:
    """What `work` says of each rank, in order, several at a time; `advance` is told of events gone through.

    Work and what it says have to be picklable. Raises WorkerLost, and what `work` raises.
    """
    return done_by(processes, [partial(_counted, work, run, rank) for run, rank in places], advance)


def _counted(work: Callable[[Path, Rank, Watched], T], run: Path, rank: Rank, steps: Steps) -> T:
    def counted(frames: Iterable[Frame]) -> Iterator[Frame]:
        for frame in frames:
            yield frame
            steps.tick(len(frame.events))

    return work(run, rank, lambda *_: nullcontext(counted))
