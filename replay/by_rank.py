"""Work on several ranks at a time: they share nothing, so each may be gone through by a process of its own.

Not here: processes and their end (`crew`). Rule: what a rank is told is the same, however many are gone through at once.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from radixledger.journal.frame import Frame
from radixledger.journal.units import Rank
from radixledger.replay.crew import Steps, done_by
from radixledger.replay.seek import Watch

T = TypeVar("T")

Place = tuple[Path, Rank]
"""A run, and one rank of it."""

Watcher = Callable[[Path, Rank, str], AbstractContextManager[Watch]]
"""Gives a `Watch` over the frames of a rank, for work that a label names."""

Work = Callable[[Watcher], T]
"""What is to be done for one rank."""


class Gather(Protocol):
    """Does a piece of work for each place and gives the results in order."""

    def __call__(self, work: Sequence[Work[T]], places: Sequence[Place], /) -> list[T]:
        """Each piece of work is that of the place beside it."""
        ...


def unwatched(_: Path, __: Rank, ___: str) -> AbstractContextManager[Watch]:
    """Nobody looks on."""
    return nullcontext(iter)


def one_by_one(work: Sequence[Work[T]], _: Sequence[Place], /) -> list[T]:
    """One rank after the other, in this process, and nobody looks on."""
    return [each(unwatched) for each in work]


def at_once(processes: int, work: Sequence[Work[T]], advance: Callable[[int], None]) -> list[T]:
    """Several ranks at a time; `advance` is told of events gone through.

    Work and its results have to be picklable. Raises WorkerLost, and what a piece of work raises.
    """
    return done_by(processes, [partial(_counted, each) for each in work], advance)


def _counted(work: Work[T], steps: Steps) -> T:
    def counted(frames: Iterable[Frame]) -> Iterator[Frame]:
        for frame in frames:
            yield frame
            steps.tick(len(frame.events))

    return work(lambda *_: nullcontext(counted))
