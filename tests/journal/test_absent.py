"""Ranks that a run has and that are not here: told by those that are, whatever state those are in."""

import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from radixledger.journal.absent import RANKS_MAX, Absent, absent_ranks
from radixledger.journal.folder import ranks_in
from radixledger.journal.units import Rank
from radixledger.journal.writer import JournalWriter, Sealing

from .events_sample import opened
from .written import Clock, append, some_commands


def write_ranks(run: Path, *ranks: int, of: int, name: str = "") -> None:
    """Journals of these ranks in several segments, each of which says how many ranks there are."""
    for rank in ranks:
        said = replace(opened(name, rank), ranks=of)
        with JournalWriter.open(
            run, said, clock=Clock(), sealing=Sealing.INLINE, rotate_bytes=2_500
        ) as writer:
            for events in some_commands(30):
                append(writer, events)


def absent(*runs: Path) -> list[Absent]:
    return absent_ranks((run, rank) for run in runs for rank in ranks_in(run))


def test_a_run_that_is_whole_lacks_nothing(tmp_path: Path) -> None:
    write_ranks(tmp_path / "run", 0, 1, of=2)
    assert absent(tmp_path / "run") == []


def test_what_the_others_say_exists_and_is_not_here_is_absent(tmp_path: Path) -> None:
    write_ranks(tmp_path / "run", 0, 2, of=8)
    (told,) = absent(tmp_path / "run")
    assert told == Absent("run", 8, [Rank(each) for each in (1, 3, 4, 5, 6, 7)])
    assert told.sentence().startswith("ranks 1, 3-7 of 8 are not here: run run has 8 ranks")


def test_ranks_that_were_collected_from_several_hosts_are_counted_together(tmp_path: Path) -> None:
    write_ranks(tmp_path / "one", 0, of=3, name="job")
    write_ranks(tmp_path / "two", 1, of=3, name="job")
    write_ranks(tmp_path / "other", 0, of=1)
    assert absent(tmp_path / "one", tmp_path / "two", tmp_path / "other") == [Absent("job", 3, [Rank(2)])]


def test_a_rank_of_which_nothing_can_be_read_is_here_all_the_same(tmp_path: Path) -> None:
    write_ranks(tmp_path / "run", 0, 1, of=2)
    shutil.rmtree(tmp_path / "run" / "rank-0001")
    (tmp_path / "run" / "rank-0001").mkdir()
    assert absent(tmp_path / "run") == []


@pytest.mark.parametrize("which", [0, -1])
def test_one_heading_that_can_be_read_is_enough(tmp_path: Path, which: int) -> None:
    write_ranks(tmp_path / "run", 0, of=2)
    segments = sorted((tmp_path / "run" / "rank-0000").glob("*.sealed"))
    assert len(segments) > 2
    for path in segments:
        if path != segments[which]:
            path.write_bytes(b"")
    assert absent(tmp_path / "run") == [Absent("run", 2, [Rank(1)])]


def test_files_of_another_rank_and_numbers_that_no_run_has_say_nothing(tmp_path: Path) -> None:
    write_ranks(tmp_path / "run", 1, of=4)
    (tmp_path / "run" / "rank-0001").rename(tmp_path / "run" / "rank-0000")
    assert absent(tmp_path / "run") == []
    write_ranks(tmp_path / "many", 0, of=RANKS_MAX + 1)
    assert absent(tmp_path / "many") == []
