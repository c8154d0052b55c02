"""Faults of requests whose slots two ways of letting go both took for theirs, or neither did."""

import numpy as np
import pytest

from radixledger.cache.refusals import DoubleFree
from radixledger.cache.traits import TRAITS
from radixledger.journal.accounts import Kind
from radixledger.journal.events import Freed
from radixledger.journal.moves import moves

from ..cache.server import Server, every_page_is_named_once, text


def test_a_free_that_makes_up_for_a_dropped_step_is_loud_and_changes_nothing() -> None:
    """B12: P=1, prompt 4, output 3, ended while the next step has the request: 6 in the tree, 6 free, once."""
    server = Server(1, 4, full_pages=12, swa_pages=12)
    req = server.start(text("a", 0, 4))
    server.decode(req)
    server.decode(req)
    server.decode(req)
    ahead = server.last_slot(req)
    req.kv_committed_len = 6
    req.output_ids = req.output_ids[:2]
    req.fill_ids = [*req.origin_input_ids, *req.output_ids]
    server.end(req)
    sizes = server.sizes()
    assert (sizes["full_evictable"], sizes["full_free"]) == (6, 6)
    freed = len(server.journal.of(Freed))
    with pytest.raises(DoubleFree):
        server.allocator.free(np.array([ahead], np.int32))
    assert len(server.journal.of(Freed)) == freed
    assert server.sizes() == sizes
    server.check()


def test_the_unfinished_page_of_a_chunk_is_the_requests_until_it_is_full() -> None:
    """B16: P=4, chunks of 6, prompt 18: 4 protected after the first, 16 in the tree at the end, and no page lost."""
    server = Server(4, 4, full_pages=8, swa_pages=8)
    req = server.admit(text("a", 0, 18))
    for stop in (6, 12, 18):
        server.prefill(req, stop)
        if stop < 18:
            server.cache_so_far(req)
        if stop == 6:
            assert req.cache_protected_len == 4
            assert server.rank().ledger().full_request_owned == 2
    server.end(req)
    sizes = server.sizes()
    assert (sizes["full_evictable"], sizes["full_free"]) == (16, 16)
    assert server.rank().ledger().full_request_owned == 0
    assert every_page_is_named_once(server.rank())
    server.check()


def test_a_request_that_comes_back_with_a_shorter_prefix_loses_no_slot() -> None:
    """B18: P=1, 12 slots of which 10 are committed; retracted and resumed behind 9: all of 20 are there at the end."""
    server = Server(1, 4, full_pages=20, swa_pages=20)
    first = server.start(text("a", 0, 9))
    server.cache_so_far(first)
    server.end(first)
    req = server.start(text("a", 0, 10))
    server.decode(req)
    server.decode(req)
    req.output_ids = []
    req.kv_committed_len = 10
    server.end(req, insert=False)
    server.readmit(req)
    assert req.cache_protected_len == 9
    server.prefill(req)
    server.end(req)
    sizes = server.sizes()
    assert sizes["full_free"] + sizes["full_evictable"] == 20
    assert every_page_is_named_once(server.rank())
    server.check()


@pytest.mark.parametrize("route", TRAITS)
def test_a_request_removed_before_its_first_insert_leaves_nothing_behind(route: str) -> None:
    """B21: two pages taken and given up; the next request with the prompt finds an empty tree."""
    windowed = TRAITS[route].windowed
    server = Server(4, 4 * windowed, full_pages=4, swa_pages=4 * windowed, route=route)
    server.end(server.start(text("a", 0, 8)), insert=False)
    assert server.sizes()["full_free"] == 16
    assert server.sizes()["full_evictable"] == 0
    again = server.admit(text("a", 0, 8))
    assert again.cache_protected_len == 0
    server.check()


@pytest.mark.parametrize("route", TRAITS)
def test_every_class_of_cache_tells_what_it_takes_and_what_it_gives_back(route: str) -> None:
    """B101: with a tree 4 pages are told as stored and 2 as removed; without one, 4 as taken and given back."""
    windowed = TRAITS[route].windowed
    server = Server(4, 8 * windowed, full_pages=8, swa_pages=8 * windowed, route=route, events=True)
    for letter in "ab":
        server.end(server.start(text(letter, 0, 8)))
    server.evict(full=8)
    told = [each.event for each in server.cache.take_events()]
    assert told == [server.journal.opened, *server.journal.events]
    kind = Kind.TREE if TRAITS[route].tree else Kind.REQUEST
    full = [move for event in told for move in moves(event) if move.pool == 0]
    stored = sum(len(move.pages) // 4 for move in full if move.taker & 7 == kind and move.giver & 7 != kind)
    removed = sum(len(move.pages) // 4 for move in full if move.giver & 7 == kind and move.taker & 7 != kind)
    assert (stored, removed) == (4, 2 if TRAITS[route].tree else 4)
    assert stored - removed == server.rank().state.full.held[kind]
    server.check()
