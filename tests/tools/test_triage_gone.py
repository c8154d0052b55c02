"""`radixledger triage` of requests that are gone: what is not known is no nought."""

import re
from pathlib import Path

import pytest

from radixledger.journal.events import Config
from radixledger.journal.folder import listing, rank_folder
from radixledger.journal.recorder import ROOT, Recorder
from radixledger.journal.units import Rank
from radixledger.tools.cli import run as radixledger
from radixledger.tools.drill import plant_double_free

from ..replay.runs import written


def test_of_a_request_that_is_gone_and_of_a_pool_that_is_not_there_a_dash_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A nought would say that it had no tokens, and that it gave none back."""
    page = tmp_path / "page.html"
    written(tmp_path / "lawful", 111, seed=11, rank=1, ranks=2)
    plant_double_free(tmp_path / "lawful", tmp_path / "wrong", Rank(1))
    radixledger(["triage", str(tmp_path / "wrong"), "--report", str(page)])
    out = capsys.readouterr().out
    table = out.partition("requests involved, in tokens\n")[2].partition("\n\n")[0]
    assert table.splitlines()[2].split() == ["8", "r1", "aborted", "before", "-", "-", "-", "-"]
    assert "<li>request 8 (r1): aborted before</li>" in page.read_text("utf-8")
    config = Config(page_size=4, full_pages=9, swa_pages=0, window_tokens=0, rows=4)
    with Recorder.open(tmp_path / "theirs", config, code="toy", redaction="plain") as recorder:
        for rid in ("had", "gave"):
            recorder.admitted(rid, prompt=32, prefix=0, node=ROOT)
        recorder.extended(["had"], [32], takers=["had"], counts=[8], full=range(1, 9))
        recorder.freed(range(1, 9), rid="gave")
    radixledger(["triage", str(tmp_path / "theirs"), "--no-report"])
    out = capsys.readouterr().out
    table = out.partition("requests involved, in tokens\n")[2].partition("\n\n")[0]
    rows = [line.split() for line in table.splitlines()[2:]]
    assert {row[1] for row in rows} == {"had", "gave"}
    assert [(row[3], row[-1]) for row in rows] == [("32", "-")] * 2


def test_how_a_rank_ended_is_not_known_where_nothing_of_it_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """J11: its writer had closed it, and none of that is left."""
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "run", 40)
    (segment,) = listing(rank_folder(tmp_path / "run", Rank(0))).segments
    whole = bytearray(segment.path.read_bytes())
    whole[len(whole) // 2] ^= 1
    segment.path.write_bytes(whole)
    assert radixledger(["triage", "run", "--no-report"]) == 1
    facts = dict(
        re.split(r"  +", line, maxsplit=1)
        for line in capsys.readouterr().out.splitlines()
        if "  " in line.strip()
    )
    assert facts["closed"] == facts["live at the end"] == "not known behind the damage"
    assert facts["commands turned down"] == facts["retractions"] == "none that could be read"


def test_where_nobody_can_say_how_many_events_are_lost_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """J11; and the rank that is damaged stands in the banner of the one that is wrong."""
    monkeypatch.chdir(tmp_path)
    for rank in range(2):
        written(tmp_path / "run", 111, seed=11, rank=rank, ranks=2)
    plant_double_free(tmp_path / "run", tmp_path / "wrong", Rank(1))
    (segment,) = listing(rank_folder(tmp_path / "wrong", Rank(0))).segments
    with segment.path.open("r+b") as file:
        file.truncate(segment.path.stat().st_size // 2)
    assert radixledger(["triage", "wrong", "--report", "page.html"]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "rank 0: damaged: at least 1 event is missing" in out
    assert "at least 1 event lost in 1 gap" in out
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "<p>Beside it damaged: rank 0.</p>" in page
    assert "at least 1 event lost in 1 gap" in page
    assert radixledger(["replay", "verify", "wrong", "--salvage"]) == 1
    assert "at least 1 event lost in 1 gap" in " ".join(capsys.readouterr().out.split())
