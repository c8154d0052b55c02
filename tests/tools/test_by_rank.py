"""Runs of many ranks: several are gone through at a time, and those with findings come first."""

from pathlib import Path

import pytest

from radixledger.journal.folder import listing, rank_folder
from radixledger.journal.units import Rank
from radixledger.tools import by_rank
from radixledger.tools.cli import run as radixledger

from ..replay.runs import written

Capture = pytest.CaptureFixture[str]

INCIDENT = Path(__file__).parents[2] / "docs" / "incident"


@pytest.mark.parametrize("command", [["triage"], ["replay", "verify"]], ids=" ".join)
def test_several_ranks_at_a_time_say_the_same(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """Only long journals have a process each, so these are called long."""
    asked = [*command, str(INCIDENT), "--json", "--processes"]
    assert radixledger([*asked, "1"]) == 1
    one = capsys.readouterr().out
    monkeypatch.setattr(by_rank, "EVENTS_WORTH_A_PROCESS", 0)
    monkeypatch.setattr(by_rank, "watched", None)  # this process goes through no rank
    assert radixledger([*asked, "2"]) == 1
    assert capsys.readouterr().out == one


def test_a_page_is_the_same_by_however_many_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(by_rank, "EVENTS_WORTH_A_PROCESS", 0)
    asked = ["report", str(INCIDENT), "--json", "-o", str(tmp_path / "page.html")]
    pages = []
    for processes in ("1", "2"):
        assert radixledger([*asked, "--force", "--processes", processes]) == 1
        pages.append((tmp_path / "page.html").read_bytes())
    assert pages[0] == pages[1]


def test_doctor_of_many_ranks_begins_with_those_that_have_findings(tmp_path: Path, capsys: Capture) -> None:
    """The sound ones have a line each."""
    run = tmp_path / "run"
    for rank in range(11):
        written(run, 20, rank=rank, ranks=11)
    (segment,) = listing(rank_folder(run, Rank(1))).segments
    with segment.path.open("r+b") as file:
        file.truncate(segment.path.stat().st_size // 2)
    assert radixledger(["journal", "doctor", str(run)]) == 1
    out = capsys.readouterr().out
    assert out.startswith("rank 1 has findings")
    sound = [line for line in out.splitlines() if " is sound" in line]
    assert [line.split()[1] for line in sound] == ["0", *map(str, range(2, 11))]
    assert out.count("bytes") == 1, "one table, of the rank with findings"
