"""Ranks that a run has and that do not lie here, or not in their own folder: each `Opened` says how many there are.

Rule: a journal is of the rank that its headings say, whatever folder it lies in; damage is passed over, not told. A rank whose
folder is here is absent only where all that can be read in it is of others: what else is wrong there, who reads it says.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import groupby
from pathlib import Path

from msgspec import Struct, field

from radixledger.journal.belonging import Sieve, Whose
from radixledger.journal.codec import NotEvents
from radixledger.journal.errors import ReaderError
from radixledger.journal.folder import listing, open_segment, rank_folder
from radixledger.journal.segment import SegmentFile, UnfinishedHeading
from radixledger.journal.units import Rank

RANKS_MAX = 1 << 16
"""More ranks than any run has: who says so is not believed."""


class Misplaced(Struct, frozen=True, order=True):
    """A folder that holds another's journal alone: the rank that it is named for, and the run and rank whose it is."""

    folder: Rank
    run: str
    rank: Rank


class Absent(Struct, frozen=True):
    """What is not here of one run, or not in its place. ranks: how many it has, as those that are here say; missing: those that
    lie in no folder; misplaced: what its folders hold of others, and its ranks that lie in folders of others.
    """

    run: str
    ranks: int
    missing: list[Rank]
    misplaced: list[Misplaced] = field(default_factory=list)

    def sentence(self) -> str:
        """What to tell people."""
        return ("" if self.missing else f"run {self.run}: ") + "; ".join([*self._gone(), *self._elsewhere()])

    def _gone(self) -> Iterator[str]:
        many = len(self.missing) > 1
        if self.missing:
            yield (
                f"rank{'s' * many} {spans(self.missing)} of {self.ranks} {'are' if many else 'is'} not here: run {self.run} has"
                f" {self.ranks} ranks, as those that are here say, and nothing can be told of {'these' if many else 'this one'}"
            )

    def _elsewhere(self) -> Iterator[str]:
        """Two that were exchanged are one sentence."""
        lies = {(each.folder, each.rank) for each in self.misplaced if each.run == self.run}
        for each in self.misplaced:
            if each.run != self.run:
                yield f"the journal in the folder of rank {each.folder} is that of {Whose(each.run, each.rank)}"
            elif (each.rank, each.folder) not in lies:
                yield f"rank {each.rank}'s journal lies in the folder of rank {each.folder}"
            elif each.rank < each.folder:
                yield f"rank {each.rank}'s journal lies in the folder of rank {each.folder}, and the other way round"


def absent_ranks(places: Iterable[tuple[Path, Rank]]) -> list[Absent]:
    """Of each run that these folders hold ranks of, those that none of them holds, and those that lie in another's folder; a
    run is known by its name.
    """
    here: dict[Path, set[Rank]] = {}
    for run, rank in places:
        here.setdefault(run, set()).add(rank)
    counts: dict[str, int] = {}
    present: dict[str, set[Rank]] = {}
    astray: dict[str, set[Misplaced]] = {}
    for run, ranks in here.items():
        owners = {rank: _owners(run, rank) for rank in ranks}
        names: dict[str, int] = {}
        for name, count in (each for rank in ranks for each in _told_in(run, rank, owners[rank])):
            names[name] = max(names.get(name, 0), count)
        silent = {rank for rank in ranks if not owners[rank]}
        for name, count in names.items():
            counts[name] = max(counts.get(name, 0), count)
            own = {whose.rank for each in owners.values() for whose in each if whose.run == name}
            present.setdefault(name, set()).update(own | silent)
            astray.setdefault(name, set()).update(_misplaced(name, count, owners))
    told = (
        Absent(
            name,
            count,
            [Rank(each) for each in range(count) if each not in present[name]],
            sorted(astray[name]),
        )
        for name, count in counts.items()
    )
    return [each for each in told if each.missing or each.misplaced]


def _owners(run: Path, rank: Rank) -> set[Whose]:
    """Whose journal lies in the folder of a rank: of this rank, or where nothing is of this rank, of whom it is."""
    files, sieve = listing(rank_folder(run, rank)), Sieve(rank)
    ends = files._replace(segments=files.segments[:1] + files.segments[-1:], superseded=[])
    told: set[Whose] = set()
    for look in (ends, files):  # the rest is opened only where neither end is of this rank
        told = set(sieve.told(look).values())
        if own := {whose for whose in told if whose.rank == rank}:
            return own
    return told


def _misplaced(name: str, count: int, owners: dict[Rank, set[Whose]]) -> Iterator[Misplaced]:
    """What stands in the wrong folder, as it concerns one run; what is of another run is told to that of more folders, or to both."""
    folders = Counter(run for each in owners.values() for run in {whose.run for whose in each})
    for folder, each in owners.items():
        if Whose(name, folder) in each:
            continue
        for whose in each:
            if whose.run == name or (folder < count and folders[name] >= folders[whose.run]):
                yield Misplaced(folder, *whose)


def _told_in(run: Path, rank: Rank, owners: set[Whose]) -> Iterator[tuple[str, int]]:
    """Name and number of ranks, as the oldest and the newest readable heading of whose journal lies in the folder of a rank say."""
    segments = listing(rank_folder(run, rank)).segments
    for order in (segments, segments[::-1]):
        yield from _told_by(order, owners)


def _told_by(segments: Sequence[SegmentFile], owners: set[Whose]) -> Iterator[tuple[str, int]]:
    for listed in segments:
        with (
            suppress(ReaderError, UnfinishedHeading, OSError, NotEvents),
            closing(open_segment(listed)) as segment,
        ):
            opened = segment.heading.opening()
            whose = Whose(opened.run, opened.rank)
            said = Whose(segment.heading.run, segment.heading.rank)
            if whose == said and whose in owners and 0 < opened.ranks <= RANKS_MAX:
                yield opened.run, opened.ranks
                return


def spans(ranks: Sequence[Rank]) -> str:
    """`1, 4-7`."""
    runs = [list(each) for _, each in groupby(enumerate(ranks), lambda pair: pair[1] - pair[0])]
    return ", ".join(
        f"{each[0][1]}" if len(each) == 1 else f"{each[0][1]}-{each[-1][1]}" for each in map(list, runs)
    )
