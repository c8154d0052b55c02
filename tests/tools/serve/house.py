"""A server for tests: real caches, real schedulers, a journal in a list, and the fake device.

Every run through it ends with the same questions, asked of each rank: does the journal fold to the state that was
served from, without a finding, and does every law of the state hold.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from radixledger.cache.config import key_stride
from radixledger.cache.digest import digest, recount
from radixledger.cache.evolve import begin, evolve
from radixledger.cache.laws.invariants import broken_laws
from radixledger.cache.traits import TRAITS
from radixledger.journal.accounts import FREE, Kind
from radixledger.journal.events import AnyEvent, Config, Opened
from radixledger.journal.units import Rank, TokenCount
from radixledger.tools.serve.capacity import Capacity
from radixledger.tools.serve.engine import Engine, Outcome, RankServer, StepRunner, VirtualClock
from radixledger.tools.serve.requests import Request, Result
from radixledger.tools.serve.scheduler import Job, Policy, Scheduler
from radixledger.tools.serve.served_rank import ServedRank

from .fake_runner import VOCAB, FakeRunner

E = TypeVar("E", bound=AnyEvent)
RunnerOf = Callable[[Config, ServedRank], StepRunner]


class ListJournal:
    """A journal that remembers everything, and when it was told to be safe."""

    def __init__(self, opened: Opened) -> None:
        self.opened = opened
        self.events: list[AnyEvent] = []
        self.safe = 0
        """How many events were safe when the last step began or the last output left."""

    def append(self, event: AnyEvent, /) -> None:
        self.events.append(event)

    def end_command(self) -> None:
        pass

    def end_step(self, step: int) -> None:
        self.safe = len(self.events)

    def close(self) -> None:
        self.end_step(0)

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]


class House:
    """An engine of `ranks` equal ranks on one route; the sizes of SWA are 0 on a route without a window.

    `config`: what else a rank is built with, as `Config` calls it.
    """

    def __init__(
        self,
        *,
        page_size: int = 4,
        full_pages: int = 64,
        swa_pages: int = 64,
        window_tokens: int = 8,
        context_pages: int = 256,
        ranks: int = 1,
        chunk_tokens: int = 16,
        running: int = 4,
        eos_ids: frozenset[int] = frozenset(),
        force_miss: bool = False,
        route: str = "unified",
        runner_of: RunnerOf | None = None,
        **config: Any,
    ) -> None:
        self.route = route
        if not TRAITS[route].windowed:
            swa_pages = window_tokens = 0
        self.config = Config(
            page_size=page_size,
            full_pages=full_pages,
            swa_pages=swa_pages,
            window_tokens=window_tokens,
            rows=1 << (running - 1).bit_length(),
            context_pages=context_pages,
            **config,
        )
        self.policy = Policy(page_size, chunk_tokens, running, eos_ids, force_miss)
        self.journals = [ListJournal(self._opened(rank, ranks)) for rank in range(ranks)]
        self.caches = [ServedRank(journal.opened, journal) for journal in self.journals]
        servers = [
            RankServer(cache, Scheduler(cache, self.policy), (runner_of or fake_runner)(self.config, cache))
            for cache in self.caches
        ]
        tokens, frees = context_pages * page_size, self.config.free_out_of_window
        capacity = Capacity(page_size, full_pages, swa_pages, window_tokens, tokens, frees)
        self.engine = Engine(servers, capacity, VirtualClock())

    def _opened(self, rank: int, ranks: int) -> Opened:
        need = TokenCount(self.config.window_tokens)
        return Opened(
            "test", Rank(rank), ranks, 0, self.route, self.config, need, key_stride(self.config), "plain"
        )

    def serve(self, *requests: Request) -> list[Result]:
        """Serve, check every rank, and give the results in the order of the requests."""
        found: dict[int, Result] = {}
        for outcome in self.engine.serve(list(enumerate(requests))):
            self.note(outcome, found)
        self.check()
        return [found[place] for place in range(len(requests))]

    def note(self, outcome: Outcome, found: dict[int, Result]) -> None:
        assert outcome.place not in found, "one result per request"
        found[outcome.place] = outcome.result

    def check(self) -> None:
        """The journals tell what was done, all of it and nothing else."""
        for cache, journal in zip(self.caches, self.journals, strict=True):
            state = begin(journal.opened)
            for event in journal.events:
                evolve(state, event)
            assert state.findings == []
            assert digest(state) == cache.digest() == recount(cache.state)
            assert list(broken_laws(cache.state)) == []

    def check_idle(self) -> None:
        """Nobody is here: every page is free or the tree's, and nothing is locked."""
        self.check()
        assert all(server.scheduler.load == (0, 0) for server in self.engine.ranks)
        for cache in self.caches:
            state = cache.state
            assert not state.requests
            assert state.full_protected == state.swa_protected == 0
            assert state.full.available + state.full_evictable == self.config.full_pages
            assert state.swa.available + state.swa_evictable == self.config.swa_pages


class Desk:
    """One rank, step by step: `tick` until something is to be looked at."""

    def __init__(self, **sizes: int | str) -> None:
        self.house = House(**sizes)  # type: ignore[arg-type]
        self.state = self.house.caches[0].state
        self.scheduler = self.house.engine.ranks[0].scheduler

    def submit(self, rid: str, prompt: list[int], count: int = 4) -> Job:
        self.house.engine.submit(0, ask(rid, prompt, count))
        return next(job for job in self.scheduler.waiting if job.request.rid == rid)

    def tick(self, count: int = 1) -> None:
        for _ in range(count):
            self.house.engine.step()

    def accounts(self) -> tuple[int, int, int]:
        """FULL pages that are free, the tree's, and requests'."""
        held = self.state.full.held
        return held[Kind.FREE], held[Kind.TREE], held[Kind.REQUEST]


def fake_runner(config: Config, cache: ServedRank) -> FakeRunner:
    """A fake device that spoils what the books of `cache` say is nobody's."""

    def free_pages() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        books = cache.state.full, cache.state.swa
        full, swa = (np.flatnonzero(book.account == FREE) for book in books)
        return full, swa

    return FakeRunner(
        page_size=config.page_size,
        full_pages=config.full_pages,
        swa_pages=config.swa_pages,
        window_tokens=config.window_tokens,
        free_pages=free_pages,
    )


def prompt_of(seed: int, count: int) -> list[int]:
    """Token ids that look like nothing in particular."""
    ids: list[int] = np.random.default_rng(seed).integers(0, VOCAB, count).tolist()
    return ids


def ask(
    rid: str,
    prompt: Sequence[int],
    count: int = 4,
    *,
    at: int = 0,
    rank: int | None = None,
    abort_after: int | None = None,
    abort_at: int | None = None,
    extra_key: str | None = None,
) -> Request:
    """A request whose prompt is `prompt` and that wants `count` tokens."""
    return Request(
        rid,
        list(prompt),
        count,
        arrival_ms=at,
        dp_rank=rank,
        abort_after=abort_after,
        abort_at_ms=abort_at,
        extra_key=extra_key,
    )
