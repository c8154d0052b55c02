"""Decisions about a request's life on the unified route: admit, extend, decode, reclaim, cache, end.

A decider is a generator, see `decide_pages`. Rule: who surrenders what stands here once: a request owns
the pages of [protected, held) of its row, the tree those of [0, protected).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from radixledger.cache import window
from radixledger.cache.decide_pages import Decision, check_free_pages, destination
from radixledger.cache.decide_unified import Hit, Slice, insert, locked_by, match
from radixledger.cache.evolve_requests import path_pages
from radixledger.cache.refusals import Busy, Refusal, UnknownRequest
from radixledger.cache.state import Request, State, rows_at
from radixledger.journal.accounts import request_account
from radixledger.journal.causes import Operation, Site, cause
from radixledger.journal.events import (
    Aborted,
    Admitted,
    Extended,
    Finished,
    Freed,
    Phase,
    Reclaimed,
    Repointed,
    Retracted,
    Stepped,
    Unlocked,
)
from radixledger.journal.units import ROOT, UNBOUND, Pages, RequestId, TokenCount

_ADMIT = cause(Operation.ADMIT)
_DECODE = cause(Operation.EXTEND, Site.DECODE)
_PREFILL = cause(Operation.EXTEND, Site.PREFILL)
_RECLAIM = cause(Operation.RECLAIM)


class Admission(NamedTuple):
    """An admitted request: its number, its row, and the prefix of its prompt that needs no computing."""

    request: RequestId
    row: int
    hit: Hit


def live_request(state: State, request: int) -> Request:
    """The live request with this number; refuses one that is not."""
    found = state.requests.get(request)
    if found is None:
        raise UnknownRequest(request)
    return found


def admit(
    state: State, rid: str, key: bytes, prompt: int, namespace: bytes = b"", *, force_miss: bool = False
) -> Decision[Admission]:
    """Match, take a row, lock the path. At least one prompt token is left to compute, so `key` is cut (E9)."""
    rows = state.rows
    if rid in state.rids:
        raise Refusal(f"request id {rid!r} is live already", request=state.rids[rid])
    if prompt <= 0:
        raise Refusal(f"request {rid!r} has a prompt of {prompt} tokens; at least one is needed")
    if window.pages_for(prompt, state.page_size) > state.config.context_pages:
        raise Refusal(
            f"request {rid!r} has a prompt of {prompt} tokens; a row holds {state.config.context_pages * state.page_size}"
        )
    if not rows.free:
        raise Refusal(f"all {rows.mask + 1} rows have a request; {rid!r} has to wait")
    request = RequestId(state.next_request * (rows.mask + 1) + rows.free[-1])
    usable = key[: (prompt - 1) // state.page_size * state.stride]
    hit = yield from match(
        state, usable, namespace, rid=rid, request=request, force_miss=force_miss, why=_ADMIT
    )
    yield Admitted(request, rid, TokenCount(prompt), hit.tokens, hit.node, namespace, _ADMIT)
    if hit.node != ROOT:
        yield locked_by(state, state.nodes[hit.node], request, _ADMIT)
    return Admission(request, request & rows.mask, hit)


def extend(state: State, requests: NDArray[np.int64], grown: NDArray[np.int32]) -> Decision[None]:
    """Let request i grow by `grown[i]` tokens, with pages of both pools where it crosses into new ones (R46).

    requests: int64 [n], each named once; grown: int32 [n], positive. All of them or none.
    """
    rows, page_size = state.rows, state.page_size
    at = _rows_of(state, requests)
    if grown.size != at.size or (grown <= 0).any():
        raise Refusal("each request grows by at least one token")
    lengths = rows.length[at].astype(np.int64)
    held = -(-lengths // page_size)
    counts = -(-(lengths + grown) // page_size) - held
    needed = int(counts.sum())
    if needed:
        if int((held + counts).max()) > state.config.context_pages:
            raise Refusal(
                f"a row holds {state.config.context_pages * page_size} tokens, and a request wants more"
            )
        check_free_pages(state, needed)
    takers = counts > 0
    yield Extended(
        requests.astype("<i8").tobytes(),
        grown.astype("<i4").tobytes(),
        requests[takers].astype("<i8").tobytes(),
        counts[takers].astype("<i4").tobytes(),
        state.full.next_free(needed),
        state.swa.next_free(needed),
        _PREFILL,
    )


def decode(state: State, requests: NDArray[np.int64]) -> Decision[NDArray[np.int32]]:
    """Let each request grow by one token; returns the FULL slots of the new tokens, int32 [n].

    Nothing is done per token but the lengths: pages are taken by the requests whose last page is full.
    """
    rows, page_size = state.rows, state.page_size
    at = _rows_of(state, requests)
    lengths = rows.length.take(at)
    offsets = lengths % page_size
    coded, count = requests.tobytes(), len(requests)
    if np.count_nonzero(offsets) == count:
        yield Extended(coded, _ones(count), cause=_DECODE)
    else:
        takers = np.flatnonzero(offsets == 0)
        needed = len(takers)
        if int(lengths.max()) // page_size >= state.config.context_pages:
            raise Refusal(
                f"a row holds {state.config.context_pages * page_size} tokens, and a request wants more"
            )
        check_free_pages(state, needed)
        yield Extended(
            coded,
            _ones(count),
            requests.take(takers).tobytes(),
            _ones(needed),
            state.full.next_free(needed),
            state.swa.next_free(needed),
            _DECODE,
        )
    slots: NDArray[np.int32] = rows.last_page.take(at) * page_size + offsets
    return slots


_NO_LIMIT = 1 << 60

_ONES = np.ones(4096, "<i4").tobytes()


def _ones(count: int) -> bytes:
    return _ONES[: count * 4] if count <= 4096 else np.ones(count, "<i4").tobytes()


def _rows_of(state: State, requests: NDArray[np.int64]) -> NDArray[np.int64]:
    """The row of each request, int64 [n]; refuses numbers that are not live or named twice."""
    coded = requests.tobytes()
    at, distinct = rows_at(coded, state.rows.mask)
    live = state.rows.request.take(at)
    if live.tobytes() != coded:
        raise UnknownRequest(int(requests[live != requests][0]))
    if not distinct:
        if UNBOUND in requests:
            raise UnknownRequest(UNBOUND)
        raise Refusal("a request is named twice in one step")
    return at


def reclaim(state: State, request: int, pre: int, in_flight: int = 0) -> Decision[TokenCount]:
    """Give back a request's SWA below its frontier; returns the new cursor (R127, R129-R132).

    pre: sequence length - 1 on decode, key length - 1 before an insert (R258). in_flight: tokens that batches on
    the device may still read below `pre` (R151, A28).
    """
    live = live_request(state, request)
    length = int(state.rows.length[live.row])
    if in_flight < 0 or pre > length:
        raise Refusal(
            f"request {request} has {length} tokens; its window ends at {pre} with {in_flight} in flight",
            request=live.id,
        )
    yield from _reclaim(state, live, pre, in_flight)
    return TokenCount(int(state.rows.cursor[live.row]))


def reclaim_batch(state: State, requests: NDArray[np.int64], in_flight: int = 0) -> Decision[None]:
    """`reclaim` for the requests of a decode batch, each at its own length - 1; one comparison if none is due."""
    if in_flight < 0:
        raise Refusal(f"{in_flight} tokens in flight")
    at = _rows_of(state, requests)
    due = state.rows.length[at] > state.rows.reclaim_at[at] + in_flight
    if due.any():
        for request, length in zip(requests[due].tolist(), state.rows.length[at[due]].tolist(), strict=True):
            yield from _reclaim(state, state.requests[request], length - 1, in_flight)


def _reclaim(state: State, request: Request, pre: int, in_flight: int) -> Decision[None]:
    rows, row, config = state.rows, request.row, state.config
    cursor = int(rows.cursor[row])
    old = max(cursor, int(rows.protected[row]))
    pre = min(pre, _oldest_in_flight(state, request.id, pre)) - in_flight
    new = window.frontier(
        old, pre, window_tokens=config.window_tokens, page_size=config.page_size, formula=config.formula
    )
    if new > cursor:
        full = row_pages(state, row, old // config.page_size, new // config.page_size)
        unmapped, swa = state.mapping.mapped(full)
        assert unmapped == full, "a request's SWA is live from its cursor on"
        yield Reclaimed(
            request.id,
            TokenCount(cursor),
            new,
            full,
            swa,
            destination(state),
            TokenCount(in_flight),
            _RECLAIM,
        )


def _oldest_in_flight(state: State, request: int, pre: int) -> int:
    """The first position that a running step writes for this request: its window below must stay (R151)."""
    for running in state.running.values():
        if request in running.requests:
            pre = min(pre, running.starts[running.requests.index(request)])
    return pre


def row_pages(state: State, row: int, first: int, stop: int) -> Pages:
    """The FULL pages at positions [first, stop) of a row."""
    return Pages(state.rows.full_table[row, first:stop].tobytes())


def _brought(state: State, request: Request, count: int, operation: Operation) -> Slice:
    """What a request brings to an insert of `count` pages."""
    rows, row, page_size = state.rows, request.row, state.page_size
    if count * page_size > int(rows.length[row]):
        raise Refusal(
            f"a key of {count} pages was given for request {request.id}, which has {rows.length[row]} tokens",
            request=request.id,
        )
    return Slice(
        pages=row_pages(state, row, 0, count),
        prev=int(rows.protected[row]) // page_size,
        released=int(rows.cursor[row]) // page_size,
        giver=request_account(request.id),
        request=request.id,
        operation=operation,
        start=state.nodes[request.node],
    )


def cache_unfinished(
    state: State, request: int, key: bytes, tokens: int | None = None
) -> Decision[TokenCount]:
    """Give the tree the whole pages of what is computed so far, and go on from there; returns the protected length.

    `key` may be the key of the whole prompt, of which `tokens` are computed; without `tokens` all of it is.

    The row then names the tree's pages where they differ (R149). The new path is locked before the old one is
    released, so the window never stands open (R139).
    """
    live = live_request(state, request)
    refuse_in_flight(state, live)
    rows, row, page_size = state.rows, live.row, state.page_size
    count = min(len(key) // state.stride, _NO_LIMIT if tokens is None else tokens // page_size)
    prev = int(rows.protected[row]) // page_size
    if count <= prev:
        return TokenCount(prev * page_size)
    brought = _brought(state, live, count, Operation.UNFINISHED)
    if brought.released > prev and count - brought.released < state.tail_pages:
        raise Refusal(
            f"request {request} gave its SWA back below token {brought.released * page_size}; "
            f"a path that ends at {count * page_size} would have no window (R259)",
            request=live.id,
        )
    ended = yield from insert(state, key, live.namespace, brought)
    node, why = ended.node, cause(Operation.UNFINISHED)
    assert node.end == count, "a running request's last page is live, so no leaf of it is vetoed (R134)"
    shared = Pages(path_pages(node, prev)[: max(0, ended.prefix - prev) * 4])
    repointed = shared if shared != brought.part(prev, prev + len(shared) // 4) else Pages(b"")
    yield Repointed(
        live.id, TokenCount(prev * page_size), repointed, TokenCount(node.end * page_size), node.id, why
    )
    old = live.receipt
    if old is None or old.node != node.id:
        yield locked_by(state, node, live.id, why)
        if old is not None:
            yield Unlocked(old.node, old.boundary, live.id, why)
    return TokenCount(node.end * page_size)


def finish(state: State, request: int, key: bytes | None) -> Decision[TokenCount]:
    """End a request well: cache the whole pages of `key` (None: nothing), free the rest; returns the cached length.

    The tail from `max(aligned, protected)` on is freed here (R148), each page exactly once (R147).
    """
    live = live_request(state, request)
    refuse_in_flight(state, live)
    rows, row, page_size = state.rows, live.row, state.page_size
    operation, tokens = Operation.FINISH, int(rows.length[row])
    kept = int(rows.protected[row]) // page_size
    node = state.nodes[live.node]
    count = len(key) // state.stride if key is not None else 0
    if key is not None and count > kept:
        brought = _brought(state, live, count, operation)
        ended = yield from insert(state, key, live.namespace, brought)
        node, kept = ended.node, count
    yield from _surrender(state, live, kept, operation)
    yield Finished(live.id, TokenCount(tokens), TokenCount(node.end * page_size), node.id, cause(operation))
    return TokenCount(node.end * page_size)


def retract(state: State, request: int) -> Decision[None]:
    """Take everything back from a running request: all pages of [protected, held), its lock, its row (R140, A45)."""
    live = live_request(state, request)
    refuse_in_flight(state, live)
    tokens = TokenCount(int(state.rows.length[live.row]))
    yield from _surrender(
        state, live, int(state.rows.protected[live.row]) // state.page_size, Operation.RETRACT
    )
    yield Retracted(live.id, tokens, cause(Operation.RETRACT))


def abort(state: State, request: int) -> Decision[None]:
    """End a request without caching it (R141): what the tree got from earlier chunks stays the tree's."""
    live = live_request(state, request)
    refuse_in_flight(state, live)
    tokens = TokenCount(int(state.rows.length[live.row]))
    yield from _surrender(
        state, live, int(state.rows.protected[live.row]) // state.page_size, Operation.ABORT
    )
    yield Aborted(live.id, tokens, cause(Operation.ABORT))


def _surrender(state: State, request: Request, kept: int, operation: Operation) -> Decision[None]:
    """Free the pages of [kept, held) of a row and release its lock."""
    held = window.pages_for(int(state.rows.length[request.row]), state.page_size)
    pages = row_pages(state, request.row, kept, held)
    if pages:
        unmapped, swa = state.mapping.mapped(pages)
        giver, why = request_account(request.id), cause(operation, Site.TAIL)
        yield Freed(giver, pages, unmapped, swa, destination(state), request.id, why)
    receipt = request.receipt
    if receipt is not None:
        yield Unlocked(receipt.node, receipt.boundary, request.id, cause(operation))


def refuse_in_flight(state: State, request: Request) -> None:
    """Refuse to take pages from a request that a running step reads or writes (R151, B135)."""
    for step, running in state.running.items():
        if request.id in running.requests:
            raise Busy(
                f"step {step} is running and reads request {request.id}; end the step first",
                request=request.id,
            )


def step_began(
    state: State, step: int, requests: NDArray[np.int64], starts: NDArray[np.int32], stops: NDArray[np.int32]
) -> Decision[None]:
    """A device step was dispatched: request i writes tokens [starts[i], stops[i]), none of them the tree's."""
    if step in state.running:
        raise Refusal(f"step {step} is running already")
    if not len(requests) == len(starts) == len(stops):
        raise Refusal(f"{len(requests)} requests have {len(starts)} starts and {len(stops)} stops")
    protected = state.rows.protected[_rows_of(state, requests)]
    if ((starts < protected) | (stops < starts)).any():
        raise Refusal(
            f"step {step} writes from {starts.tolist()[:8]} to {stops.tolist()[:8]}: not forwards, or over what is "
            f"the tree's up to {protected.tolist()[:8]}"
        )
    yield Stepped(step, Phase.BEGAN, requests.tobytes(), starts.tobytes(), stops.tobytes())


def step_ended(state: State, step: int) -> Decision[None]:
    """The step's results are on the host: its pages may be given up from now on."""
    if step not in state.running:
        raise Refusal(f"step {step} is not running")
    yield Stepped(step, Phase.ENDED)
