"""Follows requests from their match to the event that tells their key, and judges their misses (see `misses`).

Rule: it looks at events before they are folded, and changes nothing; what it holds is bounded by the requests that are live.
"""

from collections.abc import Callable, Iterator
from typing import Any

from radixledger.cache.state import State
from radixledger.journal.events import (
    Aborted,
    Admitted,
    AnyEvent,
    Finished,
    Matched,
    Opened,
    Repointed,
    Retracted,
)
from radixledger.journal.frame import Frame
from radixledger.journal.units import UNBOUND, TokenCount
from radixledger.replay.reuse.attribution import Asked, Looked, judged
from radixledger.replay.reuse.memory import Memory
from radixledger.replay.reuse.misses import NOT_TOLD, Miss
from radixledger.replay.reuse.stays import Needs, Piece

MATCHES_KEPT = 1 << 16
"""Matches that wait for their request to be admitted; the oldest are forgotten."""


class Judge:
    """Follows requests from their match to the event that tells their key; `take` yields misses as they are judged."""

    def __init__(self, memory: Memory, rank: int) -> None:
        self.memory, self.rank = memory, rank
        self.unnamed = 0
        """Matches of nobody in particular: they cannot be followed."""
        self.unlooked = 0
        """Admissions without a match before; judged as if they had asked for all whole pages of their prompt."""
        self.blind = False
        """Whether the state is not known where it looks now."""
        self._looked: dict[str, Looked] = {}
        self._open: dict[int, Asked] = {}
        self._judged: list[Miss] = []
        self._frame: Frame
        self._seq = 0
        self._follow: dict[type, Callable[[State, Any], None]] = {
            Matched: self._matched,
            Admitted: self._admitted,
            Repointed: self._repointed,
            Finished: self._ended,
            Retracted: self._ended,
            Aborted: self._ended,
            Opened: self._reopened,
        }

    def take(self, state: State, frame: Frame, seq: int, event: AnyEvent) -> Iterator[Miss]:
        """Look at an event before `state` is changed by it, and after `memory` has seen it."""
        follow = self._follow.get(type(event))
        if follow is None:
            return
        self._frame, self._seq = frame, seq
        follow(state, event)
        yield from self._judged
        self._judged.clear()

    def finish(self, state: State) -> Iterator[Miss]:
        """Judge what is still open at the end of the journal."""
        for request in list(self._open):
            self._judge(state, request, "", live=True)
        yield from self._judged
        self._judged.clear()

    def lose(self, state: State) -> Iterator[Miss]:
        """Events are missing here: what was not told so far of the requests that are open is not known; nor what they matched."""
        for request in list(self._open):
            self._judge(state, request, "", cut=True)
        self._looked.clear()
        yield from self._judged
        self._judged.clear()

    # -- following -------------------------------------------------------------------------------------------

    def _matched(self, state: State, event: Matched) -> None:
        if event.full_only or event.request in state.requests:
            return  # it looked its own path up
        if not event.rid:
            self.unnamed += event.request == UNBOUND
            return
        frame = self._frame
        self._looked.pop(event.rid, None)
        self._looked[event.rid] = Looked(event, self._seq, frame.time_ns, frame.step, frame.epoch)
        if len(self._looked) > MATCHES_KEPT:
            del self._looked[next(iter(self._looked))]

    def _admitted(self, state: State, event: Admitted) -> None:
        looked = self._looked.pop(event.rid, None)
        if looked is None:
            self.unlooked += not self.blind
            looked = self._unlooked(state, event)
        if event.request in self._open:
            self._judge(state, event.request, "")
        page_size, same = state.page_size, event.prefix == looked.event.hit
        hit = event.prefix // page_size
        pieces: list[Piece] = []
        node = state.nodes.get(event.node)
        lead = max(0, hit - needs_of(state).tail_pages)
        if node is not None and hit > lead and not self.blind:
            pieces = self.memory.pieces(state, node, lead, hit)
        self._open[event.request] = Asked(
            looked,
            event,
            self._seq,
            looked.seq if same else self._seq,
            hit,
            pieces,
            self.memory.evicted,
            looked.event.asked // page_size,
            self.blind,
        )
        if looked.event.asked // page_size <= hit:
            self._judge(state, event.request, "")

    def _unlooked(self, state: State, event: Admitted) -> Looked:
        """What stands for a match that nobody wrote down: it asked for all whole pages, and found what it was admitted with."""
        asked = TokenCount(max(0, event.prompt - 1) // state.page_size * state.page_size)
        match = Matched(event.rid, event.request, asked, event.prefix, event.prefix, event.node, NOT_TOLD)
        frame = self._frame
        return Looked(match, self._seq, frame.time_ns, frame.step, frame.epoch)

    def _repointed(self, state: State, event: Repointed) -> None:
        self._learn(state, event.request, event.node)
        held = self._open.get(event.request)
        if held is not None and held.known >= held.wanted:
            self._judge(state, event.request, "")

    def _ended(self, state: State, event: Finished | Retracted | Aborted) -> None:
        if type(event) is Finished:
            self._learn(state, event.request, event.node)
        self._judge(state, event.request, type(event).__name__.lower())

    def _reopened(self, state: State, _: Opened) -> None:
        for request in list(self._open):
            self._judge(state, request, "")
        self._looked.clear()

    def _learn(self, state: State, request: int, number: int) -> None:
        """The path of a request is known up to `number`: take down its past, as far as it was asked for."""
        held, node = self._open.get(request), state.nodes.get(number)
        if held is not None and node is not None and held.known < held.wanted and not held.blind:
            stop = min(node.end, held.wanted)
            if stop > held.known:
                held.pieces += self.memory.pieces(state, node, held.known, stop)
                held.known = stop

    # -- judging ---------------------------------------------------------------------------------------------

    def _judge(
        self, state: State, request: int, ended: str, *, live: bool = False, cut: bool = False
    ) -> None:
        held = self._open.pop(request, None)
        if held is not None:
            page_size, tree, needs = state.page_size, state.traits.tree, needs_of(state)
            self._judged.append(
                judged(held, self.rank, ended, page_size, needs, tree=tree, live=live, cut=cut)
            )


def needs_of(state: State) -> Needs:
    """What a match of this rank needs to end somewhere."""
    return Needs(state.tail_pages if state.windowed else 0, state.recurrent.capacity > 0)
