"""Reports and views: the figures of a story that is short enough to count by hand."""

from typing import Any

import pytest

from radixledger.analytics.store import Database
from radixledger.journal.events import Tombstoned
from radixledger.journal.units import NodeId

from .asked import answered, loaded, only, told
from .story import (
    FULL_LEAF,
    SWA_INTERNAL,
    Story,
    emptied,
    faces,
    first_request,
    healthy,
    pages,
    pressure,
    second_request,
)


@pytest.fixture(scope="module")
def database() -> Database:
    """One epoch of the healthy story."""
    story = Story()
    for chapter in (first_request, second_request, pressure, faces, emptied):
        chapter(story)
    return loaded(story)


def test_hit_rates_come_with_their_parts(database: Database) -> None:
    """W33: r1 18/0, r2 14/8 twice, r3 22/0 of which FULL alone had 8."""
    rows = answered(database, "hit_rate")
    assert only(rows, "rank", "requests", "prompt_tokens", "cached_tokens", "hit_rate", "full_hit_rate") == [
        (0, 4, 68, 16, 0.2353, 0.3529),
        (None, 4, 68, 16, 0.2353, 0.3529),
    ]


def test_hit_rates_are_told_by_the_reason_why_the_match_ended(database: Database) -> None:
    """R73, W19."""
    rows = answered(database, "hit_rate_by_stop")
    assert only(rows, "stop", "requests", "cached_tokens", "lost_to_window") == [
        ("no_child", 3, 16, 0),
        ("window_dead", 1, 0, 8),
    ]


def test_evictions_are_told_by_cause(database: Database) -> None:
    """W08, W09."""
    rows = answered(database, "evictions_by_cause")
    assert only(rows, "cause", "event", "nodes", "full_pages", "swa_pages") == [
        ("flush", "Removed", 4, 6, 6),
        ("evict/full_leaf", "Removed", 1, 2, 2),
        ("evict/swa_internal", "Tombstoned", 1, 0, 2),
    ]


def test_a_page_tells_its_life(database: Database) -> None:
    """J23, W17: SWA page 1 goes from r1 to the tree, is cut off, evicted, and comes back with r3."""
    rows = answered(database, "page_life", page="1", pool="swa")
    assert only(
        rows, "event", "cause", "from_kind", "from_holder", "to_kind", "to_holder", "partner", "rid"
    ) == [
        ("Extended", "extend/prefill", "free", 0, "request", 1, 1, None),
        ("Transferred", "unfinished", "request", 1, "tree", 1, 1, "r1"),
        ("Split", "unknown", "tree", 1, "tree", 2, 1, None),
        ("Tombstoned", "evict/swa_internal", "tree", 2, "free", 0, 1, None),
        ("Extended", "extend/prefill", "free", 0, "request", 4, 9, None),
        ("Healed", "unfinished/heal", "request", 4, "tree", 2, 1, "r3"),
        ("Removed", "flush", "tree", 2, "free", 0, 1, None),
    ]


def test_a_node_tells_its_life(database: Database) -> None:
    rows = answered(database, "node_life", node="2")
    assert only(rows, "event", "full_delta", "swa_delta") == [
        ("Split", 2, 2),
        ("Tombstoned", 0, -2),
        ("Healed", 0, 2),
        ("Removed", -2, -2),
    ]


def test_a_request_tells_its_timeline(database: Database) -> None:
    rows = answered(database, "request_timeline", rid="r3")
    assert [row["event"] for row in rows] == [
        "Matched", "Admitted", "Healed", "Transferred", "Transferred", "Repointed", "Locked",
        "Reclaimed", "Reclaimed", "Freed", "Unlocked", "Finished",
    ]  # fmt: skip
    freed = next(row for row in rows if row["event"] == "Freed")
    assert (freed["full_pages"], freed["swa_pages"], freed["to_kind"]) == (3, 2, "free")


def test_tombstones_tell_how_long_they_lasted_and_how_many_healed(database: Database) -> None:
    rows = answered(database, "tombstone_lifetime")
    assert only(
        rows, "cause", "tombstones", "healed", "removed", "open", "heal_rate", "median_steps_to_heal"
    ) == [
        ("evict/swa_internal", 1, 1, 0, 0, 1.0, 2.0),
    ]


def test_locks_tell_how_long_they_were_held(database: Database) -> None:
    rows = answered(database, "lock_hold_times")
    assert only(rows, "cause", "locks", "held") == [("admit", 2, 0), ("unfinished", 2, 0)]
    assert all(row["events_max"] >= row["events_median"] > 0 for row in rows)


def test_retractions_tell_when_a_request_came_back_and_what_it_cost(database: Database) -> None:
    rows = answered(database, "retractions")
    assert only(rows, "rid", "request", "tokens", "steps_away", "again_cached", "recomputed") == [
        ("r2", 2, 14, 1, 8, 6)
    ]


def test_ages_at_eviction_tell_what_was_never_used_again(database: Database) -> None:
    """J23, W28, W35: node 2 is the only one that a match ended at; its window went before itself, and came back."""
    rows = answered(database, "eviction_age")
    assert only(rows, "cause", "event", "nodes", "never_hit", "steps_median", "idle_median") == [
        ("flush", "Removed", 4, 3, 2.0, 4.0),
        ("evict/full_leaf", "Removed", 1, 1, 8.0, None),
        ("evict/swa_internal", "Tombstoned", 1, 0, 4.0, 1.0),
    ]


def test_a_window_that_was_healed_is_as_old_as_its_healing() -> None:
    """J23: a node that lost its window twice is two windows, and the second one began when it came back."""
    story = Story()
    for chapter in (first_request, second_request, pressure):
        chapter(story)
    (healed,) = told(loaded(story), "SELECT step FROM node_changes WHERE event = 'Healed' AND node = 2")
    story.tell(Tombstoned(NodeId(2), pages(1, 2), pages(1, 2), cause=SWA_INTERNAL), step=healed["step"] + 30)
    rows = answered(loaded(story), "eviction_age")
    assert only(rows, "cause", "nodes", "steps_median", "steps_max") == [("evict/swa_internal", 2, 17.0, 30)]


def test_tail_reclaims_tell_what_running_requests_gave_back(database: Database) -> None:
    """J23, R132: r3 alone gave a page back, of the 19 that all took; a second reclaim found nothing to give."""
    rows = answered(database, "tail_reclaims")
    assert only(
        rows, "cause", "requests", "never", "reclaims", "pages", "of_taken", "pages_max", "kept_max"
    ) == [("reclaim", 1, 3, 2, 1, 0.0526, 1, None)]
    (taken,) = told(
        database,
        "SELECT count(*) AS n FROM pages WHERE pool = 'swa' AND from_kind = 'free' AND to_kind = 'request'",
    )
    assert taken["n"] == 19


def test_occupancy_adds_up_to_the_pool_at_every_moment(database: Database) -> None:
    """W31."""
    rows = answered(database, "occupancy", points="10")
    assert len(rows) == 40
    parts = [
        row["request_pages"] + row["tree_pages"] + row["pending_pages"] + row["free_pages"] for row in rows
    ]
    assert parts == [{"full": 24, "swa": 24, "recurrent": 4, "host": 8}[row["pool"]] for row in rows]
    last = [row for row in rows if row["pool"] == "full"][-1]
    assert (last["tree_pages"], last["free_pages"]) == (0, 24)


def test_events_are_counted_by_type(database: Database) -> None:
    rows = {row["event"]: (row["events"], row["page_moves"]) for row in answered(database, "event_counts")}
    assert rows["Split"] == (1, 4)
    assert rows["Opened"] == (1, 0)
    assert sum(events for events, _ in rows.values()) == 75


def test_refusals_are_counted_by_reason(database: Database) -> None:
    rows = answered(database, "refusals_by_reason")
    assert only(rows, "reason", "refusals", "example") == [("pool_short", 1, "40 pages are needed")]


def test_two_runs_that_went_the_same_way_do_not_diverge() -> None:
    database = loaded(healthy("one"), healthy("two"))
    assert answered(database, "first_divergence", run="one", other="two") == []


def test_the_first_divergence_of_two_runs_is_named() -> None:
    """J24: they take one page from the same node, for different reasons."""
    stories = [Story("one"), Story("two")]
    for story, why in zip(stories, (SWA_INTERNAL, FULL_LEAF), strict=True):
        first_request(story)
        seq = story.tell(Tombstoned(NodeId(1), pages(1, 2, 3, 4), pages(1, 2, 3, 4), cause=why))
        assert seq == 16
    rows = answered(loaded(*stories), "first_divergence", run="one", other="two")
    assert only(rows, "rank", "seq", "event", "cause", "other_seq", "other_cause") == [
        (0, 16, "Tombstoned", "evict/swa_internal", 16, "evict/full_leaf"),
    ]


def rows(database: Database, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in told(database, query)]


def test_nodes_have_one_row_each(database: Database) -> None:
    assert rows(
        database,
        "SELECT node, parent, created_by, created_for, splits, tombstones, heals, removed_cause, full_pages, live"
        " FROM nodes ORDER BY node",
    ) == [
        (1, 2, "Transferred", 1, 1, 0, 0, "evict/full_leaf", 0, False),
        (2, 0, "Split", None, 0, 1, 1, "flush", 0, False),
        (3, 2, "Transferred", 3, 0, 0, 0, "flush", 0, False),
        (4, 2, "Transferred", 4, 0, 0, 0, "flush", 0, False),
        (5, 4, "Transferred", 4, 0, 0, 0, "flush", 0, False),
    ]


def test_requests_have_one_row_for_each_admission(database: Database) -> None:
    assert rows(
        database,
        "SELECT rid, request, prompt, cached_prefix, computed, stop, ended, tokens, cached, reclaimed_pages"
        " FROM requests ORDER BY request",
    ) == [
        ("r1", 1, 18, 0, 18, "no_child", "finished", 20, 16, 0),
        ("r2", 2, 14, 8, 6, "no_child", "retracted", 14, None, 0),
        ("r2", 3, 14, 8, 6, "no_child", "finished", 14, 12, 0),
        ("r3", 4, 22, 0, 22, "window_dead", "finished", 32, 20, 1),
    ]


def test_locks_pair_with_their_unlocks(database: Database) -> None:
    assert rows(
        database, "SELECT node, request, unlocked_seq > locked_seq FROM locks ORDER BY locked_seq"
    ) == [
        (1, 1, True),
        (2, 2, True),
        (2, 3, True),
        (5, 4, True),
    ]


def test_steps_have_one_row_each(database: Database) -> None:
    assert rows(
        database, "SELECT count(*), sum(tokens)::INTEGER, bool_and(ended_seq > began_seq) FROM steps"
    ) == [(6, 64, True)]


def test_mapping_spans_follow_a_mapping_from_page_to_page(database: Database) -> None:
    assert rows(
        database,
        "SELECT full_page, cleared_seq IS NOT NULL FROM mapping_spans WHERE swa_page = 2 ORDER BY set_seq",
    ) == [(2, True), (10, True), (2, True)]
