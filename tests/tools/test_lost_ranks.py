"""A run of which a rank, or a part of one, was not collected: every command that judges it says so, and goes on with the rest."""

import json
import shutil
from pathlib import Path

import pytest

from radixledger.tools.cli import run as radixledger

from ..replay.runs import written

Capture = pytest.CaptureFixture[str]
GONE = "rank 1 of 2 is not here: run driven has 2 ranks"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two ranks, clean, in several segments."""
    monkeypatch.chdir(tmp_path)
    for rank in range(2):
        written(tmp_path / "run", 60, seed=rank, rank=rank, ranks=2, rotate_bytes=4_000)
    return tmp_path / "run"


@pytest.fixture
def half(run: Path) -> Path:
    """The same, rank 1 left behind on its host."""
    shutil.rmtree(run / "rank-0001")
    return run


def told(words: str, capsys: Capture) -> tuple[int, str, str]:
    code = radixledger(words.split())
    return code, *capsys.readouterr()


@pytest.mark.parametrize(
    "command", ["triage run --no-report", "replay verify run", "journal doctor run", "report run"]
)
def test_a_rank_that_is_not_here_is_told_first_and_is_a_finding(
    command: str, half: Path, capsys: Capture
) -> None:
    """J14."""
    code, out, _ = told(command, capsys)
    assert (code, out.startswith(GONE)) == (1, True)


def test_the_checks_in_sql_tell_of_it_from_a_journal_and_from_what_was_loaded(
    half: Path, capsys: Capture
) -> None:
    """J22."""
    code, out, err = told("sql run --checks", capsys)
    assert (code, err.startswith(GONE)) == (1, True)
    assert "missing_ranks: " in out
    told("load run --to run.duckdb", capsys)
    code, out, _ = told("sql run.duckdb --checks", capsys)
    assert (code, "missing_ranks: " in out) == (1, True)


def test_programs_are_told_which_rank_it_is(half: Path, capsys: Capture) -> None:
    absent = [{"run": "driven", "ranks": 2, "missing": [1]}]
    triaged = json.loads(told("triage run --json", capsys)[1])
    assert (triaged["verdict"], triaged["absent"]) == ("incomplete", absent)
    verified = json.loads(told("replay verify run --json", capsys)[1])
    assert (verified["clean"], verified["absent"]) == (False, absent)
    examined = json.loads(told("journal doctor run --json", capsys)[1])
    assert [(each["rank"], each["findings"]) for each in examined] == [(1, True), (0, False)]
    assert json.loads(told("report run --json", capsys)[1])["absent"] == absent
    assert json.loads(told("sql run --checks --json", capsys)[1])["clean"] is False


def test_the_page_for_the_ticket_begins_with_it(half: Path, capsys: Capture) -> None:
    told("triage run", capsys)
    page = Path("run-report.html").read_text()
    assert page.index("Rank 1 of 2 is not here") < page.index("Clean")


@pytest.mark.parametrize(
    "command", ["triage run --rank 0 --no-report", "triage run/rank-0000 --no-report", "replay verify run --rank 0",
                "journal doctor run --rank 0", "report run --rank 0"]
)  # fmt: skip
def test_who_asks_for_single_ranks_is_told_of_no_other(command: str, half: Path, capsys: Capture) -> None:
    code, out, err = told(command, capsys)
    assert (code, "not here" in out + err) == (0, False)


def test_what_was_collected_from_two_hosts_is_one_run(run: Path, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "there").mkdir()
    (run / "rank-0001").rename(tmp_path / "there" / "rank-0001")
    code, out, _ = told("triage run there --no-report", capsys)
    assert (code, "not here" in out) == (0, False)


def test_a_deleted_first_segment_is_told_by_recover_and_triage_judges_what_is_left(
    run: Path, capsys: Capture
) -> None:
    """J3, J14: exit 1, and a copy of which the same can be said."""
    first, *_ = sorted((run / "rank-0001").glob("*.sealed"))
    first.unlink()
    code, out, _ = told("journal recover run --to copy", capsys)
    assert code == 1
    assert "missing 1, next is" in out
    for place in ("run", "copy"):
        (_, one) = json.loads(told(f"triage {place} --json", capsys)[1])["ranks"]
        assert (one["kind"], one["report"]["gaps"], one["report"]["unreadable"]) == ("damaged", 1, "")


def test_a_segment_of_another_rank_does_not_hide_what_is_wrong_in_this_one(
    tmp_path: Path, capsys: Capture
) -> None:
    """J14: the incident of the tutorial, with a file of rank 0 copied between those of rank 1."""
    incident = tmp_path / "incident"
    shutil.copytree(Path(__file__).parents[2] / "docs" / "incident", incident)
    shutil.copy(next((incident / "rank-0000").glob("*466.sealed")), incident / "rank-0001")
    kinds = {each["rank"]: each for each in json.loads(told(f"triage {incident} --json", capsys)[1])["ranks"]}
    assert (kinds[1]["kind"], kinds[1]["explained"]["first"]["seq"]) == ("wrong", 479)
    assert any("set aside" in notice for notice in kinds[1]["report"]["notices"])
