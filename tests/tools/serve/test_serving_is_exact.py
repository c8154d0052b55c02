"""The whole engine on the tiny model: what comes out depends on the prompt alone, at every page size, under pressure.

Warm = cold, batched = alone, chunked = whole, retracted = not: the crowded run has hits, chunks, decode batches,
tombstones, heals, evictions and retractions; the quiet one serves every other request by itself and caches nothing.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from radixledger.cache.faces.routing import RouteName
from radixledger.cache.traits import TRAITS
from radixledger.journal.events import AnyEvent, Healed, Reclaimed, Removed, Retracted, Tombstoned
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Rank
from radixledger.replay.verify import verify_rank
from radixledger.tools.opening import Recording
from radixledger.tools.serve.loader import Checkpoint
from radixledger.tools.serve.offline import Report, Setup, make_runner, serve_lines, sizes_of
from radixledger.tools.serve.requests import Request, Result

VOCAB = 512


def ids(seed: int, count: int) -> list[int]:
    found: list[int] = np.random.default_rng(seed).integers(3, VOCAB, count).tolist()
    return found


class Crowd(NamedTuple):
    """Four conversations of three turns over one beginning, on a rank that is too small for them.

    Tokens: of the shared beginning, of a turn, of an answer. Virtual times: between turns, between conversations.
    """

    page_size: int
    shared: int
    turn: int
    answer: int
    chunk: int
    full_pages: int
    swa_pages: int
    turn_ms: int
    spread_ms: int

    def requests(self) -> list[Request]:
        """Each turn repeats what was said before it."""
        found = []
        for who in range(4):
            said = ids(1, self.shared)
            for number in range(3):
                said = [*said, *ids(10 * who + number + 2, self.turn + 5 * who)]
                at = self.turn_ms * number + self.spread_ms * who
                rid = f"c{who}-t{number}"
                found.append(Request(rid, said, self.answer, ignore_eos=True, arrival_ms=at, dp_rank=0))
        return found


CROWDS = [
    Crowd(1, 40, 25, 14, 24, 512, 213, 3, 1),
    Crowd(16, 70, 40, 24, 56, 51, 28, 3, 1),
    Crowd(128, 150, 110, 60, 96, 12, 5, 20, 2),
    Crowd(256, 270, 120, 140, 200, 11, 8, 60, 5),
]


def serve(
    model: Checkpoint, setup: Setup, recording: Recording, requests: list[Request]
) -> tuple[Report, list[Result]]:
    sizes, results = sizes_of(setup, model.spec, requests), list[Result]()
    runners = [make_runner(setup, sizes.config, model)]
    report = serve_lines(setup, sizes, model.spec.eos_ids, recording, runners, requests, results.append)
    return report, results


@pytest.fixture(scope="module")
def said(tiny: Checkpoint) -> Callable[[Crowd], list[list[int]]]:
    """What every other request of a crowd gets when it is served by itself, with nothing cached; computed once."""

    @cache
    def alone(crowd: Crowd) -> list[list[int]]:
        requests = crowd.requests()
        longest = max(len(request.input_ids) for request in requests)
        quiet = Setup(crowd.page_size, chunk_tokens=longest, running=1, force_miss=True)
        _, cold = serve(tiny, quiet, Recording(None), requests[::2])
        assert sum(result.cached_tokens for result in cold) == 0
        return [result.output_ids for result in cold]

    return alone


PRESSED: dict[RouteName, set[type[AnyEvent]]] = {
    "unified": {Removed, Tombstoned, Healed, Retracted},
    "legacy": {Removed, Tombstoned, Retracted},
    "swa_chunk": {Reclaimed},
}
"""What has to happen in a crowd on each route; without a tree there is less to fight for."""

WINDOWED = [name for name, traits in TRAITS.items() if traits.windowed]


@pytest.mark.parametrize("route", WINDOWED)
@pytest.mark.parametrize("crowd", CROWDS, ids=lambda crowd: f"page-{crowd.page_size}")
def test_a_crowded_warm_run_says_what_a_quiet_cold_one_says(
    tiny: Checkpoint, tmp_path: Path, said: Callable[[Crowd], list[list[int]]], crowd: Crowd, route: RouteName
) -> None:
    """On every route that serves a model with windows; one without a tree has nothing to find."""
    run, requests = tmp_path / "run", crowd.requests()
    crowded = Setup(
        crowd.page_size, crowd.full_pages, crowd.swa_pages, chunk_tokens=crowd.chunk, running=6, route=route
    )
    report, warm = serve(tiny, crowded, Recording(run), requests)
    assert [result.output_ids for result in warm[::2]] == said(crowd)

    assert (report.cached_tokens > 0) == TRAITS[route].tree
    assert len({token for result in warm for token in result.output_ids}) >= 10
    happened = {type(event) for frame in JournalReader(run, Rank(0)).frames() for event in frame.events}
    assert happened >= PRESSED[route]
    verdict = verify_rank(run, Rank(0))
    assert verdict.clean, verdict.findings
