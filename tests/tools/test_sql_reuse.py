"""`radixledger load --reuse`, and `radixledger sql` asked where the hits went: answered from a journal at once, never from nothing."""

import csv
import io
import json
from pathlib import Path

import pytest

from radixledger.journal.writer import JournalWriter
from radixledger.tools.cli import run as radixledger

from ..cache.driven import SHAPES, Driven, opened
from ..replay.runs import Clock, damage, written

Capture = pytest.CaptureFixture[str]
REPORTS = ("lost_reuse_by_cause", "lost_reuse_by_event", "hit_rate_by_cause")


def recorded(run: Path, seed: int, *, steps: int = 250) -> Path:
    """A run under the name of its folder."""
    writer = JournalWriter.open(run, opened(SHAPES[1], run="", redaction="plain"), clock=Clock())
    driven = Driven(seed, SHAPES[1], recorder=writer, seq=writer.last_seq)
    for _ in range(steps):
        driven.step()
    writer.close()
    return run


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two runs to be compared."""
    place = tmp_path_factory.mktemp("pair")
    return recorded(place / "a", 3), recorded(place / "b", 7)


def told(capfd: Capture, *words: object, code: int = 0) -> tuple[str, str]:
    """What a command prints on stdout and stderr, leaving with `code`."""
    found = radixledger(list(map(str, words)))
    out, err = capfd.readouterr()
    assert found == code, out + err
    return out, err


def objects(capfd: Capture, *words: object) -> list[dict[str, object]]:
    """The rows of an answer without a remark."""
    out, err = told(capfd, "sql", *words, "--format", "csv")
    assert err == ""
    return list(csv.DictReader(io.StringIO(out)))


def test_journals_are_asked_where_their_hits_went_as_they_lie_there(
    pair: tuple[Path, Path], tmp_path: Path, capfd: Capture
) -> None:
    """J23: no option is needed, and a loaded pair says the same."""
    places = (tmp_path / "runs.duckdb", tmp_path / "warehouse")
    for place in places:
        told(capfd, "load", *pair, "--to", place, "--reuse")
    for report in REPORTS:
        found = objects(capfd, *pair, report)
        assert {row["run"] for row in found} == {"a", "b"}
        assert all(objects(capfd, place, report) == found for place in places)


def test_a_query_of_ones_own_finds_the_rows_too(pair: tuple[Path, Path], capfd: Capture) -> None:
    (row,) = objects(capfd, pair[0], "-c", "SELECT sum(tokens) AS tokens FROM reuse WHERE kind = 'lost'")
    (account,) = json.loads(told(capfd, "replay", "lost-reuse", pair[0], "--json")[0])
    assert row["tokens"] == str(account["kinds"]["lost"]) != "0"


def test_two_runs_are_compared_cause_by_cause(pair: tuple[Path, Path], capfd: Capture) -> None:
    """J24: both sides add up to the prompts of their run, and each cause costs what it costs in its own."""
    found = objects(capfd, *pair, "reuse_compared", "--set", "run=a", "--set", "other=b")
    for side, run in (("tokens", pair[0]), ("other_tokens", pair[1])):
        (account,) = json.loads(told(capfd, "replay", "lost-reuse", run, "--json")[0])
        assert sum(int(str(row[side])) for row in found) == account["prompt_tokens"]
        lost = {
            (row["cause"], row["took"]): int(str(row[side]))
            for row in found
            if row["kind"] == "lost" and row[side] != "0"
        }
        assert lost == {(each["cause"], each["what"]): each["tokens"] for each in account["by_cause"]}
    assert all(
        int(str(row["difference"])) == int(str(row["other_tokens"])) - int(str(row["tokens"]))
        for row in found
    )
    assert (
        "other is the other run, and 'c' is not here (here: a, b)"
        in told(capfd, "sql", *pair, "reuse_compared", "--set", "run=a", "--set", "other=c", code=2)[1]
    )


def test_shares_add_up_to_one_and_that_of_hits_is_the_hit_rate(
    pair: tuple[Path, Path], capfd: Capture
) -> None:
    found = objects(capfd, pair[0], "hit_rate_by_cause")
    rates = objects(capfd, pair[0], "hit_rate")
    for rank in ("0", ""):
        shares = [row for row in found if row["rank"] == rank]
        assert sum(float(str(row["share"])) for row in shares) == pytest.approx(1, abs=1e-3)
        (rate,) = (row["hit_rate"] for row in rates if row["rank"] == rank)
        assert (shares[0]["kind"], shares[0]["share"]) == ("hit", rate)
        for row in shares:
            assert bool(row["hit_rate_kept"]) is bool(row["cause"])


def test_a_place_that_was_loaded_without_is_not_asked_in_vain(
    pair: tuple[Path, Path], tmp_path: Path, capfd: Capture
) -> None:
    """An empty answer would say that nothing was lost; the remedy is named, and works."""
    place = tmp_path / "runs.duckdb"
    told(capfd, "load", *pair, "--to", place)
    for words in (["lost_reuse_by_cause"], ["-c", "SELECT * FROM reuse"]):
        out, err = told(capfd, "sql", place, *words, code=2)
        assert out == ""
        assert f"radixledger load RUN --to {place} --reuse" in err
    assert told(capfd, "sql", place, "hit_rate")[1] == ""
    compared = ["reuse_compared", "--set", "run=a", "--set", "other=b"]
    assert "Error: a, b: loaded without" in told(capfd, "sql", place, *compared, code=2)[1]
    document = json.loads(told(capfd, "load", pair[0], "--to", place, "--reuse", "--json")[0])
    assert [each["events"] for each in document["ranks"]] == [0]
    assert [(each["run"], each["requests"] > 0) for each in document["reuse"]] == [("a", True)]
    out, err = told(capfd, "sql", place, "lost_reuse_by_cause", "--format", "csv")
    assert {line.split(",")[0] for line in out.splitlines()[1:]} == {"a"}
    assert err == "b, rank 0: is not in the answer: it was loaded without --reuse\n"
    assert "Error: b: loaded without" in told(capfd, "sql", place, *compared, code=2)[1]


def test_what_was_told_before_the_journal_went_on_is_called_so(tmp_path: Path, capfd: Capture) -> None:
    run, place = tmp_path / "run", tmp_path / "warehouse"
    written(run, 150, close=False)
    told(capfd, "load", run, "--to", place, "--reuse")
    (until,) = objects(capfd, place, "-c", "SELECT last_seq FROM reuse_folds")
    written(run, 100, resume=True)
    told(capfd, "load", run, "--to", place)
    err = told(capfd, "sql", place, "hit_rate_by_cause")[1]
    assert f"driven, rank 0: `reuse` is told up to event {until['last_seq']} of " in err
    told(capfd, "load", run, "--to", place, "--reuse")
    assert told(capfd, "sql", place, "hit_rate_by_cause")[1] == ""


def test_a_damaged_run_says_what_its_answer_lacks(tmp_path: Path, capfd: Capture) -> None:
    written(tmp_path / "run", 300, rotate_bytes=4096)
    damage(tmp_path / "run")
    assert "Error: " in told(capfd, "sql", tmp_path / "run", "lost_reuse_by_cause", code=3)[1]
    out, err = told(capfd, "sql", tmp_path / "run", "lost_reuse_by_cause", "--salvage", "--format", "csv")
    assert "lost" in out
    assert "events are missing: what they took is not named" in err


def test_what_was_loaded_is_listed_beside_what_happened(capfd: Capture) -> None:
    assert told(capfd, "sql", "--list", "reuse", "--format", "csv")[0].splitlines()[1] == "run,VARCHAR"
    listed = told(capfd, "sql", "--list", "--format", "csv")[0]
    assert "table,reuse,Where each prompt's tokens went" in listed.replace('"', "")
    assert "table,labels," in listed
