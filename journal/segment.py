"""A segment: one file of a rank's journal, live while it grows and sealed afterwards.

    magic  format version  form  heading bytes  heading CRC  CRC | heading | frames, or blocks and a footer

Both forms begin alike, and every later format version begins so too. The heading says whose events follow, from which number on, behind which chain,
and repeats the `Opened` of its epoch, so that every segment explains itself (J5) when older ones are gone.

Rule: a file is named after the first sequence number it accounts for, and its heading must agree.
"""

import struct
from enum import IntEnum
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO, NamedTuple, Protocol
from zlib import crc32

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from radixledger.journal.codec import UNREADABLE, Decoder, NotEvents, decoder_for, fingerprint
from radixledger.journal.errors import Damaged, TooNew
from radixledger.journal.events import SCHEMA_VERSION, Opened
from radixledger.journal.frame import CHAIN_BYTES, RawFrame
from radixledger.journal.units import Rank, Seq

MAGIC = b"RLEDGER\n"
FORMAT_VERSION = 1
"""The version of the files around the events; a reader refuses a newer one."""

HEADING_BYTES_MAX = 1 << 20
LIVE_SUFFIX, SEALED_SUFFIX = ".seg", ".sealed"

_PREFIX = struct.Struct("<8sHHIII")
_CHECKED = struct.Struct("<8sHHII")


class Form(IntEnum):
    """How the frames stand in the file."""

    LIVE = 1
    SEALED = 2


class Heading(Struct, frozen=True, array_like=True):
    """What a segment says of itself before its first frame."""

    run: str
    rank: Rank
    epoch: int
    seq_first: Seq
    chain: bytes
    """The chain before the first frame, equal to the one after the last frame of the segment before."""
    schema: int
    fingerprint: bytes
    created_ns: int
    policy: str
    opened: bytes
    """The `Opened` of this epoch, encoded like a frame's body."""

    def decoder(self) -> Decoder:
        """A decoder for the bodies of this segment."""
        return decoder_for(self.schema)

    def opening(self) -> Opened:
        """The `Opened` of this segment's epoch; raises NotEvents."""
        event = self.decoder().decode(self.opened, 1)[0]
        if not isinstance(event, Opened):
            raise NotEvents(f"a segment is headed by Opened, this one by {type(event).__name__}")
        return event


class SegmentFile(NamedTuple):
    """A segment in a listing, known by its name only."""

    path: Path
    seq_first: Seq
    form: Form


class Segment(Protocol):
    """One segment open for reading: a cursor over its frames, in either form.

    `read` gives the next frames, a batch at a time, and none at the end; it raises Damaged or MissingEvents,
    standing before the bad place, and `mend` steps over that and tells how many numbers are lost.
    """

    path: Path
    heading: Heading

    @property
    def seq_next(self) -> int:
        """The number after the last frame that was read or passed over."""

    @property
    def chain(self) -> bytes | None:
        """The chain after that frame; None where damage hides it."""

    def read(self) -> list[RawFrame]:
        """The next frames, checked; `chain` is then the one after the last of them."""

    def seek(self, seq: Seq) -> None:
        """Stand before the frame that accounts for `seq`, or at the end where there is none."""

    def find_time(self, time_ns: int) -> Seq | None:
        """The first number of the first frame at or after `time_ns`; None where all are earlier."""

    def mend(self) -> int:
        """Step over what `read` refused."""

    def notices(self) -> list[str]:
        """What a reader should be told that is no damage: a torn end, an index that had to be rebuilt."""

    def close(self) -> None:
        """Give the file back."""


class UnfinishedHeading(Exception):
    """The file ends inside its heading: the writer died while it made the file."""

    def __init__(self, path: Path, size: int) -> None:
        super().__init__(f"{path} ends inside its heading, after {size} bytes")
        self.path, self.size = path, size


def stand_in(before: Segment | None, rank: Rank, seq_first: Seq) -> Heading:
    """A heading for a segment whose own is damaged: as the segment before, without a chain."""
    if before is not None:
        return replace(before.heading, seq_first=seq_first, chain=b"")
    return Heading("", rank, 0, seq_first, b"", SCHEMA_VERSION, fingerprint(), 0, "", b"")


def segment_name(seq_first: int, form: Form) -> str:
    """The file name of the segment that begins at `seq_first`."""
    return f"{seq_first:020d}{LIVE_SUFFIX if form is Form.LIVE else SEALED_SUFFIX}"


def encode_heading(heading: Heading, form: Form) -> bytes:
    """The bytes that a segment begins with."""
    body = msgspec.msgpack.encode(heading)
    assert len(body) <= HEADING_BYTES_MAX
    checked = _CHECKED.pack(MAGIC, FORMAT_VERSION, form, len(body), crc32(body))
    return b"".join((checked, crc32(checked).to_bytes(4, "little"), body))


def open_file(path: Path) -> BinaryIO:
    """A file of a journal, open for reading.

    Raises FileNotFoundError, and Damaged for what only has the name of one: a pipe would be waited for, a device read
    without end.
    """
    if not S_ISREG(path.stat().st_mode):
        raise _damage(path, "this is no regular file")
    return path.open("rb", buffering=1 << 18)


def open_headed(listed: SegmentFile, stand_in: Heading | None) -> tuple[BinaryIO, Heading]:
    """The file open behind its heading; or at its very beginning, headed by a `stand_in` for a damaged one.

    Raises FileNotFoundError and what `read_heading` raises.
    """
    file = open_file(listed.path)
    if stand_in is not None:
        return file, stand_in
    try:
        return file, read_heading(listed.path, file, listed.form, seq_first=listed.seq_first)
    except BaseException:
        file.close()
        raise


def read_heading(path: Path, file: BinaryIO, form: Form, *, seq_first: Seq) -> Heading:
    """The heading of `file`, which then stands behind it.

    Raises UnfinishedHeading for a live segment that ends inside it, Damaged, or TooNew for a format or
    vocabulary of a later version.
    """
    prefix = file.read(_PREFIX.size)
    if len(prefix) < _PREFIX.size or not (prefix.strip(b"\0") or _holds_anything(file)):
        raise _unfinished(path, form, len(prefix))
    magic, version, found_form, size, body_crc, crc = _PREFIX.unpack(prefix)
    if magic != MAGIC:
        raise _damage(path, "this is no segment of a journal")
    if crc32(prefix[: _CHECKED.size]) != crc:
        raise _damage(path, "the first bytes fail their checksum")
    if version > FORMAT_VERSION:
        raise TooNew(path, what="file format", needs=version, have=FORMAT_VERSION)
    if size > HEADING_BYTES_MAX or found_form != form:
        raise _damage(path, f"absurd heading of {size} bytes, or of form {found_form}")
    body = file.read(size)
    if len(body) < size:
        raise _unfinished(path, form, len(prefix) + len(body))
    if crc32(body) != body_crc:
        raise _damage(path, "the heading fails its checksum")
    heading = _decode_heading(path, body)
    if heading.seq_first != seq_first or len(heading.chain) != CHAIN_BYTES or heading.schema < 1:
        raise _damage(path, f"the heading begins at event {heading.seq_first}, the name says {seq_first}")
    return heading


def _holds_anything(file: BinaryIO) -> bool:
    """Whether there is more than zeros behind zeros: then something was written, and lost its beginning."""
    return any(chunk.strip(b"\0") for chunk in iter(lambda: file.read(1 << 20), b""))


def _unfinished(path: Path, form: Form, size: int) -> Exception:
    """A live segment may end so, where its writer died; a sealed one was whole before it had its name."""
    unfinished = UnfinishedHeading(path, size)
    return unfinished if form is Form.LIVE else _damage(path, f"a sealed segment ends after {size} bytes")


def _decode_heading(path: Path, body: bytes) -> Heading:
    try:
        heading = msgspec.msgpack.decode(body, type=Heading)
    except UNREADABLE as error:
        raise _damage(path, f"the heading cannot be read: {error}") from error
    if heading.schema > SCHEMA_VERSION:
        raise TooNew(path, what="vocabulary", needs=heading.schema, have=SCHEMA_VERSION)
    if heading.schema == SCHEMA_VERSION and heading.fingerprint != fingerprint():
        raise _damage(
            path,
            f"vocabulary {heading.schema} has fingerprint {heading.fingerprint.hex()} here and "
            f"{fingerprint().hex()} in this radixledger: another build between two releases wrote this",
        )
    return heading


def _damage(path: Path, reason: str) -> Damaged:
    return Damaged(path, offset=0, after=None, reason=reason)
