"""Who is in the rows of a cache while a schedule is sent through it: they grow, and when pools are short somebody yields.

Who was retracted in the record right before a step yields first, then the youngest. A job that has left its recorded steps
is free: it computes its prompt at once and goes along with every step of decoding until it is through. Rule: it calls what a
server calls, in the order of a server with chunked prefill, and reads no more of the cache than a server reads.
"""

from collections import deque
from collections.abc import Sequence

import numpy as np

from radixledger.cache.refusals import PoolShort
from radixledger.cache.window import pages_for
from radixledger.journal.events import Opened
from radixledger.journal.units import FIRST, Seq
from radixledger.replay.whatif.content import Content
from radixledger.replay.whatif.meter import Meter
from radixledger.replay.whatif.schedule import Schedule
from radixledger.replay.whatif.seats import ENDED, Seated, Seats
from radixledger.replay.whatif.strayed import Strayed


class Crowd(Seats):
    """The live jobs of one rank, those of them that are free, and who waits outside the schedule."""

    def __init__(
        self,
        schedule: Schedule,
        opened: Opened,
        content: Content,
        meter: Meter,
        strayed: Strayed,
        seq: Seq = FIRST,
    ) -> None:
        super().__init__(schedule, opened, content, meter, strayed, seq)
        self.late: deque[tuple[int, int]] = deque()
        """Who waits outside the schedule, with the prompt that he has by now."""
        self.due: dict[int, Seated] = {}
        """Those of the live who were retracted in the record right before the step that comes next."""
        self.retracted: set[int] = set()
        """Who was retracted here as in the record, and waits for his recorded admission."""
        self._free = 0
        self._batch: tuple[int, list[Seated]] = -1, []
        """Who decoded last, and how many changes there had been: as many now, and the step behind it is of the same jobs."""

    # -- coming in -------------------------------------------------------------------------------------------

    def let_in(self) -> None:
        """Admit who waits outside the schedule, as long as there is room, and compute his prompt."""
        while self.late and self.has_room_for(self.late[0][1]):
            number, prompt = self.late.popleft()
            live = self.seat(number, prompt)
            if live is None:
                self.late.appendleft((number, prompt))
                return
            self.set_free(live)
            if self.late and self.late[0][0] == number:
                return  # it had to yield at once

    def set_free(self, live: Seated) -> None:
        """From now on a job goes without its recorded steps."""
        live.free = True
        self.changes += 1
        self._free += 1
        self.compute_prompts([(live, live.prompt)])
        self._end_what_is_through([live])

    # -- growing ---------------------------------------------------------------------------------------------

    def compute_prompts(self, targets: Sequence[tuple[Seated, int]]) -> None:
        """Take prompts to their targets, a chunk of all of them at a time; who has to yield on the way is left out."""
        while part := self._chunk(targets):
            # Where no tree takes a chunk over, its window ends here (R151); elsewhere this seldom gives anything back.
            computing = [live.request for live in self.live.values() if self.length(live) < live.prompt]
            self.cache.reclaim_batch(np.array(computing, np.int64))
            grown = self._extended(part)
            if not grown:
                return
            reached = {live.number: to for live, to in targets}
            for live, _ in grown:
                if live.free or self.length(live) < reached.get(live.number, 0):
                    self.keep(live, self.length(live))

    def _chunk(self, targets: Sequence[tuple[Seated, int]]) -> list[tuple[Seated, int]]:
        """Who grows by how many tokens in one step; who was retracted in the record before it would have come last."""
        budget, part = self.chunk_tokens, []
        for live, to in [*targets, *((live, live.prompt) for live in self.due.values())]:
            count = min(budget, to - self.length(live)) if live.number in self.live else 0
            if count > 0:
                part.append((live, count))
                budget -= count
        return part if any(live.number not in self.due for live, _ in part) else []

    def _extended(self, part: list[tuple[Seated, int]]) -> list[tuple[Seated, int]]:
        """Take the pages of a step; who yielded for it is not in it."""
        page_size = self.cache.state.page_size
        while part:
            needed = 0
            for live, count in part:
                length = self.length(live)
                needed += pages_for(length + count, page_size) - pages_for(length, page_size)
            if self._made_room(needed):
                requests = np.array([live.request for live, _ in part], np.int64)
                self.cache.extend(requests, np.array([count for _, count in part], np.int32))
                return part
            if not self._make_way():
                return []
            part = [each for each in part if each[0].number in self.live]
        return []

    def decode(self, jobs: Sequence[int], to: Sequence[int], further: int = 0) -> bool:
        """A step of decoding, `further` steps behind the one that takes `jobs` to their tokens of `to`: of them those who
        follow, and all who are free; False if nobody grew.
        """
        known_at, known = self._batch
        if further and not self.due and known_at == self.changes:
            return self._decoded(known)
        batch = [
            live
            for number, reached in zip(jobs, to, strict=True)
            if (live := self.on_schedule(number)) is not None and self.length(live) == reached + further - 1
        ]
        if self.due:
            batch += [live for live in self.due.values() if self.length(live) >= live.prompt]
        if self._free:
            batch += [live for live in self.live.values() if live.free]
        self._batch = self.changes, batch
        return bool(batch) and self._decoded(batch)

    def _decoded(self, batch: list[Seated]) -> bool:
        """One token for each; the pools are made to give the pages, or somebody yields."""
        ids = np.array([live.request for live in batch], np.int64)
        self.cache.reclaim_batch(ids)
        while batch:
            try:
                self.cache.decode(ids)
                break
            except PoolShort as short:
                if not self._made_room(short.needed) and not self._make_way():
                    return False
                batch = [live for live in batch if live.number in self.live]
                ids = np.array([live.request for live in batch], np.int64)
        if self._free:
            self._end_what_is_through(batch)
        return bool(batch)

    def _made_room(self, needed: int) -> bool:
        """Evict what each pool lacks of `needed` pages (B112); whether both have them then."""
        state = self.cache.state
        full = needed - state.full.available
        swa = needed - state.swa.available if state.windowed else 0
        if full <= 0 and swa <= 0:
            return True
        if (full > state.full_evictable or swa > state.swa_evictable) and not self._evicts_in_vain():
            return False
        self.cache.evict(max(full, 0), max(swa, 0))
        return state.full.available >= needed and (not state.windowed or state.swa.available >= needed)

    def _evicts_in_vain(self) -> bool:
        """Whether something is evicted even where that will not do: as in the record, for who was retracted there."""
        return any(live.in_vain for live in self.due.values())

    # -- yielding --------------------------------------------------------------------------------------------

    def _make_way(self) -> bool:
        """Somebody yields: who did in the record, else the youngest, who then waits outside the schedule."""
        if self.due:
            self.give_back(next(iter(self.due.values())))
            return True
        if not self.live:
            return False
        live = next(reversed(self.live.values()))
        length = self.length(live)
        self.late.appendleft(
            (live.number, max(live.prompt, length + 1) if length >= live.prompt else live.prompt)
        )
        self.cache.retract(live.request)
        self._forget(live)
        self.strayed.pushed_out += 1
        return True

    def give_back(self, live: Seated) -> None:
        """A retraction of the record."""
        self.cache.retract(live.request)
        self._forget(live)
        self.retracted.add(live.number)

    def settle_due(self, *, as_recorded: bool) -> None:
        """The step went well: those who were retracted in the record for it are spared, unless all is to be as recorded."""
        while self.due:
            number, live = next(iter(self.due.items()))
            if as_recorded:
                self.give_back(live)
                continue
            del self.due[number]
            self.strayed.spared += 1
            self.set_free(live)

    def _forget(self, live: Seated) -> None:
        del self.live[live.number]
        self.changes += 1
        self.due.pop(live.number, None)
        self._free -= live.free

    # -- keeping and leaving ---------------------------------------------------------------------------------

    def finish(self, live: Seated) -> None:
        """End a job well."""
        self.cache.finish(live.request, self.content.given(live.key, live.job))
        self.asks.extend((live.number, ENDED))
        self._forget(live)

    def abort(self, number: int) -> None:
        """End a job wherever it is."""
        live = self.live.get(number)
        if live is not None:
            self.cache.abort(live.request)
            self._forget(live)
        self.retracted.discard(number)
        if self.late:
            self.late = deque(each for each in self.late if each[0] != number)

    def _end_what_is_through(self, batch: Sequence[Seated]) -> None:
        for live in batch:
            if live.free and live.number in self.live and self.length(live) >= live.job.tokens:
                if live.job.given >= 0:
                    self.finish(live)
                else:  # nobody knows how it would have ended: it is not cached, and holds nothing up
                    self.abort(live.number)

    def on_schedule(self, number: int) -> Seated | None:
        """A job that follows its recorded steps."""
        live = self.live.get(number)
        return None if live is None or live.free or number in self.due else live
