"""The laws of events of requests: who may begin where, what a row takes and gives, what an end leaves behind.

Part of `laws_of_events`.
"""

from collections.abc import Iterator

import numpy as np

from radixledger.cache.event_law import event_law
from radixledger.cache.evolve_requests import path_pages
from radixledger.cache.law import Breach, packed, shown
from radixledger.cache.laws_of_requests import live_run
from radixledger.cache.laws_of_tree_events import has_a_tree
from radixledger.cache.state import State, rows_at
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
def an_admission_begins_behind_a_live_window(state: State, event: Admitted) -> Iterator[Breach]:
    """A row begins with whole pages of the tree that a window ends with, and leaves a token to compute (R73, R144)."""
    node = state.nodes[event.node]
    if event.prefix != node.end * state.page_size or not 0 <= event.prefix < event.prompt:
        text = f"{event.prefix} tokens of {event.prompt}; node {node.id} ends at {node.end * state.page_size}"
        yield Breach(text, expected=node.end * state.page_size, found=event.prefix)
    if has_a_tree(state) and node.parent is not None and live_run(node) < state.tail_pages:
        yield Breach(f"{live_run(node)} live pages end at node {node.id}, {state.tail_pages} are needed")


@event_law
def a_request_is_admitted_once(state: State, event: Admitted) -> Iterator[Breach]:
    """Neither its name nor its number is that of a live one."""
    if event.rid in state.rids or event.request in state.requests:
        yield Breach(f"{event.rid!r} is live as request {state.rids.get(event.rid, event.request)}")


@event_law
def pages_are_taken_as_tokens_need_them(state: State, event: Extended) -> Iterator[Breach]:
    """Live requests grow, and take a page where they cross into a new one, no sooner and no more (R46, B20)."""
    rows, page_size = state.rows, state.page_size
    at, _ = rows_at(event.requests, rows.mask)
    if rows.request.take(at).tobytes() != event.requests:
        yield Breach(f"requests {ids_of(event.requests).tolist()[:8]} are not all live")
        return
    lengths = rows.length.take(at)
    if not event.takers and not ((-lengths) % page_size < pages_of(event.grown)).any():
        return
    needed = (lengths + (pages_of(event.grown) + (page_size - 1))) // page_size - (
        lengths + (page_size - 1)
    ) // page_size
    taken = int(np.add.reduce(pages_of(event.counts))) if event.takers else 0
    if int(np.add.reduce(needed)) != taken or (event.takers and not _each_takes(event, needed)):
        text = f"requests {ids_of(event.requests).tolist()[:8]} need {needed.tolist()[:8]} pages, {taken} were taken"
        yield Breach(text, Pool.FULL, event.full, int(needed.sum()), taken)


def _each_takes(event: Extended, needed: "np.ndarray[tuple[int], np.dtype[np.int32]]") -> bool:
    """Whether those who cross are those who take, each as much as it needs."""
    crossing = needed.nonzero()[0]
    return (
        ids_of(event.requests).take(crossing).tobytes() == event.takers
        and needed.take(crossing).astype("<i4").tobytes() == event.counts
    )


@event_law
def a_reclaim_leaves_a_window(state: State, event: Reclaimed) -> Iterator[Breach]:
    """A path that ends on the last page boundary at or below `pre` has its window still (R134, B1-B4, A26b)."""
    boundary = event.pre - event.pre % state.page_size
    if event.pre >= 0 and boundary - event.stop < state.config.window_tokens:
        text = f"request {event.request} gave up to {event.stop}, a path may end at {boundary}"
        yield Breach(text, Pool.SWA, event.swa, boundary - state.config.window_tokens, event.stop)
    if event.pre + event.in_flight > state.rows.length[state.row_of(event.request)]:
        yield Breach(
            f"request {event.request} has no token {event.pre + event.in_flight}", Pool.SWA, event.swa
        )


@event_law
def a_reclaim_gives_up_what_lies_between(state: State, event: Reclaimed) -> Iterator[Breach]:
    """The pages of the row from the cursor, or the tree's part, to the new one: never the tree's (R127, R131)."""
    rows, row, page_size = state.rows, state.row_of(event.request), state.page_size
    first = max(event.start, int(rows.protected[row])) // page_size
    lawful = rows.full_table[row, first : event.stop // page_size]
    if event.stop % page_size or lawful.tobytes() != event.full:
        text = (
            f"request {event.request}: FULL page {pages_of(event.full).tolist()[:8]} is not what stands in "
        )
        yield Breach(f"{text}[{first * page_size}, {event.stop})", Pool.FULL, event.full)


@event_law
def a_running_step_keeps_its_window(state: State, event: Reclaimed) -> Iterator[Breach]:
    """Nothing that a step in flight may read is given back (R151)."""
    for step, running in state.running.items():
        for request, start in zip(running.requests, running.starts, strict=False):
            if request == event.request and event.stop > max(0, start - state.config.window_tokens + 1):
                text = f"step {step} reads back from token {start}, request {event.request} gave up to {event.stop}"
                yield Breach(text, Pool.SWA, event.swa)


@event_law
def a_cached_path_ends_in_a_live_window(state: State, event: Repointed) -> Iterator[Breach]:
    """After caching, the path that protects a request ends in a window, or is live from the root (R259)."""
    node = state.nodes.get(event.node)
    if node is not None and has_a_tree(state) and (run := live_run(node)) < state.tail_pages:
        text = f"request {event.request}: {run} live pages end at node {event.node}, {state.tail_pages} are needed"
        yield Breach(text, Pool.FULL, event.full)


@event_law
def a_repointed_row_names_its_path(state: State, event: Repointed) -> Iterator[Breach]:
    """[old, protected) of the row are the tree's pages from now on, and none of its own is lost (R149, R260)."""
    rows, row, page_size = state.rows, state.row_of(event.request), state.page_size
    first, node = int(rows.protected[row]) // page_size, state.nodes[event.node]
    before = rows.full_table[row, first : node.end]
    after = before.copy()
    named = event.start // page_size - first
    after[named : named + (len(event.full) >> 2)] = pages_of(event.full)
    path = path_pages(node, first)
    if event.protected != node.end * page_size or after.tobytes() != path:
        text = (
            f"request {event.request} names {after.tolist()[:8]}, its path has {pages_of(path).tolist()[:8]}"
        )
        yield Breach(text, Pool.FULL, event.full)
    lost = before[state.full.account.take(before) == request_account(event.request)]
    if lost.size:
        yield Breach(f"FULL page {shown(lost)} is its own, and in no row any more", Pool.FULL, packed(lost))


@event_law
def a_request_outlives_the_steps_that_read_it(state: State, event: Ending) -> Iterator[Breach]:
    """No request ends while the device reads it (R151)."""
    for step, running in state.running.items():
        if event.request in running.requests:
            yield Breach(f"step {step} runs, request {event.request} ended")


@event_law
def an_ended_request_owns_nothing(state: State, event: Ending) -> Iterator[Breach]:
    """Whatever stood in its row was cached or freed before (R147, R148)."""
    row, account = state.row_of(event.request), request_account(event.request)
    held = -(-int(state.rows.length[row]) // state.page_size)
    pages = state.rows.full_table[row, :held]
    own = pages[state.full.account.take(pages) == account]
    if own.size:
        yield Breach(f"request {event.request} ends with FULL page {shown(own)}", Pool.FULL, packed(own))
    windows = state.mapping.swa_of.take(pages)
    swa = windows[(state.swa.account.take(windows) == account) & (windows != 0)]
    if swa.size:
        yield Breach(f"request {event.request} ends with SWA page {shown(swa)}", Pool.SWA, packed(swa))


@event_law
def an_end_tells_what_was_there(state: State, event: Ending) -> Iterator[Breach]:
    """`tokens` is the length of the row, `cached` the length of the path to the node (R148)."""
    length = int(state.rows.length[state.row_of(event.request)])
    if event.tokens != length:
        yield Breach(
            f"request {event.request} has {length} tokens, {event.tokens} are told",
            0,
            expected=length,
            found=event.tokens,
        )
    if isinstance(event, Finished) and event.cached != (end := state.nodes[event.node].end * state.page_size):
        text = (
            f"request {event.request}: {event.cached} tokens cached, the path to node {event.node} has {end}"
        )
        yield Breach(text, expected=end, found=event.cached)


@event_law
def a_step_writes_behind_what_is_the_trees(state: State, event: Stepped) -> Iterator[Breach]:
    """A device step runs live requests and writes none of the tree's tokens."""
    if event.phase == Phase.BEGAN:
        requests, starts = ids_of(event.requests), pages_of(event.starts)
        at = requests & state.rows.mask
        gone = requests[state.rows.request.take(at) != requests]
        if gone.size:
            yield Breach(f"step {event.step} runs requests {gone.tolist()[:8]}, which are not live")
        elif (starts < state.rows.protected.take(at)).any():
            yield Breach(f"step {event.step} writes from {starts.tolist()[:8]}, over what is the tree's")
