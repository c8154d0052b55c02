"""Decisions for servers that keep their own requests and rows: who sits in a row, what was written into it.

A request of such a server is a request like every other (`Admitted`, `Finished`, ...): its pages stand in a row of
the state, so that ledger, laws, blame and replay serve it too. Only the order differs: pages are handed out to
nobody, and become the request's when the server writes them into its row. A decider is a generator, see
`decide.pages`. Rule: every refusal is raised before the first yield.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from radixledger.cache import window
from radixledger.cache.decide import pages as decide_pages
from radixledger.cache.decide.eviction import check_quiet, evict_states
from radixledger.cache.decide.growth import live_request, refuse_in_flight
from radixledger.cache.decide.locks import check_receipt, lock_path, released
from radixledger.cache.decide.pages import Decision
from radixledger.cache.locks import receipt_of
from radixledger.cache.match import is_boundary
from radixledger.cache.refusals import Busy, ForeignFree, Refusal
from radixledger.cache.state import Receipt, Request, State
from radixledger.cache.window import pages_for
from radixledger.journal.accounts import FREE, Kind, Pool, request_account
from radixledger.journal.causes import Operation, Site, cause
from radixledger.journal.events import Admitted, Bound, Extended, Freed, GroupFlushed, GroupOpened, StateFreed
from radixledger.journal.moves import pages_of
from radixledger.journal.units import NO_PAGES, UNBOUND, NodeId, Pages, RequestId, TokenCount

_ADMIT, _CLEAR = cause(Operation.ADMIT), cause(Operation.FLUSH)
_WRITE = cause(Operation.EXTEND, Site.DECODE)
_NOBODY = request_account(UNBOUND)


class Written(NamedTuple):
    """Tokens [start, stop) of a request's row, and the FULL page of every page position that they touch."""

    request: RequestId
    start: int
    stop: int
    pages: Pages


def seat(
    state: State, rid: str, row: int, prompt: int, node: NodeId, namespace: bytes, receipt: Receipt,
    priority: int = 0,
) -> Decision[RequestId]:  # fmt: skip
    """Admit a request in the row that its server chose, behind the tree's path to `node`.

    The lock that the server took when it did not know the row yet becomes the request's own (R144): its window is
    locked again under the request's name, then `receipt` is given back.
    """
    rows, page_size = state.rows, state.page_size
    if rid in state.rids:
        raise Refusal(f"request id {rid!r} is live already", request=state.rids[rid])
    if not 0 <= row <= rows.mask or rows.request[row]:
        raise Refusal(f"row {row} cannot be given to {rid!r}: it is taken, or none of {rows.mask + 1}")
    end = state.nodes.get(node)
    if end is None:
        raise Refusal(f"node {node}, where {rid!r} starts, is not in the tree")
    room = state.config.context_pages * page_size
    if prompt > room:
        raise Refusal(f"{rid!r} has {prompt} tokens; a row holds {room}")
    prefix = TokenCount(end.end * page_size)
    if prefix >= prompt:
        raise Refusal(f"{rid!r} has {prompt} tokens, {prefix} of them cached; one at least is to be computed")
    if not is_boundary(state, end):
        raise Refusal(f"{rid!r} cannot start at node {node}: the window before it is not live (R73)")
    if end.parent is not None:
        check_receipt(state, receipt)
        if receipt.node != node:
            raise Refusal(f"{rid!r} starts at node {node} and locks node {receipt.node} (R137)")
    for component in state.components:
        component.check_seat(state, end)
    request = RequestId(state.next_request * (rows.mask + 1) + row)
    yield Admitted(request, rid, TokenCount(prompt), prefix, node, namespace, _ADMIT, priority)
    if end.parent is not None:
        yield from lock_path(state, end, request, _ADMIT)
        yield from released(state, receipt, UNBOUND, _ADMIT)
    for component in state.components:
        yield from component.admitted(state, request, end, _ADMIT)
    return request


def make_room(state: State, node: NodeId) -> Decision[None]:
    """Free what a request that is going to start at `node` will need beside pages; what it goes on from stays (R211).

    Raises StateShort, and nothing changed, if there cannot be so many state slots.
    """
    end = state.nodes[node]
    for component in state.components:
        component.check_seat(state, end)
    missing = state.states_each - state.recurrent.available
    if missing <= 0:
        return
    receipt = None
    if end.parent is not None:
        receipt = receipt_of((yield from lock_path(state, end, UNBOUND, _ADMIT)))
    yield from evict_states(state, missing)
    if receipt is not None:
        yield from released(state, receipt, UNBOUND, _ADMIT)


def write(state: State, written: Sequence[Written]) -> Decision[None]:
    """What a server wrote into rows: pages that it was given become the request's, lengths grow (R28)."""
    bounds, grown = [], []
    if len({each.request for each in written}) < len(written):
        raise Refusal("a row is written once in one call")
    for each in written:
        live = live_request(state, each.request)
        fresh = _fresh(state, live, each)
        length = int(state.rows.length[live.row])
        if fresh:
            bounds.append(_bound(state, live, fresh, max(length, each.stop)))
        elif each.stop > length:
            grown.append((live.id, each.stop - length))
    _check_handed_out(state, Pages(b"".join(bound.full for bound in bounds)))
    requests = np.array([each.request for each in written], np.int64)
    before = state.rows.length.take(requests & state.rows.mask)
    yield from bounds
    if grown:
        numbers, counts = zip(*grown, strict=True)
        yield Extended(np.array(numbers, "<i8").tobytes(), np.array(counts, "<i4").tobytes(), cause=_WRITE)
    for component in state.components:
        yield from component.grown(state, requests, before, _WRITE)


def _fresh(state: State, live: Request, each: Written) -> Pages:
    """The pages behind those that the row names already, which must be the ones that the server writes again."""
    rows, page_size = state.rows, state.page_size
    length, first = int(rows.length[live.row]), each.start // page_size
    if not 0 <= each.start <= each.stop or len(each.pages) != 4 * (pages_for(each.stop, page_size) - first):
        raise Refusal(
            f"{len(each.pages) // 4} pages do not hold tokens {each.start} to {each.stop} of row {live.row}",
            request=live.id,
        )
    if each.start > length:
        raise Refusal(
            f"row {live.row} has {length} tokens; tokens from {each.start} on leave a hole", request=live.id
        )
    if pages_for(each.stop, page_size) > state.config.context_pages:
        room = state.config.context_pages * page_size
        raise Refusal(f"row {live.row} holds {room} tokens, {each.stop} were written", request=live.id)
    given = pages_of(each.pages)
    named = rows.full_table[live.row, first : pages_for(length, page_size)][: given.size]
    other = np.flatnonzero(named != given[: named.size])
    if other.size:
        at = int(other[0])
        raise Refusal(
            f"position {(first + at) * page_size} of row {live.row} names FULL page {named[at]}, which would be lost if "
            f"page {given[at]} were written over it: free it first",
            request=live.id,
            pages=Pages(named[at : at + 1].tobytes()),
        )
    return Pages(given[named.size :].tobytes())


def _bound(state: State, live: Request, fresh: Pages, length: int) -> Bound:
    start = pages_for(int(state.rows.length[live.row]), state.page_size) * state.page_size
    swa = state.mapping.mapped(fresh)[1] if _all_known(state, fresh) else NO_PAGES
    return Bound(live.id, fresh, swa, TokenCount(start), fresh, TokenCount(length))


def _all_known(state: State, pages: Pages) -> bool:
    ids = pages_of(pages)
    return bool(((ids > 0) & (ids <= state.full.capacity)).all())


def _check_handed_out(state: State, full: Pages) -> None:
    """Refuse pages that the allocator did not hand out to nobody, or that are named twice, or without SWA."""
    if not state.full.all_with(full, _NOBODY):
        holders = state.full.holders(full)
        wrong = np.flatnonzero(holders != _NOBODY)
        at = int(wrong[0]) if wrong.size else 0
        page = Pages(full[at * 4 : at * 4 + 4])
        number = int.from_bytes(page, "little", signed=True)
        since = int(state.full.since[number]) if 0 <= number <= state.full.capacity else 0
        raise ForeignFree(
            pool=Pool.FULL, pages=page, expected=_NOBODY, found=int(holders[at]), since=since
        )  # fmt: skip
    mapped, swa = state.mapping.mapped(full)
    if not state.windowed:
        return
    if mapped != full or not state.swa.all_with(swa, _NOBODY):
        raise Refusal("a page whose SWA was freed cannot be written into a row", pages=full)


def give_up(state: State, full: Pages, giver: int | None, strict: bool) -> Decision[None]:
    """A server frees pages, FULL and SWA: nobody's, or the last ones of a live row, which ends before them then."""
    cuts = [
        _cut(state, state.requests[number], account, full)
        for account in dict.fromkeys(state.full.holders(full).tolist())
        if giver in (None, account) and (number := account >> 3) in state.requests and _is_request(account)
    ]
    yield from decide_pages.free(state, full, giver, strict, in_rows=True)
    yield from cuts


def _is_request(account: int) -> bool:
    return account & 7 == Kind.REQUEST


def _cut(state: State, live: Request, account: int, full: Pages) -> Bound:
    """The row of `live` without its last pages; refuses to leave a hole, or a row that cannot go on or is being read."""
    refuse_in_flight(state, live)
    for component in state.components:
        component.check_cut(state, live)
    rows, row, page_size = state.rows, live.row, state.page_size
    mine = np.unique(pages_of(full)[state.full.holders(full) == account])
    held, protected = pages_for(int(rows.length[row]), page_size), int(rows.protected[row])
    length = TokenCount((held - mine.size) * page_size)
    tail = rows.full_table[row, held - mine.size : held]
    if not np.array_equal(np.sort(tail), mine):
        raise Refusal(
            f"FULL page {mine.tolist()[:8]} stands in the middle of row {row} of {live.rid!r}: only its last pages can be freed",
            request=live.id,
            pages=Pages(mine.astype("<i4").tobytes()),
        )
    cursor, stop = int(rows.cursor[row]), window.key_length(length, state.lookahead)
    window_start = window.insert_stop(stop, page_size) - state.config.window_tokens
    if length > protected and window_start < cursor and protected < cursor:
        raise Refusal(
            f"{live.rid!r} could not go on from token {length}: its SWA is given back below {cursor}",
            request=live.id,
        )
    return Bound(live.id, NO_PAGES, NO_PAGES, length, NO_PAGES, length)


def translate(state: State, full: Pages) -> Decision[Pages]:
    """The SWA pages of FULL pages, each of which must have one; that one has none is recorded (R35, A7)."""
    yield from ()
    return decide_pages.translate(state, full, require_mapped=True)


def flushable(state: State) -> Decision[None]:
    """Nothing, or the refusal of a flush: with several ranks all are asked before the first is emptied (R33)."""
    yield from ()
    check_quiet(state)


def clear(state: State) -> Decision[None]:
    """Take back all that was handed out to nobody, and what is pending; an open group stays open (R48).

    What the tree or a live request holds stands in the way, so that nothing is hidden (R33).
    """
    if state.requests:
        raise Busy(f"{len(state.requests)} requests are live: {', '.join(sorted(state.rids)[:8])}")
    if len(state.nodes) > 1:
        copies = f" and {state.host.held[Kind.TREE]} HOST pages" if state.host.held[Kind.TREE] else ""
        raise Busy(f"the tree holds {state.full.held[Kind.TREE]} FULL pages{copies}: reset the cache first")
    states = Pages(np.flatnonzero(state.recurrent.account == _NOBODY).astype("<i4").tobytes())
    swa = Pages(np.flatnonzero(state.swa.account == _NOBODY).astype("<i4").tobytes())
    full = Pages(np.flatnonzero(state.full.account == _NOBODY).astype("<i4").tobytes())
    mapped, partners = state.mapping.mapped(full)
    lonely = np.flatnonzero((state.mapping.swa_of != 0) & ~np.isin(state.mapping.swa_of, pages_of(partners)))
    assert len(swa) == len(partners) + 4 * lonely.size, "SWA that nobody names is mapped from somewhere"
    was_open = state.group_open
    if was_open:
        yield GroupFlushed(Pages(bytes(state.full.pending)), Pages(bytes(state.swa.pending)))
    if full:
        yield Freed(_NOBODY, full, mapped, partners, FREE, cause=_CLEAR)
    if lonely.size:
        dangling = Pages(lonely.astype("<i4").tobytes())
        yield Freed(_NOBODY, NO_PAGES, dangling, state.mapping.swa_pages(dangling), FREE, cause=_CLEAR)
    if states:
        yield StateFreed(_NOBODY, states, cause=_CLEAR)
    if was_open:
        yield GroupOpened()
