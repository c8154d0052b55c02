"""States of a recurrent model through the calls of a server: who runs on which slot, what is donated, what a hit copies."""

from typing import Any

import numpy as np
import pytest

from radixledger.cache.faces.unified import UnifiedRadixCache
from radixledger.cache.prefix_cache import (
    DecLockRefParams,
    Ended,
    EvictParams,
    EvictResult,
    InsertParams,
    InsertResult,
    MatchPrefixParams,
    RadixKey,
)
from radixledger.cache.refusals import Busy, DoubleFree, ForeignFree, Refusal, StateShort
from radixledger.journal.accounts import Kind
from radixledger.journal.events import Removed, StateCopied, StateDonated, StateFreed, StateReplaced

from .server import Request, Server, every_page_is_named_once
from .state_server import MODES, RECURRENT, StateServer, base, state_of, tracking

# -- a request's life --------------------------------------------------------------------------------------------------


@MODES
@pytest.mark.parametrize("dp_size", [1, 2])
def test_a_finished_request_leaves_its_state_and_the_next_one_goes_on_from_a_copy(
    make: Any, dp_size: int
) -> None:
    """R211: the state goes to the leaf, the request's other slots are free, the hit runs on a slot of its own."""
    server = make(dp_size=dp_size)
    rank, dp_rank = dp_size - 1, dp_size - 1 if dp_size > 1 else None
    first = server.start(server.path("a", 4), dp_rank=dp_rank)
    running, source, track, tracked = server.states.state_slots(first)
    assert (source, len(track)) == (0, 2 if server.interval else 0)
    assert sorted(tracked) == ([2 * server.page_size, 4 * server.page_size] if server.interval else [])
    server.end(first)
    kept = running if not track else track[tracked.index(4 * server.page_size)]
    assert server.journals[rank].of(StateDonated)[0].slot == kept.to_bytes(4, "little")
    assert server.allocator.recurrent_available_size(rank) == server.slots_given // dp_size - 1
    second = server.admit([*server.path("a", 4), *server.path("b", 1)], dp_rank=dp_rank)
    assert second.cache_protected_len == 4 * server.page_size
    assert state_of(second) == (kept, 1)
    server.prefill(second)
    slots = server.states.state_slots(second)
    assert slots.source == kept
    assert slots.running not in (0, kept)
    assert len(server.journals[rank].of(StateCopied)) == 1
    assert server.states.recurrent_protected_size(rank) == 1
    assert every_page_is_named_once(server.rank(rank))
    server.check()
    server.end(second)
    server.check()
    server.cache.reset()
    assert server.allocator.recurrent_available_size(rank) == server.slots_given // dp_size
    server.check()


def test_a_running_request_of_mode_base_donates_nothing_and_locks_a_node_without_state() -> None:
    """R211, R112: its pages are cached, its slot stays; the receipt says which node has nothing to lock."""
    server = base()
    req = server.admit(server.path("a", 6))
    server.prefill(req, 4)
    running = server.states.state_slots(req).running
    server.cache_so_far(req)
    assert req.cache_protected_len == 4
    assert req.last_node is not None
    assert req.cache_lock_params == DecLockRefParams(None, {RECURRENT: [req.last_node.id]})
    assert state_of(req) == (0, 0)
    assert server.hit(server.path("a", 6)) == 0
    again = server.match(server.path("a", 4), full_only=True)
    assert again.last_device_node == req.last_node
    assert (server.states.state_slots(req).running, server.journal.of(StateDonated)) == (running, [])
    server.prefill(req)
    server.end(req)
    assert server.hit([*server.path("a", 6), 1]) == 6
    server.check()


def test_a_tracking_request_caches_up_to_its_last_boundary_and_gets_another_slot_for_it() -> None:
    """R150, R211: nothing before the first boundary; then the state and its pages, while the request runs on."""
    server = tracking()
    page = server.page_size
    req = server.admit(server.path("a", 5))
    server.prefill(req, page)
    server.cache_so_far(req)
    assert req.cache_protected_len == 0
    server.prefill(req, 3 * page)
    server.cache_so_far(req)
    assert req.cache_protected_len == 2 * page
    assert req.prefix_indices.size == 3 * page
    assert req.cache_lock_params == DecLockRefParams()
    assert len(server.journal.of(StateReplaced)) == 1
    assert server.hit([*server.path("a", 2), 1]) == 2 * page
    slot, locks = state_of(req)
    assert locks == 1
    assert slot not in (0, *server.states.state_slots(req).track)
    server.prefill(req)
    server.end(req)
    assert server.hit([*server.path("a", 5), 1]) == 4 * page
    server.check()


def test_a_tracking_request_that_gets_no_other_slot_changes_nothing() -> None:
    """R211: replacement first; who has none keeps its own."""
    server = tracking(slots=3)
    req = server.start(server.path("a", 3))
    before = len(server.journal.events)
    server.cache_so_far(req)
    assert req.cache_protected_len == 0
    assert server.journal.events[before:] == []
    assert req.prefix_indices.size == 3 * server.page_size
    server.end(req)
    assert server.hit([*server.path("a", 2), 1]) == 2 * server.page_size
    server.check()


@MODES
@pytest.mark.parametrize("ended", [Ended.RETRACTED, Ended.ABORTED])
def test_whoever_ends_early_gives_its_slots_back_with_its_receipt(make: Any, ended: Ended) -> None:
    """R140, R141, R137."""
    server = make()
    req = server.start(server.path("a", 3))
    server.cache_so_far(req)
    server.end(req, insert=False, ended=ended)
    assert server.rank().state.recurrent.held[Kind.REQUEST] == 0
    assert (req.cache_lock_params, req.swa_uuid_for_lock) == (None, None)
    server.check()


def test_a_disabled_cache_gives_slots_to_run_on_and_keeps_no_state() -> None:
    server = StateServer(disable=True)
    for _ in range(2):
        req = server.start(server.path("a", 4))
        assert (
            server.states.state_slots(req)[:2] == (1 + 2 * 0, 0) or server.states.state_slots(req).source == 0
        )
        server.cache_so_far(req)
        server.end(req)
    assert server.allocator.recurrent_available_size() == 6
    assert server.cache.evict(EvictParams(recurrent_num=3)) == EvictResult()
    server.check()


# -- locks, room and eviction ----------------------------------------------------------------------------------------


def test_a_receipt_of_a_node_without_state_says_so_and_is_given_back_as_it_is() -> None:
    """R112, R122, R211: the inner node of a cut has no state; the state stays with the lower part."""
    server = base()
    server.end(server.start(server.path("a", 6)))
    inner = server.match(server.path("a", 3), full_only=True).last_device_node
    receipt = server.cache.inc_lock_ref(inner)
    assert receipt.skip_lock_node_ids == {RECURRENT: [inner.id]}
    assert server.cache.evict(EvictParams(recurrent_num=1)) == EvictResult(3, 0, 1)
    server.cache.dec_lock_ref(inner, receipt.to_dec_params())
    with pytest.raises(Refusal, match="not held"):
        server.cache.dec_lock_ref(inner, receipt.to_dec_params())
    whole = server.start(server.path("b", 6))
    server.end(whole)
    leaf = server.match(server.path("b", 6)).last_device_node
    held = server.cache.inc_lock_ref(leaf)
    assert held.skip_lock_node_ids == {}
    assert server.cache.evict(EvictParams(recurrent_num=1)) == EvictResult()
    server.cache.dec_lock_ref(leaf, held.to_dec_params())
    server.check()


def test_states_are_evicted_oldest_first_with_their_pages_and_on_one_rank_if_it_is_named() -> None:
    """R67, R105, R106, R107: what FULL pressure took along counts."""
    server = base(dp_size=2)
    for letter in "abc":
        for dp_rank in (0, 1):
            server.end(server.start(server.path(letter, 4), dp_rank=dp_rank))
    server.match([*server.path("a", 4), 1], 0)
    assert server.cache.evict(EvictParams(recurrent_num=1, dp_rank=0)) == EvictResult(4, 0, 1)
    hits = [server.hit([*server.path(letter, 4), 1], 0) for letter in "abc"]
    assert hits == [4, 0, 4]
    assert server.cache.evict(EvictParams(num_tokens=5, recurrent_num=2, dp_rank=1)) == EvictResult(8, 0, 2)
    assert server.cache.evict(EvictParams(recurrent_num=9)) == EvictResult(12, 0, 3)
    assert [server.allocator.recurrent_available_size(rank) for rank in (0, 1)] == [6, 6]
    server.check()


def test_a_match_for_a_copy_makes_room_and_spares_the_state_that_it_found() -> None:
    """R211, B78: the slots are free before the request sits down; too few is told at once, and holds nothing."""
    server = base(slots=2)
    for letter in "ab":
        server.end(server.start(server.path(letter, 4)))
    assert server.allocator.recurrent_available_size() == 0
    req = Request("r", [*server.path("a", 4), 1, 2])
    key = RadixKey(req.fill_ids[:-1])
    found = server.cache.match_prefix(MatchPrefixParams(key, req=req, cow_recurrent=True))
    assert found.device_indices.size == 4
    assert server.allocator.recurrent_available_size() == 1
    assert [server.hit([*server.path(letter, 4), 1]) for letter in "ab"] == [4, 0]
    assert len(server.journal.of(Removed)) == 1
    assert server.states.recurrent_protected_size() == 0
    server.readmit(req)
    server.prefill(req)
    assert server.states.state_slots(req).source != 0
    other = Request("s", server.path("c", 4))
    with pytest.raises(StateShort) as short:
        server.cache.match_prefix(
            MatchPrefixParams(RadixKey(other.fill_ids[:-1]), req=other, cow_recurrent=True)
        )
    assert (short.value.needed, short.value.available, short.value.evictable) == (1, 0, 0)
    with pytest.raises(ValueError, match="nobody would take the copy"):
        server.cache.match_prefix(MatchPrefixParams(key, cow_recurrent=True))
    server.check()


def test_a_request_for_which_there_are_no_slots_gets_no_pages_either() -> None:
    """R152: an allocation in a request's name seats it first; without slots it is None, and says why."""
    server = base(slots=1)
    server.admit(server.path("a", 2))
    running = server.start(server.path("a", 2))
    waiting = server.admit(server.path("b", 2))
    assert server.allocator.alloc(2, owner=waiting) is None
    assert isinstance(server.allocator.last_refusal, StateShort)
    assert server.rank().number_of(waiting) is None
    server.end(running)
    given = server.allocator.alloc(2, owner=waiting)
    server.pool.write((waiting.row, slice(0, 2)), given)
    server.check()


# -- what a stranger brings --------------------------------------------------------------------------------------------


def test_a_state_that_comes_with_an_insert_is_the_caches_whatever_becomes_of_it() -> None:
    """R62, R211: taken by a leaf without one; freed where there is one, at an inner node, and with an empty key."""
    server = base()
    free = server.allocator.recurrent_available_size

    def given(tokens: list[int], value: np.ndarray[Any, Any], **more: Any) -> InsertResult:
        slot = server.allocator.alloc_recurrent(1)
        assert slot is not None
        result = server.cache.insert(InsertParams(server.key(tokens), value, recurrent_value=slot, **more))
        assert isinstance(result, InsertResult)
        return result

    slots = server.slots(4)
    assert given(server.path("a", 4), slots) == InsertResult(0, False, True)
    assert given(server.path("a", 4), slots, prev_prefix_len=4) == InsertResult(4, True, False)
    assert given(server.path("a", 2), slots[:2], prev_prefix_len=2) == InsertResult(2, False, False)
    assert given([], slots[:0]) == InsertResult()
    assert free() == 5
    longer = np.concatenate([slots, server.slots(2)])
    assert given(server.path("a", 6), longer, prev_prefix_len=4) == InsertResult(4, False, True)
    assert (free(), server.hit([*server.path("a", 4), 1])) == (5, 0), (
        "the leaf that got a child lost its state"
    )
    assert len(server.journal.of(StateFreed)) == 4
    server.check()


def test_state_slots_are_handed_out_and_given_back_by_those_who_have_them() -> None:
    """R39, A5: also what is named twice, the tree's or nobody's."""
    server = base(slots=3)
    server.end(server.start(server.path("a", 4)))
    taken = server.allocator.alloc_recurrent(2)
    assert taken is not None
    assert (taken.dtype, taken.size) == (np.dtype(np.int32), 2)
    assert server.allocator.alloc_recurrent(1) is None
    assert isinstance(server.allocator.last_refusal, StateShort)
    kept = server.match(server.path("a", 4)).last_device_node.component_data[RECURRENT].value
    with pytest.raises(ForeignFree):
        server.allocator.free_recurrent(kept)
    with pytest.raises(Busy, match="RECURRENT"):
        server.cache.reset()
    server.allocator.free_recurrent(taken)
    with pytest.raises(DoubleFree):
        server.allocator.free_recurrent(taken[:1])
    server.cache.reset()
    assert server.allocator.recurrent_available_size() == 3


def test_a_state_must_be_of_the_keys_last_token_and_of_a_cache_that_keeps_some() -> None:
    """R82: a key that is cut to whole pages ends before its state."""
    server = tracking()
    slot = server.allocator.alloc_recurrent(1)
    value = server.slots(2 * server.page_size)
    with pytest.raises(ValueError, match="with whole pages of 128"):
        server.cache.insert(InsertParams(server.key([*server.path("a", 2), 1]), value, recurrent_value=slot))
    with pytest.raises(ValueError, match="2 state slots came"):
        server.cache.insert(InsertParams(server.key(server.path("a", 2)), value, recurrent_value=[1, 2]))
    plain = Server(1, full_pages=40, route="radix")
    with pytest.raises(ValueError, match="nothing here keeps states"):
        plain.cache.insert(InsertParams(plain.key([1]), plain.slots(1), recurrent_value=1))
    with pytest.raises(NotImplementedError, match="keeps no states"):
        plain.cache.match_prefix(MatchPrefixParams(plain.key([1]), cow_recurrent=True))
    assert isinstance(plain.cache, UnifiedRadixCache)
    with pytest.raises(NotImplementedError, match="keeps no states"):
        plain.cache.state_slots(plain.start([1, 2]))


def test_slots_are_told_of_requests_that_sit_in_a_row() -> None:
    server = base()
    with pytest.raises(Refusal, match="sits in no row"):
        server.states.state_slots(server.admit(server.path("a", 2)))


# -- what is shown ---------------------------------------------------------------------------------------------------


def test_the_tree_shows_which_nodes_have_states() -> None:
    """R26, R66: a value is a copy; the root is locked for ever."""
    server = base()
    server.end(server.start(server.path("a", 4)))
    server.end(server.start([*server.path("a", 2), *server.path("b", 2)]))
    lines = server.cache.pretty_print().splitlines()
    assert lines[0] == "rank 0: 3 nodes"
    assert sorted(line.split(") ")[-1] for line in lines[1:] if "state" in line) == ["state 1", "state 2"]
    assert [line.strip() for line in lines if "[0, 2)" in line and "state" in line] == []
    leaf = server.match(server.path("a", 4)).last_device_node
    value = leaf.component_data[RECURRENT].value
    value[0] = 99
    assert leaf.component_data[RECURRENT].value.tolist() == [1]
    root = server.match([]).last_device_node
    assert root.component_data[RECURRENT] == (None, 1)
