"""How events change the books of pages: allocation, frees, free groups.

Part of `evolve`, with its rule: total, and what does not add up is noted.
"""

import numpy as np

from radixledger.cache.ledger import Astray, PoolBook
from radixledger.cache.state import Finding, State
from radixledger.journal.accounts import FREE, PENDING, describe, request_account
from radixledger.journal.events import Allocated, Freed, GroupFlushed, GroupOpened, Remapped
from radixledger.journal.moves import pages_of
from radixledger.journal.units import NO_PAGES, Pages


def note(state: State, law: str, detail: str, pool: int = 0, pages: Pages = NO_PAGES, expected: int = 0,
         found: int = 0) -> None:  # fmt: skip
    """Write down that the event being folded broke a law."""
    state.findings.append(Finding(state.seq, law, detail, pool, pages, expected, found))


def move(state: State, book: PoolBook, pages: Pages, giver: int, taker: int) -> None:
    """Move pages between accounts; pages that were elsewhere are noted, with who had them."""
    if pages:
        astray = book.move(pages, giver, taker, state.seq)
        if astray is not None:
            note_astray(state, book, astray, giver, taker)


def move_both(state: State, full: Pages, swa: Pages, giver: int, taker: int) -> None:
    """Move pages of both pools, as `move` does."""
    seq = state.seq
    if full:
        astray = state.full.move(full, giver, taker, seq)
        if astray is not None:
            note_astray(state, state.full, astray, giver, taker)
    if swa:
        astray = state.swa.move(swa, giver, taker, seq)
        if astray is not None:
            note_astray(state, state.swa, astray, giver, taker)


def note_astray(state: State, book: PoolBook, astray: Astray, giver: int, taker: int) -> None:
    """One finding per account in which the pages were found instead."""
    for found in sorted({account for _, account in astray}):
        pages = np.array([page for page, account in astray if account == found], "<i4")
        law = "a_page_is_given_by_its_owner"
        if found == FREE and taker in (FREE, PENDING):
            law = "a_page_is_freed_once"
        elif taker != FREE and giver == FREE:
            law = "only_free_pages_are_allocated"
        text = (
            f"{book.pool.name} page {', '.join(map(str, pages.tolist()[:8]))}: expected {describe(giver)}, "
        )
        note(state, law, text + f"found {describe(found)}", book.pool, Pages(pages.tobytes()), giver, found)


def map_pages(state: State, full: Pages, swa: Pages) -> None:
    """Bind FULL pages to SWA pages; a page that still has a mapping of a former life is noted (R54, B8)."""
    stale = state.mapping.set(full, swa)
    if stale:
        note(
            state,
            "a_fresh_page_has_no_mapping",
            f"FULL page {pages_of(stale).tolist()[:8]} was mapped",
            0,
            stale,
        )


def unmap_pages(state: State, full: Pages, swa: Pages) -> None:
    """Clear a mapping; where it was not what the event says, that is noted."""
    wrong = state.mapping.clear(full, swa)
    if wrong:
        note(
            state,
            "a_mapping_is_cleared_once",
            f"FULL page {pages_of(wrong).tolist()[:8]} mapped elsewhere",
            0,
            wrong,
        )


def allocated(state: State, event: Allocated) -> None:
    account = request_account(event.request)
    full, swa = event.full, event.swa
    move_both(state, full, swa, FREE, account)
    if swa:
        map_pages(state, full if len(swa) == len(full) else Pages(full[len(full) - len(swa) :]), swa)


def freed(state: State, event: Freed) -> None:
    if event.unmapped:
        if not event.full and state.dangling:
            state.dangling -= _surrendered(state, event.unmapped)
        unmap_pages(state, event.unmapped, event.swa)
    move(state, state.swa, event.swa, event.giver, event.to)
    if event.full:
        if len(event.unmapped) != len(event.full):
            state.dangling += len(state.mapping.mapped(event.full)[0]) >> 2
        move(state, state.full, event.full, event.giver, event.to)


def _surrendered(state: State, full: Pages) -> int:
    """How many of the FULL pages are no longer anybody's."""
    accounts = state.full.holders(full)
    return int(np.count_nonzero((accounts == FREE) | (accounts == PENDING)))


def group_opened(state: State, event: GroupOpened) -> None:
    if state.group_open:
        note(state, "free_groups_do_not_nest", "a group was open already")
    state.group_open = True


def group_flushed(state: State, event: GroupFlushed) -> None:
    if not state.group_open:
        note(state, "a_group_is_flushed_once", "no group was open")
    state.group_open = False
    move_both(state, event.full, event.swa, PENDING, FREE)


def remapped(state: State, event: Remapped) -> None:
    unmap_pages(state, event.source, event.swa)
    map_pages(state, event.target, event.swa)
    move(state, state.swa, event.swa, event.giver, event.taker)
