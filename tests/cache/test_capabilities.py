"""What a cache says that it can, and what it may be built over: the faces of every route (R57, R124-R126, R178)."""

import inspect

import pytest

from radixledger.cache.faces.allocator import SWATokenToKVPoolAllocator, TokenToKVPoolAllocator
from radixledger.cache.faces.chunk import ChunkCache, SWAChunkCache
from radixledger.cache.faces.pool_allocator import PoolAllocator
from radixledger.cache.faces.radix_face import RadixFace
from radixledger.cache.faces.request_rows import ReqToTokenPool
from radixledger.cache.faces.unified import UnifiedRadixCache
from radixledger.cache.faces.unified_setup import FULL_ALONE
from radixledger.cache.prefix_cache import (
    BasePrefixCache,
    CacheInitParams,
    ComponentType,
    EvictParams,
)
from radixledger.cache.refusals import Busy, DoubleFree
from radixledger.journal.events import Flushed
from radixledger.journal.sizes import BadConfig

from .every_route import ROUTES, WITH_SWA, idle, roomy
from .server import text

# -- capabilities --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("route", ROUTES)
def test_a_cache_says_whether_it_owns_a_window(route: str) -> None:
    """R124, R126: who says yes gives windows back, with one signature; who says no says so when it is asked to."""
    server = roomy(route, 4)
    assert server.cache.supports_swa() == (route in WITH_SWA)
    assert not server.cache.supports_recurrent()
    req = server.start(text("a", 0, 24))
    signature = inspect.signature(server.cache.evict_req_swa)
    assert list(signature.parameters)[:3] == ["req", "pre_len", "dp_rank"]
    if route in WITH_SWA:
        server.cache.evict_req_swa(req, 23)
        assert req.swa_evicted_seqlen == 8
        assert server.rank().state.mapping.nonzero == 4
    else:
        with pytest.raises(NotImplementedError, match=f"{type(server.cache).__name__} has no sliding window"):
            server.cache.evict_req_swa(req, 23)
    server.check()


@pytest.mark.parametrize("route", ROUTES)
def test_a_ledger_is_of_one_schema_or_there_is_none(route: str) -> None:
    """R125, R153: caches with SWA answer with the same keys; the others invent no zeros."""
    server = roomy(route, 4, dp_size=2)
    if route in WITH_SWA:
        rows = server.cache.ledger()
        assert rows[0].keys() == roomy("unified", 4).cache.ledger()[0].keys()
        assert [(row["dp_rank"], row["route"], row["components"]) for row in rows] == [
            (0, route, ["FULL", "SWA"]),
            (1, route, ["FULL", "SWA"]),
        ]
    else:
        with pytest.raises(NotImplementedError, match="keeps no ledger"):
            server.cache.ledger()


@pytest.mark.parametrize("route", ["radix", "chunk"])
def test_a_cache_without_swa_is_flushed_and_asks_no_ledger(
    route: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R178, R33, R177: neither of the face nor of the ranks; a live request stands in the way as ever."""
    server = roomy(route, 4)
    req = server.start(text("a", 0, 9))

    def refuse(*_: object) -> None:
        raise AssertionError("a ledger was asked for")

    monkeypatch.setattr(RadixFace, "ledger", refuse)
    monkeypatch.setattr(type(server.rank()), "ledger", refuse)
    with pytest.raises(Busy, match="are live"):
        server.cache.reset()
    server.end(req)
    server.cache.reset()
    assert len(server.journal.of(Flushed)) == 1
    assert idle(server)


@pytest.mark.parametrize("route", ROUTES)
def test_every_face_answers_every_call_of_a_prefix_cache(route: str) -> None:
    """R5, R145, R146: a scheduler that knows the calls knows all caches; sizes are per pool and rank."""
    server = roomy(route, 4, dp_size=2)
    cache = server.cache
    assert isinstance(cache, BasePrefixCache)
    req = server.start(text("a", 0, 10), dp_rank=1)
    server.cache_so_far(req)
    kept = 8 if route in ("unified", "legacy", "radix") else 0
    sizes = {
        (1, "full_protected_size"): kept,
        (1, "protected_size"): kept,
        (1, "swa_protected_size"): kept if route in ("unified", "legacy") else 0,
    }
    for rank in (0, 1):
        for name in ("full_evictable_size", "full_protected_size", "swa_evictable_size", "swa_protected_size",
                     "evictable_size", "protected_size"):  # fmt: skip
            assert getattr(cache, name)(rank) == sizes.get((rank, name), 0), name
        with pytest.raises(ValueError, match="dp_rank 2"):
            getattr(cache, name)(2)
    assert cache.total_size() == (kept, kept if route in ("unified", "legacy") else 0)
    assert cache.peek(server.key(text("a", 0, 8), 1)).tokens == kept
    assert cache.take_events() == []
    assert cache.pretty_print().count("rank") == 2
    cache.sanity_check()
    server.end(req)
    gained = cache.evict(EvictParams(64, 0, dp_rank=1))
    assert gained.num_tokens_evicted == kept
    assert cache.evict(EvictParams(64, 64)).num_tokens_evicted == 0
    assert idle(server)


# -- how they are built --------------------------------------------------------------------------------------


def test_full_alone_is_what_a_unified_cache_is_built_with_unless_told_otherwise() -> None:
    """R198, R57, R58: no parameters are needed; those that are given have to agree, and may name no window."""
    pool, allocator = ReqToTokenPool(4, 64), TokenToKVPoolAllocator(64, None, 4)
    cache = UnifiedRadixCache(pool, allocator, 4)
    assert (cache.route, cache.tree_components, cache.supports_swa()) == ("radix", FULL_ALONE, False)
    for field, params in (
        ("sliding_window_size", CacheInitParams(pool, allocator, 4, sliding_window_size=4)),
        ("page_size", CacheInitParams(pool, allocator, 8)),
        ("req_to_token_pool", CacheInitParams(ReqToTokenPool(4, 64), allocator, 4)),
    ):
        with pytest.raises(BadConfig) as bad:
            UnifiedRadixCache(pool, allocator, 4, component_init_params=params)
        assert bad.value.field == field


@pytest.mark.parametrize("window", [None, 0, -4])
def test_a_chunk_cache_with_swa_needs_a_positive_window(window: int | None) -> None:
    """R57."""
    with pytest.raises(BadConfig, match="positive window"):
        SWAChunkCache(ReqToTokenPool(4, 64), SWATokenToKVPoolAllocator(64, 64, None, 4), 4, window)


def test_a_cache_over_the_wrong_pools_is_refused_and_nothing_was_touched() -> None:
    """R14, R53: a cache without SWA wants one pool, one with SWA two."""
    one, two = TokenToKVPoolAllocator(64, None, 4), SWATokenToKVPoolAllocator(64, 64, None, 4)
    pool = ReqToTokenPool(4, 64)
    for build in (
        lambda: ChunkCache(pool, two, 4),
        lambda: UnifiedRadixCache(pool, two, 4),
        lambda: SWAChunkCache(pool, one, 4, 8),
        lambda: UnifiedRadixCache(
            pool, one, 4, tree_components=(ComponentType.FULL, ComponentType.SWA),
            component_init_params=CacheInitParams(pool, one, 4, sliding_window_size=8),
        ),
    ):  # fmt: skip
        with pytest.raises(BadConfig, match="slots") as bad:
            build()
        assert bad.value.field == "token_to_kv_pool_allocator"
    assert (one.available_size(), two.available_size()) == (64, 64)
    assert ChunkCache(pool, one, 4).route == "chunk"
    assert SWAChunkCache(ReqToTokenPool(4, 64), two, 4, 8).route == "swa_chunk"


def test_an_allocator_of_one_pool_has_the_calls_of_the_other_but_for_windows() -> None:
    """R45, R51, R53: whole pages, all or none, slot 0 never; what speaks of SWA is not there to be called."""
    allocator = TokenToKVPoolAllocator(32, "arrays", 4, 2)
    assert isinstance(allocator, PoolAllocator)
    assert (allocator.size, allocator.available_size(), allocator.get_kvcache()) == (32, 16, "arrays")
    slots = allocator.alloc(8, 1)
    assert slots is not None
    assert slots.tolist() == list(range(4, 12))
    assert allocator.alloc(12, 1) is None
    assert "FULL has 2 free" in str(allocator.last_refusal)
    assert "SWA" not in str(allocator.last_refusal)
    grown = allocator.alloc_extend([8], [15], [11], 7, 1)
    assert grown is not None
    assert allocator.alloc_decode([16], [int(grown[-1])], 1) is not None
    assert allocator.available_size(1) == 0
    allocator.free(slots, 1)
    with pytest.raises(DoubleFree):
        allocator.free(slots, 1)
    allocator.free_group_begin()
    allocator.free(grown, 1)
    assert allocator.available_size(1) == 8
    allocator.free_group_end()
    assert allocator.available_size(1) == allocator.available_size(0) == 16
    assert not {"free_swa", "free_full", "translate_full_to_swa", "swa_available_size"} & set(dir(allocator))
    for size, page in ((3, 4), (0, 1)):
        with pytest.raises(ValueError, match="makes no page"):
            TokenToKVPoolAllocator(size, None, page)
    with pytest.raises(ValueError, match="TokenToKVPoolAllocator"):
        SWATokenToKVPoolAllocator(64, 0, None, 4)
