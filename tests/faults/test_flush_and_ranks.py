"""Faults of flushes and of ranks: nothing is emptied under anybody, and a rank is the one that was named."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from radixledger.cache.faces.allocator import SWATokenToKVPoolAllocator
from radixledger.cache.opening import opened_ranks
from radixledger.cache.prefix_cache import Ended
from radixledger.cache.rank import RankCache
from radixledger.cache.refusals import Busy, OwnershipError
from radixledger.journal.events import AnyEvent, Flushed, Opened, Refused
from radixledger.journal.sizes import BadConfig
from radixledger.tools.serve.requests import BadLine, Bounds, read_requests

from ..cache.server import EventList, Server, text
from ..tools.serve.fake_runner import dense_ids
from ..tools.serve.house import Desk, House, ask, prompt_of

A, X = prompt_of(1, 64), prompt_of(2, 64)


def running(server: Server) -> tuple[Callable[[], None], str]:
    """A request that runs; what ends it, and what names it."""
    req = server.start(text("a", 0, 10), "r")
    server.cache_so_far(req)
    return lambda: server.end(req), "1 requests are live: r"


def in_a_step(server: Server) -> tuple[Callable[[], None], str]:
    """A request that the device reads."""
    req = server.start(text("a", 0, 10), "r")
    rank = server.rank()
    number = rank.number_of(req)
    assert number is not None
    rank.step_began(1, np.array([number], np.int64), np.array([9], np.int32), np.array([10], np.int32))

    def end() -> None:
        rank.step_ended(1)
        server.end(req)

    return end, "1 requests are live: r"


def holding_a_lock(server: Server) -> tuple[Callable[[], None], str]:
    """A request that was retracted, matched again and waits with its lock, without a row of its rank."""
    req = server.start(text("a", 0, 10), "r")
    server.cache_so_far(req)
    server.end(req, insert=False, ended=Ended.RETRACTED)
    server.readmit(req)
    return lambda: server.end(req, insert=False), "held by locks"


def lent(server: Server) -> tuple[Callable[[], None], str]:
    """Slots that were handed out and nobody wrote down."""
    slots = server.slots(8)
    return lambda: server.allocator.free(slots), "belong to no live request"


def in_a_group(server: Server) -> tuple[Callable[[], None], str]:
    """A free group that is open."""
    server.allocator.free_group_begin()
    return server.allocator.free_group_end, "group"


@pytest.mark.parametrize(
    "blocker", [running, in_a_step, holding_a_lock, lent, in_a_group], ids=lambda each: each.__name__
)
def test_a_flush_is_refused_while_anything_but_the_tree_holds_slots(
    blocker: Callable[[Server], tuple[Callable[[], None], str]],
) -> None:
    """B128: the blocker is named, the tree is untouched; when it is gone the flush leaves everything free."""
    server = Server(4, 4)
    server.insert(text("z", 0, 12))
    end, name = blocker(server)
    before = server.rank().digest()
    with pytest.raises(Busy) as busy:
        server.cache.reset()
    assert name in str(busy.value)
    assert server.rank().digest() == before
    assert server.hit(text("z", 0, 12)) == 12
    end()
    server.cache.reset()
    free = server.sizes()
    assert (free.pop("full_free"), free.pop("swa_free")) == (64, 64)
    assert set(free.values()) == {0}
    server.check()


def test_one_busy_rank_keeps_the_trees_of_all() -> None:
    """B128, with ranks: the first one is idle, and is not emptied before the second was asked."""
    server = Server(4, 4, dp_size=2)
    server.insert(text("z", 0, 8), dp_rank=0)
    req = server.start(text("a", 0, 8), "r", dp_rank=1)
    with pytest.raises(Busy, match="live: r"):
        server.cache.reset()
    assert server.hit(text("z", 0, 8), 0) == 8
    assert all(journal.of(Flushed) == [] for journal in server.journals)
    server.end(req)
    server.cache.reset()
    assert [len(journal.of(Flushed)) for journal in server.journals] == [1, 1]
    server.check()


def test_a_flush_after_the_last_request_of_a_step_works_at_once_and_a_second_one_finds_nothing() -> None:
    """B130: what a step ended has given everything back by the time its result is told; two flushes are two flushes."""
    desk = Desk(page_size=4, full_pages=16, swa_pages=16, window_tokens=4)
    engine, cache = desk.house.engine, desk.house.caches[0]
    for outcome in engine.serve([(0, ask("r", A[:9], 3))]):
        assert outcome.result.output_ids == dense_ids(A[:9], 3, 4)
        assert cache.flush() > 0
        assert cache.flush() == 0
    assert [event.removed for event in desk.house.journals[0].of(Flushed)][-1] == 0
    assert desk.house.journals[0].of(Refused) == []
    assert desk.accounts() == (16, 0, 0)
    desk.house.check_idle()


def test_a_flush_between_two_steps_of_a_request_is_refused_and_costs_it_nothing() -> None:
    """B130, B128: at every step of a life, also while another one waits; nothing is flushed by halves."""
    desk = Desk(page_size=4, full_pages=16, swa_pages=16, window_tokens=4, chunk_tokens=4, running=1)
    job = desk.submit("r", A[:10], 4)
    desk.submit("waits", X[:5], 1)
    while job.finish_reason is None:
        desk.tick()
        if job.finish_reason is None:
            with pytest.raises(Busy, match="live: r"):
                desk.house.caches[0].flush()
    assert job.output_ids == dense_ids(A[:10], 4, 4)
    assert desk.house.caches[0].flush() > 0, "who waits holds nothing"
    for outcome in desk.house.engine.serve([]):
        assert outcome.result.output_ids == dense_ids(X[:5], 1, 4)
    desk.house.check_idle()


def test_ranks_of_one_server_have_pools_of_one_size() -> None:
    """B131: 31 pages for two ranks are 15 each, and journals of another size are no journals of these ranks."""
    opened = opened_ranks(31 * 4, 33 * 4, 4, 2, sliding_window_size=4)
    assert [(each.config.full_pages, each.config.swa_pages) for each in opened] == [(15, 16)] * 2
    odd = [EventList(opened[0]), EventList(opened_ranks(32 * 4, 33 * 4, 4, 2, sliding_window_size=4)[1])]
    with pytest.raises(BadConfig, match="the journal of rank 1 says 16, the allocator 15"):
        SWATokenToKVPoolAllocator(31 * 4, 33 * 4, None, 4, 2, journals=odd)


def test_ranks_that_get_the_same_requests_write_the_same_journal() -> None:
    """B131: under pressure too: equal pools evict equally, so every request finds the same on both."""
    house = House(
        page_size=4, full_pages=15, swa_pages=12, window_tokens=4, ranks=2, chunk_tokens=8, running=2
    )
    asked = [
        ask(f"{rank}-{turn}", [*A[: 4 * (turn % 3)], *prompt_of(turn, 13)], 5, at=3 * turn, rank=rank)
        for turn in range(12)
        for rank in (0, 1)
    ]
    results = house.serve(*asked)
    assert [r.cached_tokens for r in results if r.dp_rank == 0] == [
        r.cached_tokens for r in results if r.dp_rank == 1
    ]
    first, second = ([nameless(event) for event in journal.events] for journal in house.journals)
    assert first == second
    assert house.caches[0].state.totals.full_evicted == house.caches[1].state.totals.full_evicted > 0


def nameless(event: AnyEvent) -> tuple[Any, ...]:
    """An event without the request's name, which is the one thing in which the two streams differ."""
    return type(event).__name__, *(
        getattr(event, field) for field in event.__struct_fields__ if field != "rid"
    )


@pytest.mark.parametrize("dp_rank", [3, -1, 2])
def test_a_request_for_a_rank_that_is_not_here_is_refused_by_number(dp_rank: int) -> None:
    """B133: at the engine, past the reader of lines; no rank notices, the next request is served."""
    house = House(ranks=2)
    before = [cache.digest() for cache in house.caches]
    strange = house.engine.submit(0, ask("strange", A[:5], 2, rank=dp_rank))
    assert strange is not None
    assert str(strange.result.error) == f"dp_rank {dp_rank} is no rank of this server; it has 0 to 1"
    assert strange.result.dp_rank is None
    assert [cache.digest() for cache in house.caches] == before
    (served,) = house.serve(ask("r", A[:5], 2, rank=1))
    assert served.output_ids == dense_ids(A[:5], 2, 8)


@pytest.mark.parametrize("dp_rank", [3, -1, 2])
def test_a_line_for_a_rank_that_is_not_here_is_told_with_its_field(dp_rank: int) -> None:
    """B133: as a request line."""
    line = f'{{"rid": "r", "input_ids": [1], "max_new_tokens": 1, "dp_rank": {dp_rank}}}'
    (bad,) = read_requests([line.encode()], Bounds(512, 2))
    assert isinstance(bad, BadLine)
    assert (bad.line, bad.field, bad.rid) == (1, "dp_rank", "r")


RANKS: dict[str, Callable[[Server, Any], object]] = {
    "match": lambda server, _: server.match(text("a", 0, 8), 3),
    "match, negative": lambda server, _: server.match(text("a", 0, 8), -1),
    "insert": lambda server, slots: server.insert(text("a", 0, 8), slots, dp_rank=2),
    "no rank": lambda server, _: server.match(text("a", 0, 8)),
    "evict": lambda server, _: server.evict(4, 4, dp_rank=-1),
    "alloc": lambda server, _: server.slots(4, 2),
    "free": lambda server, slots: server.allocator.free(slots, 5),
    "free_swa": lambda server, slots: server.allocator.free_swa(slots, -2),
    "translate": lambda server, slots: server.allocator.translate_full_to_swa(slots, dp_rank=2),
    "sizes": lambda server, _: server.cache.full_evictable_size(2),
}


@pytest.mark.parametrize("name", RANKS)
def test_a_call_for_a_rank_that_is_not_here_changes_no_rank(name: str) -> None:
    """B133: every door of the faces; a negative number is not counted from the end."""
    server = Server(4, 4, dp_size=2)
    slots = server.slots(8, 0)
    before = [rank.digest() for rank in server.allocator.ranks]
    with pytest.raises(ValueError, match="dp_rank"):
        RANKS[name](server, slots)
    assert [rank.digest() for rank in server.allocator.ranks] == before


def test_pages_of_one_rank_freed_under_the_number_of_another_are_a_foreign_free() -> None:
    """B133: the numbers are legal there, and free; saying so again is loud, and neither rank loses a page."""
    server = Server(4, 4, dp_size=2)
    slots = server.slots(8, 0)
    before = [rank.digest() for rank in server.allocator.ranks]
    with pytest.raises(OwnershipError):
        server.allocator.free(slots, 1)
    assert [rank.digest() for rank in server.allocator.ranks] == before
    server.allocator.free(slots, 0)
    assert [server.allocator.full_available_size(rank) for rank in (0, 1)] == [64, 64]


def test_a_rank_that_its_run_does_not_have_is_not_opened() -> None:
    """B133, at the very beginning."""
    (opened,) = opened_ranks(64, 64, 4, 1, sliding_window_size=4)
    for rank in (1, 3, -1):
        wrong: Opened = replace(opened, rank=rank)
        with pytest.raises(BadConfig, match="rank"):
            RankCache(wrong)
