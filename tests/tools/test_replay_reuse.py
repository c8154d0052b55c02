"""`radixledger replay lost-reuse` and `why-miss`: what they print, in words and as JSON, and how they leave."""

import json
import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from radixledger.journal.reader import JournalReader
from radixledger.replay.reuse.misses import KINDS
from radixledger.replay.reuse.reuse import Reading
from radixledger.tools.cli import run as radixledger

from ..replay.runs import RANK, damage, written

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run under pressure, with hashed keys."""
    place = tmp_path_factory.mktemp("reuse") / "run"
    written(place, 300, redaction="hashed")
    return place


def told(capfd: Capture, *words: object, code: int = 0) -> tuple[str, str]:
    """What a command prints on stdout and stderr, leaving with `code`."""
    found = radixledger(["replay", *map(str, words)])
    out, err = capfd.readouterr()
    assert found == code, out + err
    return out, err


def test_the_account_adds_up_and_names_causes_and_events(run: Path, capfd: Capture) -> None:
    """N14."""
    reading = Reading(JournalReader(run, RANK))
    misses = list(reading)
    (account,) = json.loads(told(capfd, "lost-reuse", run, "--json")[0])
    assert account["requests"] == len(misses)
    assert sum(account["kinds"].values()) == account["prompt_tokens"]
    assert sum(each["tokens"] for each in account["by_cause"]) == account["kinds"]["lost"] > 0
    worst = account["worst"][0]
    assert worst["tokens"] == max(each["tokens"] for each in account["worst"])
    out, _ = told(capfd, "lost-reuse", run)
    assert f"{account['by_cause'][0]['cause']}" in out
    assert f"why the first one missed: radixledger replay why-miss {run} {worst['rid']}" in out


def test_on_a_narrow_terminal_the_account_is_lines_to_be_read(
    run: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (account,) = json.loads(told(capfd, "lost-reuse", run, "--json")[0])
    monkeypatch.setenv("COLUMNS", "60")
    lines = told(capfd, "lost-reuse", run)[0].splitlines()
    begin, hit = lines.index("tokens that"), account["kinds"]["hit"]
    assert lines[begin + 1] == f"  hit: {hit:,} ({hit / account['prompt_tokens']:.1%}), from the cache"


def test_every_miss_is_a_line_or_an_object(run: Path, capfd: Capture) -> None:
    misses = list(Reading(JournalReader(run, RANK)))
    lines = [json.loads(line) for line in told(capfd, "lost-reuse", run, "--each", "--json")[0].splitlines()]
    assert [(each["rid"], each["kinds"]) for each in lines] == [(miss.rid, miss.kinds) for miss in misses]
    assert all(list(each["kinds"]) == list(KINDS) for each in lines)
    text = told(capfd, "lost-reuse", run, "--each")[0].splitlines()
    assert len(text) == len(misses)
    for line, miss in zip(text, misses, strict=True):
        assert miss.rid in line.split()
        assert all(f"by event {lost.seq} {lost.event} {lost.cause}" in line for lost in miss.lost)


def test_what_was_never_kept_is_told_with_its_cause(tmp_path: Path, capfd: Capture) -> None:
    written(tmp_path / "run", 400, seed=3)
    (account,) = json.loads(told(capfd, "lost-reuse", tmp_path / "run", "--json")[0])
    (reason,) = account["not_kept"]
    out, _ = told(capfd, "lost-reuse", tmp_path / "run")
    assert "not kept in the first place" in out
    assert reason["cause"] in out
    miss = next(
        miss
        for miss in Reading(JournalReader(tmp_path / "run", RANK))
        if any(each.seq for each in miss.stretches)
    )
    assert (
        "because     their request had given the window back"
        in told(capfd, "why-miss", tmp_path / "run", miss.rid)[0]
    )


def test_what_was_forgotten_is_said(run: Path, capfd: Capture) -> None:
    _, err = told(capfd, "lost-reuse", run, "--remember", 1)
    assert "pages that were gone longest were forgotten" in err


def test_one_request_is_told_span_by_span(run: Path, capfd: Capture) -> None:
    """The event that took it, for whom, and how to keep it; the spans are the prompt."""
    misses = [miss for miss in Reading(JournalReader(run, RANK)) if miss.lost]
    miss = max(misses, key=lambda each: each.lost_tokens)
    out, _ = told(capfd, "why-miss", run, miss.rid)
    for lost in miss.lost:
        assert f"tokens {lost.start} to {lost.stop - 1} ({lost.tokens}): lost" in out
        assert f"taken by    event {lost.seq} " in out
        assert f"{lost.event} of node {lost.node}, {lost.cause}" in out
    assert "to keep it" in out
    (found,) = json.loads(told(capfd, "why-miss", run, miss.rid, "--json")[0])
    assert [each["seq"] for each in found["lost"]] == [lost.seq for lost in miss.lost]
    spans = sorted((each["start"], each["stop"]) for each in [*found["lost"], *found["stretches"]])
    assert spans[0][0] == miss.hit
    assert spans[-1][1] == miss.prompt
    assert all(one[1] == two[0] for one, two in pairwise(spans))


@pytest.mark.parametrize("width", [60, 80])
def test_a_narrow_terminal_cuts_nothing_off(
    run: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    miss = next(miss for miss in Reading(JournalReader(run, RANK)) if miss.lost)
    wide, _ = told(capfd, "why-miss", run, miss.rid)
    monkeypatch.setenv("COLUMNS", str(width))
    narrow, _ = told(capfd, "why-miss", run, miss.rid)
    commands = [line for line in narrow.splitlines() if line.startswith("  radixledger ")]
    assert max(len(line) for line in narrow.splitlines() if line not in commands) <= width
    assert narrow.split() == wide.split()
    assert commands, "a command stands on a line of its own, whole"
    for line in commands:
        assert line.startswith(f"  radixledger whatif {shlex.quote(str(run))} --set ")


def test_a_request_that_is_not_there_is_a_usage_error_with_a_hint(run: Path, capfd: Capture) -> None:
    some = next(iter(Reading(JournalReader(run, RANK)))).rid
    _, err = told(capfd, "why-miss", run, some + "x", code=2)
    assert "did you mean" in err
    assert some in err
    assert "did you mean" not in told(capfd, "why-miss", run, "???", code=2)[1]


def test_a_request_may_be_given_by_its_number_where_none_is_called_so(run: Path, capfd: Capture) -> None:
    miss = next(iter(Reading(JournalReader(run, RANK))))
    assert told(capfd, "why-miss", run, str(miss.request)) == told(capfd, "why-miss", run, miss.rid)


def test_a_run_that_cannot_be_read_leaves_with_3(tmp_path: Path, capfd: Capture) -> None:
    assert "Traceback" not in told(capfd, "lost-reuse", tmp_path / "nowhere", code=3)[1]


def test_missing_events_are_said_and_leave_with_1(tmp_path: Path, capfd: Capture) -> None:
    """J11: what they took is not named, and nobody is blamed for it."""
    written(tmp_path / "run", 400, rotate_bytes=4096)
    damage(tmp_path / "run")
    assert "Traceback" not in told(capfd, "lost-reuse", tmp_path / "run", code=3)[1]
    out, err = told(capfd, "lost-reuse", tmp_path / "run", "--salvage", "--json", code=1)
    (account,) = json.loads(out)
    assert account["missing"] > 0
    assert sum(account["kinds"].values()) == account["prompt_tokens"]
    assert "events are missing: what they took is not named" in err
