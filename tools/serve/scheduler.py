"""What one rank computes next: continuous batching over whatever answers the calls of `Served`.

A step holds one token of every request that is decoding, and chunks of prompts up to a number of tokens. Requests
have a seniority, their order of arrival, and nothing but seniority decides who goes first, who waits and who yields.
When the pools run short, the tree gives way first, then the youngest running request: it hands everything
back, keeps its output, and is admitted again with prompt and output as its prompt.

Why this cannot hang: the eldest never yields to anybody. If it is alone and still does not fit, it was its own matched
prefix that stood in the way, so it goes on frugally: it matches nothing and caches nothing, holds its window and
no more, and whatever fits a rank at all fits then (`capacity` turns the others away at the door). "The batch is full" is never
remembered: it is found out anew in every step.

Rule: it asks for room and for growth; what may be freed is decided behind those calls (R4, R16).
"""

from bisect import insort
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from radixledger.cache.keys import namespace
from radixledger.cache.window import pages_for
from radixledger.journal.units import UNBOUND
from radixledger.tools.serve.requests import FinishReason, Request, Result
from radixledger.tools.serve.served_rank import Served

Ints = NDArray[np.int32]


class Policy(NamedTuple):
    """How a rank is served; the same for all ranks of a server."""

    page_size: int
    chunk_tokens: int
    """Prompt tokens that one step computes at most, over all requests."""
    running: int
    """Requests that run at once at most."""
    eos_ids: frozenset[int]
    force_miss: bool = False
    """Every match returns nothing and nothing is cached; the cache works as ever."""


class Job:
    """One request being served. `tokens[:known]` are its prompt and what came out, `computed` of them have K and V."""

    __slots__ = ("cached_tokens", "computed", "decoding", "finish_reason", "frugal", "id", "known", "namespace", "place",
                 "rank", "request", "retractions", "row", "tokens")  # fmt: skip

    def __init__(self, request: Request, *, place: int, rank: int) -> None:
        self.request = request
        self.place = place
        """Where it stands among the requests of the run."""
        self.rank = rank
        self.namespace = namespace(extra_key=request.extra_key)
        self.tokens: Ints = np.zeros(len(request.input_ids) + request.max_new_tokens, np.int32)
        self.tokens[: len(request.input_ids)] = request.input_ids
        self.known = len(request.input_ids)
        self.id: int = UNBOUND
        self.row = 0
        self.computed = 0
        self.decoding = False
        self.frugal = False
        self.cached_tokens: int | None = None
        self.retractions = 0
        self.finish_reason: FinishReason | None = None

    @property
    def seniority(self) -> tuple[int, int]:
        """Who came first; a request that was retracted keeps it."""
        return self.request.arrival_ms, self.place

    @property
    def output_ids(self) -> list[int]:
        """What came out so far."""
        ids: list[int] = self.tokens[len(self.request.input_ids) : self.known].tolist()
        return ids

    @property
    def outputs(self) -> int:
        """How many tokens came out so far."""
        return self.known - len(self.request.input_ids)

    def result(self) -> Result:
        """What is told about it once it has ended."""
        assert self.finish_reason is not None, "a request is told about when it has ended"
        return Result(
            rid=self.request.rid,
            output_ids=self.output_ids,
            finish_reason=self.finish_reason,
            cached_tokens=self.cached_tokens or 0,
            prompt_tokens=len(self.request.input_ids),
            dp_rank=self.rank,
        )


class Work(NamedTuple):
    """A part of a step: K and V of tokens [start, stop) of one request."""

    job: Job
    start: int
    stop: int


class Scheduler:
    """The queue and the running requests of one rank."""

    def __init__(self, cache: Served, policy: Policy) -> None:
        self.cache = cache
        self.policy = policy
        self.waiting: list[Job] = []
        self.running: list[Job] = []
        """Both by seniority."""
        self._promised = 0

    @property
    def busy(self) -> bool:
        """Whether anybody is here."""
        return bool(self.waiting or self.running)

    @property
    def load(self) -> tuple[int, int]:
        """How busy the rank is: requests, then the tokens they come to at most."""
        return len(self.waiting) + len(self.running), self._promised

    def submit(self, job: Job) -> None:
        """Let a request wait for its turn."""
        self._promised += job.request.kv_tokens
        insort(self.waiting, job, key=_seniority)

    def abort(self, job: Job) -> None:
        """End a request wherever it stands: waiting, between chunks, while it decodes."""
        if job in self.running:
            self.cache.abort(job.id)
            self.running.remove(job)
        else:
            self.waiting.remove(job)
        self._promised -= job.request.kv_tokens
        job.finish_reason = "abort"

    # -- before the step -------------------------------------------------------------------------------------

    def plan(self) -> list[Work]:
        """The next step, its pages taken; empty only when nobody is here."""
        self._reclaim()
        works = [*self._grow_decodes(), *self._grow_prompts()]
        while self.running and not works:
            self._make_way()
            works = self._grow_prompts()
        return works

    def _reclaim(self) -> None:
        if self.running:
            self.cache.reclaim_batch(_ids(self.running))

    def _grow_decodes(self) -> list[Work]:
        """One token for everybody who decodes; the youngest running yield until it fits."""
        while jobs := [job for job in self.running if job.decoding]:
            if self._have(sum(self._pages_to(job, job.known) for job in jobs)):
                self.cache.decode(_ids(jobs))
                return [Work(job, job.computed, job.known) for job in jobs]
            self._make_way()
        return []

    def _grow_prompts(self) -> list[Work]:
        """Chunks of prompts, the eldest first: of those that run, then of those that can begin."""
        works: list[Work] = []
        for job in [job for job in self.running if not job.decoding]:
            self._add_chunk(works, job)
        while self._tokens_left(works) and self._can_begin(works):
            job = self.waiting.pop(0)
            self._admit(job)
            self._add_chunk(works, job)
        if works:
            grown = np.array([work.stop - work.start for work in works], np.int32)
            self.cache.extend(_ids([work.job for work in works]), grown)
        return works

    def _add_chunk(self, works: list[Work], job: Job) -> None:
        """As much of a prompt as the step's tokens and the pools allow; perhaps nothing."""
        planned, room = self._pages_of(works), self.cache.room()
        spare = min(room.full, room.swa) - planned
        page_size = self.policy.page_size
        fitting = (pages_for(job.computed, page_size) + spare) * page_size - job.computed
        tokens = min(job.known - job.computed, self._tokens_left(works), fitting)
        if tokens > 0 and self._have(planned + self._pages_to(job, job.computed + tokens)):
            works.append(Work(job, job.computed, job.computed + tokens))

    def _can_begin(self, works: Sequence[Work]) -> bool:
        """Whether the eldest that waits should be admitted: its prompt fits beside what the running still need."""
        if not self.waiting or len(self.running) >= self.policy.running:
            return False
        if not self.running:
            return True
        job, page_size = self.waiting[0], self.policy.page_size
        room, missing = self.cache.room(), int(pages_for(job.known, page_size))
        if not self._misses(job):
            hit = self.cache.peek(self._key(job, job.known - 1), job.namespace)
            room, missing = room.less(self.cache.claim(hit)), missing - hit.tokens // page_size
        owed = sum(self._pages_to(other, other.known) or 1 for other in self.running)
        in_step = pages_for(self.policy.chunk_tokens, page_size) + 1
        swa_owed = self._pages_of(works) + sum(job.decoding for job in self.running)
        return missing + 1 <= room.full - owed and min(missing + 1, in_step) <= room.swa - swa_owed

    def _admit(self, job: Job) -> None:
        """Give a request its row; what it finds in the cache need not be computed."""
        admission = self.cache.admit(
            job.request.rid, self._key(job, job.known), job.known, job.namespace,
            force_miss=self._misses(job), priority=job.request.priority,
        )  # fmt: skip
        job.id, job.row, job.computed = admission.request, admission.row, admission.hit.tokens
        if job.cached_tokens is None:
            job.cached_tokens = admission.hit.tokens
        insort(self.running, job, key=_seniority)

    def _make_way(self) -> None:
        """The youngest running request yields; one that is alone goes on frugally."""
        job = self.running.pop()
        assert self.running or not job.frugal, "what fits a rank fits it alone and frugally"
        self.cache.retract(job.id)
        job.frugal = job.frugal or not self.running
        job.id, job.computed, job.decoding = UNBOUND, 0, False
        job.retractions += 1
        insort(self.waiting, job, key=_seniority)

    def _have(self, pages: int) -> bool:
        """Whether `pages` of each pool are free now; the tree gives up what is missing, of each pool its own (B112)."""
        room = self.cache.room()
        if pages > room.full or pages > room.swa:
            return False
        full, swa = max(0, pages - room.full_free), max(0, pages - room.swa_free)
        if full or swa:
            self.cache.evict(full, swa)
        return True

    def _key(self, job: Job, tokens: int) -> bytes:
        """The key of a request's first tokens, made by the cache that it is for."""
        return self.cache.key_of(job.tokens[:tokens])

    def _misses(self, job: Job) -> bool:
        return self.policy.force_miss or job.frugal

    def _tokens_left(self, works: Sequence[Work]) -> int:
        return self.policy.chunk_tokens - sum(work.stop - work.start for work in works)

    def _pages_of(self, works: Sequence[Work]) -> int:
        return sum(self._pages_to(work.job, work.stop) for work in works)

    def _pages_to(self, job: Job, tokens: int) -> int:
        """Pages that a running request takes to grow to `tokens` tokens."""
        return pages_for(tokens, self.policy.page_size) - pages_for(job.computed, self.policy.page_size)

    # -- after the step --------------------------------------------------------------------------------------

    def settle(self, works: Sequence[Work], next_ids: Ints) -> list[Job]:
        """Take the results of a step in; returns the requests that ended with it."""
        for work, next_id in zip(works, next_ids.tolist(), strict=True):
            job, prompt = work.job, not work.job.decoding
            job.computed = work.stop
            if job.computed == job.known:
                self._take(job, next_id)
            if prompt and job.finish_reason is None and not self._misses(job):
                self.cache.cache_unfinished(job.id, self._key(job, job.computed))
        ended = [work.job for work in works if work.job.finish_reason is not None]
        if ended:
            self._promised -= sum(job.request.kv_tokens for job in ended)
            self.running = [job for job in self.running if job.finish_reason is None]
        return ended

    def _take(self, job: Job, token: int) -> None:
        """One token more; perhaps the last."""
        request = job.request
        job.tokens[job.known] = token
        job.known += 1
        job.decoding = True
        if token in self.policy.eos_ids and not request.ignore_eos:
            job.finish_reason = "stop"
        elif job.outputs == request.max_new_tokens:
            job.finish_reason = "length"
        elif job.outputs == request.abort_after:
            job.finish_reason = "abort"
        if job.finish_reason == "abort":
            self.cache.abort(job.id)
        elif job.finish_reason is not None:
            self.cache.finish(job.id, None if self._misses(job) else self._key(job, job.computed))


def _seniority(job: Job) -> tuple[int, int]:
    return job.seniority


def _ids(jobs: Sequence[Job]) -> NDArray[np.int64]:
    return np.array([job.id for job in jobs], np.int64)
