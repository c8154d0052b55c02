"""Every law holds between the commands of a lawful cache, and fails on a state that was spoiled for it."""

from collections.abc import Iterator

import numpy as np
import pytest

from radixledger.cache.keys import raw_key
from radixledger.cache.laws import of_pages as pages
from radixledger.cache.laws import of_requests as requests
from radixledger.cache.laws import of_routes as routes
from radixledger.cache.laws import of_the_host as laws_of_the_host
from radixledger.cache.laws import of_the_tree as tree
from radixledger.cache.laws import of_use as use
from radixledger.cache.laws.invariants import LAWS, broken_laws
from radixledger.cache.laws.law import FINDINGS_PER_LAW, Breach, Law, law
from radixledger.cache.rank import RankCache
from radixledger.cache.running import Running, Writes
from radixledger.cache.state import State
from radixledger.cache.traits import TRAITS
from radixledger.journal.accounts import FREE, PENDING, RESERVED, Kind, request_account, tree_account
from radixledger.journal.units import NO_PAGES, UNBOUND, BoundaryId, NodeId, Pages, RequestId

from .driven import FULL_SHAPES, SHAPES, STATE_SHAPES, Driven, opened
from .spoiled import Spoil, check_that_it_fails, name, set_of
from .test_laws_of_states import SPOILS as STATE_SPOILS


def quiet_state() -> State:
    """Page size 4, window 5, made by hand.

    Requests d and e have pages 1 to 4 of the tree, node 1 and below it node 6, locked by both; e has pages 14 and 15
    of its own. Node 4, pages 8 to 11, is a tombstone; below it node 5, pages 12 and 13, is a live leaf. Its digest was
    asked for, so that what is spoiled now stands in kept sums already.
    """
    cache = RankCache(opened())
    for rid, text in (("a", [1] * 12 + [2] * 8), ("b", [1] * 12 + [3] * 8), ("c", [5] * 24)):
        request = cache.admit(rid, raw_key(text), len(text)).request
        cached = int(cache.state.rows.length[cache.state.row_of(request)])
        cache.extend(np.array([request], np.int64), np.array([len(text) - cached], np.int32))
        cache.finish(request, raw_key(text))
    cache.admit("d", raw_key([1] * 12 + [2] * 8), 20)
    cache.evict(0, 7)
    running = cache.admit("e", raw_key([1] * 12 + [2] * 8), 20).request
    cache.extend(np.array([running], np.int64), np.array([6], np.int32))
    cache.step_began(1, np.array([running]), np.array([16], np.int32), np.array([22], np.int32))
    cache.digest()
    return cache.state


UPPER, ANCHOR, TOMBSTONE, LEAF = 1, 6, 4, 5
OWN, OTHER = 41, 32
"""The numbers of requests e and d."""


def page(number: int) -> Pages:
    return Pages(number.to_bytes(4, "little"))


def row_of(state: State, request: int = OWN) -> int:
    return state.requests[request].row


def give(state: State, number: int, account: int) -> None:
    """Change the owner of a FULL page with its queue, counts and digest, as a move would."""
    state.full.move(page(number), int(state.full.account[number]), account, state.seq)


def two_owners(state: State) -> None:
    state.rows.full_table[row_of(state), 5] = 12


def a_node_without_its_page(state: State) -> None:
    give(state, 13, request_account(UNBOUND))


def a_route_without_a_tree(state: State) -> None:
    state.traits = TRAITS["swa_chunk"]


def a_leak(state: State) -> None:
    state.rows.length[row_of(state)] = 20


def a_shared_swa_page(state: State) -> None:
    state.mapping.swa_of[14] = state.mapping.swa_of[15]


def a_foreign_mapping(state: State) -> None:
    state.mapping.swa_of[[12, 14]] = state.mapping.swa_of[[14, 12]]


def another_parent(state: State) -> None:
    state.nodes[LEAF].parent = state.nodes[UPPER]


def a_first_page_of_another_key(state: State) -> None:
    node = state.nodes[LEAF]
    node.key = bytes(16) + node.key[16:]


def the_second_lock_of_a_node_alone(state: State) -> None:
    state.nodes[ANCHOR].swa_locks += 1


def a_released_receipt(state: State) -> None:
    state.requests[OTHER].receipt = None


def an_old_ancestor(state: State) -> None:
    state.nodes[ANCHOR].swa_tick, state.nodes[UPPER].swa_tick = state.clock - 1, state.clock


def a_forgotten_leaf(state: State) -> None:
    state.leaf_order.clear()


def an_order_upside_down(state: State) -> None:
    state.window_order.sort(reverse=True)


def a_page_of_another_path(state: State) -> None:
    state.rows.full_table[row_of(state), 1] = 12


def a_hidden_window(state: State) -> None:
    state.rows.swa_table[row_of(state), 3] = 0


def a_gap_before_the_end(state: State) -> None:
    state.nodes[ANCHOR].swa = NO_PAGES


def a_dead_leaf_on_a_route_of_live_ends(state: State) -> None:
    state.traits = TRAITS["legacy"]
    state.nodes[LEAF].swa = NO_PAGES


def a_dead_anchor_on_a_route_of_live_ends(state: State) -> None:
    state.traits = TRAITS["legacy"]
    state.nodes[ANCHOR].swa = NO_PAGES


def set_in(column: str, value: int) -> Spoil:
    """Spoil one number of the row of request e."""

    def spoil(state: State) -> None:
        getattr(state.rows, column)[row_of(state)] = value

    return spoil


def set_on_state(field: str, value: object) -> Spoil:
    """Spoil one field of the state."""

    def spoil(state: State) -> None:
        setattr(state, field, value)

    return spoil


SPOILS: list[tuple[Law, Spoil]] = [
    (pages.every_account_names_a_holder_that_exists, lambda state: give(state, 14, request_account(RequestId(99)))),
    (pages.every_account_names_a_holder_that_exists, lambda state: give(state, 13, tree_account(NodeId(99)))),
    (pages.page_0_alone_is_reserved, lambda state: give(state, 60, RESERVED)),
    (pages.every_page_has_one_owner, two_owners),
    (pages.every_tree_page_stands_in_its_node, a_node_without_its_page),
    (pages.every_request_page_stands_in_its_row, a_leak),
    (pages.every_free_page_waits_once_in_the_queue, lambda state: state.full.free.extend(page(14))),
    (pages.every_free_page_waits_once_in_the_queue, lambda state: state.full.free.extend(state.full.free[:4])),
    (pages.every_free_page_waits_once_in_the_queue, lambda state: state.swa.free.__delitem__(slice(4))),
    (pages.every_pending_page_waits_once_in_the_group, lambda state: state.full.pending.extend(page(60))),
    (pages.nothing_is_pending_outside_a_group, lambda state: give(state, 60, PENDING)),
    (pages.counts_of_pages_equal_a_recount, lambda state: state.swa.held.__setitem__(Kind.TREE, 3)),
    (pages.no_two_full_pages_share_an_swa_page, a_shared_swa_page),
    (pages.a_mapping_joins_pages_of_one_owner, a_foreign_mapping),
    (pages.every_held_swa_page_is_mapped, lambda state: state.mapping.clear(page(14), page(14))),
    (pages.only_a_dangling_page_is_mapped_and_nobodys, set_on_state("dangling", 1)),
    (pages.only_a_dangling_page_is_mapped_and_nobodys, lambda state: give(state, 14, FREE)),
    (pages.the_count_of_mappings_equals_a_recount, lambda state: setattr(state.mapping, "nonzero", 3)),
    (pages.a_node_shows_the_mapping_of_its_pages, lambda state: state.mapping.set(page(8), page(39))),
    (pages.a_node_shows_the_mapping_of_its_pages, set_of(LEAF, "swa", page(12) + page(14))),
    (tree.the_root_is_empty_and_first, set_of(0, "full", page(60))),
    (tree.the_root_is_empty_and_first, set_of(0, "id", 1)),
    (tree.a_tree_grows_only_where_there_is_one, a_route_without_a_tree),
    (tree.every_node_hangs_in_its_parent, another_parent),
    (tree.every_node_hangs_in_its_parent, a_first_page_of_another_key),
    (tree.every_node_hangs_in_its_parent, lambda state: state.nodes.pop(LEAF)),
    (tree.every_node_hangs_in_its_parent, set_of(LEAF, "id", 7)),
    (tree.every_node_has_whole_pages, set_of(LEAF, "swa", page(12))),
    (tree.every_node_has_whole_pages, set_of(LEAF, "key", b"")),
    (tree.every_node_has_whole_pages, set_of(LEAF, "pages", 0)),
    (tree.a_node_ends_behind_its_parent, set_of(LEAF, "end", 2)),
    (tree.numbers_of_nodes_and_marks_are_used_once, set_on_state("next_node", 5)),
    (tree.numbers_of_nodes_and_marks_are_used_once, set_on_state("next_boundary", 1)),
    (tree.numbers_of_nodes_and_marks_are_used_once, set_of(LEAF, "boundary", BoundaryId(1))),
    (tree.no_lock_count_is_negative, set_of(LEAF, "swa_locks", -1)),
    (tree.no_lock_count_is_negative, set_of(LEAF, "holds", -1)),
    (tree.a_node_is_held_by_its_receipts_and_its_held_children, set_of(UPPER, "holds", 2)),
    (tree.a_locked_window_lies_on_a_held_path, set_of(LEAF, "swa_locks", 1)),
    (tree.a_locked_window_lies_on_a_held_path, set_of(ANCHOR, "swa_locks", 1)),
    (tree.locks_are_those_of_the_receipts, the_second_lock_of_a_node_alone),
    (tree.locks_are_those_of_the_receipts, set_of(UPPER, "swa_locks", 1)),
    (tree.protected_pages_equal_a_recount, set_on_state("full_protected", 0)),
    (tree.protected_pages_equal_a_recount, set_on_state("swa_protected", 5)),
    (tree.no_tick_is_ahead_of_the_clock, set_of(LEAF, "swa_tick", 1 << 40)),
    (tree.no_tick_is_ahead_of_the_clock, set_on_state("clock", 0)),
    (tree.what_was_refreshed_last_ages_towards_the_root, an_old_ancestor),
    (tree.every_victim_is_in_its_order, a_forgotten_leaf),
    (tree.every_victim_is_in_its_order, set_of(LEAF, "queued", 0)),
    (tree.every_victim_is_in_its_order, set_of(LEAF, "tick", 0)),
    (tree.every_victim_is_in_its_order, lambda state: state.window_order.append(state.window_order[0])),
    (use.every_spare_page_waits_in_its_order, set_of(LEAF, "queued", 7)),
    (use.a_prompt_waits_until_its_answer_is_taken_up, set_of(LEAF, "asked", 1)),
    (use.a_prompt_waits_until_its_answer_is_taken_up, set_of(UPPER, "answers", NodeId(UPPER))),
    (tree.an_order_of_victims_is_a_heap, an_order_upside_down),
    (requests.a_row_belongs_to_its_request, set_in("request", 33)),
    (requests.a_row_belongs_to_its_request, lambda state: state.rids.clear()),
    (requests.a_row_belongs_to_its_request, set_on_state("next_request", 4)),
    (requests.a_row_without_a_request_is_empty, lambda state: state.rows.free.pop()),
    (requests.a_row_without_a_request_is_empty, lambda state: state.rows.full_table.__setitem__((7, 3), 60)),
    (requests.a_row_without_a_request_is_empty, lambda state: state.rows.cursor.__setitem__(7, 4)),
    (requests.lengths_of_a_row_line_up, set_in("cursor", 12)),
    (requests.lengths_of_a_row_line_up, set_in("cursor", 17)),
    (requests.lengths_of_a_row_line_up, set_in("length", 15)),
    (requests.lengths_of_a_row_line_up, set_in("length", 1000)),
    (requests.a_reclaim_is_due_where_the_cursor_says, set_in("reclaim_at", 0)),
    (requests.a_row_begins_with_the_path_of_its_node, a_page_of_another_path),
    (requests.a_row_begins_with_the_path_of_its_node, set_in("protected", 12)),
    (requests.a_row_shows_nothing_behind_its_length, lambda state: state.rows.swa_table.__setitem__((1, 6), 14)),
    (requests.a_row_shows_nothing_behind_its_length, lambda state: state.rows.full_table.__setitem__((1, 4), 0)),
    (requests.a_row_shows_the_window_that_is_mapped, a_hidden_window),
    (requests.a_row_shows_the_window_that_is_mapped, lambda state: state.rows.swa_table.__setitem__((1, 0), 1)),
    (requests.every_live_window_can_be_read, a_hidden_window),
    (requests.every_live_window_can_be_read, lambda state: state.rows.swa_table.__setitem__((1, 5), 0)),
    (requests.the_path_of_a_request_ends_in_a_live_window, a_gap_before_the_end),
    (requests.a_request_has_the_receipt_of_its_path, a_released_receipt),
    (requests.a_running_step_has_live_requests, lambda state: state.running.update({2: Running.of(Writes((99,), (0,), (1,)))})),
    (routes.a_leaf_is_never_a_tombstone, a_dead_leaf_on_a_route_of_live_ends),
    (routes.a_locked_window_has_no_gap, a_dead_anchor_on_a_route_of_live_ends),
    (requests.the_digest_equals_a_recount, set_of(LEAF, "tick", 1)),
    (requests.the_digest_equals_a_recount, lambda state: setattr(state.mapping.kept, "_total", 1)),
    (requests.the_digest_equals_a_recount, lambda state: setattr(state.full.kept, "_total", 1)),
]  # fmt: skip


@pytest.mark.parametrize(("broken", "spoil"), SPOILS, ids=name)
def test_a_law_fails_on_a_state_that_was_spoiled_for_it(broken: Law, spoil: Spoil) -> None:
    """J28: each law is shown able to fail."""
    check_that_it_fails(broken, spoil, quiet_state())


def test_every_law_has_a_state_that_breaks_it() -> None:
    assert {law for law, _ in [*SPOILS, *STATE_SPOILS]} == set(LAWS) - set(laws_of_the_host.LAWS), (
        "those have theirs in test_host_laws"
    )


def test_every_law_is_named_by_what_holds_and_says_why() -> None:
    assert len({name(law) for law in LAWS}) == len(LAWS)
    assert [name(law) for law in LAWS if "_" not in name(law) or not law.__doc__] == []


@pytest.mark.parametrize("shape", [*SHAPES, *FULL_SHAPES, *STATE_SHAPES], ids=str)
@pytest.mark.parametrize("seed", range(2))
def test_all_laws_hold_between_any_two_commands(seed: int, shape: tuple[int, ...]) -> None:
    """J14: the whole state after every command of a random run, with groups, receipts of callers and device steps."""
    driven = Driven(seed, shape)
    for _ in driven.steps(200):
        assert list(broken_laws(driven.cache.state)) == []
    driven.drain()
    assert list(broken_laws(driven.cache.state)) == []


def test_a_law_looks_and_does_not_touch() -> None:
    driven = Driven(5).run(120)
    before = driven.cache.digest(), list(driven.cache.state.leaf_order), driven.cache.state.seq
    assert list(broken_laws(driven.cache.state)) == []
    assert (driven.cache.digest(), list(driven.cache.state.leaf_order), driven.cache.state.seq) == before


def test_a_law_that_cannot_be_asked_is_broken() -> None:
    state = quiet_state()
    state.nodes[LEAF].full = Pages(page(12) + page(9_999))
    told = [finding.detail for finding in pages.every_tree_page_stands_in_its_node(state)]
    assert told == ["cannot be asked: IndexError index 9999 is out of bounds for axis 0 with size 61"]


def test_a_law_that_is_broken_everywhere_is_told_a_few_times() -> None:
    @law
    def nothing_holds(state: State) -> Iterator[Breach]:
        """It does not."""
        while True:
            yield Breach(f"after event {state.seq}")

    assert len(list(nothing_holds(quiet_state()))) == FINDINGS_PER_LAW
