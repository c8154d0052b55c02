"""Ranks that a run has and that do not lie here: each `Opened` says how many there are.

Rule: a count is taken from what the folder of a rank holds of that rank; damage and files of others are passed over, not told.
A rank whose folder is here is not absent, whatever lies in it: who reads it says so.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import groupby
from pathlib import Path

from msgspec import Struct

from radixledger.journal.codec import NotEvents
from radixledger.journal.errors import ReaderError
from radixledger.journal.folder import listing, open_segment, rank_folder
from radixledger.journal.segment import SegmentFile, UnfinishedHeading
from radixledger.journal.units import Rank

RANKS_MAX = 1 << 16
"""More ranks than any run has: who says so is not believed."""


class Absent(Struct, frozen=True):
    """What is not here of one run. ranks: how many it has, as those that are here say; missing: the others."""

    run: str
    ranks: int
    missing: list[Rank]

    def sentence(self) -> str:
        """What to tell people."""
        many = len(self.missing) > 1
        return (
            f"rank{'s' * many} {spans(self.missing)} of {self.ranks} {'are' if many else 'is'} not here: run {self.run} has"
            f" {self.ranks} ranks, as those that are here say, and nothing can be told of {'these' if many else 'this one'}"
        )


def absent_ranks(places: Iterable[tuple[Path, Rank]]) -> list[Absent]:
    """Of each run that these folders hold ranks of, those that none of them holds; a run is known by its name."""
    here: dict[Path, set[Rank]] = {}
    for run, rank in places:
        here.setdefault(run, set()).add(rank)
    counts: dict[str, int] = {}
    present: dict[str, set[Rank]] = {}
    for run, ranks in here.items():
        for name, count in _told_in(run, ranks):
            counts[name] = max(counts.get(name, 0), count)
            present.setdefault(name, set()).update(ranks)
    told = ((name, count, [Rank(each) for each in range(count) if each not in present[name]]) for name, count in counts.items())  # fmt: skip
    return [Absent(*each) for each in told if each[2]]


def _told_in(run: Path, ranks: Iterable[Rank]) -> Iterator[tuple[str, int]]:
    """Name and number of ranks, as the oldest and the newest readable heading of each rank say."""
    for rank in ranks:
        segments = listing(rank_folder(run, rank)).segments
        for order in (segments, segments[::-1]):
            yield from _told_by(order, rank)


def _told_by(segments: Sequence[SegmentFile], rank: Rank) -> Iterator[tuple[str, int]]:
    for listed in segments:
        with (
            suppress(ReaderError, UnfinishedHeading, OSError, NotEvents),
            closing(open_segment(listed)) as segment,
        ):
            opened = segment.heading.opening()
            if (opened.run, opened.rank) == (segment.heading.run, rank) and 0 < opened.ranks <= RANKS_MAX:
                yield opened.run, opened.ranks
                return


def spans(ranks: Sequence[Rank]) -> str:
    """`1, 4-7`."""
    runs = [list(each) for _, each in groupby(enumerate(ranks), lambda pair: pair[1] - pair[0])]
    return ", ".join(
        f"{each[0][1]}" if len(each) == 1 else f"{each[0][1]}-{each[-1][1]}" for each in map(list, runs)
    )
