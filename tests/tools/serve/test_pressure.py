"""When the pools run short: what the tree gives up, who yields, who waits, and that nobody hangs.

As in `test_scheduler`, the device notices every page that was given up too early.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixledger.journal.events import (
    Admitted,
    Evicted,
    Finished,
    Retracted,
    Tombstoned,
)
from radixledger.tools.serve.capacity import Capacity, least_swa_pages, why_never
from radixledger.tools.serve.requests import Request

from .fake_runner import dense_ids
from .house import Desk, House, ask, prompt_of

A = prompt_of(7, 64)
X = prompt_of(8, 64)


def names(house: House) -> list[str]:
    return [type(event).__name__ for event in house.journals[0].events]


def pressed() -> Desk:
    """Two requests that grow until one has to yield, stopped right after it did."""
    desk = Desk(page_size=4, full_pages=12, swa_pages=12, chunk_tokens=16)
    desk.submit("elder", A[:8], 24)
    desk.house.engine.submit(1, ask("younger", X[:8], 24))
    while not desk.house.journals[0].of(Retracted):
        desk.tick()
    return desk


def test_the_youngest_yields_keeps_its_output_and_goes_on_later() -> None:
    """B18, B30, R140: it is admitted again with prompt and output as its prompt, and its ids do not change."""
    house = House(page_size=4, full_pages=12, swa_pages=12, chunk_tokens=16)
    results = house.serve(ask("elder", A[:8], 24), ask("younger", X[:8], 24))
    assert [result.output_ids for result in results] == [dense_ids(p[:8], 24, 8) for p in (A, X)]
    (retracted,) = house.journals[0].of(Retracted)
    admitted = [event for event in house.journals[0].of(Admitted) if event.rid == "younger"]
    assert [event.request == retracted.request for event in admitted] == [True, False]
    assert admitted[1].prompt > admitted[0].prompt == 8
    house.check_idle()


def test_a_retraction_releases_the_lock_before_the_request_is_over() -> None:
    """R140, as the order of events."""
    told = [name for name in names(pressed().house) if name in {"Unlocked", "Retracted"}]
    assert told[:2] == ["Unlocked", "Retracted"]


def test_a_retraction_counts_the_first_hit_and_not_what_it_finds_later() -> None:
    house = House(page_size=4, full_pages=12, swa_pages=12, chunk_tokens=16)
    results = house.serve(ask("elder", A[:8], 24), ask("younger", X[:8], 24))
    assert [result.cached_tokens for result in results] == [0, 0]
    again = [event.prefix for event in house.journals[0].of(Admitted)]
    assert again == [0, 0, 8]


def test_swa_need_is_met_with_swa_pages_and_full_need_with_full_pages() -> None:
    """B112: while FULL is plenty, windows are taken and no leaf is lost that anybody could still start from."""
    house = House(page_size=4, full_pages=64, swa_pages=14, window_tokens=8, chunk_tokens=64)
    house.serve(*(ask(f"r{i}", [*A[:16], *prompt_of(i, 16)], 1, at=9 * i) for i in range(4)))
    assert all(event.asked_full == 0 for event in house.journals[0].of(Evicted))
    assert house.journals[0].of(Tombstoned)


@pytest.mark.parametrize(("fresh", "at_once"), [(6, True), (7, False)])
def test_a_prefix_that_a_request_would_shield_is_not_counted_as_room(fresh: int, at_once: bool) -> None:
    """B114: 8 pages are free, one is owed to who runs; 10 more could be evicted, but they are the prefix itself."""
    desk = Desk(page_size=1, full_pages=20, swa_pages=40, window_tokens=4, chunk_tokens=64)
    desk.house.serve(ask("a", A[:10], 1))
    desk.submit("busy", X[:1], 10)
    desk.tick()
    job = desk.submit("b", [*A[:10], *X[20 : 20 + fresh]], 1)
    desk.tick()
    assert (job.cached_tokens is not None) is at_once
    for _ in desk.house.engine.serve([]):
        pass
    assert job.output_ids == dense_ids(job.request.input_ids, 1, 4)


@given(st.integers(0, 1 << 20), st.sampled_from([1, 2, 4]), st.sampled_from([1, 3, 8, 20]))
def test_what_a_hit_would_shield_is_what_its_admission_shields(
    seed: int, page_size: int, window: int
) -> None:
    """B114: to the page, for hits at the end of nodes and inside them, on paths that others hold in part."""
    chance = np.random.default_rng(seed)
    house = House(page_size=page_size, window_tokens=window, full_pages=400, swa_pages=400, chunk_tokens=256)
    cache, text = house.caches[0], prompt_of(seed, 60)

    def some() -> list[int]:
        return [
            *text[: chance.integers(0, 60)],
            *prompt_of(int(chance.integers(3)), int(chance.integers(1, 20))),
        ]

    house.serve(*(ask(f"r{i}", some(), 1, at=4 * i) for i in range(6)))
    cache.evict(0, int(chance.integers(0, 20)))
    for number in range(3):
        prompt = some()
        key = np.array(prompt, np.int32).tobytes()
        usable = key[: (len(prompt) - 1) // page_size * page_size * 4]
        room, claim = cache.room(), cache.claim(cache.peek(usable))
        cache.admit(f"held-{number}", key, len(prompt))
        assert cache.room() == room.less(claim)


def test_a_prompt_for_which_there_is_no_window_waits_in_the_queue_and_not_in_a_row() -> None:
    """SWA is what is short: the next prompt is not let in to hold a row, a lock and a prefix for nothing."""
    desk = Desk(page_size=4, full_pages=64, swa_pages=9, window_tokens=8, chunk_tokens=16)
    desk.submit("runs", A[:16], 30)
    desk.tick(6)
    waits = desk.submit("waits", X[:40], 1)
    desk.submit("short", X[50:52], 1)
    desk.tick()
    assert waits in desk.scheduler.waiting, "4 pages are held and one is owed; a chunk of it takes 5 of 9"
    assert len(desk.scheduler.running) == 1, "and nobody overtakes it"
    for _ in desk.house.engine.serve([]):
        pass
    assert waits.output_ids == dense_ids(X[:40], 1, 8)
    assert desk.house.journals[0].of(Retracted) == []


def test_alone_the_prefix_and_the_rest_may_fill_the_pool() -> None:
    """B114, to the page: 10 cached and 6 fresh tokens in a pool of 16."""
    house = House(page_size=1, full_pages=16, swa_pages=40, window_tokens=4, chunk_tokens=64)
    house.serve(ask("a", A[:10], 1))
    over, exact = house.serve(ask("b", [*A[:10], *X[:7]], 1), ask("c", [*A[:10], *X[:6]], 1))
    assert (over.finish_reason, exact.finish_reason, exact.cached_tokens) == ("refused", "length", 10)
    assert house.journals[0].of(Evicted) == []


def test_who_waits_for_a_window_begins_as_soon_as_it_has_moved() -> None:
    """B117: SWA given back in the middle of a long answer lets the next one in, long before the answer ends."""
    house = House(page_size=4, full_pages=64, swa_pages=9, window_tokens=4, chunk_tokens=16)
    house.serve(ask("long", A[:16], 60), ask("next", X[:16], 1, at=2))
    events = house.journals[0].events
    ends = [event.request for event in events if isinstance(event, Finished)]
    begins = [event.request for event in events if isinstance(event, Admitted)]
    assert ends == [begins[1], begins[0]]


def test_the_eldest_goes_on_frugally_when_its_own_prefix_stands_in_its_way() -> None:
    """A hit at the end of a long node shields 5 of 6 pages; alone, a request gives that up and computes anew."""
    desk = Desk(page_size=4, full_pages=40, swa_pages=6, window_tokens=4, chunk_tokens=32)
    desk.house.serve(ask("a", A[:24], 1))
    job = desk.submit("b", [*A[:20], *X[:3]], 12)
    for _ in desk.house.engine.serve([]):
        pass
    assert job.output_ids == dense_ids(job.request.input_ids, 12, 4)
    assert (job.frugal, job.retractions, job.cached_tokens) == (True, 1, 20)
    desk.house.check_idle()


def test_a_retracted_request_that_is_aborted_while_it_waits_holds_nothing() -> None:
    """B25: it was running, so it had pages and a lock; in the queue it has none."""
    desk = pressed()
    waiting = desk.scheduler.waiting[0]
    assert waiting.retractions == 1
    desk.house.engine.abort(waiting.request.rid)
    assert waiting.outputs > 0
    assert waiting.result().output_ids == dense_ids(waiting.request.input_ids, waiting.outputs, 8)
    for _ in desk.house.engine.serve([]):
        pass
    desk.house.check_idle()


@st.composite
def crowds(draw: st.DrawFn) -> tuple[dict[str, int], list[Request]]:
    """A small rank, down to the smallest that can serve anybody, and requests that share parts of their prompts."""
    page_size, window = draw(st.sampled_from([1, 2, 4, 8])), draw(st.sampled_from([1, 3, 5, 8, 17]))
    least = least_swa_pages(10_000, Capacity(page_size, 0, 0, window, 0))
    sizes = {
        "page_size": page_size,
        "window_tokens": window,
        "full_pages": draw(st.integers(4, 30)),
        "swa_pages": draw(st.integers(least - 1, least + 10)),
        "chunk_tokens": draw(st.sampled_from([1, 3, 16, 50])),
        "running": draw(st.integers(1, 5)),
        "ranks": draw(st.integers(1, 2)),
    }
    longest = sizes["full_pages"] * page_size
    requests = [
        ask(
            f"r{number}",
            [*prompt_of(draw(st.integers(0, 2)), longest)[: draw(st.integers(0, longest // 2))], *prompt_of(draw(st.integers(3, 9)), longest)[: draw(st.integers(1, 12))]],
            draw(st.integers(1, max(1, longest // 2))),
            at=draw(st.integers(0, 30)),
            abort_after=draw(st.sampled_from([None, None, None, 0, 1, 4])),
            extra_key=draw(st.sampled_from([None, None, "tenant"])),
        )
        for number in range(draw(st.integers(1, 12)))
    ]  # fmt: skip
    return sizes, requests


@given(crowds())
def test_whatever_arrives_everybody_is_served_and_rightly(
    crowd: tuple[dict[str, int], list[Request]],
) -> None:
    """Nobody hangs, nobody is lost, every id is what it would be alone and cold, and the journal tells all of it."""
    sizes, requests = crowd
    house = House(**sizes)  # type: ignore[arg-type]
    for request, result in zip(requests, house.serve(*requests), strict=True):
        match result.finish_reason:
            case "refused":
                assert why_never(request, house.engine.capacity) == result.error
                continue
            case "abort":
                assert len(result.output_ids) == request.abort_after
            case "length":
                assert len(result.output_ids) == request.max_new_tokens
            case "stop":
                pytest.fail("there is no end token here")
        assert result.output_ids == dense_ids(
            request.input_ids, len(result.output_ids), house.config.window_tokens
        )
    house.check_idle()
