"""A frame: the events of one command or one step as one checksummed record.

    magic  header CRC  body CRC  body bytes  first seq  events  lost  time ns  step  chain | body

The header and the body have a CRC-32 each, so a bad body loses one frame and not the rest. The chain is
a BLAKE2b digest over the chain before, the header's fields and the body: a frame that was taken out,
swapped or edited breaks it (J7). It has no key; it shows accidents and careless hands, not forgers.

Rule: a frame is whole, or it is the torn end of its file, or it is damage; there is nothing else.
`lost` counts the sequence numbers before `first seq` that nobody can tell any more: such a frame is one
`Gap`, which stands in the last of the places that were lost, so that later numbers stay true (J11).
"""

import os
import struct
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, NamedTuple
from zlib import crc32

from radixledger.journal.errors import Damaged, MissingEvents
from radixledger.journal.events import AnyEvent
from radixledger.journal.units import SEQ_MAX, Rank, Seq

MAGIC = b"RLFR"
CHAIN_BYTES = 16
BODY_BYTES_MAX = 1 << 26
"""Longer bodies are neither written nor believed."""

LOST_MAX = (1 << 32) - 1
"""So many numbers can one gap stand for, as `lost` has 4 bytes; longer ones are not believed."""

_HEADER = struct.Struct("<4sIIIQIIqq16s")
_FIELDS = struct.Struct("<IIQIIqq")
_ZEROS = bytes(_HEADER.size)


class Frame(NamedTuple):
    """Events that were decided together; the sequence number of `events[i]` is `seq_first + i`."""

    seq_first: Seq
    time_ns: int
    step: int
    epoch: int
    events: list[AnyEvent]

    @property
    def seq_last(self) -> Seq:
        """The sequence number of its last event."""
        return Seq(self.seq_first + len(self.events) - 1)


class RawFrame(NamedTuple):
    """A frame before its body is decoded: `event_count` events, behind `lost` numbers that are missing."""

    seq_first: int
    event_count: int
    lost: int
    time_ns: int
    step: int
    body: bytes

    @property
    def seq_begin(self) -> int:
        """The first sequence number that this frame accounts for, lost ones included."""
        return self.seq_first - self.lost

    @property
    def seq_next(self) -> int:
        """The sequence number after this frame."""
        return self.seq_first + self.event_count


def chain_start(run: str, rank: Rank) -> bytes:
    """The chain before a journal's first frame: it ties the frames to their run and rank."""
    return blake2b(f"{run}\0{rank}".encode(), digest_size=CHAIN_BYTES).digest()


def encode_frame(
    body: bytes, seq_first: int, event_count: int, lost: int, time_ns: int, step: int, chain: bytes
) -> tuple[bytes, bytes]:
    """The frame's bytes behind `chain`, and the chain after it; raises ValueError for an oversized body."""
    size = len(body)
    if size > BODY_BYTES_MAX:
        raise ValueError(f"a frame of {size} bytes is over the limit of {BODY_BYTES_MAX}")
    fields = _FIELDS.pack(crc32(body), size, seq_first, event_count, lost, time_ns, step)
    chain = blake2b(b"".join((chain, fields, body)), digest_size=16).digest()
    checked = fields + chain
    return b"".join((MAGIC, crc32(checked).to_bytes(4, "little"), checked, body)), chain


def chain_after(raw: RawFrame, chain: bytes) -> bytes:
    """The chain after `raw`, where it is `chain` before it."""
    seq_first, event_count, lost, time_ns, step, body = raw
    fields = _FIELDS.pack(crc32(body), len(body), seq_first, event_count, lost, time_ns, step)
    return blake2b(b"".join((chain, fields, body)), digest_size=16).digest()


class _Header(NamedTuple):
    body_crc: int
    size: int
    seq_first: int
    event_count: int
    lost: int
    time_ns: int
    step: int
    fields: bytes
    chain: bytes

    @property
    def seq_begin(self) -> int:
        return self.seq_first - self.lost

    @property
    def seq_next(self) -> int:
        return self.seq_first + self.event_count

    def with_body(self, body: bytes) -> RawFrame:
        return RawFrame(self.seq_first, self.event_count, self.lost, self.time_ns, self.step, body)


class FrameFile:
    """Reads frames one after the other from a file that may still be growing.

    `offset`, `seq_next` and `chain` say where the reading stands. Anything but whole frames and a torn end
    raises Damaged with file, offset and last good event, or MissingEvents where numbers jump; the reading
    then stands before the bad place, and `mend` steps over it.
    """

    def __init__(
        self, path: Path, file: BinaryIO, *, offset: int, seq_next: int, chain: bytes | None
    ) -> None:
        self.path, self.offset, self.seq_next = path, offset, seq_next
        self.chain = chain
        self._file = file
        self._size = os.fstat(file.fileno()).st_size
        file.seek(offset)

    @property
    def torn_bytes(self) -> int:
        """After `read` gave None: bytes of an unfinished frame behind the last whole one."""
        return self._size - self.offset

    def read(self) -> RawFrame | None:
        """The next frame, checked; None where the file ends, or ends inside a frame."""
        header = self._header()
        if header is None:
            return None
        body = self._file.read(header.size)
        if crc32(body) != header.body_crc:
            raise self._damage(f"the body of frame {header.seq_first} fails its checksum")
        self._check_order(header)
        if self.chain is not None and self._chained(header, body) != header.chain:
            raise self._damage(
                f"frame {header.seq_first} does not follow the one before it: the chain is broken"
            )
        self._pass(header)
        return header.with_body(body)

    def skip_until(self, wanted: Callable[[RawFrame], bool]) -> bool:
        """Pass over frames, bodies unread, to the first that is `wanted`; False where there is none."""
        while (header := self._header()) is not None:
            if wanted(header.with_body(b"")):
                self._file.seek(self.offset)
                return True
            self._check_order(header)
            self._pass(header)
            self._file.seek(self.offset)
        return False

    def mend(self) -> int:
        """Step over what `read` refused; how many sequence numbers are lost by that, as far as can be told.

        Where no whole header of the bad frame vouches for it, the frame that follows is taken at its word for
        the chain before it.
        """
        try:
            header = self._header()
        except Damaged:
            return self._mend_header()
        assert header is not None, "a torn end is not damage"
        if crc32(self._file.read(header.size)) != header.body_crc:
            lost = max(0, header.seq_next - self.seq_next)
            self.offset, self.chain = self.offset + _HEADER.size + header.size, header.chain
        elif header.seq_begin < self.seq_next:
            lost = 0
            self.offset, self.chain = self.offset + _HEADER.size + header.size, None
        else:  # numbers jump, or the chain is broken: the frame itself can be read
            lost, self.chain = header.seq_begin - self.seq_next, None
        self.seq_next += lost
        self._file.seek(self.offset)
        return lost

    def _header(self) -> _Header | None:
        """The header at `offset`, with the file standing behind it; None at the end, torn or not."""
        if self._short_of(_HEADER.size):
            return None
        packed = self._file.read(_HEADER.size)
        magic, header_crc, body_crc, size, seq_first, count, lost, time_ns, step, chain = _HEADER.unpack(
            packed
        )
        if magic != MAGIC or crc32(packed[8:]) != header_crc:
            if packed == _ZEROS and self._only_zeros_follow():
                return None
            raise self._damage("this is no frame header, or it fails its checksum")
        absurd = lost >= seq_first or seq_first + count > SEQ_MAX
        if size > BODY_BYTES_MAX or not 0 < 2 * count < size or absurd:
            raise self._damage(f"absurd frame: {size} bytes, {count} events at {seq_first}, {lost} lost")
        if self._short_of(_HEADER.size + size):
            self._file.seek(self.offset)
            return None
        return _Header(body_crc, size, seq_first, count, lost, time_ns, step, packed[8:48], chain)

    def _short_of(self, size: int) -> bool:
        if self._size - self.offset >= size:
            return False
        self._size = os.fstat(self._file.fileno()).st_size
        return self._size - self.offset < size

    def _only_zeros_follow(self) -> bool:
        """Whether the rest is zeros: a file that grew before a loss of power and was never filled."""
        while chunk := self._file.read(1 << 16):
            if chunk.count(0) != len(chunk):
                return False
        self._file.seek(self.offset)
        return True

    def _check_order(self, header: _Header) -> None:
        if header.seq_begin > self.seq_next:
            self._file.seek(self.offset)
            missing, found = Seq(self.seq_next), Seq(header.seq_begin)
            raise MissingEvents(self.path, offset=self.offset, missing=missing, found=found)
        if header.seq_begin < self.seq_next:
            raise self._damage(f"event {header.seq_begin} stands here a second time")

    def _chained(self, header: _Header, body: bytes) -> bytes:
        assert self.chain is not None
        return blake2b(b"".join((self.chain, header.fields, body)), digest_size=16).digest()

    def _pass(self, header: _Header) -> None:
        self.offset += _HEADER.size + header.size
        self.seq_next, self.chain = header.seq_next, header.chain

    def _damage(self, reason: str) -> Damaged:
        self._file.seek(self.offset)
        return Damaged(self.path, offset=self.offset, after=Seq(self.seq_next - 1), reason=reason)

    def _mend_header(self) -> int:
        """Look for the next whole header; the number in it tells what is lost."""
        self.chain, at = None, self.offset
        while (found := find_bytes(self._file, MAGIC, at + 1)) is not None:
            self.offset = at = found
            self._file.seek(found)
            try:
                header = self._header()
            except Damaged:
                continue
            if header is not None and header.seq_begin >= self.seq_next:
                lost = header.seq_begin - self.seq_next
                self.seq_next += lost
                self._file.seek(found)
                return lost
        self.offset = self._size
        self._file.seek(self.offset)
        return 0


def find_bytes(file: BinaryIO, needle: bytes, start: int) -> int | None:
    """The first place of `needle` at or after `start`, read in pieces; None where there is none."""
    file.seek(start)
    before = b""
    while chunk := file.read(1 << 16):
        chunk = before + chunk
        place = chunk.find(needle)
        if place >= 0:
            return start - len(before) + place
        start += len(chunk) - len(before)
        before = chunk[1 - len(needle) :]
    return None
