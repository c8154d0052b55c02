"""Checks where events are missing: a healthy rank is accused of nothing, and what broke before is still told (J11, J22)."""

import shutil
from pathlib import Path

import pytest

from radixledger.analytics.folder import Folder, open_folder
from radixledger.analytics.judged import unjudged
from radixledger.analytics.load import load
from radixledger.analytics.prefix import Prefix
from radixledger.analytics.queries import ask, ask_checks, find, of_kind
from radixledger.analytics.store import Database, open_database
from radixledger.journal.events import Allocated, Gap
from radixledger.journal.units import RequestId
from radixledger.tools.cli import run as radixledger

from ..cache.driven import CHUNK_SHAPES, SHAPES, STATE_SHAPES
from ..replay.runs import damage, written
from .asked import findings, loaded
from .faults import ALLOC, FAULTS
from .story import Story, first_request, healthy, pages

OF_AN_END = {"leak_at_end"}
"""Faults that only a clean end shows."""
INCIDENT = Path(__file__).parents[2] / "docs" / "incident"
ROUTES = [
    (SHAPES[1], None),
    (SHAPES[1], "legacy"),
    (STATE_SHAPES[0], None),
    (CHUNK_SHAPES["swa_chunk"], "swa_chunk"),
]


def middle(run: Path, rank: int) -> Path:
    """The sealed segment in the middle of a rank."""
    sealed = sorted((run / f"rank-{rank:04d}").glob("*.sealed"))
    assert len(sealed) > 2, "there is something before the damage, and behind it"
    return sealed[len(sealed) // 2]


@pytest.fixture(scope="module", params=ROUTES, ids=str)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two lawful ranks of many segments."""
    shape, route = request.param
    run = tmp_path_factory.mktemp("whole") / "run"
    for rank in (0, 1):
        written(run, 160, seed=4 + rank, shape=shape, route=route, rank=rank, ranks=2, rotate_bytes=3000, close=False)  # fmt: skip
    return run


def told(run: Path) -> dict[str, int]:
    """How many rows each check has that has any, of what can be read of a run."""
    database = Database()
    load(database, run, salvage=True)
    return {
        name: len(answer.rows) for name, answer in ask_checks(database.questioned()).items() if answer.rows
    }


def test_a_lawful_run_that_lost_a_segment_is_told_to_have_lost_it_and_of_nothing_else(
    run: Path, tmp_path: Path
) -> None:
    """J11, J22: of one rank, while the other is whole."""
    copy = Path(shutil.copytree(run, tmp_path / "run"))
    middle(copy, 0).unlink()
    assert told(copy) == {"missing_events": 1}


def test_a_lawful_run_with_a_spoiled_block_in_each_rank_is_told_of_nothing_else(
    run: Path, tmp_path: Path
) -> None:
    """J11, J22: each rank is behind a gap of its own, and their nodes and requests have the same numbers."""
    copy = Path(shutil.copytree(run, tmp_path / "run"))
    damage(copy)
    middle(copy, 1).write_bytes(middle(copy, 1).read_bytes()[:-200])
    found = told(copy)
    assert found.keys() == {"missing_events"}
    assert found["missing_events"] >= 2


@pytest.fixture(scope="module")
def told_by_run() -> dict[str, set[str]]:
    """The checks that have rows, by run: each fault before a gap, behind one, and in the epoch after it."""
    stories = []
    for name, fault in FAULTS.items():
        before, behind, after = (Story(f"{name}, {where}") for where in ("before", "behind", "after"))
        for story in (before, behind, after):
            first_request(story)
        fault(before)
        for story in (before, behind, after):
            story.tell(Gap(3, "the disk was full"))
        before.tell(Allocated(RequestId(77), pages(1, 2), pages(1, 2), ALLOC))
        fault(behind)
        after.open()
        first_request(after)
        fault(after)
        stories += [before, behind, after]
    told: dict[str, set[str]] = {}
    for check, rows in findings(*stories).items():
        for row in rows:
            told.setdefault(row["run"], set()).add(check)
    return told


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_before_a_gap_and_in_the_epoch_behind_it(
    name: str, told_by_run: dict[str, set[str]]
) -> None:
    """J22: neither depends on what was lost; a rank that ended in a gap never ended cleanly, as some faults need."""
    before = told_by_run[f"{name}, before"]
    assert before == {name, "missing_events"} or (name in OF_AN_END and before == {"missing_events"})
    assert told_by_run[f"{name}, after"] == {name, "missing_events"}


@pytest.mark.parametrize("name", FAULTS)
def test_behind_a_gap_only_what_needs_no_past_is_told(name: str, told_by_run: dict[str, set[str]]) -> None:
    """J11."""
    anywhere = {check.name for check in of_kind("check") if check.anywhere}
    assert "missing_events" in told_by_run[f"{name}, behind"] <= anywhere


def test_an_epoch_whose_opening_is_lost_is_judged_page_by_page_alone() -> None:
    story = healthy()
    opening = next(place for place, frame in enumerate(story.frames) if frame.epoch > 1)
    lost = story.frames.pop(opening)
    database = loaded(story)
    ((run, rank, epoch, seq, _),) = unjudged(database.questioned())
    assert (run, rank, epoch, seq) == (story.run, story.rank, lost.epoch, lost.seq_last + 1)
    assert findings(story).keys() == {"missing_events"}


def test_every_kind_of_store_and_a_prefix_know_what_can_be_judged(tmp_path: Path) -> None:
    """A database in memory, one on disk that is only read, a folder of files, and one asked up to its end: the same."""
    run = tmp_path / "run"
    written(run, 160, seed=4, rotate_bytes=3000, close=False)
    middle(run, 0).unlink()
    database, kept, folder = Database(), Database(tmp_path / "kept.duckdb"), Folder(tmp_path / "folder")
    for store in (database, kept, folder):
        load(store, run, salvage=True)
    kept.close()
    folder.close()
    connections = [
        database.questioned(),
        open_database(tmp_path / "kept.duckdb"),
        open_folder(tmp_path / "folder"),
    ]
    for connection in connections:
        before = connection.execute("SELECT count(*), max(seq) FROM events").fetchall()
        answers = ask_checks(connection)
        assert [name for name, answer in answers.items() if answer.rows] == ["missing_events"]
        for name in ("missing_events", "duplicate_mapping"):
            assert ask(connection, find(name)) == answers[name]
        assert connection.execute("SELECT count(*), max(seq) FROM events").fetchall() == before
        assert connection.execute("SELECT count(*) FROM node_states").fetchall()[0][0] > 0
        assert len(unjudged(connection)) == 1
    ((end,),) = connections[0].execute("SELECT max(seq) FROM events").fetchall()
    prefix = Prefix(database)
    assert prefix.ask(find("missing_events"), end).rows
    assert prefix.ask(find("duplicate_mapping"), end).rows == []


def test_the_command_line_says_which_events_were_not_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """J11: on stderr, so that rows stay rows; a question by name says it as well."""
    run = tmp_path / "incident"
    shutil.copytree(INCIDENT / "rank-0000", run / "rank-0000")
    (run / "rank-0000" / "00000000000000000466.sealed").unlink()
    assert radixledger(["sql", str(run), "--checks", "--salvage", "--format", "csv"]) == 1
    out, err = capsys.readouterr()
    found = [row for row in out.splitlines()[1:] if not row.endswith(",0")]
    assert found == ["missing_events,1", "missing_ranks,1"], "rank 1 was not collected"
    said = "rank 0: events are missing at event 905; the 285 events of epoch 1 from there on can be judged page by page alone"
    assert said in " ".join(err.split())
    assert radixledger(["sql", str(run), "stale_mapping", "--salvage"]) == 0
    assert said in " ".join(capsys.readouterr().err.split())
    assert radixledger(["sql", str(run), "--salvage", "-c", "SELECT count(*) AS n FROM events"]) == 0
    assert said not in " ".join(capsys.readouterr().err.split())
