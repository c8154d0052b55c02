"""Faults of admission: "never" is not "not now", room is counted once, and who can begin begins."""

import numpy as np
import pytest

from radixledger.cache.keys import raw_key
from radixledger.cache.refusals import NeverFits, PoolShort
from radixledger.journal.accounts import Pool
from radixledger.journal.events import (
    Admitted,
    Evicted,
    Extended,
    Finished,
    Phase,
    Reclaimed,
    Refused,
    Removed,
    Retracted,
    Stepped,
)

from ..cache.server import Server, path, text
from ..tools.serve.fake_runner import dense_ids
from ..tools.serve.house import Desk, House, ask, prompt_of

A, X = prompt_of(1, 128), prompt_of(2, 128)


@pytest.mark.parametrize(("swa_pages", "served"), [(3, False), (4, True)])
def test_a_prompt_that_the_window_pool_is_too_small_for_does_not_stop_the_next(
    swa_pages: int, served: bool
) -> None:
    """B109: P=4, W=4, FULL 64, SWA 12, chunk 16, prompt 20; 12 slots are refused by number, with 16 it runs in chunks."""
    house = House(page_size=4, full_pages=16, swa_pages=swa_pages, window_tokens=4, chunk_tokens=16)
    big, small = house.serve(ask("r1", A[:20], 1), ask("r2", X[:4], 1))
    assert big.finish_reason == ("length" if served else "refused")
    assert small.output_ids == dense_ids(X[:4], 1, 4)
    assert house.engine.steps <= 6
    if served:
        assert big.output_ids == dense_ids(A[:20], 1, 4)
        grown = [np.frombuffer(event.grown, "<i4").tolist() for event in house.journals[0].of(Extended)]
        assert sum(map(sum, grown)) == 24
    else:
        for number in ("20 prompt tokens", "4 SWA pages", "the rank has 3"):
            assert number in str(big.error)
        assert [event.rid for event in house.journals[0].of(Admitted)] == ["r2"]
    house.check_idle()


def test_a_prompt_larger_than_a_pool_is_never_and_a_busy_pool_is_not_now() -> None:
    """B116, B109: at the cache itself, whoever asks; nothing is held, and the same name is served right after."""
    house = House(page_size=4, full_pages=16, swa_pages=2, window_tokens=12, context_pages=64)
    cache = house.caches[0]
    before = cache.digest()
    key = raw_key(prompt_of(3, 100))
    for prompt, pool, needed, capacity in (
        (65, Pool.FULL, 17, 16),
        (100, Pool.FULL, 25, 16),
        (13, Pool.SWA, 4, 2),
    ):
        with pytest.raises(
            NeverFits, match=f"{prompt} tokens, which takes {needed} {pool.name} pages"
        ) as never:
            cache.admit("r", key, prompt)
        assert (never.value.pool, never.value.needed, never.value.capacity) == (pool, needed, capacity)
    assert cache.digest() == before
    assert [event.reason for event in house.journals[0].of(Refused)] == ["never_fits"] * 3
    admitted = cache.admit("r", key, 8).request
    one = np.array([admitted], np.int64)
    cache.extend(one, np.array([8], np.int32))
    with pytest.raises(PoolShort):
        cache.extend(one, np.array([4], np.int32))
    cache.abort(admitted)
    house.check_idle()


def test_what_outgrows_the_pool_is_refused_at_the_door_and_the_third_is_served() -> None:
    """B116: pool 64; prompt 100, then prompt 60 with output 10 (69 positions), then prompt 4."""
    house = House(page_size=4, full_pages=16, swa_pages=16, window_tokens=4)
    first, second, third = house.serve(ask("r1", A[:100], 1), ask("r2", A[:60], 10), ask("r3", X[:4], 2))
    assert [each.finish_reason for each in (first, second, third)] == ["refused", "refused", "length"]
    assert "25 FULL pages" in str(first.error)
    assert "60 prompt tokens and 10 to come take 18 FULL pages of 4 tokens; the rank has 16" in str(
        second.error
    )
    assert len(house.journals[0].of(Admitted)) == 1
    (exact,) = house.serve(ask("r2", A[:60], 5))
    assert exact.output_ids == dense_ids(A[:60], 5, 4), "64 positions fit to the token"
    house.check_idle()


@pytest.mark.parametrize(("prompt", "count"), [(0, 1), (1, 0), (0, 0)])
def test_nothing_to_compute_is_refused_and_costs_the_next_nothing(prompt: int, count: int) -> None:
    """B116, in the smallest shape: a request that was put together by hand, past the reader of lines."""
    house = House()
    nothing, served = house.serve(ask("r1", A[:prompt], count), ask("r2", X[:4], 2))
    assert f"{prompt} prompt tokens and {count} to come" in str(nothing.error)
    assert served.output_ids == dense_ids(X[:4], 2, 8)
    house.check_idle()


def test_a_short_window_pool_costs_windows_and_no_leaf() -> None:
    """B112: FULL free 16 pages; SWA free 0, evictable 4 in internal nodes: 2 pages of both cost 2 of SWA, 0 of FULL."""
    server = Server(4, 4, full_pages=21, swa_pages=5)
    req = server.admit(text("a", 0, 20))
    for stop in range(4, 24, 4):
        server.prefill(req, stop)
        server.cache_so_far(req)
    server.end(req)
    assert (server.sizes()["full_free"], server.sizes()["swa_free"]) == (64, 0)
    rank = server.rank()
    assert server.allocator.alloc(8) is None
    assert server.allocator.last_refusal is not None
    assert (server.allocator.last_refusal.full_available, server.allocator.last_refusal.swa_available) == (
        16,
        0,
    )
    assert server.evict(full=0, swa=8) == (0, 8)
    assert server.allocator.alloc(8) is not None
    assert server.journal.of(Removed) == []
    assert [
        (event.asked_full, event.gained_full, event.gained_swa) for event in server.journal.of(Evicted)
    ] == [(0, 0, 2)]
    assert rank.state.full.available == 14
    server.check()


def test_a_scheduler_asks_each_pool_for_what_that_pool_lacks() -> None:
    """B112, as the engine does it: FULL is plenty the whole time, and is never asked for anything."""
    house = House(page_size=4, full_pages=64, swa_pages=8, window_tokens=4, chunk_tokens=8)
    for turn in range(6):
        house.serve(ask(f"r{turn}", [*A[:8], *prompt_of(10 + turn, 8)], 1))
    asked = house.journals[0].of(Evicted)
    assert asked
    assert all(event.asked_full == 0 and event.gained_swa >= event.asked_swa for event in asked)
    house.check_idle()


def test_a_matched_prefix_is_not_room_for_the_request_that_matched_it() -> None:
    """B114: P=1, pool 16, a[0:10) evictable and 6 free: 8 fresh tokens are refused, 6 run with free 0, protected 10."""
    desk = Desk(page_size=1, full_pages=16, swa_pages=40, window_tokens=4, chunk_tokens=64)
    desk.house.serve(ask("warm", A[:10], 1))
    assert (desk.accounts(), desk.state.full_evictable) == ((6, 10, 0), 10)
    (over,) = desk.house.serve(ask("over", [*A[:10], *X[:8]], 1))
    assert "18 FULL pages" in str(over.error)
    assert (desk.accounts(), desk.state.full_protected) == ((6, 10, 0), 0)
    job = desk.submit("exact", [*A[:10], *X[:6]], 1)
    works = desk.scheduler.plan()
    assert (job.cached_tokens, desk.accounts(), desk.state.full_protected) == (10, (0, 10, 6), 10)
    assert [(work.start, work.stop) for work in works] == [(10, 16)]
    assert desk.house.journals[0].of(Evicted) == []
    assert desk.house.journals[0].of(Retracted) == []


def test_a_prefix_that_a_lock_shields_is_no_room_at_the_cache_either() -> None:
    """B114: without a scheduler: once a[0:10) is locked, 7 fresh tokens are short by one and cost nothing."""
    server = Server(1, 4, full_pages=16, swa_pages=40)
    path(server, "L" * 10)
    req = server.admit([*text("a", 0, 10), *text("x", 0, 7)])
    assert server.sizes()["full_protected"] == 10
    assert server.allocator.alloc_extend([10], [17], [server.last_slot(req)], 7) is None
    assert server.allocator.last_refusal is not None
    assert (server.allocator.last_refusal.needed, server.allocator.last_refusal.full_available) == (7, 6)
    assert server.evict(full=1) == (0, 0)
    server.end(req, insert=False)
    assert server.sizes()["full_protected"] == 0
    server.check()


def test_the_request_that_waits_for_a_window_begins_in_the_step_after_one_is_given_back() -> None:
    """B117: P=4, W=4: r1 decodes and its window moves; r2 needs a page of SWA and begins long before r1 ends.

    A pool of 12 slots, as reported, cannot hold what our frontier keeps of r1 (`rfc`, one page more): 28 do, and r2,
    which arrives at 14, is let in at 15, by the very step that gives a page back.
    """
    house = House(page_size=4, full_pages=64, swa_pages=7, window_tokens=4, chunk_tokens=8)
    house.serve(ask("r1", A[:16], 40), ask("r2", X[:4], 1, at=14))
    steps, when = 0, dict[str, int]()
    for event in house.journals[0].events:
        match event:
            case Stepped(phase=Phase.BEGAN):
                steps += 1
            case Reclaimed():
                when.setdefault("given back", steps)
            case Admitted(rid=rid):
                when[f"{rid} begins"] = steps
            case Finished(request=request):
                when[f"{request} ends"] = steps
            case _:
                pass
    assert list(when) == ["r1 begins", "given back", "r2 begins", *list(when)[3:]]
    assert (when["given back"], when["r2 begins"], max(when.values())) == (15, 15, 41)
    house.check_idle()
