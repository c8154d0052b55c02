"""`radixledger reduce` and `radixledger counterfactual`: what they print, what they write, how they end."""

import json
from pathlib import Path

import pytest

from radixledger.tools.cli import run

from ..incidents.make_incident import PATH as SHIPPED

ROOT = Path(__file__).parents[2]


def test_a_clean_rank_has_nothing_to_reduce(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reduce", str(SHIPPED), "--rank", "0"]) == 0
    assert "there is nothing to reduce" in capsys.readouterr().out
    assert run(["reduce", str(SHIPPED), "--rank", "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"clean": True}
    assert run(["counterfactual", str(SHIPPED), "--rank", "0", "--with", str(ROOT)]) == 0


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
    assert run(["reduce", str(ROOT / "nowhere")]) == 3
    assert run(["counterfactual", str(SHIPPED), "--rank", "1", "--with", str(SHIPPED)]) == 2
    assert run(["counterfactual", str(SHIPPED), "--rank", "1", "--with", "no-such-revision"]) == 2
    assert "no git revision" in capsys.readouterr().err


def test_a_mended_revision_is_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    """N20: the shipped incident comes from a cache with a bug, the installed one has none."""
    assert run(["counterfactual", str(SHIPPED), "--rank", "1", "--with", str(ROOT)]) == 0
    told = capsys.readouterr().out
    assert "it goes away" in told
    assert "from event 479 on it decides otherwise" in told
    assert run(["counterfactual", str(SHIPPED), "--rank", "1", "--with", str(ROOT), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["mends"]
    assert found["difference"]["seq"] == 479
