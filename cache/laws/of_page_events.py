"""The laws of events that move pages: pairs stay pairs, a free group keeps what it took in, a cleared mapping was there.

Part of `laws.of_events`. What the books alone can tell (who had a page) is noticed by `evolve`.
"""

from collections.abc import Sequence

import numpy as np

from radixledger.cache.laws.event_law import LAWFUL, event_law
from radixledger.cache.laws.law import Breach
from radixledger.cache.state import State
from radixledger.journal.accounts import FREE, PENDING, Kind, Pool, describe
from radixledger.journal.events import (
    Allocated,
    Demoted,
    Extended,
    Freed,
    GroupFlushed,
    Healed,
    Reclaimed,
    Remapped,
    Removed,
    Tombstoned,
)
from radixledger.journal.moves import pages_of
from radixledger.journal.units import NO_PAGES


@event_law
def an_allocation_takes_pages_in_pairs(state: State, event: Allocated) -> Sequence[Breach]:
    """Where there are two pools, both give as many pages: both or none (R45)."""
    full, swa = len(event.full) >> 2, len(event.swa) >> 2
    if full != swa and state.swa.capacity and state.traits.chosen_here:
        return [Breach(f"{full} FULL pages came with {swa} SWA pages", Pool.FULL, event.full, full, swa)]
    return LAWFUL


@event_law
def nothing_is_handed_out_while_a_mapping_dangles(
    state: State, event: Allocated | Extended
) -> Sequence[Breach]:
    """Between `free_full` and the `free_swa` that must follow nobody gets pages (R54, A4)."""
    if state.dangling and event.full:
        return [Breach(f"{state.dangling} freed FULL pages are mapped still", Pool.FULL, event.full)]
    return LAWFUL


@event_law
def a_mapping_moves_as_a_whole(state: State, event: Remapped) -> Sequence[Breach]:
    """Each SWA page leaves the FULL page that it was mapped from, for one that has none (R91)."""
    found: list[Breach] = []
    pairs = len(event.source) == len(event.target) == len(event.swa)
    if not pairs or state.mapping.swa_pages(event.source) != event.swa:
        found.append(Breach("it is not what its source was mapped to", Pool.SWA, event.swa))
    taken, _ = state.mapping.mapped(event.target)
    if taken:
        found.append(
            Breach(f"FULL page {pages_of(taken).tolist()[:8]} has an SWA page already", Pool.FULL, taken)
        )
    return found


@event_law
def what_is_given_up_goes_where_the_group_says(
    state: State, event: Freed | Healed | Reclaimed | Removed | Tombstoned | Demoted
) -> Sequence[Breach]:
    """Freed pages are pending while a free group is open, and free otherwise (R29, R43, R55)."""
    lawful = PENDING if state.group_open else FREE
    if event.to != lawful:
        text = f"pages went to {describe(event.to)}, a group is {'open' if state.group_open else 'not open'}"
        swa = NO_PAGES if isinstance(event, Demoted) else event.swa
        return [Breach(text, Pool.SWA if swa else Pool.FULL, swa, lawful, event.to)]
    return LAWFUL


@event_law
def a_window_goes_with_its_mapping(state: State, event: Freed | Reclaimed) -> Sequence[Breach]:
    """Each SWA page that is given up was mapped from the FULL page beside it, and is so no more (R39, R43)."""
    sources = event.unmapped if isinstance(event, Freed) else event.full
    if len(sources) != len(event.swa):
        text = f"{len(event.swa) >> 2} SWA pages go, {len(sources) >> 2} FULL pages lose their mapping"
        return [Breach(text, Pool.SWA, event.swa, len(event.swa) >> 2, len(sources) >> 2)]
    if sources and not state.mapping.leads(sources, event.swa):
        mapped = pages_of(state.mapping.swa_pages(sources)).tolist()[:8]
        return [Breach(f"those FULL pages are mapped to SWA page {mapped}", Pool.SWA, event.swa)]
    return LAWFUL


@event_law
def a_flushed_group_gives_all_that_is_pending(state: State, event: GroupFlushed) -> Sequence[Breach]:
    """The two queues as they are: nothing is left behind, nothing else comes along (R44, B6)."""
    found: list[Breach] = []
    for book, pages in ((state.full, event.full), (state.swa, event.swa)):
        if pages != bytes(book.pending):
            waiting, given = np.sort(pages_of(bytes(book.pending))), np.sort(pages_of(pages))
            if not np.array_equal(waiting, given):
                text = f"{waiting.size} {book.pool.name} pages are pending, {given.size} were flushed"
                found.append(Breach(text, book.pool, pages, int(waiting.size), int(given.size)))
    return found


def lent(state: State) -> int:
    """Pages that requests hold, of both pools, or that wait in a group."""
    return sum(book.held[Kind.REQUEST] + book.held[Kind.PENDING] for book in (state.full, state.swa))
