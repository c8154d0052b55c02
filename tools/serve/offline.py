"""An offline run from end to end: request lines in, result lines out, journals beside them, a report at the end.

Results are handed on in the order of the requests, each as soon as those before it are. Rule: a run that ends well
closes its journals with a last ledger; one that does not leaves them as they are, and they tell how far it came.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from jax.errors import JaxRuntimeError
from msgspec import Struct

from radixledger.cache.config import checked, key_stride
from radixledger.cache.faces.routing import RouteName
from radixledger.cache.sizing import swa_pages_for
from radixledger.cache.traits import TRAITS
from radixledger.cache.window import pages_for
from radixledger.journal.events import Config, Opened
from radixledger.journal.folder import listing, rank_folder
from radixledger.journal.sizes import check_memory
from radixledger.journal.units import Rank, TokenCount
from radixledger.tools.opening import Recording, open_rank
from radixledger.tools.policy_options import Policies
from radixledger.tools.serve.attention import strip_tokens
from radixledger.tools.serve.capacity import Capacity
from radixledger.tools.serve.engine import (
    Engine,
    Outcome,
    RankServer,
    StepRunner,
    Then,
    VirtualClock,
    nothing,
)
from radixledger.tools.serve.loader import Checkpoint
from radixledger.tools.serve.requests import BadLine, Request, Result, refused
from radixledger.tools.serve.runner import Runner
from radixledger.tools.serve.scheduler import Policy, Scheduler
from radixledger.tools.serve.served_rank import ServedRank
from radixledger.tools.serve.spec import ModelSpec

Line = Request | BadLine

DEFAULT_FULL_TOKENS = 1 << 16
"""Tokens of a rank's FULL pool where nobody says otherwise."""

KEPT_PREFIXES = 4
"""For each request that may run, so many prefixes keep their window in an SWA pool of the default size."""


class NotServable(ValueError):
    """The model and the setup do not go together; the message says what would do."""


class Setup(NamedTuple):
    """How a server is built. Sizes are those of one rank; None stands for what fits the model and the requests.

    route: as `cache.faces.routing.route_of` said; one with a window for a model that has one.
    """

    page_size: int = 16
    full_pages: int | None = None
    swa_pages: int | None = None
    ranks: int = 1
    chunk_tokens: int = 256
    running: int = 32
    context_tokens: int | None = None
    force_miss: bool = False
    route: RouteName = "unified"
    key_mode: str = "raw"
    free_out_of_window: bool = True
    policies: Policies = Policies()


class Sizes(NamedTuple):
    """What a setup comes to: the cache of one rank, and the longest sequence."""

    config: Config
    context_tokens: int


class Serving(NamedTuple):
    """A server that is up; `caches` are those of its ranks."""

    engine: Engine
    caches: Sequence[ServedRank]


class Report(Struct, frozen=True, kw_only=True):
    """What a run did. Tokens and pages are summed over the ranks; `serve_s` is seconds of the host."""

    route: str
    requests: int
    finish_reasons: dict[str, int]
    prompt_tokens: int
    """Of the requests that were served, as `cached_tokens`."""
    cached_tokens: int
    output_tokens: int
    steps: int
    full_pages_evicted: int
    swa_pages_released: int
    """Evicted from the tree, or out of their request's window."""
    tombstones: int
    heals: int
    retractions: int
    journal_events: int
    journal_bytes: int
    serve_s: float

    @property
    def hit_rate(self) -> float:
        """The share of prompt tokens that were not computed again."""
        return self.cached_tokens / self.prompt_tokens if self.prompt_tokens else 0.0

    @property
    def bytes_per_million_requests(self) -> int | None:
        """What a million requests like these would write; None where nothing was journaled."""
        if not self.journal_bytes or not self.requests:
            return None
        return round(self.journal_bytes / self.requests * 1_000_000)


def sizes_of(setup: Setup, spec: ModelSpec, lines: Sequence[Line]) -> Sizes:
    """The sizes of one rank for these requests. Raises NotServable if model, route and page do not go together, BadConfig.

    A sequence may be as long as the model allows; without a limit of its own, the page tables are as wide as a power
    of two that holds the longest request.
    """
    window = spec.window_tokens or 0
    if TRAITS[setup.route].windowed != bool(window):
        slides = f"a window of {window} tokens" if window else "no layer that slides"
        raise NotServable(f"this model has {slides}; route {setup.route!r} is for others")
    page_size, limit = setup.page_size, min(setup.context_tokens or spec.context_tokens, spec.context_tokens)
    full = setup.full_pages or max(1, DEFAULT_FULL_TOKENS // page_size)
    swa = setup.swa_pages or (_swa_pages(setup, window) if window else 0)
    wide = min(limit, full * page_size)
    if setup.context_tokens is None:
        longest = max(
            (line.kv_tokens for line in lines if isinstance(line, Request) and line.kv_tokens <= wide),
            default=1,
        )
        wide = min(wide, 1 << (longest - 1).bit_length())
    config = Config(
        page_size=page_size,
        full_pages=full,
        swa_pages=swa,
        window_tokens=window,
        rows=1 << (setup.running - 1).bit_length(),
        context_pages=pages_for(wide, page_size),
        key_mode=setup.key_mode,
        free_out_of_window=setup.free_out_of_window,
    )
    config = setup.policies.put_into(config)
    need = TokenCount(config.window_tokens)
    check_memory(
        checked(Opened("", Rank(0), setup.ranks, 0, setup.route, config, need, key_stride(config), "plain"))
    )
    try:
        strip_tokens(page_size)
    except ValueError as error:
        raise NotServable(f"{error}: give another --page-size") from error
    return Sizes(config, limit)


def _swa_pages(setup: Setup, window: int) -> int:
    """The sizing rule's number of SWA pages; without a tree no prefix is kept."""
    return swa_pages_for(
        window_tokens=window,
        page_size=setup.page_size,
        running=setup.running,
        chunk_tokens=setup.chunk_tokens,
        kept_prefixes=KEPT_PREFIXES * setup.running * TRAITS[setup.route].tree,
    )


def make_runner(setup: Setup, config: Config, model: Checkpoint) -> StepRunner:
    """The device of one rank, compiled. Raises NotServable for sizes that it does not have, or attention does not read."""
    try:
        runner = Runner(
            model.spec,
            model.params,
            page_size=config.page_size,
            full_pages=config.full_pages,
            swa_pages=config.swa_pages,
            context_pages=config.context_pages,
            max_spans=setup.running,
            # Every token of a step has a FULL slot of its own: no larger chunk could ever be filled.
            max_tokens=min(setup.chunk_tokens + setup.running, config.full_pages * config.page_size),
        )
        runner.compile()
    except ValueError as error:
        raise NotServable(str(error)) from error
    except JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        raise NotServable(
            f"the device has no room for pools of {config.full_pages} FULL and {config.swa_pages} SWA pages; "
            f"fewer --full-pages and --swa-pages would do ({error})"
        ) from error
    return runner


@contextmanager
def open_server(
    setup: Setup, sizes: Sizes, eos_ids: Sequence[int], recording: Recording, runners: Sequence[StepRunner]
) -> Iterator[Serving]:
    """A server with a rank for each of `runners`; its journals are closed at the end, after a ledger if it is a good one.

    Raises BadConfig, and what `open_rank` raises for a journal that cannot be begun.
    """
    config, clock = sizes.config, VirtualClock()
    policy = Policy(setup.page_size, setup.chunk_tokens, setup.running, frozenset(eos_ids), setup.force_miss)
    capacity = Capacity(
        config.page_size, config.full_pages, config.swa_pages, config.window_tokens, sizes.context_tokens,
        config.free_out_of_window,
    )  # fmt: skip
    with ExitStack() as journals:
        caches: list[ServedRank] = []
        for rank in range(len(runners)):
            cache = open_rank(
                ServedRank, config, recording, route=setup.route, rank=rank, ranks=len(runners), clock=clock
            )
            caches.append(cache)
            if cache.journal is not None:
                journals.callback(cache.journal.close)
        servers = [
            RankServer(cache, Scheduler(cache, policy), runner)
            for cache, runner in zip(caches, runners, strict=True)
        ]
        yield Serving(Engine(servers, capacity, clock), caches)
        for cache in caches:
            cache.record_ledger("end")
            cache.close("served")


def serve_lines(
    setup: Setup,
    sizes: Sizes,
    eos_ids: Sequence[int],
    recording: Recording,
    runners: Sequence[StepRunner],
    lines: Sequence[Line],
    write: Callable[[Result], None],
    then: Then = nothing,
) -> Report:
    """Serve every line and hand its result to `write`, in the order of the places; `then` as in `Engine.serve`.

    Raises as `open_server`.
    """
    begun, bytes_before = time.monotonic(), journal_bytes(recording, len(runners))
    results: list[Result] = []
    with open_server(setup, sizes, eos_ids, recording, runners) as (engine, caches):
        before = [cache.state.seq - 1 for cache in caches]  # the epoch's `Opened` is an event of this run
        for result in in_order(_outcomes(engine, lines, then)):
            results.append(result)
            write(result)
    events = sum(cache.state.seq - seq for cache, seq in zip(caches, before, strict=True))
    totals = [cache.state.totals for cache in caches]
    served = [result for result in results if result.finish_reason != "refused"]
    written = journal_bytes(recording, len(runners)) - bytes_before
    return Report(
        route=setup.route,
        requests=len(results),
        finish_reasons=dict(Counter(result.finish_reason for result in results)),
        prompt_tokens=sum(result.prompt_tokens for result in served),
        cached_tokens=sum(result.cached_tokens for result in served),
        output_tokens=sum(len(result.output_ids) for result in served),
        steps=engine.steps,
        full_pages_evicted=sum(total.full_evicted for total in totals),
        swa_pages_released=sum(total.swa_evicted for total in totals),
        tombstones=sum(total.tombstones for total in totals),
        heals=sum(total.healed for total in totals),
        retractions=engine.retractions,
        journal_events=events if written else 0,
        journal_bytes=written,
        serve_s=time.monotonic() - begun,
    )


def in_order(outcomes: Iterator[Outcome]) -> Iterator[Result]:
    """The results of `outcomes` in the order of their places 0, 1, 2, ..., each as soon as all before it are there."""
    early: dict[int, Result] = {}
    place = 0
    for outcome in outcomes:
        early[outcome.place] = outcome.result
        while place in early:
            yield early.pop(place)
            place += 1
    assert not early, "every place has an outcome"


def _outcomes(engine: Engine, lines: Sequence[Line], then: Then) -> Iterator[Outcome]:
    """What becomes of every line; bad ones first, for there is nothing to wait for."""
    for place, line in enumerate(lines):
        if isinstance(line, BadLine):
            yield Outcome(place, refused(line, str(line)), 0)
    requests = [(place, line) for place, line in enumerate(lines) if isinstance(line, Request)]
    yield from engine.serve(requests, then)


def journal_bytes(recording: Recording, ranks: int) -> int:
    """What the journals of a run take on disk; 0 where there are none."""
    if recording.run is None:
        return 0
    folders = [rank_folder(recording.run, Rank(rank)) for rank in range(ranks)]
    return sum(segment.path.stat().st_size for folder in folders for segment in listing(folder).segments)
