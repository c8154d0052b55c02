"""Ranks that a run has and that are not here: told by those that are, whatever state those are in."""

import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from radixledger.journal.absent import RANKS_MAX, Absent, Misplaced, absent_ranks
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


def test_a_number_of_ranks_that_no_run_has_says_nothing(tmp_path: Path) -> None:
    write_ranks(tmp_path / "many", 0, of=RANKS_MAX + 1)
    assert absent(tmp_path / "many") == []


def test_a_folder_that_was_given_another_number_makes_no_rank_of_that_number(tmp_path: Path) -> None:
    write_ranks(tmp_path / "run", 1, of=2)
    (tmp_path / "run" / "rank-0001").rename(tmp_path / "run" / "rank-0000")
    (told,) = absent(tmp_path / "run")
    assert told == Absent("run", 2, [Rank(0)], [Misplaced(Rank(0), "run", Rank(1))])
    assert told.sentence().startswith("rank 0 of 2 is not here: ")
    assert told.sentence().endswith("; rank 1's journal lies in the folder of rank 0")


def test_a_rank_of_another_run_in_the_place_of_one_does_not_make_it_present(tmp_path: Path) -> None:
    write_ranks(tmp_path / "run", 0, 1, of=4)
    write_ranks(tmp_path / "other", 0, of=2)
    shutil.rmtree(tmp_path / "run" / "rank-0000")
    (tmp_path / "other" / "rank-0000").rename(tmp_path / "run" / "rank-0000")
    told = {each.run: each for each in absent(tmp_path / "run")}
    assert {run: each.missing for run, each in told.items()} == {"run": [0, 2, 3], "other": [1]}
    assert (
        told["run"].sentence().endswith("; the journal in the folder of rank 0 is that of run other, rank 0")
    )


def test_two_folders_that_were_exchanged_hold_both_ranks(tmp_path: Path) -> None:
    write_ranks(tmp_path / "run", 0, 1, of=2)
    aside, first, second = (tmp_path / "run" / each for each in ("aside", "rank-0000", "rank-0001"))
    first.rename(aside)
    second.rename(first)
    aside.rename(second)
    (told,) = absent(tmp_path / "run")
    assert (told.missing, told.sentence()) == (
        [],
        "run run: rank 0's journal lies in the folder of rank 1, and the other way round",
    )


def test_a_journal_copied_over_another_is_not_taken_for_it(tmp_path: Path) -> None:
    write_ranks(tmp_path / "run", 0, 1, of=2)
    shutil.rmtree(tmp_path / "run" / "rank-0001")
    shutil.copytree(tmp_path / "run" / "rank-0000", tmp_path / "run" / "rank-0001")
    (told,) = absent(tmp_path / "run")
    assert (told.missing, told.misplaced) == ([1], [Misplaced(Rank(1), "run", Rank(0))])


def test_a_single_segment_of_the_rank_among_others_of_strangers_makes_it_present(tmp_path: Path) -> None:
    write_ranks(tmp_path / "run", 0, 1, of=2)
    strange = sorted((tmp_path / "run" / "rank-0000").glob("*.sealed"))
    own = sorted((tmp_path / "run" / "rank-0001").glob("*.sealed"))
    for path in (own[0], own[-1]):
        path.write_bytes(strange[0].read_bytes())
    assert absent(tmp_path / "run") == []


@pytest.mark.parametrize("which", [0, -1])
def test_a_segment_of_another_run_that_was_copied_in_is_no_run_of_its_own(tmp_path: Path, which: int) -> None:
    write_ranks(tmp_path / "run", 0, of=1)
    write_ranks(tmp_path / "other", 1, of=2)
    own, strange = (sorted((tmp_path / each).glob("*/*.sealed")) for each in ("run", "other"))
    (tmp_path / "run" / "rank-0000" / strange[which].name).write_bytes(strange[which].read_bytes())
    assert len(own) > 2
    assert absent(tmp_path / "run") == []
