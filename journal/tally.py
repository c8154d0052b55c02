"""Counts of a journal: events and bytes by type, epochs, segments, the time they span.

Rule: one pass, memory by the number of types and epochs and not of events.
"""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
from msgspec import Struct, field

from radixledger.journal.codec import NotEvents
from radixledger.journal.errors import ReaderError
from radixledger.journal.events import Gap
from radixledger.journal.folder import listing, open_segment
from radixledger.journal.frame import Frame
from radixledger.journal.reader import JournalReader
from radixledger.journal.segment import Form, Heading, UnfinishedHeading
from radixledger.journal.units import Rank

_pack = msgspec.msgpack.Encoder().encode


class TypeTally(Struct):
    """Events of one type and their bytes before compression, frames' headers not counted."""

    events: int = 0
    bytes: int = 0


class EpochTally(Struct):
    """One run of the writer: how it was opened, and what it wrote."""

    epoch: int
    policy: str
    route: str = ""
    redaction: str = ""
    key_id: str = ""
    code: str = ""
    dirty: bool = False
    seq_first: int = 0
    events: int = 0
    frames: int = 0
    time_first_ns: int = 0
    time_last_ns: int = 0
    step_last: int = 0


class RankTally(Struct):
    """All counts of one rank. `disk_bytes` are those of its segments, `snapshot_bytes` come on top."""

    run: str
    rank: Rank
    first_seq: int
    last_seq: int = 0
    events: int = 0
    frames: int = 0
    lost: int = 0
    sealed_segments: int = 0
    live_segments: int = 0
    disk_bytes: int = 0
    snapshots: int = 0
    snapshot_bytes: int = 0
    epochs: list[EpochTally] = field(default_factory=list)
    types: dict[str, TypeTally] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)

    @property
    def bytes_per_event(self) -> float:
        """Bytes on disk per event, in whatever form the segments have."""
        return self.disk_bytes / self.events if self.events else 0.0


def tally(run: Path, rank: Rank, *, salvage: bool, advance: Callable[[int], None]) -> RankTally:
    """Count one rank; `advance` is told of the events gone through. Raises as reading does."""
    reader = JournalReader(run, rank, salvage=salvage)
    counts = RankTally(run.absolute().name, rank, first_seq=reader.first_seq)
    _count_files(reader, counts)
    epochs = {each.epoch: each for each in counts.epochs}
    for frame in reader.frames():
        _count_frame(frame, epochs.setdefault(frame.epoch, EpochTally(frame.epoch, "")), counts)
        advance(len(frame.events))
    counts.epochs = [epochs[number] for number in sorted(epochs)]
    counts.notices = reader.notices
    return counts


def _count_files(reader: JournalReader, counts: RankTally) -> None:
    """Sizes by name, and the epochs by the headings, which say more than events do after retention."""
    files = listing(reader.folder)
    for listed in files.segments:
        try:
            counts.disk_bytes += listed.path.stat().st_size
            with closing(open_segment(listed)) as segment:
                _note_epoch(segment.heading, counts)
        except (ReaderError, UnfinishedHeading, FileNotFoundError):
            continue  # reading tells what is wrong with it
        counts.sealed_segments += listed.form is Form.SEALED
        counts.live_segments += listed.form is Form.LIVE
    counts.snapshots = len(files.snapshots)
    counts.snapshot_bytes = sum(ref.path.stat().st_size for ref in files.snapshots)


def _note_epoch(heading: Heading, counts: RankTally) -> None:
    counts.run = heading.run
    if any(each.epoch == heading.epoch for each in counts.epochs):
        return
    try:
        opened = heading.opening()
    except NotEvents:
        counts.epochs.append(EpochTally(heading.epoch, heading.policy, seq_first=heading.seq_first))
        return
    counts.epochs.append(
        EpochTally(
            heading.epoch,
            heading.policy,
            opened.route,
            opened.redaction,
            opened.key_id,
            opened.code,
            opened.dirty,
            heading.seq_first,
        )
    )


def _count_frame(frame: Frame, epoch: EpochTally, counts: RankTally) -> None:
    if epoch.frames == 0:
        epoch.time_first_ns = frame.time_ns
    epoch.time_last_ns, epoch.step_last = frame.time_ns, frame.step
    for each in (epoch, counts):
        each.frames += 1
        each.events += len(frame.events)
    counts.last_seq = frame.seq_last
    for event in frame.events:
        kind = counts.types.setdefault(type(event).__name__, TypeTally())
        kind.events += 1
        kind.bytes += len(_pack(event))
        if isinstance(event, Gap):
            counts.lost += event.lost
