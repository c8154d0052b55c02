"""Decisions about pages that need no tree: allocate, free, free groups, translation.

A decider is a generator: it checks everything that can fail, then yields events; the shell records and
evolves each before it asks for the next. Rule: every refusal is raised before the first yield, and a
decider never writes to the state.
"""

from collections.abc import Generator
from typing import TypeVar

import numpy as np

from radixledger.cache.ledger import PoolBook, places_of
from radixledger.cache.refusals import (
    Busy,
    DoubleFree,
    ForeignFree,
    OwnershipError,
    PoolShort,
    Refusal,
    Unmapped,
)
from radixledger.cache.state import State
from radixledger.journal.accounts import (
    FREE,
    PENDING,
    Account,
    Kind,
    Pool,
    describe,
    kind_of,
    request_account,
)
from radixledger.journal.causes import Cause, Operation, Site, cause
from radixledger.journal.events import (
    Allocated,
    AnyEvent,
    Freed,
    GroupFlushed,
    GroupOpened,
    Remapped,
    Violated,
)
from radixledger.journal.moves import pages_of
from radixledger.journal.units import NO_PAGES, UNBOUND, Pages, RequestId

T = TypeVar("T")
Decision = Generator[AnyEvent, None, T]

_REQUEST = int(Kind.REQUEST)
_FREE = int(Kind.FREE)
_ALLOC = cause(Operation.ALLOC)
_COMPOSITE = cause(Operation.FREE, Site.COMPOSITE)
_FULL_ONLY = cause(Operation.FREE, Site.FULL_ONLY)
_SWA_ONLY = cause(Operation.FREE, Site.SWA_ONLY)


def destination(state: State) -> Account:
    """Where freed pages go: to `pending` while a free group is open (R29), else to `free`."""
    return PENDING if state.group_open else FREE


def short(state: State, needed: int, request: int = UNBOUND) -> PoolShort:
    """The refusal that names what each pool has (R152)."""
    return PoolShort(
        needed=needed,
        full_available=state.full.available,
        full_evictable=state.full_evictable,
        swa_available=state.swa.available,
        swa_evictable=state.swa_evictable,
        windowed=state.windowed,
        request=request,
    )


def check_free_pages(state: State, needed: int, request: int = UNBOUND) -> None:
    """Refuse unless every pool can hand out `needed` pages that carry nothing of a former life (R54, A4)."""
    if state.full.held[_FREE] < needed or (state.swa.held[_FREE] < needed and state.windowed):
        raise short(state, needed, request)
    if state.dangling:
        raise Refusal(
            f"{state.dangling} freed FULL pages still map to SWA pages: free_full must be followed by free_swa "
            "of the same pages before the next allocation",
            request=request,
        )


def alloc(state: State, count: int) -> Decision[tuple[Pages, Pages]]:
    """free → request(unbound): `count` pages of each pool, mapped pairwise (R45: both or none); of FULL where it is alone.

    They are nobody's in particular: what a request owns stands in its row (R154), which grows by its own calls.
    """
    if count <= 0:
        raise Refusal(f"{count} pages were asked for; an allocation takes at least one")
    check_free_pages(state, count)
    full, swa = state.full.next_free(count), state.swa.next_free(count)
    yield Allocated(UNBOUND, full, swa, _ALLOC)
    return full, swa


def free(
    state: State,
    full: Pages,
    giver: int | None,
    strict: bool = True,
    why: Cause = _COMPOSITE,
    *,
    in_rows: bool = False,
) -> Decision[None]:
    """giver → free: FULL pages and the SWA pages they are mapped to (R41). Repeats in one call or group are no-ops (R42).

    in_rows: the caller takes the pages out of live rows too; else a page that stands in one is refused (R4, B12).
    """
    illegal, lots = _lots(state, state.full, full, giver, in_rows)
    if strict and illegal:
        raise illegal[0]
    to = destination(state)
    frees = []
    for account, pages in lots:
        unmapped, swa = state.mapping.mapped(pages)
        if swa and not state.swa.all_with(swa, account):
            raise _misplaced(state.swa, swa, account)
        frees.append(Freed(account, pages, unmapped, swa, to, _request_of(account), why))
    for refusal in illegal:
        yield _violated(refusal, why)
    yield from frees


def free_full(state: State, full: Pages, giver: int | None, strict: bool = True) -> Decision[None]:
    """giver → free: FULL pages only; SWA pages and mapping stay for the `free_swa` that must follow (R38, A4)."""
    illegal, lots = _lots(state, state.full, full, giver)
    if strict and illegal:
        raise illegal[0]
    for refusal in illegal:
        yield _violated(refusal, _FULL_ONLY)
    for account, pages in lots:
        yield Freed(account, pages, NO_PAGES, NO_PAGES, destination(state), _request_of(account), _FULL_ONLY)


def free_swa(state: State, full: Pages, giver: int | None, strict: bool = True) -> Decision[None]:
    """giver → free: the SWA pages of these FULL pages, whose mapping is cleared at once (R39, R43).

    FULL pages without SWA are skipped; that the call found nothing to free is recorded (R40).
    """
    _check_known(state.full, full)
    mapped, swa = state.mapping.mapped(_unique(state.full, full))
    illegal, lots = _lots(state, state.swa, swa, giver)
    if giver is not None:
        illegal += _foreign_holders(state, full, giver)
    if strict and illegal:
        raise illegal[0]
    for refusal in illegal:
        yield _violated(refusal, _SWA_ONLY)
    sources = dict(zip(pages_of(swa).tolist(), pages_of(mapped).tolist(), strict=True))
    for account, pages in lots:
        unmapped = np.array([sources[page] for page in pages_of(pages).tolist()], "<i4")
        yield Freed(
            account,
            NO_PAGES,
            Pages(unmapped.tobytes()),
            pages,
            destination(state),
            _request_of(account),
            _SWA_ONLY,
        )
    if not lots and not illegal:
        account = giver if giver is not None else request_account(UNBOUND)
        yield Freed(
            account, NO_PAGES, NO_PAGES, NO_PAGES, destination(state), _request_of(account), _SWA_ONLY
        )


def remap(state: State, source: Pages, target: Pages) -> Decision[None]:
    """Move the mapping, and with it the SWA pages, from FULL pages `source` to `target` (R91); none of either is the
    tree's, free, or in a live row.
    """
    pages = Pages(source + target)
    _check_known(state.full, pages)
    if len(source) != len(target) or state.full.repeats(places_of(pages)):
        raise Refusal(
            f"{len(source) // 4} source pages cannot give their mapping to {len(target) // 4}, or one is named twice",
            pages=source,
        )
    for account in dict.fromkeys(state.full.holders(pages).tolist()):
        if account & 7 != _REQUEST:
            raise Refusal(f"FULL pages of {describe(account)} keep their mapping", pages=pages)
        _check_row(state, state.full, pages, account)
    mapped, swa = state.mapping.mapped(source)
    if mapped != source:
        missing = pages_of(source)[pages_of(state.mapping.swa_pages(source)) == 0]
        raise Refusal(f"source FULL pages {missing.tolist()[:8]} have no SWA page", pages=source)
    taken, _ = state.mapping.mapped(target)
    if taken:
        raise Refusal(
            f"target FULL pages {pages_of(taken).tolist()[:8]} have an SWA page already", pages=taken
        )
    givers, takers = state.swa.holders(swa), state.full.holders(target)
    if len(set(givers.tolist())) > 1 or len(set(takers.tolist())) > 1:
        raise Refusal(
            "source or target pages have more than one owner; transfer them owner by owner", pages=source
        )
    if source:
        yield Remapped(int(givers[0]), int(takers[0]), source, target, swa, _ALLOC)


def open_group(state: State) -> Decision[None]:
    """Begin a free group; in an open one this changes nothing and keeps what was captured (R49)."""
    if not state.group_open:
        yield GroupOpened()


def flush_group(state: State) -> Decision[None]:
    """pending → free: the two physical queues as they are, never translated again (R44)."""
    if not state.group_open:
        raise Busy("no free group is open: it was flushed before, or never begun")
    yield GroupFlushed(Pages(bytes(state.full.pending)), Pages(bytes(state.swa.pending)))


def translate(state: State, full: Pages, *, require_mapped: bool = True) -> Pages:
    """The SWA pages of FULL pages, a copy; 0 where there is none and none is required (R34-R36)."""
    _check_known(state.full, full)
    swa = state.mapping.swa_pages(full)
    if require_mapped:
        missing = Pages(pages_of(full)[pages_of(swa) == 0].tobytes())
        if missing:
            page = pages_of(missing)[0]
            raise Unmapped(
                pool=Pool.FULL,
                pages=missing,
                expected=0,
                found=state.full.account_at[page],
                since=state.full.since_at[page],
            )
    return swa


def _request_of(account: int) -> RequestId:
    return RequestId(account >> 3 if account & 7 == _REQUEST else UNBOUND)


def _unique(book: PoolBook, pages: Pages) -> Pages:
    """Each page once, in the order of first mention (A5: a repeat inside one call is a no-op)."""
    if len(pages) <= 4 or not book.repeats(places_of(pages)):
        return pages
    ids = pages_of(pages)
    _, first = np.unique(ids, return_index=True)
    return Pages(ids[np.sort(first)].tobytes())


def _check_known(book: PoolBook, pages: Pages) -> None:
    ids = pages_of(pages)
    if ids.size and (int(ids.min()) <= 0 or int(ids.max()) > book.capacity):
        unknown = ids[(ids <= 0) | (ids > book.capacity)]
        raise Refusal(
            f"{book.pool.name} page {unknown.tolist()[:8]}: the pool has pages 1 to {book.capacity}; page 0 is reserved",
            pool=book.pool,
            pages=Pages(unknown.astype("<i4").tobytes()),
        )


def _lots(
    state: State, book: PoolBook, pages: Pages, giver: int | None, in_rows: bool = False
) -> tuple[list[OwnershipError], list[tuple[int, Pages]]]:
    """Sort pages by who may give them up; what nobody may is told as refusals, one per wrong account."""
    if len(pages) == 4:
        page = int.from_bytes(pages, "little")
        if page <= book.capacity:
            account = book.account_at[page]
            if account & 7 == _REQUEST and (giver is None or giver == account):
                _check_row(state, book, pages, account, in_rows)
                return [], [(account, pages)]
    _check_known(book, pages)
    pages = _unique(book, pages)
    ids = pages_of(pages)
    holders = book.account.take(places_of(pages))
    first = int(holders[0]) if holders.size else 0
    if first & 7 == _REQUEST and (giver is None or giver == first) and (holders == first).all():
        _check_row(state, book, pages, first, in_rows)
        return [], [(first, pages)]
    lots: list[tuple[int, Pages]] = []
    illegal: list[OwnershipError] = []
    for account in dict.fromkeys(holders.tolist()):
        lot = Pages(ids[holders == account].tobytes())
        if account == PENDING and state.group_open:
            continue
        if account & 7 == Kind.REQUEST and (giver is None or giver == account):
            _check_row(state, book, lot, account, in_rows)
            lots.append((account, lot))
        else:
            illegal.append(_misowned(book, lot, giver, account))
    return illegal, lots


def _check_row(state: State, book: PoolBook, pages: Pages, account: int, in_rows: bool = False) -> None:
    """Refuse to take pages out of the row of a live request behind its back: it would give them up again (R4, B12)."""
    if not in_rows and account >> 3 in state.requests:
        raise Busy(
            f"{book.pool.name} page {pages_of(pages).tolist()[:8]} stands in the row of request {account >> 3}, which is live: "
            "it goes with reclaim, finish, retract or abort",
            request=account >> 3, pool=book.pool, pages=pages, found=account,
        )  # fmt: skip


def _misowned(book: PoolBook, pages: Pages, giver: int | None, found: int) -> OwnershipError:
    kind = DoubleFree if kind_of(found) in (Kind.FREE, Kind.PENDING) else ForeignFree
    expected = request_account(UNBOUND) if giver is None else giver
    since = int(book.since_at[int.from_bytes(pages[:4], "little")])
    return kind(
        pool=book.pool,
        pages=pages,
        expected=expected,
        found=found,
        since=since,
        request=_request_of(expected),
    )


def _foreign_holders(state: State, full: Pages, giver: int) -> list[OwnershipError]:
    """FULL pages that the named giver of their SWA does not hold, unless they are nobody's any more (A4)."""
    holders = state.full.holders(full)
    foreign = (holders != giver) & (holders != FREE) & (holders != PENDING)
    if not foreign.any():
        return []
    return [_misowned(state.full, Pages(pages_of(full)[foreign].tobytes()), giver, int(holders[foreign][0]))]


def _misplaced(book: PoolBook, pages: Pages, account: int) -> OwnershipError:
    holders = book.holders(pages)
    wrong = holders != account
    return _misowned(book, Pages(pages_of(pages)[wrong].tobytes()), account, int(holders[wrong][0]))


def _violated(refusal: OwnershipError, why: Cause) -> Violated:
    """A refusal as go-on mode tells it: the illegal pages are not moved, the rest of the call goes on."""
    return Violated(
        refusal.reason,
        refusal.detail,
        refusal.request,
        refusal.pool,
        refusal.pages,
        refusal.expected,
        refusal.found,
        refusal.since,
        why,
    )
