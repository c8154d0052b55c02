"""A rank's folder with segments that are not its own, or without its first ones: what is its own is read, the rest is accounted for."""

import shutil
from pathlib import Path

from radixledger.journal.doctor import Verdict, examine
from radixledger.journal.events import Gap
from radixledger.journal.folder import rank_folder
from radixledger.journal.reader import JournalReader
from radixledger.journal.recover import recover
from radixledger.journal.segment import Form, segment_name
from radixledger.journal.units import Rank, Seq
from radixledger.journal.writer import Sealing

from .written import RANK, only_segment, read, segment_paths, some_commands, write

COMMANDS = some_commands(60)


def test_a_stranger_between_our_numbers_hides_nothing_of_ours(tmp_path: Path) -> None:
    """J3: our one live segment goes on over the number that a segment of another run begins at."""
    ours = write(tmp_path / "ours", COMMANDS, sealing=Sealing.NEVER)
    write(tmp_path / "theirs", COMMANDS[:40], rotate_bytes=2_500)
    stranger = segment_paths(tmp_path / "theirs")[1]
    shutil.copy(stranger, rank_folder(tmp_path / "ours", RANK))
    assert read(tmp_path / "ours", salvage=True) == ours
    reader = JournalReader(tmp_path / "ours", RANK, salvage=True)
    assert reader.last_seq == sum(map(len, ours))
    assert list(reader.frames())[-1].seq_last == reader.last_seq
    (notice,) = reader.notices
    assert notice.startswith(
        f"{stranger.name}: this segment of run theirs, rank 0 stands among those of run ours, rank 0"
    )


def test_a_sealed_stranger_does_not_stand_in_for_our_live_segment(tmp_path: Path) -> None:
    ours = write(tmp_path / "ours", COMMANDS[:20], sealing=Sealing.NEVER)
    write(tmp_path / "theirs", COMMANDS[:40])
    shutil.copy(only_segment(tmp_path / "theirs"), rank_folder(tmp_path / "ours", RANK))
    # one segment each: the first of this rank counts, and that is the live one that was listed before it
    assert read(tmp_path / "ours", salvage=True) == ours


def test_a_stranger_in_the_place_of_our_last_segment_is_a_loss(tmp_path: Path) -> None:
    write(tmp_path / "ours", COMMANDS, rotate_bytes=2_500)
    write(tmp_path / "theirs", COMMANDS, rotate_bytes=2_500)
    last = segment_paths(tmp_path / "ours")[-1]
    theirs = segment_paths(tmp_path / "theirs")[-1]
    assert theirs.name == last.name
    shutil.copy(theirs, last)
    (gap,) = read(tmp_path / "ours", salvage=True)[-1]
    assert isinstance(gap, Gap)
    assert "set aside" in gap.reason


def test_the_doctor_names_the_stranger_and_goes_through_all_that_is_ours(tmp_path: Path) -> None:
    ours = write(tmp_path / "ours", COMMANDS, sealing=Sealing.NEVER)
    write(tmp_path / "theirs", COMMANDS[:40], rotate_bytes=2_500)
    shutil.copy(segment_paths(tmp_path / "theirs")[1], rank_folder(tmp_path / "ours", RANK))
    report = examine(tmp_path / "ours", RANK)
    assert [each.verdict for each in report.segments] == [Verdict.CLEAN, Verdict.DAMAGED]
    assert report.segments[0].events == sum(map(len, ours))


def test_a_first_segment_that_is_gone_is_a_gap_like_one_that_is_empty(tmp_path: Path) -> None:
    """J3: deleted or emptied, it is the same loss, and all behind it is read."""
    write(tmp_path / "gone", COMMANDS, rotate_bytes=2_500)
    shutil.copytree(tmp_path / "gone", tmp_path / "empty")
    first, second, *_ = segment_paths(tmp_path / "gone")
    lost = int(second.stem) - 1
    first.unlink()
    segment_paths(tmp_path / "empty")[0].write_bytes(b"")
    (gap,), *rest = read(tmp_path / "gone", salvage=True)
    assert isinstance(gap, Gap)
    assert (gap.lost, gap.reason) == (lost, f"missing 1, next is {lost + 1}")
    assert rest == read(tmp_path / "empty", salvage=True)[1:]
    reader = JournalReader(tmp_path / "gone", RANK, salvage=True)
    assert (reader.first_seq, reader.baseline()) == (1, None)
    (cut,), *_ = (frame.events for frame in reader.frames(Seq(3)))
    assert isinstance(cut, Gap)
    assert cut.lost == lost - 2


def test_a_copy_of_a_journal_without_its_beginning_tells_the_loss_and_is_readable(tmp_path: Path) -> None:
    ours = write(tmp_path / "run", COMMANDS, rotate_bytes=2_500)
    first, second, *_ = segment_paths(tmp_path / "run")
    lost = int(second.stem) - 1
    first.unlink()
    done = recover(tmp_path / "run", RANK, tmp_path / "copy")
    assert (done.lost, done.events) == (lost, sum(map(len, ours)) - lost)
    assert read(tmp_path / "copy") == read(tmp_path / "run", salvage=True)
    report = examine(tmp_path / "copy", RANK)
    assert [each.verdict for each in report.segments][:2] == [Verdict.GAPPED, Verdict.CLEAN]
    assert segment_paths(tmp_path / "copy")[0].name == segment_name(1, Form.SEALED)
    assert JournalReader(tmp_path / "copy", RANK).opened.rank == Rank(0)
