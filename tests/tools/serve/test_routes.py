"""One engine over every route: what comes out is the same, and the scheduler never learns which cache it has.

The small model is a fake that reads every page it is told to; the tiny one is real.
"""

from pathlib import Path

import pytest

from radixledger.cache.traits import TRAITS
from radixledger.journal.accounts import Kind
from radixledger.journal.events import Healed, Reclaimed, Removed, Retracted, Tombstoned, Transferred
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Rank
from radixledger.replay.verify import verify_rank
from radixledger.tools.opening import Recording
from radixledger.tools.serve.loader import Checkpoint
from radixledger.tools.serve.offline import NotServable, Report, Setup, make_runner, serve_lines, sizes_of
from radixledger.tools.serve.requests import Request, Result
from radixledger.tools.serve.tiny import Tiny, load_tiny

from .fake_runner import dense_ids
from .house import Desk, House, ask, prompt_of

A, X = prompt_of(1, 400), prompt_of(2, 400)
WINDOW = 5
WINDOWED = [name for name, traits in TRAITS.items() if traits.windowed]
ONE_POOL = [name for name, traits in TRAITS.items() if not traits.windowed]


def conversations(count: int = 5, turns: int = 3) -> list[Request]:
    """Turns that repeat what was said before, of several speakers at once."""
    found = []
    for who in range(count):
        said = A[:18]
        for turn in range(turns):
            said = [*said, *prompt_of(50 * who + turn, 9 + who)]
            found.append(ask(f"{who}-{turn}", said, 24, at=25 * turn + who))
    return found


@pytest.mark.parametrize("route", TRAITS)
@pytest.mark.parametrize("page_size", [1, 4, 16])
def test_the_ids_are_those_of_the_model_alone_on_every_route(route: str, page_size: int) -> None:
    """R5, R6, R145, R198: crowded, with chunks and retractions; a route without a tree has no hits and needs none."""
    house = House(
        route=route, page_size=page_size, full_pages=112 // page_size, swa_pages=120 // page_size + 6,
        window_tokens=WINDOW, chunk_tokens=24, running=5,
    )  # fmt: skip
    requests = conversations()
    results = house.serve(*requests)
    window = WINDOW if TRAITS[route].windowed else 0
    for request, result in zip(requests, results, strict=True):
        assert result.output_ids == dense_ids(request.input_ids, 24, window)
    journal = house.journals[0]
    assert {bool(sum(result.cached_tokens for result in results)), bool(journal.of(Transferred))} == {
        TRAITS[route].tree
    }
    assert journal.of(Retracted), "the pools are too small for everybody at once"
    house.check_idle()


@pytest.mark.parametrize("route", TRAITS)
def test_pages_come_back_however_a_request_ends(route: str) -> None:
    """R138-R141, R147, R148: finished, aborted in each phase, retracted; then the rank is as empty as its tree says."""
    house = House(route=route, page_size=4, full_pages=20, swa_pages=20, window_tokens=WINDOW, chunk_tokens=8)
    results = house.serve(
        ask("finishes", A[:14], 5), ask("between", X[:20], 5, abort_at=1), ask("decodes", X[5:14], 30, abort_at=7),
        ask("waits", A[:30], 2, abort_after=0), ask("never", A[:200], 1), ask("elder", A[:18], 30),
    )  # fmt: skip
    reasons = [result.finish_reason for result in results]
    assert reasons == ["length", "abort", "abort", "abort", "refused", "length"]
    assert results[-1].output_ids == dense_ids(A[:18], 30, WINDOW if TRAITS[route].windowed else 0)
    state = house.caches[0].state
    house.check_idle()
    assert TRAITS[route].tree or state.full.available == 20
    assert house.caches[0].flush() >= 0
    assert (state.full.available, state.swa.available) == (20, 20 if TRAITS[route].windowed else 0)


@pytest.mark.parametrize("route", WINDOWED)
def test_a_long_answer_holds_one_window_of_swa_on_every_route_that_has_one(route: str) -> None:
    """R126, R145: reclaims are the cache's own affair; the scheduler asks for them and never what they freed."""
    desk = Desk(route=route, page_size=4, full_pages=64, swa_pages=8, window_tokens=WINDOW, chunk_tokens=8)
    desk.submit("long", A[:30], 120)
    desk.tick(100)
    assert desk.state.swa.held[Kind.REQUEST] <= 2 + -(-(WINDOW + 1) // 4) < 150 // 4
    assert desk.house.journals[0].of(Reclaimed)


@pytest.mark.parametrize("route", ONE_POOL)
def test_a_model_without_a_window_is_never_short_of_one(route: str) -> None:
    """R178, R198: admission counts FULL alone, to the page."""
    house = House(route=route, page_size=1, full_pages=16, window_tokens=0, chunk_tokens=64)
    fits, over = house.serve(ask("a", A[:10], 7), ask("b", A[:10], 8))
    assert fits.output_ids == dense_ids(A[:10], 7, 0)
    assert "17 FULL pages" in str(over.error)
    assert house.journals[0].of(Reclaimed) == []


# -- the tiny model --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def flat() -> Checkpoint:
    """The tiny model without a sliding layer."""
    return load_tiny(Tiny(window_tokens=0))


def served(
    model: Checkpoint, setup: Setup, run: Path, requests: list[Request]
) -> tuple[Report, list[Result]]:
    sizes, results = sizes_of(setup, model.spec, requests), list[Result]()
    runners = [make_runner(setup, sizes.config, model)]
    report = serve_lines(setup, sizes, model.spec.eos_ids, Recording(run), runners, requests, results.append)
    return report, results


def talk() -> list[Request]:
    return [
        Request(f"{who}-{turn}", [*A[: 40 + 30 * turn], *prompt_of(9 * who + turn, 20)], 12, ignore_eos=True,
                arrival_ms=20 * turn + who)
        for turn in range(3)
        for who in range(4)
    ]  # fmt: skip


@pytest.mark.parametrize("windowed", [True, False], ids=["hybrid", "without a window"])
def test_real_answers_are_the_same_on_every_route(
    tiny: Checkpoint, flat: Checkpoint, tmp_path: Path, windowed: bool
) -> None:
    """R2, R6, R198: id by id, whatever was cached, evicted, healed or computed again; every journal verifies."""
    model, routes = (tiny, WINDOWED) if windowed else (flat, ONE_POOL)
    setup = Setup(page_size=16, full_pages=26, chunk_tokens=64, running=4)
    setup = setup._replace(swa_pages=18) if windowed else setup
    answers: dict[str, list[list[int]]] = {}
    for route in routes:
        report, results = served(model, setup._replace(route=route), tmp_path / route, talk())  # type: ignore[arg-type]
        answers[route] = [result.output_ids for result in results]
        assert (report.route, report.cached_tokens > 0) == (route, TRAITS[route].tree)
        verdict = verify_rank(tmp_path / route, Rank(0))
        assert verdict.clean, (route, verdict.findings)
        frames = list(JournalReader(tmp_path / route, Rank(0)).frames())
        assert frames[0].events[0].route == route  # type: ignore[union-attr]
        happened = {type(event) for frame in frames for event in frame.events}
        assert not TRAITS[route].tree or Removed in happened
        assert TRAITS[route].windowed or not happened & {Tombstoned, Healed, Reclaimed}
    assert len(answers) == len(routes) >= 2
    first = answers[routes[0]]
    assert all(others == first for others in answers.values())
    assert len({token for answer in first for token in answer}) >= 10, (
        "a model that says one thing proves nothing"
    )


def test_a_model_is_not_served_on_a_route_of_other_models(tiny: Checkpoint, flat: Checkpoint) -> None:
    """R200: the model decides whether there is a window, not the caller."""
    with pytest.raises(NotServable, match="a window of 32 tokens; route 'radix'"):
        sizes_of(Setup(route="radix"), tiny.spec, ())
    with pytest.raises(NotServable, match="no layer that slides; route 'unified'"):
        sizes_of(Setup(), flat.spec, ())
