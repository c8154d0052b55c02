"""What a new epoch finds: where the journal ends, and what a writer that died left behind.

Rule: nothing that was written whole is touched. A torn end stays in its segment, is counted when that is sealed and
never becomes part of the journal, because the new epoch begins a segment of its own (B102). Damage is not stepped
over: a writer that went on behind it would bury it (B104). A name clears nothing away: what goes was opened, and is of
this run and rank, and a live segment only goes for a sealed one that was read whole and says the same.
"""

from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from radixledger.journal.belonging import demand_ours, of_snapshot
from radixledger.journal.disk import Disk
from radixledger.journal.errors import NotOurs
from radixledger.journal.folder import Listing, listing, open_segment
from radixledger.journal.segment import Form, Segment, SegmentFile, UnfinishedHeading
from radixledger.journal.units import Rank, Seq


class Past(NamedTuple):
    """The end of what is there; `unsealed` are finished segments, each with the number a later one begins at."""

    run: str
    epoch: int
    seq_next: Seq
    chain: bytes
    unsealed: list[tuple[SegmentFile, Seq | None]]


def look_back(folder: Path, rank: Rank, disk: Disk, notices: list[str]) -> Past | None:
    """Clear away what is unfinished and tell where the journal ends; None where no event was ever written.

    Every remark goes to `notices`. Only the writer that holds the lock may call this. Raises NotOurs where something of
    another run or rank lies here, Damaged or TooNew where the last segment, or a sealed one whose live form is there too,
    cannot be trusted, and OSError; nothing was changed then.
    """
    files = listing(folder)
    demand_ours(files, rank)
    for listed in files.superseded:
        _demand_sealed(listed, files.segments)
    for path in files.unfinished:
        _remove(path, disk, notices, "an unfinished temporary file")
    for listed in files.superseded:
        _remove(listed.path, disk, notices, "the live form of a segment that was sealed")
    segments = list(files.segments)
    while segments:
        past = _ending(segments, disk, notices)
        if past is not None:
            _drop_snapshots_ahead(files, past, disk, notices)
            return past
        segments.pop()
    return None


def _demand_sealed(live: SegmentFile, segments: Sequence[SegmentFile]) -> None:
    """Raise unless the sealed segment of this number has all that the live one has, up to where a later segment begins."""
    listed = next(each for each in segments if each.seq_first == live.seq_first)
    with closing(open_segment(listed)) as sealed:
        _read_through(sealed)
        try:
            segment = open_segment(live)
        except UnfinishedHeading:
            return
        with closing(segment):
            if segment.heading != sealed.heading:
                raise NotOurs(listed.path, f"this is not the sealed form of {live.path.name} beside it")
            _read_through(segment)
        followed = any(each.seq_first == sealed.seq_next for each in segments)
        if segment.seq_next > sealed.seq_next and not followed:
            reason = f"it ends at event {sealed.seq_next - 1}, and {live.path.name} beside it goes on to {segment.seq_next - 1}"
            raise NotOurs(listed.path, reason)


def _ending(segments: Sequence[SegmentFile], disk: Disk, notices: list[str]) -> Past | None:
    """The end of the last segment, read whole; None, and the file is gone, where it holds no event."""
    last = segments[-1]
    try:
        segment = open_segment(last)
    except UnfinishedHeading:
        _remove(last.path, disk, notices, "a segment that ends inside its heading")
        return None
    with closing(segment):
        _read_through(segment)
        notices += segment.notices()
        heading = segment.heading
        if segment.seq_next == heading.seq_first and last.form is Form.LIVE:
            _remove(last.path, disk, notices, "a segment without events")
            return None
        assert segment.chain is not None, "what was read whole has a chain"
        begins = [each.seq_first for each in segments[1:]] + [None]
        unsealed = [
            (each, begin) for each, begin in zip(segments, begins, strict=True) if each.form is Form.LIVE
        ]
        return Past(heading.run, heading.epoch, Seq(segment.seq_next), segment.chain, unsealed)


def _read_through(segment: Segment) -> None:
    while segment.read():
        pass


def _drop_snapshots_ahead(files: Listing, past: Past, disk: Disk, notices: list[str]) -> None:
    """A state after an event that the journal lost with its machine is no state of this journal."""
    for ref in files.snapshots:
        if ref.seq >= past.seq_next and of_snapshot(ref.path) is None:
            notices.append(
                f"{ref.path.name} stays: it lies ahead of the last event, {past.seq_next - 1}, and says not whose it is"
            )
        elif ref.seq >= past.seq_next:
            _remove(ref.path, disk, notices, f"a snapshot ahead of the last event, {past.seq_next - 1}")


def _remove(path: Path, disk: Disk, notices: list[str], what: str) -> None:
    with suppress(FileNotFoundError):
        disk.remove(path)
        notices.append(f"{path.name} was removed: {what}")
