"""Who owns what: one tree, two pools, and every page with exactly one owner, on each rank for itself."""

import pytest

from radixledger.cache.refusals import Busy

from .server import FULL, SWA, Server, every_page_is_named_once, text

PAGE_SIZES = (1, 16, 128, 256)


@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_a_node_holds_the_full_slots_of_its_tokens(page_size: int) -> None:
    """R25: the base value of a node are its FULL slots, and there is one tree."""
    server = Server(page_size, page_size)
    slots = server.slots(3 * page_size)
    server.insert(text("a", 0, 3 * page_size), slots)
    found = server.match(text("a", 0, 3 * page_size))
    assert found.device_indices.tolist() == slots.tolist()
    node = found.last_device_node
    values: list[int] = []
    while node.parent is not None:
        value = node.component_data[FULL].value
        assert len(node.key) == value.size
        values = [*value.tolist(), *values]
        node = node.parent
    assert values == slots.tolist()
    assert [child.parent for child in node.children] == [node] * len(node.children)
    server.check()


@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_a_node_shows_the_swa_slots_that_its_full_slots_are_mapped_to_or_none(page_size: int) -> None:
    """R26: the SWA value is the translation of the FULL value, or None after its own eviction."""
    server = Server(page_size, page_size)
    server.insert(text("a", 0, 3 * page_size))
    leaf = server.match(text("a", 0, 3 * page_size)).last_device_node
    upper = leaf.parent
    for node in (leaf, upper):
        data = node.component_data
        mapped = server.allocator.translate_full_to_swa(data[FULL].value, dp_rank=0)
        assert data[SWA].value.tolist() == mapped.tolist()
    assert server.evict(swa=page_size) == (0, 2 * page_size)
    assert upper.component_data[SWA].value is None
    assert upper.component_data[FULL].value.size == 2 * page_size
    assert leaf.component_data[SWA].value.size == page_size
    server.check()


@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_a_command_about_a_node_touches_its_rank_only(page_size: int) -> None:
    """R27: the node's rank selects mapping, pools and journal."""
    server = Server(page_size, page_size, dp_size=2)
    for rank in (0, 1):
        server.insert(text("a", 0, 2 * page_size), dp_rank=rank)
    other = server.rank(0).digest(), len(server.journals[0].events)
    node = server.match(text("a", 0, 2 * page_size), 1).last_device_node
    receipt = server.cache.inc_lock_ref(node).to_dec_params()
    server.cache.dec_lock_ref(node, receipt)
    assert server.evict(2 * page_size, dp_rank=1) == (2 * page_size, 2 * page_size)
    assert (server.rank(0).digest(), len(server.journals[0].events)) == other
    assert server.hit(text("a", 0, 2 * page_size), 0) == 2 * page_size
    assert server.hit(text("a", 0, 2 * page_size), 1) == 0
    server.check()


@pytest.mark.parametrize("page_size", PAGE_SIZES)
@pytest.mark.parametrize("dp_size", [1, 2])
def test_every_page_has_exactly_one_owner_at_every_step_of_a_request(page_size: int, dp_size: int) -> None:
    """R28: free, a request or the tree, never two of them and never none."""
    server = Server(page_size, page_size, dp_size=dp_size, full_pages=24, swa_pages=24)
    dp_rank, rank = (1, server.rank(1)) if dp_size > 1 else (None, server.rank())
    shared = text("a", 0, 3 * page_size + 1)
    first = server.start(shared, dp_rank=dp_rank)
    assert every_page_is_named_once(rank)
    second = server.start(shared, dp_rank=dp_rank)  # computed at the same time: duplicates
    assert every_page_is_named_once(rank)
    for act in (
        lambda: server.cache_so_far(first),
        lambda: server.cache_so_far(second),
        lambda: server.decode(first, second),
        lambda: server.reclaim(first),
        lambda: server.evict(swa=3 * page_size),
        lambda: server.end(first),
        lambda: server.end(second, insert=False),
        lambda: server.evict(9 * page_size),
    ):
        act()
        assert every_page_is_named_once(rank)
        server.check()


@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_what_an_open_group_took_in_is_nobodys_and_cannot_be_handed_out(page_size: int) -> None:
    """R29: pending pages are neither owned nor available until the group is flushed."""
    server = Server(page_size, page_size, full_pages=2, swa_pages=2)
    slots = server.slots(2 * page_size)
    server.allocator.free_group_begin()
    server.allocator.free(slots)
    assert server.allocator.available_size() == 0
    assert server.allocator.alloc(page_size) is None
    assert server.cache.ledger(0)[0]["full_pending_free"] == 2 * page_size
    assert every_page_is_named_once(server.rank())
    server.allocator.free_group_end()
    assert server.allocator.available_size() == 2 * page_size
    assert server.allocator.alloc(2 * page_size) is not None


@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_evicting_the_window_of_an_inner_node_leaves_its_full_slots_and_its_place(page_size: int) -> None:
    """R30: only SWA slots are freed, and their mapping is gone."""
    server = Server(page_size, page_size)
    slots = server.slots(2 * page_size)
    server.insert(text("a", 0, 2 * page_size), slots)
    before = server.sizes()
    assert server.evict(swa=1) == (0, page_size)
    after = server.sizes()
    assert after["full_free"] == before["full_free"]
    assert after["swa_free"] == before["swa_free"] + page_size
    found = server.match(text("a", 0, 2 * page_size), full_only=True)
    assert found.device_indices.tolist() == slots.tolist()
    mapped = server.allocator.translate_full_to_swa(slots, dp_rank=0, require_mapped=False)
    assert not mapped[:page_size].any()
    assert mapped[page_size:].all()
    server.check()


@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_a_prefix_computed_again_heals_a_tombstone_with_its_own_slots(page_size: int) -> None:
    """R31: fresh FULL and SWA slots go from the request to the node."""
    server = Server(page_size, page_size)
    server.insert(text("a", 0, 2 * page_size))
    server.evict(swa=1)
    fresh = server.slots(2 * page_size)
    server.insert(text("a", 0, 2 * page_size), fresh)
    healed = server.match(text("a", 0, page_size)).last_device_node
    assert healed.component_data[FULL].value.tolist() == fresh[:page_size].tolist()
    assert healed.component_data[SWA].value is not None
    assert every_page_is_named_once(server.rank())
    server.check()


@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_equal_slot_numbers_of_two_ranks_are_two_resources(page_size: int) -> None:
    """R32: the same FULL slots, other SWA slots behind them, and a free on one rank frees nothing on the other."""
    server = Server(page_size, page_size, dp_size=2)
    zero, one = server.slots(2 * page_size, 0), server.slots(2 * page_size, 1)
    assert zero.tolist() == one.tolist()
    server.allocator.free_swa(one[page_size:], 1)
    server.allocator.transfer_swa_mapping(one[:page_size], one[page_size:], dp_rank=1)
    mapped = [
        server.allocator.translate_full_to_swa(zero, dp_rank=rank, require_mapped=False).tolist()
        for rank in (0, 1)
    ]
    assert mapped[0] != mapped[1]
    server.allocator.free(one, 1)
    assert server.allocator.available_size(0) == 14 * page_size
    assert server.allocator.available_size(1) == 16 * page_size


@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_a_flush_cannot_hide_a_leak(page_size: int) -> None:
    """R33: pages that nobody answers for are named, on whichever rank, and no tree is emptied."""
    server = Server(page_size, page_size, dp_size=2)
    for rank in (0, 1):
        server.insert(text("a", 0, page_size), dp_rank=rank)
    leaked = server.slots(page_size, 1)
    with pytest.raises(Busy, match="leak"):
        server.cache.reset()
    assert [server.hit(text("a", 0, page_size), rank) for rank in (0, 1)] == [page_size, page_size]
    server.allocator.free(leaked, 1)
    server.cache.reset()
    assert [server.allocator.available_size(rank) for rank in (0, 1)] == [16 * page_size] * 2
    assert server.cache.total_size() == (0, 0)
    server.check()
