"""`SWARadixCache` as a server calls it: the same calls as the unified cache has, and the same answers where rules agree."""

import numpy as np
import pytest

from radixledger.cache.faces.legacy import SWARadixCache
from radixledger.cache.faces.request_rows import ReqToTokenPool
from radixledger.cache.prefix_cache import Ended, InsertParams, RadixKey
from radixledger.journal.events import Reclaimed, Removed
from radixledger.journal.sizes import BadConfig

from .server import Server, every_page_is_named_once, text

paged = pytest.mark.parametrize("page_size", [1, 16, 128, 256])
two_ranks = pytest.mark.parametrize("dp_size", [1, 2])


def roomy(route: str, page_size: int, dp_size: int = 1) -> Server:
    """40 pages a pool and rank, a window of two pages."""
    return Server(page_size, 2 * page_size, full_pages=40, swa_pages=40, dp_size=dp_size, route=route)


def test_an_insert_answers_with_the_prefix_length_alone() -> None:
    """R6, R63: a number, as the callers of this class read it."""
    server = roomy("legacy", 4)
    cache = server.cache
    assert isinstance(cache, SWARadixCache)
    assert cache.insert(InsertParams(RadixKey(text("a", 0, 10)), server.slots(12))) == 0
    assert cache.insert(InsertParams(RadixKey(text("a", 0, 8)), server.slots(8))) == 8
    assert server.rank().state.full.available == 40 - 2 - 1, (
        "the slots of the unfinished page stay the caller's"
    )
    server.check()


def serve(server: Server, rank: int, dp_rank: int | None) -> list[int]:
    """Requests that share prefixes, in chunks, decoding, ended in every way; the protected lengths on the way."""
    page, lengths = server.page_size, []
    first = server.admit(text("a", 0, 7 * page + 1), dp_rank=dp_rank)
    for pages in (3, 7):
        server.prefill(first, pages * page)
        server.cache_so_far(first)
        lengths.append(first.cache_protected_len)
    server.prefill(first)
    for _ in range(2):
        server.decode(first)
    server.reclaim(first)
    server.end(first)
    second = server.admit(text("a", 0, 5 * page) + text("b", 0, 6 * page), dp_rank=dp_rank)
    lengths.append(second.cache_protected_len)
    server.prefill(second)
    server.reclaim(second)
    lengths.append(second.swa_evicted_seqlen)
    server.end(second, insert=False, ended=Ended.RETRACTED)
    server.readmit(second)
    server.prefill(second)
    server.end(second)
    third = server.start(text("a", 0, 4 * page) + text("c", 0, page), dp_rank=dp_rank)
    lengths.append(third.cache_protected_len)
    server.end(third, insert=False)
    lengths.append(server.hit(text("a", 0, 5 * page) + text("b", 0, 6 * page), dp_rank))
    assert every_page_is_named_once(server.rank(rank))
    server.check()
    return lengths


@paged
@two_ranks
def test_both_routes_answer_alike_where_nothing_is_short(page_size: int, dp_size: int) -> None:
    """R13, R24, R203, R208: with room for everything only the names of the rules differ."""
    rank = dp_size - 1
    dp_rank = rank if dp_size > 1 else None
    lengths = {}
    for route in ("legacy", "unified"):
        server = roomy(route, page_size, dp_size)
        lengths[route] = serve(server, rank, dp_rank)
        if dp_size > 1:
            assert server.rank(0).state.full.available == 40
        assert [row["route"] for row in server.cache.ledger()] == [route] * dp_size
        server.cache.reset()
        assert server.rank(rank).state.full.available == server.rank(rank).state.swa.available == 40
    page = page_size
    assert lengths["legacy"] == lengths["unified"]
    assert lengths["legacy"] == [
        3 * page,
        7 * page,
        5 * page,
        (11 * page - 1 - 3 * page) // page * page,
        4 * page,
        11 * page,
    ]


@paged
def test_pressure_takes_a_leaf_with_its_childless_tombstones(page_size: int) -> None:
    """R104-R106: the answer is what both pools gained, in tokens."""
    server = roomy("legacy", page_size)
    req = server.start(text("a", 0, 9 * page_size))
    server.reclaim(req)
    released = req.swa_evicted_seqlen
    assert released == 5 * page_size
    server.end(req)
    (reclaimed,) = server.journal.of(Reclaimed)
    free = server.allocator.full_available_size(), server.allocator.swa_available_size()
    gained = server.evict(full=1)
    assert gained == (9 * page_size, 9 * page_size - released)
    assert [len(event.full) // 4 * page_size for event in server.journal.of(Removed)] == [
        9 * page_size - released,
        released,
    ]
    now = server.allocator.full_available_size(), server.allocator.swa_available_size()
    assert tuple(np.subtract(now, free)) == gained
    assert reclaimed.stop == released
    server.check()


@pytest.mark.parametrize("window", [0, -1])
def test_a_tree_of_windows_needs_a_positive_one(window: int) -> None:
    """R57, R14: refused with its name before the pools are settled."""
    server = roomy("legacy", 4)
    before = server.rank().digest(), len(server.journal.events)
    with pytest.raises(BadConfig) as bad:
        SWARadixCache(ReqToTokenPool(8, 64), server.allocator, window, 4)
    assert bad.value.field == "sliding_window_size"
    assert (server.rank().digest(), len(server.journal.events)) == before
