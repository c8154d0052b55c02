"""Decisions about a request's life: admission, caching, its end. The same on every route; the tree's part is asked for.

A decider is a generator, see `decide.pages`. Rule: who surrenders what stands here once: a request owns
the pages of [protected, held) of its row, the tree those of [0, protected).
"""

from typing import NamedTuple

from radixledger.cache import window
from radixledger.cache.decide.growth import live_request, refuse_in_flight, row_pages
from radixledger.cache.decide.locks import lock_path, released
from radixledger.cache.decide.pages import Decision, destination
from radixledger.cache.fold.requests import path_pages
from radixledger.cache.match import Hit
from radixledger.cache.refusals import NeverFits, Refusal
from radixledger.cache.routes import rules_of
from radixledger.cache.slices import Slice
from radixledger.cache.state import Request, State
from radixledger.journal.accounts import Pool, request_account
from radixledger.journal.causes import Operation, Site, cause
from radixledger.journal.events import Aborted, Admitted, Finished, Freed, Repointed, Retracted
from radixledger.journal.units import NO_PAGES, ROOT, Pages, RequestId, TokenCount

_ADMIT = cause(Operation.ADMIT)


class Admission(NamedTuple):
    """An admitted request: its number, its row, and the prefix of its prompt that needs no computing."""

    request: RequestId
    row: int
    hit: Hit


def admit(
    state: State, rid: str, key: bytes, prompt: int, namespace: bytes = b"", *, force_miss: bool = False,
    priority: int = 0,
) -> Decision[Admission]:  # fmt: skip
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
    _refuse_what_never_fits(state, rid, prompt)
    if not rows.free:
        raise Refusal(f"all {rows.mask + 1} rows have a request; {rid!r} has to wait")
    request = RequestId(state.next_request * (rows.mask + 1) + rows.free[-1])
    usable = key[: (prompt - 1) // state.page_size * state.stride]
    for component in state.components:
        component.check_admission(state, usable, namespace, force_miss)
    hit = yield from rules_of(state).match(
        state, usable, namespace, rid=rid, request=request, force_miss=force_miss, why=_ADMIT
    )
    yield Admitted(request, rid, TokenCount(prompt), hit.tokens, hit.node, namespace, _ADMIT, priority)
    if hit.node != ROOT:
        yield from lock_path(state, state.nodes[hit.node], request, _ADMIT)
    for component in state.components:
        yield from component.admitted(state, request, state.nodes[hit.node], _ADMIT)
    return Admission(request, request & rows.mask, hit)


def _refuse_what_never_fits(state: State, rid: str, prompt: int) -> None:
    """Tell "never" from "not now": all of a prompt is held in FULL, and one window at least in SWA (B109, B116)."""
    page_size, window_tokens = state.page_size, state.config.window_tokens
    whole = window.pages_for(prompt, page_size)
    if whole > state.full.capacity:
        raise NeverFits(rid=rid, prompt=prompt, pool=Pool.FULL, needed=whole, capacity=state.full.capacity)
    last = whole - max(0, prompt - window_tokens) // page_size
    if window_tokens and last > state.swa.capacity:
        raise NeverFits(rid=rid, prompt=prompt, pool=Pool.SWA, needed=last, capacity=state.swa.capacity)


def _brought(state: State, request: Request, count: int, operation: Operation) -> Slice:
    """What a request brings to an insert of `count` pages."""
    rows, row, page_size = state.rows, request.row, state.page_size
    if count * page_size > state.key_length(row):
        raise Refusal(
            f"a key of {count} pages was given for request {request.id}, whose {rows.length[row]} tokens make a "
            f"{state.config.key_mode} key of {state.key_length(row)} units",
            request=request.id,
        )
    carried = b"".join([each.carried(state, request, count, operation) for each in state.components])
    prev, released = int(rows.protected[row]) // page_size, int(rows.cursor[row]) // page_size
    pages, start = row_pages(state, row, 0, count), state.nodes[request.node]
    giver = request_account(request.id)
    # In their order, since names would take longer than the tuple.
    return Slice(pages, prev, released, giver, request.id, operation, start, Pages(carried))


def cache_unfinished(
    state: State, request: int, key: bytes, tokens: int | None = None
) -> Decision[TokenCount]:
    """Give the tree the whole pages of what is computed so far, and go on from there; returns the protected length.

    `key` may be the key of the whole prompt, of which `tokens` are computed; without `tokens` all of it is. What is
    cached ends where the key of those tokens does, in whole pages (R257). Where there is no tree the key is not read: the
    request keeps its pages (R150).

    The row then names the tree's pages where they differ (R149). The new path is locked before the old one is
    released, so the window never stands open (R139).
    """
    live = live_request(state, request)
    refuse_in_flight(state, live)
    if not state.traits.tree:
        return TokenCount(0)
    rows, row, page_size = state.rows, live.row, state.page_size
    count = len(key) // state.stride
    if tokens is not None:
        count = min(count, window.key_length(TokenCount(tokens), state.lookahead) // page_size)
    prev = int(rows.protected[row]) // page_size
    for component in state.components if count > prev else ():
        count = component.cap(state, live, count, Operation.UNFINISHED)
    if count <= prev:
        return TokenCount(prev * page_size)
    brought = _brought(state, live, count, Operation.UNFINISHED)
    for component in state.components:
        yield from component.secure(state, live, count)
    rules, why = rules_of(state), cause(Operation.UNFINISHED)
    ended = yield from rules.insert(state, key, live.namespace, brought)
    node = yield from rules.go_on(state, live, key, ended, why)
    assert node.end == count, "a running request's last page is live, so no leaf of it is vetoed (R134)"
    shared = Pages(path_pages(node, prev)[: max(0, ended.prefix - prev) * 4])
    repointed = shared if shared != brought.part(prev, prev + len(shared) // 4) else NO_PAGES
    yield Repointed(
        live.id, TokenCount(prev * page_size), repointed, TokenCount(node.end * page_size), node.id, why
    )
    old = live.receipt
    if old is None or old.node != node.id:
        yield from lock_path(state, node, live.id, why)
        if old is not None:
            yield from released(state, old, live.id, why)
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
    pages = len(key) // state.stride if key is not None else 0
    told = min(pages, state.key_length(row) // page_size)
    count = pages if state.traits.tree else 0
    for component in state.components:
        count = component.cap(state, live, count, operation)
    if key is not None and count >= kept:
        brought = _brought(state, live, count, operation)
        if count > kept or brought.recurrent:
            rules = rules_of(state)
            ended = yield from rules.insert(state, key, live.namespace, brought)
            node, kept = ended.node, count
    yield from _surrender(state, live, kept, operation)
    end, why = node.end, cause(operation)
    untaken = key[end * state.stride : told * state.stride] if key is not None and told > end else b""
    yield Finished(live.id, TokenCount(tokens), TokenCount(end * page_size), node.id, why, untaken)
    return TokenCount(end * page_size)


def retract(state: State, request: int) -> Decision[None]:
    """Take everything back from a running request: all pages of [protected, held), its lock, its row (R140, A45)."""
    live, tokens = yield from _taken_back(state, request, Operation.RETRACT)
    yield Retracted(live.id, tokens, cause(Operation.RETRACT))


def abort(state: State, request: int) -> Decision[None]:
    """End a request without caching it (R141): what the tree got from earlier chunks stays the tree's."""
    live, tokens = yield from _taken_back(state, request, Operation.ABORT)
    yield Aborted(live.id, tokens, cause(Operation.ABORT))


def _taken_back(state: State, request: int, operation: Operation) -> Decision[tuple[Request, TokenCount]]:
    """All that a request has of its own is freed: [protected, held) of its row; it, and its tokens until now."""
    live = live_request(state, request)
    refuse_in_flight(state, live)
    tokens, protected = (int(each[live.row]) for each in (state.rows.length, state.rows.protected))
    yield from _surrender(state, live, protected // state.page_size, operation)
    return live, TokenCount(tokens)


def _surrender(state: State, request: Request, kept: int, operation: Operation) -> Decision[None]:
    """Free the pages of [kept, held) of a row and release its lock."""
    held = window.pages_for(int(state.rows.length[request.row]), state.page_size)
    pages = row_pages(state, request.row, kept, held)
    if pages:
        unmapped, swa = state.mapping.mapped(pages)
        giver, why = request_account(request.id), cause(operation, Site.TAIL)
        yield Freed(giver, pages, unmapped, swa, destination(state), request.id, why)
    for component in state.components:
        yield from component.left(state, request, operation)
    receipt = request.receipt
    if receipt is not None:
        yield from released(state, receipt, request.id, cause(operation))
