"""Faults of order and size that people met in the field: who is evicted first, how much, how deep, how large."""

from itertools import pairwise

import numpy as np
import pytest

from radixledger.cache.face_rank import as_slots, slots_of_pages
from radixledger.cache.faces.allocator import SWATokenToKVPoolAllocator
from radixledger.cache.keys import raw_key
from radixledger.journal.sizes import BadConfig
from radixledger.journal.units import Pages

from ..cache.server import Server, path, shape, text


def test_a_suffix_that_a_match_did_not_reach_stays_as_old_as_it_was() -> None:
    """B120: a[3:8) goes before c, though a[0:3) was just used."""
    server = Server(1, 8, full_pages=32, swa_pages=32)
    server.insert(text("a", 0, 8))
    server.insert(text("c", 0, 4))
    server.match(text("a", 0, 3))
    assert server.evict(full=5) == (5, 5)
    assert server.hit(text("c", 0, 4)) == 4
    assert server.hit(text("a", 0, 8)) == 3
    server.check()


def test_a_match_does_not_make_windows_young_that_it_does_not_need() -> None:
    """B122: a[0:12) loses its SWA before c, d and a[12:16) do."""
    server = Server(4, 4, full_pages=32, swa_pages=32)
    tokens = path(server, "L L L L")
    for letter in "cd":
        path(server, "L", letter)
    for letter in "cd":
        server.match(text(letter, 0, 4))
    server.match(tokens)
    assert server.evict(swa=12) == (0, 12)
    assert shape(server, tokens) == "d d d L"
    assert server.hit(tokens) == 16
    assert [server.hit(text(letter, 0, 4)) for letter in "cd"] == [4, 4]
    server.check()


@pytest.mark.parametrize("pool", ["full", "swa"])
def test_an_eviction_stops_when_it_has_what_was_asked(pool: str) -> None:
    """B127: 4, then two leaves for 5, nothing for 0, and what is left for 1000; each answer is what was freed."""
    server = Server(4, 4)
    for letter in "abcde":
        server.insert(text(letter, 0, 4))
    free = [server.sizes()[f"{pool}_free"]]
    answers = []
    for asked in (4, 5, 0, 1000):
        answers.append(server.evict(**{pool: asked}))
        free.append(server.sizes()[f"{pool}_free"])
    assert answers == [(4, 4), (8, 8), (0, 0), (8, 8)]
    assert [after - before for before, after in pairwise(free)] == [4, 8, 0, 8]
    server.check()


def test_a_tree_of_five_thousand_levels_is_walked_without_recursion() -> None:
    """B139: one token per level; match, sizes, locks, drawing, check, fold, evict and flush."""
    depth = 5000
    server = Server(1, 4, full_pages=depth + 10, swa_pages=depth + 10)
    rank, tokens = server.rank(), text("a", 0, depth)
    key, one = raw_key([*tokens, 1]), np.array([1], np.int32)
    request = rank.admit("deep", key, depth + 1).request
    number = np.array([request], np.int64)
    for level in range(1, depth + 1):
        rank.extend(number, one)
        rank.cache_unfinished(request, key, level)
    rank.finish(request, None)
    assert len(rank.state.nodes) == depth + 1
    leaf = server.match(tokens).last_device_node
    assert leaf.path_slots.size == depth
    receipt = server.cache.inc_lock_ref(leaf).to_dec_params()
    server.cache.dec_lock_ref(leaf, receipt)
    assert server.cache.total_size() == (depth, depth)
    assert server.cache.pretty_print().count("\n") == depth
    server.check()
    assert server.evict(swa=depth // 2) == (0, depth // 2)
    assert server.evict(full=depth // 2)[0] == depth // 2
    server.cache.reset()
    assert server.allocator.available_size() == depth + 10


def test_slots_beyond_int32_are_refused_at_the_start_and_below_it_are_exact() -> None:
    """B141: a pool whose last slot does not fit is not made, and a slot that does not fit is no slot."""
    for page_size, pages in ((1, 1 << 31), (16, 1 << 27), (3, (1 << 31) // 3), (256, 1 << 31)):
        with pytest.raises(BadConfig, match=r"int32|between"):
            SWATokenToKVPoolAllocator(page_size * pages, page_size, None, page_size)
        with pytest.raises(BadConfig, match=r"int32|between"):
            SWATokenToKVPoolAllocator(page_size, page_size * pages, None, page_size)
    last = (1 << 27) - 1
    slots = slots_of_pages(Pages(last.to_bytes(4, "little")), 16)
    assert slots.tolist() == list(range(last * 16, (1 << 31)))
    assert as_slots([(1 << 31) - 1]).tolist() == [(1 << 31) - 1]
    server = Server(4, 4)
    for slot in (1 << 31, 4 + (1 << 34), -2):
        with pytest.raises(ValueError, match="slots reach"):
            server.allocator.free([slot])
    assert server.allocator.available_size() == 64
