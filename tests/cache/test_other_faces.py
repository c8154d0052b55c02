"""The faces beside the unified FULL + SWA one: FULL alone with a tree, and both caches without (R128, R195, R198)."""

import numpy as np
import pytest

from radixledger.cache.faces.tree_view import drawn
from radixledger.cache.prefix_cache import (
    ComponentType,
    DecLockRefParams,
    Ended,
    InsertParams,
    MatchPrefixParams,
    RadixKey,
)
from radixledger.cache.refusals import DoubleFree, ForeignFree, Refusal
from radixledger.journal.events import Finished, Freed, Matched, Reclaimed, Retracted, Transferred

from .every_route import CHUNKS, idle, paged, roomy, two_ranks
from .server import Request, Server, every_page_is_named_once, text


def no_receipt(req: Request) -> bool:
    """Whether the request holds none, nor its older mirror."""
    return req.cache_lock_params is None and req.swa_uuid_for_lock is None


# -- FULL alone, with a tree ---------------------------------------------------------------------------------


@paged
@two_ranks
def test_full_alone_serves_what_was_computed_before(page_size: int, dp_size: int) -> None:
    """R211, R198: cached, matched, decoded, retracted and aborted; every page has one owner, at every size."""
    server = roomy("radix", page_size, dp_size=dp_size)
    rank = dp_size - 1
    dp_rank = rank if dp_size > 1 else None
    first = server.start(text("a", 0, 3 * page_size), dp_rank=dp_rank)
    server.cache_so_far(first)
    assert first.cache_protected_len == 3 * page_size
    for _ in range(page_size // 64 + 2):
        server.decode(first)
    server.end(first)
    second = server.admit(text("a", 0, 3 * page_size) + text("b", 0, 2 * page_size), dp_rank=dp_rank)
    assert second.cache_protected_len == 3 * page_size
    assert second.cache_lock_params == DecLockRefParams()
    server.prefill(second)
    assert server.cache.full_protected_size(rank) == 3 * page_size
    server.end(second, insert=False, ended=Ended.RETRACTED)
    server.readmit(second)
    server.prefill(second)
    server.end(second)
    third = server.start(text("a", 0, 2 * page_size) + text("c", 0, page_size), dp_rank=dp_rank)
    server.end(third, insert=False)
    assert every_page_is_named_once(server.rank(rank))
    assert server.journals[rank].of(Retracted)
    server.check()
    whole = page_size * 40
    gained = server.evict(full=whole, dp_rank=dp_rank)
    assert gained == (5 * page_size + (page_size == 1) * 2, 0)
    assert idle(server)
    server.check()


@paged
def test_what_the_tree_had_already_stays_with_who_inserted_it(page_size: int) -> None:
    """R62, R63: without SWA the caller frees `value[prev_prefix_len:prefix_len)`; once, and only that."""
    server = roomy("radix", page_size)
    server.insert(text("a", 0, 2 * page_size))
    again = server.slots(3 * page_size)
    result = server.insert(text("a", 0, 3 * page_size), again)
    assert result.prefix_len == 2 * page_size
    assert not server.journal.of(Freed)
    assert server.cache.total_size() == (3 * page_size, 0)
    server.allocator.free(again[: result.prefix_len])
    for slots in (again[: result.prefix_len], again[result.prefix_len :]):
        with pytest.raises((DoubleFree, ForeignFree)):
            server.allocator.free(slots)
    prefix = server.match(text("a", 0, 2 * page_size)).device_indices
    more = server.slots(page_size)
    value = np.concatenate([prefix, more])
    result = server.insert(text("a", 0, 2 * page_size) + text("b", 0, page_size), value, prev=2 * page_size)
    assert result.prefix_len == 2 * page_size, "and [prev, prefix) is empty: nothing is left to free"
    server.check()
    server.cache.reset()
    assert idle(server)
    with pytest.raises(Refusal, match="nothing here has SWA"):
        server.insert(text("a", 0, page_size), server.slots(page_size), released=page_size)


@pytest.mark.parametrize("page_size", [1, 4])
def test_full_alone_is_served_with_keys_of_pairs_and_nothing_has_to_be_lifted(page_size: int) -> None:
    """R201, R257: the gates are those of FULL + SWA; a key of pairs ends a page earlier on a page boundary."""
    server = Server(page_size, full_pages=40, route="radix", is_eagle=True)
    req = server.start(text("a", 0, 4 * page_size))
    server.cache_so_far(req)
    assert req.cache_protected_len == 3 * page_size
    server.end(req)
    assert server.hit(text("a", 0, 4 * page_size)) == 3 * page_size
    server.cache.reset()
    assert idle(server)
    server.check()


def test_a_node_of_full_alone_shows_no_window() -> None:
    """R26: neither in its values nor where the tree is drawn."""
    server = roomy("radix", 4)
    server.insert(text("a", 0, 8))
    node = server.match(text("a", 0, 8)).last_device_node
    receipt = server.cache.inc_lock_ref(node).to_dec_params()
    assert receipt == DecLockRefParams()
    assert node.component_data.keys() == {ComponentType.FULL}
    assert node.component_data[ComponentType.FULL].lock_ref == 1
    assert drawn(server.rank()).splitlines() == ["rank 0: 1 nodes", "  node 1 [0, 8), FULL locked"]
    server.cache.dec_lock_ref(node, receipt)
    with pytest.raises(Refusal, match="not held"):
        server.cache.dec_lock_ref(node, receipt)


@paged
@pytest.mark.parametrize("route", ["unified", "legacy", "radix"])
def test_a_disabled_tree_keeps_receipts_straight_with_a_window_or_without(route: str, page_size: int) -> None:
    """R143: refreshed when a request goes on, cleared when it ends; everything comes back."""
    server = roomy(route, page_size, disable=True)
    req = server.admit(text("a", 0, 3 * page_size))
    server.prefill(req, 2 * page_size)
    server.cache_so_far(req)
    assert req.cache_lock_params == DecLockRefParams()
    server.prefill(req)
    server.end(req)
    assert no_receipt(req)
    assert idle(server)
    server.check()


# -- without a tree ------------------------------------------------------------------------------------------


@paged
@two_ranks
@pytest.mark.parametrize("route", CHUNKS)
def test_a_request_keeps_its_pages_from_chunk_to_chunk(route: str, page_size: int, dp_size: int) -> None:
    """R128, R143, R150: `prefix_indices` are its own row, the receipt is renewed, the protected length stays 0."""
    server = roomy(route, page_size, dp_size=dp_size)
    rank = dp_size - 1
    dp_rank = rank if dp_size > 1 else None
    req = server.admit(text("a", 0, 5 * page_size + 1), dp_rank=dp_rank)
    for pages in (2, 4):
        server.prefill(req, pages * page_size)
        receipt = req.cache_lock_params
        server.cache_so_far(req)
        assert req.cache_lock_params == DecLockRefParams()
        assert req.cache_lock_params is not receipt
        assert req.prefix_indices.tolist() == server.pool.read(req.row, pages * page_size).tolist()
        assert (req.cache_protected_len, req.last_matched_prefix_len) == (0, 0)
    server.prefill(req)
    server.decode(req)
    assert every_page_is_named_once(server.rank(rank))
    assert server.match(text("a", 0, 4 * page_size), dp_rank).device_indices.size == 0
    server.end(req)
    assert no_receipt(req)
    assert idle(server)
    assert not server.journals[rank].of(Transferred)
    server.check()


@pytest.mark.parametrize("route", CHUNKS)
@pytest.mark.parametrize(("insert", "ended"), [(True, None), (False, Ended.RETRACTED), (False, None)])
def test_whatever_ends_a_request_frees_its_row_once(route: str, insert: bool, ended: Ended | None) -> None:
    """R138-R141, R147: finished, retracted or aborted, with part of its window given back, in the middle of a page."""
    server = roomy(route, 4)
    req = server.start(text("a", 0, 30))
    if route == "swa_chunk":
        server.reclaim(req)
    server.end(req, insert=insert, ended=ended)
    assert idle(server)
    assert [sum(len(event.full) // 4 for event in server.journal.of(Freed))] == [8]
    assert [event.cached for event in server.journal.of(Finished)] == [0] * insert
    server.readmit(req)
    assert req.prefix_indices.size == 0
    server.prefill(req)
    server.end(req)
    assert idle(server)
    server.check()


@paged
def test_a_chunk_cache_gives_back_a_window_from_the_start_of_the_row(page_size: int) -> None:
    """R127-R131: nothing is protected; exactly the slots of [old, new) lose their window."""
    server = roomy("swa_chunk", page_size)
    req = server.start(text("a", 0, 10 * page_size))
    row = server.pool.read(req.row, 10 * page_size)
    server.reclaim(req)
    gone = (10 * page_size - 1 - 3 * page_size) // page_size * page_size
    assert req.swa_evicted_seqlen == gone
    assert server.allocator.count_swa_mapped(row[:gone]) == 0
    assert server.allocator.count_swa_mapped(row[gone:]) == 10 * page_size - gone
    told = server.journal.of(Reclaimed)
    assert [(event.start, event.stop) for event in told] == [(0, gone)]
    server.cache.evict_req_swa(req, page_size)
    assert req.swa_evicted_seqlen == gone
    server.check()


def test_a_chunk_in_flight_keeps_what_it_reads() -> None:
    """R151, A28: on extend the chunk size is subtracted, so that a batch on the device finds its window."""
    server = roomy("swa_chunk", 4)
    req = server.admit(text("a", 0, 60))
    for stop in (16, 32, 48):
        server.prefill(req, stop)
        server.cache_so_far(req)
    server.cache.evict_req_swa(req, 47, in_flight=16)
    assert req.swa_evicted_seqlen == 16, "47 - 16 - W - P, a page boundary"
    assert server.journal.of(Reclaimed)[-1].in_flight == 16
    server.cache.evict_req_swa(req, 47)
    assert req.swa_evicted_seqlen == 32
    server.check()


@pytest.mark.parametrize("route", CHUNKS)
def test_nothing_can_be_inserted_where_there_is_no_tree(route: str) -> None:
    """R62: the slots stay the caller's, who was told so."""
    server = roomy(route, 4)
    slots = server.slots(8)
    with pytest.raises(NotImplementedError, match="has no tree"):
        server.insert(text("a", 0, 8), slots)
    server.allocator.free(slots)
    assert idle(server)


@pytest.mark.parametrize("route", CHUNKS)
def test_the_root_can_be_locked_and_evicted_for_nothing(route: str) -> None:
    """R5, R145: a scheduler that locks what it matched needs no other words for a cache that matches nothing."""
    server = roomy(route, 4, dp_size=2)
    found = server.cache.match_prefix(MatchPrefixParams(RadixKey(text("a", 0, 8), None, 1)))
    assert found.device_indices.size == 0
    receipt = server.cache.inc_lock_ref(found.last_device_node).to_dec_params()
    server.cache.dec_lock_ref(found.last_device_node, receipt)
    assert server.evict(100, 100) == (0, 0)
    assert [event.hit for event in server.journals[1].of(Matched)] == [0]
    with pytest.raises(ValueError, match="R98"):
        server.match(text("a", 0, 8))
    with pytest.raises(NotImplementedError):
        server.cache.insert(InsertParams(RadixKey([1] * 4, None, 0), np.zeros(4, np.int32)))
    server.check()


@pytest.mark.parametrize("route", CHUNKS)
def test_a_request_that_never_sat_in_a_row_ends_all_the_same(route: str) -> None:
    """R138, R141."""
    server = roomy(route, 4)
    req = Request("r", text("a", 0, 8))
    req.cache_lock_params = DecLockRefParams()
    server.cache.cache_finished_req(req, is_insert=False)
    assert no_receipt(req)
    assert idle(server)
