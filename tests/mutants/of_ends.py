"""Seeded faults of how requests end, and of what they give back."""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from radixledger.cache.decide import requests as decide_requests
from radixledger.cache.decide.pages import Decision
from radixledger.cache.state import State
from radixledger.journal.accounts import FREE, Kind
from radixledger.journal.causes import Operation, cause
from radixledger.journal.events import (
    AnyEvent,
    Finished,
    Freed,
    Locked,
    Retracted,
    Unlocked,
)
from radixledger.journal.units import Pages, TokenCount

from .of_pages import accounts
from .of_requests import is_of, is_tail, owns
from .schedules import (
    hit_and_aborted,
    hit_and_finished,
    hit_and_kept,
    hit_and_retracted,
    with_a_tail,
)
from .seeded import Mutant, decides, dropped, puts, saying, twice, where

_RETRACT = cause(Operation.RETRACT)
_surrender = decide_requests._surrender


def _row_from_its_beginning(state: State, event: Freed) -> Iterator[AnyEvent]:
    row = state.rows.full_table[state.row_of(event.request)]
    full = Pages(row[row != 0].tobytes())
    unmapped, swa = state.mapping.mapped(full)
    yield replace(event, full=full, unmapped=unmapped, swa=swa)


def _end_before_the_unlock(state: State, event: Unlocked | Retracted) -> Iterator[AnyEvent]:
    if isinstance(event, Unlocked):
        tokens = TokenCount(int(state.rows.length[state.row_of(event.request)]))
        yield Retracted(event.request, tokens, _RETRACT)
        yield event
    elif event.request in state.requests:
        yield event


def _from_the_protected_length(state: State, request: Any, _: int, operation: Operation) -> Decision[None]:
    kept = int(state.rows.protected[request.row]) // state.page_size
    return _surrender(state, request, kept, operation)


ENDS = (
    Mutant(
        "an_end_keeps_its_tail",
        "the unfinished page behind the cached length is not freed",
        decides(Freed, as_=where(is_tail, dropped)),
        with_a_tail,
        "the first Finished of a request that still owns a page",
        lambda state, event: isinstance(event, Finished) and owns(state, event.request),
        "an_ended_request_owns_nothing", "request_ended_with_pages", ("R148", "R3"), ("B20",),
    ),
    Mutant(
        "an_end_frees_its_tail_twice",
        "the unfinished page is freed by the cache and by the request",
        decides(Freed, as_=where(is_tail, twice)),
        with_a_tail,
        "the second Freed of that page",
        lambda state, event: isinstance(event, Freed) and FREE in accounts(state, event.full),
        "a_page_is_freed_once", "double_free", ("R62", "R147"),
    ),
    Mutant(
        "an_abort_frees_what_the_tree_gave",
        "an aborted request frees its row from the beginning",
        decides(Freed, as_=where(is_of(Operation.ABORT), _row_from_its_beginning)),
        hit_and_aborted,
        "the first Freed of an abort that names a page of the tree",
        lambda state, event: isinstance(event, Freed) and any(each & 7 == Kind.TREE for each in accounts(state, event.full)),
        "a_page_is_given_by_its_owner", "foreign_free", ("R141", "R147", "R127"), ("B22",),
    ),
    Mutant(
        "a_finish_frees_what_it_cached",
        "a finished request frees from its protected length on, not from the cached one",
        puts(decide_requests, "_surrender", _from_the_protected_length),
        hit_and_finished,
        "the first Freed of a finish that names a page of the tree",
        lambda state, event: isinstance(event, Freed) and any(each & 7 == Kind.TREE for each in accounts(state, event.full)),
        "a_page_is_given_by_its_owner", "foreign_free", ("R62", "R148"), ("B1",),
    ),
    Mutant(
        "a_finish_keeps_its_lock",
        "the receipt of a finished request is never released",
        decides(Unlocked, as_=where(is_of(Operation.FINISH), dropped)),
        hit_and_finished,
        "the first Finished of a request that has a receipt",
        lambda state, event: isinstance(event, Finished) and state.requests[event.request].receipt is not None,
        "an_ended_request_holds_no_lock", "unbalanced_lock", ("R138", "R113"),
    ),
    Mutant(
        "a_retraction_ends_before_it_releases",
        "the request is reset, then its receipt is released",
        decides(Unlocked, Retracted, as_=where(is_of(Operation.RETRACT), _end_before_the_unlock)),
        hit_and_retracted,
        "the first Retracted of a request that has a receipt",
        lambda state, event: isinstance(event, Retracted) and state.requests[event.request].receipt is not None,
        "an_ended_request_holds_no_lock", "unbalanced_lock", ("R140",),
    ),
    Mutant(
        "an_unfinished_request_keeps_its_old_lock",
        "the new path is locked, the old receipt is not released",
        decides(Unlocked, as_=where(is_of(Operation.UNFINISHED), dropped)),
        hit_and_kept,
        "the first Locked of a request that has a receipt (no Unlocked follows it)",
        lambda state, event: isinstance(event, Locked) and event.request in state.requests and state.requests[event.request].receipt is not None,
        "a_replaced_receipt_is_given_back", "unbalanced_lock", ("R139", "R113"), ("B16",),
    ),
    Mutant(
        "a_lock_is_released_to_the_root",
        "a receipt is released without its boundary: others' counts go down",
        decides(Unlocked, as_=where(lambda _, event: event.boundary != 0, saying(boundary=0))),
        hit_and_finished,
        "the first Unlocked with another boundary than the request's receipt has",
        lambda state, event: isinstance(event, Unlocked) and (event.node, event.boundary) != (state.requests[event.request].receipt or (0, 0))[:2],
        "a_receipt_is_released_by_its_holder", "unbalanced_lock", ("R113", "R112", "R120"), ("B9", "B16"),
    ),
    Mutant(
        "a_lock_is_released_twice",
        "the receipt of a finished request is released by the cache and by the request",
        decides(Unlocked, as_=where(is_of(Operation.FINISH), twice)),
        hit_and_finished,
        "the first Unlocked of a request without a receipt",
        lambda state, event: isinstance(event, Unlocked) and state.requests[event.request].receipt is None,
        "a_receipt_is_released_by_its_holder", "unbalanced_lock", ("R113", "R122"), ("B9", "B13"),
    ),
    Mutant(
        "a_finish_tells_more_than_was_cached",
        "the cached length is a page longer than the path",
        decides(Finished, as_=lambda _, event: (replace(event, cached=event.cached + 4),)),
        with_a_tail,
        "the first Finished whose cached length is not that of its path",
        lambda state, event: isinstance(event, Finished) and event.cached != state.nodes[event.node].end * state.page_size,
        "an_end_tells_what_was_there", "path_length_differs", ("R63", "R148"), ("B24", "B25"),
    ),
)  # fmt: skip
"""Ends, and locks."""
