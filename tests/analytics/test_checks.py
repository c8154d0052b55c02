"""The checks: silent about what is healthy, and each tells of its own fault with its own row.

Covers J22 and the ledger identities R155, R156, R161-R166, R169, R172.
"""

import pytest

from radixledger.analytics.queries import of_kind
from radixledger.journal.accounts import PENDING
from radixledger.journal.events import (
    Allocated,
    Closed,
    Evicted,
    Freed,
    Gap,
    GroupFlushed,
    GroupOpened,
    Locked,
    Matched,
    Removed,
    Repointed,
    Tombstoned,
    Unlocked,
)
from radixledger.journal.units import BoundaryId, NodeId, RequestId, TokenCount

from .asked import answered, findings, loaded, only
from .faults import ALLOC, FAULTS
from .story import (
    COMPOSITE,
    EVICT,
    FULL_LEAF,
    SWA_LOCKED_LEAF,
    UNFINISHED,
    Row,
    Story,
    admit,
    extend,
    first_request,
    healthy,
    insert,
    pages,
    request,
)

TWENTY = RequestId(20)


def test_a_healthy_run_of_two_ranks_gives_no_row_on_any_check() -> None:
    """J22. The ranks use equal page, node and request numbers, and one of them was restarted."""
    assert findings(healthy(), healthy(rank=1)) == {}


def test_every_check_has_a_fault_that_it_is_shown_to_find() -> None:
    assert FAULTS.keys() | {"ledger_pair_capacity"} == {check.name for check in of_kind("check")}


@pytest.fixture(scope="module")
def told_by_run() -> dict[str, dict[str, list[Row]]]:
    """Every fault in a run of its own, as a first thing and behind a restart: findings by run and check."""
    stories = []
    for name in FAULTS:
        early, late = Story(name), healthy(f"{name}, later")
        late.open()
        for story in (early, late):
            first_request(story)
            FAULTS[name](story)
            stories += [story, healthy(story.run, rank=1)]
    told: dict[str, dict[str, list[Row]]] = {}
    for check, rows in findings(*stories).items():
        for row in rows:
            told.setdefault(row["run"], {}).setdefault(check, []).append(row)
    return told


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_gives_exactly_its_row_on_exactly_its_check(
    name: str, told_by_run: dict[str, dict[str, list[Row]]]
) -> None:
    """J22, R155, R156, R161-R166, R169, R172: a second, healthy rank lies beside it."""
    story = Story(name)
    first_request(story)
    expected = FAULTS[name](story)
    found = told_by_run[name]
    assert list(found) == [name]
    (row,) = found[name]
    assert {column: row[column] for column in expected} == expected
    assert row["rank"] == 0


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_behind_a_restart_too(
    name: str, told_by_run: dict[str, dict[str, list[Row]]]
) -> None:
    (found,) = told_by_run[f"{name}, later"].items()
    assert (found[0], len(found[1])) == (name, 1)


def test_a_pool_that_has_nothing_from_its_first_ledger_on_is_told() -> None:
    """R162: nothing drifts, and yet it is not what was built."""
    story = Story("empty")
    story.ledger("idle", swa_capacity=0, swa_available=0)
    (row,) = findings(story)["ledger_capacity_drift"]
    assert (row["pool"], row["capacity"], row["first_capacity"], row["built_with"]) == ("swa", 0, 0, 96)


def test_runs_that_are_a_pair_must_have_pools_of_one_capacity() -> None:
    """R164."""
    unified, legacy = Story("new"), Story("old", route="legacy", capacity=20)
    for story in (unified, legacy):
        story.ledger("idle")
    found = findings(unified, legacy)
    assert list(found) == ["ledger_pair_capacity"]
    assert only(
        found["ledger_pair_capacity"], "rank", "pool", "run", "capacity", "other_run", "other_capacity"
    ) == [
        (0, "full", "old", 80, "new", 96),
        (0, "swa", "old", 80, "new", 96),
    ]


def test_runs_with_different_pair_labels_are_not_compared() -> None:
    unified, legacy = Story("new"), Story("old", route="legacy", capacity=20)
    for story in (unified, legacy):
        story.ledger("idle")
    database = loaded(unified, legacy)
    database.label("old", {"pair": "b"})
    assert answered(database, "ledger_pair_capacity") == []


def with_the_first_request() -> Story:
    story = Story()
    first_request(story)
    return story


def test_a_double_free_is_found_where_the_counts_are_even() -> None:
    """J22, B14: of two pages one is given back twice and the other never; a balance would not see it."""
    story = with_the_first_request()
    story.tell(Allocated(TWENTY, pages(5, 6), pages(), ALLOC))
    story.tell(Freed(request(20), pages(5), pages(), pages(), cause=COMPOSITE))
    story.tell(Freed(request(20), pages(5), pages(), pages(), cause=COMPOSITE))
    found = findings(story)
    assert list(found) == ["double_free"]
    assert only(found["double_free"], "page", "alloc_seq", "first_seq", "second_seq", "next_seq") == [
        (5, 16, 17, 18, None)
    ]


def test_a_page_named_twice_in_one_event_is_freed_twice() -> None:
    story = with_the_first_request()
    story.tell(Allocated(TWENTY, pages(5), pages(), ALLOC))
    seq = story.tell(Freed(request(20), pages(5, 5), pages(), pages(), cause=COMPOSITE))
    assert only(findings(story)["double_free"], "page", "first_seq", "second_seq") == [(5, seq, seq)]


def test_a_page_that_was_never_handed_out_cannot_be_given_back() -> None:
    story = Story()
    seq = story.tell(Freed(request(20), pages(), pages(), pages(7), cause=COMPOSITE))
    (row,) = findings(story)["double_free"]
    assert (row["pool"], row["page"], row["first_seq"], row["first_event"]) == ("swa", 7, 1, "Opened")
    assert (row["alloc_seq"], row["second_seq"]) == (None, seq)


def test_a_group_that_is_flushed_twice_frees_twice() -> None:
    """B07."""
    story = with_the_first_request()
    story.tell(Allocated(TWENTY, pages(5), pages(), ALLOC))
    story.tell(GroupOpened())
    story.tell(Freed(request(20), pages(5), pages(), pages(), PENDING, cause=COMPOSITE))
    first = story.tell(GroupFlushed(pages(5), pages()))
    second = story.tell(GroupFlushed(pages(5), pages()))
    found = findings(story)
    assert list(found) == ["double_free", "group_not_kept"]
    assert only(found["double_free"], "first_seq", "second_seq", "giver_kind") == [(first, second, "pending")]
    assert only(found["group_not_kept"], "fault", "seq") == [("ended without a group", second)]


def test_a_page_of_the_tree_that_its_former_request_frees_is_a_foreign_free() -> None:
    """B12: the row still names a page that the tree has by now."""
    story = with_the_first_request()
    seq = story.tell(Freed(request(1), pages(4), pages(4), pages(4), cause=COMPOSITE))
    found = findings(story)
    assert list(found) == ["foreign_free"]
    assert only(found["foreign_free"], "pool", "page", "owner_kind", "owner", "seq") == [
        ("full", 4, "tree", 1, seq),
        ("swa", 4, "tree", 1, seq),
    ]


def test_a_leaf_made_of_pages_that_nobody_gave_has_two_owners() -> None:
    story = with_the_first_request()
    seq = story.tell(insert(story, 20, 2, 1, [6, 7], [6, 7]))
    assert only(findings(story)["two_owners"], "pool", "page", "owner_kind", "seq") == [
        ("full", 6, "free", seq),
        ("full", 7, "free", seq),
        ("swa", 6, "free", seq),
        ("swa", 7, "free", seq),
    ]


def test_page_0_that_is_handed_out_has_the_reserved_account_as_its_other_owner() -> None:
    story = with_the_first_request()
    story.tell(Allocated(TWENTY, pages(0), pages(), ALLOC))
    assert only(findings(story)["two_owners"], "page", "owner_kind") == [(0, "reserved")]


def test_a_page_that_a_removed_node_keeps_is_a_leak() -> None:
    """B21: the node went, and page 4 did not go with it."""
    story = with_the_first_request()
    story.tell(Removed(NodeId(1), NodeId(0), pages(1, 2, 3), pages(1, 2, 3, 4), cause=FULL_LEAF))
    story.tell(Closed(b""))
    found = findings(story)
    assert only(found["leak_at_end"], "pool", "page", "holder_kind", "holder") == [("full", 4, "tree", 1)]


def test_what_a_live_request_holds_at_the_end_is_no_leak() -> None:
    story = with_the_first_request()
    admit(story, 2, "r2", 20, hit=16, node=1)
    extend(story, 2, 4, [6], [6])
    story.tell(Closed(b""))
    assert findings(story) == {}


def test_what_a_killed_rank_held_is_no_leak() -> None:
    story = with_the_first_request()
    story.tell(Allocated(TWENTY, pages(5), pages(5), ALLOC))
    assert findings(story) == {}


def test_a_full_page_may_wait_for_its_free_swa_but_not_over_an_allocation() -> None:
    """A4: `free_full` leaves the mapping; the `free_swa` must come before anybody can get the page."""
    story = with_the_first_request()
    mapped = story.tell(Allocated(TWENTY, pages(5), pages(5), ALLOC))
    released = story.tell(Freed(request(20), pages(5), pages(), pages(), cause=COMPOSITE))
    assert findings(story) == {}
    story.tell(Allocated(TWENTY, pages(6), pages(6), ALLOC))
    story.tell(Freed(request(20), pages(), pages(5), pages(5), cause=COMPOSITE))
    found = findings(story)
    assert list(found) == ["stale_mapping"]
    assert only(found["stale_mapping"], "pool", "full_page", "set_seq", "released_seq") == [
        ("full", 5, mapped, released)
    ]


def test_a_mapping_that_outlives_the_run_is_stale() -> None:
    story = with_the_first_request()
    story.tell(Removed(NodeId(1), NodeId(0), pages(1, 2, 3, 4), pages(), cause=FULL_LEAF))
    story.tell(Closed(b""))
    found = findings(story)
    assert only(found["stale_mapping"], "pool", "full_page") == [("full", page) for page in (1, 2, 3, 4)]
    assert only(found["leak_at_end"], "pool", "page") == [("swa", page) for page in (1, 2, 3, 4)]


def test_a_full_page_that_is_mapped_twice_has_two_swa_pages() -> None:
    story = with_the_first_request()
    story.tell(Allocated(TWENTY, pages(5), pages(5), ALLOC))
    story.tell(Freed(request(20), pages(5), pages(), pages(), cause=COMPOSITE))
    seq = story.tell(Allocated(TWENTY, pages(5), pages(6), ALLOC))
    found = findings(story)["duplicate_mapping"]
    assert only(found, "full_page", "other_swa_page", "swa_page", "seq") == [(5, 5, 6, seq)]


def test_an_eviction_is_credited_by_its_own_events_only() -> None:
    """R105: what an earlier eviction freed does not count for this one."""
    story = with_the_first_request()
    story.tell(Tombstoned(NodeId(1), pages(1, 2, 3, 4), pages(1, 2, 3, 4), cause=SWA_LOCKED_LEAF))
    story.tell(Evicted(0, 4, 0, 4, 1, EVICT))
    assert findings(story) == {}
    seq = story.tell(Evicted(0, 4, 0, 4, 0, EVICT))
    assert only(findings(story)["credit_differs_from_delta"], "seq", "freed_swa") == [(seq, 0)]


def test_a_lock_of_nobody_who_runs_must_be_given_back_before_the_end() -> None:
    """R113."""
    story = with_the_first_request()
    admit(story, 2, "r2", 20, hit=16, node=1)
    seq = story.tell(Locked(NodeId(1), BoundaryId(1), request=TWENTY))
    story.tell(Closed(b""))
    found = findings(story)
    assert list(found) == ["unbalanced_lock"]
    assert only(found["unbalanced_lock"], "fault", "request", "seq") == [("still locked at the end", 20, seq)]


def test_locks_of_one_node_balance_for_each_boundary() -> None:
    story = with_the_first_request()
    story.tell(Locked(NodeId(1), BoundaryId(1), request=TWENTY))
    seq = story.tell(Unlocked(NodeId(1), BoundaryId(0), TWENTY))
    assert only(findings(story)["unbalanced_lock"], "boundary", "seq") == [(0, seq)]


def test_a_row_is_repointed_to_a_path_that_a_match_can_use() -> None:
    """R134: the tombstone at the end of the path is no window."""
    story = with_the_first_request()
    story.tell(Tombstoned(NodeId(1), pages(1, 2, 3, 4), pages(1, 2, 3, 4), cause=SWA_LOCKED_LEAF))
    seq = story.tell(Repointed(TWENTY, TokenCount(0), pages(), TokenCount(16), NodeId(1), UNFINISHED))
    found = findings(story)
    assert list(found) == ["path_shorter_than_window"]
    assert only(found["path_shorter_than_window"], "node", "event", "live_tokens", "seq") == [
        (1, "Repointed", 0, seq)
    ]


def test_a_short_path_that_is_live_from_the_root_is_long_enough() -> None:
    """A17."""
    story = Story()
    admit(story, 1, "r1", 4)
    extend(story, 1, 4, [1], [1])
    story.tell(insert(story, 1, 1, 0, [1], [1]))
    assert findings(story) == {}


def test_a_window_may_reach_over_several_nodes() -> None:
    story = with_the_first_request()
    admit(story, 2, "r2", 20, hit=16, node=1)
    extend(story, 2, 4, [6], [6])
    story.tell(insert(story, 2, 2, 1, [6], [6]))
    assert findings(story) == {}


def test_an_event_that_names_the_request_of_another_rank_is_found() -> None:
    """R27: request 4 was admitted by rank 1 only."""
    story = with_the_first_request()
    seq = story.tell(Matched("r3", RequestId(4), TokenCount(8), TokenCount(0), TokenCount(0), NodeId(0), 1))
    found = findings(story, healthy(rank=1))
    assert list(found) == ["cross_rank_touch"]
    assert only(found["cross_rank_touch"], "rank", "seq", "touched") == [
        (0, seq, "request 4 of another rank")
    ]


def test_an_event_that_names_the_node_of_another_rank_is_found() -> None:
    story = with_the_first_request()
    seq = story.tell(Locked(NodeId(5), BoundaryId(5), request=TWENTY))
    found = findings(story, healthy(rank=1))
    assert only(found["cross_rank_touch"], "rank", "seq", "touched") == [(0, seq, "node 5 of another rank")]


def test_a_journal_in_the_folder_of_another_rank_is_found() -> None:
    story = with_the_first_request()
    story.rank = healthy(rank=1).rank
    assert only(findings(story)["cross_rank_touch"], "rank", "seq", "touched") == [
        (1, 1, "journal of rank 0")
    ]


def test_a_gap_is_told_and_nothing_is_judged_across_it() -> None:
    """J11: the lost events may have moved every page."""
    story = with_the_first_request()
    lost = story.tell(Gap(3, "the disk was full"))
    story.tell(Freed(request(20), pages(7), pages(7), pages(7), cause=COMPOSITE))
    found = findings(story)
    assert list(found) == ["missing_events"]
    assert only(found["missing_events"], "seq", "lost", "reason") == [(lost, 3, "the disk was full")]


def test_behind_a_gap_pages_are_judged_by_what_happened_since() -> None:
    story = with_the_first_request()
    story.tell(Gap(3, "the disk was full"))
    first = story.tell(Freed(request(20), pages(7), pages(7), pages(7), cause=COMPOSITE))
    story.tell(Freed(request(20), pages(7), pages(), pages(), cause=COMPOSITE))
    assert only(findings(story)["double_free"], "page", "first_seq") == [(7, first)]


def test_the_first_move_of_a_page_is_not_judged_where_a_journal_begins_at_a_snapshot() -> None:
    """Without a baseline every early free would look like a fault."""
    story = healthy()
    whole, story.frames = story.frames, story.frames[9:]
    assert findings(story) == {}
    story.frames = whole
    again = story.tell(Freed(request(1), pages(5), pages(), pages(), cause=COMPOSITE))
    story.frames = story.frames[9:]
    assert only(findings(story)["double_free"], "second_seq") == [(again,)]
