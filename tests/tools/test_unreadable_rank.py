"""One rank that cannot be read keeps the others from nothing, in every command that goes through ranks one after the other."""

import json
from pathlib import Path

import pytest

from radixledger.journal.units import Rank
from radixledger.tools.cli import run as radixledger
from radixledger.tools.drill import plant_double_free

from ..replay.runs import written

Capture = pytest.CaptureFixture[str]

WORDS = ["journal cat", "journal stats", "replay locks", "replay lost-reuse"]
"""Commands that need nothing besides a run, and count no finding in this one."""


@pytest.fixture(params=["empty folder", "two bytes"])
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """Three ranks, of which the middle one cannot be read."""
    monkeypatch.chdir(tmp_path)
    for rank in range(3):
        written(tmp_path / "run", 40, seed=rank, rank=rank, ranks=3)
    for each in (tmp_path / "run" / "rank-0001").iterdir():
        if request.param == "empty folder":
            each.unlink()
        else:
            each.write_bytes(b"ab")
    return tmp_path / "run"


def told(words: str, capsys: Capture) -> tuple[int, str, str]:
    code = radixledger(words.split())
    return code, *capsys.readouterr()


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize(
    "command",
    [*WORDS, "replay locks --salvage", "replay lost-reuse --salvage", "replay tail --once --laws", "whatif"],
)
def test_the_other_ranks_are_told_as_if_it_were_not_there(command: str, capsys: Capture) -> None:
    """J11: it is named, with what to do."""
    code, out, err = told(f"{command} run", capsys)
    others = told(f"{command} run --rank 0 --rank 2", capsys)
    assert others[0] in (0, 1)
    assert (code, out) == (others[0] or 3, others[1])
    assert "rank 1 cannot be read: run/rank-0001" in err
    assert "radixledger journal doctor" in err


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize("command", WORDS[1:])
def test_programs_are_told_of_it_behind_the_others(command: str, capsys: Capture) -> None:
    code, out, _ = told(f"{command} run --json", capsys)
    *others, last = json.loads(out)
    assert (code in (1, 3), [each["rank"] for each in others]) == (True, [0, 2])
    assert (last["rank"], "run/rank-0001" in last["unreadable"]) == (1, True)


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize("command", WORDS)
def test_alone_it_is_a_failure(command: str, capsys: Capture) -> None:
    code, out, err = told(f"{command} run --rank 1", capsys)
    assert (code, out) == (3, "")
    assert "Error: run/rank-0001" in err


@pytest.mark.usefixtures("run")
def test_why_a_request_missed_is_told_by_the_ranks_that_can_be_read(capsys: Capture) -> None:
    misses = told("replay lost-reuse run --rank 2 --each --json", capsys)[1].splitlines()
    rid = json.loads(misses[0])["rid"]
    code, out, err = told(f"replay why-miss run {rid}", capsys)
    assert (code, out.startswith(f"{rid}: ")) == (3, True)
    assert "rank 1 cannot be read" in err
    code, out, err = told("replay why-miss run nobody-of-that-name", capsys)
    assert (code, out) == (3, "")
    assert "as far as could be read" in err


@pytest.mark.usefixtures("run")
def test_the_checks_judge_the_other_ranks_and_findings_win(capsys: Capture) -> None:
    """J22: it lies here, so it is not missing."""
    code, out, err = told("sql run --checks", capsys)
    assert (code, "leak_at_end" in out, "missing_ranks" in out) == (1, True, False)
    assert "rank 1 cannot be read: run/rank-0001" in err
    assert told("sql run --checks --rank 0 --rank 2", capsys) == (1, out, "")


@pytest.mark.usefixtures("run")
def test_where_nothing_was_found_a_rank_that_was_not_read_is_told_by_the_exit_code(capsys: Capture) -> None:
    code, out, err = told("sql run missing_ranks --json", capsys)
    assert (code, json.loads(out)) == (3, [])
    assert "rank 1 cannot be read" in err
    code, out, _ = told("sql run missing_ranks --json --rank 0", capsys)
    assert (code, json.loads(out)) == (0, [])
    assert told("sql run --checks --rank 1", capsys)[0] == 3


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize("place", ["made.duckdb", "made/"])
def test_a_load_is_of_the_other_ranks_and_they_can_be_asked(place: str, capsys: Capture) -> None:
    code, out, err = told(f"load run --to {place} --reuse --json", capsys)
    document = json.loads(out)
    assert (code, [each["rank"] for each in document["ranks"]]) == (3, [0, 2])
    assert [each["rank"] for each in document["unreadable"]] == [1]
    assert "rank 1 cannot be read" in err
    assert told(f"sql {place} occupancy", capsys)[0] == 0
    assert told(f"sql {place} --checks --rank 0", capsys)[0] == 2


@pytest.mark.usefixtures("run")
def test_only_the_ranks_that_are_named_are_loaded(capsys: Capture) -> None:
    code, out, _ = told("load run --to made.duckdb --rank 2 --json", capsys)
    assert (code, [each["rank"] for each in json.loads(out)["ranks"]]) == (0, [2])


def test_a_trace_has_the_other_ranks(run: Path, capsys: Capture) -> None:
    code, out, err = told("export perfetto run -o trace.json --json", capsys)
    summary = json.loads(out)
    assert (code, [each["rank"] for each in summary["unreadable"]]) == (3, [1])
    assert "rank 1 cannot be read: run/rank-0001" in err
    entries = json.loads((run.parent / "trace.json").read_text("utf-8"))["traceEvents"]
    names = {each["args"]["name"][:6] for each in entries if each["name"] == "process_name"}
    assert names == {"rank 0", "rank 2"}


def test_who_follows_goes_on_with_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """The alarm is another rank's."""
    monkeypatch.chdir(tmp_path)
    for rank in range(2):
        written(tmp_path / "run", 110, seed=11, rank=rank, ranks=2)
    plant_double_free(tmp_path / "run", tmp_path / "wrong", Rank(1))
    for each in (tmp_path / "wrong" / "rank-0000").iterdir():
        each.write_bytes(b"ab")
    code, out, err = told("replay tail wrong --alarms", capsys)
    assert code == 1
    assert "a_page_is_freed_once" in out
    assert "rank 0 cannot be read: " in err
