"""Whose segments lie in the folder of a rank: its own, and those of another run or rank that came there by mistake.

Rule: ours is the run that most segments of this rank are of; where none is of this rank, nothing is set aside, and the reader
says what it meets. What does not tell whose it is counts as ours. It opens every segment once, so only who reads around damage
asks, and a writer that is to go on: a name says where a file stands, and never that it may be cleared away or written over.
"""

from collections import Counter
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from radixledger.journal.errors import NoJournal, NotOurs, ReaderError
from radixledger.journal.folder import Listing, open_segment
from radixledger.journal.segment import SegmentFile, UnfinishedHeading
from radixledger.journal.snapshot import read_head
from radixledger.journal.units import Rank, Seq


class Whose(NamedTuple):
    """Run and rank, as a heading says."""

    run: str
    rank: Rank

    def __str__(self) -> str:
        return f"run {self.run}, rank {self.rank}"


class Stranger(NamedTuple):
    """A segment that is set aside."""

    listed: SegmentFile
    whose: Whose
    ours: Whose

    @property
    def place(self) -> str:
        """Whose it is, and where it stands."""
        return f"this segment of {self.whose} stands among those of {self.ours}"

    @property
    def reason(self) -> str:
        """What a reader says of it."""
        return f"{self.place}, and is set aside"


class Sieve:
    """Sorts what is listed; a heading that was read is remembered, because it never changes."""

    def __init__(self, rank: Rank) -> None:
        self._rank = rank
        self._known: dict[Path, Whose] = {}

    def sort(self, files: Listing) -> tuple[list[SegmentFile], list[Stranger]]:
        """The segments of this rank in the order of their numbers, and the strangers among them.

        A live segment counts again where the sealed one that seemed to stand in for it is a stranger.
        """
        listed = [*files.superseded, *files.segments]
        told = self.told(files)
        counts = Counter(whose for whose in told.values() if whose.rank == self._rank)
        if not counts:
            return files.segments, []
        ours = counts.most_common(1)[0][0]
        own: dict[Seq, SegmentFile] = {}
        strangers = []
        for each in listed:
            whose = told.get(each.path, ours)
            if whose == ours:
                own[each.seq_first] = each
            else:
                strangers.append(Stranger(each, whose, ours))
        return [own[seq] for seq in sorted(own)], strangers

    def told(self, files: Listing) -> dict[Path, Whose]:
        """Whose each listed segment is, as far as they say."""
        listed = [*files.superseded, *files.segments]
        return {each.path: whose for each in listed if (whose := self._whose(each)) is not None}

    def _whose(self, listed: SegmentFile) -> Whose | None:
        if listed.path not in self._known:
            with suppress(ReaderError, UnfinishedHeading, OSError), closing(open_segment(listed)) as segment:
                self._known[listed.path] = Whose(segment.heading.run, segment.heading.rank)
        return self._known.get(listed.path)


def demand_any_of(rank: Rank, files: Listing, folder: Path) -> None:
    """Raise NoJournal where segments say whose they are, and none that it is of this rank: a copy of them would be theirs."""
    told = Sieve(rank).told(files)
    if not told or any(whose.rank == rank for whose in told.values()):
        return
    theirs = "; ".join(sorted({str(whose) for whose in told.values()}))
    raise NoJournal(
        folder,
        f"no segment in this folder of rank {rank} says that it is of that rank, and none is copied: they are of {theirs}; "
        "where folders were exchanged, give each the number of its own rank",
    )


def demand_ours(files: Listing, rank: Rank) -> None:
    """Raise NotOurs where a segment or a snapshot says that it is of another rank, or of another run than most segments here."""
    sieve = Sieve(rank)
    for stranger in sieve.sort(files)[1]:
        raise NotOurs(stranger.listed.path, stranger.place)
    told = sieve.told(files)
    for path, whose in told.items():
        if whose.rank != rank:
            raise NotOurs(path, f"this segment of {whose} stands in the folder of rank {rank}")
    ours = next(iter(told.values()), None)
    for ref in files.snapshots if ours else ():
        theirs = of_snapshot(ref.path)
        if theirs not in (ours, None):
            raise NotOurs(ref.path, f"this snapshot of {theirs} stands among the files of {ours}")


def of_snapshot(path: Path) -> Whose | None:
    """Whose a snapshot is; None where it does not say."""
    with suppress(ReaderError, OSError):
        head = read_head(path)
        return Whose(head.run, head.rank)
    return None
