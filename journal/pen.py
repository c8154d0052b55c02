"""The pen: puts frames into segments, one after the other, and knows what to do when the disk does not.

Rule 1: after a failed write or fsync the segment is never written again. It is cut back to what is known good and
closed; then the pen either refuses everything (`stop`), or counts what is lost and, when a new segment can be
made, begins it with the `Gap` that says so (`gap`, J11).

Rule 2: numbers go on as the caller counts them. A gap stands in the last of the places that were lost.
"""

from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from radixledger.journal.codec import gap_frame
from radixledger.journal.disk import Disk, naming
from radixledger.journal.errors import JournalPoisoned
from radixledger.journal.group_commit import GroupCommit, Mark, mark
from radixledger.journal.live import LiveWriter
from radixledger.journal.segment import Form, Heading, SegmentFile
from radixledger.journal.units import Seq

Finished = Callable[[SegmentFile, Seq | None], None]
"""Told of a segment that will not grow any more, and the number from which on a later one tells."""


class OnFailure(StrEnum):
    """What happens when the disk fails."""

    STOP = "stop"
    """Nothing more is written, and every call says why."""
    GAP = "gap"
    """The caller goes on; what is lost is counted, and told by a `Gap` once a new segment can be made."""


class Limits(NamedTuple):
    """When a segment is full, when it is old, and how long to leave a failing disk alone; bytes and ns."""

    rotate_bytes: int = 64 << 20
    rotate_ns: int = 3600 * 10**9
    retry_ns: int = 10**9


class _Failure(NamedTuple):
    good: Mark
    """What is known to be in the journal."""
    cause: str
    file: SegmentFile | None
    """The segment that was given up; None where it held nothing and is gone."""
    retry_at_ns: int


class Pen:
    """Writes the frames of one rank and epoch; `heading` is that of the first segment, and made now.

    `lost` counts the events that were given up so far. Methods raise JournalPoisoned where the disk failed and
    `on_failure` is `stop`; the constructor raises OSError.
    """

    def __init__(
        self,
        folder: Path,
        heading: Heading,
        disk: Disk,
        *,
        limits: Limits,
        on_failure: OnFailure,
        durable: bool,
        finished: Finished,
    ) -> None:
        self.seq_next = int(heading.seq_first)
        self.lost = 0
        self.poison: JournalPoisoned | None = None
        self._folder, self._heading, self._disk, self._limits = folder, heading, disk, limits
        self._on_failure, self._durable, self._finished = on_failure, durable, finished
        self._failure: _Failure | None = None
        with naming(folder):
            self._segment: LiveWriter | None = self._begin(
                heading.seq_first, heading.chain, heading.created_ns
            )
        self._commit = GroupCommit(self._segment) if durable else None

    @property
    def chain(self) -> bytes:
        """The chain after the last frame that is known to be in the journal."""
        return self._good().chain

    @property
    def failing(self) -> str | None:
        """Why events are being lost right now; None while all is well."""
        return self._failure.cause if self._failure else None

    @property
    def durable_next(self) -> int:
        """The number after the last event that survives what the policy promises to survive."""
        return self._commit.durable.seq_next if self._commit else self._good().seq_next

    def write(self, body: bytes, event_count: int, time_ns: int, step: int) -> None:
        """Put `event_count` events down as one frame; an oversized body is a failure like a full disk."""
        segment = self._segment
        if segment is None or segment.size + len(body) > self._full_at or time_ns >= self._old_at_ns:
            segment = self._prepare(len(body), time_ns, step)
        seq_first = self.seq_next
        self.seq_next = seq_first + event_count
        if segment is None:
            self.lost += event_count
            return
        try:
            segment.append(body, seq_first, event_count, time_ns, step)
        except (OSError, ValueError) as error:
            self._fail(segment, mark(segment), error, time_ns)
            return
        if self._commit:
            self._commit.written()

    def rotate(self, time_ns: int) -> None:
        """Finish the segment at hand and begin the next; nothing happens where it holds no frame yet."""
        segment = self._segment
        if segment is None or segment.empty or not self._settle(segment, time_ns):
            return
        try:
            following = self._begin(segment.seq_next, segment.chain, time_ns)
        except OSError as error:
            self._fail(segment, mark(segment), error, time_ns)
            return
        self._segment = following
        if self._commit:
            self._commit.restart(following)
        segment.close()
        self._finished(_listed(segment), None)

    def sync(self, time_ns: int) -> bool:
        """Make everything durable, whatever the policy; False where the disk fails and the caller goes on."""
        segment = self._segment
        if segment is None or not self._settle(segment, time_ns):
            return False
        if self._commit:
            return True
        try:
            segment.sync()
        except OSError as error:
            self._fail(segment, mark(segment), error, time_ns)
            return False
        return True

    def wait(self, seq: Seq) -> None:
        """Until event `seq` is durable, or its loss is going to be told by a gap; at once without `durable`."""
        if self._commit is None or self._commit.wait(seq) or self._on_failure is OnFailure.GAP:
            return
        raise self.poison or self._poisoned(self._commit.durable, self._commit.failure)

    def finish(self, time_ns: int, step: int) -> None:
        """Close the last segment and hand it over; tries once more to tell of what was lost."""
        if self._failure is not None and self.poison is None:
            self._reopen(time_ns, step)
        segment = self._segment
        try:
            if segment is not None and self._settle(segment, time_ns):
                self._segment = None
                segment.close()
                self._hand_over(segment)
        finally:
            if self._commit:
                self._commit.stop()
        if self._failure is not None and self.poison is None:
            raise self._poisoned(self._failure.good, self._failure.cause)

    def _hand_over(self, segment: LiveWriter) -> None:
        if segment.empty:
            self._disk.remove(segment.path)
        else:
            self._finished(_listed(segment), None)

    def _begin(self, seq_first: int, chain: bytes, time_ns: int) -> LiveWriter:
        heading = replace(self._heading, seq_first=Seq(seq_first), chain=chain, created_ns=time_ns)
        segment = LiveWriter(self._folder, heading, self._disk)
        if self._durable:
            try:
                segment.sync()
                self._disk.sync_folder(self._folder)
            except OSError:
                self._discard(segment)
                raise
        # Under group commit every write looks first whether the last sync failed: nothing fits without asking.
        self._full_at = 0 if self._durable else self._limits.rotate_bytes
        self._old_at_ns = time_ns + self._limits.rotate_ns
        return segment

    def _prepare(self, size: int, time_ns: int, step: int) -> LiveWriter | None:
        """The segment to write to: the one at hand, a new one, or none while the disk fails."""
        if self.poison is not None:
            raise self.poison
        segment = self._segment
        if segment is not None and self._commit and self._commit.failure:
            self._fail(segment, self._commit.durable, self._commit.failure, time_ns)
        elif segment is not None:
            if segment.size + size > self._limits.rotate_bytes or time_ns >= self._old_at_ns:
                self.rotate(time_ns)
        elif self._failure is not None and time_ns >= self._failure.retry_at_ns:
            self._reopen(time_ns, step)
        return self._segment

    def _settle(self, segment: LiveWriter, time_ns: int) -> bool:
        """Wait for the group commit; False, and the segment is given up, where it failed."""
        if self._commit is None or self._commit.drain():
            return True
        self._fail(segment, self._commit.durable, self._commit.failure, time_ns)
        return False

    def _fail(self, segment: LiveWriter, good: Mark, cause: Exception | None, time_ns: int) -> None:
        """Give a segment up behind `good`; raises JournalPoisoned unless the caller wants to go on."""
        segment.abandon(good.size)
        file: SegmentFile | None = _listed(segment)
        if good.size == segment.heading_size:
            file = None
            with suppress(OSError):
                self._disk.remove(segment.path)
        self._segment = None
        self._failure = _Failure(good, str(cause), file, time_ns + self._limits.retry_ns)
        if self._on_failure is OnFailure.STOP:
            self.poison = self._poisoned(good, cause)
            raise self.poison from cause
        self.lost += self.seq_next - good.seq_next

    def _reopen(self, time_ns: int, step: int) -> None:
        """Try a new segment behind what is good, begun with the gap, if anything was lost."""
        assert self._failure is not None
        good, cause, file, _ = self._failure
        try:
            segment = self._begin(good.seq_next, good.chain, time_ns)
        except OSError as error:
            self._failure = _Failure(good, str(error), file, time_ns + self._limits.retry_ns)
            return
        try:
            if lost := self.seq_next - good.seq_next:
                segment.append_raw(gap_frame(lost, self.seq_next, cause, time_ns, step))
            if self._durable:
                segment.sync()
        except OSError as error:
            self._discard(segment)
            self._failure = _Failure(good, str(error), file, time_ns + self._limits.retry_ns)
            return
        self._segment, self._failure = segment, None
        if self._commit:
            self._commit.restart(segment)
        if file is not None:
            self._finished(file, Seq(good.seq_next))

    def _discard(self, segment: LiveWriter) -> None:
        segment.abandon()
        with suppress(OSError):
            self._disk.remove(segment.path)

    def _good(self) -> Mark:
        if self._failure is not None:
            return self._failure.good
        assert self._segment is not None, "without a segment there was a failure"
        return mark(self._segment)

    def _poisoned(self, good: Mark, cause: object) -> JournalPoisoned:
        return JournalPoisoned(self._folder, last_seq=Seq(good.seq_next - 1), cause=str(cause))


def _listed(segment: LiveWriter) -> SegmentFile:
    return SegmentFile(segment.path, segment.heading.seq_first, Form.LIVE)
