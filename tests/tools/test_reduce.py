"""`radixledger reduce` and `radixledger counterfactual`: what they print, what they write, how they end."""

import json
from pathlib import Path

import pytest

from radixledger.journal.events import Config
from radixledger.journal.recorder import ROOT, Recorder
from radixledger.tools.cli import run

from ..incidents.make_incident import PATH as SHIPPED

CHECKOUT = Path(__file__).parents[2]


def test_a_clean_rank_has_nothing_to_reduce(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reduce", str(SHIPPED), "--rank", "0"]) == 0
    assert "there is nothing to reduce" in capsys.readouterr().out
    assert run(["reduce", str(SHIPPED), "--rank", "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"clean": True}
    assert run(["counterfactual", str(SHIPPED), "--rank", "0", "--with", str(CHECKOUT)]) == 0


def test_an_incident_becomes_a_file_and_a_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """J18."""
    file = tmp_path / "test_incident.py"
    arguments = ["reduce", str(SHIPPED), "--rank", "1", "--seconds", "0.1", "-o", str(file), "--json"]
    assert run(arguments) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["law"], told["event"], told["clean"]) == ("a_page_is_given_by_its_owner", 479, False)
    assert told["file"] == str(file)
    assert told["events_after"] <= told["events_before"] + 2
    assert "SCHEDULE = [" in file.read_text()


def test_what_was_asked_wrongly_is_told_with_what_would_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reduce", str(SHIPPED), "--rank", "1", "--law", "no_such_law"]) == 2
    told = capsys.readouterr().err
    assert "no_such_law" in told
    assert "a_page_is_freed_once" in told
    assert run(["reduce", str(SHIPPED)]) == 2
    assert run(["reduce", str(CHECKOUT / "nowhere")]) == 3
    assert run(["counterfactual", str(SHIPPED), "--rank", "1", "--with", str(SHIPPED)]) == 2
    assert run(["counterfactual", str(SHIPPED), "--rank", "1", "--with", "no-such-revision"]) == 2
    assert run(["counterfactual", str(SHIPPED), "--rank", "1", "--with", "HEAD:docs"]) == 2
    assert "no git revision" in capsys.readouterr().err


def test_a_mended_revision_is_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    """N20: the shipped incident comes from a cache with a bug, the installed one has none."""
    assert run(["counterfactual", str(SHIPPED), "--rank", "1", "--with", str(CHECKOUT)]) == 0
    told = capsys.readouterr().out
    assert "it goes away" in told
    assert "from event 479 on it decides otherwise" in told
    assert run(["counterfactual", str(SHIPPED), "--rank", "1", "--with", str(CHECKOUT), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["mends"]
    assert found["difference"]["seq"] == 479


def test_a_law_that_breaks_later_is_the_one_that_the_file_is_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """J18: the first law that the incident broke is another one, 125 events before."""
    file = tmp_path / "test_owners.py"
    law = "every_page_has_one_owner"
    arguments = ["reduce", str(SHIPPED), "--rank", "1", "--law", law, "--seconds", "0.1", "-o", str(file)]
    assert run([*arguments, "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["law"], told["event"]) == (law, 604)
    assert not told["decided_so_today"]
    assert f"def test_{law}() -> None:" in file.read_text()
    assert "was decided wrongly, and the last one met what came of it." in " ".join(file.read_text().split())


def test_a_file_that_is_there_is_replaced_with_force_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "test_incident.py"
    file.write_text("mine")
    arguments = ["reduce", str(SHIPPED), "--rank", "1", "--seconds", "0.1", "-o", str(file)]
    assert run(arguments) == 2
    assert "is there already: name another file, or replace it with --force" in capsys.readouterr().err
    assert file.read_text() == "mine"
    assert run([*arguments, "--force"]) == 1
    assert "SCHEDULE = [" in file.read_text()


def test_what_another_server_decided_is_not_decided_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Triage of such a run does not send anybody to `reduce`, either."""
    monkeypatch.chdir(tmp_path)
    theirs = str(tmp_path / "theirs")
    config = Config(page_size=4, full_pages=8, swa_pages=0, window_tokens=0, rows=8)
    with Recorder.open(Path(theirs), config, redaction="plain") as recorder:
        recorder.admitted("a", prompt=4, prefix=0, node=ROOT)
        recorder.extended(["a"], [4], takers=["a"], counts=[1], full=[1])
        for _ in range(2):
            recorder.freed([1], rid="a")
    for arguments in (
        ["reduce", theirs, "-o", "test_it.py"],
        ["counterfactual", theirs, "--with", str(CHECKOUT)],
    ):
        assert run(arguments) == 3
        err = capsys.readouterr().err
        assert "a recording of another server (route 'recorded_full')" in err
        assert "rank-0000: event 4 broke " in err
    assert not Path("test_it.py").exists()
    assert run(["triage", theirs, "--no-report"]) == 1
    out = capsys.readouterr().out
    assert "radixledger replay blame" in out
    assert "radixledger reduce" not in out
