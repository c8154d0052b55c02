"""A cursor: the frames of one rank in order, across segments, while a writer may go on writing.

Rule 1: the cursor takes no locks and changes nothing. It lists the folder before it reads a segment to its end,
so whatever the listing shows behind that segment was begun after the segment was finished. A listing serves until one
segment alone is left in it: a journal of many segments is not listed once for each.

Rule 2: what continues must connect. A segment begins at the number and with the chain that the one before it ended
with; a jump is MissingEvents, or Overtaken where all that was before it is gone; another chain is Damaged. A later segment may begin earlier than the one
before it ends, where a failing disk kept frames that the writer had given up: the later one counts.

Rule 3: in salvage every number is accounted for, by its event or by a `Gap`. A segment of another run or rank accounts for
none: it is set aside before it can hide what is ours; where the chain is broken and nobody can say that a number is lost, `breaks` has the number behind it.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from radixledger.journal.belonging import Sieve
from radixledger.journal.codec import gap_frame
from radixledger.journal.errors import Damaged, MissingEvents, NoSuchEvent, Overtaken
from radixledger.journal.events_of_the_record import AT_LEAST
from radixledger.journal.folder import Listing, listing, open_segment
from radixledger.journal.frame import LOST_MAX, RawFrame, chain_after
from radixledger.journal.segment import Heading, Segment, SegmentFile, UnfinishedHeading, stand_in
from radixledger.journal.units import FIRST, Rank, Seq


class Placed(NamedTuple):
    """Frames, at least one, with the heading of the segment they stand in."""

    heading: Heading
    frames: list[RawFrame]
    path: Path


class Cursor:
    """Reads on from where it stands each time `run` is called; `seq` is the next number it will tell.

    The frame that holds the first number asked for is given whole. `note` receives remarks for people, the same ones from wherever reading began. headless: in
    salvage, what should stand before the first segment is lost, and nothing stands in for it: a `Gap` does.
    """

    def __init__(
        self,
        folder: Path,
        rank: Rank,
        seq: Seq,
        *,
        salvage: bool,
        note: Callable[[str], None],
        headless: bool = False,
    ) -> None:
        self.folder, self.rank, self.seq = folder, rank, int(seq)
        self._salvage, self._note, self._headless = salvage, note, headless
        self._sieve = Sieve(rank)
        self._strangers: dict[int, Damaged] = {}
        """Segments that were set aside, by the number that they seemed to go on at."""
        self._first = int(seq)
        self._segment: Segment | None = None
        self._chain: bytes | None = None
        self._time_ns, self._step = 0, 0
        self.breaks: list[int] = []
        """In salvage: numbers that need not follow what was told before them, though none is missing."""
        self._files: list[SegmentFile] = []
        self._foreign: set[Path] = set()
        self._told = False
        self._unpaid: Damaged | None = None
        """Damage that was stepped over, while nobody can tell yet how much it cost."""

    def run(self) -> Iterator[Placed]:
        """Every frame that is there now; raises NoSuchEvent, MissingEvents, Overtaken, Damaged or TooNew."""
        while True:
            if self._segment is None:
                self._list()
                yield from self._before_all()
                following = self._covering(self._files)
            else:
                following = self._behind(self._segment)
                yield from self._drain(self._segment, following[0].seq_first if following else None)
                if not following:
                    yield from self._settle(self._segment)
                    return
                yield from self._bridge(self._segment, following[0])
            usable = [each for each in following if each.seq_first <= self.seq]
            if not self._enter(usable[-1], last=usable[-1] is self._files[-1]):
                return

    def _list(self) -> None:
        listed = self._sifted(listing(self.folder)) if self._salvage else listing(self.folder).segments
        self._files = [each for each in listed if each.path not in self._foreign]

    def _sifted(self, files: Listing) -> list[SegmentFile]:
        own, strangers = self._sieve.sort(files)
        for each in strangers:
            path, first = each.listed.path, each.listed.seq_first
            self._note(f"{path.name}: {each.reason}")
            self._strangers[first] = Damaged(path, offset=0, after=Seq(first - 1), reason=each.reason)
        return own

    def _before_all(self) -> Iterator[Placed]:
        """A gap for what stood before the first segment, where its files are gone and that was no retention."""
        if not (self._headless and self._files) or self._files[0].seq_first <= self.seq:
            return
        first = self._files[0]
        segment = self._open(first, last=False)
        error = MissingEvents(first.path, offset=0, missing=FIRST, found=first.seq_first)
        self._note(f"{first.path.name}: {error.reason}")
        gaps = list(self._gap(segment, first.path, first.seq_first, error.reason))
        segment.close()
        yield from gaps

    def _behind(self, segment: Segment) -> list[SegmentFile]:
        """The segments that begin behind this one does; the last of them is the last that there is."""
        if len(self._files) - self._place(segment) < 2:
            self._list()
        return self._files[self._place(segment) :]

    def _place(self, segment: Segment) -> int:
        return bisect_right(self._files, segment.heading.seq_first, key=lambda each: each.seq_first)

    @property
    def end(self) -> int:
        """The number after the last one that was there when `run` came to the end."""
        return self.seq if self._segment is None else min(self.seq, self._segment.seq_next)

    def close(self) -> None:
        """Give the open file back."""
        if self._segment is not None:
            self._segment.close()

    def _covering(self, files: list[SegmentFile]) -> list[SegmentFile]:
        covering = [each for each in files if each.seq_first <= self.seq]
        if not covering:
            first = files[0].seq_first if files else Seq(1)
            raise NoSuchEvent(self.folder, seq=Seq(self.seq), first_seq=first, last_seq=None)
        return covering

    def _enter(self, listed: SegmentFile, *, last: bool) -> bool:
        """Make `listed` the segment at hand; False where it is the last one and still being made."""
        try:
            segment = self._open(listed, last=last)
        except FileNotFoundError:
            self._list()  # dropped since it was listed: the next listing tells what is left
            if listed in self._files:
                self._lead_nowhere(listed)
            return True
        except UnfinishedHeading as unfinished:
            place = f"{listed.path.name} ends inside its heading, after {unfinished.size} bytes"
            self._note(f"{place}: no events")
            return False
        if not self._connects((self._segment or segment).heading, segment):
            return True  # passed over: the next listing is without it
        before, self._segment = self._segment, segment
        if before is not None:
            before.close()
        if segment.heading.seq_first < self.seq:
            self._seek(segment, first=before is None)
        self._chain = segment.chain
        return True

    def _lead_nowhere(self, listed: SegmentFile) -> None:
        """A name without a file behind it; in salvage it is passed over."""
        reason = "a segment of this name is listed, and leads nowhere"
        if not self._salvage:
            raise Damaged(listed.path, offset=0, after=Seq(self.seq - 1), reason=reason)
        self._note(f"{listed.path.name}: {reason}")
        self._foreign.add(listed.path)
        self._list()

    def _open(self, listed: SegmentFile, *, last: bool) -> Segment:
        """The segment; in salvage also without its heading, and only the last may end inside of it."""
        try:
            return open_segment(listed)
        except (Damaged, UnfinishedHeading) as error:
            if last and isinstance(error, UnfinishedHeading):
                raise
            reason = error.reason if isinstance(error, Damaged) else str(error)
            if not self._salvage:
                raise Damaged(listed.path, offset=0, after=Seq(self.seq - 1), reason=reason) from None
            self._note(f"{listed.path.name}: {reason}")
            return open_segment(listed, stand_in(self._segment, self.rank, listed.seq_first))

    def _connects(self, before: Heading, segment: Segment) -> bool:
        """Whether a segment is one of this journal; in salvage one that does not follow is, one of others is not."""
        heading = segment.heading
        first, whole = self._segment is None, before.opened and heading.opened
        if whole and (heading.run, heading.rank) != (before.run, self.rank if first else before.rank):
            theirs, ours = f"run {heading.run}, rank {heading.rank}", f"run {before.run}, rank {self.rank}"
            damage = self._object(segment, f"this segment of {theirs} stands among those of {ours}")
            if not first:
                self._unpaid = damage
                self._foreign.add(segment.path)
                self._list()
                segment.close()
                return False
        if heading.seq_first == self.seq and self._chain and heading.chain and heading.chain != self._chain:
            self._object(segment, "this segment does not follow the one before it: the chain is broken")
            self.breaks.append(self.seq)
        return True

    def _object(self, segment: Segment, reason: str) -> Damaged:
        """Damage that reading can go on behind; raises it without salvage."""
        damage = Damaged(segment.path, offset=0, after=Seq(self.seq - 1), reason=reason)
        if not self._salvage:
            segment.close()
            raise damage
        self._note(f"{segment.path.name}: {reason}")
        return damage

    def _seek(self, segment: Segment, *, first: bool) -> None:
        """Stand before the next number; in salvage before the damage on the way there, to step over it."""
        try:
            segment.seek(Seq(self.seq))
        except Damaged:
            if not self._salvage:
                raise
            if first:
                with suppress(Damaged):
                    segment.seek(segment.heading.seq_first)
                self.seq = segment.seq_next

    def _drain(self, segment: Segment, limit: int | None) -> Iterator[Placed]:
        """What is left of a segment, up to number `limit`, from which on a later segment tells."""
        while True:
            try:
                frames = segment.read()
            except Damaged as damage:
                if not self._salvage:
                    raise
                yield from self._mend(segment, damage, limit)
                continue
            if not frames:
                break
            chain = segment.chain
            if limit is not None and frames[-1].seq_next > limit:
                self._note(f"{segment.path.name}: events from {limit} on are told by a later segment")
                frames = [each for each in frames if each.seq_begin < limit]
                chain = self._chain_over(frames)
            yield from self._pass(segment, frames, chain)
        for notice in segment.notices():
            self._note(notice)

    def _pass(self, segment: Segment, frames: list[RawFrame], chain: bytes | None) -> Iterator[Placed]:
        """Tell frames that were read, but for those before the first number that was asked for."""
        if not frames:
            return
        last = frames[-1]
        if self._unpaid is not None and self._told:
            self.breaks.append(frames[0].seq_first)
        self._told = True
        self.seq, self._chain, self._unpaid = last.seq_next, chain, None
        self._time_ns, self._step = last.time_ns, last.step
        if frames[0].seq_next <= self._first:
            frames = [each for each in frames if each.seq_next > self._first]
        if frames:
            yield Placed(segment.heading, frames, segment.path)

    def _chain_over(self, frames: list[RawFrame]) -> bytes | None:
        chain = self._chain
        for each in frames:
            chain = chain and chain_after(each, chain)
        return chain

    def _mend(self, segment: Segment, damage: Damaged, limit: int | None) -> Iterator[Placed]:
        self._note(f"{segment.path.name}, offset {damage.offset}: {damage.reason}")
        segment.mend()
        stop = segment.seq_next if limit is None else min(segment.seq_next, limit)
        self._chain, self._unpaid = segment.chain, damage
        if stop > self.seq:
            yield from self._gap(segment, segment.path, stop, damage.reason)

    def _bridge(self, segment: Segment, following: SegmentFile) -> Iterator[Placed]:
        """Nothing is missing between a segment and the next; in salvage, a gap where something is."""
        if following.seq_first <= self.seq:
            return
        missing, found = Seq(min(self.seq, segment.seq_next)), following.seq_first
        error = MissingEvents(following.path, offset=0, missing=missing, found=found)
        if not self._salvage:
            if self._files[0] is following:  # this one and all up to there are gone: the oldest go first
                raise Overtaken(self.folder, missing=missing, found=found)
            raise error
        reason = (self._unpaid or self._strangers.get(self.seq) or error).reason
        self._note(f"{following.path.name}: {error.reason}")
        yield from self._gap(segment, following.path, found, reason)

    def _settle(self, segment: Segment) -> Iterator[Placed]:
        """At the end: damage that nobody can count cost one event at least, as did a stranger in the place of what goes on."""
        self._unpaid = self._unpaid or self._strangers.get(self.seq)
        if self._unpaid is not None:
            yield from self._gap(segment, segment.path, self.seq + 1, f"{self._unpaid.reason}; {AT_LEAST}")

    def _gap(self, segment: Segment, path: Path, stop: int, reason: str) -> Iterator[Placed]:
        """A gap up to `stop`, where the file at `path` goes on, behind what `segment` told."""
        if stop - self.seq > LOST_MAX:
            reason = f"it skips {stop - self.seq} numbers, more than any journal loses: take it away to read the others"
            raise Damaged(path, offset=0, after=Seq(self.seq - 1), reason=reason)
        lost, self.seq, self._unpaid, self._chain = stop - self.seq, stop, None, None
        if stop > self._first:
            gap = gap_frame(lost, stop, reason, self._time_ns, self._step)
            yield Placed(segment.heading, [gap], segment.path)
