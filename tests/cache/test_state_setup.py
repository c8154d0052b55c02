"""What a cache with states of a recurrent model may be built with, and what it says of itself."""

from typing import Any

import pytest

from radixledger.cache.faces.allocator import SWATokenToKVPoolAllocator, TokenToKVPoolAllocator
from radixledger.cache.faces.building import build_prefix_cache
from radixledger.cache.faces.request_rows import ReqToTokenPool
from radixledger.cache.faces.routing import ServerConfig
from radixledger.cache.faces.unified import UnifiedRadixCache
from radixledger.cache.opening import StateMode, opened_ranks
from radixledger.cache.prefix_cache import CacheInitParams, EvictParams, EvictResult
from radixledger.journal.sizes import BadConfig

from .server import FULL, SWA, EventList
from .state_server import RECURRENT, STATES

# -- what it may be built with -----------------------------------------------------------------------------------------


def built(page_size: int = 1, size_recurrent: int = 6, **changes: Any) -> UnifiedRadixCache:
    pool = ReqToTokenPool(4, 64)
    allocator = TokenToKVPoolAllocator(64 * page_size, None, page_size, size_recurrent=size_recurrent)
    arguments: dict[str, Any] = {"tree_components": STATES} | changes
    told = {name.removeprefix("told_"): arguments.pop(name) for name in list(arguments) if "told_" in name}
    for name in ("is_eagle", "enable_recurrent_extra_buffer", "recurrent_track_interval"):
        if name in arguments:
            told.setdefault(name, arguments[name])
    arguments.setdefault("component_init_params", CacheInitParams(pool, allocator, page_size, **told))
    before = [rank.digest() for rank in allocator.ranks]
    try:
        return UnifiedRadixCache(pool, allocator, page_size, **arguments)
    except BadConfig:
        assert ([rank.digest() for rank in allocator.ranks], pool.free_slots) == (before, [0, 1, 2, 3])
        raise


def test_a_cache_says_that_it_keeps_states_and_its_journal_how() -> None:
    cache = built()
    assert (cache.route, cache.tree_components, cache.supports_recurrent()) == ("radix", STATES, True)
    assert not cache.supports_swa()
    config = cache.ranks[0].state.config
    assert (config.recurrent_slots, config.recurrent_mode, config.track_interval) == (6, "base", 0)
    config = (
        built(128, enable_recurrent_extra_buffer=True, recurrent_track_interval=256).ranks[0].state.config
    )
    assert (config.recurrent_slots, config.recurrent_mode, config.track_interval) == (6, "extra_buffer", 256)
    plain = built(tree_components=(FULL,), size_recurrent=0)
    assert not plain.supports_recurrent()
    seq = plain.ranks[0].state.seq
    assert plain.evict(EvictParams(recurrent_num=3)) == EvictResult()
    assert plain.ranks[0].state.seq == seq, "nothing was asked of the tree"


@pytest.mark.parametrize(
    ("field", "page_size", "changes"),
    [
        ("component_init_params", 1, {"component_init_params": None}),
        ("token_to_kv_pool_allocator", 1, {"size_recurrent": 0}),
        ("token_to_kv_pool_allocator", 1, {"tree_components": (FULL,)}),
        ("sliding_window_size", 1, {"told_sliding_window_size": 8}),
        ("is_eagle", 1, {"is_eagle": True}),
        ("enable_recurrent_extra_buffer", 1, {"told_enable_recurrent_extra_buffer": True}),
        ("recurrent_track_interval", 1, {"told_recurrent_track_interval": 256}),
        ("recurrent_track_interval", 1, {"recurrent_track_interval": 256}),
        ("recurrent_track_interval", 128, {"enable_recurrent_extra_buffer": True}),
        ("track_interval", 128, {"enable_recurrent_extra_buffer": True, "recurrent_track_interval": 200}),
        ("track_interval", 128, {"enable_recurrent_extra_buffer": True, "recurrent_track_interval": 128 << 55}),
        ("track_interval", 128, {"enable_recurrent_extra_buffer": True, "recurrent_track_interval": 1 << 31}),
        ("page_size", 4, {}),
        ("page_size", 64, {"enable_recurrent_extra_buffer": True, "recurrent_track_interval": 128}),
        ("recurrent_slots", 128, {"size_recurrent": 2, "enable_recurrent_extra_buffer": True,
                                  "recurrent_track_interval": 256}),
        ("tree_components", 1, {"tree_components": (RECURRENT,)}),
        ("tree_components", 1, {"tree_components": (RECURRENT, FULL)}),
    ],
)  # fmt: skip
def test_what_does_not_go_with_states_is_refused_before_anything_exists(
    field: str, page_size: int, changes: dict[str, Any]
) -> None:
    """R14, R56, R58: parameters agree, and each mode has its pages."""
    with pytest.raises(BadConfig) as bad:
        built(page_size, **changes)
    assert bad.value.field == field


def test_windows_and_states_together_are_refused_with_the_reason() -> None:
    """R11: whatever the order."""
    pool, allocator = ReqToTokenPool(4, 64), SWATokenToKVPoolAllocator(64, 64, None, 4)
    params = CacheInitParams(pool, allocator, 4, sliding_window_size=4)
    for components in ((FULL, SWA, RECURRENT), (FULL, RECURRENT, SWA)):
        with pytest.raises(BadConfig, match="a hit on a state needs the window below that state") as bad:
            UnifiedRadixCache(pool, allocator, 4, tree_components=components, component_init_params=params)
        assert bad.value.field == "tree_components"


def test_a_journal_of_another_cache_is_refused() -> None:
    """R58: other slots when the allocator is built, another mode when the cache is."""
    opened = opened_ranks(
        64, 0, 1, 1, route="radix", sliding_window_size=0, rows=4, max_context_len=64, size_recurrent=6,
        states=StateMode("base"),
    )  # fmt: skip
    journals = [EventList(opened[0])]
    with pytest.raises(BadConfig, match="recurrent_slots: the journal of rank 0 says 6, the allocator 4"):
        TokenToKVPoolAllocator(64, None, 1, size_recurrent=4, journals=journals)
    pool, allocator = (
        ReqToTokenPool(4, 64),
        TokenToKVPoolAllocator(64, None, 1, size_recurrent=6, journals=journals),
    )
    params = CacheInitParams(
        pool, allocator, 1, enable_recurrent_extra_buffer=True, recurrent_track_interval=256
    )
    with pytest.raises(BadConfig, match="the journal was opened with base, the cache needs extra_buffer"):
        UnifiedRadixCache(
            pool, allocator, tree_components=STATES, enable_recurrent_extra_buffer=True,
            recurrent_track_interval=256, component_init_params=params,
        )  # fmt: skip


@pytest.mark.parametrize(("page_size", "interval", "mode"), [(1, None, "base"), (128, 256, "extra_buffer")])
def test_a_servers_configuration_builds_it(page_size: int, interval: int | None, mode: str) -> None:
    """R198, R14: a recurrent model without windows gets states; another one is given none."""
    for recurrent in (True, False):
        pool = ReqToTokenPool(4, 64)
        allocator = TokenToKVPoolAllocator(64 * page_size, None, page_size, size_recurrent=6 * recurrent)
        config = ServerConfig(False, page_size=page_size, recurrent=recurrent)
        if recurrent or interval is None:
            cache = build_prefix_cache(config, pool, allocator, recurrent_track_interval=interval)
            assert cache.supports_recurrent() == recurrent
            assert cache.ranks[0].state.config.recurrent_mode == (mode if recurrent else "")
        else:
            with pytest.raises(BadConfig, match="the model has no states"):
                build_prefix_cache(config, pool, allocator, recurrent_track_interval=interval)
