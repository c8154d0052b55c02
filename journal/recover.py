"""Copy a journal: what can be read is written anew, as it was or rewritten, and a `Gap` says what cannot.

Rule: never in place, and all of a rank or nothing. The run that is recovered is evidence; the copy has its name once it is a
journal like any other, sealed and whole, with the same numbers, times and steps, that the doctor finds nothing wrong with but its gaps.
"""

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from radixledger.journal.belonging import demand_any_of
from radixledger.journal.codec import Decoder, Encoder, NotEvents, fingerprint, gap_frame
from radixledger.journal.cursor import Cursor, Placed
from radixledger.journal.disk import TEMPORARY, Disk, naming
from radixledger.journal.errors import NoJournal, ReaderError, RunExists, WriterError
from radixledger.journal.events import SCHEMA_VERSION, AnyEvent, Gap, Opened
from radixledger.journal.folder import SnapshotRef, listing, rank_folder, snapshot_path
from radixledger.journal.frame import RawFrame, chain_start
from radixledger.journal.live import LiveWriter
from radixledger.journal.reader import JournalReader
from radixledger.journal.seal import seal
from radixledger.journal.segment import Form, Heading, SegmentFile
from radixledger.journal.snapshot import read_head, write_snapshot
from radixledger.journal.units import Rank, Seq

UNFINISHED = "unfinished-copy"
"""In a folder that a copy is being made in: only one that has this is taken for what an attempt left, and cleared away."""


class Recovered(Struct):
    """What became of one rank: events copied and lost, the files written, and remarks on the damage."""

    rank: Rank
    folder: str
    events: int = 0
    lost: int = 0
    segments: int = 0
    snapshots: int = 0
    notices: list[str] = field(default_factory=list)


class Rewrite(NamedTuple):
    """What becomes of events, and of the images in snapshots, on their way into a copy. What raises ValueError is left out."""

    event: Callable[[AnyEvent], AnyEvent]
    image: Callable[[bytes], bytes]


def recover(
    run: Path,
    rank: Rank,
    to: Path,
    advance: Callable[[int], None] = lambda _: None,
    *,
    rewrite: Rewrite | None = None,
) -> Recovered:
    """Copy one rank of `run` into the run `to`, which must not have that rank; `advance` is told of events.

    Raises NoJournal where there is no event of this rank to copy, RunExists, WriterError where something else lies in the way, TooNew and OSError.
    """
    folder = demand_absent(to, rank)
    reader = JournalReader(run, rank, salvage=True)
    demand_any_of(rank, listing(reader.folder), reader.folder)
    first = reader.first_seq
    done = Recovered(rank, str(folder))
    making = folder.with_name(folder.name + TEMPORARY)
    if (making / UNFINISHED).exists():  # of an attempt that was killed
        shutil.rmtree(making)
    elif making.exists():
        raise WriterError(f"{making} is where a copy is made, and what lies there is none: move it away")
    try:
        copy = _Copy(making, done, {int(ref.seq) for ref in reader.snapshots()}, rewrite)
        with naming(folder):
            _fill(copy, reader, first, advance)
        if not done.segments:
            raise NoJournal(reader.folder, "there is no event that could be copied")
        Disk().remove(making / UNFINISHED)
        Disk().rename(making, folder)
    except BaseException:
        shutil.rmtree(making, ignore_errors=True)
        raise
    Disk().sync_folder(to)
    return done


def _fill(copy: "_Copy", reader: JournalReader, first: Seq, advance: Callable[[int], None]) -> None:
    with closing(
        Cursor(reader.folder, reader.rank, first, salvage=True, note=copy.note, headless=first == 1)
    ) as cursor:
        for placed in cursor.run():
            copy.write(placed)
            advance(sum(each.event_count for each in placed.frames))
    copy.finish_segment()
    for ref in reader.snapshots():
        copy.write_snapshot(reader, ref)


def demand_absent(to: Path, rank: Rank) -> Path:
    """Where the copy of a rank goes; raises RunExists where something lies there."""
    folder = rank_folder(to, rank)
    if folder.exists():
        raise RunExists(
            folder, rank=rank, last_seq=None, instead="a copy is never written over; name another folder"
        )
    return folder


class _Copy:
    """The journal that is being made."""

    def __init__(self, folder: Path, done: Recovered, wanted: set[int], rewrite: Rewrite | None) -> None:
        self._folder, self._done, self._disk = folder, done, Disk()
        self._source: Heading | None = None
        self._writer: LiveWriter | None = None
        self._decoder = Decoder()
        self._wanted = wanted
        self._rewrite = rewrite
        self._chain_at: dict[int, bytes] = {}
        """The chain of the copy after each event that a snapshot names."""

    def note(self, notice: str) -> None:
        """Keep a remark, once."""
        if notice not in self._done.notices:
            self._done.notices.append(notice)

    def write(self, placed: Placed) -> None:
        """Copy frames, or the gaps that stand for them."""
        if placed.heading is not self._source:
            self._decoder = placed.heading.decoder()
        for each in placed.frames:
            self._write_frame(placed, each)

    def _write_frame(self, placed: Placed, raw: RawFrame) -> None:
        raw, events = self._readable(raw, placed.path)
        writer = self._writer_for(placed.heading, raw, events)
        writer.append_raw(raw)
        match events[0]:
            case Gap(lost=lost):
                self._done.lost += lost
            case _:
                self._done.events += len(events)
        if writer.seq_next - 1 in self._wanted:
            self._chain_at[writer.seq_next - 1] = writer.chain

    def write_snapshot(self, reader: JournalReader, ref: SnapshotRef) -> None:
        """Copy a good snapshot, tied to the chain of the copy."""
        chain = self._chain_at.get(ref.seq)
        try:
            image, _ = reader.read_snapshot(ref)
            head = read_head(ref.path)
            image = self._rewrite.image(image) if self._rewrite else image
        except (ReaderError, ValueError) as error:
            self.note(f"{ref.path.name}: {error}" if isinstance(error, ValueError) else str(error))
            return
        if chain is None:
            self.note(f"{ref.path.name}: the event that it follows is lost, so it was left out")
            return
        path = snapshot_path(self._folder, ref.seq)
        write_snapshot(
            path,
            image,
            self._disk,
            run=head.run,
            rank=head.rank,
            epoch=head.epoch,
            seq=head.seq,
            chain=chain,
            time_ns=head.time_ns,
            digest=head.digest,
        )
        self._done.snapshots += 1

    def finish_segment(self) -> None:
        """Close and seal the segment at hand."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
            seal(SegmentFile(writer.path, writer.heading.seq_first, Form.LIVE), self._disk)
            self._done.segments += 1

    def _readable(self, raw: RawFrame, path: Path) -> tuple[RawFrame, list[AnyEvent]]:
        try:
            events = self._decoder.decode(raw.body, raw.event_count)
            if self._rewrite is None:
                return raw, events
            events = list(map(self._rewrite.event, events))
            return raw._replace(body=Encoder().encode(events)), events
        except ValueError as error:  # NotEvents is one
            reason = f"frame {raw.seq_first} does not hold what it says: {error}"
            self.note(f"{path.name}: {reason}")
            lost = raw.seq_next - raw.seq_begin
            return gap_frame(lost, raw.seq_next, reason, raw.time_ns, raw.step), [Gap(lost, reason)]

    def _writer_for(self, heading: Heading, raw: RawFrame, events: list[AnyEvent]) -> LiveWriter:
        """The segment to write to: a new one where the source has a new one."""
        if self._writer is not None and heading is self._source:
            return self._writer
        chain = self._writer.chain if self._writer else heading.chain
        self.finish_segment()
        self._source = heading
        heading = replace(self._rewritten(_told_by(events[0], heading)), seq_first=Seq(raw.seq_begin))
        if not chain or raw.seq_begin == 1:  # a journal whose beginning is lost begins with the gap
            chain = chain_start(heading.run, heading.rank)
        self._disk.make_folder(self._folder)
        (self._folder / UNFINISHED).touch()
        self._writer = LiveWriter(self._folder, replace(heading, chain=chain), self._disk)
        return self._writer

    def _rewritten(self, heading: Heading) -> Heading:
        """The heading with its `Opened` as the copy tells it, in the vocabulary of today; as it was where that cannot be read."""
        if self._rewrite is None:
            return heading
        try:
            opened = self._rewrite.event(heading.opening())
        except NotEvents:
            return heading
        return replace(
            heading, opened=Encoder().encode([opened]), schema=SCHEMA_VERSION, fingerprint=fingerprint()
        )


def _told_by(first: AnyEvent, heading: Heading) -> Heading:
    """The heading; where it stands in for a damaged one, corrected by the `Opened` that the segment begins with."""
    if heading.chain or not isinstance(first, Opened):
        return heading
    body = Encoder().encode([first])
    return replace(heading, run=first.run, rank=first.rank, epoch=first.epoch, opened=body)
