"""The sealed form of a segment: a heading, compressed blocks, and a footer with an index.

    heading | block | block | ... | footer: magic  bytes  CRC-32  totals and index | footer offset  CRC  magic

The footer finds a number or a time without reading what comes before; a footer that fails its checksum is rebuilt
by scanning the blocks, with a notice. Sealing is atomic, so a sealed file that ends early is damage and never a
torn end. Rule: the index is a convenience; what counts is in the blocks.
"""

import os
import struct
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from typing import NamedTuple
from zlib import crc32

import msgspec
import numpy as np
from msgspec import Struct

from radixledger.journal.block import (
    BLOCK_MAGIC,
    HEADER_SIZE,
    BadBlock,
    BlockHeader,
    decode_block,
    decode_header,
)
from radixledger.journal.codec import UNREADABLE
from radixledger.journal.errors import Damaged, MissingEvents
from radixledger.journal.frame import RawFrame, find_bytes
from radixledger.journal.segment import Heading, SegmentFile, open_headed
from radixledger.journal.units import Seq

FOOTER_MAGIC, END_MAGIC = b"RLFT", b"RLED"

_FOOTER = struct.Struct("<4sII")
_TRAILER = struct.Struct("<QI4s")
_INDEX = np.dtype([("seq_begin", "<u8"), ("time_max", "<i8"), ("offset", "<u8")])


class Footer(Struct, frozen=True, array_like=True):
    """What a seal records about its segment (J7); the index has one entry per block."""

    seq_next: int
    chain: bytes
    events: int
    frames: int
    live_bytes: int
    """The size of the live file that was sealed, without its torn end."""
    torn_bytes: int
    """Bytes of an unfinished frame that the live file ended with, and that were left out."""
    time_last_ns: int
    step_last: int
    digest_seq: int
    """The last event of the segment, or of its last blocks, that records a digest of the state; 0 for none."""
    digest: bytes
    index: bytes


class IndexEntry(NamedTuple):
    """Where a block begins, and the latest time in it."""

    seq_begin: int
    time_max: int
    offset: int


def encode_footer(footer: Footer, offset: int) -> bytes:
    """Footer and trailer, to be written at `offset`."""
    body = msgspec.msgpack.encode(footer)
    place = offset.to_bytes(8, "little")
    trailer = _TRAILER.pack(offset, crc32(place), END_MAGIC)
    return b"".join((_FOOTER.pack(FOOTER_MAGIC, len(body), crc32(body)), body, trailer))


def pack_index(entries: list[IndexEntry]) -> bytes:
    """Entries as a footer holds them."""
    return np.array(entries, _INDEX).tobytes()


class SealedSegment:
    """A sealed segment open for reading; see `segment.Segment`.

    Raises FileNotFoundError, UnfinishedHeading, Damaged or TooNew when it is opened. `footer` is None where it
    cannot be read.
    """

    def __init__(self, listed: SegmentFile, stand_in: Heading | None = None) -> None:
        self.path = listed.path
        self._file, self.heading = open_headed(listed, stand_in)
        self._begin = self._file.tell()
        self._size = os.fstat(self._file.fileno()).st_size
        self._footer_at, self.footer = self._read_footer()
        self._offset, self._seq_next = self._begin, int(self.heading.seq_first)
        self._chain = self.heading.chain or None
        self._ready: list[RawFrame] = []

    @property
    def seq_next(self) -> int:
        """The number after the last frame that was read or passed over."""
        return self._seq_next

    @property
    def chain(self) -> bytes | None:
        """The chain after the last block that was opened."""
        return self._chain

    def read(self) -> list[RawFrame]:
        """The next frames, checked: those of one block; none behind the last one."""
        frames, self._ready = self._ready or self._read_block(), []
        if frames:
            self._seq_next = frames[-1].seq_next
        return frames

    def seek(self, seq: Seq) -> None:
        """Stand before the frame that accounts for `seq`, or at the end where there is none."""
        self._enter(max(0, bisect_right(self.index, int(seq), key=lambda entry: entry.seq_begin) - 1))
        while frames := self.read():
            if frames[-1].seq_next > seq:
                self._ready = [each for each in frames if each.seq_next > seq]
                self._seq_next = self._ready[0].seq_begin
                return

    def find_time(self, time_ns: int) -> Seq | None:
        """The first number of the first frame at or after `time_ns`; None where all are earlier."""
        found = next((i for i, entry in enumerate(self.index) if entry.time_max >= time_ns), None)
        if found is None:
            return None
        self._enter(found)
        return next((Seq(each.seq_begin) for each in self.read() if each.time_ns >= time_ns), None)

    @cached_property
    def index(self) -> list[IndexEntry]:
        """One entry per block, from the footer, or by scanning where the footer cannot be read."""
        if self.footer is not None:
            return [IndexEntry(*entry) for entry in np.frombuffer(self.footer.index, _INDEX).tolist()]
        return list(self._scan())

    def mend(self) -> int:
        """Step over what `read` refused, a block at a time; how many sequence numbers are lost by that."""
        try:
            header = self._header(self._offset)
        except BadBlock:
            return self._mend_header()
        self._chain = None
        if header is None:  # the blocks end elsewhere than the footer says, which is not believed any more
            assert self.footer is not None, "an end that contradicts no footer is not damage"
            lost, self.footer = max(0, self.footer.seq_next - self._seq_next), None
        elif header.seq_begin >= self._seq_next and self._readable(header):
            lost = header.seq_begin - self._seq_next
        else:
            lost = max(0, header.seq_next - self._seq_next)
            self._offset, self._chain = self._behind(self._offset, header), header.chain
        self._seq_next += lost
        return lost

    def notices(self) -> list[str]:
        """Whether the footer had to be done without, and what the sealer left out."""
        if self.footer is None:
            return [f"the footer of {self.path.name} is damaged: its index was rebuilt by scanning"]
        if self.footer.torn_bytes:
            torn, last = self.footer.torn_bytes, self.footer.seq_next - 1
            return [
                f"torn tail: {torn} bytes of an unfinished frame after event {last} were cut ({self.path.name})"
            ]
        return []

    def close(self) -> None:
        """Give the file back."""
        self._file.close()

    def _enter(self, place: int) -> None:
        """Stand before the block at `place` of the index; the block before it tells the chain."""
        self._offset, self._seq_next = self._begin, int(self.heading.seq_first)
        self._chain, self._ready = self.heading.chain or None, []
        if place == 0:
            return
        before, entry = self.index[place - 1], self.index[place]
        self._offset, self._seq_next, self._chain = entry.offset, entry.seq_begin, None
        with suppress(BadBlock):
            header = self._header(before.offset)
            if header is not None and self._behind(before.offset, header) == entry.offset:
                self._seq_next, self._chain = header.seq_next, header.chain

    def _read_block(self) -> list[RawFrame]:
        """The frames of the block at hand, which the reading then stands behind; none at the end."""
        try:
            header = self._header(self._offset)
            if header is None:
                self._check_end()
                return []
            if header.seq_begin > self._seq_next:
                raise self._missing(header.seq_begin)
            if header.seq_begin < self._seq_next:
                raise BadBlock(f"event {header.seq_begin} stands here a second time")
            frames = decode_block(header, self._data(header), self._chain)
        except BadBlock as error:
            raise self._damage(str(error)) from None
        self._offset, self._chain = self._behind(self._offset, header), header.chain
        return frames

    def _header(self, offset: int) -> BlockHeader | None:
        """The header of the block at `offset`, with the file standing behind it; None where the footer begins."""
        if offset == self._footer_at:
            return None
        self._file.seek(offset)
        packed = self._file.read(HEADER_SIZE)
        if self._footer_at is None and packed.startswith(FOOTER_MAGIC):
            return None
        if len(packed) < HEADER_SIZE:
            raise BadBlock("a sealed segment ends here without its footer")
        header = decode_header(packed)
        if self._behind(offset, header) > (self._footer_at or self._size):
            raise BadBlock(f"the block of event {header.seq_begin} ends behind the file's end")
        return header

    def _data(self, header: BlockHeader) -> bytes:
        return self._file.read(header.data_size)

    def _readable(self, header: BlockHeader) -> bool:
        try:
            decode_block(header, self._data(header), None)
        except BadBlock:
            return False
        return True

    @staticmethod
    def _behind(offset: int, header: BlockHeader) -> int:
        return offset + HEADER_SIZE + header.data_size

    def _check_end(self) -> None:
        footer = self.footer
        if footer is None:
            return
        if footer.seq_next > self._seq_next:
            raise self._missing(footer.seq_next)
        if footer.seq_next < self._seq_next or self._chain not in (None, footer.chain):
            raise BadBlock("the blocks do not end where the footer says")

    def _scan(self) -> Iterator[IndexEntry]:
        offset = self._begin
        with suppress(BadBlock):
            while (header := self._header(offset)) is not None:
                yield IndexEntry(header.seq_begin, header.time_max, offset)
                offset = self._behind(offset, header)

    def _mend_header(self) -> int:
        """Look for the next whole block header; the number in it, or the footer, tells what is lost."""
        self._chain, at = None, self._offset
        while (found := find_bytes(self._file, BLOCK_MAGIC, at + 1)) is not None:
            at = found
            with suppress(BadBlock):
                header = self._header(found)
                if header is not None and header.seq_begin >= self._seq_next:
                    lost = header.seq_begin - self._seq_next
                    self._offset, self._seq_next = found, header.seq_begin
                    return lost
        lost = max(0, self.footer.seq_next - self._seq_next) if self.footer else 0
        self._offset, self._seq_next = self._footer_at or self._size, self._seq_next + lost
        self._footer_at = self._offset
        return lost

    def _read_footer(self) -> tuple[int | None, Footer | None]:
        """Where the footer begins and what it says, as far as the end of the file can be believed."""
        self._file.seek(max(0, self._size - _TRAILER.size))
        trailer = self._file.read(_TRAILER.size)
        if len(trailer) < _TRAILER.size:
            return None, None
        offset, crc, magic = _TRAILER.unpack(trailer)
        last = self._size - _FOOTER.size - _TRAILER.size
        if magic != END_MAGIC or crc32(trailer[:8]) != crc or not self._begin <= offset <= last:
            return None, None
        self._file.seek(offset)
        head = self._file.read(_FOOTER.size)
        body = self._file.read(self._size - offset - len(head) - len(trailer))
        if len(head) < _FOOTER.size or _FOOTER.unpack(head) != (FOOTER_MAGIC, len(body), crc32(body)):
            return offset, None
        try:
            footer = msgspec.msgpack.decode(body, type=Footer)
        except UNREADABLE:
            return offset, None
        return offset, footer if _is_in_order(footer.index, self._begin, offset) else None

    def _missing(self, found: int) -> MissingEvents:
        missing = Seq(self._seq_next)
        return MissingEvents(self.path, offset=self._offset, missing=missing, found=Seq(found))

    def _damage(self, reason: str) -> Damaged:
        return Damaged(self.path, offset=self._offset, after=Seq(self._seq_next - 1), reason=reason)


def _is_in_order(packed: bytes, begin: int, end: int) -> bool:
    """Whether an index leads through the blocks from one to the next, and nowhere else."""
    if len(packed) % _INDEX.itemsize:
        return False
    index = np.frombuffer(packed, _INDEX)
    inside = (
        begin <= int(index["offset"].min(initial=begin)) <= int(index["offset"].max(initial=begin)) <= end
    )
    rising = all(bool((column[1:] > column[:-1]).all()) for column in (index["offset"], index["seq_begin"]))
    return inside and rising
