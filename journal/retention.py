"""Retention: old segments go when the journal is too big or they are too old, and never its baseline.

A journal that does not begin at its first event must begin with a snapshot: folding starts from the image and goes on
with the event after it. So a segment may go only if a snapshot that was read and found good lies at
its last event or later. Rule: what is live, damaged, not sealed yet or of another run or rank stays, and so does everything after it.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from radixledger.journal.belonging import Whose, of_snapshot
from radixledger.journal.disk import Disk
from radixledger.journal.errors import ReaderError
from radixledger.journal.folder import SnapshotRef, listing
from radixledger.journal.sealed import SealedSegment
from radixledger.journal.segment import Form, SegmentFile, UnfinishedHeading
from radixledger.journal.snapshot import read_snapshot


class Retention(NamedTuple):
    """How much of a rank's journal to keep: bytes of segments, age of their last event; None for all."""

    keep_bytes: int | None = None
    keep_ns: int | None = None


class Aged(NamedTuple):
    """A sealed segment as retention sees it."""

    listed: SegmentFile
    seq_last: int
    size: int
    time_last_ns: int


class Dropped(NamedTuple):
    """What retention took away, oldest first, and the snapshot that the journal begins with since."""

    segments: list[SegmentFile]
    snapshots: list[SnapshotRef]
    baseline: SnapshotRef | None


NOTHING = Dropped([], [], None)


def overdue(aged: Sequence[Aged], total_bytes: int, now_ns: int, retention: Retention) -> list[Aged]:
    """The oldest segments that size or age says should go, whether or not they may."""
    out: list[Aged] = []
    for each in aged:
        too_big = retention.keep_bytes is not None and total_bytes > retention.keep_bytes
        too_old = retention.keep_ns is not None and now_ns - each.time_last_ns > retention.keep_ns
        if not (too_big or too_old):
            break
        out.append(each)
        total_bytes -= each.size
    return out


def retain(folder: Path, whose: Whose, retention: Retention, now_ns: int, disk: Disk) -> Dropped:
    """Apply `retention` to the folder of a rank, `whose` files alone are counted and go; what was dropped. Raises OSError.

    The newest snapshot that is good decides how far it may go. Segments go oldest first, then the snapshots that
    nothing continues any more, so that a crash in between leaves a journal with its baseline.
    """
    files = listing(folder)
    aged = list(_leading_sealed(files.segments, whose))
    total = sum(each.path.stat().st_size for each in files.segments if each.path.exists())
    wanted = overdue(aged, total, now_ns, retention)
    baseline = _newest_good(files.snapshots, whose) if wanted else None
    if baseline is None:
        return NOTHING
    segments = [each.listed for each in wanted if each.seq_last <= baseline.seq]
    first_kept = next(each.seq_first for each in files.segments if each not in segments)
    snapshots = [
        each for each in files.snapshots if each.seq < first_kept - 1 and of_snapshot(each.path) == whose
    ]
    for path in [each.path for each in segments] + [each.path for each in snapshots]:
        with suppress(FileNotFoundError):
            disk.remove(path)
        disk.sync_folder(folder)
    return Dropped(segments, snapshots, baseline)


def _leading_sealed(segments: Sequence[SegmentFile], whose: Whose) -> Iterator[Aged]:
    """The whole sealed segments that the journal begins with, but never its last segment."""
    for listed in segments[:-1]:
        aged = _aged(listed, whose) if listed.form is Form.SEALED else None
        if aged is None:
            return
        yield aged


def _aged(listed: SegmentFile, whose: Whose) -> Aged | None:
    try:
        with closing(SealedSegment(listed)) as segment:
            heading, footer = segment.heading, segment.footer
    except (ReaderError, UnfinishedHeading, FileNotFoundError):
        return None
    if footer is None or (heading.run, heading.rank) != whose:
        return None
    return Aged(listed, footer.seq_next - 1, listed.path.stat().st_size, footer.time_last_ns)


def _newest_good(snapshots: Sequence[SnapshotRef], whose: Whose) -> SnapshotRef | None:
    for ref in reversed(snapshots):
        with suppress(ReaderError, FileNotFoundError):
            head = read_snapshot(ref.path).head
            if (head.run, head.rank, head.seq) == (*whose, ref.seq):
                return ref
    return None
