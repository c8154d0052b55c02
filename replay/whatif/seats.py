"""The rows of a cache while a schedule is sent through it: who sits in them, and whether somebody else could.

Rule: it calls what a server calls, and reads no more of the cache than a server reads.
"""

from array import array

from radixledger.cache.rank import RankCache
from radixledger.cache.refusals import Refusal, StateShort
from radixledger.journal.events import Opened
from radixledger.journal.units import FIRST, Seq
from radixledger.replay.whatif.content import Content
from radixledger.replay.whatif.meter import Ear, Meter
from radixledger.replay.whatif.room import can_never_fit, has_room_for
from radixledger.replay.whatif.schedule import Job, Schedule
from radixledger.replay.whatif.strayed import Strayed

ENDED = -1
"""In the place of a prompt: the job ended well."""


class Seated:
    """A job in a row of the cache."""

    __slots__ = ("free", "in_vain", "job", "key", "number", "prompt", "request")

    def __init__(self, number: int, job: Job, key: bytes, prompt: int, request: int) -> None:
        self.number, self.job, self.key, self.prompt, self.request = number, job, key, prompt, request
        self.free = False
        """Whether it has left its recorded steps."""
        self.in_vain = False
        """Whether in the record pages were evicted for its sake before it was retracted all the same."""


class Seats:
    """The live jobs of one rank. strayed: where it is counted what nobody recorded. seq: of the event that opened it."""

    def __init__(
        self,
        schedule: Schedule,
        opened: Opened,
        content: Content,
        meter: Meter,
        strayed: Strayed,
        seq: Seq = FIRST,
    ) -> None:
        ear = Ear(opened, meter)
        self.cache = RankCache(opened, ear, hashed=content.hashed, seq=seq)
        ear.state = self.cache.state
        self.live: dict[int, Seated] = {}
        """By number, the eldest first."""
        self.changes = 0
        """How often somebody came, went, or left the schedule."""
        self.asks = array("q")
        """Who was let in with how long a prompt, and who ended well, as they came: pairs of job and prompt, ENDED for an end."""
        self.content, self.strayed = content, strayed
        self.chunk_tokens = schedule.chunk_tokens
        self._job_of = schedule.job_of()
        self._unknown: set[int] = set()

    def seat(self, number: int, prompt: int, *, force_miss: bool = False) -> Seated | None:
        """Admit a job; None if it has to wait."""
        job, content = self._job_of(number), self.content
        key = content.whole(number, job)
        unknown = content.unknown_pages(job)
        if unknown > 0 and number not in self._unknown:
            self._unknown.add(number)
            self.strayed.unknown_jobs += 1
            self.strayed.unknown_pages += unknown
        try:
            admission = self.cache.admit(
                job.rid, content.upto(key, prompt), prompt, job.namespace, force_miss=force_miss,
                priority=job.priority,
            )  # fmt: skip
        except Refusal:
            return None
        self.changes += 1
        self.asks.extend((number, prompt))
        live = self.live[number] = Seated(number, job, key, prompt, admission.request)
        return live

    def can_never_fit(self, number: int) -> bool:
        """Whether the pools could not hold a job if they held nothing else."""
        return can_never_fit(self.cache.state.opened, self._job_of(number), self.chunk_tokens)

    def has_room_for(self, prompt: int) -> bool:
        """Whether a job would be let in now."""
        if not self.live:
            return True
        owed = [left for live in self.live.values() if (left := live.prompt - self.length(live)) > 0]
        return has_room_for(
            self.cache.state, prompt, owed=sum(owed), computing=len(owed), decoding=len(self.live) - len(owed),
            chunk_tokens=self.chunk_tokens,
        )  # fmt: skip

    def has_a_page(self) -> bool:
        """Whether a page of each pool could be had now."""
        state = self.cache.state
        return state.full.available + state.full_evictable > 0 and (
            not state.windowed or state.swa.available + state.swa_evictable > 0
        )

    def keep(self, live: Seated, tokens: int) -> None:
        """Give the cache the first `tokens` tokens of a running job."""
        try:
            self.cache.cache_unfinished(live.request, live.key, tokens)
        except StateShort as short:
            self.cache.evict_states(short.needed - short.available)
            try:
                self.cache.cache_unfinished(live.request, live.key, tokens)
            except StateShort:
                self.strayed.unkept += 1

    def length(self, live: Seated) -> int:
        """Tokens that a job has computed."""
        state = self.cache.state
        return int(state.rows.length[state.row_of(live.request)])
