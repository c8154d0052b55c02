"""`radixledger report`: where the page goes, what is said of it, and the exit codes that scripts rely on."""

import json
from pathlib import Path

import pytest

from radixledger.journal.accounts import request_account
from radixledger.journal.events import Freed
from radixledger.journal.units import NO_PAGES, Pages, RequestId
from radixledger.journal.writer import JournalWriter
from radixledger.tools.cli import run as radixledger

from ..cache.driven import opened
from ..replay.report_reader import tracks_of
from ..replay.runs import Clock, written

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    written(tmp_path / "run", 40)
    return tmp_path / "run"


@pytest.fixture
def wrong_run(tmp_path: Path) -> Path:
    """A request gives up a page that is free."""
    with JournalWriter.open(tmp_path / "wrong", opened(redaction="plain"), clock=Clock()) as writer:
        writer.append(Freed(request_account(RequestId(7)), Pages(b"\1\0\0\0"), NO_PAGES, NO_PAGES))
        writer.end_command()
    return tmp_path / "wrong"


def told(capfd: Capture, *words: object, code: int = 0) -> tuple[str, str]:
    """What the command prints, leaving with `code`."""
    found = radixledger(["report", *map(str, words)])
    out, err = capfd.readouterr()
    assert found == code, out + err
    return out, err


def test_a_clean_run_leaves_with_0_and_says_where_the_page_is(
    run: Path, tmp_path: Path, capfd: Capture
) -> None:
    out, _ = told(capfd, run, "-o", tmp_path / "page.html")
    assert f"{tmp_path / 'page.html'}: " in out
    assert "clean" in out
    assert len(tracks_of(tmp_path / "page.html")) == 1


def test_findings_leave_with_1_and_the_page_is_there(wrong_run: Path, tmp_path: Path, capfd: Capture) -> None:
    """J14."""
    out, _ = told(capfd, wrong_run, "-o", tmp_path / "page.html", "--json", code=1)
    summary = json.loads(out)
    assert summary["path"] == str(tmp_path / "page.html")
    assert summary["bytes"] == (tmp_path / "page.html").stat().st_size
    assert summary["events"] == 2
    assert summary["ranks"] == [
        {
            "run": "driven",
            "rank": 0,
            "kind": "wrong",
            "events": 2,
            "detail": [[1, 2]],
            "summaries": 0,
            "findings": 1,
            "unreadable": "",
        }
    ]


def test_commands_on_the_page_name_the_run_as_it_was_given(
    wrong_run: Path, tmp_path: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    wrong_run.rename("a wrong one")
    told(capfd, "a wrong one", "-o", "page.html", code=1)
    (read,) = tracks_of(Path("page.html"))
    assert read.head["run"] == "'a wrong one'"
    assert "radixledger replay blame ${track.head.run} --rank" in Path("page.html").read_text("utf-8")


def test_what_cannot_be_read_leaves_with_3_and_the_page_says_so(
    run: Path, tmp_path: Path, capfd: Capture
) -> None:
    (segment,) = (run / "rank-0000").glob("*.s*")
    segment.write_bytes(bytes(100))
    out, _ = told(capfd, run, "-o", tmp_path / "page.html", code=3)
    assert "unreadable from here on: " in out
    assert "Cannot be read" in (tmp_path / "page.html").read_text("utf-8")


def test_triage_writes_the_page_too(wrong_run: Path, tmp_path: Path, capfd: Capture) -> None:
    """N4: one command, from a folder to a page."""
    page = tmp_path / "page.html"
    assert radixledger(["triage", str(wrong_run), "--report", str(page)]) == 1
    out, err = capfd.readouterr()
    assert "first wrong event" in out
    assert str(page) in err
    assert "First wrong event: <button" in page.read_text("utf-8")
    assert radixledger(["triage", str(wrong_run), "--report", str(page)]) == 2
    capfd.readouterr()


def test_a_file_that_is_there_is_replaced_by_force_alone(run: Path, tmp_path: Path, capfd: Capture) -> None:
    page = tmp_path / "page.html"
    page.write_text("somebody's")
    _, err = told(capfd, run, "-o", page, code=2)
    assert "--force" in err
    assert page.read_text() == "somebody's"
    told(capfd, run, "-o", page, "--force")
    assert page.read_text("utf-8").startswith("<!DOCTYPE html>")


def test_wrong_usage_leaves_with_2_and_what_is_no_run_with_3(
    run: Path, tmp_path: Path, capfd: Capture
) -> None:
    _, err = told(capfd, run, "-o", tmp_path / "nowhere" / "page.html", code=2)
    assert "is no folder" in err
    _, err = told(capfd, tmp_path / "nothing", "-o", tmp_path / "page.html", code=3)
    assert "there is no such folder" in err
    assert not (tmp_path / "page.html").exists()
