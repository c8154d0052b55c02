"""Which ownership transitions the tests play and which a run shows, side by side (N19)."""

from radixledger.analytics.queries import ask_sql
from radixledger.analytics.store import Database
from radixledger.journal.accounts import request_account
from radixledger.journal.causes import Operation, cause
from radixledger.journal.events import Allocated, Freed
from radixledger.journal.units import RequestId

from ..transitions_table import PATH, listed
from .asked import answered, loaded, only
from .story import Story, first_request, pages


def test_the_kinds_that_are_told_as_tested_are_those_that_the_plays_are_held_against() -> None:
    """N19: nobody calls a kind tested that no play has to show; a kind that is played by chance may stand beside them."""
    database = Database()
    rows = ask_sql(
        database.connection, "SELECT pool, from_kind, to_kind, event, cause, events FROM tested_transitions"
    ).rows
    database.close()
    assert listed() - {tuple(row[:-1]) for row in rows} == set(), (
        f"python -m tests.transitions_table ({PATH.name})"
    )
    assert all(row[-1] > 0 for row in rows)
    assert len({tuple(row[:-1]) for row in rows}) == len(rows)


def test_a_run_stands_beside_the_tests() -> None:
    """N19: what both show, what the tests alone show, and first of all what nothing has proven."""
    story = Story()
    first_request(story)
    given, page = request_account(RequestId(0)), pages(40)
    story.tell(Allocated(RequestId(0), page, pages(20), cause(Operation.ALLOC)))
    story.tell(Freed(given, page, page, pages(20), cause=cause(Operation.DRILL)))
    rows = answered(loaded(story), "transition_coverage")
    unproven = [row for row in rows if row["seen"] == "run only"]
    assert only(
        unproven, "pool", "from_kind", "to_kind", "event", "cause", "tested_events", "events", "pages"
    ) == [
        ("full", "request", "free", "Freed", "drill", 0, 1, 1),
        ("swa", "request", "free", "Freed", "drill", 0, 1, 1),
    ]
    assert rows[: len(unproven)] == unproven
    both = [row for row in rows if row["seen"] == "both"]
    assert {row["event"] for row in both} >= {"Allocated", "Extended"}
    assert all(row["events"] and row["tested_events"] for row in both)
    assert {row["events"] for row in rows if row["seen"] == "tests only"} == {0}
