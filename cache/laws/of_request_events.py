"""The laws of events of requests: who may begin where, what a row takes and gives, what an end leaves behind.

Part of `laws.of_events`.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from radixledger.cache.fold.requests import path_pages
from radixledger.cache.laws.event_law import LAWFUL, event_law
from radixledger.cache.laws.law import Breach, packed, shown
from radixledger.cache.laws.of_requests import live_run
from radixledger.cache.laws.of_tree_events import has_a_tree
from radixledger.cache.ledger import PoolBook
from radixledger.cache.state import State
from radixledger.journal.accounts import Pool, request_account
from radixledger.journal.events import (
    Aborted,
    Admitted,
    Extended,
    Finished,
    Phase,
    Reclaimed,
    Repointed,
    Retracted,
    Stepped,
)
from radixledger.journal.moves import ids_of, pages_of

Ending = Finished | Retracted | Aborted


@event_law
def an_admission_begins_behind_a_live_window(state: State, event: Admitted) -> Sequence[Breach]:
    """A row begins with whole pages of the tree that a window ends with, and leaves a token to compute (R73, R144)."""
    found: list[Breach] = []
    node = state.nodes[event.node]
    if event.prefix != node.end * state.page_size or not 0 <= event.prefix < event.prompt:
        text = f"{event.prefix} tokens of {event.prompt}; node {node.id} ends at {node.end * state.page_size}"
        found.append(Breach(text, expected=node.end * state.page_size, found=event.prefix))
    if has_a_tree(state) and node.parent is not None and live_run(node, state.tail_pages) < state.tail_pages:
        found.append(
            Breach(f"{live_run(node)} live pages end at node {node.id}, {state.tail_pages} are needed")
        )
    return found


@event_law
def a_request_is_admitted_once(state: State, event: Admitted) -> Sequence[Breach]:
    """Neither its name nor its number is that of a live one."""
    if event.rid in state.rids or event.request in state.requests:
        return [Breach(f"{event.rid!r} is live as request {state.rids.get(event.rid, event.request)}")]
    return LAWFUL


@event_law
def pages_are_taken_as_tokens_need_them(state: State, event: Extended) -> Sequence[Breach]:
    """Live requests grow, and take a page where they cross into a new one, no sooner and no more (R46, B20)."""
    rows, page_size = state.rows, state.page_size
    if not rows.are_live(event.requests):
        return [Breach(f"requests {ids_of(event.requests).tolist()[:8]} are not all live")]
    batch = rows.at(event.requests)
    lengths = rows.length[batch.at]
    if event.grown == batch.ones:
        used = lengths % rows.page
        if (not event.takers and np.count_nonzero(used) == len(used)) or _one_each_is_taken(used, event):
            return LAWFUL
    grown = pages_of(event.grown).tolist()
    needed = [
        -(-(held + more) // page_size) + -held // page_size
        for held, more in zip(lengths.tolist(), grown, strict=True)
    ]
    if not _each_takes(event, needed):
        taken = sum(pages_of(event.counts).tolist()) if event.takers else 0
        text = f"requests {ids_of(event.requests).tolist()[:8]} need {needed[:8]} pages, {taken} were taken"
        return [Breach(text, Pool.FULL, event.full, sum(needed), taken)]
    return LAWFUL


_ONE = b"\1\0\0\0"
"""One page, of each that takes one."""


def _one_each_is_taken(used: NDArray[np.int32], event: Extended) -> bool:
    """Whether, all growing by one, exactly those take a page, and one, whose last page is full (`used` is 0)."""
    crossing = np.logical_not(used).nonzero()[0]
    takers = ids_of(event.requests)[crossing].tobytes()
    return takers == event.takers and event.counts == _ONE * crossing.size


def _each_takes(event: Extended, needed: list[int]) -> bool:
    """Whether those who cross are those who take, each as much as it needs."""
    if not event.takers:
        return not any(needed)
    crossing = [number for number, need in zip(ids_of(event.requests).tolist(), needed, strict=True) if need]
    taken = [need for need in needed if need]
    told: tuple[list[int], list[int]] = ids_of(event.takers).tolist(), pages_of(event.counts).tolist()
    return (crossing, taken) == told


@event_law
def a_reclaim_leaves_a_window(state: State, event: Reclaimed) -> Sequence[Breach]:
    """A path that ends on the last page boundary at or below `pre` has its window still (R134, B1-B4, A26b)."""
    found: list[Breach] = []
    boundary = event.pre - event.pre % state.page_size
    if event.pre >= 0 and boundary - event.stop < state.config.window_tokens:
        text = f"request {event.request} gave up to {event.stop}, a path may end at {boundary}"
        found.append(Breach(text, Pool.SWA, event.swa, boundary - state.config.window_tokens, event.stop))
    if event.pre + event.in_flight > state.rows.length[state.row_of(event.request)]:
        found.append(
            Breach(f"request {event.request} has no token {event.pre + event.in_flight}", Pool.SWA, event.swa)
        )
    return found


@event_law
def a_reclaim_gives_up_what_lies_between(state: State, event: Reclaimed) -> Sequence[Breach]:
    """The pages of the row from the cursor, or the tree's part, to the new one: never the tree's (R127, R131)."""
    rows, row, page_size = state.rows, state.row_of(event.request), state.page_size
    first = max(event.start, int(rows.protected[row])) // page_size
    lawful = rows.full_table[row, first : event.stop // page_size]
    if event.stop % page_size or lawful.tobytes() != event.full:
        text = (
            f"request {event.request}: FULL page {pages_of(event.full).tolist()[:8]} is not what stands in "
        )
        return [Breach(f"{text}[{first * page_size}, {event.stop})", Pool.FULL, event.full)]
    return LAWFUL


@event_law
def a_running_step_keeps_its_window(state: State, event: Reclaimed) -> Sequence[Breach]:
    """Nothing that a step in flight may read is given back (R151)."""
    found: list[Breach] = []
    for step, running in state.running.items():
        for request, start in zip(running.requests, running.starts, strict=False):
            if request == event.request and event.stop > max(0, start - state.config.window_tokens + 1):
                text = f"step {step} reads back from token {start}, request {event.request} gave up to {event.stop}"
                found.append(Breach(text, Pool.SWA, event.swa))
    return found


@event_law
def a_cached_path_ends_in_a_live_window(state: State, event: Repointed) -> Sequence[Breach]:
    """After caching, the path that protects a request ends in a window, or is live from the root (R259)."""
    node = state.nodes.get(event.node)
    if (
        node is not None
        and has_a_tree(state)
        and (run := live_run(node, state.tail_pages)) < state.tail_pages
    ):
        text = f"request {event.request}: {run} live pages end at node {event.node}, {state.tail_pages} are needed"
        return [Breach(text, Pool.FULL, event.full)]
    return LAWFUL


@event_law
def a_repointed_row_names_its_path(state: State, event: Repointed) -> Sequence[Breach]:
    """[old, protected) of the row are the tree's pages from now on, and none of its own is lost (R149, R260)."""
    found: list[Breach] = []
    rows, row, page_size = state.rows, state.row_of(event.request), state.page_size
    first, node = int(rows.protected[row]) // page_size, state.nodes[event.node]
    before = rows.full_table[row, first : node.end]
    after = held = before.tobytes()
    path = path_pages(node, first)
    if event.full:
        named = event.start // page_size - first
        after = after[: named * 4] + event.full + after[named * 4 + len(event.full) :]
    if event.protected != node.end * page_size or after != path:
        text = f"request {event.request} names {pages_of(after).tolist()[:8]}, "
        text += f"its path has {pages_of(path).tolist()[:8]}"
        found.append(Breach(text, Pool.FULL, event.full))
    own = _held(state.full, before, request_account(event.request)) if held != path else _NOWHERE
    if own.size:
        lost = before[own]
        found.append(
            Breach(f"FULL page {shown(lost)} is its own, and in no row any more", Pool.FULL, packed(lost))
        )
    return found


@event_law
def a_request_outlives_the_steps_that_read_it(state: State, event: Ending) -> Sequence[Breach]:
    """No request ends while the device reads it (R151)."""
    found: list[Breach] = []
    for step, running in state.running.items():
        if event.request in running.requests:
            found.append(Breach(f"step {step} runs, request {event.request} ended"))
    return found


@event_law
def an_ended_request_owns_nothing(state: State, event: Ending) -> Sequence[Breach]:
    """Whatever stood in its row was cached or freed before (R147, R148)."""
    found: list[Breach] = []
    row, account = state.row_of(event.request), request_account(event.request)
    held = -(-int(state.rows.length[row]) // state.page_size)
    pages = state.rows.full_table[row, :held]
    held_full = _held(state.full, pages, account)
    if held_full.size:
        own = pages[held_full]
        found.append(
            Breach(f"request {event.request} ends with FULL page {shown(own)}", Pool.FULL, packed(own))
        )
    windows = state.mapping.swa_of.take(pages)
    held_swa = _held(state.swa, windows, account)
    if held_swa.size:
        swa = windows[held_swa]
        found.append(
            Breach(f"request {event.request} ends with SWA page {shown(swa)}", Pool.SWA, packed(swa))
        )
    return found


@event_law
def an_end_tells_what_was_there(state: State, event: Ending) -> Sequence[Breach]:
    """`tokens` is the length of the row, `cached` the length of the path to the node (R148)."""
    found: list[Breach] = []
    length = int(state.rows.length[state.row_of(event.request)])
    if event.tokens != length:
        found.append(
            Breach(
                f"request {event.request} has {length} tokens, {event.tokens} are told",
                0,
                expected=length,
                found=event.tokens,
            )
        )
    if isinstance(event, Finished) and event.cached != (end := state.nodes[event.node].end * state.page_size):
        text = (
            f"request {event.request}: {event.cached} tokens cached, the path to node {event.node} has {end}"
        )
        found.append(Breach(text, expected=end, found=event.cached))
    return found


@event_law
def a_step_writes_behind_what_is_the_trees(state: State, event: Stepped) -> Sequence[Breach]:
    """A device step runs live requests and writes none of the tree's tokens."""
    if event.phase == Phase.BEGAN:
        at = state.rows.at(event.requests).at
        starts = pages_of(event.starts)
        if state.rows.request[at].tobytes() != event.requests:
            requests = ids_of(event.requests)
            gone = requests[state.rows.request[at] != requests]
            return [Breach(f"step {event.step} runs requests {gone.tolist()[:8]}, which are not live")]
        if np.count_nonzero(starts < state.rows.protected[at]):
            return [Breach(f"step {event.step} writes from {starts.tolist()[:8]}, over what is the tree's")]
    return LAWFUL


def _held(book: PoolBook, pages: NDArray[np.int32], account: int) -> NDArray[np.intp]:
    """Which of the pages are in `account`, as places among them; page 0 is nobody's."""
    accounts = book.account.take(pages)
    if account.to_bytes(8, "little", signed=True) not in accounts.tobytes():
        return _NOWHERE
    return np.flatnonzero(accounts == account)


_NOWHERE = np.empty(0, np.intp)
