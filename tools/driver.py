"""Drive one rank's cache with a stream of requests and no model: match, admit, chunks, decode, finish.

The schedule of a server with chunked prefill: a prefill step, requests in order, goes before a decode step of all
running requests; a request that does not fit waits, and when the pools are short the youngest is retracted. One that is
alone then is blocked by the prefix that it found itself, so it goes on frugally, without the cache. Sampled
tokens are numbers that occur nowhere else. Rule: it calls what a server calls and reads no more than a server reads.
"""

from collections import deque

import numpy as np
from numpy.typing import NDArray

from radixledger.cache.rank import RankCache
from radixledger.cache.refusals import PoolShort
from radixledger.cache.window import pages_for
from radixledger.journal.units import RequestId
from radixledger.tools.streams import Job, Stream


class _Live:
    """An admitted job: its key, and how far it is."""

    __slots__ = ("computed", "job", "key", "request", "sampled")

    def __init__(self, job: Job, key: bytes, request: RequestId, computed: int) -> None:
        self.job = job
        self.key = key
        self.request = request
        self.computed = computed
        self.sampled = 0


class StepClock:
    """Virtual time for a journal: a step takes one millisecond, nothing else takes any."""

    def __init__(self) -> None:
        self.steps = 0

    def __call__(self) -> int:
        """Nanoseconds since the drive began."""
        return self.steps * 1_000_000


class Counts:
    """What one drive saw, in tokens and requests; the rest is a question to the state or the journal."""

    def __init__(self) -> None:
        self.admitted = 0
        self.finished = 0
        self.refused = 0
        self.retracted = 0
        self.prompt_tokens = 0
        self.hit_tokens = 0
        self.full_hit_tokens = 0
        self.output_tokens = 0
        self.prefill_steps = 0
        self.decode_steps = 0


class Driver:
    """One rank being driven; `step` until it returns False.

    chunk_tokens: tokens of one prefill step over all requests. max_running: requests that prefill or decode.
    """

    def __init__(
        self,
        cache: RankCache,
        stream: Stream,
        *,
        chunk_tokens: int,
        max_running: int,
        clock: StepClock | None = None,
    ) -> None:
        self.cache = cache
        self.stream = stream
        self._windowed = cache.state.config.window_tokens > 0
        self.chunk_tokens = chunk_tokens
        self.max_running = max_running
        self.counts = Counts()
        self.refusals: list[str] = []
        """Why requests were turned away, one sentence each, in order."""
        self.clock = clock if clock is not None else StepClock()
        self._waiting: deque[Job] = deque()
        self._prefilling: deque[_Live] = deque()
        self._uncomputed = 0
        """Prompt tokens that those who prefill have still to compute."""
        self._running: list[_Live] = []
        self._ids: NDArray[np.int64] = np.zeros(0, np.int64)
        self._left: NDArray[np.int32] = np.zeros(0, np.int32)
        self._next_token = -1

    def step(self) -> bool:
        """One step of prefill or decode; False when the stream is dry and nobody is live."""
        self._admit()
        if self._prefilling:
            self._prefill()
        elif self._running:
            self._decode()
        else:
            return False
        self.clock.steps += 1
        if self.cache.journal is not None:
            self.cache.journal.end_step(self.clock.steps)
        return True

    # -- admission -------------------------------------------------------------------------------------------

    def _admit(self) -> None:
        while len(self._prefilling) + len(self._running) < self.max_running:
            job = self._waiting.popleft() if self._waiting else self.stream.take()
            if job is None:
                return
            never = self._why_never(job)
            if never is not None:
                self.counts.refused += 1
                self.refusals.append(f"{job.rid!r}: {never}")
                self.stream.ended(job, self._answer(0))
                continue
            if (self._prefilling or self._running) and not self._fits_now(job):
                self._waiting.appendleft(job)
                return
            key = self.cache.key_of(job.prompt)
            admission = self.cache.admit(
                job.rid, key, len(job.prompt), force_miss=job.frugal, priority=job.priority
            )
            self._prefilling.append(_Live(job, key, admission.request, admission.hit.tokens))
            self._uncomputed += len(job.prompt) - admission.hit.tokens
            self.counts.admitted += 1
            self.counts.prompt_tokens += len(job.prompt)
            self.counts.hit_tokens += admission.hit.tokens
            self.counts.full_hit_tokens += admission.hit.full_tokens

    def _why_never(self, job: Job) -> str | None:
        """Why a job can never be driven, with the numbers; None if it can (B109, B116).

        FULL must hold the whole sequence; SWA, where there is any, a chunk and the window before it, and the answer where
        nothing of it is given back.
        """
        state, page_size = self.cache.state, self.cache.state.page_size
        whole = pages_for(len(job.prompt) + job.outputs, page_size)
        limit = min(state.full.capacity, state.config.context_pages)
        asked = f"{len(job.prompt)} prompt tokens and {job.outputs} to come take"
        if whole > limit:
            return f"{asked} {whole} FULL pages of {page_size} tokens; the rank has {limit}"
        chunk = pages_for(min(self.chunk_tokens, len(job.prompt)), page_size) + state.tail_pages + 2
        if not state.config.free_out_of_window:
            chunk += pages_for(job.outputs, page_size)
        if self._windowed and min(whole, chunk) > state.swa.capacity:
            return f"{asked} {min(whole, chunk)} SWA pages at a time; the rank has {state.swa.capacity}"
        return None

    def _fits_now(self, job: Job) -> bool:
        """Whether the prompt fits beside what the others still want; its own cached prefix counts as free (B114)."""
        state, page_size = self.cache.state, self.cache.state.page_size
        wanted = len(job.prompt) + self._uncomputed
        full = pages_for(wanted, page_size) + len(self._running) + len(self._prefilling)
        swa = pages_for(self.chunk_tokens, page_size) + state.tail_pages + len(self._running) + 2
        return full <= state.full.available + state.full_evictable and (
            not self._windowed or swa <= state.swa.available + state.swa_evictable
        )

    # -- steps -----------------------------------------------------------------------------------------------

    def _prefill(self) -> None:
        untaken = [live.request for live in self._prefilling if not self._is_taken_over(live.job)]
        if untaken:  # no tree takes their chunks over, so their windows end here (R151)
            self.cache.reclaim_batch(np.array(untaken, np.int64))
        chosen, grown = self._chunk()
        while not self._extended(chosen, grown):
            chosen, grown = self._chunk()
        if not chosen:
            return
        self.counts.prefill_steps += 1
        for live, count in zip(chosen, grown, strict=True):
            live.computed += count
            self._uncomputed -= count
            if not live.job.frugal:
                self.cache.cache_unfinished(live.request, live.key, live.computed)
            if live.computed == len(live.job.prompt):
                self._prefilling.remove(live)
                self._sample_first(live)

    def _is_taken_over(self, job: Job) -> bool:
        """Whether the tree takes what a job computed, chunk by chunk, and so ends its window."""
        return self.cache.state.traits.tree and not job.frugal

    def _chunk(self) -> tuple[list[_Live], list[int]]:
        """Who computes how many prompt tokens in this step, requests in order."""
        budget, chosen, grown = self.chunk_tokens, [], []
        for live in self._prefilling:
            count = min(budget, len(live.job.prompt) - live.computed)
            chosen.append(live)
            grown.append(count)
            budget -= count
            if budget == 0:
                break
        return chosen, grown

    def _extended(self, chosen: list[_Live], grown: list[int]) -> bool:
        """Whether the pools could be made to give the pages; if not, the youngest request went back to the queue."""
        state, page_size, needed = self.cache.state, self.cache.state.page_size, 0
        for live, count in zip(chosen, grown, strict=True):
            length = int(state.rows.length[state.row_of(live.request)])
            needed += pages_for(length + count, page_size) - pages_for(length, page_size)
        if not self._made_room(needed):
            self._retract_youngest()
            return False
        if chosen:
            requests = np.array([live.request for live in chosen], np.int64)
            self.cache.extend(requests, np.array(grown, np.int32))
        return True

    def _made_room(self, needed: int) -> bool:
        """Evict what each pool lacks of `needed` pages (B112); whether both have them then."""
        state = self.cache.state
        full, swa = needed - state.full.available, (needed - state.swa.available) * self._windowed
        if full > 0 or swa > 0:
            self.cache.evict(max(full, 0), max(swa, 0))
        return state.full.available >= needed and (not self._windowed or state.swa.available >= needed)

    def _sample_first(self, live: _Live) -> None:
        """The last prefill step samples the first token; its KV is written by the first decode step."""
        live.sampled = 1
        if live.job.outputs == 1:
            self._finish(live)
            return
        self._running.append(live)
        self._ids = np.array([*self._ids.tolist(), live.request], np.int64)
        self._left = np.array([*self._left.tolist(), live.job.outputs - 1], np.int32)

    def _decode(self) -> None:
        self.cache.reclaim_batch(self._ids)
        while self._running:
            try:
                self.cache.decode(self._ids)
                break
            except PoolShort as short:
                if not self._made_room(short.needed):
                    self._retract_youngest()
        if not self._running:
            return
        self.counts.decode_steps += 1
        self._left -= 1
        if np.count_nonzero(self._left) < len(self._left):
            going_on = self._left != 0
            for at in (~going_on).nonzero()[0][::-1].tolist():
                self._finish(self._running.pop(at))
            self._ids, self._left = self._ids[going_on], self._left[going_on]

    # -- ends ------------------------------------------------------------------------------------------------

    def _finish(self, live: _Live) -> None:
        answer = self._answer(live.job.outputs)
        # The last sampled token has no KV, so the tree gets all the others.
        whole = self.cache.key_of(np.concatenate((live.job.prompt, answer[:-1])))
        self.cache.finish(live.request, None if live.job.frugal else whole)
        self.counts.finished += 1
        self.counts.output_tokens += len(answer)
        self.stream.ended(live.job, answer)

    def _retract_youngest(self) -> None:
        """Send the youngest request back to the queue; what it had sampled is part of its prompt from now on."""
        self.counts.retracted += 1
        alone = len(self._prefilling) + len(self._running) == 1
        if self._prefilling and (len(self._prefilling) > 1 or not self._running):
            live, sampled = self._prefilling.pop(), 0
            self._uncomputed -= len(live.job.prompt) - live.computed
        else:
            live = self._running.pop()
            sampled = live.job.outputs - int(self._left[-1])
            self._ids, self._left = self._ids[:-1], self._left[:-1]
        self.cache.retract(live.request)
        assert not (alone and live.job.frugal), "what fits a rank fits it alone and frugally"
        job = live.job._replace(frugal=live.job.frugal or alone)
        self.counts.output_tokens += sampled
        if sampled:
            prompt = np.concatenate((job.prompt, self._answer(sampled)))
            job = job._replace(prompt=prompt, outputs=job.outputs - sampled)
        self._waiting.appendleft(job)

    def _answer(self, count: int) -> NDArray[np.int32]:
        """`count` sampled tokens, negative numbers used once: no two requests share an answer."""
        first = self._next_token
        self._next_token -= count
        return np.arange(first, first - count, -1, dtype=np.int32)
