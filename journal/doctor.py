"""Examine a journal: every frame of every segment, what connects them, the snapshots, and what lies about.

A reader stops at the first damage; the doctor goes on to the end and tells all of it, per segment. Beyond what reading
checks it recomputes the chain of the frames inside sealed segments, and holds snapshots against it.
Rule: it changes nothing and needs no lock, so a journal may be examined while it is written.
"""

from collections.abc import Callable
from contextlib import closing, suppress
from enum import StrEnum
from pathlib import Path

from msgspec import Struct, field

from radixledger.journal.belonging import Sieve, Stranger
from radixledger.journal.codec import Decoder, NotEvents
from radixledger.journal.errors import Damaged, NoBaseline, ReaderError
from radixledger.journal.events import Closed, Gap
from radixledger.journal.folder import LOCK_NAME, SnapshotRef, listing, open_segment
from radixledger.journal.frame import RawFrame, chain_after
from radixledger.journal.live import LiveSegment
from radixledger.journal.lock import holder
from radixledger.journal.reader import JournalReader
from radixledger.journal.segment import Heading, Segment, SegmentFile, UnfinishedHeading
from radixledger.journal.snapshot import read_snapshot
from radixledger.journal.units import Rank

UNSAID = (
    "the last segment is sealed and does not end with Closed: a later one may be missing; so do journals end whose writer was"
    " closed before its rank, and copies of those that had no end"
)
"""The mark of a journal whose end was not collected; no finding, because others have it too."""


class Verdict(StrEnum):
    """The state of a file, from good to bad."""

    CLEAN = "clean"
    TORN = "torn"
    """It ends inside a frame or a heading, as a writer that died leaves it; what was acknowledged is there."""
    GAPPED = "gapped"
    """It says itself that events were lost."""
    DAMAGED = "damaged"
    UNREADABLE = "unreadable"

    @property
    def is_finding(self) -> bool:
        """Whether somebody should act; a torn end is what a crash looks like, and no finding."""
        return self not in (Verdict.CLEAN, Verdict.TORN)


class SegmentReport(Struct):
    """What was found in one segment; numbers of events that were read, and remarks."""

    name: str
    form: str
    epoch: int = 0
    seq_first: int = 0
    seq_last: int = 0
    events: int = 0
    frames: int = 0
    lost: int = 0
    bytes: int = 0
    closed: bool = False
    """Whether it ends with `Closed`."""
    verdict: Verdict = Verdict.CLEAN
    problems: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    def blame(self, verdict: Verdict, problem: str) -> None:
        """Note a problem; the verdict only ever gets worse."""
        order = list(Verdict)
        self.verdict = max(self.verdict, verdict, key=order.index)
        self.problems.append(problem)


class SnapshotReport(Struct):
    """What was found of one snapshot."""

    name: str
    seq: int
    bytes: int
    verdict: Verdict = Verdict.CLEAN
    problem: str = ""


class RankReport(Struct):
    """What was found of one rank; `problems` are those that no single file has."""

    rank: Rank
    writer: int
    """The process that the lock file names; 0 for none."""
    segments: list[SegmentReport] = field(default_factory=list)
    snapshots: list[SnapshotReport] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    @property
    def has_findings(self) -> bool:
        """Whether anything is wrong with this rank's journal."""
        files = [each.verdict for each in self.segments] + [each.verdict for each in self.snapshots]
        return bool(self.problems) or any(verdict.is_finding for verdict in files)


def examine(run: Path, rank: Rank, advance: Callable[[int], None] = lambda _: None) -> RankReport:
    """Everything there is to say about one rank's journal; `advance` is told of the bytes gone through.

    Raises NoJournal where the rank has none.
    """
    reader = JournalReader(run, rank, salvage=True)
    files = listing(reader.folder)
    report = RankReport(rank, holder(reader.folder / LOCK_NAME))
    line = _Line(rank, {int(ref.seq) for ref in files.snapshots}, report.problems)
    own, strangers = Sieve(rank).sort(files)
    stops = [each.seq_first for each in own[1:]] + [None]
    for listed, stop in zip(own, stops, strict=True):
        report.segments.append(_examine_segment(listed, stop, line))
        advance(report.segments[-1].bytes)
    if reader.ends_sealed and report.segments[-1].verdict is Verdict.CLEAN and not report.segments[-1].closed:
        report.notices.append(UNSAID)
    report.segments += [_stranger(each) for each in strangers]
    report.snapshots = [_examine_snapshot(ref, line) for ref in files.snapshots]
    if own[0].seq_first > reader.first_seq:
        report.problems.append(str(NoBaseline(reader.folder, first_seq=own[0].seq_first)))
    leftovers = [each.path.name for each in files.superseded if each not in own] + [
        path.name for path in files.unfinished
    ]
    report.notices += [f"{name} is left over; the next writer removes it" for name in leftovers]
    return report


class _Line:
    """Where the examination stands between segments: the next number, and the chain recomputed frame by frame."""

    def __init__(self, rank: Rank, snapshots: set[int], problems: list[str]) -> None:
        self.rank, self.problems = rank, problems
        self.run: str | None = None
        self.seq_next: int | None = None
        self.chain: bytes | None = None
        self.chain_at: dict[int, bytes] = {}
        """The chain after each event that a snapshot names, as far as it is known."""
        self._snapshots = snapshots

    def enter(self, heading: Heading, found: SegmentReport) -> None:
        """Go into a segment: does it connect?"""
        if heading.rank != self.rank or self.run not in (None, heading.run):
            found.blame(Verdict.DAMAGED, f"this segment is of run {heading.run}, rank {heading.rank}")
        if (
            not self.miss(heading.seq_first, found)
            and heading.seq_first == self.seq_next
            and self.chain not in (None, heading.chain)
        ):
            found.blame(Verdict.DAMAGED, "it does not follow the segment before it: the chain is broken")
        self.run, self.seq_next, self.chain = heading.run, heading.seq_first, heading.chain

    def miss(self, seq_first: int, found: SegmentReport) -> bool:
        """Whether events are missing before a segment, which then is a problem; also where only its name is left."""
        missing = self.seq_next is not None and seq_first > self.seq_next
        if missing:
            self.problems.append(f"missing {self.seq_next}, next is {seq_first} ({found.name})")
        return missing

    def follow(self, raw: RawFrame) -> None:
        """Go on by one frame."""
        self.seq_next = raw.seq_next
        if self.chain is not None:
            self.chain = chain_after(raw, self.chain)
            if raw.seq_next - 1 in self._snapshots:
                self.chain_at[raw.seq_next - 1] = self.chain

    def lose(self) -> None:
        """Go on behind a segment that cannot be opened."""
        self.seq_next = self.chain = None


def _examine_segment(listed: SegmentFile, stop: int | None, line: _Line) -> SegmentReport:
    """One segment from end to end; numbers from `stop` on are the next segment's to tell."""
    found = SegmentReport(listed.path.name, listed.form.name.lower(), seq_first=listed.seq_first)
    try:
        found.bytes = listed.path.stat().st_size
        with closing(open_segment(listed)) as segment:
            found.epoch = segment.heading.epoch
            line.enter(segment.heading, found)
            _go_through(segment, stop, line, found)
    except UnfinishedHeading as unfinished:
        line.miss(listed.seq_first, found)
        found.blame(Verdict.TORN if stop is None else Verdict.DAMAGED, str(unfinished))
    except FileNotFoundError:
        found.notices.append("it was sealed or dropped while it was examined")
        line.lose()
    except ReaderError as error:
        found.blame(Verdict.UNREADABLE, error.reason if isinstance(error, Damaged) else str(error))
        line.lose()
    return found


def _stranger(stranger: Stranger) -> SegmentReport:
    """A segment of another run or rank: nothing in it is looked at, and it hides nothing of ours."""
    path, first, form = stranger.listed
    found = SegmentReport(path.name, form.name.lower(), seq_first=first)
    with suppress(FileNotFoundError):
        found.bytes = path.stat().st_size
    found.blame(Verdict.DAMAGED, stranger.reason)
    return found


def _go_through(segment: Segment, stop: int | None, line: _Line, found: SegmentReport) -> None:
    decoder = segment.heading.decoder()
    while True:
        try:
            frames = segment.read()
        except Damaged as damage:
            found.blame(Verdict.DAMAGED, f"offset {damage.offset}: {damage.reason}")
            found.lost += segment.mend()
            line.seq_next, line.chain = segment.seq_next, segment.chain
            continue
        if not frames:
            break
        for raw in frames:
            if stop is not None and raw.seq_begin >= stop:
                found.notices.append(f"events from {stop} on are told by the next segment")
                return
            line.follow(raw)
            _count(raw, decoder, found)
    if None not in (line.chain, segment.chain) and line.chain != segment.chain:
        found.blame(Verdict.DAMAGED, "frames inside were edited: their chain does not end as recorded")
    found.notices += segment.notices()
    if isinstance(segment, LiveSegment) and segment.torn_bytes:
        found.blame(Verdict.TORN, found.notices.pop())


def _count(raw: RawFrame, decoder: Decoder, found: SegmentReport) -> None:
    found.frames += 1
    found.seq_last = raw.seq_next - 1
    try:
        events = decoder.decode(raw.body, raw.event_count)
    except NotEvents as error:
        found.blame(Verdict.DAMAGED, f"frame {raw.seq_first} does not hold what it says: {error}")
        found.lost += raw.event_count
        return
    found.events += len(events)
    found.closed = isinstance(events[-1], Closed)
    if isinstance(events[0], Gap):
        found.lost += events[0].lost
        found.blame(
            Verdict.GAPPED, f"{events[0].lost} events up to {raw.seq_first} are lost: {events[0].reason}"
        )


def _examine_snapshot(ref: SnapshotRef, line: _Line) -> SnapshotReport:
    found = SnapshotReport(ref.path.name, ref.seq, 0)
    try:
        found.bytes = ref.path.stat().st_size
        head = read_snapshot(ref.path).head
    except FileNotFoundError:
        found.problem = "dropped while it was examined"
    except ReaderError as error:
        found.verdict = Verdict.UNREADABLE
        found.problem = error.reason if isinstance(error, Damaged) else str(error)
    else:
        if (head.rank, head.seq) != (line.rank, ref.seq) or line.run not in (None, head.run):
            found.verdict = Verdict.DAMAGED
            found.problem = f"it is of run {head.run}, rank {head.rank}, event {head.seq}"
        elif line.chain_at.get(ref.seq, head.chain) != head.chain:
            found.verdict, found.problem = Verdict.DAMAGED, "it belongs to another history: the chain differs"
    return found
