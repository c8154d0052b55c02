"""The sealed form: small, seekable, atomic, and no trap for whoever opens a stranger's file."""

import struct
import zlib
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixledger.journal import seal as sealing_module
from radixledger.journal.block import (
    BLOCK_BYTES,
    HEADER_SIZE,
    RAW_BYTES_MAX,
    BadBlock,
    decode_block,
    decode_header,
    encode_block,
)
from radixledger.journal.disk import Disk
from radixledger.journal.errors import Damaged
from radixledger.journal.events import Digested
from radixledger.journal.folder import listing, open_segment, rank_folder
from radixledger.journal.frame import BODY_BYTES_MAX, RawFrame
from radixledger.journal.reader import JournalReader
from radixledger.journal.seal import seal
from radixledger.journal.sealed import SealedSegment
from radixledger.journal.segment import Form, SegmentFile
from radixledger.journal.units import Seq
from radixledger.journal.writer import Policy, Sealing

from .events_sample import events
from .written import RANK, append, frames_in, new_writer, only_segment, read, some_commands, write

CHAIN, NEXT_CHAIN = b"before before be", b"after after afte"


def some_frames(sizes: list[int], times: list[int], steps: list[int]) -> list[RawFrame]:
    seq, frames = 1, []
    for size, time_ns, step in zip(sizes, times, steps, strict=True):
        frames.append(RawFrame(seq, size % 7 + 1, 0, time_ns, step, bytes(range(size % 256))))
        seq = frames[-1].seq_next
    return frames


def sealed_segment(path: Path) -> SealedSegment:
    return SealedSegment(SegmentFile(path, Seq(int(path.stem)), Form.SEALED))


@given(st.data(), st.integers(1, 40))
def test_frames_come_back_from_a_block_as_they_were(data: st.DataObject, count: int) -> None:
    column = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=count, max_size=count)
    sizes = data.draw(st.lists(st.integers(0, 255), min_size=count, max_size=count))
    frames = some_frames(sizes, data.draw(column), data.draw(column))
    block = encode_block(frames, CHAIN, NEXT_CHAIN)
    header = decode_header(block[:HEADER_SIZE])
    assert decode_block(header, block[HEADER_SIZE:], CHAIN) == frames
    assert decode_block(header, block[HEADER_SIZE:], None) == frames
    assert (header.seq_begin, header.seq_next) == (1, frames[-1].seq_next)
    assert header.time_max == max(frame.time_ns for frame in frames)


def test_lost_numbers_come_back_from_a_block() -> None:
    frames = [
        RawFrame(10, 2, 0, 0, 0, b"ab"),
        RawFrame(20, 1, 8, 0, 0, b"gap"),
        RawFrame(21, 1, 0, 0, 0, b"c"),
    ]
    block = encode_block(frames, CHAIN, NEXT_CHAIN)
    header = decode_header(block[:HEADER_SIZE])
    assert decode_block(header, block[HEADER_SIZE:], CHAIN) == frames


def test_a_block_behind_another_chain_is_refused() -> None:
    """J7."""
    block = encode_block(some_frames([5], [1], [1]), CHAIN, NEXT_CHAIN)
    header = decode_header(block[:HEADER_SIZE])
    with pytest.raises(BadBlock, match="chain is broken"):
        decode_block(header, block[HEADER_SIZE:], NEXT_CHAIN)


def forged(data: bytes, raw_size: int, *, frames: int = 1, seq_begin: int = 1, numbers: int = 1) -> bytes:
    """A block with honest checksums and whatever sizes one wants."""
    fields = (crc32(data), len(data), raw_size, frames, seq_begin, numbers, 0, CHAIN, CHAIN)
    checked = struct.pack("<IIIIQQq16s16s", *fields)
    return b"RLBK" + crc32(checked).to_bytes(4, "little") + checked + data


@pytest.mark.parametrize(
    "block",
    [
        forged(b"", 2**32 - 1),
        forged(b"x" * 100, RAW_BYTES_MAX + 1),
        forged(b"x" * 100, 10**6),
        forged(b"x" * 100, 100, frames=0),
        forged(b"x" * 100, 100, frames=2**31),
        forged(b"x" * 100, 100, seq_begin=2**64 - 1),
        forged(b"x" * 100, 100, numbers=2**64 - 1),
    ],
    ids=["all", "over_the_limit", "over_the_ratio", "no_frames", "frames", "seq", "numbers"],
)
def test_absurd_blocks_are_refused_by_their_header(block: bytes) -> None:
    with pytest.raises(BadBlock, match="absurd"):
        decode_header(block[:HEADER_SIZE])


@pytest.mark.parametrize("claim", [28, 1_000, 1_000_000])
def test_a_block_that_unpacks_to_more_than_it_says_is_stopped_there(claim: int) -> None:
    """Hostile zlib data: 50 MB of zeros in 50 kB."""
    data = zlib.compress(bytes(50_000_000), 9)
    block = forged(data, claim)
    header = decode_header(block[:HEADER_SIZE])
    with pytest.raises(BadBlock, match="unpacks to something else"):
        decode_block(header, data, None)


@pytest.mark.parametrize(
    "raw",
    [
        np.array([1, 0, 99], "<u4").tobytes() + bytes(16),
        np.array([5, 0, 2], "<u4").tobytes() + bytes(16) + b"ab",
        np.array([2**32 - 1, 2**32 - 1, 2], "<u4").tobytes() + bytes(16) + b"ab",
    ],
    ids=["bodies", "numbers", "overflow"],
)
def test_columns_that_contradict_the_header_are_refused(raw: bytes) -> None:
    """A block of one frame: its shuffled columns are the columns."""
    data = zlib.compress(raw)
    header = decode_header(forged(data, len(raw))[:HEADER_SIZE])
    with pytest.raises(BadBlock):
        decode_block(header, data, None)


def test_the_footer_records_counts_chain_and_the_last_digest(tmp_path: Path) -> None:
    """J7."""
    commands = some_commands(50)
    with new_writer(tmp_path) as writer:
        for command in commands:
            append(writer, command)
        append(writer, [Digested(b"the state")])
        at = writer.last_seq
        append(writer, commands[0])
    segment = sealed_segment(only_segment(tmp_path))
    footer = segment.footer
    segment.close()
    assert footer is not None
    assert (footer.digest_seq, footer.digest) == (at, b"the state")
    assert footer.events == footer.seq_next - 1 == 2 + sum(map(len, commands)) + len(commands[0])
    assert (footer.frames, footer.torn_bytes) == (53, 0)


def test_a_digest_long_ago_is_not_looked_for_in_all_of_a_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealing_module, "BLOCK_BYTES", 1)
    with new_writer(tmp_path) as writer:
        append(writer, [Digested(b"old")])
        for command in [c for c in some_commands(80) if not any(isinstance(e, Digested) for e in c)][:20]:
            append(writer, command)
    segment = sealed_segment(only_segment(tmp_path))
    assert segment.footer is not None
    assert segment.footer.digest == b""
    segment.close()


def test_blocks_are_about_64_kib_before_they_are_compressed(tmp_path: Path) -> None:
    with new_writer(tmp_path, policy=Policy.STEP) as writer:
        for number, command in enumerate(some_commands(900)):
            append(writer, command)
            if number % 8 == 0:
                writer.end_step(number)
    segment = sealed_segment(only_segment(tmp_path))
    sizes = []
    for entry in segment.index:
        header = segment._header(entry.offset)
        assert header is not None
        sizes.append(header.raw_size)
    segment.close()
    assert len(sizes) > 3
    assert all(BLOCK_BYTES <= size < 4 * BLOCK_BYTES for size in sizes[:-1])


def test_a_busy_journal_takes_at_most_25_bytes_per_event_without_its_keys(tmp_path: Path) -> None:
    """Design bar: bytes per event on disk, sealed, without key hashes."""
    stream = [event for event in events(seed=1, count=40_000) if not getattr(event, "key", b"")]
    for policy, per_frame in ((Policy.STEP, 80), (Policy.OPERATION, 4)):
        run = tmp_path / policy
        with new_writer(run, policy=policy) as writer:
            for at in range(0, len(stream), per_frame):
                append(writer, stream[at : at + per_frame])
                writer.end_step(at)
        size = sum(path.stat().st_size for path in rank_folder(run, RANK).iterdir())
        assert size / len(stream) <= 25


def test_a_frame_as_large_as_frames_may_be_is_sealed_and_read(tmp_path: Path) -> None:
    pages = bytes(BODY_BYTES_MAX // 4)
    with new_writer(tmp_path) as writer:
        append(writer, [Digested(pages), Digested(pages), Digested(pages)])
        with pytest.raises(Exception, match="over the limit"):
            append(writer, [Digested(pages)] * 5)
    assert read(tmp_path)[1] == [Digested(pages)] * 3


def test_sealing_keeps_the_live_file_until_the_sealed_one_is_durable(tmp_path: Path) -> None:
    """J8: at every call that changes the disk, one of the two forms is whole."""

    class Watching(Disk):
        def __init__(self) -> None:
            self.calls: list[str] = []

        def _look(self, call: str) -> None:
            self.calls.append(call)
            assert read(tmp_path) == written

        def write(self, fd: int, data: bytes) -> int:
            self._look("write")
            return super().write(fd, data)

        def sync(self, fd: int) -> None:
            self._look("sync")
            super().sync(fd)

        def rename(self, source: Path, target: Path) -> None:
            self._look("rename")
            super().rename(source, target)
            self._look("renamed")

        def sync_folder(self, path: Path) -> None:
            self._look("sync_folder")
            super().sync_folder(path)

        def remove(self, path: Path) -> None:
            self._look("remove")
            super().remove(path)

    written = write(tmp_path, some_commands(5), sealing=Sealing.NEVER)
    disk = Watching()
    seal(listing(rank_folder(tmp_path, RANK)).segments[0], disk)
    order = ["write", "sync", "rename", "renamed", "sync_folder", "remove"]
    assert list(dict.fromkeys(disk.calls)) == order
    assert read(tmp_path) == written


def test_a_damaged_live_segment_is_not_sealed(tmp_path: Path) -> None:
    """Damage would be made permanent, and its evidence thrown away."""
    write(tmp_path, some_commands(5), sealing=Sealing.NEVER)
    path = only_segment(tmp_path)
    whole = bytearray(path.read_bytes())
    whole[-1] ^= 1
    path.write_bytes(whole)
    with pytest.raises(Damaged):
        seal(listing(path.parent).segments[0], Disk())
    assert path.read_bytes() == whole
    assert {each.suffix for each in path.parent.iterdir()} == {".seg", ""}


def test_where_both_forms_are_there_the_sealed_one_is_read(tmp_path: Path) -> None:
    written = write(tmp_path, some_commands(5), sealing=Sealing.NEVER)
    live = only_segment(tmp_path)
    whole = live.read_bytes()
    seal(listing(live.parent).segments[0], Disk())
    live.write_bytes(whole[:100])
    assert read(tmp_path) == written
    assert [each.path for each in listing(live.parent).superseded] == [live]


@pytest.mark.parametrize("tail", [b"", b"RLED", bytes(16), b"\xff" * 12 + b"RLED"])
def test_without_a_footer_the_index_is_made_by_scanning(tmp_path: Path, tail: bytes) -> None:
    written = write(tmp_path, some_commands(30))
    path = only_segment(tmp_path)
    segment = sealed_segment(path)
    index = segment.index
    segment.close()
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.index(b"RLFT") + 12] + tail)
    segment = sealed_segment(path)
    assert segment.index == index
    assert segment.footer is None
    segment.close()
    assert read(tmp_path) == written
    reader = JournalReader(tmp_path, RANK)
    assert reader.last_seq == sum(map(len, written))
    assert next(reader.frames(Seq(5))).seq_first == 5


def test_both_forms_answer_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A contract that every segment keeps, whatever its form."""
    monkeypatch.setattr(sealing_module, "BLOCK_BYTES", 900)
    write(tmp_path, some_commands(30), sealing=Sealing.NEVER)
    live = open_segment(listing(rank_folder(tmp_path, RANK)).segments[0])
    sealed = open_segment(seal(listing(rank_folder(tmp_path, RANK)).segments[0], Disk()))
    assert sealed.heading == live.heading
    frames = frames_in(live)
    assert frames_in(sealed) == frames
    assert (sealed.seq_next, sealed.chain) == (live.seq_next, live.chain)
    for seq in range(frames[-1].seq_next + 3):
        for each in (live, sealed):
            each.seek(Seq(seq))
        assert live.seq_next == sealed.seq_next
        assert frames_in(live) == frames_in(sealed)
    for time_ns in range(0, frames[-1].time_ns + 999, 500):
        assert live.find_time(time_ns) == sealed.find_time(time_ns)
    live.close()
    sealed.close()
