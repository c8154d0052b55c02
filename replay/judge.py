"""Follows requests from their match to the event that tells their key, and judges their misses (see `misses`).

Rule: it looks at events before they are folded, and changes nothing; what it holds is bounded by the requests that are live.
"""

from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from radixledger.cache.state import State
from radixledger.journal.causes import label
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
from radixledger.journal.units import UNBOUND
from radixledger.replay.memory import Memory, needs_of
from radixledger.replay.misses import KINDS, Lost, Miss, Stretch, stop_text
from radixledger.replay.stays import Loss, Needs, Piece, Pressure, Stay, reach

MOMENTS = 512
"""So many losses of one path are asked about, the latest; a path has as many as it has nodes, or a few more."""

MATCHES_KEPT = 1 << 16
"""Matches that wait for their request to be admitted; the oldest are forgotten."""


class _Looked(Struct, frozen=True):
    event: Matched
    seq: int
    time_ns: int
    step: int


class _Open(Struct):
    """A request whose miss is not judged yet. pieces: its path as far as it is known, from a window before the hit."""

    looked: _Looked
    admitted: Admitted
    at: int
    known: int
    pieces: list[Piece]
    evicted: tuple[int, int]
    wanted: int
    ended: str = ""


class Judge:
    """Follows requests from their match to the event that tells their key; `take` yields misses as they are judged."""

    def __init__(self, memory: Memory, rank: int) -> None:
        self.memory, self.rank = memory, rank
        self.unnamed = 0
        """Matches of nobody in particular: they cannot be followed."""
        self.unlooked = 0
        """Admissions without a match before."""
        self._looked: dict[str, _Looked] = {}
        self._open: dict[int, _Open] = {}
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
            self._judge(state, request, "")
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
        self._looked[event.rid] = _Looked(event, self._seq, frame.time_ns, frame.step)
        if len(self._looked) > MATCHES_KEPT:
            del self._looked[next(iter(self._looked))]

    def _admitted(self, state: State, event: Admitted) -> None:
        looked = self._looked.pop(event.rid, None)
        if looked is None:
            self.unlooked += 1
            return
        if event.request in self._open:
            self._judge(state, event.request, "")
        page_size, same = state.page_size, event.prefix == looked.event.hit
        hit = event.prefix // page_size
        pieces: list[Piece] = []
        node = state.nodes.get(event.node)
        lead = max(0, hit - needs_of(state).tail_pages)
        if node is not None and hit > lead:
            pieces = self.memory.pieces(state, node, lead, hit)
        self._open[event.request] = _Open(
            looked,
            event,
            looked.seq if same else self._seq,
            hit,
            pieces,
            self.memory.evicted,
            looked.event.asked // page_size,
        )
        if looked.event.asked // page_size <= hit:
            self._judge(state, event.request, "")

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
        if held is not None and node is not None and held.known < held.wanted:
            stop = min(node.end, held.wanted)
            if stop > held.known:
                held.pieces += self.memory.pieces(state, node, held.known, stop)
                held.known = stop

    # -- judging ---------------------------------------------------------------------------------------------

    def _judge(self, state: State, request: int, ended: str) -> None:
        held = self._open.pop(request, None)
        if held is None:
            return
        admitted, looked, page_size = held.admitted, held.looked, state.page_size
        hit = admitted.prefix // page_size
        drops, reached, forced = _drops(held, hit, needs_of(state))
        lost = [self._lost(held, page_size, *drop) for drop in drops]
        stretches = _stretches(held, hit, reached, forced, page_size, tree=state.traits.tree)
        kinds = dict.fromkeys(KINDS, 0)
        kinds["hit"] = int(admitted.prefix)
        kinds["lost"] = sum(each.tokens for each in lost)
        for stretch in stretches:
            kinds[stretch.kind] += stretch.stop - stretch.start
        event = looked.event
        self._judged.append(
            Miss(
                rank=self.rank, request=request, rid=admitted.rid, seq=looked.seq, time_ns=looked.time_ns,
                step=looked.step, prompt=admitted.prompt, asked=event.asked, full_hit=event.full_hit,
                hit=admitted.prefix, host_hit=event.host_hit, stop=stop_text(event.stop), node=admitted.node,
                ended=ended, known=held.known * page_size, kinds=kinds, lost=lost, stretches=stretches,
            )
        )  # fmt: skip

    def _lost(self, held: _Open, page_size: int, start: int, stop: int, loss: Loss) -> Lost:
        stays = [stay for piece in held.pieces if piece.start < stop for stay in piece.stays]
        stay = next((stay for stay in stays if loss in stay.losses()), None)
        pressure, evicted, now = loss.pressure or Pressure(), loss.evicted, held.evicted
        also = _also(stays, loss, held.at)
        copy = stay.copy_dropped if stay is not None else None
        return Lost(
            start=start * page_size, stop=stop * page_size, seq=loss.seq, time_ns=loss.time_ns, step=loss.step,
            event=loss.event, cause=label(loss.cause), what=_WHAT.get(loss.event, "prefix"), node=loss.node,
            cached_by=stay.rid if stay is not None else "", cached_seq=stay.born if stay is not None else 0,
            wanted_by=list(pressure.takers), wanted_by_count=pressure.taker_count, wanted_seq=pressure.took_seq,
            asked_full=pressure.asked[0], asked_swa=pressure.asked[1], asked_states=pressure.asked[2],
            evicted_full=now[0] - evicted[0], evicted_swa=now[1] - evicted[1],
            also_seq=also.seq if also is not None else 0,
            also_cause=label(also.cause) if also is not None else "",
            also_evicted_full=now[0] - also.evicted[0] if also is not None else 0,
            copy=f"dropped by event {copy.seq}, {label(copy.cause)}" if copy is not None else "",
        )  # fmt: skip


def _also(stays: list[Stay], loss: Loss, at: int) -> Loss | None:
    """The first event behind a loss, and not behind `at`, that took FULL pages of the same stays."""
    later = [
        other
        for stay in stays
        for other in (stay.end, *(mark.loss for mark in stay.full))
        if other is not None and loss.seq < other.seq <= at and stay.born < loss.seq
    ]
    return min(later, key=lambda other: other.seq, default=None)


_WHAT = {
    "Tombstoned": "window",
    "StateFreed": "state",
    "Demoted": "prefix on the device",
    "Opened": "everything",
}
"""What an event takes that is a loss; others take the prefix."""


def _drops(held: _Open, hit: int, needs: Needs) -> tuple[list[tuple[int, int, Loss]], int, int]:
    """Pages [start, stop) that were lost, with the event that did; how far the prompt ever hit; how far it could now.

    Backwards in time from the match: whatever the prompt would have hit just before a loss and not since, that loss took.
    """
    forced = max(hit, reach(held.pieces, hit, held.at, needs))
    losses = {loss.seq: loss for piece in held.pieces for stay in piece.stays for loss in stay.losses()}
    reached, drops = forced, []
    for seq in sorted((seq for seq in losses if seq <= held.at), reverse=True)[:MOMENTS]:
        if reached >= held.known:
            break
        before = reach(held.pieces, hit, seq - 1, needs)
        if before > reached:
            drops.append((reached, before, losses[seq]))
            reached = before
    return drops, reached, forced


def _stretches(
    held: _Open, hit: int, reached: int, forced: int, page_size: int, *, tree: bool
) -> list[Stretch]:
    """What was not lost: told not to hit, never reached, not known, too short."""
    out: list[Stretch] = []
    if forced > hit:
        out.append(Stretch(hit * page_size, forced * page_size, "forced"))
    for piece in held.pieces:
        start = max(piece.start, reached)
        if start < piece.stop:
            _add(out, _never(piece, held, start * page_size, piece.stop * page_size))
    known, wanted = max(held.known, reached), held.wanted
    if wanted > known:
        _add(out, Stretch(known * page_size, wanted * page_size, "untold"))
    asked = max(wanted, known) * page_size if tree else 0
    if held.admitted.prompt > asked and tree:
        _add(out, Stretch(asked, held.admitted.prompt, "too_short"))
    elif not tree:
        out = [Stretch(0, held.admitted.prompt, "untold")]
    return out


def _never(piece: Piece, held: _Open, start: int, stop: int) -> Stretch:
    """Why pages that no match of this prompt would ever have reached were not reached."""
    before = [stay for stay in piece.stays if stay.born <= held.at]
    if before and held.known < held.wanted:
        return Stretch(start, stop, "untold")  # whether a window stood behind it, nobody knows
    if before:
        return Stretch(start, stop, "not_usable", before[-1].rid, before[-1].born)
    others = [stay for stay in piece.stays if stay.request != held.admitted.request]
    if others:
        return Stretch(start, stop, "concurrent", others[0].rid, others[0].born)
    return Stretch(start, stop, "never_cached")


def _add(out: list[Stretch], more: Stretch) -> None:
    last = out[-1] if out else None
    if (
        last is not None
        and last.stop == more.start
        and (last.kind, last.cached_by, last.cached_seq) == (more.kind, more.cached_by, more.cached_seq)
    ):
        out[-1] = Stretch(last.start, more.stop, more.kind, more.cached_by, more.cached_seq)
    else:
        out.append(more)
