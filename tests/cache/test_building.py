"""A server's configuration becomes a cache, or is refused and has touched nothing."""

from typing import Any

import pytest

from radixledger.cache.faces.allocator import SWATokenToKVPoolAllocator, TokenToKVPoolAllocator
from radixledger.cache.faces.building import BUILT, NotOnThisRoute, build_prefix_cache
from radixledger.cache.faces.chunk import ChunkCache, SWAChunkCache
from radixledger.cache.faces.legacy import SWARadixCache
from radixledger.cache.faces.pool_allocator import PoolAllocator
from radixledger.cache.faces.radix_face import RadixFace
from radixledger.cache.faces.request_rows import ReqToTokenPool
from radixledger.cache.faces.routing import GATES, RouteName, ServerConfig, UnsupportedCombination, route_of
from radixledger.cache.faces.unified import UnifiedRadixCache
from radixledger.cache.opening import HostCopies, opened_ranks
from radixledger.cache.prefix_cache import ComponentType, MatchPrefixParams, RadixKey
from radixledger.cache.routes import ROUTES
from radixledger.cache.traits import TRAITS
from radixledger.journal.events import Admitted, Finished
from radixledger.journal.sizes import BadConfig

from .server import EventList, Request, text
from .test_routing import TRUTH, UNSUPPORTED

PAGE, WINDOW = 4, 6
CLASSES: dict[RouteName, type[RadixFace]] = {
    "unified": UnifiedRadixCache,
    "legacy": SWARadixCache,
    "swa_chunk": SWAChunkCache,
    "radix": UnifiedRadixCache,
    "chunk": ChunkCache,
}
truth = pytest.mark.parametrize(("hybrid", "unified", "disabled", "route"), TRUTH)
asked_for = pytest.mark.parametrize(
    ("field", "value"),
    [(field, value) for field, value, *_ in UNSUPPORTED],
    ids=[f"{f} {v}" for f, v, *_ in UNSUPPORTED],
)


def keys_of(route: RouteName, config: ServerConfig) -> str:
    """The key mode of the ranks: where there is no tree, nothing is looked up by pairs."""
    return config.key_units if TRAITS[route].tree else "raw"


class Ground:
    """What a cache is built over: rows, slots of one pool or two, journals."""

    def __init__(self, config: ServerConfig) -> None:
        self.config = config
        self.window = WINDOW if config.hybrid_swa else None
        size, size_swa = 24 * PAGE, 24 * PAGE * config.hybrid_swa
        # A journal is opened for the route that its server asked for, or, where that is refused, for the way back.
        route = route_of(ServerConfig(config.hybrid_swa, config.unified, config.disable_radix_cache))
        opened = opened_ranks(
            size, size_swa, PAGE, 1, route=route, sliding_window_size=self.window or 0, rows=4, max_context_len=96,
            key_mode=keys_of(route, config),
        )  # fmt: skip
        self.journals = [EventList(each) for each in opened]
        self.pool = ReqToTokenPool(4, 96)
        self.allocator: PoolAllocator = (
            SWATokenToKVPoolAllocator(size, size_swa, None, PAGE, journals=self.journals)
            if config.hybrid_swa
            else TokenToKVPoolAllocator(size, None, PAGE, journals=self.journals)
        )
        self.ranks = list(self.allocator.ranks)

    def build(self, **changed: Any) -> RadixFace:
        return build_prefix_cache(
            self.config._replace(**changed), self.pool, self.allocator, sliding_window_size=self.window
        )

    def seen(self) -> list[object]:
        """All that a refusal must leave as it is."""
        return [
            [rank.digest() for rank in self.ranks],
            [rank.state.seq for rank in self.ranks],
            [len(journal.events) for journal in self.journals],
            [id(rank) for rank in self.allocator.ranks],
            self.pool.free_slots,
            self.pool._ranks,
        ]


def told(hybrid: bool, unified: bool, disabled: bool) -> ServerConfig:
    return ServerConfig(hybrid, unified, disabled, PAGE)


def test_there_is_a_class_for_every_route() -> None:
    """R195-R198: who adds a route says how its cache is built."""
    assert set(BUILT) == set(CLASSES) == set(ROUTES)


@truth
def test_each_row_of_the_truth_table_gets_its_class(
    hybrid: bool, unified: bool, disabled: bool, route: RouteName
) -> None:
    """R195-R200, A43: over the pools that the model has, with the route in every journal."""
    ground = Ground(told(hybrid, unified, disabled))
    cache = ground.build()
    assert type(cache) is CLASSES[route]
    assert [rank.state.opened.route for rank in cache.ranks] == [route]
    assert cache.supports_swa() == hybrid
    components = [ComponentType.FULL, ComponentType.SWA] if hybrid else [ComponentType.FULL]
    assert list(cache.tree_components) == components


@truth
def test_a_cache_serves_whatever_its_class(
    hybrid: bool, unified: bool, disabled: bool, route: RouteName
) -> None:
    """R5, R124-R126, R145: one life through the calls of a prefix cache; nothing asks which one it is."""
    ground = Ground(told(hybrid, unified, disabled))
    cache = ground.build()
    for turn in range(2):
        live(cache, ground, Request(f"r{turn}", text("a", 0, 22 + turn)))
    journal = ground.journals[0]
    assert (len(journal.of(Admitted)), len(journal.of(Finished))) == (2, 2)
    cache.sanity_check()
    cache.reset()
    state = cache.ranks[0].state
    assert (state.full.available, state.swa.available) == (24, 24 * hybrid)


def live(cache: RadixFace, ground: Ground, req: Request) -> None:
    """A request from its first match to its end, as a server that knows capabilities alone would do it."""
    found = cache.match_prefix(MatchPrefixParams(RadixKey(req.fill_ids[:-1]), req=req))
    req.prefix_indices, req.last_node = found.device_indices, found.last_device_node
    req.cache_protected_len = start = found.device_indices.size
    req.cache_lock_params = cache.inc_lock_ref(req.last_node).to_dec_params()
    req.swa_uuid_for_lock = req.cache_lock_params.swa_uuid_for_lock
    ground.pool.alloc([req])
    stop = len(req.fill_ids)
    last = int(req.prefix_indices[-1]) if start else -1
    slots = ground.allocator.alloc_extend([start], [stop], [last], stop - start)
    assert slots is not None
    ground.pool.write((req.row, slice(0, start)), req.prefix_indices)
    ground.pool.write((req.row, slice(start, stop)), slots)
    req.kv_committed_len = req.kv_allocated_len = stop
    cache.cache_unfinished_req(req)
    if cache.supports_swa():
        cache.evict_req_swa(req, stop - 1)
    cache.cache_finished_req(req)
    ground.pool.free(req)


@asked_for
def test_a_refused_configuration_has_touched_nothing_and_the_way_back_is_open(field: str, value: Any) -> None:
    """R8-R11, R14, R204, A44: digests, journals, rows and ranks are what they were; without it the cache is built."""
    ground = Ground(told(True, True, False))
    before = ground.seen()
    with pytest.raises(UnsupportedCombination) as refused:
        ground.build(**{field: value})
    assert refused.value.field == field
    assert ground.seen() == before
    assert type(ground.build()) is UnifiedRadixCache


@truth
@asked_for
def test_a_gate_of_the_unified_route_is_no_gate_of_another(
    hybrid: bool, unified: bool, disabled: bool, route: RouteName, field: str, value: Any
) -> None:
    """R201: what the server does itself is built; what the cache does not have is refused as its own lack."""
    if route == "unified":
        assert field in {gate.field for gate in GATES}
        return
    config = told(hybrid, unified, disabled)._replace(**{field: value})
    ground = Ground(config)
    before = ground.seen()
    lacked = "key_units" if config.key_units != "raw" and route == "legacy" else field
    if lacked in BUILT[route].lacks:
        with pytest.raises(NotOnThisRoute, match=f"the {route} cache has nothing of the kind") as refused:
            ground.build()
        assert (refused.value.field, refused.value.route) == (lacked, route)
        assert ground.seen() == before
    elif field in ("recurrent", "hierarchical_cache"):
        with pytest.raises(
            BadConfig, match=r"it has 0 (state slots, the cache keeps states|slots on the host)"
        ) as lacking:
            ground.build()
        assert (lacking.value.field, ground.seen()) == ("token_to_kv_pool_allocator", before)
    else:
        cache = ground.build()
        assert type(cache) is CLASSES[route]
        assert cache.ranks[0].state.config.key_mode == keys_of(route, config)


def test_a_host_tier_is_built_below_full_slots_and_is_the_allocators() -> None:
    """R201, R211: pages, policy and threshold stand in the journal; an allocator without slots there, or with, must be meant."""
    copies = HostCopies(8 * PAGE, "back", 2)
    allocator = TokenToKVPoolAllocator(24 * PAGE, None, PAGE, host=copies)
    config = told(False, False, False)
    with pytest.raises(BadConfig, match="the server wants no host tier"):
        build_prefix_cache(config, ReqToTokenPool(4, 96), allocator)
    tiered = config._replace(hierarchical_cache=True)
    cache = build_prefix_cache(tiered, ReqToTokenPool(4, 96), allocator)
    config_of_rank = cache.ranks[0].state.config
    assert (config_of_rank.host_pages, config_of_rank.host_write, config_of_rank.host_threshold) == (
        8,
        "back",
        2,
    )
    assert cache.ranks[0].state.host.available == 8
    with pytest.raises(BadConfig, match="host_pages"):
        ChunkCache(ReqToTokenPool(4, 96), TokenToKVPoolAllocator(24 * PAGE, None, PAGE, host=copies), PAGE)
    with pytest.raises(ValueError, match="make no page"):
        TokenToKVPoolAllocator(24 * PAGE, None, PAGE, host=HostCopies(PAGE - 1))


def test_the_flag_alone_is_the_way_back_and_forth() -> None:
    """R203, R13: the same pools, sizes and window; nothing but the flag differs, and both serve."""
    found = []
    for unified in (True, False, True):
        ground = Ground(told(True, unified, False))
        cache = ground.build()
        live(cache, ground, Request("r", text("a", 0, 22)))
        cache.sanity_check()
        found.append((type(cache), cache.ranks[0].state.opened.config))
    assert [kind for kind, _ in found] == [UnifiedRadixCache, SWARadixCache, UnifiedRadixCache]
    assert found[0][1] == found[1][1] == found[2][1]


@pytest.mark.parametrize("window", [None, 0, -4])
@pytest.mark.parametrize(("unified", "disabled"), [(True, False), (False, False), (False, True)])
def test_a_hybrid_model_without_a_window_is_refused_and_has_touched_nothing(
    window: int | None, unified: bool, disabled: bool
) -> None:
    """R57, A44: on each of the three routes of hybrid models."""
    ground = Ground(told(True, unified, disabled))
    before = ground.seen()
    with pytest.raises(BadConfig, match="sliding_window_size"):
        build_prefix_cache(ground.config, ground.pool, ground.allocator, sliding_window_size=window)
    assert ground.seen() == before


def test_a_model_without_a_window_is_given_none() -> None:
    """R198: a window that nothing slides in is a mistake of the caller's, and said to be."""
    ground = Ground(told(False, False, False))
    with pytest.raises(BadConfig, match="a model that is not hybrid has none"):
        build_prefix_cache(ground.config, ground.pool, ground.allocator, sliding_window_size=8)


@pytest.mark.parametrize("hybrid", [True, False])
def test_pools_of_another_model_are_refused(hybrid: bool) -> None:
    """R58: two pools for a hybrid model, one for another."""
    ground, other = Ground(told(hybrid, True, False)), Ground(told(not hybrid, True, False))
    before = other.seen()
    with pytest.raises(BadConfig):
        build_prefix_cache(ground.config, ground.pool, other.allocator, sliding_window_size=ground.window)
    assert other.seen() == before
