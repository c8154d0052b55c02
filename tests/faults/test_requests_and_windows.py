"""Faults of requests and windows that people met in the field: what an end gives back, what a hole hides."""

import numpy as np
import pytest

from radixledger.cache.keys import namespace, raw_key
from radixledger.cache.prefix_cache import Ended
from radixledger.cache.refusals import Refusal
from radixledger.journal.events import Aborted, Admitted, Finished, Healed, HealMode

from ..cache.server import FULL, SWA, Server, every_page_is_named_once, path, shape, text


@pytest.mark.parametrize("ended", [Ended.ABORTED, Ended.RETRACTED])
@pytest.mark.parametrize("computed", [8, 11, 16])
def test_a_request_that_ends_between_chunks_leaves_the_tree_its_pages(ended: Ended, computed: int) -> None:
    """B24: what the first chunk gave to the tree is not freed with the request, and serves the next one."""
    server = Server(4, 4, full_pages=8, swa_pages=8)
    req = server.admit(text("a", 0, 16))
    server.prefill(req, 8)
    server.cache_so_far(req)
    if computed > 8:
        server.prefill(req, computed)
    server.end(req, insert=False, ended=ended)
    assert server.cache.total_size()[0] == 8
    assert server.sizes()["full_evictable"] == 8
    assert server.sizes()["full_free"] == 24
    assert every_page_is_named_once(server.rank())
    again = server.admit(text("a", 0, 16))
    assert again.prefix_indices.size == 8
    server.check()


def test_a_request_id_may_come_again_after_an_abort_and_both_lives_are_told() -> None:
    """B31: aborted in the queue or running, twice, or unknown: harmless; a live one is not taken twice."""
    server = Server(4, 4)
    queued = server.admit(text("a", 0, 9), "X")
    server.end(queued, insert=False)
    first = server.start(text("a", 0, 9), "X")
    with pytest.raises(Refusal, match="'X' is live already"):
        server.start(text("b", 0, 9), "X")
    server.end(first, insert=False)
    second = server.start(text("a", 0, 9), "X")
    server.end(second)
    lives = [event.request for event in server.journal.of(Admitted) if event.rid == "X"]
    assert len(set(lives)) == len(lives) == 2
    assert [event.request for event in server.journal.of(Aborted)] == lives[:1]
    assert [event.request for event in server.journal.of(Finished)] == lives[1:]
    with pytest.raises(Refusal, match="no row"):
        server.pool.free(second)
    server.check()


def test_what_was_released_is_not_cached_as_live_by_an_unfinished_insert() -> None:
    """B36: FULL 12, SWA live on [8, 12) only; a prompt that shares [0, 8) cannot start there."""
    server = Server(4, 4, full_pages=8, swa_pages=8)
    slots = server.slots(12)
    server.allocator.free_swa(slots[:8])
    server.insert(text("a", 0, 12), slots, released=8)
    assert server.cache.total_size() == (12, 4)
    assert server.sizes()["swa_free"] == 28
    assert server.hit(text("a", 0, 8) + text("x", 8, 12)) == 0
    assert server.hit(text("a", 0, 12)) == 12
    server.check()


def test_a_running_request_that_reclaims_and_caches_leaves_no_dead_window_live() -> None:
    """B36: through the request's own calls, with the frontier that the formula allows."""
    server = Server(4, 4, full_pages=8, swa_pages=8)
    req = server.admit(text("a", 0, 24))
    server.prefill(req, 20)
    server.reclaim(req)
    assert req.swa_evicted_seqlen == 8
    server.cache_so_far(req)
    assert shape(server, text("a", 0, 20)).replace(" ", "") == "ddLLL"
    assert server.hit(text("a", 0, 8) + text("x", 8, 12)) == 0
    server.check()


def test_healing_does_not_swap_full_pages_under_a_running_request() -> None:
    """B38: the tree keeps f1 and f2, map(f1) becomes s3, and f3, f4 and s4 are free."""
    server = Server(4, 4)
    path(server, "L")
    path(server, "LL")
    runner = server.start(text("a", 0, 8) + text("x", 0, 1))
    row = server.pool.read(runner.row, 8).tolist()
    assert server.evict(swa=4) == (0, 4)
    fresh = server.slots(8)
    swa = server.allocator.translate_full_to_swa(fresh, dp_rank=0).tolist()
    kept = server.allocator.translate_full_to_swa(row[4:], dp_rank=0).tolist()
    before = server.sizes()
    server.insert(text("a", 0, 8), fresh)
    assert [event.mode for event in server.journal.of(Healed)] == [HealMode.TRANSFER]
    assert server.pool.read(runner.row, 8).tolist() == row
    assert server.allocator.translate_full_to_swa(row, dp_rank=0).tolist() == swa[:4] + kept
    after = server.sizes()
    assert after["full_free"] - before["full_free"] == 8
    assert after["swa_free"] - before["swa_free"] == 4
    assert server.cache.total_size() == (8, 8)
    server.decode(runner)
    server.end(runner)
    server.check()


def test_live_parts_on_both_sides_of_a_hole_are_not_added_up() -> None:
    """B43: [0,2) live, [2,4) dead, [4,6) live, [6,8) dead, [8,10) live, W=4: the match is 2."""
    server = Server(1, 4, full_pages=64, swa_pages=64)
    tokens = path(server, "LL ddLL ddLL")
    assert shape(server, tokens) == "LL dd LL dd LL"
    assert server.match(tokens).device_indices.size == 2
    assert [server.hit(tokens[:stop]) for stop in range(11)] == [0, 1] + [2] * 9
    server.check()


def test_a_plain_request_cannot_name_itself_into_an_adapters_prefixes() -> None:
    """B84: user keys, adapters and salts are three spaces, whatever they are called."""
    server = Server(4, 4)
    rank, key = server.rank(), raw_key(text("a", 0, 8))
    adapter = rank.admit("adapter", key + raw_key([1]), 9, namespace(lora_id="k1"))
    rank.extend(np.array([adapter.request]), np.array([9], np.int32))
    rank.finish(adapter.request, key)
    assert rank.peek(key, namespace(lora_id="k1")).tokens == 8
    for other in (
        namespace(extra_key="k1"),
        namespace(cache_salt="k1"),
        namespace(lora_id="k1", extra_key=""),
        namespace(extra_key="l\x02\0\0\0k1"),
        b"",
    ):
        assert rank.peek(key, other).tokens == 0
    assert server.cache.peek(server.key(text("a", 0, 8), extra_key="k1")).tokens == 0


@pytest.mark.parametrize("stop", range(9))
def test_a_key_shorter_than_a_page_is_looked_up_without_a_fuss(stop: int) -> None:
    """B63 (plain keys): 3 tokens give 0, 4 give 4, and so on in a tree that holds 16."""
    server = Server(4, 4)
    path(server, "LLLL")
    assert server.match(text("a", 0, stop)).device_indices.size == stop - stop % 4
    assert server.hit(text("a", 0, stop)) == stop - stop % 4
    server.check()


@pytest.mark.parametrize("page_size", [1, 4, 16])
def test_a_prefix_that_three_requests_computed_is_counted_once(page_size: int) -> None:
    """B67: evictable is 8 after each of the first two, 12 after the third; the counter equals a walk of the tree."""
    server = Server(page_size, page_size, full_pages=32, swa_pages=32)
    whole = 8 * page_size // 4 * 4
    reqs = [server.start(text("a", 0, whole)) for _ in range(2)]
    seen = []
    for req in reqs:
        server.end(req)
        seen.append(server.cache.full_evictable_size())
        assert walked(server) == seen[-1]
    server.insert(text("a", 0, whole + 4 * page_size))
    seen.append(server.cache.full_evictable_size())
    assert seen == [whole, whole, whole + 4 * page_size]
    assert walked(server) == seen[-1]
    assert server.sizes()["full_free"] == 32 * page_size - seen[-1]
    server.check()


def walked(server: Server) -> int:
    """FULL tokens of the tree, counted node by node."""
    total, stack = 0, [server.match([]).last_device_node]
    while stack:
        node = stack.pop()
        total += node.component_data[FULL].value.size
        assert node.component_data[SWA].value is None or node.component_data[SWA].value.size == len(node.key)
        stack += node.children
    return total
