"""Faults of sums, frontiers and scale that people met in the field: what must add up at every event, and what must not grow."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Barrier, Thread

import numpy as np
import pytest

from radixledger.cache.evolve import begin, evolve
from radixledger.cache.face_rank import FaceRank
from radixledger.cache.keys import raw_key
from radixledger.cache.rank import RankCache
from radixledger.cache.refusals import PoolShort
from radixledger.cache.slices import Slice
from radixledger.journal.accounts import request_account
from radixledger.journal.causes import Operation
from radixledger.journal.events import Freed
from radixledger.journal.moves import pages_of
from radixledger.journal.units import UNBOUND, Pages

from ..cache.server import Request, Server, every_page_is_named_once, text

# -- sums ------------------------------------------------------------------------------------------------------------


def test_a_translation_is_never_remembered() -> None:
    """B04: the mapping moves to other FULL slots; the old ones are asked again and have none, the new ones have it."""
    server = Server(4, 4)
    old, new = server.slots(4), server.slots(4)
    before = server.allocator.translate_full_to_swa(old, dp_rank=0)
    server.allocator.free_swa(new)
    server.allocator.transfer_swa_mapping(old, new, dp_rank=0)
    assert server.allocator.translate_full_to_swa(old, dp_rank=0, require_mapped=False).tolist() == [0] * 4
    assert server.allocator.translate_full_to_swa(new, dp_rank=0).tolist() == before.tolist()
    server.check()


@pytest.mark.parametrize(("page_size", "cached"), [(1, 8), (4, 8)])
def test_the_slot_of_a_step_that_was_launched_already_is_freed_once(page_size: int, cached: int) -> None:
    """B09: prompt 5, output 4, one look-ahead slot when it ends: 8 cached, 8 free, and no slot freed twice."""
    server = Server(page_size, 4, full_pages=16 // page_size, swa_pages=16 // page_size)
    req = server.start(text("a", 0, 5))
    for _ in range(3):
        server.decode(req)
    server.decode(req)
    req.kv_committed_len = 8
    req.output_ids = req.output_ids[:3]
    req.fill_ids = [*req.origin_input_ids, *req.output_ids]
    server.end(req)
    sizes = server.sizes()
    assert (sizes["full_evictable"], sizes["full_free"]) == (cached, 16 - cached)
    freed = [page for event in server.journal.of(Freed) for page in pages_of(event.full).tolist()]
    assert len(freed) == len(set(freed)) == 9 // page_size + (9 % page_size > 0) - cached // page_size
    server.check()


def test_pools_add_up_at_every_event_of_two_requests_that_share_and_look_ahead() -> None:
    """B23: chunks of 5, a look-ahead of 3, a prefix of 10 in common: 32 tokens in each pool after every single event."""
    server = Server(4, 4, full_pages=8, swa_pages=8)
    for letter in "bc":
        prompt = text("a", 0, 10) + text(letter, 10, 13)
        req = server.admit(prompt)
        for stop in (*range(req.kv_allocated_len + 5, 13, 5), 13):
            server.prefill(req, stop)
            server.cache_so_far(req)
        for _ in range(3):
            server.decode(req)
        req.kv_committed_len = 13
        req.output_ids = []
        req.fill_ids = list(prompt)
        server.end(req)
    state = begin(server.journal.opened)
    for event in server.journal.events:
        evolve(state, event)
        assert sum(state.full.held) == sum(state.swa.held) == 8
    assert every_page_is_named_once(server.rank())
    server.check()


def test_a_page_larger_than_the_window_leaves_its_last_leaf_live() -> None:
    """B34: P=8, W=4, 36 tokens: the insert stops at 32, the frontier at 24, and 32 can be matched."""
    server = Server(8, 4, full_pages=8, swa_pages=8)
    req = server.start(text("a", 0, 36))
    server.reclaim(req, 32 - 1)
    assert req.swa_evicted_seqlen <= 24
    server.cache_so_far(req)
    server.evict(swa=64)
    assert server.hit(text("a", 0, 36)) == 32
    sizes = server.sizes()
    assert (sizes["full_free"], sizes["swa_free"]) == (24, 48)
    server.check()


@pytest.mark.parametrize(("live_from", "cached"), [(4, 0), (2, 6)])
def test_the_last_page_that_has_to_be_computed_is_dropped_before_the_window_is_judged(
    live_from: int, cached: int
) -> None:
    """B45: of 8 tokens one is to be computed, so 6 can be used: they need [2, 6), and [4, 6) alone is not enough."""
    server = Server(2, 4)
    for stop in (live_from, 8):
        server.insert(text("a", 0, stop))
    server.match(text("a", 0, 8))
    server.evict(swa=live_from)
    assert server.hit(text("a", 0, 8)) == 8
    req = server.admit(text("a", 0, 8))
    assert req.cache_protected_len == cached
    server.check()


def test_a_request_between_two_chunks_is_no_leak() -> None:
    """B69: prompt 12 in chunks of 4: after each chunk held + tree + free = total, and the rank is not called idle."""
    server = Server(4, 4)
    req = server.admit(text("a", 0, 12))
    for stop in (4, 8, 12):
        server.prefill(req, stop)
        ledger = server.rank().ledger("between chunks")
        assert not ledger.idle
        held = ledger.full_request_owned + ledger.full_reserved_page_slack
        tree = ledger.full_tree_evictable + ledger.full_tree_protected
        assert ledger.full_available + tree + held == ledger.full_capacity == 64
        assert held == 4
        server.cache_so_far(req)
    server.end(req)
    assert server.rank().ledger().idle
    server.check()


def freed_at_once(server: Server, req: Request) -> None:
    server.end(req, insert=False)


def freed_in_a_group(server: Server, req: Request) -> None:
    server.allocator.free_group_begin()
    server.end(req, insert=False)
    server.allocator.free_group_end()


def test_pages_come_back_in_one_order_however_they_were_freed() -> None:
    """B125: FULL and SWA of one request freed now, or deferred by a group: the next allocations get the same slots."""
    given = []
    for free in (freed_at_once, freed_in_a_group):
        server = Server(4, 4, full_pages=6, swa_pages=6)
        free(server, server.start(text("a", 0, 12)))
        slots = [server.slots(4) for _ in range(6)]
        swa = [server.allocator.translate_full_to_swa(each, dp_rank=0).tolist() for each in slots]
        given.append(([each.tolist() for each in slots], swa))
    assert given[0] == given[1]


# -- threads ---------------------------------------------------------------------------------------------------------


def test_two_threads_that_use_one_rank_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """B137: frees of a second thread at any point inside an allocation: ids stay unique, and everything adds up."""
    rank = Server(4, 4, full_pages=64, swa_pages=64).rank()
    taken: list[list[int]] = [[], []]
    start = Barrier(2)

    def take_and_give(thread: int) -> None:
        start.wait()
        for _ in range(500):
            full, _swa = rank.alloc(3)
            taken[thread] += pages_of(full).tolist()
            rank.free(full)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [Thread(target=take_and_give, args=(thread,)) for thread in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert [len(pages) for pages in taken] == [1500, 1500]
    assert every_page_is_named_once(rank)


# -- scale -----------------------------------------------------------------------------------------------------------


def grown(leaves: int) -> FaceRank:
    """A rank whose tree has so many leaves of one page."""
    rank = Server(1, 1, full_pages=leaves + 8, swa_pages=leaves + 8).rank()
    full, _ = rank.alloc(leaves)
    for at in range(leaves):
        page = Pages(full[4 * at : 4 * at + 4])
        rank.insert(
            raw_key([at]), b"", Slice(page, 0, 0, request_account(UNBOUND), UNBOUND, Operation.INSERT)
        )
    return rank


def calls_of(act: Callable[[], object]) -> int:
    """How many calls, ours and the interpreter's, an action takes: its work, whatever the clock says."""
    count = 0

    def counted(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        act()
    finally:
        sys.setprofile(None)
    return count


def test_an_eviction_costs_what_it_evicts_and_not_what_is_cached() -> None:
    """B146: 100 times one page, out of 1,000 leaves and out of 10,000: the same work, and by no means a walk."""
    small, large = (calls_of(partial(evict_often, grown(leaves))) for leaves in (1_000, 10_000))
    assert large <= 2 * small
    assert large < 10_000


def evict_often(rank: RankCache) -> None:
    for _ in range(100):
        rank.evict(1, 0)


COLLECTED = """
import gc, json
from radixledger.cache.rank import RankCache
from radixledger.cache.refusals import PoolShort
from tests.faults.test_sums_and_scale import grown, insert_one

def tracked():
    gc.collect()
    return len(gc.get_objects())

before = tracked()
rank = grown(2_000)
rank.journal = rank._append = None
per_node = (tracked() - before) / 2_000
full = RankCache(grown(1).state.opened)
counts, stamp = [], 0
for _ in range(16):
    for _ in range(300):
        stamp += 1
        insert_one(full, stamp)
    counts.append(tracked())
print(json.dumps([per_node, counts]))
"""


def insert_one(rank: RankCache, stamp: int) -> None:
    """A prompt of one page that nobody had; an old one makes room where there is none."""
    try:
        page, _ = rank.alloc(1)
    except PoolShort:
        rank.evict(1, 1)
        page, _ = rank.alloc(1)
    rank.insert(raw_key([stamp]), b"", Slice(page, 0, 0, request_account(UNBOUND), UNBOUND, Operation.INSERT))


def test_what_a_collector_must_look_at_is_bounded_per_node_and_does_not_grow_over_time() -> None:
    """B148: a handful of objects for each node, and no more after thousands of evictions than before.

    In a process of its own, where nobody else has objects to look at.
    """
    root = Path(__file__).parents[2]
    told = subprocess.run(
        [sys.executable, "-c", COLLECTED], cwd=root, env=os.environ | {"PYTHONPATH": f"{root}:{root / 'src'}"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    per_node, counts = json.loads(told.stdout)
    assert per_node < 16
    assert max(counts[10:]) <= max(counts[3:10]) + 200


def test_a_key_of_the_whole_prompt_is_made_once_and_costs_no_object_per_token() -> None:
    """B144, for raw keys: a million tokens make one object, and a page of them another."""
    tokens = np.arange(1_000_000, dtype=np.int32)
    assert calls_of(lambda: raw_key(tokens)) < 20
    assert calls_of(lambda: raw_key(tokens)[: 4 * 999_936]) < 20
