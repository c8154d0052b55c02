"""The loop that serves: arrivals, steps of all ranks, results. Time here is virtual, and nothing sleeps.

A step takes one millisecond on every rank at once, so ranks align by step; an engine that has nothing to do jumps to
the next arrival. Each rank has a cache, a scheduler and a runner of its own, and shares nothing (A29).

Rule: the journal is safe before a step is dispatched and before a result leaves; the device never runs ahead of
what a reader of the journal can know.
"""

from bisect import bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from radixledger.tools.serve.batch import Span
from radixledger.tools.serve.capacity import Capacity, why_never
from radixledger.tools.serve.requests import Request, Result, refused
from radixledger.tools.serve.scheduler import Job, Scheduler, Work
from radixledger.tools.serve.served_rank import Served

Ints = NDArray[np.int32]

STEP_MS = 1
_NS = 1_000_000


class StepRunner(Protocol):
    """What computes: K and V of every span's tokens are written through the page tables, the next ids come back."""

    def step(self, spans: Sequence[Span], full_table: Ints, swa_table: Ints, /) -> Ints:
        """The next id after each span's last token, int32 [spans]."""


class VirtualClock:
    """Milliseconds since the run began; journals are stamped with it in nanoseconds."""

    def __init__(self) -> None:
        self.now_ms = 0

    def __call__(self) -> int:
        """Now, in nanoseconds."""
        return self.now_ms * _NS


class RankServer(NamedTuple):
    """One rank: its cache, its queue, its device."""

    cache: Served
    scheduler: Scheduler
    runner: StepRunner


class Outcome(NamedTuple):
    """One request's end: its place among the requests of the run, its result, and the virtual time it has then."""

    place: int
    result: Result
    at_ms: int


Placed = tuple[int, Request]
Then = Callable[[Outcome], Iterable[Placed]]


def nothing(_outcome: Outcome) -> Iterable[Placed]:
    """No outcome leads to anything."""
    return ()


class Engine:
    """Serves requests on one or more ranks; `steps` and `retractions` count those so far."""

    def __init__(self, ranks: Sequence[RankServer], capacity: Capacity, clock: VirtualClock) -> None:
        self.ranks = ranks
        self.capacity = capacity
        self.clock = clock
        self.steps = 0
        self.retractions = 0
        self._live: dict[str, Job] = {}
        self._cancelled: deque[str] = deque()
        """Ids that somebody wants ended; whoever asks only appends, from whatever thread."""
        self._ends: list[tuple[int, int, Job]] = []
        """Live requests that are to be aborted at a time: (ms, place, request), the earliest first."""
        self._last_steps = [0] * len(ranks)
        """The last step of each rank."""

    def serve(self, requests: Iterable[Placed], then: Then = nothing) -> Iterator[Outcome]:
        """Serve `(place, request)` pairs, each when its time has come; outcomes in the order in which they happen.

        then: what an outcome leads to, the next turn of a conversation for example; asked once for each.
        """
        due = sorted(requests, key=_due)
        while due or self._live:
            if not self._live:
                self.clock.now_ms = max(self.clock.now_ms, due[0][1].arrival_ms)
            for outcome in [*self._let_in(due), *(self.step() if self._live else ())]:
                for placed in then(outcome):
                    insort(due, placed, key=_due)
                yield outcome

    def _let_in(self, due: list[Placed]) -> list[Outcome]:
        """Submit whose time has come; the outcomes of those that ended with it."""
        arrived = bisect_right(due, self.clock.now_ms, key=lambda placed: placed[1].arrival_ms)
        outcomes = [self.submit(*placed) for placed in due[:arrived]]
        del due[:arrived]
        return [outcome for outcome in outcomes if outcome is not None]

    def submit(self, place: int, request: Request) -> Outcome | None:
        """Let a request in; its outcome at once if it is turned away, or to be aborted before it begins.

        An id is free again as soon as the request that had it has ended (B31).
        """
        rank, never = self._rank_for(request), self._why_not(request)
        if never is not None:
            return Outcome(place, refused(request, never, dp_rank=rank), self.clock.now_ms)
        assert rank is not None, "who asks for a rank that is not there is turned away"
        job = Job(request, place=place, rank=rank)
        self._live[request.rid] = job
        if request.abort_at_ms is not None:
            insort(self._ends, (request.abort_at_ms, place, job), key=itemgetter(0, 1))
        self.ranks[rank].scheduler.submit(job)
        return self.abort(request.rid) if request.abort_after == 0 else None

    def _why_not(self, request: Request) -> str | None:
        """Why a request is turned away at the door, with the numbers; None if it is not."""
        if request.rid in self._live:
            return f"request id {request.rid!r} is live already; it may be used again when that request has ended"
        if self._rank_for(request) is None:
            return f"dp_rank {request.dp_rank} is no rank of this server; it has 0 to {len(self.ranks) - 1}"
        return why_never(request, self.capacity)

    def cancel(self, rid: str) -> None:
        """Ask for a request to be aborted before the next step; the one call that any thread may make (B137).

        Nothing is done here: pages are given back on the thread that steps. An id that nobody has by then is no error.
        """
        self._cancelled.append(rid)

    def abort(self, rid: str) -> Outcome | None:
        """End a request early, wherever it stands; None if no live request has this id, which is no error (B31)."""
        job = self._live.get(rid)
        if job is None:
            return None
        server = self.ranks[job.rank]
        server.scheduler.abort(job)
        server.cache.commit(self.steps)
        return self._ended(job)

    def step(self) -> list[Outcome]:
        """End what is to be aborted by now, then one step of every rank that has something to do."""
        aborted = self._abort_due()
        if not self._live:
            return aborted
        self.steps += 1
        ended = [job for rank in range(len(self.ranks)) for job in self._step_rank(rank)]
        self.clock.now_ms += STEP_MS
        return [*aborted, *(self._ended(job) for job in ended)]

    def _abort_due(self) -> list[Outcome]:
        """Abort whom somebody cancelled, and whose time has come; those that have ended are passed over."""
        rids = [self._cancelled.popleft() for _ in range(len(self._cancelled))]
        while self._ends and self._ends[0][0] <= self.clock.now_ms:
            job = self._ends.pop(0)[2]
            if self._live.get(job.request.rid) is job:
                rids.append(job.request.rid)
        return [outcome for rid in rids if (outcome := self.abort(rid)) is not None]

    def _step_rank(self, rank: int) -> list[Job]:
        server = self.ranks[rank]
        if not server.scheduler.busy:
            return []
        if self._last_steps[rank] < self.steps - 1:
            # It was idle while others stepped; its journal takes the number up, so that ranks align.
            server.cache.commit(self.steps - 1)
        self._last_steps[rank] = self.steps
        works = server.scheduler.plan()
        next_ids = self._compute(server, works)
        ended = server.scheduler.settle(works, next_ids)
        if ended:
            server.cache.commit(self.steps)
        return ended

    def _compute(self, server: RankServer, works: Sequence[Work]) -> Ints:
        cache = server.cache
        requests = np.array([work.job.id for work in works], np.int64)
        starts = np.array([work.start for work in works], np.int32)
        stops = np.array([work.stop for work in works], np.int32)
        spans = [Span(work.job.row, work.start, work.job.tokens[work.start : work.stop]) for work in works]
        cache.step_began(self.steps, requests, starts, stops)
        next_ids = server.runner.step(spans, cache.full_table, cache.swa_table)
        cache.step_ended(self.steps)
        return next_ids

    def _rank_for(self, request: Request) -> int | None:
        """The rank that was asked for, None if there is none such; else the least loaded, the lowest of equals."""
        if request.dp_rank is not None:
            return request.dp_rank if 0 <= request.dp_rank < len(self.ranks) else None
        return min(range(len(self.ranks)), key=lambda rank: self.ranks[rank].scheduler.load)

    def _ended(self, job: Job) -> Outcome:
        del self._live[job.request.rid]
        self.retractions += job.retractions
        return Outcome(job.place, job.result(), self.clock.now_ms)


def _due(placed: Placed) -> tuple[int, int]:
    return placed[1].arrival_ms, placed[0]
