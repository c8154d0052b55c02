"""`radixledger replay locks`: what it prints, in words and as JSON, and how it leaves."""

import json
from pathlib import Path

import pytest

from radixledger.journal.reader import JournalReader
from radixledger.replay.locks.lock_report import locks_at
from radixledger.tools.cli import run as radixledger

from ..mutants.caught import spoiled, write
from ..mutants.table import MUTANTS
from ..replay.runs import RANK, written

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose requests are live at its end."""
    place = tmp_path_factory.mktemp("locks") / "run"
    written(place, 150, close=False)
    return place


@pytest.fixture(scope="module")
def leaky(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which a finished request kept its lock."""
    place, mutant = tmp_path_factory.mktemp("leaky") / "run", MUTANTS["a_finish_keeps_its_lock"]
    with spoiled(mutant):
        write(place, mutant)
    return place


def told(capfd: Capture, *words: object, code: int = 0) -> str:
    """What the command prints on stdout, leaving with `code`."""
    found = radixledger(["replay", "locks", *map(str, words)])
    out, err = capfd.readouterr()
    assert found == code, out + err
    return out


def test_each_lock_is_a_row_and_an_object(run: Path, capfd: Capture) -> None:
    """N15."""
    reader = JournalReader(run, RANK)
    report = locks_at(reader, reader.last_seq)
    (found,) = json.loads(told(capfd, run, "--json"))
    assert [(each["rid"], each["node"], each["since_seq"]) for each in found["holds"]] == [
        (hold.rid, hold.node, hold.since_seq) for hold in report.holds
    ]
    assert (found["seq"], found["faults"]) == (reader.last_seq, [])
    out = told(capfd, run)
    assert f"{len(report.holds)} locks" in out
    for hold in report.holds:
        assert f"[{hold.window_start}, {hold.path})" in out
        assert (hold.rid or "nobody in particular") in out


def test_an_event_and_a_time_can_be_named(run: Path, capfd: Capture) -> None:
    assert json.loads(told(capfd, run, "--at", 40, "--json"))[0]["seq"] == 40
    assert json.loads(told(capfd, run, "--at", "+20ms", "--json"))[0]["time_ns"] <= 20_000_000
    assert "0 locks" in told(capfd, run, "--at", 1)


def test_a_leak_leaves_with_1_and_is_named(leaky: Path, capfd: Capture) -> None:
    """R138: the lock, whose it was, and the event that should have given it back."""
    out = told(capfd, leaky, code=1)
    (found,) = json.loads(told(capfd, leaky, "--json", code=1))
    (fault, *_) = found["faults"]
    assert fault["fault"] == "still locked when its request ended"
    assert f"LEAKED: still locked when its request ended (event {fault['seq']})" in out
    assert fault["rid"] in out


@pytest.mark.parametrize("width", [60, 80])
def test_a_narrow_terminal_shows_the_same(
    leaky: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    wide = told(capfd, leaky, code=1)
    monkeypatch.setenv("COLUMNS", str(width))
    narrow = told(capfd, leaky, code=1)
    assert {word for word in wide.split() if word.isalnum()} <= set(narrow.split())


def test_what_cannot_be_answered_is_said(run: Path, tmp_path: Path, capfd: Capture) -> None:
    told(capfd, run, "--at", 10**9, code=2)
    told(capfd, run, "--at", "soon", code=2)
    told(capfd, tmp_path / "nowhere", code=3)


def test_all_ranks_are_told_and_an_event_is_one_of_a_named_rank(tmp_path: Path, capfd: Capture) -> None:
    for rank in (0, 1):
        written(tmp_path / "run", 60 + 30 * rank, rank=rank, ranks=2, close=False)
    found = json.loads(told(capfd, tmp_path / "run", "--json"))
    assert [each["rank"] for each in found] == [0, 1]
    out = told(capfd, tmp_path / "run", "--at", "+20ms")
    assert [line.split(",")[0] for line in out.splitlines() if line.startswith("rank ")] == [
        "rank 0",
        "rank 1",
    ]
    assert radixledger(["replay", "locks", str(tmp_path / "run"), "--at", "40"]) == 2
    assert "say whose with --rank, or give a time" in capfd.readouterr().err
    assert json.loads(told(capfd, tmp_path / "run", "--at", 40, "--rank", 1, "--json"))[0]["rank"] == 1
