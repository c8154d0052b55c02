"""A file name says where a file stands, and never that it may go: what is cleared away or written over was opened, and is ours."""

import shutil
from pathlib import Path

import pytest

from radixledger.journal.errors import Damaged, NotOurs, SnapshotFailed, WriterError
from radixledger.journal.folder import rank_folder, snapshot_path
from radixledger.journal.recover import UNFINISHED, recover
from radixledger.journal.retention import Retention
from radixledger.journal.segment import Form, segment_name
from radixledger.journal.units import Rank, Seq
from radixledger.journal.writer import JournalWriter, Sealing

from .events_sample import opened
from .written import RANK, Clock, append, new_writer, only_segment, read, segment_paths, some_commands, write

COMMANDS = some_commands(40)


def contents(run: Path) -> dict[str, bytes]:
    """Every file of the rank but the lock, with what is in it."""
    files = rank_folder(run, RANK).iterdir()
    return {path.name: path.read_bytes() for path in files if path.name != "lock"}


def refused(run: Path, error: type[Exception], says: str) -> None:
    """Resuming is refused so, and changes no file."""
    before = contents(run)
    with pytest.raises(error, match=says):
        new_writer(run, resume=True)
    assert contents(run) == before


def of_rank_one(run: Path) -> Path:
    """A sealed journal of rank 1; its one segment."""
    told = JournalWriter.open(run, opened("", rank=Rank(1)), clock=Clock(), sealing=Sealing.INLINE)
    append(told, COMMANDS[0])
    told.close()
    (path,) = (path for path in rank_folder(run, Rank(1)).iterdir() if path.suffix == ".sealed")
    return path


def test_a_live_segment_stays_where_the_sealed_one_of_its_number_is_of_another_run(tmp_path: Path) -> None:
    """J3: resuming took the live one away for a leftover, and with it every event that it had."""
    write(tmp_path / "ours", COMMANDS, sealing=Sealing.NEVER)
    write(tmp_path / "theirs", COMMANDS)
    shutil.copy(only_segment(tmp_path / "theirs"), rank_folder(tmp_path / "ours", RANK))
    refused(
        tmp_path / "ours", NotOurs, "sealed: this segment of run theirs, rank 0 .* move what does not belong"
    )


def test_a_live_segment_stays_where_the_sealed_one_of_its_number_is_of_another_rank(tmp_path: Path) -> None:
    write(tmp_path / "run", COMMANDS, sealing=Sealing.NEVER)
    shutil.copy(of_rank_one(tmp_path / "run"), rank_folder(tmp_path / "run", RANK))
    refused(tmp_path / "run", NotOurs, "this segment of run run, rank 1")


def test_nobody_goes_on_from_the_journal_of_another_rank(tmp_path: Path) -> None:
    theirs = of_rank_one(tmp_path / "run")
    rank_folder(tmp_path / "run", RANK).mkdir()
    shutil.copy(theirs, rank_folder(tmp_path / "run", RANK))
    refused(tmp_path / "run", NotOurs, "this segment of run run, rank 1 stands in the folder of rank 0")


def test_a_live_segment_stays_where_its_sealed_form_is_damaged(tmp_path: Path) -> None:
    """J3."""
    write(tmp_path, COMMANDS, sealing=Sealing.NEVER)
    live = only_segment(tmp_path)
    whole = live.read_bytes()
    write(tmp_path, [], resume=True)
    live.write_bytes(whole)
    sealed = live.with_suffix(".sealed")
    flipped = bytearray(sealed.read_bytes())
    flipped[len(flipped) // 2] ^= 1
    sealed.write_bytes(flipped)
    refused(tmp_path, Damaged, "recover")


def test_a_live_segment_stays_where_it_holds_more_than_its_sealed_form(tmp_path: Path) -> None:
    write(tmp_path / "run", COMMANDS[:5])
    write(tmp_path / "longer" / "run", COMMANDS, sealing=Sealing.NEVER)
    shutil.copy(only_segment(tmp_path / "longer" / "run"), rank_folder(tmp_path / "run", RANK))
    short = only_segment(tmp_path / "longer" / "run").name
    refused(tmp_path / "run", NotOurs, f"{short} beside it")


def test_a_live_segment_goes_for_a_sealed_one_that_says_the_same(tmp_path: Path) -> None:
    told = write(tmp_path, COMMANDS, sealing=Sealing.NEVER)
    live = only_segment(tmp_path)
    whole = live.read_bytes()
    told += write(tmp_path, [], resume=True)
    live.write_bytes(whole)
    with new_writer(tmp_path, resume=True) as writer:
        assert writer.notices == [f"{live.name} was removed: the live form of a segment that was sealed"]
        told.append([writer.opened])
    assert read(tmp_path) == told


def test_a_segment_whose_beginning_became_zeros_is_damage_and_no_unfinished_one(tmp_path: Path) -> None:
    """B104: what was written whole is behind the zeros still."""
    write(tmp_path, COMMANDS, sealing=Sealing.NEVER)
    path = only_segment(tmp_path)
    path.write_bytes(bytes(4096) + path.read_bytes()[4096:])
    refused(tmp_path, Damaged, "no segment of a journal")


def test_a_snapshot_of_another_run_is_not_cleared_away(tmp_path: Path) -> None:
    write(tmp_path / "ours", COMMANDS[:3])
    with new_writer(tmp_path / "theirs") as writer:
        for command in COMMANDS:
            append(writer, command)
        theirs = writer.write_snapshot(b"image", b"digest")
    shutil.copy(theirs, rank_folder(tmp_path / "ours", RANK))
    refused(
        tmp_path / "ours",
        NotOurs,
        "this snapshot of run theirs, rank 0 stands among the files of run ours, rank 0",
    )


def test_a_snapshot_that_says_not_whose_it_is_stays(tmp_path: Path) -> None:
    write(tmp_path, COMMANDS[:3])
    nobodys = snapshot_path(rank_folder(tmp_path, RANK), Seq(9_999))
    nobodys.write_bytes(b"no snapshot")
    with new_writer(tmp_path, resume=True) as writer:
        assert [nobodys.name in notice and "stays" in notice for notice in writer.notices] == [True]
    assert nobodys.read_bytes() == b"no snapshot"


def test_a_temporary_file_that_no_journal_makes_stays(tmp_path: Path) -> None:
    write(tmp_path, COMMANDS[:3])
    notes = rank_folder(tmp_path, RANK) / "notes.tmp"
    notes.write_text("mine")
    write(tmp_path, COMMANDS[3:6], resume=True)
    assert notes.read_text() == "mine"


def test_a_sealed_file_is_not_written_over(tmp_path: Path) -> None:
    with new_writer(tmp_path) as writer:
        append(writer, COMMANDS[0])
        taken = writer.folder / segment_name(1, Form.SEALED)
        taken.write_bytes(b"of somebody else")
        writer.rotate()
        assert writer.notices == [f"{segment_name(1, Form.LIVE)} stays as it is: {taken.name} is there already, and is not written over"]  # fmt: skip
    assert taken.read_bytes() == b"of somebody else"
    assert segment_name(1, Form.LIVE) in contents(tmp_path)


def test_a_snapshot_of_somebody_else_is_not_written_over(tmp_path: Path) -> None:
    with new_writer(tmp_path) as writer:
        append(writer, COMMANDS[0])
        taken = snapshot_path(writer.folder, writer.last_seq)
        taken.write_bytes(b"of somebody else")
        with pytest.raises(SnapshotFailed, match="is not of this journal, and is not written over"):
            writer.write_snapshot(b"image", b"digest")
        assert taken.read_bytes() == b"of somebody else"
        append(writer, COMMANDS[1])
        again = writer.write_snapshot(b"image", b"digest")
        assert writer.write_snapshot(b"image", b"digest") == again


def test_a_snapshot_of_another_run_lets_no_segment_go(tmp_path: Path) -> None:
    """J8: retention keeps what has no baseline of its own."""
    with new_writer(tmp_path / "theirs") as writer:
        for command in COMMANDS:
            append(writer, command)
        theirs = writer.write_snapshot(b"image", b"digest")
    with new_writer(tmp_path / "ours", rotate_bytes=2_500) as writer:
        for command in COMMANDS:
            append(writer, command)
        shutil.copy(theirs, writer.folder)
        assert writer.retain(Retention(keep_bytes=0)).segments == []


def test_retention_takes_only_what_is_ours(tmp_path: Path) -> None:
    write(tmp_path / "theirs", COMMANDS, rotate_bytes=2_500)
    with new_writer(tmp_path / "ours", rotate_bytes=2_500) as writer:
        for command in COMMANDS:
            append(writer, command)
        writer.write_snapshot(b"image", b"digest")
        second = segment_paths(tmp_path / "ours")[1]
        shutil.copy(segment_paths(tmp_path / "theirs")[1], second)
        dropped = writer.retain(Retention(keep_bytes=0))
    assert len(dropped.segments) == 1
    assert second.exists()


def test_a_folder_that_no_copy_left_is_not_cleared_away_for_one(tmp_path: Path) -> None:
    write(tmp_path / "run", COMMANDS)
    kept = tmp_path / "copy" / "rank-0000.tmp"
    kept.mkdir(parents=True)
    (kept / "notes").write_text("mine")
    with pytest.raises(WriterError, match="what lies there is none: move it away"):
        recover(tmp_path / "run", RANK, tmp_path / "copy")
    assert (kept / "notes").read_text() == "mine"
    (kept / UNFINISHED).touch()
    recover(tmp_path / "run", RANK, tmp_path / "copy")
    assert not kept.exists()
    assert sorted(contents(tmp_path / "copy")) == [segment_name(1, Form.SEALED)]
