"""Who is evicted, what goes with it, and what the caller is told."""

import random

import numpy as np
import pytest

from radixledger.cache.eviction import oldest_window
from radixledger.cache.refusals import Busy
from radixledger.journal.accounts import Pool
from radixledger.journal.events import Evicted, Freed, Removed, Tombstoned
from radixledger.journal.moves import mappings, moves

from .driven import SHAPES, Driven
from .server import FULL, SWA, Server, path, shape

paged = pytest.mark.parametrize("page_size", [1, 16, 128, 256])


def roomy(page_size: int, window_pages: int = 1, **changes: int) -> Server:
    return Server(page_size, page_size * window_pages, full_pages=32, swa_pages=32, **changes)  # type: ignore[arg-type]


@paged
def test_an_inner_node_gives_its_swa_slots_and_keeps_its_full_slots_and_children(page_size: int) -> None:
    """R99: SWA gains, FULL and tree stay."""
    server = roomy(page_size)
    tokens = path(server, "LL LL")
    before, slots = server.sizes(), server.match(tokens).device_indices
    assert server.evict(swa=page_size) == (0, page_size)
    assert shape(server, tokens) == "d L L L"
    after = server.sizes()
    assert after["swa_free"] - before["swa_free"] == page_size
    assert after["full_free"] == before["full_free"]
    assert server.match(tokens, full_only=True).device_indices.tolist() == slots.tolist()
    told = server.journal.of(Tombstoned)[0]
    assert np.frombuffer(told.full, "<i4").tolist() == [int(slots[0]) // page_size]
    assert not server.allocator.count_swa_mapped(slots[:page_size])
    server.check()


@paged
def test_a_leaf_leaves_in_one_cascade_full_first_then_swa_each_page_once(page_size: int) -> None:
    """R100, R101: the mapping is still there when SWA is freed, and is cleared with it (A4)."""
    server = roomy(page_size)
    tokens = path(server, "L L")
    slots = server.match(tokens).device_indices
    swa = server.allocator.translate_full_to_swa(slots, dp_rank=0)
    before = len(server.journal.of(Freed))
    assert server.evict(full=page_size) == (page_size, page_size)
    assert server.evict(full=page_size) == (page_size, page_size)
    leaves = server.journal.of(Removed)
    assert [np.frombuffer(event.full, "<i4").tolist() for event in leaves] == [
        [int(slots[page_size]) // page_size],
        [int(slots[0]) // page_size],
    ]
    assert [np.frombuffer(event.swa, "<i4").tolist() for event in leaves] == [
        [int(swa[page_size]) // page_size],
        [int(swa[0]) // page_size],
    ]
    for event in leaves:
        assert [move.pool for move in moves(event)] == [Pool.FULL, Pool.SWA]
        assert [change.full for change in mappings(event)] == [event.full]
    assert len(server.journal.of(Freed)) == before
    assert server.sizes()["full_free"] == server.sizes()["swa_free"] == 32 * page_size
    assert not server.allocator.count_swa_mapped(slots)
    server.check()


@paged
def test_a_leaf_that_lost_its_window_before_gives_full_slots_only(page_size: int) -> None:
    """R100, R105: what is not there is not freed and not credited (B05)."""
    server = roomy(page_size)
    path(server, "L L")
    assert server.evict(swa=page_size) == (0, page_size)
    assert server.evict(full=2 * page_size) == (2 * page_size, page_size)
    assert server.journal.of(Removed)[-1].swa == b""
    assert server.sizes()["swa_free"] == 32 * page_size
    server.check()


@paged
def test_a_locked_leaf_is_never_removed_and_a_locked_window_never_taken(page_size: int) -> None:
    """R102: whatever is asked."""
    server = roomy(page_size)
    tokens = path(server, "L L L")
    path(server, "L L", "b")
    node = server.match(tokens).last_device_node
    receipt = server.cache.inc_lock_ref(node).to_dec_params()
    assert server.evict(99 * page_size, 99 * page_size) == (2 * page_size, 4 * page_size)
    assert shape(server, tokens) == "d d L"
    assert server.sizes()["full_protected"] == 3 * page_size
    assert server.sizes()["swa_protected"] == page_size
    server.cache.dec_lock_ref(node, receipt)
    assert server.evict(99 * page_size, 99 * page_size) == (3 * page_size, page_size)
    server.check()


@pytest.mark.parametrize("shape_of_rank", SHAPES)
def test_no_lock_is_ever_met_by_an_eviction_of_a_random_run(shape_of_rank: tuple[int, int, int, int]) -> None:
    """R102: no event of any eviction names a node that a lock holds at that moment."""
    driven = Driven(5, shape_of_rank)
    seen = 0
    for _ in driven.steps(250):
        state, before = driven.cache.state, len(driven.journal.events)
        held = {node.id for node in state.nodes.values() if node.holds}
        windows = {node.id for node in state.nodes.values() if node.swa_locks}
        driven.cache.evict(driven.chance.randrange(3), driven.chance.randrange(6))
        for event in driven.journal.events[before:]:
            if isinstance(event, Removed):
                assert event.node not in held | windows
            if isinstance(event, Tombstoned):
                assert event.node not in windows
                seen += 1
    assert seen


@pytest.mark.parametrize("shape_of_rank", SHAPES)
def test_swa_victims_come_by_age_and_then_by_number(shape_of_rank: tuple[int, int, int, int]) -> None:
    """R103: the next victim is the one that a scan of all candidates would choose."""
    driven = Driven(7, shape_of_rank)
    for _ in driven.steps(200):
        nodes = [node for node in driven.cache.state.nodes.values() if node.swa and not node.swa_locks]
        expected = min(nodes, key=lambda node: (node.swa_tick, node.id), default=None)
        assert oldest_window(driven.cache.state) is expected


@paged
def test_a_childless_candidate_of_swa_pressure_goes_with_both_pools(page_size: int) -> None:
    """R104: an inner one becomes a tombstone."""
    server = roomy(page_size)
    tokens = path(server, "L L")
    path(server, "L", "b")
    assert server.evict(swa=page_size) == (0, page_size)
    assert [type(event) for event in server.journal.events[-2:]] == [Tombstoned, Evicted]
    assert server.evict(swa=page_size) == (page_size, page_size)
    assert [type(event) for event in server.journal.events[-2:]] == [Removed, Evicted]
    assert shape(server, tokens) == "d"
    server.check()


@paged
@pytest.mark.parametrize("seed", range(3))
def test_what_is_reported_is_what_the_pools_gained(page_size: int, seed: int) -> None:
    """R105, R108: never more, and less than asked where there is no more."""
    chance = random.Random(seed)
    server = roomy(page_size, 2)
    for letter in "abcdef":
        path(server, chance.choice(["L L", "LL", "d" + "L", "LLL L"]), letter)
    while server.cache.full_evictable_size():
        before = server.sizes()
        asked = chance.randrange(3) * page_size, chance.randrange(4) * page_size
        gained = server.evict(*asked)
        after = server.sizes()
        delta = (after["full_free"] - before["full_free"], after["swa_free"] - before["swa_free"])
        assert gained == delta
        if not any(asked):
            server.evict(page_size, page_size)
        server.check()
    assert server.evict(page_size, page_size) == (0, 0)


@paged
def test_swa_slots_that_full_victims_take_along_count_for_the_same_call(page_size: int) -> None:
    """R106: nothing more is evicted for a wish that is fulfilled by then."""
    server = roomy(page_size)
    path(server, "LL", "a")
    path(server, "LL", "b")
    assert server.evict(page_size, page_size) == (page_size, page_size)
    assert [len(server.journal.of(kind)) for kind in (Removed, Tombstoned)] == [1, 0]
    assert server.journal.of(Evicted)[-1].gained_swa == 1


@paged
def test_a_rank_is_asked_alone_or_all_in_turn(page_size: int) -> None:
    """R107: with a rank only its nodes go, without one all ranks give until it is enough (A30)."""
    server = roomy(page_size, dp_size=2)
    for rank in (0, 1):
        path(server, "L", dp_rank=rank)
        path(server, "L", "b", dp_rank=rank)
    assert server.evict(99 * page_size, 0, dp_rank=1) == (2 * page_size, 2 * page_size)
    assert [server.cache.full_evictable_size(rank) for rank in (0, 1)] == [2 * page_size, 0]
    for rank in (0, 1):
        path(server, "L", "c", dp_rank=rank)
    assert server.evict(page_size) == (page_size, page_size)
    assert server.evict(3 * page_size) == (3 * page_size, 3 * page_size)
    totals = [row["full_evicted_total"] for row in server.cache.ledger()]
    assert totals == [3 * page_size, 3 * page_size]
    server.check()


@paged
def test_less_than_a_page_is_a_page_and_nothing_is_nothing(page_size: int) -> None:
    """R108: a wish is rounded up to pages, an empty one writes no event."""
    server = roomy(page_size)
    path(server, "L L")
    before = len(server.journal.events)
    assert server.evict(0, 0) == server.evict(-5, -5) == (0, 0)
    assert len(server.journal.events) == before
    assert server.evict(1) == (page_size, page_size)


@paged
def test_a_childless_node_that_only_full_locks_hold_loses_its_window_and_stays(page_size: int) -> None:
    """R109: healed after it was locked as a tombstone, or beyond the window: never leaf-deleted (A24, B12)."""
    server = roomy(page_size)
    tokens = path(server, "L L")
    upper = server.match(tokens[:page_size]).last_device_node
    leaf = server.match(tokens).last_device_node
    receipt = server.cache.inc_lock_ref(leaf).to_dec_params()
    state = server.rank().state
    state.nodes[leaf.id].swa_locks -= 1  # as if the window lock had been let go early
    state.swa_protected -= 1
    state.window_order.append((0, leaf.id, state.nodes[leaf.id]))
    assert server.evict(swa=2 * page_size) == (0, 2 * page_size)
    assert shape(server, tokens) == "d d"
    assert [node.component_data[FULL].lock_ref for node in (upper, leaf)] == [1, 1]
    assert leaf.component_data[SWA].value is None
    assert [event.node for event in server.journal.of(Tombstoned)][-1] == leaf.id
    assert receipt.swa_uuid_for_lock is not None


@paged
def test_only_tombstones_that_stay_are_counted_as_created(page_size: int) -> None:
    """R110: a leaf that goes is none (A31)."""
    server = roomy(page_size)
    path(server, "L L L")
    server.evict(swa=3 * page_size)
    assert server.cache.ledger(0)[0]["tombstone_created_total"] == 2
    assert server.cache.ledger(0)[0]["swa_evicted_total"] == 3 * page_size
    server.check()


def test_in_an_open_group_nothing_can_be_gained_so_nothing_is_evicted() -> None:
    """R108: what went would be pending, and credit would be a lie."""
    server = roomy(4)
    tokens = path(server, "L L")
    server.allocator.free_group_begin()
    with pytest.raises(Busy, match="group"):
        server.evict(4, 4)
    server.allocator.free_group_end()
    assert server.hit(tokens) == 8
    server.check()
