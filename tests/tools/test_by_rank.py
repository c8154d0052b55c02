"""Ranks that are gone through several at a time, each by a process of its own."""

from pathlib import Path

import pytest

from radixledger.tools import by_rank
from radixledger.tools.cli import run as radixledger

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
