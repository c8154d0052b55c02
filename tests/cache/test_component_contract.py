"""What the tree and its SWA component owe each other: how they are built, who consumes what, whose order is whose."""

import pytest

from radixledger.cache.faces.allocator import SWATokenToKVPoolAllocator
from radixledger.cache.faces.request_rows import ReqToTokenPool
from radixledger.cache.faces.unified import UnifiedRadixCache
from radixledger.cache.opening import opened_ranks
from radixledger.cache.prefix_cache import CacheInitParams, ComponentType
from radixledger.cache.refusals import Busy
from radixledger.cache.state import Node, State
from radixledger.journal.events import Freed, Healed
from radixledger.journal.sizes import BadConfig
from radixledger.journal.units import NodeId

from .driven import SHAPES, Driven
from .server import BOTH, FULL, SWA, EventList, Server, path, shape, text

paged = pytest.mark.parametrize("page_size", [1, 16, 128, 256])


def built(**changes: object) -> UnifiedRadixCache:
    """A cache of pages of 4 and a window of 4, with some arguments or parameters changed."""
    pool, allocator = ReqToTokenPool(4, 64), SWATokenToKVPoolAllocator(64, 64, None, 4)
    params = CacheInitParams(pool, allocator, 4, sliding_window_size=4)
    arguments: dict[str, object] = {"tree_components": BOTH, "component_init_params": params}
    for name, value in changes.items():
        if name.startswith("told_"):
            setattr(params, name.removeprefix("told_"), value)
        else:
            arguments[name] = value
    return UnifiedRadixCache(pool, allocator, 4, **arguments)  # type: ignore[arg-type]


def test_a_cache_without_parameters_for_its_components_is_not_built() -> None:
    """R56."""
    with pytest.raises(BadConfig) as bad:
        built(component_init_params=None)
    assert bad.value.field == "component_init_params"


@pytest.mark.parametrize("window", [None, 0, -1])
def test_swa_needs_a_positive_window(window: int | None) -> None:
    """R57."""
    with pytest.raises(ValueError, match="sliding_window_size"):
        built(told_sliding_window_size=window)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("req_to_token_pool", ReqToTokenPool(4, 64)),
        ("token_to_kv_pool_allocator", SWATokenToKVPoolAllocator(64, 64, None, 4)),
        ("page_size", 8),
        ("is_eagle", True),
        ("enable_recurrent_extra_buffer", True),
        ("recurrent_track_interval", 256),
    ],
)
def test_parameters_that_say_something_else_than_the_cache_are_named(field: str, value: object) -> None:
    """R58: also pools that are equal but not the same."""
    with pytest.raises(BadConfig) as bad:
        built(**{f"told_{field}": value})
    assert bad.value.field == field


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tree_components", (SWA,)),
        ("tree_components", (SWA, FULL)),
        ("tree_components", (FULL, SWA, ComponentType.RECURRENT)),
        ("is_eagle", True),
        ("enable_recurrent_extra_buffer", True),
        ("recurrent_track_interval", 256),
    ],
)
def test_what_is_not_served_is_refused_before_anything_exists(field: str, value: object) -> None:
    """R10, R11, R14: no cache, no event, and the allocator is as it was."""
    with pytest.raises(BadConfig) as bad:
        built(**{field: value})
    assert bad.value.field == field


@pytest.mark.parametrize("lift_bigram", [False, True])
@pytest.mark.parametrize(
    "components", [(SWA,), (ComponentType.RECURRENT,), (SWA, ComponentType.RECURRENT), (FULL, SWA)]
)
def test_pairs_are_served_over_full_and_windows_and_only_if_they_are_lifted(
    components: tuple[ComponentType, ...], lift_bigram: bool
) -> None:
    """R10, R267, R270: windows alone and states alone are no tree; the rest is refused until it is asked for by name."""
    ask = {"tree_components": components, "is_eagle": True, "told_is_eagle": True, "lift_bigram": lift_bigram}
    if components == BOTH and lift_bigram:
        assert built(**ask).ranks[0].state.config.key_mode == "bigram"
        return
    with pytest.raises(BadConfig) as bad:
        built(**ask)
    assert bad.value.field == ("is_eagle" if components == BOTH else "tree_components")
    assert components != BOTH or "lift_bigram" in str(bad.value)


def test_lifting_pairs_changes_nothing_where_there_are_none() -> None:
    """R10, R24: the option is an answer to a question; without the question it is idle."""
    assert built(lift_bigram=True).ranks[0].state.opened == built().ranks[0].state.opened


def test_a_cache_and_its_journals_have_to_agree_on_the_window_before_anything_is_handed_out() -> None:
    """R58: a journal that was opened for another cache, or slots handed out too early, are refused."""
    opened = opened_ranks(64, 64, 4, 1, sliding_window_size=8, rows=4, max_context_len=64)
    allocator = SWATokenToKVPoolAllocator(64, 64, None, 4, journals=[EventList(opened[0])])
    pool = ReqToTokenPool(4, 64)
    params = CacheInitParams(pool, allocator, 4, sliding_window_size=4)
    with pytest.raises(BadConfig) as bad:
        UnifiedRadixCache(pool, allocator, 4, tree_components=BOTH, component_init_params=params)
    assert bad.value.field == "window_tokens"
    params.sliding_window_size, params.is_eagle = 8, True
    with pytest.raises(BadConfig, match="key_mode: the journal was opened with raw, the cache needs bigram"):
        UnifiedRadixCache(
            pool, allocator, 4, is_eagle=True, lift_bigram=True, tree_components=BOTH,
            component_init_params=params,
        )  # fmt: skip
    params.is_eagle = False
    assert allocator.alloc(4) is not None
    with pytest.raises(Busy, match="before the cache"):
        UnifiedRadixCache(pool, allocator, 4, tree_components=BOTH, component_init_params=params)
    with pytest.raises(BadConfig, match="journal"):
        SWATokenToKVPoolAllocator(128, 64, None, 4, journals=[EventList(opened[0])])


# -- consumed boundaries -------------------------------------------------------------------------------------------


def consumed(server: Server, prev: int, released: int) -> tuple[list[int], list[int]]:
    """Insert a[0:16) over what is there; the pages freed as duplicates, and those that a heal adopted, by position."""
    before = len(server.journal.events)
    slots = server.slots(16)
    place = {int(slot) // 4: at for at, slot in enumerate(slots[::4])}
    server.insert(text("a", 0, 16), slots, prev=prev, released=released)
    freed: list[int] = []
    adopted: list[int] = []
    for event in server.journal.events[before:]:
        if isinstance(event, Freed):
            freed += memoryview(event.full).cast("i").tolist()
        if isinstance(event, Healed):
            adopted += memoryview(event.fresh).cast("i").tolist()
    return [place[page] for page in freed], [place[page] for page in adopted]


@pytest.mark.parametrize("groups", ["L L L L", "LLLL", "dddL", "ddL dL"])
@pytest.mark.parametrize("prev", [0, 4, 8, 12])
@pytest.mark.parametrize("released", [0, 4, 8, 12])
@pytest.mark.parametrize("dead", [0, 4, 8])
def test_a_slice_is_freed_up_to_the_consumed_boundary_and_adopted_from_there(
    groups: str, prev: int, released: int, dead: int
) -> None:
    """R59-R61: SWA consumes a tombstone from max(released, prev) on, FULL nothing; the smaller boundary counts.

    Exactly [prev, boundary) of each node is freed (A9, A10), wherever in a node prev and boundary lie.
    """
    server = Server(4, 4, full_pages=32, swa_pages=32)
    path(server, groups)
    server.evict(swa=dead)
    pages = shape(server, text("a", 0, 16)).replace(" ", "").ljust(4)
    freed, adopted = consumed(server, prev, released)
    heals_from = max(prev, released) // 4
    assert adopted == [at for at in range(4) if heals_from <= at and pages[at] == "d"]
    assert freed == [at for at in range(prev // 4, 4) if at not in adopted and pages[at] != " "]
    server.check()


@paged
def test_what_an_insert_freed_nobody_frees_again(page_size: int) -> None:
    """R62: of two requests with one prompt the second one's pages are freed once, by the insert."""
    server = Server(page_size, page_size)
    reqs = [server.start(text("a", 0, 2 * page_size)) for _ in range(2)]
    for req in reqs:
        server.cache_so_far(req)
        server.end(req)
    freed: list[int] = []
    for event in server.journal.of(Freed):
        freed += memoryview(event.full).cast("i").tolist()
    assert len(freed) == len(set(freed)) == 2
    assert server.sizes()["full_free"] == 14 * page_size
    server.check()


@paged
@pytest.mark.parametrize("dead", [False, True])
def test_the_prefix_that_an_insert_reports_is_what_was_there_healed_or_not(
    page_size: int, dead: bool
) -> None:
    """R63: matched length and transfer of ownership are two things."""
    server = Server(page_size, page_size)
    server.insert(text("a", 0, 2 * page_size))
    if dead:
        server.evict(swa=page_size)
    assert server.insert(text("a", 0, 3 * page_size)).prefix_len == 2 * page_size
    assert len(server.journal.of(Healed)) == int(dead)
    server.check()


@paged
def test_two_halves_of_a_cut_node_share_nothing(page_size: int) -> None:
    """R66: each half has its own values, window and locks."""
    server = Server(page_size, 4 * page_size)
    server.insert(text("a", 0, 4 * page_size))
    upper = server.match(text("a", 0, 2 * page_size)).last_device_node
    (lower,) = upper.children
    halves = [node.component_data[FULL].value.tolist() for node in (upper, lower)]
    assert not set(halves[0]) & set(halves[1])
    server.match(text("a", 0, 4 * page_size))
    assert server.evict(swa=2 * page_size) == (0, 2 * page_size)
    assert upper.component_data[SWA].value is None
    assert lower.component_data[SWA].value is not None
    receipt = server.cache.inc_lock_ref(upper).to_dec_params()
    assert lower.component_data[FULL].lock_ref == lower.component_data[SWA].lock_ref == 0
    server.cache.dec_lock_ref(upper, receipt)
    server.check()


# -- orders of victims -----------------------------------------------------------------------------------------------


@paged
def test_swa_recency_and_full_recency_move_apart(page_size: int) -> None:
    """R67: a match that no window allowed makes FULL younger and leaves the order of windows as it was."""
    server = Server(page_size, page_size)
    for letter in "abc":
        server.insert(text(letter, 0, page_size))
        server.insert(text(letter, 0, 2 * page_size))
    assert [server.evict(swa=page_size) for _ in range(2)] == [(0, page_size), (page_size, page_size)]
    state = server.rank().state
    windows = [node.swa_tick for node in state.nodes.values()]
    server.match(text("a", 0, page_size), full_only=True)
    assert [node.swa_tick for node in state.nodes.values()] == windows
    assert server.evict(full=page_size) == (page_size, page_size)
    assert [server.hit(text(letter, 0, 2 * page_size)) for letter in "bc"] == [page_size, 2 * page_size]
    assert full_hit(server, "a")
    server.check()


@paged
def test_full_victims_come_in_the_same_order_whether_windows_were_lost_or_not(page_size: int) -> None:
    """R68: the SWA component adds an order and changes none."""
    orders = []
    for lose in (False, True):
        server = Server(page_size, page_size, full_pages=20, swa_pages=20)
        for letter in "abcd":
            server.insert(text(letter, 0, 2 * page_size))
        server.match(text("b", 0, 2 * page_size))
        if lose:
            server.evict(swa=3 * page_size)
        order = []
        while server.cache.full_evictable_size():
            alive = {letter for letter in "abcd" if full_hit(server, letter)}
            server.evict(full=2 * page_size)
            order += sorted(alive - {letter for letter in "abcd" if full_hit(server, letter)})
        orders.append(order)
    assert orders == [["a", "c", "d", "b"]] * 2


def full_hit(server: Server, letter: str) -> bool:
    return bool(server.cache.peek(server.key(text(letter, 0, 2 * server.page_size))).full_tokens)


def candidates(state: State) -> tuple[set[NodeId], set[NodeId]]:
    """Nodes that the two orders would offer, by what the entries point at."""
    leaves = {entry[2].id for entry in state.leaf_order if entry[2].parent and not is_held(entry[2])}
    windows = {
        entry[2].id
        for entry in state.window_order
        if entry[2].parent and entry[2].swa and not entry[2].swa_locks
    }
    return leaves, windows


def is_held(node: Node) -> bool:
    return bool(node.children) or node.holds > 0


@pytest.mark.parametrize("shape", SHAPES)
def test_the_candidates_are_at_every_moment_those_that_a_scan_would_find(
    shape: tuple[int, int, int, int],
) -> None:
    """R69: live nodes that no window lock holds, and childless nodes that no lock holds; R70: never the root."""
    driven = Driven(1, shape)
    for _ in driven.steps(150):
        state = driven.cache.state
        nodes = [node for node in state.nodes.values() if node.parent is not None]
        leaves = {node.id for node in nodes if not is_held(node)}
        windows = {node.id for node in nodes if node.swa and not node.swa_locks}
        assert candidates(state) == (leaves, windows)
        assert all(entry[2].id for order in (state.leaf_order, state.window_order) for entry in order)


@paged
def test_the_root_is_locked_for_ever_and_no_eviction_reaches_it(page_size: int) -> None:
    """R70."""
    server = Server(page_size, page_size)
    root = server.match([]).last_device_node
    assert root.parent is None
    assert [root.component_data[component].lock_ref for component in BOTH] == [1, 1]
    for asked in (2, 100):
        server.insert(text("a", 0, 2 * page_size))
        assert server.evict(asked * page_size, asked * page_size) == (2 * page_size, 2 * page_size)
        assert all(entry[2].id for entry in server.rank().state.leaf_order)
    assert server.evict(page_size, page_size) == (0, 0)
    assert root.children == []
    server.insert(text("a", 0, 2 * page_size))
    assert len(root.children) == 1
    server.check()


@paged
def test_a_dead_window_skips_a_boundary_and_a_deeper_one_may_still_win(page_size: int) -> None:
    """R71: FULL is contiguous from the root; an SWA miss is a miss of that node only."""
    server = Server(page_size, page_size)
    for pages in range(1, 5):
        server.insert(text("a", 0, pages * page_size))
    server.match(text("a", 0, 4 * page_size))
    server.match(text("a", 0, 3 * page_size))
    server.evict(swa=2 * page_size)
    hits = [server.hit(text("a", 0, pages * page_size)) for pages in range(1, 5)]
    assert hits == [0, 0, 3 * page_size, 4 * page_size]
    diverging = text("a", 0, 3 * page_size) + text("b", 0, page_size)
    assert server.hit(diverging) == 3 * page_size


@paged
def test_a_running_request_goes_on_whatever_became_of_windows_before_its_own(page_size: int) -> None:
    """R72: after an insert its protected length is the insert stop, though a component-gated match may refuse (B1)."""
    server = Server(page_size, page_size, full_pages=24, swa_pages=24)
    req = server.admit(text("a", 0, 6 * page_size + 1))
    server.prefill(req, 2 * page_size)
    server.cache_so_far(req)
    server.evict(swa=page_size)
    server.prefill(req, 4 * page_size)
    server.cache_so_far(req)
    server.evict(swa=8 * page_size)
    server.prefill(req)
    server.cache_so_far(req)
    assert req.cache_protected_len == (6 * page_size + 1) // page_size * page_size
    assert server.hit(text("a", 0, 2 * page_size)) == 0
    assert server.hit(text("a", 0, 6 * page_size)) == 6 * page_size
    server.check()
