"""Whose segments lie in the folder of a rank: its own, and those of another run or rank that came there by mistake.

Rule: ours is the run that most segments of this rank are of; where none is of this rank, nothing is set aside, and the reader
says what it meets. What does not tell whose it is counts as ours. Only who reads around damage asks: it opens every segment once.
"""

from collections import Counter
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from radixledger.journal.errors import ReaderError
from radixledger.journal.folder import Listing, open_segment
from radixledger.journal.segment import SegmentFile, UnfinishedHeading
from radixledger.journal.units import Rank, Seq


class Whose(NamedTuple):
    """Run and rank, as a heading says."""

    run: str
    rank: Rank


class Stranger(NamedTuple):
    """A segment that is set aside."""

    listed: SegmentFile
    whose: Whose
    ours: Whose

    @property
    def reason(self) -> str:
        """What to say of it."""
        theirs, ours = (f"run {each.run}, rank {each.rank}" for each in (self.whose, self.ours))
        return f"this segment of {theirs} stands among those of {ours}, and is set aside"


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
        told = {each.path: whose for each in listed if (whose := self._whose(each)) is not None}
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

    def _whose(self, listed: SegmentFile) -> Whose | None:
        if listed.path not in self._known:
            with suppress(ReaderError, UnfinishedHeading, OSError), closing(open_segment(listed)) as segment:
                self._known[listed.path] = Whose(segment.heading.run, segment.heading.rank)
        return self._known.get(listed.path)
