"""`radixledger replay bisect`: three ways to ask, what it prints, and its exit codes."""

import json
from pathlib import Path

import pytest

from radixledger.journal.reader import JournalReader
from radixledger.tools.cli import run as radixledger
from radixledger.tools.drill import DoubleFree, plant_double_free

from ..replay.runs import RANK, written

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean run with snapshots."""
    run = tmp_path_factory.mktemp("bisect") / "run"
    written(run, 300, snapshots=range(40, 300, 40))
    return run


@pytest.fixture(scope="module")
def planted(run: Path) -> tuple[Path, DoubleFree]:
    """The same with a page that is freed twice."""
    return run.parent / "incident", plant_double_free(run, run.parent / "incident", RANK)


def told(capfd: Capture, *arguments: object, code: int = 1) -> str:
    """What `bisect` prints on stdout, leaving with `code`."""
    found = radixledger(["replay", "bisect", *map(str, arguments)])
    out, err = capfd.readouterr()
    assert found == code, out + err
    return out or err


def test_a_law_a_question_and_a_query_find_the_same_event(
    planted: tuple[Path, DoubleFree], tmp_path: Path, capfd: Capture
) -> None:
    """B01, J15: the second free, by folding, by a question of `sql` and by a query of one's own."""
    run, double = planted
    own = tmp_path / "mine.sql"
    own.write_text(f"SELECT seq FROM pages WHERE pool = 'full' AND page = {double.page} AND cause = 'drill'")
    out = ""
    for words in (("--law", "a_page_is_freed_once"), ("--sql", "double_free"), ("--sql", own)):
        out = told(capfd, run, *words)
        assert f"first behind event {double.second}," in out
        assert f"{double.second}  Freed  giver request({double.again.request})  full {double.page}" in out
        assert f"no behind event {double.second - 1}" in out
        as_json = json.loads(told(capfd, run, *words, "--json"))
        assert (as_json["found"], as_json["first"], as_json["last"]) == (True, double.second, double.second)
        assert as_json["events"][0]["full"] == [double.page]
    assert f"1 row, first: seq {double.second}" in out


def test_a_predicate_is_found_by_halves_or_at_every_command(run: Path, capfd: Capture) -> None:
    frame = list(JournalReader(run, RANK).frames())[100]
    asked = f"seq >= {frame.seq_first}"
    out = told(capfd, run, "--predicate", asked)
    assert out.startswith(f"{asked}: first behind event {frame.seq_first}")
    assert "--first looks at every command" in out
    every = told(capfd, run, "--predicate", asked, "--first")
    assert every.splitlines()[0] == out.splitlines()[0]
    assert "found by halves" not in every
    turning = told(capfd, run, "--predicate", "requests == 2", "--first")
    assert "it turned" in turning


def test_what_is_never_so_leaves_with_0(run: Path, capfd: Capture) -> None:
    for words in (
        ("--law", "every_page_has_one_owner"),
        ("--law", "a_page_is_freed_once"),
        ("--predicate", "full.free > full.capacity"),
        ("--sql", "two_owners"),
    ):
        assert ": no; asked" in told(capfd, run, *words, code=0)
        assert json.loads(told(capfd, run, *words, "--json", code=0))["found"] is False


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "give one of --law, --predicate and --sql"),
        (("--law", "a", "--predicate", "seq"), "give one of --law, --predicate and --sql"),
        (("--law", "every_page_has_one_owne"), "did you mean every_page_has_one_owner"),
        (("--law", "zzz"), "there are\n  a_backup_is_gathered_once\n"),
        (
            ("--law", "one_owner"),
            "did you mean a_mapping_joins_pages_of_one_owner or every_page_has_one_owner?",
        ),
        (("--predicate", "full.fre < 3"), "a pool has no fre; it has capacity, free"),
        (("--predicate", "open('x')"), "cannot be asked"),
        (("--sql", "no/such.sql"), "there is no file no/such.sql"),
        (("--sql", "page_life"), "page_life needs page"),
    ],
)
def test_what_cannot_be_asked_is_wrong_usage(
    run: Path, capfd: Capture, words: tuple[str, ...], why: str
) -> None:
    assert why in told(capfd, run, *words, code=2)


def test_a_query_that_is_none_is_wrong_usage(run: Path, tmp_path: Path, capfd: Capture) -> None:
    for text, why in (("SELEC 1", "Parser Error"), ("", "the query is empty"), ("FROM nowhere", "nowhere")):
        (tmp_path / "bad.sql").write_text(text)
        assert why in told(capfd, run, "--sql", tmp_path / "bad.sql", code=2)


@pytest.mark.parametrize(
    "text",
    ["COPY (SELECT 1) TO 'FILE'", "DROP VIEW events", "SELECT 1; DROP VIEW events", "SELECT 1; SELECT 2", "SET threads=1",
     "ATTACH 'FILE'", "CREATE TABLE more AS FROM events", "INSERT INTO events FROM events", "INSTALL httpfs", "CALL x()"],
)  # fmt: skip
def test_a_statement_that_changes_something_is_not_asked_of_every_prefix(
    run: Path, tmp_path: Path, capfd: Capture, text: str
) -> None:
    (tmp_path / "mine.sql").write_text(text.replace("FILE", str(tmp_path / "written")))
    assert "one SELECT is asked" in told(capfd, run, "--sql", tmp_path / "mine.sql", code=2)
    assert not (tmp_path / "written").exists()


def test_a_journal_that_cannot_be_read_leaves_with_3(run: Path, tmp_path: Path, capfd: Capture) -> None:
    """Damage in the middle: an error with the place, or, around it, an answer and what was lost."""
    folder = tmp_path / "run" / "rank-0000"
    folder.mkdir(parents=True)
    (segment,) = (path for path in (run / "rank-0000").iterdir() if path.suffix == ".sealed")
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 255
    (folder / segment.name).write_bytes(data)
    for words in (
        ("--law", "every_page_has_one_owner"),
        ("--predicate", "seq > 9000"),
        ("--sql", "two_owners"),
    ):
        out = told(capfd, tmp_path / "run", *words, code=3)
        assert segment.name in out
        assert radixledger(["replay", "bisect", str(tmp_path / "run"), *words, "--salvage"]) in (0, 1, 3)
        capfd.readouterr()
