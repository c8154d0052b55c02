"""Commit points, numbers, rotation, epochs and the lock: what a writer promises."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from radixledger.journal.disk import Disk
from radixledger.journal.errors import Damaged, NoJournal, RunExists, WriterBusy, WriterError
from radixledger.journal.events import AnyEvent, Closed, GroupOpened, Opened
from radixledger.journal.folder import LOCK_NAME, listing, rank_folder, ranks_in
from radixledger.journal.frame import Frame
from radixledger.journal.lock import holder
from radixledger.journal.reader import JournalReader
from radixledger.journal.redact import default_key_path, load_key
from radixledger.journal.segment import Form
from radixledger.journal.units import Rank, Seq
from radixledger.journal.writer import BUFFER_EVENTS_MAX, JournalWriter, Policy, Sealing

from .events_sample import events, opened
from .written import RANK, Clock, append, new_writer, read, segment_paths, some_commands, write

COMMANDS = some_commands(30)


def frames(run: Path) -> list[Frame]:
    return list(JournalReader(run, RANK).frames())


class SlowDisk(Disk):
    """Takes a few bytes at a time, as a disk that fills up or a call that was interrupted does."""

    def write(self, fd: int, data: bytes) -> int:
        return super().write(fd, data[:7])


def test_the_first_event_is_opened_with_what_only_the_writer_knows(tmp_path: Path) -> None:
    """J5."""
    run = tmp_path / "run-17"
    with JournalWriter.open(run, opened("", redaction="hashed"), clock=Clock()) as writer:
        told = writer.opened
    assert (told.run, told.epoch, told.schema) == ("run-17", 1, 1)
    assert told.key_id != ""
    assert told.stride == 512, "the live stride, for the state that folds it"
    (first,) = frames(run)
    assert first.seq_first == 1
    assert isinstance(first.events[0], Opened)
    assert first.events[0].stride == 8, "what stands in a hashed journal"
    assert JournalReader(run, RANK).opened == first.events[0]


def test_policy_operation_writes_every_command_as_one_frame_before_it_returns(tmp_path: Path) -> None:
    """J8: a reader sees a command as soon as its caller does."""
    with new_writer(tmp_path) as writer:
        for number, command in enumerate(COMMANDS, 1):
            append(writer, command)
            last = frames(tmp_path)[-1]
            assert last.events == command
            assert last.seq_first + len(command) - 1 == writer.last_seq
            assert len(frames(tmp_path)) == 1 + number


def test_policy_step_writes_the_commands_of_a_step_as_one_frame_with_its_number(tmp_path: Path) -> None:
    with new_writer(tmp_path, policy=Policy.STEP) as writer:
        for command in COMMANDS[:4]:
            append(writer, command)
        assert len(frames(tmp_path)) == 1
        writer.end_step(17)
        last = frames(tmp_path)[-1]
        assert last.events == [event for command in COMMANDS[:4] for event in command]
        assert last.step == 17
        append(writer, COMMANDS[4])
    assert frames(tmp_path)[-1].events == COMMANDS[4], "closing writes what is left"


def test_policy_step_does_not_hoard_where_nobody_ends_a_step(tmp_path: Path) -> None:
    with new_writer(tmp_path, policy=Policy.STEP) as writer:
        for _ in range(BUFFER_EVENTS_MAX):
            writer.append(GroupOpened())
        writer.end_command()
        assert frames(tmp_path)[-1].events == [GroupOpened()] * BUFFER_EVENTS_MAX


def test_policy_off_writes_nothing_and_counts_on(tmp_path: Path) -> None:
    """J9."""
    run = tmp_path / "run"
    with new_writer(run, policy=Policy.OFF) as writer:
        assert (writer.opened.run, writer.last_seq) == ("run", 1)
        append(writer, COMMANDS[0])
        writer.append(GroupOpened())
        writer.drop_command()
        writer.end_step(3)
        writer.rotate()
        writer.wait_durable(writer.last_seq)
        assert writer.last_seq == 1 + len(COMMANDS[0])
        assert writer.durable_seq == 0
        with pytest.raises(WriterError, match="off"):
            writer.write_snapshot(b"image", b"digest")
    assert list(tmp_path.iterdir()) == []


def test_frames_carry_the_step_that_was_ended_last_and_the_time_of_their_writing(tmp_path: Path) -> None:
    with new_writer(tmp_path) as writer:
        append(writer, COMMANDS[0])
        writer.end_step(5)
        append(writer, COMMANDS[1])
    told = frames(tmp_path)
    assert [each.step for each in told] == [0, 0, 5]
    assert [each.time_ns for each in told] == sorted({each.time_ns for each in told})


@pytest.mark.parametrize("policy", [Policy.OPERATION, Policy.STEP])
def test_a_dropped_command_leaves_the_ones_before_it(tmp_path: Path, policy: Policy) -> None:
    with new_writer(tmp_path, policy=policy) as writer:
        append(writer, COMMANDS[0])
        before = writer.last_seq
        writer.append(GroupOpened())
        assert writer.last_seq == before + 1
        writer.drop_command()
        assert writer.next_seq == before + 1
        append(writer, COMMANDS[1])
    assert [event for frame in read(tmp_path)[1:] for event in frame] == COMMANDS[0] + COMMANDS[1]


def test_a_block_that_raises_closes_the_journal_without_its_last_command(tmp_path: Path) -> None:
    def fail() -> None:
        with new_writer(tmp_path, policy=Policy.STEP) as writer:
            append(writer, COMMANDS[0])
            writer.append(GroupOpened())
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert read(tmp_path)[1:] == [COMMANDS[0]]
    write(tmp_path, [], resume=True)


def test_a_command_without_events_makes_no_frame(tmp_path: Path) -> None:
    assert len(write(tmp_path, [[], COMMANDS[0], []])) == 4
    assert read(tmp_path)[1:] == [COMMANDS[0]]


def test_numbers_are_gap_free_over_rotations_and_epochs(tmp_path: Path) -> None:
    """J1."""
    write(tmp_path, COMMANDS[:10], rotate_bytes=2_000)
    write(tmp_path, COMMANDS[10:20], rotate_bytes=2_000, resume=True)
    expected = 1
    for frame in frames(tmp_path):
        assert frame.seq_first == expected
        expected += len(frame.events)
    assert len(segment_paths(tmp_path)) > 4


def test_a_slow_disk_gets_its_frames_in_pieces(tmp_path: Path) -> None:
    assert write(tmp_path, COMMANDS[:3], disk=SlowDisk(), rotate_bytes=500) == read(tmp_path)


def test_segments_rotate_by_size_and_connect(tmp_path: Path) -> None:
    written = write(tmp_path, COMMANDS, rotate_bytes=3_000, sealing=Sealing.NEVER)
    assert read(tmp_path) == written
    paths = segment_paths(tmp_path)
    assert len(paths) > 3
    assert all(path.stat().st_size <= 3_000 for path in paths if len(read_one(path)) > 1)


def read_one(path: Path) -> bytes:
    """The magics of the frames in a live file."""
    return b"x" * path.read_bytes().count(b"RLFR")


def test_segments_rotate_by_age(tmp_path: Path) -> None:
    clock = Clock()
    with new_writer(tmp_path, clock=clock, rotate_ns=10**9) as writer:
        append(writer, COMMANDS[0])
        clock.now_ns += 10**9
        append(writer, COMMANDS[1])
        append(writer, COMMANDS[2])
    assert [path.name for path in segment_paths(tmp_path)] == [
        f"{1:020d}.sealed",
        f"{2 + len(COMMANDS[0]):020d}.sealed",
    ]


def test_rotating_an_empty_segment_changes_nothing(tmp_path: Path) -> None:
    with new_writer(tmp_path) as writer:
        writer.rotate()
        writer.rotate()
    assert len(segment_paths(tmp_path)) == 1
    assert len(read(tmp_path)) == 1


def test_a_finished_run_is_sealed_and_nothing_else_lies_there(tmp_path: Path) -> None:
    run = tmp_path / "run"
    write(run, COMMANDS, rotate_bytes=3_000, sealing=Sealing.BACKGROUND)
    names = {path.suffix for path in rank_folder(run, RANK).iterdir()}
    assert names == {".sealed", ""}
    assert [path.name for path in run.iterdir()] == ["rank-0000"]


def test_sealing_changes_no_event_and_no_number(tmp_path: Path) -> None:
    stream = some_commands(400, seed=9)
    with new_writer(tmp_path / "live", sealing=Sealing.NEVER, rotate_bytes=90_000) as writer:
        for command in stream:
            append(writer, command)
    with new_writer(tmp_path / "sealed", rotate_bytes=90_000) as writer:
        for command in stream:
            append(writer, command)
    live, sealed = frames(tmp_path / "live"), frames(tmp_path / "sealed")
    assert [each.events for each in live[1:]] == [each.events for each in sealed[1:]]
    assert [(e.seq_first, e.time_ns, e.step) for e in live] == [
        (e.seq_first, e.time_ns, e.step) for e in sealed
    ]
    assert {each.form for each in listing(rank_folder(tmp_path / "sealed", RANK)).segments} == {Form.SEALED}


def test_an_existing_run_is_refused_unless_it_is_to_be_resumed(tmp_path: Path) -> None:
    written = write(tmp_path, COMMANDS[:2])
    last = sum(map(len, written))
    with pytest.raises(RunExists, match=f"{last} events") as refused:
        new_writer(tmp_path)
    assert refused.value.last_seq == last
    assert read(tmp_path) == written
    write(tmp_path, [], resume=True)


def test_a_resumed_run_opens_the_next_epoch_and_continues_the_numbers(tmp_path: Path) -> None:
    first = write(tmp_path, COMMANDS[:2])
    second = write(tmp_path, COMMANDS[2:4], resume=True)
    third = write(tmp_path, COMMANDS[4:5], resume=True, policy=Policy.STEP)
    assert read(tmp_path) == first + second + third
    assert [each.epoch for each in frames(tmp_path)] == [1] * 3 + [2] * 3 + [3] * 2
    assert second[0][0].epoch == 2  # type: ignore[union-attr]


def test_resuming_what_is_not_there_begins_it(tmp_path: Path) -> None:
    written = write(tmp_path, COMMANDS[:1], resume=True)
    assert read(tmp_path) == written


def test_another_run_cannot_go_on_with_a_journal(tmp_path: Path) -> None:
    write(tmp_path / "run", COMMANDS[:1])
    with pytest.raises(ValueError, match="this journal is of run 'run'"):
        JournalWriter.open(tmp_path / "run", opened("other"), resume=True)
    write(tmp_path / "run", [], resume=True)


def test_what_a_dead_writer_left_half_done_is_cut_and_reported(tmp_path: Path) -> None:
    """B102: a stray byte behind frame 3, a restart, frame 4, a restart: the reader sees 1, 2, 3, 4."""
    first = write(tmp_path, COMMANDS[:2], sealing=Sealing.NEVER)
    (path,) = segment_paths(tmp_path)
    with path.open("ab") as file:
        file.write(b"R")
    with new_writer(tmp_path, resume=True) as writer:
        append(writer, COMMANDS[2])
        assert any("torn tail: 1 bytes" in notice for notice in writer.notices)
    second = read(tmp_path)[len(first) :]
    with new_writer(tmp_path, resume=True) as writer:
        assert writer.notices == []
    assert [frame for frame in read(tmp_path) if not isinstance(frame[0], Opened)] == COMMANDS[:3]
    assert second[1:] == [COMMANDS[2]]
    reader = JournalReader(tmp_path, RANK)
    list(reader.frames())
    assert any("torn tail: 1 bytes" in notice for notice in reader.notices), "the seal remembers"


def test_a_segment_without_events_makes_way_for_the_next_epoch(tmp_path: Path) -> None:
    first = write(tmp_path, COMMANDS[:1])
    name = f"{sum(map(len, first)) + 1:020d}.seg"
    for content in (b"", b"RLEDGER\n", b"RLEDGER\n\x01"):
        (rank_folder(tmp_path, RANK) / name).write_bytes(content)
        with new_writer(tmp_path, resume=True) as writer:
            assert any(name in notice for notice in writer.notices)
            first.append([writer.opened])
        assert read(tmp_path) == first
        name = f"{sum(map(len, first)) + 1:020d}.seg"


def test_leftovers_of_a_crash_while_sealing_are_cleared_away(tmp_path: Path) -> None:
    first = write(tmp_path, COMMANDS[:1], sealing=Sealing.NEVER)
    (path,) = segment_paths(tmp_path)
    whole = path.read_bytes()
    second = write(tmp_path, [], resume=True)
    path.write_bytes(whole)
    (path.parent / f"{99:020d}.sealed.tmp").write_bytes(b"half")
    assert read(tmp_path) == first + second
    with new_writer(tmp_path, resume=True) as writer:
        assert len(writer.notices) == 2
    assert {each.suffix for each in path.parent.iterdir()} == {".sealed", ""}


def test_damage_at_the_end_is_not_resumed_over(tmp_path: Path) -> None:
    """B104: a writer that went on behind it would bury it."""
    write(tmp_path, COMMANDS[:3], sealing=Sealing.NEVER)
    (path,) = segment_paths(tmp_path)
    whole = bytearray(path.read_bytes())
    whole[-1] ^= 1
    path.write_bytes(whole)
    with pytest.raises(Damaged, match="recover"):
        new_writer(tmp_path, resume=True)
    assert path.read_bytes() == whole


def test_a_second_writer_is_refused_and_told_who_writes(tmp_path: Path) -> None:
    with new_writer(tmp_path) as writer:
        with pytest.raises(WriterBusy, match=f"process {os.getpid()}") as busy:
            new_writer(tmp_path, resume=True)
        assert busy.value.pid == os.getpid()
        append(writer, COMMANDS[0])
        JournalWriter.open(tmp_path, opened("", rank=1), sealing=Sealing.NEVER).close()
    assert ranks_in(tmp_path) == [0, 1]
    assert holder(rank_folder(tmp_path, RANK) / LOCK_NAME) == 0
    write(tmp_path, [], resume=True)


def test_a_second_process_is_refused_too(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from radixledger.journal.lock import WriterLock\n"
        "from radixledger.journal.errors import WriterBusy\n"
        "try: WriterLock(Path(sys.argv[1]))\n"
        "except WriterBusy as busy: print(busy.pid)"
    )
    with new_writer(tmp_path):
        path = rank_folder(tmp_path, RANK) / LOCK_NAME
        done = subprocess.run(
            [sys.executable, "-c", script, path], capture_output=True, text=True, check=True
        )
    assert done.stdout.strip() == str(os.getpid())


def test_a_closed_writer_takes_nothing_more(tmp_path: Path) -> None:
    writer = new_writer(tmp_path)
    writer.append(Closed(b"digest", "test"))
    writer.close()
    writer.close()
    with pytest.raises(WriterError, match="GroupOpened came too late"):
        writer.append(GroupOpened())
    assert read(tmp_path)[-1] == [Closed(b"digest", "test")]


def test_a_key_that_was_given_is_used_and_otherwise_one_is_made_beside_the_run(tmp_path: Path) -> None:
    """N18."""
    run = tmp_path / "run"
    JournalWriter.open(run, opened("", redaction="hashed"), key=b"k" * 32).close()
    assert not default_key_path(run).exists()
    JournalWriter.open(run, opened("", redaction="hashed"), resume=True).close()
    key = load_key(default_key_path(run))
    ids = [each.events[0].key_id for each in frames(run)]  # type: ignore[union-attr]
    assert len(set(ids)) == 2
    assert all(
        key not in path.read_bytes() and key.hex().encode() not in path.read_bytes()
        for path in segment_paths(run)
    )


def test_an_unknown_redaction_is_refused_and_nothing_is_locked(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="`hashed` or `plain`"):
        JournalWriter.open(tmp_path, opened("", redaction="rot13"))
    write(tmp_path, [], resume=True)


def test_a_hashed_journal_holds_the_redacted_stream(tmp_path: Path) -> None:
    """J10."""
    stream = events(seed=4, count=600)
    with JournalWriter.open(tmp_path, opened("", redaction="hashed"), key=b"k" * 32, clock=Clock()) as writer:
        for event in stream:
            writer.append(event)
        writer.end_command()
        redactor = writer.redactor
    assert redactor is not None
    expected: list[AnyEvent] = [redactor.redact(event) for event in stream]
    assert [event for frame in read(tmp_path)[1:] for event in frame] == expected


def test_durable_means_written_where_the_policy_does_not_wait(tmp_path: Path) -> None:
    with new_writer(tmp_path) as writer:
        append(writer, COMMANDS[0])
        assert writer.durable_seq == writer.last_seq
        writer.wait_durable(writer.last_seq)
        with pytest.raises(ValueError, match="was not written yet"):
            writer.wait_durable(Seq(writer.last_seq + 1))


def test_no_journal_is_told_from_an_empty_one(tmp_path: Path) -> None:
    with pytest.raises(NoJournal, match="no such folder"):
        ranks_in(tmp_path / "nothing")
    with pytest.raises(NoJournal, match="holds no rank"):
        ranks_in(tmp_path)
    write(tmp_path, [])
    with pytest.raises(NoJournal, match="this run has ranks 0"):
        JournalReader(tmp_path, Rank(7))
