"""The story of one page: every life it had, who held it, who gave it up, why, and in which event (J16).

A life begins when a page leaves `free` and ends when it is free again. The page columns of events say it all, so no
state is folded (`journal.moves`); where a journal begins at a snapshot, the first holder is asked of that. Rule: what an
event claims is compared with what the events before it said, and a page that was given up by somebody who did not have
it is told as such.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec import Struct

from radixledger.cache.state import State
from radixledger.journal.accounts import FREE, Kind, Pool, describe, holder_of
from radixledger.journal.causes import label_of
from radixledger.journal.events import (
    Aborted,
    Admitted,
    AnyEvent,
    Finished,
    Gap,
    Opened,
    Retracted,
)
from radixledger.journal.fields import PAGE_COLUMNS
from radixledger.journal.frame import Frame
from radixledger.journal.moves import Move, pages_of, whole_mappings, whole_moves
from radixledger.replay.walk import lost_here

UNKNOWN = -1
"""The holder of a page behind a gap."""


class LifeStep(Struct, frozen=True):
    """One thing that happened to a page; `giver` and `taker` are accounts, the same where only its mapping changed.

    life: which incarnation, from 1; 0 is one that began before the journal does. rid: the request id, where a request
    gave or took. partner: the page of the other pool that it is mapped to behind this event, 0 for none. wrong: what
    contradicts the events before, empty where nothing does.
    """

    life: int
    seq: int
    time_ns: int
    step: int
    event: str
    giver: int
    taker: int
    cause: str
    rid: str
    partner: int
    wrong: str


class _Holding(Struct):
    """What the events so far say of the page."""

    life: int
    owner: int
    since: int
    partner: int


def story(frames: Iterable[Frame], pool: Pool, page: int, base: State | None = None) -> Iterator[LifeStep]:
    """Everything that happened to `page` of `pool`, in order; `base` is the state that the frames go on from."""
    held, rids = _beginning(pool, page, base)
    needle = page.to_bytes(4, "little", signed=True)
    for frame in frames:
        for place, event in enumerate(frame.events):
            kind = type(event)
            remember = _RIDS.get(kind)
            if remember is not None:
                remember(rids, event)
            elif kind in _EVERYWHERE or (kind in PAGE_COLUMNS and _may_name(event, needle, held)):
                yield from _steps(held, rids, frame, frame.seq_first + place, event, pool, page)


def _may_name(event: AnyEvent, needle: bytes, held: _Holding) -> bool:
    """Whether an event can concern the page or its partner: a look for four bytes, cheap and sometimes wrongly yes."""
    partner = held.partner.to_bytes(4, "little", signed=True) if held.partner else needle
    for column in PAGE_COLUMNS[type(event)]:
        pages = column(event)
        if needle in pages or partner in pages:
            return True
    return False


def _beginning(pool: Pool, page: int, base: State | None) -> tuple[_Holding, dict[int, str]]:
    if base is None:
        return _Holding(0, FREE, 0, 0), {}
    book = base.books[pool]
    swa_of = base.mapping.swa_of
    partners = [int(swa_of[page])] if pool is Pool.FULL else (swa_of == page).nonzero()[0].tolist()
    if pool not in (Pool.FULL, Pool.SWA):
        partners = []  # what a copy mirrors may change under it
    rids: dict[int, str] = {request.id: request.rid for request in base.requests.values()}
    return _Holding(0, int(book.account[page]), int(book.since[page]), (partners or [0])[0]), rids


def _steps(
    held: _Holding, rids: dict[int, str], frame: Frame, seq: int, event: AnyEvent, pool: Pool, page: int
) -> Iterator[LifeStep]:
    """The steps of one event; `held` moves along."""
    before = held.partner
    given = list(_given(held, seq, event, pool, page))
    held.partner = _partner(held.partner, event, pool, page)
    if not given and (held.partner != before or isinstance(event, Gap)):
        given = [(held.owner, held.owner, lost_here(event))]
    for giver, taker, wrong in given:
        if FREE in (held.owner, giver) and taker & 7 >= Kind.REQUEST:
            held.life += 1
        yield LifeStep(
            life=held.life,
            seq=seq,
            time_ns=frame.time_ns,
            step=frame.step,
            event=type(event).__name__,
            giver=giver,
            taker=taker,
            cause=label_of(event),
            rid=_rid(rids, taker) or _rid(rids, giver),
            partner=held.partner,
            wrong=wrong,
        )
        held.owner, held.since = (UNKNOWN if isinstance(event, Gap) else taker), seq
    if isinstance(event, Opened):
        rids.clear()


def _given(
    held: _Holding, seq: int, event: AnyEvent, pool: Pool, page: int
) -> Iterator[tuple[int, int, str]]:
    """Giver, taker and what is wrong about it, for each time that the event moves the page."""
    if isinstance(event, Opened):
        if held.owner != FREE:
            yield held.owner, FREE, ""
        return
    owner, since = held.owner, held.since
    for move in whole_moves(event):
        for _ in range(_times(move, pool, page)):
            wrong = ""
            if owner not in (move.giver, UNKNOWN):
                wrong = f"{describe(move.giver)} did not have it: {describe(owner)} did, since event {since}"
            owner, since = move.taker, seq
            yield move.giver, move.taker, wrong


def _times(move: Move, pool: Pool, page: int) -> int:
    return int((pages_of(move.pages) == page).sum()) if move.pool is pool else 0


def _partner(partner: int, event: AnyEvent, pool: Pool, page: int) -> int:
    """What the page is mapped to, or from, behind the event."""
    if isinstance(event, Opened) or pool not in (Pool.FULL, Pool.SWA):
        return 0
    for change in whole_mappings(event):
        full, swa = pages_of(change.full).tolist(), pages_of(change.swa).tolist()
        mine, theirs = (full, swa) if pool is Pool.FULL else (swa, full)
        if page in mine:
            partner = theirs[mine.index(page)] if theirs else 0
        elif pool is Pool.SWA and not swa and partner in full:
            partner = 0
    return partner


def _rid(rids: dict[int, str], account: int) -> str:
    return rids.get(holder_of(account), "") if account & 7 == Kind.REQUEST else ""


def _forget(rids: dict[int, str], event: Finished | Retracted | Aborted) -> None:
    rids.pop(event.request, None)


def _learn(rids: dict[int, str], event: Admitted) -> None:
    rids[event.request] = event.rid


_RIDS: dict[type, Callable[[dict[int, str], Any], None]] = {
    Admitted: _learn,
    Finished: _forget,
    Retracted: _forget,
    Aborted: _forget,
}
"""Events that say which request id a number stands for; none of them moves pages."""


_EVERYWHERE = (Opened, Gap)
"""Events that concern every page."""
