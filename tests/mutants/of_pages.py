"""Seeded faults of allocation, frees, free groups and mapping."""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from radixledger.cache.decide import growth as decide_growth
from radixledger.cache.decide import pages as decide_pages
from radixledger.cache.decide.pages import Decision
from radixledger.cache.ledger import PoolBook
from radixledger.cache.state import State
from radixledger.journal.accounts import FREE, PENDING, Kind, request_account
from radixledger.journal.causes import Operation, Site, cause
from radixledger.journal.events import Allocated, AnyEvent, Freed, GroupFlushed, GroupOpened, Remapped
from radixledger.journal.moves import pages_of
from radixledger.journal.units import NO_PAGES, UNBOUND, Pages

from .schedules import (
    flushed_twice,
    freed_twice,
    frees_in_a_row,
    frees_of_the_tree,
    full_before_the_next_allocation,
    in_a_group,
    one_at_a_time,
    opened_twice,
    remapped,
    remapped_onto_a_window,
    whole_pool,
)
from .seeded import Mutant, decides, puts, saying

NOBODYS = int(request_account(UNBOUND))
_COMPOSITE = cause(Operation.FREE, Site.COMPOSITE)


def accounts(state: State, pages: Pages) -> list[int]:
    """The FULL accounts of pages before an event."""
    return [int(account) for account in state.full.holders(pages)]


def shifted(book: PoolBook, count: int, by: int) -> Pages:
    """The next free pages, each counted `by` too far."""
    return Pages((pages_of(bytes(book.free[: count * 4])) + by).astype("<i4").tobytes())


def _all_lawful(_: State, __: PoolBook, pages: Pages, *___: Any) -> tuple[list[Any], list[tuple[int, Pages]]]:
    return [], [(NOBODYS, pages)]


def _room_alone(state: State, needed: int, request: int = UNBOUND) -> None:
    if state.full.available < needed or state.swa.available < needed:
        raise decide_pages.short(state, needed, request)


def _remap_unseen(state: State, source: Pages, target: Pages) -> Decision[None]:
    yield Remapped(NOBODYS, NOBODYS, source, target, state.mapping.swa_pages(source))


def _flush_unasked(state: State) -> Decision[None]:
    yield GroupFlushed(Pages(bytes(state.full.pending)), Pages(bytes(state.swa.pending)))


def _open_always(_: State) -> Decision[None]:
    yield GroupOpened()


def _translated_again(state: State, event: GroupFlushed) -> Iterator[AnyEvent]:
    yield replace(event, swa=state.mapping.swa_pages(event.full))


def no_dangling(patch: Any) -> None:
    """Both modules that hand pages out."""
    for module in (decide_pages, decide_growth):
        patch.setattr(module, "check_free_pages", _room_alone)


PAGES = (
    Mutant(
        "an_allocation_comes_one_window_short",
        "two pools give unequally: the last FULL page has no SWA page",
        decides(Allocated, as_=lambda _, event: (replace(event, swa=Pages(event.swa[:-4])),)),
        one_at_a_time,
        "the first Allocated with fewer SWA than FULL pages",
        lambda _, event: isinstance(event, Allocated) and len(event.swa) < len(event.full),
        "an_allocation_takes_pages_in_pairs", "one_sided_allocation", ("R45", "R28"),
    ),
    Mutant(
        "freed_pages_pass_the_group",
        "what is freed inside a free group is free at once",
        decides(Freed, as_=saying(to=FREE)),
        in_a_group,
        "the first Freed to `free` while a group is open",
        lambda state, event: isinstance(event, Freed) and state.group_open and event.to == FREE,
        "what_is_given_up_goes_where_the_group_says", "group_not_kept", ("R29", "R43", "R55"),
    ),
    Mutant(
        "pending_pages_are_handed_out",
        "the allocator takes pages out of an open free group",
        puts(PoolBook, "next_free", lambda book, count: Pages(bytes((book.pending + book.free)[: count * 4]))),
        in_a_group,
        "the first Allocated of a page in `pending`",
        lambda state, event: isinstance(event, Allocated) and PENDING in accounts(state, event.full),
        "only_free_pages_are_allocated", "pending_page_allocated", ("R29",),
    ),
    Mutant(
        "the_same_pages_are_handed_out_again",
        "the allocator forgets that it handed pages out",
        puts(PoolBook, "next_free", lambda _, count: Pages(b"".join(page.to_bytes(4, "little") for page in range(1, count + 1)))),
        one_at_a_time,
        "the first Allocated of a page that a request has",
        lambda state, event: isinstance(event, Allocated) and NOBODYS in accounts(state, event.full),
        "only_free_pages_are_allocated", "two_owners", ("R28", "R3"), ("B22",),
    ),
    Mutant(
        "pages_are_counted_one_too_far",
        "page ids are shifted up by one, so that the last one is none of the pool",
        puts(PoolBook, "next_free", lambda book, count: shifted(book, count, 1)),
        whole_pool,
        "the first Allocated of a page beyond the capacity",
        lambda state, event: isinstance(event, Allocated) and max(pages_of(event.full)) > state.full.capacity,
        "only_free_pages_are_allocated", "cross_rank_touch", ("R52", "R50", "R47"),
    ),
    Mutant(
        "the_padding_sink_is_handed_out",
        "page ids are shifted down by one, so that page 0 is one of them",
        puts(PoolBook, "next_free", lambda book, count: shifted(book, count, -1)),
        one_at_a_time,
        "the first Allocated of page 0",
        lambda _, event: isinstance(event, Allocated) and 0 in pages_of(event.full),
        "only_free_pages_are_allocated", "two_owners", ("R51",),
    ),
    Mutant(
        "a_free_forgets_the_mapping",
        "SWA pages are freed, the FULL pages keep leading to them",
        decides(Freed, as_=saying(unmapped=NO_PAGES)),
        freed_twice,
        "the first Freed of SWA pages that unmaps nothing",
        lambda _, event: isinstance(event, Freed) and bool(event.swa) and not event.unmapped,
        "a_window_goes_with_its_mapping", "stale_mapping", ("R39", "R43", "R54", "R41"), ("B8",),
    ),
    Mutant(
        "a_second_free_is_taken",
        "whoever frees is believed: a page that is free is freed again",
        puts(decide_pages, "_lots", _all_lawful),
        freed_twice,
        "the first Freed of a page in `free`",
        lambda state, event: isinstance(event, Freed) and FREE in accounts(state, event.full),
        "a_page_is_freed_once", "double_free", ("R3", "R50"),
    ),
    Mutant(
        "a_foreign_free_is_taken",
        "whoever frees is believed: a page of the tree goes",
        puts(decide_pages, "_lots", _all_lawful),
        frees_of_the_tree,
        "the first Freed of a page of the tree by an account of a request",
        lambda state, event: isinstance(event, Freed) and any(each & 7 == Kind.TREE for each in accounts(state, event.full)),
        "a_page_is_given_by_its_owner", "foreign_free", ("R3", "R127", "R16"), ("B5", "B22"),
    ),
    Mutant(
        "a_page_is_freed_out_of_a_live_row",
        "an allocator call takes a page that stands in the row of a live request",
        puts(decide_pages, "_check_row", lambda *_: None),
        frees_in_a_row,
        "the first Freed by `free/composite` of a live request's own page",
        lambda state, event: isinstance(event, Freed) and event.cause == _COMPOSITE and event.giver >> 3 in state.requests,
        "no_row_loses_its_page_to_a_free", "row_page_freed", ("R4", "R62"),
    ),
    Mutant(
        "pages_are_handed_out_while_a_mapping_dangles",
        "between `free_full` and `free_swa` of a page others are allocated",
        no_dangling,
        full_before_the_next_allocation,
        "the first Allocated while a freed FULL page is still mapped",
        lambda state, event: isinstance(event, Allocated) and state.dangling > 0,
        "nothing_is_handed_out_while_a_mapping_dangles", "stale_mapping", ("R54", "R38"), ("B8",),
    ),
    Mutant(
        "a_transfer_leaves_the_mapping_behind",
        "a mapping is moved to other FULL pages, and stays where it was as well",
        decides(Remapped, as_=saying(source=NO_PAGES)),
        remapped,
        "the first Remapped that clears nothing",
        lambda _, event: isinstance(event, Remapped) and not event.source,
        "a_mapping_moves_as_a_whole", "duplicate_mapping", ("R91", "R155"),
    ),
    Mutant(
        "a_transfer_overwrites_a_mapping",
        "the target of a mapping is not asked whether it has one",
        puts(decide_pages, "remap", _remap_unseen),
        remapped_onto_a_window,
        "the first Remapped onto a FULL page that is mapped",
        lambda state, event: isinstance(event, Remapped) and bool(state.mapping.mapped(event.target)[0]),
        "a_mapping_moves_as_a_whole", "duplicate_mapping", ("R91",),
    ),
    Mutant(
        "a_flush_translates_again",
        "a free group keeps FULL ids and looks their SWA pages up when it ends",
        decides(GroupFlushed, as_=_translated_again),
        in_a_group,
        "the first GroupFlushed of an SWA page that is not pending",
        lambda state, event: isinstance(event, GroupFlushed) and not set(pages_of(event.swa)) <= set(pages_of(bytes(state.swa.pending))),
        "a_flushed_group_gives_all_that_is_pending", "reserved_page_freed", ("R44",), ("B6", "B17"),
    ),
    Mutant(
        "a_flush_leaves_windows_behind",
        "a free group ends, its SWA pages stay pending",
        decides(GroupFlushed, as_=saying(swa=NO_PAGES)),
        in_a_group,
        "the first GroupFlushed without the pending SWA pages",
        lambda state, event: isinstance(event, GroupFlushed) and bool(state.swa.pending) and not event.swa,
        "a_flushed_group_gives_all_that_is_pending", "group_not_kept", ("R44", "R42"),
    ),
    Mutant(
        "a_group_ends_twice",
        "a free group is flushed that is not open",
        puts(decide_pages, "flush_group", _flush_unasked),
        flushed_twice,
        "the first GroupFlushed while no group is open",
        lambda state, event: isinstance(event, GroupFlushed) and not state.group_open,
        "a_group_is_flushed_once", "group_not_kept", ("R44",),
    ),
    Mutant(
        "groups_nest",
        "a second beginning of a free group begins another",
        puts(decide_pages, "open_group", _open_always),
        opened_twice,
        "the first GroupOpened while a group is open",
        lambda state, event: isinstance(event, GroupOpened) and state.group_open,
        "free_groups_do_not_nest", "group_not_kept", ("R49",),
    ),
)  # fmt: skip
"""In the order of the pages' life."""
