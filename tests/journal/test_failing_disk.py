"""Full disks and failed fsyncs: nothing is lost in silence, and nothing is tried again blindly (J11)."""

import errno
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from radixledger.journal.disk import Disk
from radixledger.journal.errors import JournalPoisoned, SnapshotFailed
from radixledger.journal.events import Gap, GroupOpened
from radixledger.journal.folder import listing, rank_folder
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Seq
from radixledger.journal.writer import JournalWriter, OnFailure, Policy, Sealing

from .written import RANK, BrokenDisk, Clock, append, new_writer, only_segment, read, some_commands, write

COMMANDS = some_commands(12)
RETRY_NS = 10**9


def going_on(run: Path, disk: Disk, clock: Clock, **options: object) -> JournalWriter:
    return new_writer(run, disk=disk, clock=clock, on_failure=OnFailure.GAP, retry_ns=RETRY_NS, **options)


class FillingDisk(Disk):
    """Takes `room` bytes and is full then, in the middle of a write."""

    def __init__(self, room: int) -> None:
        self.room = room

    def write(self, fd: int, data: bytes) -> int:
        if self.room == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken = super().write(fd, data[: self.room])
        self.room -= taken
        return taken


def test_a_full_disk_stops_the_writer_with_the_last_event_that_is_safe(tmp_path: Path) -> None:
    disk = BrokenDisk("write")
    writer = new_writer(tmp_path, disk=disk)
    append(writer, COMMANDS[0])
    safe = writer.last_seq
    disk.broken = True
    with pytest.raises(JournalPoisoned, match=f"ends at event {safe}") as poisoned:
        append(writer, COMMANDS[1])
    assert (poisoned.value.last_seq, "the disk is broken" in poisoned.value.cause) == (safe, True)
    disk.broken = False
    refused: list[Callable[[], None]] = [
        lambda: writer.append(GroupOpened()),
        writer.end_command,
        lambda: append(writer, COMMANDS[2]),
    ]
    for again in refused:
        with pytest.raises(JournalPoisoned):
            again()
    assert disk.failures == 1, "what failed is not tried again"
    writer.close()
    assert read(tmp_path)[1:] == [COMMANDS[0]]
    write(tmp_path, [COMMANDS[1]], resume=True)
    assert read(tmp_path)[-1] == COMMANDS[1]


@pytest.mark.parametrize("room", [0, 1, 63, 64, 65, 100])
def test_a_disk_that_fills_up_inside_a_frame_leaves_whole_frames_only(tmp_path: Path, room: int) -> None:
    """J8: the half-written frame is cut off again."""
    disk = FillingDisk(10**6)
    writer = new_writer(tmp_path, disk=disk)
    append(writer, COMMANDS[0])
    disk.room = room
    with pytest.raises(JournalPoisoned):
        append(writer, COMMANDS[1])
    writer.close()
    reader = JournalReader(tmp_path, RANK)
    assert [frame.events for frame in reader.frames()][1:] == [COMMANDS[0]]
    assert reader.notices == []


def test_a_writer_that_goes_on_tells_what_it_lost_once_it_can(tmp_path: Path) -> None:
    """J11."""
    disk, clock = BrokenDisk("write"), Clock()
    writer = going_on(tmp_path, disk, clock)
    append(writer, COMMANDS[0])
    disk.broken = True
    append(writer, COMMANDS[1])
    append(writer, COMMANDS[2])
    lost = len(COMMANDS[1]) + len(COMMANDS[2])
    assert writer.lost_events == lost
    assert "the disk is broken" in str(writer.failing)
    assert disk.failures == 1, "a failing disk is left alone for a while"
    clock.now_ns += RETRY_NS
    append(writer, COMMANDS[3])
    assert disk.failures == 2
    disk.broken = False
    clock.now_ns += RETRY_NS
    append(writer, COMMANDS[4])
    lost += len(COMMANDS[3])
    assert (writer.lost_events, writer.failing) == (lost, None)
    writer.close()
    told = list(JournalReader(tmp_path, RANK).frames())
    assert [each.events for each in told][1:] == [COMMANDS[0], told[2].events, COMMANDS[4]]
    (gap,) = told[2].events
    assert gap == Gap(lost, "[Errno 28] the disk is broken")
    assert told[3].seq_first == 2 + len(COMMANDS[0]) + lost, "numbers are those that the caller counted"
    assert told[2].seq_first == told[3].seq_first - 1
    assert writer.last_seq == told[3].seq_first + len(COMMANDS[4]) - 1


def test_a_gap_at_the_very_end_is_told_when_the_writer_closes(tmp_path: Path) -> None:
    disk, clock = BrokenDisk("write"), Clock()
    writer = going_on(tmp_path, disk, clock)
    disk.broken = True
    append(writer, COMMANDS[0])
    disk.broken = False
    writer.close()
    assert read(tmp_path)[-1] == [Gap(len(COMMANDS[0]), "[Errno 28] the disk is broken")]


def test_what_could_never_be_told_is_an_error_when_the_writer_closes(tmp_path: Path) -> None:
    disk, clock = BrokenDisk("write"), Clock()
    writer = going_on(tmp_path, disk, clock)
    disk.broken = True
    append(writer, COMMANDS[0])
    with pytest.raises(JournalPoisoned):
        writer.close()
    disk.broken = False
    write(tmp_path, [], resume=True)
    assert len(read(tmp_path)) == 2


def test_a_second_failure_adds_to_the_gap_of_the_first(tmp_path: Path) -> None:
    """The new segment breaks before its first frame is whole; its name is free again for the next try."""
    clock = Clock()
    disk = FillingDisk(10**6)
    writer = going_on(tmp_path, disk, clock)
    append(writer, COMMANDS[0])
    disk.room = 10
    append(writer, COMMANDS[1])
    for room in (0, 30, 400):
        disk.room = room
        clock.now_ns += RETRY_NS
        append(writer, COMMANDS[2])
    disk.room = 10**6
    clock.now_ns += RETRY_NS
    append(writer, COMMANDS[3])
    writer.close()
    lost = len(COMMANDS[1]) + 3 * len(COMMANDS[2])
    told = read(tmp_path)
    gaps = [event.lost for frame in told for event in frame if isinstance(event, Gap)]
    assert sum(gaps) == lost == writer.lost_events
    assert told[-1] == COMMANDS[3]


def test_a_segment_that_cannot_be_begun_is_a_failure_like_any_other(tmp_path: Path) -> None:
    disk, clock = BrokenDisk("create"), Clock()
    writer = going_on(tmp_path, disk, clock, sealing=Sealing.NEVER)
    append(writer, COMMANDS[0])
    disk.broken = True
    writer.rotate()
    append(writer, COMMANDS[1])
    disk.broken = False
    clock.now_ns += RETRY_NS
    append(writer, COMMANDS[2])
    writer.close()
    told = read(tmp_path)[1:]
    assert told[0] == COMMANDS[0]
    assert isinstance(told[1][0], Gap)
    assert told[1][0].lost == len(COMMANDS[1])
    assert told[2] == COMMANDS[2]


def test_frames_that_a_failing_disk_kept_are_told_by_the_segment_that_follows(tmp_path: Path) -> None:
    """A failed fsync whose segment cannot be cut either: the gap's segment counts, not what the file still holds."""
    disk, clock = BrokenDisk("sync", "cut", code=errno.EIO), Clock()
    writer = going_on(tmp_path, disk, clock, policy=Policy.SYNC, sealing=Sealing.NEVER)
    append(writer, COMMANDS[0])
    writer.wait_durable(writer.last_seq)
    disk.broken = True
    append(writer, COMMANDS[1])
    writer.wait_durable(writer.last_seq)
    append(writer, COMMANDS[2])
    disk.broken = False
    clock.now_ns += RETRY_NS
    append(writer, COMMANDS[3])
    writer.wait_durable(writer.last_seq)
    writer.close()
    reader = JournalReader(tmp_path, RANK)
    told = [frame.events for frame in reader.frames()][1:]
    assert told[0] == COMMANDS[0]
    assert isinstance(told[1][0], Gap)
    assert told[1][0].lost == len(COMMANDS[1]) + len(COMMANDS[2]) == writer.lost_events
    assert told[2] == COMMANDS[3]
    assert any("told by a later segment" in notice for notice in reader.notices)


def test_a_failed_fsync_stops_the_writer_and_whoever_waits(tmp_path: Path) -> None:
    disk = BrokenDisk("sync", code=errno.EIO)
    writer = new_writer(tmp_path, disk=disk, policy=Policy.SYNC)
    append(writer, COMMANDS[0])
    writer.wait_durable(writer.last_seq)
    safe = writer.durable_seq
    assert safe == writer.last_seq
    disk.broken = True
    append(writer, COMMANDS[1])
    doubtful = writer.last_seq
    with pytest.raises(JournalPoisoned, match=f"ends at event {safe}"):
        writer.wait_durable(doubtful)
    writer.wait_durable(safe)
    disk.broken = False
    with pytest.raises(JournalPoisoned):
        append(writer, COMMANDS[2])
    assert disk.failures == 1, "an fsync that failed is not believed the second time"
    writer.close()
    assert read(tmp_path)[1:] == [COMMANDS[0]]


def test_a_failed_fsync_is_noticed_by_a_rotation_and_by_closing(tmp_path: Path) -> None:
    for number, last in enumerate((JournalWriter.rotate, JournalWriter.close)):
        disk = BrokenDisk("sync", code=errno.EIO)
        writer = new_writer(tmp_path / str(number), disk=disk, policy=Policy.SYNC, sealing=Sealing.NEVER)
        disk.broken = True
        append(writer, COMMANDS[0])
        with pytest.raises(JournalPoisoned):
            last(writer)
        writer.close()
        disk.broken = False
        write(tmp_path / str(number), [COMMANDS[1]], resume=True)
        assert read(tmp_path / str(number))[-1] == COMMANDS[1]


def test_a_new_segment_that_cannot_be_made_durable_is_not_used(tmp_path: Path) -> None:
    """Policy `sync` goes on, and each try to begin anew fails at another call."""
    disk, clock = BrokenDisk("sync", "sync_folder", code=errno.EIO), Clock()
    writer = going_on(tmp_path, disk, clock, policy=Policy.SYNC)
    append(writer, COMMANDS[0])
    writer.wait_durable(writer.last_seq)
    disk.broken = True
    for command in COMMANDS[1:4]:
        append(writer, command)
        writer.wait_durable(writer.last_seq)
        clock.now_ns += RETRY_NS
    assert "the disk is broken" in str(writer.failing)
    disk.broken = False
    append(writer, COMMANDS[4])
    writer.wait_durable(writer.last_seq)
    writer.close()
    told = read(tmp_path)[1:]
    assert told[0] == COMMANDS[0]
    assert told[1] == [Gap(sum(map(len, COMMANDS[1:4])), "[Errno 5] the disk is broken")]
    assert told[2] == COMMANDS[4]


def test_a_snapshot_that_meets_a_failed_fsync_while_going_on_is_not_taken(tmp_path: Path) -> None:
    disk, clock = BrokenDisk("sync", code=errno.EIO), Clock()
    writer = going_on(tmp_path, disk, clock)
    append(writer, COMMANDS[0])
    disk.broken = True
    with pytest.raises(SnapshotFailed):
        writer.write_snapshot(b"image", b"digest")
    disk.broken = False
    clock.now_ns += RETRY_NS
    append(writer, COMMANDS[1])
    writer.close()
    assert read(tmp_path)[1:] == COMMANDS[:2], "nothing was lost, so there is no gap"


def test_group_commit_covers_many_commands_over_rotations(tmp_path: Path) -> None:
    writer = new_writer(tmp_path, policy=Policy.SYNC, rotate_bytes=2_000)
    for command in COMMANDS:
        append(writer, command)
        assert writer.durable_seq <= writer.last_seq
    writer.wait_durable(writer.last_seq)
    assert writer.durable_seq == writer.last_seq
    writer.close()
    assert read(tmp_path)[1:] == COMMANDS


def test_a_snapshot_that_cannot_be_written_leaves_the_journal_going(tmp_path: Path) -> None:
    disk = BrokenDisk("rename")
    writer = new_writer(tmp_path, disk=disk, sealing=Sealing.NEVER)
    disk.broken = True
    with pytest.raises(SnapshotFailed) as failed:
        writer.write_snapshot(b"image", b"digest")
    assert failed.value.seq == 1
    append(writer, COMMANDS[0])
    writer.close()
    assert read(tmp_path)[1:] == [COMMANDS[0]]
    assert listing(rank_folder(tmp_path, RANK)).snapshots == []


def test_a_snapshot_whose_events_cannot_be_synced_poisons_the_journal(tmp_path: Path) -> None:
    disk = BrokenDisk("sync", code=errno.EIO)
    writer = new_writer(tmp_path, disk=disk, sealing=Sealing.NEVER)
    disk.broken = True
    with pytest.raises(JournalPoisoned):
        writer.write_snapshot(b"image", b"digest")
    writer.close()


def test_no_snapshot_is_taken_while_events_are_being_lost(tmp_path: Path) -> None:
    disk, clock = BrokenDisk("write"), Clock()
    writer = going_on(tmp_path, disk, clock)
    disk.broken = True
    append(writer, COMMANDS[0])
    with pytest.raises(SnapshotFailed, match="events are being lost"):
        writer.write_snapshot(b"image", b"digest")
    disk.broken = False
    writer.close()


@pytest.mark.parametrize("call", ["rename", "write_sealed"])
def test_a_segment_that_cannot_be_sealed_stays_live_and_is_sealed_by_the_next_writer(
    tmp_path: Path, call: str
) -> None:
    class Unsealing(Disk):
        broken = True

        def create(self, path: Path, mode: int = 0o644) -> int:
            if call == "write_sealed" and self.broken and ".sealed" in path.name:
                raise OSError(errno.ENOSPC, "no room for a second copy")
            return super().create(path, mode)

        def rename(self, source: Path, target: Path) -> None:
            if call == "rename" and self.broken:
                raise OSError(errno.EIO, "no renaming")
            super().rename(source, target)

    disk = Unsealing()
    written = write(tmp_path, COMMANDS, disk=disk, rotate_bytes=3_000)
    assert read(tmp_path) == written
    assert all(
        path.suffix in (".seg", "") for path in rank_folder(tmp_path, RANK).iterdir() if path.suffix != ".tmp"
    )
    disk.broken = False
    written += write(tmp_path, [], disk=disk, resume=True)
    assert read(tmp_path) == written
    assert {path.suffix for path in rank_folder(tmp_path, RANK).iterdir()} == {".sealed", ""}


def test_a_writer_that_cannot_write_its_first_event_lets_the_lock_go(tmp_path: Path) -> None:
    write(tmp_path / "whole", [], sealing=Sealing.NEVER)
    heading = only_segment(tmp_path / "whole").read_bytes().index(b"RLFR")
    with pytest.raises(JournalPoisoned):
        new_writer(tmp_path / "torn!", disk=FillingDisk(heading + 10))
    write(tmp_path / "torn!", [], resume=True)


def test_a_wait_on_a_closed_writer_returns_or_tells(tmp_path: Path) -> None:
    writer = new_writer(tmp_path, policy=Policy.SYNC)
    append(writer, COMMANDS[0])
    writer.close()
    writer.wait_durable(writer.last_seq)
    assert writer.durable_seq == writer.last_seq
    with pytest.raises(ValueError, match="was not written yet"):
        writer.wait_durable(Seq(writer.last_seq + 1))


def test_a_limit_of_the_operating_system_is_met_like_a_full_disk(tmp_path: Path) -> None:
    """RLIMIT_FSIZE, in a process of its own: the kernel takes part of a frame and refuses the rest."""
    script = """
import resource, signal, sys
from pathlib import Path
from radixledger.journal.errors import JournalPoisoned
from tests.journal.written import append, new_writer, some_commands
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, 5_000))
writer = new_writer(Path(sys.argv[1]))
acknowledged = 0
try:
    for command in some_commands(100):
        append(writer, command)
        acknowledged = writer.last_seq
except JournalPoisoned as poisoned:
    assert poisoned.last_seq == acknowledged
writer.close()
print(acknowledged)
"""
    root = Path(__file__).parents[2]
    environment = {"PYTHONPATH": f"{root / 'src'}:{root}", "PATH": ""}
    run = tmp_path / "run"
    done = subprocess.run(
        [sys.executable, "-c", script, run], capture_output=True, text=True, check=True, env=environment
    )
    reader = JournalReader(run, RANK)
    told = [frame.events for frame in reader.frames()]
    assert reader.notices == []
    assert sum(map(len, told)) == int(done.stdout) > 1
    assert told[1:] == some_commands(100)[: len(told) - 1]
