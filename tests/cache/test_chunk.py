"""The chunk routes: no tree, so a request owns its row from its first chunk to its end (R128, R150, R195, R198)."""

import numpy as np
import pytest

from radixledger.cache.digest import digest, recount
from radixledger.cache.image import image, restore
from radixledger.cache.keys import raw_key
from radixledger.cache.laws.invariants import broken_laws
from radixledger.cache.rank import RankCache
from radixledger.cache.refusals import Busy, Refusal
from radixledger.cache.slices import Slice
from radixledger.cache.state import Receipt
from radixledger.cache.watch import Watched
from radixledger.journal.accounts import request_account
from radixledger.journal.causes import Operation, label
from radixledger.journal.events import (
    Evicted,
    Finished,
    Freed,
    Matched,
    Reclaimed,
    Repointed,
    Stop,
    Transferred,
)
from radixledger.journal.units import NO_PAGES, ROOT, TO_ROOT, UNBOUND, NodeId, RequestId

from .driven import CHUNK_SHAPES, Driven, FrameList, opened

PAGE, WINDOW = CHUNK_SHAPES["swa_chunk"][:2]
BOTH = pytest.mark.parametrize("route", CHUNK_SHAPES)


def rank(route: str) -> tuple[RankCache, FrameList]:
    journal = FrameList(opened(CHUNK_SHAPES[route], route=route))
    return RankCache(journal.opened, journal, watched=Watched.STATE), journal


def tokens(count: int) -> bytes:
    return raw_key(np.arange(count, dtype=np.int32))


def running(cache: RankCache, rid: str, count: int, prompt: int = 60) -> int:
    """A request with so many tokens of its prompt computed."""
    request = cache.admit(rid, tokens(prompt), prompt).request
    grow(cache, request, count)
    return request


def grow(cache: RankCache, request: int, count: int) -> None:
    cache.extend(np.array([request], np.int64), np.array([count], np.int32))


@BOTH
def test_a_prompt_that_was_computed_before_is_computed_again(route: str) -> None:
    """R195: match finds nothing, and the journal has how much was asked for, so that hit rates can be compared."""
    cache, journal = rank(route)
    cache.finish(running(cache, "a", 20, 20), tokens(20))
    hit = cache.match(tokens(20))
    assert (hit.node, hit.tokens, hit.full_tokens, hit.stop) == (ROOT, 0, 0, Stop.NO_CHILD)
    assert cache.peek(tokens(20)) == hit
    assert cache.match(tokens(PAGE - 1)).stop == Stop.END_OF_KEY
    assert cache.match(tokens(20), force_miss=True).stop == Stop.FORCED_MISS
    assert [event.asked for event in journal.events if isinstance(event, Matched)] == [16, 20, 0, 20]
    assert cache.admit("b", tokens(20), 20).hit.tokens == 0


@BOTH
def test_a_chunk_that_is_cached_stays_the_requests_own(route: str) -> None:
    """R150: nothing is inserted, the row stays as it is, and no event says that anything changed."""
    cache, journal = rank(route)
    request = running(cache, "a", 3 * PAGE + 1)
    row = cache.state.row_of(request)
    before = cache.digest(), len(journal.events), cache.state.rows.full_table[row].tolist()
    assert cache.cache_unfinished(request, tokens(60), 3 * PAGE + 1) == 0
    assert (cache.digest(), len(journal.events), cache.state.rows.full_table[row].tolist()) == before
    assert cache.state.requests[request].receipt is None
    grow(cache, request, PAGE)
    assert cache.cache_unfinished(request, tokens(60), 4 * PAGE + 1) == 0
    assert not [event for event in journal.events if isinstance(event, Transferred | Repointed)]


@BOTH
@pytest.mark.parametrize("end", ["finish", "retract", "abort"])
def test_every_page_of_a_row_is_free_when_its_request_ends(route: str, end: str) -> None:
    """R147, R148, R156: each page once, the unfinished one too, under the name of what ended the request."""
    cache, journal = rank(route)
    request = running(cache, "a", 30)
    cache.reclaim(request, 29)
    if end == "finish":
        assert cache.finish(request, tokens(30)) == 0
    else:
        getattr(cache, end)(request)
    state = cache.state
    assert (state.full.available, state.swa.available) == (state.full.capacity, state.swa.capacity)
    assert not state.mapping.swa_of.any()
    frees = [event for event in journal.events if isinstance(event, Freed)]
    assert [label(event.cause) for event in frees] == [f"{end}/tail"]
    assert len(frees[0].full) // 4 == -(-30 // PAGE)
    ended = [event for event in journal.events if isinstance(event, Finished)]
    assert [(event.cached, event.tokens) for event in ended] == ([(0, 30)] if end == "finish" else [])


def test_a_request_gives_back_its_window_from_its_first_token_on() -> None:
    """R126-R132: the protected length is 0, so the frontier alone says how far; W = 9, P = 4."""
    cache, journal = rank("swa_chunk")
    request = running(cache, "a", 40)
    assert cache.reclaim(request, 39) == 24
    told = [event for event in journal.events if isinstance(event, Reclaimed)]
    assert [(event.start, event.stop, len(event.swa) // 4) for event in told] == [(0, 24, 6)]
    table = cache.state.rows.swa_table[cache.state.row_of(request)]
    assert np.flatnonzero(table).tolist() == [6, 7, 8, 9]
    assert cache.reclaim(request, 30) == 24, "a cursor never moves backward (R132)"


def test_a_long_prefill_gives_back_its_window_between_two_chunks() -> None:
    """R151: extend reclaims on chunk routes alone, since no tree takes the pages; a chunk in flight keeps its own."""
    cache, _ = rank("swa_chunk")
    request, chunk = running(cache, "a", 20), 10
    ids = np.array([request], np.int64)
    grow(cache, request, chunk)
    cache.step_began(1, ids, np.array([20], np.int32), np.array([30], np.int32))
    assert cache.reclaim(request, 29) == 4, (
        "the running chunk reads back from token 20: 20 - W - P, a page boundary"
    )
    cache.step_ended(1)
    assert cache.reclaim(request, 29, in_flight=chunk) == 4, "said by the caller, it is the same bound"
    assert cache.reclaim(request, 29) == 16
    assert cache.cache_unfinished(request, tokens(60), 30) == 0, (
        "what has no window any more can go on all the same"
    )


def test_a_request_can_be_given_more_tokens_than_a_window_pool_has() -> None:
    """R4: with its window given back in time, a row of 60 tokens runs through a pool of 7 windows pages."""
    journal = FrameList(opened((PAGE, WINDOW, 40, 7), route="swa_chunk"))
    cache = RankCache(journal.opened, journal, watched=Watched.STATE)
    request, length = running(cache, "a", 8), 8
    while length < 60:
        cache.reclaim(request, length - 1)
        grow(cache, request, 4)
        length += 4
    cache.finish(request, None)
    assert cache.state.swa.available == 7


@BOTH
def test_nobody_can_bring_pages_where_no_tree_takes_them(route: str) -> None:
    """R62: refused before anything moved, so that they are still the caller's to free."""
    cache, journal = rank(route)
    pages, _ = cache.alloc(2)
    brought = Slice(pages, 0, 0, request_account(UNBOUND), RequestId(UNBOUND), Operation.INSERT)
    with pytest.raises(Refusal, match="has no tree"):
        cache.insert(tokens(2 * PAGE), b"", brought)
    cache.free(pages)
    assert cache.state.full.available == cache.state.full.capacity
    assert not [event for event in journal.events if isinstance(event, Transferred)]


@BOTH
def test_a_lock_of_the_root_is_no_lock_and_eviction_gains_nothing(route: str) -> None:
    """R105, R108, R143: there is nothing to hold and nothing to give, and that is what is told."""
    cache, journal = rank(route)
    begun = len(journal.events)
    receipt = cache.lock(ROOT)
    assert receipt == Receipt(ROOT, TO_ROOT)
    cache.unlock(receipt)
    assert len(journal.events) == begun
    with pytest.raises(Refusal, match="not in the tree"):
        cache.lock(NodeId(1))
    running(cache, "a", 20)
    assert cache.evict(5, 5) == (0, 0)
    told = [event for event in journal.events if isinstance(event, Evicted)]
    assert [(event.asked_full, event.gained_full, event.gained_swa, event.events) for event in told] == [
        (5, 0, 0, 0)
    ]


@BOTH
def test_a_flush_asks_for_an_idle_rank_all_the_same(route: str) -> None:
    """R33, R177, R178."""
    cache, _ = rank(route)
    request = running(cache, "a", 5)
    with pytest.raises(Busy, match="1 requests are live"):
        cache.flush()
    cache.abort(request)
    assert cache.flush() == 0


@BOTH
def test_the_numbers_of_a_ledger_add_up_over_requests_alone(route: str) -> None:
    """R154, R156, R169: the tree's are zero; a partly filled page is slack; mapped is what the rows still have."""
    cache, _ = rank(route)
    request = running(cache, "a", 30)
    cache.reclaim(request, 29)
    row = cache.ledger()
    windowed = route == "swa_chunk"
    live = 30 - 16 if windowed else 0
    assert (row.full_request_owned, row.full_reserved_page_slack) == (30, 2)
    assert (row.swa_request_owned, row.swa_reserved_page_slack) == (live, 2 if windowed else 0)
    assert row.mapping_nonzero_count == live + row.swa_reserved_page_slack
    assert row.full_available + 32 == row.full_capacity
    assert row.swa_available + live + row.swa_reserved_page_slack == row.swa_capacity
    tree = (row.full_tree_evictable, row.full_tree_protected, row.swa_tree_evictable, row.swa_tree_protected)
    assert tree == (0, 0, 0, 0)
    assert not row.idle
    cache.abort(request)
    assert cache.ledger().idle


@BOTH
def test_an_image_of_a_state_without_a_tree_is_that_state(route: str) -> None:
    """J12, J13: in the middle of a random run, and it goes on the same."""
    driven = Driven(5, CHUNK_SHAPES[route], route=route).run(120)
    state = driven.cache.state
    again = restore(image(state))
    assert digest(again) == digest(state) == recount(again)
    assert (again.windowed, again.tail_pages, again.traits) == (
        state.windowed,
        state.tail_pages,
        state.traits,
    )
    assert list(broken_laws(again)) == []
    assert list(again.nodes) == [ROOT]
    assert (again.swa.capacity > 0) == (route == "swa_chunk")
    assert again.root.swa == NO_PAGES


@BOTH
def test_what_no_tree_takes_is_told_at_the_end(route: str) -> None:
    """J17: what another cache would have kept is known only if somebody says it."""
    cache, journal = rank(route)
    cache.finish(running(cache, "a", 22, 22), tokens(22))
    cache.finish(running(cache, "b", 22, 22), None)
    told = [event.key for event in journal.events if isinstance(event, Finished)]
    assert told == [tokens(22 // PAGE * PAGE), b""]


def test_what_a_tree_takes_is_told_once() -> None:
    """J10: the tree's own events have the key of what it took."""
    journal = FrameList(opened())
    cache = RankCache(journal.opened, journal)
    cache.finish(running(cache, "a", 22, 22), tokens(22))
    (end,) = [event for event in journal.events if isinstance(event, Finished)]
    assert (end.cached, end.key) == (20, b"")
