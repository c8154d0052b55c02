"""One rank's schedule: who computes what when, who waits, who yields, and what a request leaves behind.

The device is fake and reads what the page tables point at, so every result here is also a proof that no page was
given up too early.
"""

import numpy as np
import pytest

from radixledger.journal.events import (
    Aborted,
    Evicted,
    Finished,
    Freed,
    Locked,
    Reclaimed,
    Repointed,
    Unlocked,
)
from radixledger.tools.serve.engine import RankServer
from radixledger.tools.serve.scheduler import Scheduler
from radixledger.tools.serve.served_rank import Served, ServedRank

from .fake_runner import FakeRunner, dense_ids
from .house import Desk, House, ask, prompt_of

A = prompt_of(7, 64)
X = prompt_of(8, 64)


def batches(house: House) -> list[list[tuple[int, int]]]:
    runner = house.engine.ranks[0].runner
    assert isinstance(runner, FakeRunner)
    return runner.batches


def names(house: House) -> list[str]:
    return [type(event).__name__ for event in house.journals[0].events]


# -- what a step holds -------------------------------------------------------------------------------------------


def test_a_prompt_is_computed_in_chunks_and_then_a_token_a_step() -> None:
    house = House(chunk_tokens=16)
    house.serve(ask("a", A[:37], 3))
    assert batches(house) == [[(0, 16)], [(16, 16)], [(32, 5)], [(37, 1)], [(38, 1)]]


def test_chunks_of_prompts_share_a_step_with_the_tokens_of_those_who_decode() -> None:
    house = House(chunk_tokens=8)
    house.serve(ask("a", A[:4], 6), ask("b", X[:12], 2, at=1))
    assert batches(house)[:3] == [[(0, 4)], [(4, 1), (0, 8)], [(5, 1), (8, 4)]]


def test_the_tokens_of_a_step_go_to_the_eldest_first() -> None:
    house = House(chunk_tokens=8)
    house.serve(ask("a", A[:5], 1), ask("b", X[:9], 1), ask("c", A[10:14], 1))
    assert batches(house) == [[(0, 5), (0, 3)], [(3, 6), (0, 2)], [(2, 2)]]


def test_no_more_requests_run_than_may() -> None:
    house = House(running=2, chunk_tokens=64)
    house.serve(*(ask(f"r{i}", prompt_of(i, 4), 3) for i in range(5)))
    assert max(map(len, batches(house))) == 2


def test_a_hit_is_not_computed_again_but_for_one_token_at_least() -> None:
    """E9: the whole prompt is in the tree, and its last page is computed anew."""
    house = House(page_size=4, chunk_tokens=64)
    first, second = house.serve(ask("a", A[:16], 1), ask("b", A[:16], 1, at=5))
    assert (first.cached_tokens, second.cached_tokens) == (0, 12)
    assert batches(house) == [[(0, 16)], [(12, 4)]]


def test_a_prompt_of_which_one_token_is_left_counts_as_a_prompt() -> None:
    house = House(page_size=4, chunk_tokens=64)
    _, second = house.serve(ask("a", A[:16], 1), ask("b", A[:13], 2, at=5))
    assert second.cached_tokens == 12
    assert second.output_ids == dense_ids(A[:13], 2, 8)


def test_an_end_token_ends_a_request_unless_it_is_to_be_ignored() -> None:
    expected = dense_ids(A[:9], 12, 8)
    eos = expected[5]
    assert eos not in expected[:5]
    house = House(eos_ids=frozenset({eos}))
    ignoring = ask("b", A[:9], 12)
    ignoring = type(ignoring)("b", ignoring.input_ids, 12, ignore_eos=True)
    stopped, ignored = house.serve(ask("a", A[:9], 12), ignoring)
    assert (stopped.finish_reason, stopped.output_ids) == ("stop", expected[:6])
    assert (ignored.finish_reason, ignored.output_ids) == ("length", expected)


def test_a_namespace_shares_nothing_with_another() -> None:
    house = House(chunk_tokens=64)
    results = house.serve(
        ask("a", A[:16], 1, extra_key="x"),
        ask("b", A[:16], 1, at=9, extra_key="y"),
        ask("c", A[:16], 1, at=19),
        ask("d", A[:16], 1, at=29, extra_key="x"),
    )
    assert [result.cached_tokens for result in results] == [0, 0, 0, 12]


def test_forced_misses_match_nothing_and_leave_nothing_behind() -> None:
    house = House(chunk_tokens=8, force_miss=True)
    results = house.serve(ask("a", A[:40], 9), ask("b", A[:40], 9, at=20))
    assert [result.cached_tokens for result in results] == [0, 0]
    assert [result.output_ids for result in results] == [dense_ids(A[:40], 9, 8)] * 2
    assert not set(names(house)) & {"Transferred", "Locked", "Healed", "Repointed"}
    assert house.caches[0].state.full.available == house.config.full_pages
    assert house.journals[0].of(Reclaimed), "the window of a prompt moves, though nothing is cached"


# -- a request's life in the books ------------------------------------------------------------------------------------


def test_between_chunks_the_tree_owns_whole_pages_and_the_request_its_unfinished_one() -> None:
    """B16: chunks of 6 in pages of 4; the protected length is 4, not 6, and the tail page is given back once."""
    desk = Desk(page_size=4, full_pages=32, swa_pages=32, chunk_tokens=6)
    job = desk.submit("r", A[:18], 1)
    desk.tick()
    assert (int(desk.state.rows.protected[job.row]), desk.accounts()) == (4, (30, 1, 1))
    desk.tick(2)
    assert job.finish_reason == "length"
    assert desk.accounts() == (28, 4, 0)
    desk.house.check_idle()


def test_a_chunked_request_holds_one_row_and_one_lock_between_chunks() -> None:
    """B28, R139: the new path is locked and the old one released, chunk after chunk."""
    desk = Desk(page_size=4, chunk_tokens=4)
    desk.submit("r", A[:16], 1)
    for _ in range(3):
        desk.tick()
        assert np.count_nonzero(desk.state.rows.request) == 1
        assert [node.anchors for node in desk.state.nodes.values() if node.anchors] == [1]
    desk.tick()
    locks, unlocks = (desk.house.journals[0].of(kind) for kind in (Locked, Unlocked))
    assert len(locks) == len(unlocks) == 3
    desk.house.check_idle()


def test_finish_gives_the_whole_pages_to_the_tree_and_the_tail_back() -> None:
    """R148: 10 + 3 - 1 = 12 tokens are three pages; of 13 the fourth page's one token goes."""
    for count, tail in ((3, 0), (4, 1)):
        desk = Desk(page_size=4, chunk_tokens=64)
        desk.submit("r", A[:10], count)
        desk.tick(count)
        assert desk.accounts() == (61, 3, 0)
        assert sum(len(event.full) // 4 for event in desk.house.journals[0].of(Freed)) == tail


def test_output_is_cached_for_the_next_turn() -> None:
    house = House(page_size=4, chunk_tokens=64)
    (first,) = house.serve(ask("turn-1", A[:10], 8))
    (second,) = house.serve(ask("turn-2", [*A[:10], *first.output_ids, *X[:3]], 4))
    assert second.cached_tokens == 16
    assert second.output_ids == dense_ids([*A[:10], *first.output_ids, *X[:3]], 4, 8)


def test_a_row_names_the_trees_pages_once_another_request_was_there_first() -> None:
    """R149: both compute the same prompt in the same steps; the second comes to share the first one's pages."""
    house = House(page_size=4, chunk_tokens=64)
    results = house.serve(ask("a", A[:20], 6), ask("b", A[:20], 6))
    assert results[0].output_ids == results[1].output_ids == dense_ids(A[:20], 6, 8)
    moved = [event for event in house.journals[0].of(Repointed) if event.full]
    assert len(moved) == 1


def test_the_window_moves_on_while_a_request_decodes() -> None:
    """R130: SWA below the frontier goes back, long before the request ends."""
    house = House(page_size=4, window_tokens=8, full_pages=64, swa_pages=8, chunk_tokens=8)
    (result,) = house.serve(ask("a", A[:8], 100))
    assert result.output_ids == dense_ids(A[:8], 100, 8)
    assert len(house.journals[0].of(Reclaimed)) > 15


# -- aborts ----------------------------------------------------------------------------------------------------------


def test_an_abort_between_chunks_leaves_the_tree_what_it_has_and_gives_the_rest_back() -> None:
    """B24, R141: no page is both free and in the tree, and the next request with that prompt is right."""
    desk = Desk(page_size=4, full_pages=32, swa_pages=32, chunk_tokens=10)
    desk.submit("r", A[:16], 4)
    desk.tick()
    assert desk.accounts() == (29, 2, 1)
    outcome = desk.house.engine.abort("r")
    assert outcome is not None
    assert (outcome.result.finish_reason, outcome.result.output_ids) == ("abort", [])
    assert len(desk.house.journals[0].of(Aborted)) == 1
    assert desk.house.journals[0].safe == len(desk.house.journals[0].events), "a result leaves with it"
    assert desk.accounts() == (30, 2, 0)
    desk.house.check_idle()
    (again,) = desk.house.serve(ask("again", A[:16], 4))
    assert (again.cached_tokens, again.output_ids) == (8, dense_ids(A[:16], 4, 8))


def test_an_abort_before_the_first_insert_leaves_nothing() -> None:
    """B21: what was computed but never cached cannot be matched."""
    desk = Desk(page_size=4, full_pages=16, swa_pages=16, chunk_tokens=3)
    desk.submit("r", A[:8], 4)
    desk.tick()
    desk.house.engine.abort("r")
    assert desk.accounts() == (16, 0, 0)
    (again,) = desk.house.serve(ask("again", A[:8], 4))
    assert (again.cached_tokens, again.output_ids) == (0, dense_ids(A[:8], 4, 8))


@pytest.mark.parametrize("after", [0, 1, 3])
def test_abort_after_so_many_tokens_gives_exactly_those(after: int) -> None:
    house = House()
    aborted, other = house.serve(ask("a", A[:9], 8, abort_after=after), ask("b", X[:9], 8))
    assert (aborted.finish_reason, aborted.output_ids) == ("abort", dense_ids(A[:9], after, 8))
    assert other.output_ids == dense_ids(X[:9], 8, 8)
    assert len(house.journals[0].of(Aborted)) == (after > 0)
    house.check_idle()


def test_a_request_that_ends_with_the_token_that_would_abort_it_has_ended_well() -> None:
    house = House()
    same, later = house.serve(ask("a", A[:9], 3, abort_after=3), ask("b", X[:9], 3, abort_after=4))
    assert (same.finish_reason, later.finish_reason) == ("length", "length")
    assert len(house.journals[0].of(Finished)) == 2


# -- capabilities -----------------------------------------------------------------------------------------------------


class OnlyServed:
    """A cache that has the calls of `Served` and no others: whatever else is asked of it is an error."""

    def __init__(self, cache: ServedRank) -> None:
        self._cache = cache

    def __getattr__(self, name: str) -> object:
        if name not in dir(Served):
            raise AssertionError(f"{name} is no capability that serving may ask for")
        return getattr(self._cache, name)


def test_serving_needs_the_capabilities_and_nothing_else_of_a_cache() -> None:
    """R4, R5, R16, R145: nobody here frees, and nobody asks what kind of cache it is."""
    house = House(page_size=4, full_pages=12, swa_pages=12, chunk_tokens=16)
    (server,) = house.engine.ranks
    face: Served = OnlyServed(house.caches[0])  # type: ignore[assignment]
    house.engine.ranks = [RankServer(face, Scheduler(face, house.policy), server.runner)]
    results = house.serve(ask("a", A[:8], 24), ask("b", X[:8], 24, abort_after=20), ask("c", A[:8], 2, at=3))
    assert [result.output_ids for result in results] == [
        dense_ids(A[:8], 24, 8),
        dense_ids(X[:8], 20, 8),
        dense_ids(A[:8], 2, 8),
    ]
    assert {"free", "free_swa", "free_full", "state"}.isdisjoint(dir(Served))


def test_a_page_that_is_given_up_too_early_changes_what_comes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control of this folder's fake device: a frontier two pages too far is found out."""
    monkeypatch.setattr("radixledger.cache.window.frontier", early_frontier)
    house = House(page_size=4, window_tokens=8, chunk_tokens=8)
    try:
        (result,) = house.serve(ask("a", A[:8], 60))
    except AssertionError as error:
        assert "not resident" in str(error)  # noqa: PT017
    else:
        assert result.output_ids != dense_ids(A[:8], 60, 8)


def early_frontier(old: int, pre: int, *, window_tokens: int, page_size: int, formula: str) -> int:
    return max(old, (pre - window_tokens + page_size) // page_size * page_size)


@pytest.mark.parametrize(("page_size", "window"), [(1, 5), (4, 9), (16, 5), (16, 31)])
@pytest.mark.parametrize("chunk", [1, 7, 64])
def test_ids_depend_on_nothing_but_the_prompt(page_size: int, window: int, chunk: int) -> None:
    """Warm = cold, batched = alone, chunked = whole, under pressure in both pools (R274: W mod P is 1 or P - 1 too)."""
    house = House(
        page_size=page_size,
        full_pages=96 // page_size + 4,
        swa_pages=(2 * window + 40) // page_size + 6,
        window_tokens=window,
        chunk_tokens=chunk,
    )
    requests = [
        ask(f"r{i}", [*A[: 3 + 11 * i % 40], *prompt_of(i % 5, 5 + 7 * i % 23)], 3 + i % 9, at=5 * i)
        for i in range(20)
    ]
    results = house.serve(*requests)
    for request, result in zip(requests, results, strict=True):
        assert result.output_ids == dense_ids(request.input_ids, request.max_new_tokens, window)
    assert sum(result.cached_tokens for result in results) > 0
    assert house.journals[0].of(Evicted)
    house.check_idle()
