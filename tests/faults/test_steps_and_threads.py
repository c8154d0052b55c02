"""Faults of time: what the device still reads is nobody else's, and what another thread wants has to wait."""

from collections.abc import Callable, Iterator
from threading import Thread, get_ident

import numpy as np
import pytest
from numpy.typing import NDArray

from radixledger.cache.decide import growth as decide_growth
from radixledger.cache.keys import raw_key
from radixledger.cache.laws.invariants import broken_laws
from radixledger.cache.rank import RankCache
from radixledger.cache.refusals import Busy, Refusal
from radixledger.cache.traits import TRAITS
from radixledger.journal.events import AnyEvent, Config, Finished, Freed, Opened, Phase, Reclaimed, Stepped
from radixledger.journal.frame import Frame
from radixledger.journal.units import Rank, Seq, TokenCount

from ..analytics.asked import answered, loaded
from ..analytics.story import Story
from ..cache.server import EventList
from ..tools.serve.fake_runner import dense_ids
from ..tools.serve.house import House, ask, prompt_of

PAGE, WINDOW = 4, 6
WINDOWED = [name for name, traits in TRAITS.items() if traits.windowed]
A, X = prompt_of(1, 128), prompt_of(2, 128)


def rank_of(route: str, *, pages: int = 24, rows: int = 2) -> tuple[RankCache, EventList]:
    windowed = TRAITS[route].windowed
    window = WINDOW if windowed else 0
    config = Config(PAGE, pages, pages if windowed else 0, window, rows, 64)
    opened = Opened("run", Rank(0), 1, 0, route, config, TokenCount(window), 4 * PAGE, "plain")
    journal = EventList(opened)
    return RankCache(opened, journal), journal


def one(number: int) -> NDArray[np.int64]:
    return np.array([number], np.int64)


def grown(count: int) -> NDArray[np.int32]:
    return np.array([count], np.int32)


def asked_in_sql(journal: EventList) -> list[dict[str, object]]:
    """What the check says of a journal: frees under a running step."""
    story = Story("run")
    story.frames = [Frame(Seq(1), 0, 0, 1, [journal.opened, *journal.events])]
    return answered(loaded(story), "freed_under_a_step")


@pytest.mark.parametrize("route", TRAITS)
def test_a_row_that_a_step_reads_goes_to_nobody_until_the_step_has_ended(route: str) -> None:
    """B135: step N runs r; the result of N-1 ends r; q, which arrives meanwhile, gets another row and other pages."""
    cache, journal = rank_of(route)
    key = raw_key(A[:10])
    r = cache.admit("r", key, 10).request
    cache.extend(one(r), grown(10))
    cache.step_began(7, one(r), grown(0), grown(10))
    pages = set(cache.state.rows.full_table[cache.state.row_of(r)].tolist()) - {0}
    for end in (lambda: cache.finish(r, key), lambda: cache.retract(r), lambda: cache.abort(r)):
        with pytest.raises(Busy, match=f"step 7 is running and reads request {r}"):
            end()
    q = cache.admit("q", raw_key(X[:9]), 9).request
    cache.extend(one(q), grown(9))
    assert cache.state.row_of(q) != cache.state.row_of(r)
    assert not pages & set(cache.state.rows.full_table[cache.state.row_of(q)].tolist())
    with pytest.raises(Refusal, match="all 2 rows have a request; 'p' has to wait"):
        cache.admit("p", raw_key(X[9:18]), 9)
    with pytest.raises(Busy):
        cache.flush()
    cache.evict(24, 24)
    cache.step_ended(7)
    cache.finish(r, key)
    p = cache.admit("p", raw_key(X[9:18]), 9).request
    assert cache.state.row_of(p) == r % 2
    told = [type(event) for event in journal.events if isinstance(event, Stepped | Freed | Finished)]
    assert told[:2] == [Stepped, Stepped], "nothing was given back before the end of the step was told"
    assert asked_in_sql(journal) == []
    assert list(broken_laws(cache.state)) == []


def spans(chunk: int) -> Iterator[tuple[int, int]]:
    """The steps of one request: a prompt of 40 tokens in chunks, then 30 tokens one by one."""
    yield from ((start, min(start + chunk, 40)) for start in range(0, 40, chunk))
    yield from ((at, at + 1) for at in range(40, 70))


def overlapped(route: str, chunk: int, *, told: bool) -> tuple[RankCache, EventList]:
    """A request whose every step is dispatched before the one before has ended, and that reclaims all the while.

    told: the rank knows of the steps; otherwise only a number says what is in flight.
    """
    cache, journal = rank_of(route)
    request = cache.admit("r", raw_key(A[:70]), 40).request
    for step, (start, stop) in enumerate(spans(chunk)):
        cache.extend(one(request), grown(stop - start))
        if told:
            cache.step_began(step, one(request), grown(start), grown(stop))
            if step:
                cache.step_ended(step - 1)
        cache.reclaim(request, stop - 1, 0 if told else stop - start)
        need = max(0, start - WINDOW + 1) // PAGE
        row = cache.state.rows.swa_table[cache.state.row_of(request)]
        assert (row[need : -(-stop // PAGE)] != 0).all(), "the running step reads its window"
    return cache, journal


@pytest.mark.parametrize("route", WINDOWED)
@pytest.mark.parametrize("chunk", [3, 4, 12])
@pytest.mark.parametrize("told", [True, False])
def test_reclaims_under_overlapped_steps_keep_what_the_step_in_flight_reads(
    route: str, chunk: int, told: bool
) -> None:
    """R151, A28: chunks are bounded by the chunk, decode steps by a token; the event says by how much."""
    cache, journal = overlapped(route, chunk, told=told)
    assert journal.of(Reclaimed)
    in_flight = {event.in_flight for event in journal.of(Reclaimed)}
    if told:
        assert in_flight == {0}, "the rank looks at the steps itself"
    else:
        assert {1} < in_flight <= {chunk, 40 % chunk, 1}
    assert asked_in_sql(journal) == []
    assert list(broken_laws(cache.state)) == []


@pytest.mark.parametrize("route", WINDOWED)
def test_the_first_chunks_give_nothing_back_while_the_next_is_in_flight(route: str) -> None:
    """R151, A28: with a chunk in flight, two of them and a window have to be there before the first page goes."""
    cache, journal = overlapped(route, 12, told=False)
    stops = [stop for start, stop in spans(12)]
    reclaimed = next(at for at, event in enumerate(journal.events) if isinstance(event, Reclaimed))
    steps = sum(type(event).__name__ == "Extended" for event in journal.events[:reclaimed])
    assert stops[steps - 1] == 36, "the third chunk"
    assert journal.of(Reclaimed)[0].stop <= 36 - 1 - 12 - WINDOW
    assert cache.state.requests


@pytest.mark.parametrize("route", WINDOWED)
def test_a_reclaim_that_forgets_the_running_step_is_found_by_the_law_and_in_sql(
    route: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R151: a planted fault: the frontier is computed as if nothing were in flight; a chunk reads further back."""
    monkeypatch.setattr(decide_growth, "_oldest_in_flight", lambda _state, _request, pre: pre)
    with pytest.raises(AssertionError, match="the running step reads its window"):
        overlapped(route, 12, told=True)
    cache, journal = rank_of(route)
    request = cache.admit("r", raw_key(A[:40]), 40).request
    cache.extend(one(request), grown(40))
    cache.step_began(1, one(request), grown(28), grown(40))
    cache.reclaim(request, 39)
    found = asked_in_sql(journal)
    assert [(row["event"], row["running_step"], row["pool"]) for row in found] == [("Reclaimed", 1, "swa")]
    assert [finding.law for finding in broken_laws(cache.state)] == ["every_live_window_can_be_read"]
    phases = [event.phase for event in journal.of(Stepped)]
    assert phases == [Phase.BEGAN]


def test_a_thousand_aborts_from_other_threads_inside_commands_are_only_queued() -> None:
    """B137: one at each event that a command writes; pages, rows and books are touched by one thread alone."""
    house = House(page_size=4, full_pages=40, swa_pages=40, window_tokens=4, chunk_tokens=16, running=4)
    requests = [ask(f"r{number}", prompt_of(number, 5 + number % 13), 6, at=number) for number in range(200)]
    cache, engine = house.caches[0], house.engine
    append: Callable[[AnyEvent], None] | None = cache._append
    assert append is not None
    writers, asked = set[int](), 0

    def interrupted(event: AnyEvent) -> None:
        nonlocal asked
        append(event)
        writers.add(get_ident())
        if asked < 1000:
            thread = Thread(target=engine.cancel, args=(f"r{asked * 2 % 200}",))
            thread.start()
            thread.join()
            asked += 1

    cache._append = interrupted
    results = house.serve(*requests)
    assert asked == 1000
    assert writers == {get_ident()}
    reasons = {result.rid: result.finish_reason for result in results}
    assert all(reasons[f"r{number}"] == "length" for number in range(1, 200, 2))
    assert "abort" in reasons.values()
    for request, result in zip(requests, results, strict=True):
        assert result.output_ids == dense_ids(request.input_ids, len(result.output_ids), 4)
    house.check_idle()
