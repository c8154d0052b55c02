"""A block of a sealed segment: about 64 KiB of frames, compressed by themselves.

    magic  header CRC  data CRC  data bytes  raw bytes  frames  seq begin  numbers  latest time  chain  digest | data

The raw bytes hold the frames' counts, lost numbers, body sizes, times and steps as columns, then their bodies. The
header carries one checksum over the compressed data and one digest over the chain before the block,
the chain after it and the raw bytes: damage costs one block, and a block that was taken out, swapped or edited
does not fit (J7). The chain itself is that of the live frames, so that sealing changes no chain.

Rule: sizes are bounded before anything is allocated; a block that unpacks to more than it says is damage.
"""

import struct
import zlib
from collections.abc import Sequence
from hashlib import blake2b
from itertools import repeat
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from radixledger.journal.frame import BODY_BYTES_MAX, CHAIN_BYTES, RawFrame

BLOCK_MAGIC = b"RLBK"
BLOCK_BYTES = 1 << 16
"""A block is closed when its bodies reach this size."""

RAW_BYTES_MAX = BODY_BYTES_MAX + (1 << 22)
_DEFLATE_RATIO_MAX = 1100  # deflate cannot shrink below 1/1032; what claims more is lying
_LEVEL = 6

_HEADER = struct.Struct("<4sIIIIIQQq16s16s")
HEADER_SIZE = _HEADER.size
_COLUMNS = ("<u4", "<u4", "<u4", "<i8", "<i8")
_FRAME_BYTES = 28


class BadBlock(ValueError):
    """The bytes are no block, or contradict themselves; the message says how."""


class BlockHeader(NamedTuple):
    """What a block says of itself; `chain` is the one after its last frame."""

    data_crc: int
    data_size: int
    raw_size: int
    frames: int
    seq_begin: int
    numbers: int
    time_max: int
    chain: bytes
    digest: bytes

    @property
    def seq_next(self) -> int:
        """The sequence number after this block."""
        return self.seq_begin + self.numbers


def encode_block(frames: Sequence[RawFrame], chain_before: bytes, chain: bytes) -> bytes:
    """The bytes of one block of `frames`, at least one, between two chains."""
    counts, lost, times, steps = (
        np.array(column, kind)
        for column, kind in (
            ([each.event_count for each in frames], "<u4"),
            ([each.lost for each in frames], "<u4"),
            ([each.time_ns for each in frames], "<i8"),
            ([each.step for each in frames], "<i8"),
        )
    )
    sizes = np.array([len(each.body) for each in frames], "<u4")
    columns = (counts, lost, sizes, _differences(times), _differences(steps))
    raw = b"".join((*(_shuffled(column) for column in columns), *(each.body for each in frames)))
    data = zlib.compress(raw, _LEVEL)
    begin, numbers = frames[0].seq_begin, frames[-1].seq_next - frames[0].seq_begin
    digest = _digest(chain_before, chain, raw)
    packed = _HEADER.pack(
        BLOCK_MAGIC,
        0,
        crc32(data),
        len(data),
        len(raw),
        len(frames),
        begin,
        numbers,
        int(times.max()),
        chain,
        digest,
    )
    checked = packed[8:]
    return b"".join((BLOCK_MAGIC, crc32(checked).to_bytes(4, "little"), checked, data))


def decode_header(packed: bytes) -> BlockHeader:
    """The header in `packed`, HEADER_SIZE bytes; raises BadBlock."""
    magic, crc, *fields = _HEADER.unpack(packed)
    if magic != BLOCK_MAGIC or crc32(packed[8:]) != crc:
        raise BadBlock("this is no block header, or it fails its checksum")
    header = BlockHeader(*fields)
    if header.raw_size > min(RAW_BYTES_MAX, header.data_size * _DEFLATE_RATIO_MAX + 1024):
        raise BadBlock(f"absurd block: {header.data_size} bytes are said to hold {header.raw_size}")
    if header.seq_next >> 62:
        raise BadBlock(f"absurd block: events {header.seq_begin} to {header.seq_next - 1}")
    if header.frames == 0 or header.frames * _FRAME_BYTES > header.raw_size:
        raise BadBlock(f"absurd block: {header.frames} frames in {header.raw_size} bytes")
    return header


def decode_block(header: BlockHeader, data: bytes, chain_before: bytes | None) -> list[RawFrame]:
    """The frames in `data`; raises BadBlock. `chain_before` is None where damage before the block hides it."""
    if crc32(data) != header.data_crc:
        raise BadBlock(f"the block of event {header.seq_begin} fails its checksum")
    raw = _unpacked(data, header.raw_size)
    if chain_before is not None and _digest(chain_before, header.chain, raw) != header.digest:
        raise BadBlock(
            f"the block of event {header.seq_begin} does not follow the one before it: the chain is broken"
        )
    frames = _frames(header, raw)
    if frames[-1].seq_next != header.seq_next:
        raise BadBlock(f"the block of event {header.seq_begin} does not hold the numbers that it says")
    return frames


def _frames(header: BlockHeader, raw: bytes) -> list[RawFrame]:
    at, columns = 0, []
    for kind in _COLUMNS:
        width = np.dtype(kind).itemsize * header.frames
        columns.append(_gathered(raw[at : at + width], kind))
        at += width
    counts, lost, sizes, times, steps = columns
    ends = at + np.cumsum(sizes, dtype=np.int64)
    if ends[-1] != len(raw):
        raise BadBlock(f"the bodies of the block of event {header.seq_begin} do not fill it")
    firsts = header.seq_begin + np.cumsum(counts + lost.astype(np.int64), dtype=np.int64) - counts
    bodies = [raw[start:end] for start, end in zip([at, *ends[:-1].tolist()], ends.tolist(), strict=True)]
    fields = [each.tolist() for each in (firsts, counts, lost, np.cumsum(times), np.cumsum(steps))]
    # Calling RawFrame costs as much as all the rest of a frame; its fields are in this order.
    return list(map(tuple.__new__, repeat(RawFrame), zip(*fields, bodies, strict=True)))


def _unpacked(data: bytes, size: int) -> bytes:
    unpack = zlib.decompressobj()
    try:
        raw = unpack.decompress(data, size + 1)
    except zlib.error as error:
        raise BadBlock(f"the block does not unpack: {error}") from error
    if len(raw) != size or not unpack.eof or unpack.unused_data:
        raise BadBlock(f"the block unpacks to something else than its {size} bytes")
    return raw


def _digest(chain_before: bytes, chain: bytes, raw: bytes) -> bytes:
    return blake2b(b"".join((chain_before, chain, raw)), digest_size=CHAIN_BYTES).digest()


def _differences(column: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.diff(column, prepend=np.int64(0))


def _shuffled(column: NDArray[np.integer]) -> bytes:
    """All first bytes, then all second bytes, and so on: small numbers become runs of zeros."""
    return column.view(np.uint8).reshape(len(column), -1).T.tobytes()


def _gathered(packed: bytes, kind: str) -> NDArray[np.int64]:
    width = np.dtype(kind).itemsize
    return np.frombuffer(packed, np.uint8).reshape(width, -1).T.copy().view(kind).ravel().astype(np.int64)
