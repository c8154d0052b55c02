"""The live form of a segment: a heading, then frames as they happened, one write each.

`LiveWriter` is the low-level pen: it knows bytes, offsets and the chain, and nothing of policies.
`LiveSegment` reads, also while the writer goes on. Rule: a frame goes to the file in one piece or the
file is cut back to where it was, so that a live segment ends whole or torn and never wrong.
"""

from contextlib import suppress
from pathlib import Path

from radixledger.journal.disk import Disk, write_whole
from radixledger.journal.errors import Damaged
from radixledger.journal.frame import FrameFile, RawFrame, encode_frame
from radixledger.journal.segment import Form, Heading, SegmentFile, encode_heading, open_headed, segment_name
from radixledger.journal.units import Seq

BATCH_BYTES = 1 << 16
"""A batch of frames is read until its bodies reach this size."""


class LiveWriter:
    """Appends frames to one new live segment; raises OSError, after which only `abandon` makes sense."""

    def __init__(self, folder: Path, heading: Heading, disk: Disk) -> None:
        self.heading = heading
        self.path = folder / segment_name(heading.seq_first, Form.LIVE)
        self.chain, self.seq_next = heading.chain, int(heading.seq_first)
        self._disk = disk
        self._write = disk.write
        self.fd = disk.create(self.path)
        head = encode_heading(heading, Form.LIVE)
        try:
            write_whole(disk, self.fd, head)
        except OSError:
            disk.close(self.fd)
            with suppress(OSError):
                disk.remove(self.path)
            raise
        self.size = self.heading_size = len(head)

    @property
    def empty(self) -> bool:
        """Whether no frame has been written yet."""
        return self.size == self.heading_size

    def append(
        self, body: bytes, seq_first: int, event_count: int, time_ns: int, step: int, lost: int = 0
    ) -> None:
        """Write one frame; raises OSError, and ValueError for a body over the limit."""
        data, chain = encode_frame(body, seq_first, event_count, lost, time_ns, step, self.chain)
        size = len(data)
        written = self._write(self.fd, data)
        if written < size:
            write_whole(self._disk, self.fd, data[written:])
        self.size += size
        self.chain = chain
        self.seq_next = seq_first + event_count

    def append_raw(self, raw: RawFrame) -> None:
        """Write a frame that was read elsewhere, or a gap; raises as `append`."""
        self.append(raw.body, raw.seq_first, raw.event_count, raw.time_ns, raw.step, raw.lost)

    def sync(self) -> None:
        """Make what was written survive a loss of power."""
        self._disk.sync(self.fd)

    def close(self) -> None:
        """Give the file back."""
        self._disk.close(self.fd)

    def abandon(self, size: int | None = None) -> None:
        """Close a file whose disk failed, cut back to `size` or its last whole frame, if the disk still can."""
        with suppress(OSError):
            self._disk.cut(self.fd, self.size if size is None else size)
        with suppress(OSError):
            self._disk.close(self.fd)


class LiveSegment:
    """A live segment open for reading; see `segment.Segment`.

    Raises FileNotFoundError, UnfinishedHeading, Damaged or TooNew when it is opened.
    """

    def __init__(self, listed: SegmentFile, stand_in: Heading | None = None) -> None:
        self.path = listed.path
        self._file, self.heading = open_headed(listed, stand_in)
        self._begin = self._file.tell()
        self.frames = self._from_begin()

    @property
    def seq_next(self) -> int:
        """The number after the last frame that was read or passed over."""
        return self.frames.seq_next

    @property
    def chain(self) -> bytes | None:
        """The chain after that frame."""
        return self.frames.chain

    @property
    def torn_bytes(self) -> int:
        """Once `read` gave none: bytes of an unfinished frame at the end."""
        return self.frames.torn_bytes

    def read(self) -> list[RawFrame]:
        """The next frames, checked; none where the file ends, or ends inside a frame."""
        batch: list[RawFrame] = []
        size = 0
        try:
            while size < BATCH_BYTES and (raw := self.frames.read()) is not None:
                batch.append(raw)
                size += len(raw.body)
        except Damaged:
            if not batch:
                raise  # else what is good comes first, and the next call meets the damage again
        return batch

    def mend(self) -> int:
        """Step over what `read` refused; how many sequence numbers are lost by that."""
        return self.frames.mend()

    def seek(self, seq: Seq) -> None:
        """Stand before the frame that accounts for `seq`, or at the end where there is none."""
        self._restart()
        self.frames.skip_until(lambda raw: raw.seq_next > seq)

    def find_time(self, time_ns: int) -> Seq | None:
        """The first number of the first frame at or after `time_ns`; None where all are earlier."""
        self._restart()
        if not self.frames.skip_until(lambda raw: raw.time_ns >= time_ns):
            return None
        return Seq(self.frames.seq_next)

    def notices(self) -> list[str]:
        """The torn end, if that is where the last `read` stopped."""
        torn = self.torn_bytes
        if not torn:
            return []
        last, place = self.seq_next - 1, f"{self.path.name}, offset {self.frames.offset}"
        return [f"torn tail: {torn} bytes of an unfinished frame after event {last} were left out ({place})"]

    def close(self) -> None:
        """Give the file back."""
        self._file.close()

    def _from_begin(self) -> FrameFile:
        first, chain = self.heading.seq_first, self.heading.chain or None
        return FrameFile(self.path, self._file, offset=self._begin, seq_next=first, chain=chain)

    def _restart(self) -> None:
        self.frames = self._from_begin()
