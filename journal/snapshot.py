"""A snapshot: the image of a state after one event, in a file of its own.

    magic  format version  CRC-32  head bytes | head | compressed image

What an image holds is the cache's affair; here it is bytes with a digest. The head ties them to run, rank, number
and chain. Rule: a snapshot is written whole and durably or not at all, behind events that are durable
themselves, so that it never speaks of an event that the journal may lose.
"""

import struct
import zlib
from contextlib import suppress
from pathlib import Path
from zlib import crc32

import msgspec
from msgspec import Struct

from radixledger.journal.codec import UNREADABLE
from radixledger.journal.disk import Disk, publish
from radixledger.journal.errors import Damaged, TooNew
from radixledger.journal.events import SCHEMA_VERSION
from radixledger.journal.segment import FORMAT_VERSION, open_file
from radixledger.journal.units import Rank, Seq

MAGIC = b"RLSNAP\r\n"
IMAGE_BYTES_MAX = 1 << 30
"""Larger images are neither written nor believed; a state takes a few bytes per cached token."""

_HEAD_BYTES_MAX = 1 << 16
_LEVEL = 1  # on the writer's own thread: speed before size
_PREFIX = struct.Struct("<8sIII")


class SnapshotHead(Struct, frozen=True, array_like=True):
    """What a snapshot says of itself; `chain` is the journal's chain after event `seq`."""

    run: str
    rank: Rank
    epoch: int
    seq: Seq
    chain: bytes
    schema: int
    time_ns: int
    digest: bytes
    image_bytes: int
    data_crc: int
    """Of the compressed image."""


class Snapshot(Struct, frozen=True):
    """A snapshot that was read and checked."""

    head: SnapshotHead
    image: bytes


def write_snapshot(
    path: Path,
    image: bytes,
    disk: Disk,
    *,
    run: str,
    rank: Rank,
    epoch: int,
    seq: Seq,
    chain: bytes,
    time_ns: int,
    digest: bytes,
) -> None:
    """Put a snapshot down, atomically and durably; raises OSError, and then there is none.

    Raises ValueError for an image over the limit, and FileExistsError where the name is taken by anything but this very snapshot.
    """
    if len(image) > IMAGE_BYTES_MAX:
        raise ValueError(f"an image of {len(image)} bytes is over the limit of {IMAGE_BYTES_MAX}")
    _demand_free(path, (run, rank, seq))
    data = zlib.compress(image, _LEVEL)
    head = SnapshotHead(
        run, rank, epoch, seq, chain, SCHEMA_VERSION, time_ns, digest, len(image), crc32(data)
    )
    packed = msgspec.msgpack.encode(head)
    checked = FORMAT_VERSION.to_bytes(4, "little") + packed
    prefix = _PREFIX.pack(MAGIC, FORMAT_VERSION, crc32(checked), len(packed))
    publish(disk, path, (prefix, packed, data))


def _demand_free(path: Path, ours: tuple[str, Rank, Seq]) -> None:
    if not path.exists():
        return
    with suppress(Damaged, TooNew):
        head = read_head(path)
        if (head.run, head.rank, head.seq) == ours:
            return
    raise FileExistsError(f"{path.name} is there already, is not of this journal, and is not written over")


def read_head(path: Path) -> SnapshotHead:
    """What a snapshot says of itself, its image unread; raises Damaged, TooNew and FileNotFoundError."""
    with open_file(path) as file:
        return _read_head(path, file.read(_PREFIX.size + _HEAD_BYTES_MAX))[0]


def read_snapshot(path: Path) -> Snapshot:
    """A snapshot with its image, both checked; raises Damaged, TooNew and FileNotFoundError."""
    with open_file(path) as file:
        head, size = _read_head(path, file.read(_PREFIX.size + _HEAD_BYTES_MAX))
        file.seek(size)
        data = file.read(head.image_bytes + (head.image_bytes >> 8) + 1024)  # zlib never adds so much
    if crc32(data) != head.data_crc:
        raise _damage(path, "the image fails its checksum")
    unpack = zlib.decompressobj()
    try:
        image = unpack.decompress(data, head.image_bytes + 1)
    except zlib.error as error:
        raise _damage(path, f"the image does not unpack: {error}") from error
    if len(image) != head.image_bytes or not unpack.eof or unpack.unused_data:
        raise _damage(path, f"the image unpacks to something else than its {head.image_bytes} bytes")
    return Snapshot(head, image)


def _read_head(path: Path, start: bytes) -> tuple[SnapshotHead, int]:
    if len(start) < _PREFIX.size:
        raise _damage(path, f"a snapshot of {len(start)} bytes is not whole")
    magic, version, crc, size = _PREFIX.unpack_from(start)
    if magic != MAGIC:
        raise _damage(path, "this is no snapshot")
    if version > FORMAT_VERSION:
        raise TooNew(path, what="file format", needs=version, have=FORMAT_VERSION)
    packed = start[_PREFIX.size : _PREFIX.size + size]
    if size > _HEAD_BYTES_MAX or crc32(start[8:12] + packed) != crc:
        raise _damage(path, "the head fails its checksum")
    try:
        head = msgspec.msgpack.decode(packed, type=SnapshotHead)
    except UNREADABLE as error:
        raise _damage(path, f"the head cannot be read: {error}") from error
    if head.schema > SCHEMA_VERSION:
        raise TooNew(path, what="vocabulary", needs=head.schema, have=SCHEMA_VERSION)
    if not 0 <= head.image_bytes <= IMAGE_BYTES_MAX:
        raise _damage(path, f"absurd image of {head.image_bytes} bytes")
    return head, _PREFIX.size + size


def _damage(path: Path, reason: str) -> Damaged:
    return Damaged(path, offset=0, after=None, reason=reason)
