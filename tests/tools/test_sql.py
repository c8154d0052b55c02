"""`radixledger load` and `radixledger sql`: what they print, and the exit codes that scripts rely on."""

import csv
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from radixledger.journal.accounts import request_account
from radixledger.journal.events import Freed
from radixledger.journal.units import NO_PAGES, RequestId
from radixledger.tools.cli import run as radixledger

from ..analytics.journals import begin, one_epoch, tell, write
from ..analytics.story import pages

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A healthy run of two ranks."""
    return write(tmp_path / "run", one_epoch(), one_epoch(rank=1))


@pytest.fixture
def wrong_run(tmp_path: Path) -> Path:
    """A run in which SWA page 6 is given back once more by the last event."""
    story = one_epoch()
    with begin(tmp_path / "wrong", story) as writer:
        tell(writer, story.frames)
        writer.append(Freed(int(request_account(RequestId(1))), NO_PAGES, NO_PAGES, pages(6)))
        writer.end_command()
    return tmp_path / "wrong"


def told(capfd: Capture, *arguments: object, code: int = 0) -> str:
    """What a command prints on stdout, leaving with `code`."""
    found = radixledger(list(map(str, arguments)))
    out, err = capfd.readouterr()
    assert found == code, out + err
    return out


def refused(capfd: Capture, *arguments: object, code: int = 2) -> str:
    """What a command says on stderr, leaving with `code` and nothing on stdout."""
    found = radixledger(list(map(str, arguments)))
    out, err = capfd.readouterr()
    assert (found, out) == (code, ""), out + err
    return err


@pytest.mark.parametrize("place", ["runs.duckdb", "warehouse", "warehouse/"])
def test_a_run_is_loaded_once_and_asked_many_times(
    place: str, run: Path, tmp_path: Path, capfd: Capture
) -> None:
    to = f"{tmp_path}/{place}"
    out = told(capfd, "load", run, "--to", to, "--label", "model=tiny")
    assert [line.split() for line in out.splitlines()[2:]] == [
        ["run", "0", "75", "1", "75"],
        ["run", "1", "75", "1", "75"],
    ]
    again = json.loads(told(capfd, "load", run, "--to", to, "--json"))
    assert [each["events"] for each in again["ranks"]] == [0, 0]
    assert told(capfd, "sql", to, "--checks").endswith("checks, no findings\n")
    assert json.loads(told(capfd, "sql", to, "-c", "SELECT count(*) AS events FROM events", "--json")) == [
        {"events": 150}
    ]


def test_a_journal_is_asked_as_it_lies_there(run: Path, capfd: Capture) -> None:
    out = told(capfd, "sql", run, "hit_rate")
    assert out.splitlines()[0].split() == [
        "run", "rank", "requests", "prompt_tokens", "cached_tokens", "computed_tokens", "hit_rate", "full_hit_rate",
    ]  # fmt: skip
    assert out.splitlines()[2].split() == ["run", "0", "4", "68", "16", "52", "0.2353", "0.3529"]


def test_several_journals_are_asked_together(run: Path, wrong_run: Path, capfd: Capture) -> None:
    query = "SELECT run, count(*) AS events FROM events GROUP BY run ORDER BY run"
    assert (
        told(capfd, "sql", run, wrong_run, "-c", query, "--format", "csv")
        == "run,events\nrun,150\nwrong,76\n"
    )


def test_two_runs_of_one_name_are_refused_and_nothing_is_loaded(
    run: Path, tmp_path: Path, capfd: Capture
) -> None:
    """The journal has the name; a folder that was renamed since is another place for the same one."""
    other = write(tmp_path / "monday" / "run", one_epoch(), one_epoch(rank=1)).rename(tmp_path / "renamed")
    says = f"{run} and {other} are both called run, as their journals say"
    assert says in refused(capfd, "sql", run, other, "--checks")
    assert says in refused(capfd, "load", run, other, "--to", tmp_path / "runs.duckdb")
    assert not (tmp_path / "runs.duckdb").exists()


@pytest.mark.parametrize("place", ["new.duckdb", "new"])
@pytest.mark.parametrize("spoil", [
    lambda data: data[:8] + b"\xff" * 16 + data[24:], lambda data: data[:0], lambda data: b"x" * len(data),
])  # fmt: skip
def test_a_run_whose_beginning_cannot_be_read_leaves_no_empty_store(
    run: Path, tmp_path: Path, capfd: Capture, place: str, spoil: Callable[[bytes], bytes]
) -> None:
    copy = shutil.copytree(run, tmp_path / "copy")
    for rank in copy.glob("rank-*"):
        first = min(rank.glob("*.se*"))
        first.write_bytes(spoil(first.read_bytes()))
    told(capfd, "load", copy, "--to", tmp_path / place, code=3)
    assert not (tmp_path / place).exists()


def test_one_run_may_be_named_twice_and_its_ranks_may_lie_apart(
    run: Path, tmp_path: Path, capfd: Capture
) -> None:
    third = write(tmp_path / "of another host" / "run", one_epoch(rank=2))
    query = "SELECT rank, count(*) AS events FROM events GROUP BY rank ORDER BY rank"
    out = told(capfd, "sql", run, run, third, "-c", query, "--format", "csv")
    assert out == "rank,events\n0,75\n1,75\n2,75\n"


def test_a_check_with_rows_leaves_with_1(run: Path, wrong_run: Path, capfd: Capture) -> None:
    assert told(capfd, "sql", run, "double_free", "--format", "csv").count("\n") == 1
    (row,) = json.loads(told(capfd, "sql", wrong_run, "double_free", "--json", code=1))
    assert (row["pool"], row["page"], row["second_seq"], row["second_event"]) == ("swa", 6, 76, "Freed")


def test_all_checks_together_tell_what_each_found(wrong_run: Path, capfd: Capture) -> None:
    out = told(capfd, "sql", wrong_run, "--checks", code=1)
    assert "double_free: Double frees: a page was given back although" in out
    assert out.endswith(" checks, 1 finding on 1 of them\n")
    document = json.loads(told(capfd, "sql", wrong_run, "--checks", "--json", code=1))
    assert document["clean"] is False
    assert [check["name"] for check in document["checks"] if check["rows"]] == ["double_free"]
    lines = told(capfd, "sql", wrong_run, "--checks", "--format", "csv", code=1).splitlines()
    assert lines[0] == "check,findings"
    assert "double_free,1" in lines


def test_all_checks_of_a_healthy_run_are_clean(run: Path, capfd: Capture) -> None:
    document = json.loads(told(capfd, "sql", run, "--checks", "--json"))
    assert document["clean"] is True
    assert len(document["checks"]) >= 24


def test_a_question_is_told_its_parameters(run: Path, capfd: Capture) -> None:
    out = told(capfd, "sql", run, "page_life", "--set", "page=5", "--set", "rank=1", "--format", "csv")
    assert [line.split(",")[5] for line in out.splitlines()[1:]] == ["Extended", "Freed"]


def test_a_query_of_ones_own_may_use_variables(run: Path, capfd: Capture) -> None:
    query = "SELECT event FROM events WHERE seq = getvariable('at')::BIGINT AND rank = 0"
    assert told(capfd, "sql", run, "-c", query, "--set", "at=1", "--format", "csv") == "event\nOpened\n"


def test_values_that_json_lacks_are_text(run: Path, capfd: Capture) -> None:
    query = "SELECT '\\x01a'::BLOB AS b, 1.5::DECIMAL(4, 1) AS d, 2::HUGEINT ** 70 AS h, NULL AS n, [1, 2] AS l, true AS t"
    (row,) = json.loads(told(capfd, "sql", run, "-c", query, "--json"))
    assert (row["b"], row["d"], row["n"], row["l"], row["t"]) == ("0161", "1.5", None, [1, 2], True)
    assert told(capfd, "sql", run, "-c", query, "--format", "csv").splitlines()[1].startswith("0161,1.5,")


def test_a_join_loses_no_column_to_another_of_the_same_name(run: Path, capfd: Capture) -> None:
    query = "SELECT 1 AS seq, 2 AS seq, 3 AS seq_2, 4 AS seq"
    assert json.loads(told(capfd, "sql", run, "-c", query, "--json")) == [
        {"seq": 1, "seq_3": 2, "seq_2": 3, "seq_4": 4}
    ]


def test_the_list_shows_every_question_and_table(capfd: Capture) -> None:
    out = told(capfd, "sql", "--list", "--format", "csv")
    assert "check,double_free," in out
    assert "report,hit_rate," in out
    assert "view,requests," in out
    assert "table,pages," in out


@pytest.mark.parametrize("words", [["--list"], ["--list", "two_owners"]])
def test_a_narrow_list_is_wrapped_and_loses_nothing(
    words: list[str], capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    out = told(capfd, "sql", *words)
    prose = out.partition("SELECT")[0].splitlines()
    assert max(map(len, prose)) <= 60
    assert "Two owners: a page was handed to a request" in " ".join(out.split())


@pytest.mark.parametrize("width", ["60", "200"])
def test_a_question_without_an_answer_says_so(
    width: str, run: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    assert told(capfd, "sql", str(run), "leak_at_end") == "no rows\n"


def test_one_question_is_shown_whole(capfd: Capture) -> None:
    out = told(capfd, "sql", "--list", "page_life")
    assert "One page's life" in out
    assert "--set pool=...  full, swa or host (default full)" in out
    assert "FROM pages" in out


def test_one_question_is_one_document_for_programs(capfd: Capture) -> None:
    shown = json.loads(told(capfd, "sql", "--list", "page_life", "--json"))
    assert (shown["name"], shown["kind"]) == ("page_life", "report")
    assert shown["query"].startswith("SELECT")
    assert [(each["name"], each["default"]) for each in shown["parameters"]] == [
        ("page", None), ("pool", "full"), ("rank", "0"),
    ]  # fmt: skip
    ((*_, query),) = list(
        csv.reader(io.StringIO(told(capfd, "sql", "--list", "page_life", "--format", "csv")))
    )[1:]
    assert query == shown["query"]


def test_the_columns_of_a_table_are_shown(capfd: Capture) -> None:
    out = told(capfd, "sql", "--list", "pages", "--format", "csv")
    assert "page,INTEGER\n" in out
    assert 'to_kind,"one of free, pending, reserved, request, tree, in_flight"\n' in out


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["hit_rat"], "hit_rat is neither a run nor a question; did you mean hit_rate"),
        (
            ["RUN", "page_life", "--set", "paeg=3"],
            "no parameter paeg (it has: page, pool, rank); did you mean page?",
        ),
        (["RUN", "--checks", "--set", "page=3"], "--set tells something to NAME or to -c QUERY"),
        (["RUN"], "ask one thing"),
        (["RUN", "double_free", "--checks"], "ask one thing"),
        (["RUN", "double_fre"], "no question called 'double_fre'"),
        (["RUN", "doublefree"], "no question called 'doublefree' (near: double_free)"),
        (["RUN", "page_life"], "page_life needs page"),
        (["RUN", "page_life", "--set", "page"], "--set page: write NAME=VALUE"),
        (["RUN", "hit_rate", "--set", "page=1"], "hit_rate has no parameter page"),
        (["RUN", "-c", "SELECT * FROM nowhere"], "nowhere"),
        (["RUN", "-c", "SELECT nothing FROM pages"], "`radixledger sql --list TABLE` shows"),
        (["double_free"], "name a run"),
        (["RUN", "-c", ""], "the query is empty"),
        (["RUN", "-c", " ; ;"], "the query is empty"),
    ],
)
def test_what_cannot_be_asked_is_wrong_usage(words: list[str], why: str, run: Path, capfd: Capture) -> None:
    assert why in refused(capfd, "sql", *(str(run) if word == "RUN" else word for word in words))


def test_what_is_loaded_is_asked_alone(run: Path, tmp_path: Path, capfd: Capture) -> None:
    told(capfd, "load", run, "--to", tmp_path / "runs.duckdb")
    assert "is asked alone" in refused(capfd, "sql", tmp_path / "runs.duckdb", run, "hit_rate")


def test_what_is_no_run_and_no_store_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    """DuckDB would take a file of JSON lines for a table."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "requests.jsonl").write_text('{"rid": "a", "input_ids": [1, 2]}\n')
    said = refused(capfd, "sql", "requests.jsonl", "--checks", code=3)
    assert (
        "requests.jsonl cannot be opened: it is no DuckDB database, as `radixledger load` makes them" in said
    )
    assert "neither a run nor a question: there is no such folder" in refused(capfd, "sql", "nowhere", code=3)
    assert "nowhere: there is no such folder" in refused(capfd, "sql", "nowhere", "-c", "FROM pages", code=3)
    duckdb.connect("other.duckdb").close()
    assert "not loaded by this version" in refused(capfd, "sql", "other.duckdb", "hit_rate", code=3)


def test_places_that_are_something_else_are_wrong_usage(run: Path, tmp_path: Path, capfd: Capture) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("dear " * 2000)
    assert "holds other things" in refused(capfd, "load", run, "--to", tmp_path / "other")
    (tmp_path / "trace.jsonl").write_text('{"input_length": 1}\n' * 100)
    assert "cannot be opened" in refused(capfd, "load", run, "--to", tmp_path / "trace.jsonl")
    assert "write NAME=VALUE" in refused(capfd, "load", run, "--to", tmp_path / "new", "--label", "pair")


def test_a_folder_that_is_no_run_cannot_be_read(tmp_path: Path, capfd: Capture) -> None:
    (tmp_path / "empty").mkdir()
    refused(capfd, "sql", tmp_path / "empty", "hit_rate", code=3)
    refused(capfd, "load", tmp_path / "empty", "--to", tmp_path / "new.duckdb", code=3)


def test_a_query_that_wants_too_much_memory_is_told_and_is_no_usage(
    run: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(*_: object, **__: object) -> None:
        raise duckdb.OutOfMemoryException("Failed to allocate block of 16777216 bytes")

    monkeypatch.setattr(duckdb, "connect", connect)
    for words in (("sql", run, "--checks"), ("load", run, "--to", run.parent / "runs.duckdb")):
        said = refused(capfd, *words, code=3)
        assert "there was not enough memory: give" in said
        assert said.rstrip().endswith("Failed to allocate block of 16777216 bytes")


def test_a_table_of_very_many_rows_is_cut_and_says_so(run: Path, capfd: Capture) -> None:
    """Who wants all of them has CSV and JSON, which are whole."""
    query = "SELECT range AS row FROM range(5000)"
    assert radixledger(["sql", str(run), "-c", query]) == 0
    out, err = capfd.readouterr()
    assert out.splitlines()[-1].strip() == "1999"
    assert "the first 2,000 of 5,000 rows; --format csv or --json gives all" in err
    assert len(told(capfd, "sql", run, "-c", query, "--format", "csv").splitlines()) == 5001
