"""`--rank`: the same option wherever ranks are chosen, and what is said of one that is not there."""

import json
from pathlib import Path

import click
import pytest

from radixledger.tools.cli import radixledger
from radixledger.tools.cli import run as command_line

from ..replay.runs import written
from ..test_docs import leaves

Capture = pytest.CaptureFixture[str]

ONE = "The rank; needed where the run has several."
ALL = "Only this rank; may be given again.  [default: all]"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three ranks."""
    place = tmp_path_factory.mktemp("ranks") / "run"
    for rank in range(3):
        written(place, 30, rank=rank, ranks=3)
    return place


def test_every_command_about_a_run_lets_its_ranks_be_chosen_in_one_of_two_ways() -> None:
    for name, command in leaves(radixledger, "radixledger"):
        arguments = {each.name for each in command.params if isinstance(each, click.Argument)}
        if not arguments & {"run", "runs", "a"} and name != "radixledger sql":
            continue
        (rank,) = (
            each for each in command.params if isinstance(each, click.Option) and "--rank" in each.opts
        )
        assert (rank.help, rank.multiple) in ((ONE, False), (ALL, True)), name


@pytest.mark.parametrize(
    ("words", "ranks_of"),
    [
        (["replay", "verify"], lambda told: [each["rank"] for each in told["ranks"]]),
        (["replay", "locks"], lambda told: [each["rank"] for each in told]),
        (["replay", "lost-reuse"], lambda told: [each["rank"] for each in told]),
        (["triage"], lambda told: [each["rank"] for each in told["ranks"]]),
        (["journal", "stats"], lambda told: [each["rank"] for each in told]),
        (["journal", "doctor"], lambda told: [each["rank"] for each in told]),
        (["report", "--force", "-o", "page.html"], lambda told: [each["rank"] for each in told["ranks"]]),
    ],
)
def test_a_command_about_all_ranks_is_about_those_that_are_named(
    words: list[str], ranks_of: object, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:  # fmt: skip
    assert callable(ranks_of)
    monkeypatch.chdir(tmp_path)
    for chosen, ranks in (([], [0, 1, 2]), (["--rank", "2", "--rank", "1"], [1, 2]), (["--rank", "1"], [1])):
        assert command_line([*words, str(run), "--json", *chosen]) in (0, 1)
        assert sorted(ranks_of(json.loads(capfd.readouterr().out))) == ranks


@pytest.mark.parametrize("words", [["triage"], ["report", "-o", "page.html"], ["replay", "verify"], ["journal", "stats"]])  # fmt: skip
def test_a_rank_that_is_not_there_is_told_and_not_passed_over(
    words: list[str], run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command_line([*words, str(run), "--rank", "1", "--rank", "7"]) == 3
    said = capfd.readouterr()
    assert "rank 7" in said.out + said.err
