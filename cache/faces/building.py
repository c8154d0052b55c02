"""Build the cache that a server gets: the route says which class, and it is made over the server's pool and allocator.

Rule: everything that can be refused is refused from the configuration, so a refusal finds pool, allocator and journals
as they were, and leaves them so (R14, R204, A44). Two kinds of refusal are kept apart: `route_of` refuses what does not
go with the unified route; here each class is spared what it does not have at all.
"""

from collections.abc import Callable
from typing import NamedTuple

from radixledger.cache.faces.chunk import ChunkCache, SWAChunkCache
from radixledger.cache.faces.legacy import SWARadixCache
from radixledger.cache.faces.pool_allocator import PoolAllocator
from radixledger.cache.faces.radix_face import BOTH, RadixFace
from radixledger.cache.faces.request_rows import ReqToTokenPool
from radixledger.cache.faces.routing import RouteName, ServerConfig, route_of
from radixledger.cache.faces.unified import UnifiedRadixCache
from radixledger.cache.faces.unified_setup import FULL_ALONE, WITH_STATES
from radixledger.cache.prefix_cache import CacheInitParams
from radixledger.journal.sizes import BadConfig


class Site(NamedTuple):
    """What a cache is built over. window: tokens, None where the model has none; keep_events: for `take_events`;
    track_interval: tokens between two states that are tracked, None where nothing is.
    """

    pool: ReqToTokenPool
    allocator: PoolAllocator
    window: int | None
    keep_events: bool
    track_interval: int | None


def _unified(config: ServerConfig, site: Site) -> RadixFace:
    is_eagle = config.key_units == "bigram"
    params = CacheInitParams(
        site.pool, site.allocator, config.page_size, is_eagle, sliding_window_size=site.window
    )
    return UnifiedRadixCache(
        site.pool, site.allocator, config.page_size, is_eagle=is_eagle, tree_components=BOTH,
        component_init_params=params, lift_bigram=config.lift_bigram, enable_kv_cache_events=site.keep_events,
    )  # fmt: skip


def _radix(config: ServerConfig, site: Site) -> RadixFace:
    is_eagle, tracked = config.key_units == "bigram", site.track_interval is not None
    params = CacheInitParams(
        site.pool, site.allocator, config.page_size, is_eagle, enable_recurrent_extra_buffer=tracked,
        recurrent_track_interval=site.track_interval,
    )  # fmt: skip
    return UnifiedRadixCache(
        site.pool, site.allocator, config.page_size, is_eagle=is_eagle,
        tree_components=WITH_STATES if config.recurrent else FULL_ALONE, enable_recurrent_extra_buffer=tracked,
        recurrent_track_interval=site.track_interval, component_init_params=params,
        enable_kv_cache_events=site.keep_events,
    )  # fmt: skip


def _legacy(config: ServerConfig, site: Site) -> RadixFace:
    # The class has no default for the window; what is no window is refused by its own words (R57).
    window = site.window or 0
    return SWARadixCache(
        site.pool, site.allocator, window, config.page_size, enable_kv_cache_events=site.keep_events
    )


def _swa_chunk(config: ServerConfig, site: Site) -> RadixFace:
    return SWAChunkCache(
        site.pool, site.allocator, config.page_size, site.window, enable_kv_cache_events=site.keep_events
    )


def _chunk(config: ServerConfig, site: Site) -> RadixFace:
    return ChunkCache(site.pool, site.allocator, config.page_size, enable_kv_cache_events=site.keep_events)


class Built(NamedTuple):
    """How a route's cache is made, and what of `ServerConfig` it does not have, with the value that asks for nothing."""

    make: Callable[[ServerConfig, Site], RadixFace]
    lacks: dict[str, object]


_STORAGE: dict[str, object] = {"storage": None}
_TIERS: dict[str, object] = _STORAGE | {"hierarchical_cache": False}
_TIERS_AND_STATES: dict[str, object] = _TIERS | {"recurrent": False}

BUILT: dict[RouteName, Built] = {
    "unified": Built(_unified, {}),  # `route_of` has refused all that it lacks
    "legacy": Built(_legacy, _TIERS_AND_STATES | {"key_units": "raw"}),
    "swa_chunk": Built(_swa_chunk, _TIERS_AND_STATES),
    "radix": Built(_radix, _STORAGE),
    "chunk": Built(_chunk, _TIERS_AND_STATES),
}


class NotOnThisRoute(BadConfig):
    """A configuration asks a route for something that its cache does not have; not passed over in silence (R14)."""

    def __init__(self, route: RouteName, field: str, value: object) -> None:
        super().__init__(field, f"{value} was asked for, and the {route} cache has nothing of the kind")
        self.route = route


def build_prefix_cache(
    config: ServerConfig,
    req_to_token_pool: ReqToTokenPool,
    token_to_kv_pool_allocator: PoolAllocator,
    *,
    sliding_window_size: int | None = None,
    recurrent_track_interval: int | None = None,
    enable_kv_cache_events: bool = False,
) -> RadixFace:
    """The cache of a server's configuration, over its rows and slots.

    sliding_window_size: tokens, of a hybrid model; the allocator has two pools then, one pool otherwise.
    recurrent_track_interval: tokens, of a recurrent model whose requests track states as they go; else they leave one when
    they finish, and pages are of one token. The allocator has the state slots, and the host's for a hierarchical cache. Speculation and
    disaggregation are the server's own work and change no cache, but for the unit of its keys. Raises
    UnsupportedCombination, NotOnThisRoute, or BadConfig if model, allocator and window do not agree; nothing was touched.
    """
    route = route_of(config)
    built = BUILT[route]
    for field, nothing in built.lacks.items():
        value = getattr(config, field)
        if value != nothing:
            raise NotOnThisRoute(route, field, value)
    copies = token_to_kv_pool_allocator.host.size
    if config.hierarchical_cache != bool(copies):
        wants = "a host tier" if config.hierarchical_cache else "no host tier"
        raise BadConfig(
            "token_to_kv_pool_allocator", f"it has {copies} slots on the host, the server wants {wants}"
        )
    if not config.hybrid_swa and sliding_window_size is not None:
        raise BadConfig("sliding_window_size", f"{sliding_window_size}; a model that is not hybrid has none")
    if not config.recurrent and recurrent_track_interval is not None:
        raise BadConfig("recurrent_track_interval", f"{recurrent_track_interval}; the model has no states")
    site = Site(
        req_to_token_pool, token_to_kv_pool_allocator, sliding_window_size,
        keep_events=enable_kv_cache_events, track_interval=recurrent_track_interval,
    )  # fmt: skip
    return built.make(config, site)
