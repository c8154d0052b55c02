"""Decisions about requests that run: they grow, give back what left their window, and are read by device steps.

A decider is a generator, see `decide.pages`. Nothing here asks the tree, so it is the same on every route. Rule: a
request owns the pages of [protected, held) of its row, its SWA from the cursor on.
"""

import numpy as np
from numpy.typing import NDArray

from radixledger.cache import window
from radixledger.cache.decide.pages import Decision, check_free_pages, destination
from radixledger.cache.refusals import Busy, Refusal, UnknownRequest
from radixledger.cache.state import Request, State
from radixledger.journal.causes import Operation, Site, cause
from radixledger.journal.events import Extended, Phase, Reclaimed, Stepped
from radixledger.journal.units import UNBOUND, KeyLen, Pages, TokenCount

_DECODE = cause(Operation.EXTEND, Site.DECODE)
_PREFILL = cause(Operation.EXTEND, Site.PREFILL)
_RECLAIM = cause(Operation.RECLAIM)


def live_request(state: State, request: int) -> Request:
    """The live request with this number; refuses one that is not."""
    found = state.requests.get(request)
    if found is None:
        raise UnknownRequest(request)
    return found


def extend(state: State, requests: NDArray[np.int64], grown: NDArray[np.int32]) -> Decision[None]:
    """Let request i grow by `grown[i]` tokens, with pages of both pools where it crosses into new ones (R46).

    requests: int64 [n], each named once; grown: int32 [n], positive. All of them or none.
    """
    rows, page_size = state.rows, state.page_size
    at = rows_of(state, requests)
    if grown.size != at.size or (grown <= 0).any():
        raise Refusal("each request grows by at least one token")
    lengths = rows.length.take(at)
    # Few requests prefill at a time, and for few a loop over ints is faster than array operations.
    before = lengths.tolist()
    after = [length + more for length, more in zip(before, grown.tolist(), strict=True)]
    held = [window.pages_for(length, page_size) for length in after]
    counts = [stop - window.pages_for(start, page_size) for start, stop in zip(before, held, strict=True)]
    needed = sum(counts)
    if needed:
        if max(held) > state.config.context_pages:
            raise Refusal(
                f"a row holds {state.config.context_pages * page_size} tokens, and a request wants more"
            )
        check_free_pages(state, needed)
    taken = np.array(counts, "<i4")
    takers = taken > 0
    yield Extended(
        requests.tobytes(),
        grown.tobytes(),
        requests[takers].tobytes(),
        taken[takers].tobytes(),
        state.full.next_free(needed),
        state.swa.next_free(needed),
        _PREFILL,
    )
    for component in state.components:
        yield from component.grown(state, requests, lengths, _PREFILL)


def decode(state: State, requests: NDArray[np.int64]) -> Decision[NDArray[np.int32]]:
    """Let each request grow by one token; returns the FULL slots of the new tokens, int32 [n].

    Nothing is done per token but the lengths: pages are taken by the requests whose last page is full.
    """
    rows, page_size = state.rows, state.page_size
    at = rows_of(state, requests)
    lengths = rows.length[at]
    offsets = lengths % rows.page
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
    for component in state.components:
        yield from component.grown(state, requests, lengths, _DECODE)
    slots: NDArray[np.int32] = rows.last_page[at] * rows.page + offsets
    return slots


_ONES = np.ones(4096, "<i4").tobytes()


def _ones(count: int) -> bytes:
    return _ONES[: count * 4] if count <= 4096 else np.ones(count, "<i4").tobytes()


def rows_of(state: State, requests: NDArray[np.int64]) -> NDArray[np.int64]:
    """The row of each request, int64 [n]; refuses numbers that are not live or named twice."""
    coded = requests.tobytes()
    batch = state.rows.at(coded)
    if not state.rows.are_live(coded):
        live = state.rows.request[batch.at]
        raise UnknownRequest(int(requests[live != requests][0]))
    if not batch.distinct:
        if UNBOUND in requests:
            raise UnknownRequest(UNBOUND)
        raise Refusal("a request is named twice in one step")
    return batch.at


def reclaim(state: State, request: int, pre: int, in_flight: int = 0) -> Decision[TokenCount]:
    """Give back a request's SWA below its frontier; returns the new cursor (R127, R129-R132).

    pre: sequence length - 1 on decode; `reclaim_for` is for inserts. Never more than the length of the key of what is
    computed, which in bigram mode is one less than the tokens (R259). in_flight: tokens that batches on the device may
    still read below `pre` (R151, A28).
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


def reclaim_for(state: State, request: int, key: bytes) -> Decision[TokenCount]:
    """`reclaim` before `key` is inserted, at its length - 1: counted off the key itself, so in its units (R256, R258)."""
    live = live_request(state, request)
    units, computed = key_units(state, key), state.key_length(live.row)
    if units > computed:
        raise Refusal(
            f"a key of {units} units was given for request {request}, whose tokens make {computed} (R271)",
            request=live.id,
        )
    yield from _reclaim(state, live, units - 1, 0)
    return TokenCount(int(state.rows.cursor[live.row]))


def key_units(state: State, key: bytes) -> KeyLen:
    """The length of a key in its own units: tokens, or pairs."""
    return KeyLen(len(key) * state.page_size // state.stride)


def reclaim_batch(state: State, requests: NDArray[np.int64], in_flight: int = 0) -> Decision[None]:
    """`reclaim` for the requests of a decode batch, each at its own length - 1; one comparison if none is due."""
    if in_flight < 0:
        raise Refusal(f"{in_flight} tokens in flight")
    at = rows_of(state, requests)
    due = state.rows.length[at] > state.rows.reclaim_at[at] + in_flight
    if due.any():
        for request, length in zip(requests[due].tolist(), state.rows.length[at[due]].tolist(), strict=True):
            yield from _reclaim(state, state.requests[request], length - 1, in_flight)


def _reclaim(state: State, request: Request, pre: int, in_flight: int) -> Decision[None]:
    rows, row, config = state.rows, request.row, state.config
    if not config.free_out_of_window:
        return
    cursor = int(rows.cursor[row])
    old = max(cursor, int(rows.protected[row]))
    pre = min(pre, state.key_length(row), _oldest_in_flight(state, request.id, pre)) - in_flight
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
            KeyLen(pre),
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
    protected = state.rows.protected[rows_of(state, requests)]
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
