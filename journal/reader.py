"""Reads one rank's journal: from its beginning, from a number or a time on, or along with its writer.

Rule: a reader takes no locks and writes nothing, so that read-only mounts and live journals can be read. Damage
raises; with `salvage` a `Gap` stands in for what cannot be read. A torn end is neither: the frames before it
are the journal, and `notices` tells what was left out.
"""

from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

from radixledger.journal.belonging import Sieve
from radixledger.journal.codec import NotEvents
from radixledger.journal.cursor import Cursor, Placed
from radixledger.journal.errors import Damaged, NoBaseline, NoJournal, NoSuchEvent, ReaderError
from radixledger.journal.events import AnyEvent, Gap, Opened
from radixledger.journal.folder import SnapshotRef, listing, open_segment, rank_folder, ranks_in
from radixledger.journal.frame import Frame, RawFrame
from radixledger.journal.segment import Form, Heading, SegmentFile, UnfinishedHeading
from radixledger.journal.snapshot import read_snapshot
from radixledger.journal.units import Rank, Seq

__all__ = ["Frame", "JournalReader", "RawFrame", "SnapshotRef", "ranks_in"]


class JournalReader:
    """The journal of one rank of a run; raises NoJournal where there is none.

    `notices` collects remarks for people, each once: torn ends, rebuilt indexes, and in salvage every damage; `breaks` the
    numbers, met in salvage so far, that need not follow the one before though no gap stands between them.
    """

    def __init__(self, run: Path, rank: Rank, *, salvage: bool = False) -> None:
        self.run, self.rank, self.salvage = run, rank, salvage
        self.folder = rank_folder(run, rank)
        self._sieve = Sieve(rank)
        self._stood_in: dict[Seq, bool] = {}
        self.notices: list[str] = []
        self.breaks: list[int] = []
        if not listing(self.folder).segments:
            known = ranks_in(run)
            if rank in known:
                raise NoJournal(self.folder, f"rank {rank} has no journal here: its folder holds no segment")
            ranks = ", ".join(map(str, known))
            raise NoJournal(self.folder, f"rank {rank} has no journal here (this run has ranks {ranks})")

    @property
    def first_seq(self) -> Seq:
        """The first number that the journal holds: 1, or a later one after retention.

        In salvage also 1 where the beginning is gone and nothing stands in for it: a `Gap` does.
        """
        first = self._segments()[0].seq_first
        if self.salvage and first > 1:
            if first not in self._stood_in:
                self._stood_in[first] = self.baseline() is not None
            return first if self._stood_in[first] else Seq(1)
        return first

    @property
    def last_seq(self) -> Seq:
        """The last number that the journal holds now; `first_seq` - 1 where no event was written yet.

        Raises Damaged where the last segment does not allow to say; in salvage the last that can be read counts.
        """
        for listed in reversed(self._segments()):
            try:
                segment = open_segment(listed)
            except UnfinishedHeading:
                continue
            with closing(segment):
                try:
                    segment.seek(Seq(1 << 63))
                except Damaged:
                    if not self.salvage:
                        raise
                    return max((Seq(raw.seq_next - 1) for _, raw in self.raw_frames()), default=Seq(self.first_seq - 1))  # fmt: skip
                return Seq(segment.seq_next - 1)
        return Seq(self.first_seq - 1)

    @property
    def ends_sealed(self) -> bool:
        """Whether the last segment is sealed; a writer at work, or one that was killed, leaves a live one behind those."""
        return self._segments()[-1].form is Form.SEALED

    @property
    def opened(self) -> Opened:
        """The `Opened` of the oldest epoch that is still there, from its segment's heading.

        Raises NoJournal where the only segment is still being made, Damaged and TooNew.
        """
        heading = self._heading()
        try:
            return heading.opening()
        except NotEvents as error:
            raise Damaged(self.folder, offset=0, after=None, reason=f"the first heading: {error}") from None

    def frames(self, from_seq: Seq | None = None) -> Iterator[Frame]:
        """Every frame from `from_seq` on (default: the first event); the first one is cut to begin there.

        Raises NoSuchEvent for a number before the first or more than one behind the last; and while
        reading MissingEvents, Damaged or TooNew, after everything before that place was given.
        """
        with closing(self._cursor(from_seq)) as cursor:
            yield from self._decoded(cursor.run(), from_seq)
            self._check_reached(cursor, from_seq)

    def raw_frames(self, from_seq: Seq | None = None) -> Iterator[tuple[Heading, RawFrame]]:
        """As `frames`, with bodies not decoded; a first frame that begins before `from_seq` is given whole."""
        with closing(self._cursor(from_seq)) as cursor:
            for heading, frames, _ in cursor.run():
                for raw in frames:
                    yield heading, raw
            self._check_reached(cursor, from_seq)

    def frames_from_time(self, time_ns: int) -> Iterator[Frame]:
        """Every frame from the first on, in the order of numbers, whose time is `time_ns` or later.

        Times need not grow: a clock may have been set back, or be virtual and begin anew with an epoch.
        """
        seq = self.seq_at_time(time_ns)
        return iter(()) if seq is None else self.frames(seq)

    def seq_at_time(self, time_ns: int) -> Seq | None:
        """The number that `frames_from_time` begins at; None where everything is earlier."""
        if self.salvage:
            frames = (frame.seq_first for frame in self.frames() if frame.time_ns >= time_ns)
            return next(frames, None)
        for listed in listing(self.folder).segments:
            try:
                segment = open_segment(listed)
            except UnfinishedHeading:
                continue
            with closing(segment):
                if (seq := segment.find_time(time_ns)) is not None:
                    return seq
        return None

    def follow(self, from_seq: Seq | None = None, *, wait: Callable[[], bool]) -> Iterator[Frame]:
        """As `frames`, and on with what the writer adds; at each end `wait()` is asked, and ends it with False.

        `wait` sleeps, or whatever else its caller does until there may be more. A half-written
        frame is waited for, without a notice.
        """
        for frame in self.polled(from_seq):
            if frame is not None:
                yield frame
            elif not wait():
                return

    def polled(self, from_seq: Seq | None = None) -> Iterator[Frame | None]:
        """As `follow`, for who has other journals to look at meanwhile: None at each end, and on behind it."""
        with closing(self._cursor(from_seq, note=lambda _: None)) as cursor:
            while True:
                yield from self._decoded(cursor.run(), from_seq)
                yield None

    def snapshots(self) -> list[SnapshotRef]:
        """The snapshots that lie there, oldest first; `read_snapshot` says whether one is good."""
        return listing(self.folder).snapshots

    def read_snapshot(self, ref: SnapshotRef) -> tuple[bytes, bytes]:
        """Image and digest of the state after event `ref.seq`; raises Damaged, TooNew, FileNotFoundError."""
        snapshot = read_snapshot(ref.path)
        head = snapshot.head
        if (head.rank, head.seq) != (self.rank, ref.seq) or head.run != self._heading().run:
            reason = f"this is the snapshot of run {head.run}, rank {head.rank}, event {head.seq}"
            raise Damaged(ref.path, offset=0, after=None, reason=reason)
        return snapshot.image, head.digest

    def baseline(self) -> SnapshotRef | None:
        """Where folding has to begin: None for the first event, else the oldest usable snapshot (its tail begins
        at `seq` + 1). Where the beginning is gone and nothing stands in for it: in salvage None, else raises NoBaseline.
        """
        first = self._segments()[0].seq_first
        if first == 1:
            return None
        for ref in self.snapshots():
            if ref.seq >= first - 1 and self._is_usable(ref):
                return ref
        if self.salvage:
            return None
        raise NoBaseline(self.folder, first_seq=first)

    def _segments(self) -> list[SegmentFile]:
        """What is there to read; in salvage without what is of another run or rank."""
        files = listing(self.folder)
        return self._sieve.sort(files)[0] if self.salvage else files.segments

    def _is_usable(self, ref: SnapshotRef) -> bool:
        try:
            self.read_snapshot(ref)
        except (ReaderError, FileNotFoundError) as error:
            self._note(str(error))
            return False
        return True

    def _cursor(self, from_seq: Seq | None, note: Callable[[str], None] | None = None) -> Cursor:
        seq = self.first_seq if from_seq is None else from_seq
        headless = self.salvage and self.first_seq == 1
        cursor = Cursor(
            self.folder, self.rank, seq, salvage=self.salvage, note=note or self._note, headless=headless
        )
        cursor.breaks = self.breaks
        return cursor

    def _decoded(self, placed: Iterator[Placed], from_seq: Seq | None) -> Iterator[Frame]:
        for heading, frames, path in placed:
            decode, epoch, made = heading.decoder().decode, heading.epoch, tuple.__new__
            for raw in frames:
                seq_first: Seq = raw.seq_first  # type: ignore[assignment]  # a call to `Seq` per frame would show
                try:
                    events = decode(raw.body, raw.event_count)
                    if raw.lost:
                        _check_gap(events, raw)
                except NotEvents as error:
                    events, seq_first = [self._gap_for(raw, path, error)], Seq(raw.seq_next - 1)
                if from_seq is not None and seq_first < from_seq:
                    events, seq_first = events[from_seq - seq_first :], from_seq
                yield made(Frame, (seq_first, raw.time_ns, raw.step, epoch, events))

    def _gap_for(self, raw: RawFrame, path: Path, error: NotEvents) -> Gap:
        """What stands for a body that does not decode; raises Damaged without salvage."""
        reason = f"frame {raw.seq_first} does not hold what it says: {error}"
        if not self.salvage:
            raise Damaged(path, offset=0, after=Seq(raw.seq_begin - 1), reason=reason) from None
        self._note(f"{path.name}: {reason}")
        return Gap(raw.seq_next - raw.seq_begin, reason)

    def _check_reached(self, cursor: Cursor, from_seq: Seq | None) -> None:
        if from_seq is not None and from_seq > cursor.end:
            last = Seq(cursor.end - 1)
            raise NoSuchEvent(self.folder, seq=from_seq, first_seq=self.first_seq, last_seq=last)

    def _heading(self) -> Heading:
        """The oldest heading; in salvage the oldest that can be read, if there is one."""
        before, segments = None, self._segments()
        while segments != before:
            try:
                return self._oldest_of(segments)
            except FileNotFoundError:  # dropped since it was listed: the next listing tells what is left
                before, segments = segments, self._segments()
        raise NoJournal(segments[0].path, "the first segment is a link to nowhere")

    def _oldest_of(self, segments: list[SegmentFile]) -> Heading:
        if not segments:
            raise NoJournal(self.folder, f"rank {self.rank} has no journal here: its folder holds no segment")
        for listed in segments if self.salvage else ():
            with suppress(Damaged, UnfinishedHeading), closing(open_segment(listed)) as segment:
                return segment.heading
        try:
            with closing(open_segment(segments[0])) as segment:
                return segment.heading
        except UnfinishedHeading:
            raise NoJournal(
                segments[0].path, "the first segment ends inside its heading: no event was written"
            ) from None

    def _note(self, notice: str) -> None:
        if notice not in self.notices:
            self.notices.append(notice)


def _check_gap(events: list[AnyEvent], raw: RawFrame) -> None:
    """A frame that skips numbers is one Gap, which says how many."""
    match events:
        case [Gap(lost=lost)] if lost == raw.lost + 1:
            return
        case _:
            raise NotEvents(f"{raw.lost} numbers are skipped and no gap says so")
