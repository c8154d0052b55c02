"""How events change requests and their rows: admission, growth, reclaim, re-pointing, ends, steps.

Part of `evolve`, with its rule: total, and what does not add up is noted. A row names pages of positions
[0, protected): the tree's; [protected, length): the request's own, its SWA part given back below `cursor`.
"""

import numpy as np

from radixledger.cache import window
from radixledger.cache.fold.pages import map_pages, move, move_both, note, unmap_pages
from radixledger.cache.rows import Rows
from radixledger.cache.running import Running
from radixledger.cache.spare import answer, ask, asks, withdraw
from radixledger.cache.standing import esteem, priority_of
from radixledger.cache.state import Node, Request, State
from radixledger.cache.tree import touch
from radixledger.journal.accounts import FREE, Pool, request_account
from radixledger.journal.events import (
    Aborted,
    Admitted,
    Bound,
    Extended,
    Finished,
    Phase,
    Reclaimed,
    Repointed,
    Retracted,
    Stepped,
)
from radixledger.journal.moves import ids_of, pages_of, takings
from radixledger.journal.units import NO_PAGES, UNBOUND, Pages


def path_pages(node: Node, first: int = 0) -> Pages:
    """The FULL pages of positions [first, node.end) of the path to `node`."""
    parts: list[bytes] = []
    walk: Node | None = node
    while walk is not None and walk.end > first:
        parts.append(walk.full)
        walk = walk.parent
    parts.reverse()
    pages = b"".join(parts)
    return Pages(pages[len(pages) - (node.end - first) * 4 :])


def admitted(state: State, event: Admitted) -> None:
    rows, row = state.rows, state.row_of(event.request)
    if rows.request[row]:
        note(state, "a_row_has_one_request", f"row {row} belongs to request {rows.request[row]}")
    elif rows.free and rows.free[-1] == row:
        rows.free.pop()
    elif row in rows.free:
        rows.free.remove(row)
    node = state.nodes[event.node]
    rows.request[row], rows.living = event.request, b""
    rows.length[row] = rows.protected[row] = event.prefix
    _write(rows.full_at, rows, row, 0, path_pages(node))
    _move_cursor(state, row, event.prefix)
    _show_window(state, row, node.end)
    request = Request(
        event.request, event.rid, row, event.prompt, event.prefix, event.node, event.namespace, event.priority
    )  # fmt: skip
    state.requests[event.request] = request
    state.rids[event.rid] = event.request
    state.next_request = max(state.next_request, event.request // (rows.mask + 1) + 1)
    ask(state, asks(state, request))
    if state.graded:
        esteem(state, node, priority_of(state, event.request))


def extended(state: State, event: Extended) -> None:
    rows = state.rows
    batch = rows.at(event.requests)
    if event.takers:
        _take_pages(state, event)
    if event.grown == batch.ones:
        np.add(rows.length, batch.step, rows.length)
    else:
        rows.length[batch.at] = rows.length[batch.at] + pages_of(event.grown)


def _take_pages(state: State, event: Extended) -> None:
    """Hand each taker its pages; they go behind the last page of its row."""
    rows, page_size = state.rows, state.page_size
    if event.swa:
        map_pages(state, event.full, event.swa)
    for request, full, swa in takings(event):
        row = request & rows.mask
        move_both(state, full, swa, FREE, request_account(request))
        first = -(-rows.length_at[row] // page_size)
        _write(rows.full_at, rows, row, first, full)
        _write(rows.swa_at, rows, row, first, swa)
        rows.last_page[row] = int.from_bytes(full[-4:], "little")


def bound(state: State, event: Bound) -> None:
    unbound, account = request_account(UNBOUND), request_account(event.request)
    move_both(state, event.full, event.swa, unbound, account)
    if event.length >= 0:
        _rewrite_tail(state, event)


def _rewrite_tail(state: State, event: Bound) -> None:
    """The row ends as the event says: other pages from `start` on, or none. Its cursor stays within it."""
    rows, row, page_size = state.rows, state.row_of(event.request), state.page_size
    first, held = event.start // page_size, window.pages_for(int(rows.length[row]), page_size)
    rows.full_table[row, first:held] = 0
    rows.swa_table[row, first:held] = 0
    if event.row:
        _write(rows.full_at, rows, row, first, event.row)
        _write(rows.swa_at, rows, row, first, state.mapping.swa_pages(event.row))
    rows.length[row] = event.length
    last = window.pages_for(event.length, page_size)
    rows.last_page[row] = rows.full_table[row, last - 1] if last else 0
    if rows.cursor[row] > event.length:
        _move_cursor(state, row, event.length)


def reclaimed(state: State, event: Reclaimed) -> None:
    rows, row = state.rows, state.row_of(event.request)
    if event.stop < event.start or event.start != rows.cursor[row]:
        note(
            state, "a_cursor_never_moves_backward", f"request {event.request}: {event.start} to {event.stop}"
        )
    unmap_pages(state, event.full, event.swa)
    move(state, state.swa, event.swa, request_account(event.request), event.to)
    state.totals.swa_evicted += len(event.swa) >> 2
    rows.swa_table[row, rows.cursor[row] // state.page_size : event.stop // state.page_size] = 0
    _move_cursor(state, row, event.stop)


def repointed(state: State, event: Repointed) -> None:
    rows, row, page_size = state.rows, state.row_of(event.request), state.page_size
    request = state.requests[event.request]
    node = state.nodes[event.node]
    if event.protected < rows.protected[row] or node.end * page_size != event.protected:
        note(state, "a_protected_length_never_moves_backward", f"request {event.request}: {event.protected}")
    if event.full:
        _write(rows.full_at, rows, row, event.start // page_size, event.full)
    rows.protected[row] = event.protected
    before, request.node = asks(state, request), event.node
    after = asks(state, request)
    if after is not before:
        ask(state, after)
        withdraw(state, before)
    request.source = NO_PAGES
    _move_cursor(state, row, max(int(rows.cursor[row]), event.protected))
    _show_window(state, row, node.end)
    touch(state, node)
    if state.graded:
        esteem(state, node, priority_of(state, event.request))


_NO_STATES = bytes(12)


def ended(state: State, event: Finished | Retracted | Aborted) -> None:
    request = state.requests.pop(event.request)
    if request.receipt is not None:
        note(state, "an_ended_request_holds_no_lock", f"request {event.request}: {request.receipt}")
    rows, row = state.rows, request.row
    if rows.states[row].tobytes() != _NO_STATES:
        note(
            state,
            "an_ended_request_holds_no_state",
            f"request {event.request}: {rows.states[row].tolist()}",
            Pool.RECURRENT,
        )
    rows.states[row] = rows.tracked[row] = 0
    used = window.pages_for(int(rows.length[row]), state.page_size)
    rows.full_table[row, :used] = 0
    rows.swa_table[row, :used] = 0
    rows.length[row] = rows.cursor[row] = rows.protected[row] = rows.reclaim_at[row] = 0
    rows.last_page[row] = 0
    rows.request[row], rows.living = 0, b""
    rows.free.append(row)
    if state.rids.get(request.rid) == event.request:
        del state.rids[request.rid]
    asked = asks(state, request)
    if isinstance(event, Finished):
        node = state.nodes[event.node]
        touch(state, node)
        if state.config.eviction == "priority":
            esteem(state, node, request.priority)
        if asked is not None and not node.children:
            answer(state, node, asked)
            return
    withdraw(state, asked)


def stepped(state: State, event: Stepped) -> None:
    if event.phase == Phase.ENDED:
        if state.running.pop(event.step, None) is None:
            note(state, "a_step_ends_once", f"step {event.step} was not running")
        return
    if event.step in state.running:
        note(state, "a_step_begins_once", f"step {event.step} is running")
    for request in ids_of(event.requests).tolist():
        if request in state.requests:
            state.requests[request].source = NO_PAGES
    if len(event.requests) & 7 or (len(event.starts) | len(event.stops)) & 3:
        raise ValueError(f"step {event.step} has columns of no whole numbers")
    state.running[event.step] = Running(event.requests, event.starts, event.stops)


def _write(table: memoryview, rows: Rows, row: int, first: int, pages: Pages) -> None:
    """Name `pages` at positions [first, first + n) of a row of one of the page tables."""
    count, width = len(pages) >> 2, rows.width
    if not 0 <= first <= width - count:
        raise IndexError(f"row {row} has no pages [{first}, {first + count})")
    if count:
        at = row * width + first
        table[at : at + count] = memoryview(pages).cast("i")


def _show_window(state: State, row: int, stop: int) -> None:
    """Of the tree's pages [0, stop) a row shows the SWA of the last window only: what its lock holds."""
    rows = state.rows
    first = max(0, stop - state.tail_pages)
    rows.swa_table[row, :first] = 0
    if stop > first:
        shown = Pages(rows.full_table[row, first:stop].tobytes())
        _write(rows.swa_at, rows, row, first, state.mapping.swa_pages(shown))


def _move_cursor(state: State, row: int, cursor: int) -> None:
    state.rows.cursor[row] = cursor
    state.rows.reclaim_at[row] = state.reclaim_due(cursor)
