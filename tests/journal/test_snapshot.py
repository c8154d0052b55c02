"""Snapshots: whole or not at all, tied to their place, and no trap for whoever opens a stranger's file."""

import shutil
import struct
import zlib
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
import pytest

from radixledger.journal.disk import Disk
from radixledger.journal.errors import Damaged, NoBaseline, TooNew
from radixledger.journal.events import Snapshotted
from radixledger.journal.folder import rank_folder, snapshot_path
from radixledger.journal.reader import JournalReader
from radixledger.journal.snapshot import (
    IMAGE_BYTES_MAX,
    SnapshotHead,
    read_head,
    read_snapshot,
    write_snapshot,
)
from radixledger.journal.units import Rank, Seq
from radixledger.journal.writer import Policy, Sealing

from .written import RANK, append, new_writer, read, some_commands, write

COMMANDS = some_commands(8)
IMAGE = bytes(range(256)) * 20


def put_down(path: Path, image: bytes = IMAGE) -> SnapshotHead:
    place: dict[str, Any] = {"run": "run", "rank": RANK, "epoch": 1, "seq": Seq(9), "chain": bytes(16)}
    write_snapshot(path, image, Disk(), **place, time_ns=5, digest=b"digest")
    return read_head(path)


def test_an_image_comes_back_as_it_was(tmp_path: Path) -> None:
    """J13."""
    for image in (b"", b"x", IMAGE, bytes(5_000_000)):
        path = tmp_path / f"{len(image)}.snap"
        head = put_down(path, image)
        assert (head.run, head.rank, head.epoch, head.seq, head.time_ns) == ("run", RANK, 1, 9, 5)
        assert (head.digest, head.image_bytes) == (b"digest", len(image))
        snapshot = read_snapshot(path)
        assert (snapshot.head, snapshot.image) == (head, image)


def test_a_snapshot_is_of_the_last_appended_event_and_is_announced_behind_it(tmp_path: Path) -> None:
    """The order that `write_snapshot` documents, with what the reader then finds."""
    with new_writer(tmp_path, policy=Policy.STEP) as writer:
        append(writer, COMMANDS[0])
        append(writer, COMMANDS[1])
        seq = writer.last_seq
        path = writer.write_snapshot(IMAGE, b"digest")
        assert sum(map(len, read(tmp_path))) == seq, "what was buffered is written first"
        append(writer, [Snapshotted(b"digest")])
        append(writer, COMMANDS[2])
    reader = JournalReader(tmp_path, RANK)
    (ref,) = reader.snapshots()
    assert (ref.seq, ref.path) == (seq, path)
    assert reader.read_snapshot(ref) == (IMAGE, b"digest")
    tail = [frame.events for frame in reader.frames(Seq(ref.seq + 1))]
    assert tail[0][0] == Snapshotted(b"digest")


def test_the_head_names_the_chain_of_the_journal_at_its_event(tmp_path: Path) -> None:
    """J7: the next frame continues it."""
    with new_writer(tmp_path) as writer:
        append(writer, COMMANDS[0])
        path = writer.write_snapshot(IMAGE, b"digest")
        writer.rotate()
        append(writer, COMMANDS[1])
    heading, _ = next(JournalReader(tmp_path, RANK).raw_frames(Seq(2 + len(COMMANDS[0]))))
    assert read_head(path).chain == heading.chain


def test_a_snapshot_cut_anywhere_or_with_any_bit_flipped_is_refused(tmp_path: Path) -> None:
    """J8."""
    path = tmp_path / "one.snap"
    put_down(path, IMAGE[:300])
    whole = path.read_bytes()
    path.unlink()
    damaged = tmp_path / "damaged.snap"
    damaged.touch()
    for bit in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        with damaged.open("r+b") as file:
            file.write(flipped)
        with pytest.raises((Damaged, TooNew)):
            read_snapshot(damaged)
    for size in reversed(range(len(whole))):
        with damaged.open("r+b") as file:
            file.write(whole[:size])
            file.truncate(size)
        with pytest.raises(Damaged):
            read_snapshot(damaged)


def forged(path: Path, *, image_bytes: int, data: bytes, version: int = 1, schema: int = 1) -> None:
    head = SnapshotHead("run", RANK, 1, Seq(9), bytes(16), schema, 5, b"digest", image_bytes, crc32(data))
    packed = msgspec.msgpack.encode(head)
    crc = crc32(version.to_bytes(4, "little") + packed)
    path.write_bytes(struct.pack("<8sIII", b"RLSNAP\r\n", version, crc, len(packed)) + packed + data)


@pytest.mark.parametrize("image_bytes", [IMAGE_BYTES_MAX + 1, 2**63, -1, 0, 1_000])
def test_an_image_that_lies_about_its_size_is_stopped(tmp_path: Path, image_bytes: int) -> None:
    """Hostile zlib data: 50 MB of zeros in 50 kB."""
    path = tmp_path / "hostile.snap"
    forged(path, image_bytes=image_bytes, data=zlib.compress(bytes(50_000_000), 9))
    with pytest.raises(Damaged):
        read_snapshot(path)


def test_a_newer_snapshot_is_refused_by_the_version_it_needs(tmp_path: Path) -> None:
    """J5."""
    path = tmp_path / "newer.snap"
    forged(path, image_bytes=0, data=b"", version=4)
    with pytest.raises(TooNew, match="file format version 4"):
        read_snapshot(path)
    forged(path, image_bytes=0, data=b"", schema=9)
    with pytest.raises(TooNew, match="vocabulary version 9"):
        read_snapshot(path)


def test_an_image_over_the_limit_is_not_written(tmp_path: Path) -> None:
    class Huge(bytes):
        def __len__(self) -> int:
            return IMAGE_BYTES_MAX + 1

    with pytest.raises(ValueError, match="over the limit"):
        put_down(tmp_path / "huge.snap", Huge(b""))
    assert list(tmp_path.iterdir()) == []


def test_a_snapshot_of_another_place_is_refused(tmp_path: Path) -> None:
    for run in ("a", "b"):
        with new_writer(tmp_path / run) as writer:
            append(writer, COMMANDS[0])
            writer.write_snapshot(IMAGE, b"digest")
    reader = JournalReader(tmp_path / "a", RANK)
    (ref,) = reader.snapshots()
    shutil.copy(JournalReader(tmp_path / "b", RANK).snapshots()[0].path, ref.path)
    with pytest.raises(Damaged, match="snapshot of run b"):
        reader.read_snapshot(ref)


def test_a_snapshot_ahead_of_the_journal_goes_when_the_journal_is_resumed(tmp_path: Path) -> None:
    """It speaks of events that were lost with their machine; the next epoch gives their numbers to others."""
    run = tmp_path / "run"
    write(run, COMMANDS[:2], sealing=Sealing.NEVER)
    ahead = snapshot_path(rank_folder(run, RANK), Seq(500))
    put_down(ahead)
    with new_writer(run, resume=True) as writer:
        assert any("ahead of the last event" in notice for notice in writer.notices)
    assert not ahead.exists()


def test_folding_begins_at_the_first_event_or_at_the_oldest_usable_snapshot(tmp_path: Path) -> None:
    """J12: without a baseline every early free looks like a violation."""
    with new_writer(tmp_path) as writer:
        for command in COMMANDS[:4]:
            append(writer, command)
            writer.write_snapshot(IMAGE, b"digest")
            writer.rotate()
    reader = JournalReader(tmp_path, RANK)
    assert reader.baseline() is None
    first, second, third, _ = reader.snapshots()
    segments = sorted(rank_folder(tmp_path, RANK).glob("*.sealed"))
    segments[0].unlink()
    assert reader.baseline() == first
    segments[1].unlink()
    assert reader.baseline() == second
    second.path.write_bytes(b"damaged")
    assert reader.baseline() == third
    assert any("not whole" in notice for notice in reader.notices)
    for ref in reader.snapshots():
        ref.path.write_bytes(b"damaged")
    with pytest.raises(NoBaseline, match=f"begins at event {second.seq + 1}"):
        reader.baseline()


def test_the_snapshot_of_one_rank_is_none_of_another(tmp_path: Path) -> None:
    with new_writer(tmp_path) as writer:
        writer.write_snapshot(IMAGE, b"digest")
    shutil.copytree(rank_folder(tmp_path, RANK), rank_folder(tmp_path, Rank(1)))
    reader = JournalReader(tmp_path, Rank(1))
    with pytest.raises(Damaged, match="rank 0"):
        reader.read_snapshot(reader.snapshots()[0])
