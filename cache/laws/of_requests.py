"""The laws of requests: rows agree with the tree and the books, lengths line up, every window can be read.

A row is [0, protected): the path of the request's node; [protected, held): its own pages; behind that nothing.
Its SWA is shown for the last window of the path and for its own pages from the cursor on.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from radixledger.cache.digest import digest, recount
from radixledger.cache.fold.requests import path_pages
from radixledger.cache.laws.law import Breach, law, packed, shown
from radixledger.cache.state import Node, Request, State
from radixledger.cache.window import NEVER, next_reclaim, pages_for
from radixledger.journal.accounts import Pool
from radixledger.journal.units import ROOT

FROM_ROOT = 1 << 60
"""The live run of a path without a gap: as good as any window (R75)."""


class Span:
    """A live request's row, cut where its ownership changes; positions in pages.

    Raises ValueError where its length is beyond the row: what is laid out for the pages in between would be as large as that lie.
    """

    __slots__ = ("cursor", "full", "held", "length", "protected", "swa")

    def __init__(self, state: State, request: Request) -> None:
        rows, page_size = state.rows, state.page_size
        self.length = int(rows.length[request.row])
        self.protected = int(rows.protected[request.row]) // page_size
        self.cursor = int(rows.cursor[request.row]) // page_size
        self.held = pages_for(self.length, page_size)
        if self.held > rows.full_table.shape[1]:
            raise ValueError(f"request {request.id}: {self.length} tokens do not fit its row")
        self.full: NDArray[np.int32] = rows.full_table[request.row]
        self.swa: NDArray[np.int32] = rows.swa_table[request.row]


@law
def a_row_belongs_to_its_request(state: State) -> Iterator[Breach]:
    """A request stands in the row of its number, under its own name, and its number is used up."""
    rows = state.rows
    for number, request in state.requests.items():
        row = number & rows.mask
        if (request.id, request.row, int(rows.request[row])) != (number, row, number):
            yield Breach(f"request {number}: row {request.row} belongs to request {rows.request[row]}")
        if number // (rows.mask + 1) >= state.next_request:
            yield Breach(f"request {number} exists, the next is number {state.next_request} of its row")
    names = {request.rid: request.id for request in state.requests.values()}
    if names != state.rids or len(names) != len(state.requests):
        yield Breach(
            f"{len(state.requests)} requests are live, {len(state.rids)} are known by their request id"
        )


@law
def a_row_without_a_request_is_empty(state: State) -> Iterator[Breach]:
    """Free rows show no pages and have no lengths, and each waits once to be taken."""
    rows = state.rows
    free = np.setdiff1d(np.arange(rows.request.size), [request.row for request in state.requests.values()])
    if sorted(rows.free) != free.tolist():
        yield Breach(f"rows {rows.free} wait to be taken, {free.tolist()} have no request")
    numbers = (rows.request, rows.length, rows.cursor, rows.protected, rows.reclaim_at)
    used = np.any([column[free] != 0 for column in numbers], axis=0)
    used |= rows.full_table[free].any(axis=1) | rows.swa_table[free].any(axis=1)
    if used.any():
        yield Breach(f"row {shown(free[used])} has no request and is not empty")


@law
def lengths_of_a_row_line_up(state: State) -> Iterator[Breach]:
    """prefix <= protected <= cursor <= length, the first three on page boundaries, within the row (R132, R133, R136)."""
    rows, page_size = state.rows, state.page_size
    for request in state.requests.values():
        row = request.row
        lengths = request.prefix, int(rows.protected[row]), int(rows.cursor[row]), int(rows.length[row])
        aligned = not any(length % page_size for length in lengths[:3])
        if not aligned or list(lengths) != sorted(lengths) or not 0 <= lengths[0] < request.prompt:
            yield Breach(f"request {request.id}: prefix, protected, cursor, length are {lengths}")
        if lengths[3] > state.config.context_pages * page_size:
            yield Breach(f"request {request.id}: {lengths[3]} tokens do not fit its row")


@law
def a_reclaim_is_due_where_the_cursor_says(state: State) -> Iterator[Breach]:
    """The length at which decode looks again follows from the cursor; where nothing is given back it never comes."""
    config, rows = state.config, state.rows
    for request in state.requests.values():
        due = NEVER
        if config.free_out_of_window:
            due = next_reclaim(
                int(rows.cursor[request.row]),
                window_tokens=config.window_tokens,
                page_size=config.page_size,
                formula=config.formula,
            )
        if due != rows.reclaim_at[request.row]:
            found = int(rows.reclaim_at[request.row])
            yield Breach(f"request {request.id}: due at {due}, noted {found}", expected=due, found=found)


@law
def a_row_begins_with_the_path_of_its_node(state: State) -> Iterator[Breach]:
    """The protected part of a row is the path to the request's node, page by page (R149, R260)."""
    for request in state.requests.values():
        span, node = Span(state, request), state.nodes[request.node]
        path = np.frombuffer(path_pages(node), "<i4")
        if node.end != span.protected or not np.array_equal(span.full[: path.size], path):
            text = f"request {request.id} protects {span.protected} pages, node {node.id} ends at {node.end}"
            yield Breach(text, Pool.FULL, packed(path))


@law
def a_row_shows_nothing_behind_its_length(state: State) -> Iterator[Breach]:
    """Page tables name pages of [0, held) only."""
    for request in state.requests.values():
        span = Span(state, request)
        if span.full[span.held :].any() or span.swa[span.held :].any() or not span.full[: span.held].all():
            yield Breach(f"request {request.id}: {span.held} pages are held, the row shows others")


@law
def a_row_shows_the_window_that_is_mapped(state: State) -> Iterator[Breach]:
    """Shown is the SWA of the path's last window and of the request's own pages from its cursor on, and no other."""
    for request in state.requests.values():
        span = Span(state, request)
        positions = np.arange(span.held)
        tail = (positions >= span.protected - state.tail_pages) & (positions < span.protected)
        own = positions >= span.cursor
        expected = np.where(tail | own, state.mapping.swa_of[span.full[: span.held]], 0)
        wrong = span.swa[: span.held] != expected
        if wrong.any():
            text = f"request {request.id}: position {shown(positions[wrong])} shows SWA page "
            text += f"{shown(span.swa[: span.held][wrong])} instead of {shown(expected[wrong])}"
            yield Breach(text, Pool.SWA, packed(span.swa[: span.held][wrong]))


@law
def every_live_window_can_be_read(state: State) -> Iterator[Breach]:
    """The window before a request's next token, and before what a running step writes, is resident (E10, R134, R151)."""
    if not state.windowed:
        return
    need = max(state.config.window_tokens - 1, min(state.config.window_tokens, state.opened.window_need))
    starts: dict[int, int] = {request.id: Span(state, request).length for request in state.requests.values()}
    for running in state.running.values():
        for number, start in zip(running.requests, running.starts, strict=True):
            starts[number] = min(start, starts[number])
    for number, start in starts.items():
        span = Span(state, state.requests[number])
        positions = np.arange(max(0, start - need) // state.page_size, span.held)
        dead = positions[(span.swa[positions] == 0) | (span.full[positions] == 0)]
        if dead.size:
            yield Breach(f"request {number} reads back from token {start}: page {shown(dead)} of it is gone")


@law
def the_path_of_a_request_ends_in_a_live_window(state: State) -> Iterator[Breach]:
    """Where a request's protected path ends, a window of live SWA precedes, or it is live from the root (R259)."""
    for request in state.requests.values():
        run = live_run(state.nodes[request.node])
        if run < state.tail_pages:
            yield Breach(
                f"request {request.id}: {run} live pages end at node {request.node}, {state.tail_pages} are needed"
            )


def live_run(node: Node, enough: int = FROM_ROOT) -> int:
    """Pages of live SWA that end where `node` does, without a gap; counted until they are `enough`."""
    run, walk = 0, node
    while run < enough and walk.parent is not None:
        if not walk.swa:
            return run
        run += walk.pages
        walk = walk.parent
    return run if walk.parent is not None else FROM_ROOT


@law
def a_request_has_the_receipt_of_its_path(state: State) -> Iterator[Breach]:
    """A request locks the node where its path ends, and nothing when it has none (R137, R139)."""
    for request in state.requests.values():
        anchor = request.receipt.node if request.receipt else ROOT
        if anchor != request.node:
            yield Breach(f"request {request.id} ends at node {request.node} and locks node {anchor}")


@law
def a_running_step_has_live_requests(state: State) -> Iterator[Breach]:
    """No request ends while the device reads it (R151)."""
    for step, running in state.running.items():
        gone = [number for number in running.requests if number not in state.requests]
        if gone:
            yield Breach(f"step {step} runs requests {gone}, which are not live")


@law
def the_digest_equals_a_recount(state: State) -> Iterator[Breach]:
    """The sums that are kept beside the state are the state's."""
    kept, counted = digest(state), recount(state)
    if kept != counted:
        yield Breach(f"kept {kept.hex()}, counted {counted.hex()}")


LAWS = (
    a_row_belongs_to_its_request,
    a_row_without_a_request_is_empty,
    lengths_of_a_row_line_up,
    a_reclaim_is_due_where_the_cursor_says,
    a_row_begins_with_the_path_of_its_node,
    a_row_shows_nothing_behind_its_length,
    a_row_shows_the_window_that_is_mapped,
    every_live_window_can_be_read,
    the_path_of_a_request_ends_in_a_live_window,
    a_request_has_the_receipt_of_its_path,
    a_running_step_has_live_requests,
    the_digest_equals_a_recount,
)
