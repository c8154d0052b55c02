"""A planted double free: one event more than the run has, which both witnesses name, and nothing else."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from radixledger.analytics.load import load
from radixledger.analytics.queries import ask, find, of_kind
from radixledger.analytics.store import Database
from radixledger.journal.causes import Operation, cause
from radixledger.journal.errors import RunExists
from radixledger.journal.events import Freed, Opened
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Rank
from radixledger.replay.verify import verify_rank
from radixledger.tools.cli import run as run_command
from radixledger.tools.drill import NothingToPlant, plant_double_free

TRACE = "".join(
    f'{{"timestamp": {i}, "input_length": {1600 + 60 * (i % 7)}, "output_length": 40, "hash_ids": [1, {2 + i % 3}, {i + 10}, {i + 50}]}}\n'
    for i in range(24)
)
"""Requests that share one or two pieces of 512 tokens, and have two of their own."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two ranks with a dozen requests each, in too little memory: six are refused."""
    folder = tmp_path_factory.mktemp("drill")
    (folder / "trace.jsonl").write_text(TRACE)
    command = ["drive", str(folder / "trace.jsonl"), "--journal", str(folder / "run")]
    sizes = ["--page-size=64", "--window=256", "--full-pages=70", "--swa-pages=30", "--dp-size=2"]
    assert run_command([*command, *sizes, "--enable-unified-radix-tree"]) == 1
    return folder / "run"


def frames(run: Path, rank: int) -> list[tuple[int, int, list[Any]]]:
    """Time, step and events of every frame."""
    return [(frame.time_ns, frame.step, frame.events) for frame in JournalReader(run, Rank(rank)).frames()]


def test_the_copy_differs_from_the_run_by_one_event(run: Path, tmp_path: Path) -> None:
    before = [frames(run, rank) for rank in range(2)]
    planted = plant_double_free(run, tmp_path / "copy", Rank(0))
    copied = [frames(tmp_path / "copy", rank) for rank in range(2)]
    (at,) = [i for i, (_, _, events) in enumerate(copied[0]) if events == [planted.again]]
    del copied[0][at]
    for rank in range(2):
        (opened, *others), (told, *others_told) = before[rank], copied[rank]
        assert others == others_told
        assert (opened[:2], told[2][0].run) == (told[:2], "copy")
        assert isinstance(told[2][0], Opened)
        assert told[2][0] == replace(opened[2][0], run="copy"), (
            "its keys are the hashes that they were, of the same key"
        )
    assert [frames(run, rank) for rank in range(2)] == before, (
        "the run itself is evidence, and is not touched"
    )


def test_the_planted_event_frees_what_was_just_freed_and_says_that_it_is_a_drill(
    run: Path, tmp_path: Path
) -> None:
    planted = plant_double_free(run, tmp_path / "copy", Rank(0))
    events = [event for _, _, events in frames(tmp_path / "copy", 0) for event in events]
    first, second = events[planted.first - 1], events[planted.second - 1]
    assert isinstance(first, Freed)
    assert second == planted.again
    assert second.cause == cause(Operation.DRILL)
    assert second.giver == first.giver
    assert second.full in [first.full[at : at + 4] for at in range(0, len(first.full), 4)]


@pytest.mark.parametrize("rank", [0, 1])
def test_replay_and_sql_name_the_planted_event_and_nothing_else(run: Path, tmp_path: Path, rank: int) -> None:
    planted = plant_double_free(run, tmp_path / "copy", Rank(rank))
    report = verify_rank(tmp_path / "copy", Rank(rank))
    assert [(told.seq, told.law, told.pages) for told in report.findings] == [
        (planted.second, "a_page_is_freed_once", [planted.page])
    ]
    assert verify_rank(tmp_path / "copy", Rank(1 - rank)).clean
    database = Database()
    load(database, tmp_path / "copy")
    connection = database.questioned()
    found = {check.name: ask(connection, check) for check in of_kind("check")}
    assert [name for name, answer in found.items() if answer.rows] == ["double_free"]
    answer = ask(connection, find("double_free"))
    (row,) = (dict(zip(answer.columns, row, strict=True)) for row in answer.rows)
    assert (row["rank"], row["pool"], row["page"]) == (rank, "full", planted.page)
    assert (
        row["alloc_seq"]
        < row["first_seq"]
        == planted.first
        < row["second_seq"]
        == planted.second
        < row["next_seq"]
    )
    database.close()


def test_a_run_in_which_no_page_came_back_has_nothing_to_plant(run: Path, tmp_path: Path) -> None:
    (tmp_path / "trace.jsonl").write_text(TRACE.splitlines()[0])
    command = ["drive", str(tmp_path / "trace.jsonl"), "--journal", str(tmp_path / "short")]
    assert run_command([*command, "--enable-unified-radix-tree"]) == 0
    with pytest.raises(NothingToPlant, match="handed out again"):
        plant_double_free(tmp_path / "short", tmp_path / "copy", Rank(0))
    assert not (tmp_path / "copy").exists()


def test_a_copy_is_never_written_into_a_run_that_is_there(run: Path, tmp_path: Path) -> None:
    plant_double_free(run, tmp_path / "copy", Rank(0))
    with pytest.raises(RunExists):
        plant_double_free(run, tmp_path / "copy", Rank(0))
