"""Seeded faults of a request's life: admission, growth, reclaim, caching, its end, steps of the device."""

from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from radixledger.cache import window
from radixledger.cache.decide import growth as decide_growth
from radixledger.cache.decide import requests as decide_requests
from radixledger.cache.decide import unified as decide_unified
from radixledger.cache.decide.pages import Decision
from radixledger.cache.decide.requests import Admission
from radixledger.cache.state import State
from radixledger.journal.accounts import FREE, Kind, request_account
from radixledger.journal.causes import Operation, Site, cause
from radixledger.journal.events import (
    Admitted,
    Config,
    Extended,
    Finished,
    Freed,
    Locked,
    Reclaimed,
    Repointed,
    Stepped,
    Transferred,
)
from radixledger.journal.moves import pages_of
from radixledger.journal.units import NO_PAGES, Pages, RequestId, TokenCount

from .of_pages import accounts
from .schedules import (
    admitted_twice,
    finished_under_a_step,
    hit_and_finished,
    hit_and_kept,
    hit_and_reclaimed,
    kept_side_by_side,
    reclaimed_and_finished,
    reclaimed_near_a_boundary,
    reclaimed_twice,
    reclaimed_under_a_step,
    steps_over_a_prefix,
    ten_tokens,
    two_pages,
)
from .seeded import Mutant, decides, dropped, puts, saying, where

_RETRACT = cause(Operation.RETRACT)


def site_of(event: Any) -> tuple[int, int]:
    """Operation and site of an event's cause."""
    return event.cause >> 5, event.cause & 31


def is_tail(_: State, event: Freed) -> bool:
    """Whether these are the pages behind the cached length."""
    return site_of(event)[1] == Site.TAIL


def is_of(operation: Operation) -> Any:
    """Whether an event is of this operation."""
    return lambda _, event: site_of(event)[0] == operation


def owns(state: State, request: int) -> bool:
    """Whether a request has pages in its account."""
    account = request_account(RequestId(request))
    return bool((state.full.account == account).any() or (state.swa.account == account).any())


_admit = decide_requests.admit


def _admit_anybody(state: State, rid: str, *arguments: Any, **named: Any) -> Decision[Admission]:
    known = state.rids.pop(rid, None)
    decision = _admit(state, rid, *arguments, **named)
    first = next(decision)
    if known is not None:
        state.rids[rid] = known
    yield first
    return (yield from decision)


_extend = decide_growth.extend


def extends_by(more: int) -> Any:
    """Pages are taken for so many tokens more than there are."""

    def extend(state: State, requests: NDArray[np.int64], grown: NDArray[np.int32]) -> Decision[None]:
        for event in _extend(state, requests, (grown + more).astype(np.int32)):
            assert isinstance(event, Extended)
            yield replace(event, grown=grown.astype("<i4").tobytes())

    return extend


def frontier_less(margin: Any) -> Any:
    """A frontier with another margin than the window and a page."""

    def frontier(old: int, pre: int, *, window_tokens: int, page_size: int, **_: Any) -> int:
        return max(old, (pre - int(margin(window_tokens, page_size))) // page_size * page_size)

    return frontier


_row_pages = decide_growth.row_pages
_brought = decide_requests._brought


def _forgets_the_cursor(patch: Any) -> None:
    patch.setattr(decide_requests, "_brought", lambda *a: _brought(*a)._replace(released=0))
    patch.setattr(decide_unified, "check_slice", lambda *_: None)


def needs_pages(state: State, event: Extended) -> int:
    """Pages that the first request of a growth crosses into."""
    length = int(state.rows.length[state.row_of(int.from_bytes(event.requests[:8], "little"))])
    grown = int(pages_of(event.grown)[0])
    return -(-(length + grown) // state.page_size) - -(-length // state.page_size)


def room_left(state: State, event: Reclaimed) -> int:
    """Tokens between a reclaim and the last page boundary of the row: what a path ending there would have live."""
    length = int(state.rows.length[state.row_of(event.request)])
    return length // state.page_size * state.page_size - event.stop


REQUESTS = (
    Mutant(
        "an_admission_takes_no_lock",
        "a request starts behind a prefix that nothing shields",
        decides(Locked, as_=where(is_of(Operation.ADMIT), dropped)),
        hit_and_finished,
        "the first Admitted behind a node (no Locked follows it)",
        lambda _, event: isinstance(event, Admitted) and event.node != 0,
        "who_names_a_path_holds_it", "admission_out_of_line", ("R144", "R137"),
    ),
    Mutant(
        "an_admission_counts_a_page_too_many",
        "the prefix of a row is a page longer than the path that it names",
        decides(Admitted, as_=where(lambda _, event: event.node != 0, lambda _, event: (replace(event, prefix=event.prefix + 4),))),
        hit_and_finished,
        "the first Admitted whose prefix is not the length of its path",
        lambda state, event: isinstance(event, Admitted) and event.prefix != state.nodes[event.node].end * state.page_size,
        "an_admission_begins_behind_a_live_window", "path_length_differs", ("R128", "R63"),
    ),
    Mutant(
        "an_admission_leaves_nothing_to_compute",
        "a prompt is as long as what the tree has of it",
        decides(Admitted, as_=where(lambda _, event: event.node != 0, lambda _, event: (replace(event, prompt=event.prefix),))),
        hit_and_finished,
        "the first Admitted whose prefix is its whole prompt",
        lambda _, event: isinstance(event, Admitted) and event.prefix >= event.prompt,
        "an_admission_begins_behind_a_live_window", "admission_out_of_line", ("R144",),
    ),
    Mutant(
        "a_request_is_admitted_twice",
        "a request id that is live is admitted again",
        puts(decide_requests, "admit", _admit_anybody),
        admitted_twice,
        "the first Admitted of an id that is live",
        lambda state, event: isinstance(event, Admitted) and event.rid in state.rids,
        "a_request_is_admitted_once", "admission_out_of_line", ("R28",),
    ),
    Mutant(
        "a_growth_takes_a_page_too_many",
        "accounting is over by exactly one page",
        puts(decide_growth, "extend", extends_by(4)),
        two_pages,
        "the first Extended that takes more pages than its tokens cross into",
        lambda state, event: isinstance(event, Extended) and len(event.full) // 4 > needs_pages(state, event),
        "pages_are_taken_as_tokens_need_them", "pages_differ_from_growth", ("R46", "R134"), ("B20",),
    ),
    Mutant(
        "a_growth_takes_a_page_too_few",
        "the last page of a chunk is not taken",
        puts(decide_growth, "extend", extends_by(-4)),
        two_pages,
        "the first Extended that takes fewer pages than its tokens cross into",
        lambda state, event: isinstance(event, Extended) and len(event.full) // 4 < needs_pages(state, event),
        "pages_are_taken_as_tokens_need_them", "pages_differ_from_growth", ("R46",),
    ),
    Mutant(
        "the_published_frontier",
        "pre - max(W, P): a leaf ends up shorter than the window",
        puts(window, "frontier", frontier_less(max)),
        ten_tokens,
        "the first Reclaimed that leaves a path on the last page boundary less than a window",
        lambda state, event: isinstance(event, Reclaimed) and room_left(state, event) < 5,
        "a_reclaim_leaves_a_window", "reclaim_out_of_line", ("R130", "R134", "R274"), ("B1", "B2", "B4", "B18"),
        Config(4, 40, 40, 5, rows=8, context_pages=16),
    ),
    Mutant(
        "a_frontier_without_a_margin",
        "pre - W with P > W: the last leaf is all tombstone",
        puts(window, "frontier", frontier_less(min)),
        reclaimed_near_a_boundary,
        "the first Reclaimed that leaves a path on the last page boundary less than a window",
        lambda state, event: isinstance(event, Reclaimed) and room_left(state, event) < 4,
        "a_reclaim_leaves_a_window", "reclaim_out_of_line", ("R130", "R134", "R78"), ("B3",),
        Config(8, 40, 40, 4, rows=8, context_pages=16),
    ),
    Mutant(
        "a_cursor_begins_anew",
        "a reclaim says that it began at the start of the sequence",
        decides(Reclaimed, as_=saying(start=TokenCount(0))),
        reclaimed_twice,
        "the first Reclaimed that begins below the cursor",
        lambda state, event: isinstance(event, Reclaimed) and event.start < state.rows.cursor[state.row_of(event.request)],
        "a_cursor_never_moves_backward", "cursor_moved_backward", ("R132", "R133", "R129"),
    ),
    Mutant(
        "a_reclaim_takes_the_trees_window",
        "a request gives back from the beginning of its row",
        puts(decide_growth, "row_pages", lambda state, row, _, stop: _row_pages(state, row, 0, stop)),
        hit_and_reclaimed,
        "the first Reclaimed that unmaps a page of the tree",
        lambda state, event: isinstance(event, Reclaimed) and any(each & 7 == Kind.TREE for each in accounts(state, event.full)),
        "a_page_is_given_by_its_owner", "foreign_free", ("R127", "R131"),
    ),
    Mutant(
        "a_reclaim_moves_its_cursor_only",
        "the cursor passes pages that are never given back",
        decides(Reclaimed, as_=saying(full=NO_PAGES, swa=NO_PAGES)),
        reclaimed_twice,
        "the first Reclaimed over the request's own pages that frees none",
        lambda _, event: isinstance(event, Reclaimed) and event.stop > event.start and not event.swa,
        "a_reclaim_gives_up_what_lies_between", "reclaim_out_of_line", ("R131", "R127"),
    ),
    Mutant(
        "a_reclaim_forgets_the_running_step",
        "the window of a step in flight is given back",
        puts(decide_growth, "_oldest_in_flight", lambda *arguments: arguments[-1]),
        reclaimed_under_a_step,
        "the first Reclaimed above what the running step reads",
        lambda state, event: isinstance(event, Reclaimed) and any(event.stop > max(0, step.starts[0] - 7) for step in state.running.values()),
        "a_running_step_keeps_its_window", "freed_under_a_step", ("R151",),
    ),
    Mutant(
        "a_request_ends_under_a_step",
        "a request ends while the device reads it",
        puts(decide_requests, "refuse_in_flight", lambda *_: None),
        finished_under_a_step,
        "the first Finished of a request that a running step reads",
        lambda state, event: isinstance(event, Finished) and any(event.request in step.requests for step in state.running.values()),
        "a_request_outlives_the_steps_that_read_it", "freed_under_a_step", ("R151",),
    ),
    Mutant(
        "a_step_writes_over_the_prefix",
        "a device step begins at the start of the sequence, over what the tree has",
        decides(Stepped, as_=lambda _, event: (replace(event, starts=bytes(len(event.starts))),)),
        steps_over_a_prefix,
        "the first Stepped that writes below the protected length",
        lambda state, event: isinstance(event, Stepped) and 0 in pages_of(event.starts) and bool(state.rows.protected.any()),
        "a_step_writes_behind_what_is_the_trees", "step_over_the_tree", ("R151", "R127"),
    ),
    Mutant(
        "an_insert_forgets_what_was_reclaimed",
        "the released length is not handed to the insert: the tree claims dead SWA",
        _forgets_the_cursor,
        reclaimed_and_finished,
        "the first Transferred of a window page that the request does not have",
        lambda state, event: isinstance(event, Transferred) and bool(event.swa) and not state.swa.all_with(event.swa, event.giver),
        "a_page_is_given_by_its_owner", "two_owners", ("R96", "R94"), ("B7",),
    ),
    Mutant(
        "a_row_keeps_its_duplicates",
        "after caching, a row goes on naming its own pages, which were freed as duplicates",
        decides(Repointed, as_=saying(full=NO_PAGES)),
        kept_side_by_side,
        "the first Repointed that leaves a freed page in the row",
        lambda state, event: isinstance(event, Repointed) and FREE in accounts(
            state, Pages(state.rows.full_table[state.row_of(event.request), : event.protected // 4].tobytes())
        ),
        "a_repointed_row_names_its_path", "repointed_to_too_few", ("R149", "R260"),
    ),
    Mutant(
        "a_protected_length_stays_behind",
        "after caching, the protected length is what it was before",
        decides(Repointed, as_=lambda _, event: (replace(event, protected=event.start),)),
        hit_and_kept,
        "the first Repointed whose protected length is not that of its path",
        lambda state, event: isinstance(event, Repointed) and event.protected != state.nodes[event.node].end * state.page_size,
        "a_repointed_row_names_its_path", "path_length_differs", ("R149", "R128", "R133"), ("B1",),
    ),
)  # fmt: skip
"""In the order of a request's life, more or less."""
