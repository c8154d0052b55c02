"""A rank with one pool: no page is mapped, no node is a tombstone, a lock holds FULL and nothing else (R198)."""

import numpy as np
import pytest
from msgspec.structs import replace

from radixledger.cache.config import checked
from radixledger.cache.keys import raw_key
from radixledger.cache.laws.invariants import broken_laws
from radixledger.cache.rank import RankCache
from radixledger.cache.refusals import ForeignFree, PoolShort, Refusal
from radixledger.cache.slices import Slice
from radixledger.cache.state import Receipt
from radixledger.journal.accounts import request_account
from radixledger.journal.causes import Operation
from radixledger.journal.events import Evicted, Extended, Freed, Locked, Reclaimed, Removed, Stop, Transferred
from radixledger.journal.sizes import BadConfig
from radixledger.journal.units import (
    NO_PAGES,
    ROOT,
    TO_ROOT,
    UNBOUND,
    BoundaryId,
    NodeId,
    Pages,
    RequestId,
    TokenCount,
)

from .driven import FULL_SHAPES, Driven, FrameList, opened

PAGE = 4
SHAPE = (PAGE, 0, 12, 0)
NOBODY = request_account(UNBOUND)


def rank(full_pages: int = 12) -> tuple[RankCache, FrameList]:
    journal = FrameList(opened((PAGE, 0, full_pages, 0)))
    return RankCache(journal.opened, journal), journal


def tokens(count: int, first: int = 0) -> bytes:
    return raw_key(np.arange(first, first + count, dtype=np.int32))


def cached(cache: RankCache, rid: str, key: bytes) -> NodeId:
    """A request that computes all of a key and finishes; the node where its path ends."""
    count = len(key) // 4
    admission = cache.admit(rid, key, count)
    rest = count - admission.hit.tokens
    cache.extend(np.array([admission.request]), np.array([rest], np.int32))
    cache.finish(admission.request, key)
    return cache.peek(key).node


def ones(*requests: int) -> np.ndarray:
    return np.array(requests, np.int64)


@pytest.mark.parametrize("field", ["swa_pages", "window_tokens"])
@pytest.mark.parametrize(
    ("route", "value", "why"), [("radix", 4, "has to be 0"), ("unified", 0, "not between")]
)
def test_a_route_without_a_window_has_no_second_pool_and_every_other_has_one(
    field: str, route: str, value: int, why: str
) -> None:
    """R57, R198: half a window is refused before anything is built, and the field is named."""
    whole = opened(SHAPE) if route == "radix" else opened()
    assert checked(whole) is whole
    half = replace(whole, config=replace(whole.config, **{field: value}))
    with pytest.raises(BadConfig, match=why) as caught:
        RankCache(half)
    assert caught.value.field == field
    with pytest.raises(BadConfig, match=why):
        checked(replace(whole, window_need=TokenCount(value)))


def test_a_match_is_what_full_pages_reach_and_never_stops_for_a_window() -> None:
    """R71: contiguous from the root; a key that leaves a node in its middle is served up to there."""
    cache, journal = rank()
    cached(cache, "a", tokens(4 * PAGE))
    left = tokens(2 * PAGE) + tokens(2 * PAGE, first=500)
    hit = cache.match(left)
    assert (hit.tokens, hit.full_tokens, hit.stop) == (2 * PAGE, 2 * PAGE, Stop.DIVERGED)
    assert all(event.swa == NO_PAGES for event in journal.events if isinstance(event, Transferred | Extended))
    assert list(broken_laws(cache.state)) == []


def test_a_lock_holds_the_full_path_and_marks_no_boundary() -> None:
    """R111, R118: there is no segment of windows to count or to forge."""
    cache, journal = rank()
    node = cached(cache, "a", tokens(3 * PAGE))
    receipt = cache.lock(node)
    assert receipt == Receipt(node, TO_ROOT)
    assert (cache.state.full_protected, cache.state.full_evictable, cache.state.swa_protected) == (3, 0, 0)
    assert cache.state.nodes[node].swa_locks == 0
    assert [event.skipped for event in journal.events if isinstance(event, Locked)][-1] == b""
    with pytest.raises(Refusal, match="is not held"):
        cache.unlock(receipt._replace(boundary=BoundaryId(3)))
    assert cache.evict(9, 0) == (0, 0)
    cache.unlock(receipt)
    with pytest.raises(Refusal, match="is not held"):
        cache.unlock(receipt)
    assert cache.evict(9, 0) == (3, 0)
    assert list(broken_laws(cache.state)) == []


def test_what_was_used_last_is_evicted_last() -> None:
    """R68, R102: recency of FULL moves although there is no window to refresh."""
    cache, journal = rank()
    first, second, third = (cached(cache, name, tokens(PAGE, 100 * at)) for at, name in enumerate("abc"))
    cache.match(tokens(PAGE, 0))
    assert cache.evict(2, 5) == (2, 0), "who asks for SWA pages gets none"
    assert [event.node for event in journal.events if isinstance(event, Removed)] == [second, third]
    assert first in cache.state.nodes
    told = [event for event in journal.events if isinstance(event, Evicted)]
    assert (told[-1].gained_full, told[-1].gained_swa) == (2, 0)


def test_nothing_is_ever_out_of_a_window_that_is_not_there() -> None:
    """R127: reclaim gives back nothing, however long the sequence, and no event is written."""
    cache, journal = rank()
    admission = cache.admit("a", tokens(5), 5)
    cache.extend(ones(admission.request), np.array([40], np.int32))
    before = len(journal.events)
    assert cache.reclaim(admission.request, 39) == 0
    cache.reclaim_batch(ones(admission.request))
    cache.reclaim_batch(ones(admission.request), 1 << 20)
    assert len(journal.events) == before
    assert not [event for event in journal.events if isinstance(event, Reclaimed)]


def test_a_short_pool_is_told_without_a_pool_that_is_not_there() -> None:
    """R152: the numbers of FULL, and not a word of SWA."""
    cache, _ = rank(full_pages=3)
    with pytest.raises(PoolShort, match=r"4 pages are needed; FULL has 3 free \+ 0 evictable$"):
        cache.alloc(4)
    full, swa = cache.alloc(3)
    assert (len(full), swa) == (12, NO_PAGES)


def test_a_stranger_keeps_the_duplicates_that_he_brought_and_frees_them_himself() -> None:
    """R62, R63: without SWA the caller frees; the pages stay his, so that his free is lawful and a second one is not."""
    cache, journal = rank()
    cached(cache, "a", tokens(2 * PAGE))
    pages, _ = cache.alloc(3)
    brought = Slice(pages, 0, 0, NOBODY, RequestId(UNBOUND), Operation.INSERT)
    begun = len(journal.events)
    inserted = cache.insert(tokens(3 * PAGE), b"", brought)
    assert inserted.prefix == 2
    assert not [event for event in journal.events[begun:] if isinstance(event, Freed)]
    assert cache.state.full.holders(Pages(pages[:8])).tolist() == [NOBODY] * 2
    cache.free(Pages(pages[:8]), NOBODY)
    with pytest.raises(ForeignFree):
        cache.free(Pages(pages[8:]), NOBODY)
    cache.flush()
    assert cache.state.full.available == 12


def test_released_pages_make_no_sense_where_there_is_no_swa() -> None:
    """R271: a stranger who says that his SWA is gone holds another cache in mind."""
    cache, _ = rank()
    pages, _ = cache.alloc(2)
    with pytest.raises(Refusal, match="nothing here has SWA"):
        cache.insert(tokens(2 * PAGE), b"", Slice(pages, 0, 1, NOBODY, RequestId(UNBOUND), Operation.INSERT))


def test_a_requests_own_duplicates_are_freed_by_the_call_that_caches_it() -> None:
    """R147, R149: two requests compute one prompt; the second one's pages go, and its row names the tree's."""
    cache, _ = rank()
    prompt = tokens(2 * PAGE + 1)
    one, two = (cache.admit(name, prompt, 2 * PAGE + 1) for name in "ab")
    cache.extend(ones(one.request, two.request), np.array([9, 9], np.int32))
    assert cache.cache_unfinished(one.request, prompt) == 2 * PAGE
    assert cache.cache_unfinished(two.request, prompt) == 2 * PAGE
    table = cache.state.rows.full_table
    assert table[one.row, :2].tolist() == table[two.row, :2].tolist()
    assert cache.state.full.available == 12 - 2 - 2
    cache.finish(one.request, prompt)
    cache.abort(two.request)
    assert cache.state.full.available == 12 - 2
    assert list(broken_laws(cache.state)) == []


@pytest.mark.parametrize("shape", FULL_SHAPES, ids=str)
def test_every_number_of_a_ledger_that_speaks_of_windows_is_zero(shape: tuple[int, int, int, int]) -> None:
    """R154, R156, R169: after every command of a random run; FULL adds up to its capacity, pages in flight among it."""
    driven = Driven(3, shape)
    for _ in driven.steps(150):
        row = driven.cache.ledger()
        held = (row.full_available, row.full_tree_evictable, row.full_tree_protected, row.full_request_owned)
        unbound = sum(len(pages) // 4 for pages in driven.unbound) * shape[0]
        slack = row.full_reserved_page_slack + row.full_pending_free + unbound
        assert sum(held) + slack == row.full_capacity
        windows = {
            name: getattr(row, name)
            for name in row.__struct_fields__
            if name.startswith(("swa_", "mapping_", "tombstone_"))
        }
        assert set(windows.values()) == {0}, windows
    driven.drain()
    assert driven.cache.state.nodes.keys() == {ROOT}
