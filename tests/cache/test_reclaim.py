"""What a running request gives back of its window, and what a server may ask of the cache while it runs."""

import inspect
import random
from typing import Any

import numpy as np
import pytest

from radixledger.cache.prefix_cache import (
    BasePrefixCache,
    DecLockRefParams,
    EvictParams,
    EvictResult,
    IncLockRefResult,
    InsertParams,
    InsertResult,
    MatchPrefixParams,
    MatchResult,
    RadixKey,
    Req,
)
from radixledger.cache.refusals import PoolShort, Refusal
from radixledger.journal.events import Reclaimed

from .server import Request, Server, path, text

paged = pytest.mark.parametrize("page_size", [1, 16, 128, 256])


def roomy(page_size: int, window: int | None = None, **changes: object) -> Server:
    return Server(page_size, window or page_size, full_pages=60, swa_pages=60, **changes)  # type: ignore[arg-type]


class PlainCache(BasePrefixCache):
    """A cache of FULL alone, as short as one can be."""

    def reset(self) -> None:
        raise AssertionError

    def match_prefix(self, params: MatchPrefixParams) -> MatchResult:
        return MatchResult(np.zeros(0, np.int32), None, None, None)

    def insert(self, params: InsertParams) -> Any:
        return InsertResult()

    def evict(self, params: EvictParams) -> EvictResult:
        return EvictResult()

    def inc_lock_ref(self, node: Any) -> IncLockRefResult:
        return IncLockRefResult()

    def dec_lock_ref(self, node: Any, params: DecLockRefParams | None = None) -> None:
        raise AssertionError

    def cache_finished_req(self, req: Req, is_insert: bool = True) -> None:
        raise AssertionError

    def cache_unfinished_req(self, req: Req) -> None:
        raise AssertionError


def test_a_window_is_a_capability_that_no_cache_has_by_default() -> None:
    """R124: the unified cache says yes."""
    assert not PlainCache().supports_swa()
    assert not PlainCache().supports_recurrent()
    assert Server().cache.supports_swa()
    assert not Server().cache.supports_recurrent()


def test_a_cache_without_a_ledger_says_so_and_shows_no_zeros() -> None:
    """R125: nor does it pretend to look without touching, to count, or to check itself."""
    plain = PlainCache()
    for ask in (
        plain.ledger,
        plain.total_size,
        plain.pretty_print,
        plain.sanity_check,
        lambda: plain.peek(RadixKey([1])),
    ):
        with pytest.raises(NotImplementedError, match="PlainCache"):
            ask()
    rows = Server(4, dp_size=2).cache.ledger()
    assert [row["dp_rank"] for row in rows] == [0, 1]
    assert {row["full_capacity"] for row in rows} == {64}
    assert {(row["route"], *row["components"]) for row in rows} == {("unified", "FULL", "SWA")}
    assert Server().cache.ledger(0)[0].keys() == rows[0].keys()


def test_who_has_a_window_gives_it_back_and_who_has_none_says_so() -> None:
    """R126."""
    with pytest.raises(NotImplementedError, match="window"):
        PlainCache().evict_req_swa(Request("r", [1]), 1)
    signature = inspect.signature(Server().cache.evict_req_swa)
    assert list(signature.parameters)[:3] == ["req", "pre_len", "dp_rank"]
    assert signature.parameters["dp_rank"].default == 0


@paged
@pytest.mark.parametrize("dp_size", [1, 2])
def test_a_reclaim_never_touches_what_the_tree_gave(page_size: int, dp_size: int) -> None:
    """R127, R128, R16: the protected boundary is the path to the request's last node, on its rank (A27)."""
    server = roomy(page_size, dp_size=dp_size)
    rank = dp_size - 1
    dp_rank = rank if dp_size > 1 else None
    prefix = path(server, "LL L LL", dp_rank=dp_rank)
    req = server.start(prefix + text("x", 0, 8 * page_size), dp_rank=dp_rank)
    assert req.cache_protected_len == req.swa_evicted_seqlen == 5 * page_size
    row = server.pool.read(req.row, 13 * page_size)
    server.cache.evict_req_swa(req, 13 * page_size - 1, rank)
    mapped = server.allocator.translate_full_to_swa(row, dp_rank=rank, require_mapped=False) != 0
    assert mapped[: 5 * page_size].all()
    assert mapped.sum() == 13 * page_size - (req.swa_evicted_seqlen - 5 * page_size)
    told = server.journals[rank].of(Reclaimed)[-1]
    assert told.start == 5 * page_size
    if dp_size > 1:
        with pytest.raises(ValueError, match="dp_rank"):
            server.cache.evict_req_swa(req, 13 * page_size - 1, 0)
    server.check()


@paged
@pytest.mark.parametrize("window", [1, 4, 5, 100, 128, 300])
@pytest.mark.usefixtures("both_trees")
def test_the_frontier_is_the_formula_for_every_length(page_size: int, window: int) -> None:
    """R129-R132: old = max(evicted, protected), new = floorP(max(old, pre - W - P)), [old, new) is freed and noted."""
    server = Server(
        page_size, window, full_pages=1100 if page_size == 1 else 60, swa_pages=1100 if page_size == 1 else 60
    )
    protected = 2 * page_size
    path(server, "LL")
    length = protected + window + 6 * page_size + 3
    req = server.start(text("a", 0, protected) + text("x", 0, length - protected))
    old, row = protected, server.pool.read(req.row, length)
    for pre in sorted({*range(0, length, max(1, length // 37)), length - 1, length}):
        server.cache.evict_req_swa(req, pre)
        new = max(old, pre - window - page_size) // page_size * page_size
        assert req.swa_evicted_seqlen == new >= old
        mapped = server.allocator.translate_full_to_swa(row, dp_rank=0, require_mapped=False) != 0
        assert mapped.tolist() == [not protected <= at < new for at in range(length)]
        old = new
    server.check()


@pytest.mark.parametrize("seed", range(3))
@paged
@pytest.mark.usefixtures("both_trees")
def test_no_boundary_ever_moves_backward(page_size: int, seed: int) -> None:
    """R132, R133: whatever length is told, in whatever order, between chunks or after."""
    chance = random.Random(seed)
    server = roomy(page_size)
    req = server.admit(text("a", 0, 30 * page_size))
    evicted = protected = 0
    while req.kv_allocated_len < 30 * page_size:
        stop = min(30 * page_size, req.kv_allocated_len + chance.randrange(1, 4 * page_size + 1))
        server.prefill(req, stop)
        for _ in range(3):
            server.cache.evict_req_swa(req, chance.randrange(stop + 1))
            assert req.swa_evicted_seqlen >= evicted
            evicted = req.swa_evicted_seqlen
        if chance.random() < 0.5:
            server.cache_so_far(req)
        assert req.cache_protected_len >= protected
        assert req.cache_protected_len % page_size == req.swa_evicted_seqlen % page_size == 0
        protected = req.cache_protected_len
    server.check()


@pytest.mark.parametrize("page_size", [1, 4, 16])
@pytest.mark.parametrize("window", [1, 3, 4, 5, 16, 20])
@pytest.mark.usefixtures("both_trees")
def test_the_window_before_the_insert_stop_is_live_whenever_a_request_is_cached(
    page_size: int, window: int
) -> None:
    """R134, R259, R260: for every length, after decode reclaimed as far as it may: B - new >= W, or nothing was given back."""
    for length in range(1, window + 4 * page_size + 2):
        server = Server(page_size, window, full_pages=64, swa_pages=64)
        req = server.start(text("a", 0, length))
        server.reclaim(req)
        stop = length // page_size * page_size
        assert req.swa_evicted_seqlen == 0 or stop - req.swa_evicted_seqlen >= window
        server.end(req)
        assert server.hit(text("a", 0, length)) == stop
        server.check()


@pytest.mark.usefixtures("both_trees")
def test_the_numbers_of_the_reference_come_out() -> None:
    """R135: P=1, W=4, protected 4, pre 16 give the boundary 11; row[4:11] is unmapped, row[11:] mapped."""
    server = roomy(1, 4)
    path(server, "LLLL")
    req = server.start(text("a", 0, 4) + text("x", 0, 13))
    server.cache.evict_req_swa(req, 16)
    assert req.swa_evicted_seqlen == 11
    row = server.pool.read(req.row, 17)
    mapped = server.allocator.translate_full_to_swa(row, dp_rank=0, require_mapped=False) != 0
    assert mapped.tolist() == [True] * 4 + [False] * 7 + [True] * 6
    server.check()


@pytest.mark.parametrize("page_size", [16, 128, 256])
@pytest.mark.usefixtures("both_trees")
def test_a_protected_length_that_is_no_page_boundary_is_refused(page_size: int) -> None:
    """R136."""
    server = roomy(page_size)
    path(server, "LL")
    req = server.admit(text("a", 0, 2 * page_size) + text("x", 0, 1))
    req.cache_protected_len -= 1
    with pytest.raises(Refusal, match=f"protects {2 * page_size - 1} tokens"):
        server.prefill(req)
    assert server.rank().state.requests == {}


# -- what a scheduler asks -----------------------------------------------------------------------------------------


@paged
def test_every_size_is_answered_per_pool_and_rank(page_size: int) -> None:
    """R145, R146: evictable, protected and available of FULL and SWA; the sum is the capacity."""
    server = roomy(page_size, dp_size=2)
    path(server, "L L L", dp_rank=1)
    path(server, "dL", letter="b", dp_rank=1)
    node = server.match(text("a", 0, 2 * page_size), 1).last_device_node
    server.cache.inc_lock_ref(node)
    server.evict(swa=page_size, dp_rank=1)
    in_pages = {name: size // page_size for name, size in server.sizes(1).items()}
    assert in_pages == {
        "full_free": 55, "full_evictable": 3, "full_protected": 2,
        "swa_free": 57, "swa_evictable": 2, "swa_protected": 1,
    }  # fmt: skip
    assert set(server.sizes(0).values()) == {60 * page_size, 0}
    assert server.cache.evictable_size(1) == 3 * page_size
    assert server.cache.protected_size(1) == 2 * page_size
    assert server.cache.total_size() == (5 * page_size, 3 * page_size)
    for ask in (
        server.cache.full_evictable_size,
        server.cache.swa_protected_size,
        server.allocator.available_size,
    ):
        with pytest.raises(ValueError, match="dp_rank 2"):
            ask(2)
    assert PlainCache().evictable_size() == PlainCache().protected_size() == 0
    assert PlainCache().swa_evictable_size() == PlainCache().swa_protected_size() == 0


@paged
def test_slots_that_a_running_step_may_read_are_not_given_back(page_size: int) -> None:
    """R151: tokens in flight lower the boundary, told as a number or as a step that has begun (A28)."""
    server = roomy(page_size)
    req = server.start(text("a", 0, 10 * page_size))
    rank = server.rank()
    number = rank.number_of(req)
    assert number is not None
    server.cache.evict_req_swa(req, 10 * page_size - 1, in_flight=3 * page_size)
    free = (10 * page_size - 1 - 3 * page_size - 2 * page_size) // page_size * page_size
    assert req.swa_evicted_seqlen == free
    assert server.journal.of(Reclaimed)[-1].in_flight == 3 * page_size
    here = np.array([6 * page_size], np.int32)
    rank.step_began(1, np.array([number], np.int64), here, here + page_size)
    server.cache.evict_req_swa(req, 10 * page_size - 1)
    assert req.swa_evicted_seqlen == free
    with pytest.raises(Refusal, match="step 1 is running"):
        server.end(req)
    req._popped = False
    rank.step_ended(1)
    server.cache.evict_req_swa(req, 10 * page_size - 1)
    assert req.swa_evicted_seqlen == (8 * page_size - 1) // page_size * page_size
    server.end(req)
    server.check()


@paged
def test_a_short_pool_says_what_both_pools_have_and_what_could_be_evicted(page_size: int) -> None:
    """R152: as numbers, per pool, of the rank that was asked."""
    server = Server(page_size, page_size, full_pages=8, swa_pages=6, dp_size=2)
    path(server, "LL L", dp_rank=1)
    server.evict(swa=page_size, dp_rank=1)
    assert server.allocator.alloc(7 * page_size, 1) is None
    short = server.allocator.last_refusal
    assert isinstance(short, PoolShort)
    assert (short.needed, short.full_available, short.full_evictable) == (7, 5, 3)
    assert (short.swa_available, short.swa_evictable) == (4, 2)
    for number in ("7 pages", "5 free + 3 evictable", "4 free + 2 evictable"):
        assert number in str(short)
    server.check()


def test_what_is_wrong_is_told_though_drawing_the_tree_fails() -> None:
    """R152: a diagnosis that breaks hides nothing; the refusal stands on its own."""
    server = Server(4, full_pages=1, swa_pages=1)
    path(server, "L")
    server.rank().state.root.children = {b"": None}  # type: ignore[dict-item]
    with pytest.raises(AttributeError):
        server.cache.pretty_print()
    with pytest.raises(PoolShort, match="2 pages are needed"):
        server.rank().alloc(2)


def test_a_drawing_shows_every_node_once() -> None:
    """R145: for the person who asks why nothing is evicted."""
    server = roomy(4)
    tokens = path(server, "LL L")
    server.cache.inc_lock_ref(server.match(tokens).last_device_node)
    server.evict(swa=4)
    lines = server.cache.pretty_print().splitlines()
    assert lines[0] == "rank 0: 3 nodes"
    assert sorted(line.split(" [")[0].strip() for line in lines[1:]) == ["node 1", "node 2", "node 3"]
    assert sum("tombstone" in line for line in lines) == 1
    assert all("FULL locked" in line for line in lines[1:])


def test_events_are_handed_on_once_and_in_order_if_they_were_asked_for() -> None:
    """R145: a server may follow the journal in its own process; otherwise there is nothing to take."""
    server = Server(4, dp_size=2, events=True)
    path(server, "L", dp_rank=1)
    taken = server.cache.take_events()
    assert [event.event for event in taken if event.dp_rank == 1][1:] == server.journals[1].events
    assert [event.seq for event in taken if event.dp_rank == 1] == list(
        range(1, len(server.journals[1].events) + 2)
    )
    assert server.cache.take_events() == []
    path(server, "L", "b", dp_rank=0)
    assert {event.dp_rank for event in server.cache.take_events()} == {0}
    quiet = Server(4)
    path(quiet, "L")
    assert quiet.cache.take_events() == PlainCache().take_events() == []
