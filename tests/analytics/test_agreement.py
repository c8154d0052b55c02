"""Two witnesses: what SQL says about the real cache's journals, and what replay says about the same ones (J25)."""

from pathlib import Path
from typing import Any

import pytest

from radixledger.analytics.load import load
from radixledger.analytics.queries import ask, find, of_kind
from radixledger.analytics.store import Database
from radixledger.cache.rank import RankCache
from radixledger.journal.accounts import request_account
from radixledger.journal.events import AnyEvent, Config, Evicted, Freed
from radixledger.journal.units import NO_PAGES, RequestId
from radixledger.journal.writer import JournalWriter, Policy
from radixledger.replay.verify import verify_rank
from radixledger.tools.cli import run as radixledger
from radixledger.tools.driver import Driver, StepClock
from radixledger.tools.opening import Recording, open_rank
from radixledger.tools.streams import ConversationStream, Shape

from ..cache.driven import CHUNK_SHAPES, FULL_SHAPES, SHAPES, STATE_SHAPES, Driven, opened
from ..replay.runs import RANK, Clock, written

SAMPLE = Path(__file__).parents[1] / "data" / "mooncake_sample.jsonl"


def checked(run: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of every check of a run that has any."""
    database = Database()
    load(database, run)
    connection = database.questioned()
    answers = {check.name: ask(connection, check) for check in of_kind("check")}
    return {
        name: [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
        for name, answer in answers.items()
        if answer.rows
    }


@pytest.mark.parametrize("route", ["--unified", "--no-unified"])
def test_a_trace_that_was_driven_through_the_cache_gives_no_row_on_any_check(
    route: str, tmp_path: Path
) -> None:
    """J22, R24: with evictions, tombstones and two ranks, on the unified route and on the legacy one; replay says clean too."""
    arguments = f"{route} --dp-size 2 --full-pages 1000 --swa-pages 200 --commit-policy step --journal"
    assert radixledger(["drive", str(SAMPLE), *arguments.split(), str(tmp_path / "run")]) == 0
    assert checked(tmp_path / "run") == {}
    assert all(verify_rank(tmp_path / "run", rank).clean for rank in (RANK, type(RANK)(1)))
    database = Database()
    load(database, tmp_path / "run")
    happened = database.questioned().execute("SELECT DISTINCT event::VARCHAR FROM events").fetchall()
    assert {("Evicted",), ("Tombstoned",), ("Removed",), ("Finished",)} <= set(happened)


@pytest.mark.parametrize("shape", [*SHAPES, *FULL_SHAPES, *STATE_SHAPES], ids=str)
def test_a_cache_that_is_driven_by_chance_breaks_no_law_of_either_witness(
    shape: tuple[int, ...], tmp_path: Path
) -> None:
    """J19, J25: every command, over a restart. The rank is not closed: callers of its faces still hold pages."""
    written(tmp_path / "run", 160, seed=4, shape=shape, close=False)
    written(tmp_path / "run", 80, seed=5, shape=shape, close=False, resume=True)
    assert verify_rank(tmp_path / "run", RANK).clean
    assert checked(tmp_path / "run") == {}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_rollback_route_breaks_no_law_of_either_witness(
    shape: tuple[int, int, int, int], tmp_path: Path
) -> None:
    """J25, R6: over a restart, with a snapshot on the way; no check takes its rules for faults."""
    written(tmp_path / "run", 160, seed=4, shape=shape, route="legacy", snapshots=(50,), close=False)
    written(tmp_path / "run", 80, seed=5, shape=shape, route="legacy", close=False, resume=True)
    assert verify_rank(tmp_path / "run", RANK).clean
    assert checked(tmp_path / "run") == {}


@pytest.mark.parametrize("route", CHUNK_SHAPES)
def test_a_route_without_a_tree_breaks_no_law_of_either_witness(route: str, tmp_path: Path) -> None:
    """J25, R195, R198: over a restart, with a snapshot on the way; nothing is ever kept."""
    shape = CHUNK_SHAPES[route]
    written(tmp_path / "run", 160, seed=4, shape=shape, route=route, snapshots=(50,), close=False)
    written(tmp_path / "run", 80, seed=5, shape=shape, route=route, close=False, resume=True)
    assert verify_rank(tmp_path / "run", RANK).clean
    assert checked(tmp_path / "run") == {}
    database = Database()
    load(database, tmp_path / "run")
    asked = database.questioned().execute("SELECT sum(hit), sum(asked) > 0 FROM matches").fetchone()
    assert asked == (0, True)


def spoiled(run: Path, *events: AnyEvent) -> int:
    """A driven run that ends with these events, told by a writer gone wrong; the number of the first of them."""
    writer = JournalWriter.open(run, opened(redaction="plain"), clock=Clock())
    Driven(7, recorder=writer).run(60)
    first = int(writer.next_seq)
    for event in events:
        writer.append(event)
    writer.end_command()
    writer.close()
    return first


def test_a_double_free_is_the_same_event_for_both(tmp_path: Path) -> None:
    """J25: a page is lent, given back, and given back again."""
    writer = JournalWriter.open(tmp_path / "run", opened(redaction="plain"), clock=Clock())
    cache = Driven(7, recorder=writer).run(60).cache
    page, _ = cache.alloc(1)
    cache.free(page)
    first = int(writer.last_seq)
    second = int(writer.next_seq)
    writer.append(Freed(int(request_account(RequestId(0))), page, NO_PAGES, NO_PAGES))
    writer.end_command()
    writer.close()
    report = verify_rank(tmp_path / "run", RANK)
    (row,) = checked(tmp_path / "run")["double_free"]
    assert report.findings[0].seq == second == row["second_seq"]
    assert report.findings[0].pages == [row["page"]]
    assert row["first_seq"] == first


def test_a_wrong_credit_is_the_same_event_for_both(tmp_path: Path) -> None:
    seq = spoiled(tmp_path / "run", Evicted(3, 0, 3, 0, 0))
    report = verify_rank(tmp_path / "run", RANK)
    found = checked(tmp_path / "run")
    assert [finding.seq for finding in report.findings] == [seq]
    assert [row["seq"] for row in found["credit_differs_from_delta"]] == [seq]
    assert list(found) == ["credit_differs_from_delta"]


def test_every_heal_is_one_of_a_tombstone_that_the_report_counts_upper_parts_of_splits_too(
    tmp_path: Path,
) -> None:
    """A tombstone that was split heals in parts, under two node numbers."""
    clock = StepClock()
    config = Config(8, 120, 40, 20, rows=8, context_pages=64)
    cache = open_rank(RankCache, config, Recording(tmp_path / "run", Policy.STEP), clock=clock)
    shape = Shape(conversations=30, turns=4, system=40, user=30, answer=12, active=10)
    driver = Driver(cache, ConversationStream(shape), chunk_tokens=48, max_running=5, clock=clock)
    while driver.step():
        pass
    cache.close()
    database = Database()
    load(database, tmp_path / "run")
    answer = ask(database.questioned(), find("tombstone_lifetime"))
    counted = {row[answer.columns.index("cause")]: row[answer.columns.index("healed")] for row in answer.rows}
    assert counted["cut"] > 0
    assert sum(counted.values()) == cache.state.totals.healed
