"""Puts down what each event of a journal says of requests, before it changes the state.

Rule: what an event names and nobody admitted is passed over and noted, so that a damaged journal gives what it can.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from radixledger.cache.state import State
from radixledger.cache.window import key_length
from radixledger.journal.causes import Operation, Site, cause
from radixledger.journal.events import (
    Aborted,
    Admitted,
    Bound,
    Evicted,
    Extended,
    Finished,
    Flushed,
    Gap,
    Matched,
    Opened,
    Repointed,
    Retracted,
    Stop,
    Transferred,
)
from radixledger.journal.moves import ids_of, pages_of
from radixledger.journal.units import UNBOUND, TokenCount
from radixledger.replay.schedule.paths import path_to
from radixledger.replay.whatif.believable import in_a_row
from radixledger.replay.whatif.open_job import OpenJob, known_key, known_length, one
from radixledger.replay.whatif.room import USUAL_CHUNK, has_room_for
from radixledger.replay.whatif.schedule import (
    Admit,
    Empty,
    End,
    Grow,
    Keep,
    Leave,
    Restart,
    Schedule,
    ScheduleWriter,
)

_DECODE = cause(Operation.EXTEND, Site.DECODE)


class Scribe:
    """What the open requests are known to be, and one function for each event that tells of them."""

    def __init__(self, writer: ScheduleWriter) -> None:
        self._writer = writer
        self._open: dict[int, OpenJob] = {}
        """By the request's number."""
        self._waiting: dict[str, OpenJob] = {}
        """Retracted, by the request's name."""
        self._prompts: set[int] = set()
        """Requests whose prompt is not computed yet."""
        self._forced = self._evicted = False
        self._longest_step = 0
        self.tells: dict[type, Callable[[State, Any], object]] = {
            Matched: self._matched,
            Admitted: self._admit,
            Extended: self._extended,
            Bound: self._bound,
            Repointed: self._repointed,
            Finished: self._finished,
            Retracted: self._retracted,
            Aborted: self._aborted,
            Transferred: self._transferred,
            Flushed: self._flushed,
            Evicted: self._evicts,
            Opened: self._reopened,
            Gap: self._gap,
        }

    # -- a request's life ------------------------------------------------------------------------------------

    def begin_within(self, state: State) -> None:
        """A journal that begins at a snapshot: who is live there is admitted first, and computes all it has."""
        self._writer.note("the journal begins at a snapshot, and the redrive with nothing cached")
        for request in state.requests.values():
            length = int(state.rows.length[request.row])
            event = Admitted(
                request.id, request.rid, TokenCount(request.prompt), TokenCount(0), request.node,
                request.namespace, priority=request.priority,
            )  # fmt: skip
            live = self._admit(state, event)
            live.reached(length, known_key(state, request.id))
            if length:
                self._writer.tell(Grow(one(live.number), one(length), decode=False))
                self._writer.tell(Keep(live.number, length))
            if length >= request.prompt:
                self._prompts.discard(request.id)

    def _matched(self, state: State, event: Matched) -> None:
        self._forced = event.stop == Stop.FORCED_MISS

    def _admit(self, state: State, event: Admitted) -> OpenJob:
        live = self._waiting.pop(event.rid, None)
        if live is None or event.prompt < live.tokens or live.namespace != event.namespace:
            if live is not None:
                self._end(live, -1)
            live = OpenJob(self._writer.new_job(), event)
        crowded = bool(self._open) and not has_room_for(
            state, event.prompt, owed=self._owed_tokens(state), computing=len(self._prompts),
            decoding=len(self._open) - len(self._prompts), chunk_tokens=self._longest_step or USUAL_CHUNK,
        )  # fmt: skip
        self._writer.tell(Admit(live.number, event.prompt, event.prefix, self._forced, crowded))
        live.prompt_now, live.owed = event.prompt, False
        self._open[event.request] = live
        self._prompts.add(event.request)
        return live

    def _owed_tokens(self, state: State) -> int:
        rows = state.rows
        return sum(self._open[each].prompt_now - int(rows.length[each & rows.mask]) for each in self._prompts)

    def _extended(self, state: State, event: Extended) -> None:
        self._evicted, known_by = False, event.requests + event.grown
        if event.cause == _DECODE and self._writer.again(known_by):
            return
        requests, grown = ids_of(event.requests), pages_of(event.grown)
        reached = state.rows.length[requests & state.rows.mask] + grown
        in_a_row(state, int(reached.max(initial=0)))
        decode = event.cause == _DECODE and bool((grown == 1).all())
        grown_to = dict(zip(requests.tolist(), reached.tolist(), strict=True))
        told = [(live, to) for each, to in grown_to.items() if (live := self._open.get(each)) is not None]
        if len(told) < len(requests):
            self._writer.note("steps name requests whose admission is not in the journal")
        self._keep_owed(state, grown_to)
        if not decode:
            self._longest_step = max(self._longest_step, int(grown.sum()))
            for request, to in grown_to.items():
                self._went_on(request, to)
        jobs = np.array([live.number for live, _ in told], "<i4").tobytes()
        grow = Grow(jobs, np.array([to for _, to in told], "<i4").tobytes(), decode)
        if decode and len(told) == len(requests):
            self._writer.tell_step(known_by, grow)
        else:
            self._writer.tell(grow)

    def _bound(self, state: State, event: Bound) -> None:
        """A server of its own rows wrote pages into one."""
        live = self._open.get(event.request)
        if live is None:
            return
        length = int(state.rows.length[state.row_of(event.request)])
        if event.length < length:
            self._writer.note("a server cut rows short, which is not sent again")
        elif event.length > length:
            self._keep_owed(state, [event.request])
            decode = length >= live.prompt_now and event.length == length + 1
            if not decode:
                self._longest_step = max(self._longest_step, event.length - length)
                self._went_on(event.request, event.length)
            self._writer.tell(Grow(one(live.number), one(event.length), decode))

    def _went_on(self, request: int, to: int) -> None:
        """A chunk of a prompt was computed."""
        live = self._open.get(request)
        if live is not None:
            live.owed = True
            if to >= live.prompt_now:
                self._prompts.discard(request)

    def _keep_owed(self, state: State, requests: Iterable[int]) -> None:
        """Before it grows again, a chunk that nobody told of having been kept is kept where that could not be told."""
        for request in requests:
            live = self._open.get(request)
            if live is not None and live.owed:
                row = state.row_of(request)
                whole = state.key_length(row) // state.page_size * state.page_size
                if not state.traits.tree or whole <= state.rows.protected[row]:
                    self._writer.tell(Keep(live.number, int(state.rows.length[row])))
                live.owed = False

    def _repointed(self, state: State, event: Repointed) -> None:
        live = self._open.get(event.request)
        if live is None or event.cause >> 5 != Operation.UNFINISHED:
            return
        tokens, page_size = int(state.rows.length[state.row_of(event.request)]), state.page_size
        if key_length(TokenCount(tokens), state.lookahead) // page_size * page_size > event.protected:
            tokens = event.protected + state.lookahead
        self._writer.tell(Keep(live.number, tokens))
        live.owed = False

    # -- its end ---------------------------------------------------------------------------------------------

    def _finished(self, state: State, event: Finished) -> None:
        self._keep_owed(state, [event.request])
        key = path_to(state, event.node) + event.key
        live = self._left(state, event.request, End.FINISHED, event.tokens, key)
        if live is not None:
            self._end(live, len(key) // state.stride)

    def _retracted(self, state: State, event: Retracted) -> None:
        live = self._left(state, event.request, End.RETRACTED, event.tokens)
        if live is not None:
            self._waiting[live.rid] = live

    def _aborted(self, state: State, event: Aborted) -> None:
        live = self._left(state, event.request, End.ABORTED, event.tokens)
        if live is not None:
            self._end(live, -1)

    def _left(
        self, state: State, request: int, how: End, tokens: int, key: bytes | None = None
    ) -> OpenJob | None:
        live = self._open.pop(request, None)
        self._prompts.discard(request)
        if live is None:
            self._writer.note("requests end whose admission is not in the journal")
            return None
        self._writer.tell(Leave(live.number, how, self._evicted and how == End.RETRACTED))
        self._evicted = False
        live.reached(tokens, known_key(state, request) if key is None else key)
        return live

    def _end(self, live: OpenJob, given: int) -> None:
        self._writer.end_job(live.number, live.job(given))

    # -- what is no request's --------------------------------------------------------------------------------

    def _transferred(self, state: State, event: Transferred) -> None:
        if event.request == UNBOUND:
            self._writer.note("strangers brought pages to the tree, which are not sent again")

    def _evicts(self, state: State, event: Evicted) -> None:
        self._evicted = True

    def _flushed(self, state: State, event: Flushed) -> None:
        self._writer.tell(Empty())

    def _reopened(self, state: State, event: Opened) -> None:
        """A new epoch: whoever was live is gone."""
        self._let_go(state)
        if event.config != state.config or event.route != state.opened.route:
            self._writer.note("later epochs were opened with another configuration")
        self._writer.tell(Restart(state.seq + 1))

    def _gap(self, state: State, event: Gap) -> None:
        self._writer.note("events are lost, and whoever was under way then was let go")
        for live in self._open.values():
            self._writer.tell(Leave(live.number, End.ABORTED))
        self._let_go(state)

    def _let_go(self, state: State) -> None:
        """Put down what is known of those who have not ended."""
        for request, live in self._open.items():
            if request in state.requests:
                live.reached(known_length(state, request), known_key(state, request))
            self._end(live, -1)
        for live in self._waiting.values():
            self._end(live, -1)
        for known in (self._open, self._waiting, self._prompts):
            known.clear()

    def close(self, state: State, opened: Opened) -> Schedule:
        """The finished schedule."""
        self._let_go(state)
        if opened.config.host_pages:
            self._writer.note("the host tier is left out")
        return self._writer.close(opened, self._longest_step or USUAL_CHUNK)
