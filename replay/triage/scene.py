"""The scene of an event: what the pools looked like just before it, which device step was running, whose pages they were.

It reads a state and what the event is about, and writes nothing. Rule: what cannot be known is not told; a step whose
requests have ended has no row to be looked up in.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from msgspec import Struct

from radixledger.cache.ledger import PoolBook
from radixledger.cache.running import Running
from radixledger.cache.state import State
from radixledger.cache.window import pages_for
from radixledger.journal.accounts import Kind, Pool
from radixledger.replay.triage.causal_slice import CausalSlice
from radixledger.replay.triage.things import REQUEST, Thing, account_words

STEPS_TOLD = 4
USES_TOLD = 6
REQUESTS_TOLD = 12


class PoolThen(Struct, frozen=True):
    """Pages of one pool, by account; of the tree's, those that may be evicted and those that locks hold."""

    pool: str
    pages: int
    free: int
    pending: int
    requests: int
    in_flight: int
    evictable: int
    protected: int


class HolderThen(Struct, frozen=True):
    """Who had a page that the event is about, since which event, and what it was mapped to (0: to nothing)."""

    page: str
    account: str
    since: int
    mapped_to: int = 0


class StepThen(Struct, frozen=True):
    """A device step in flight: how many requests it ran, and what it did with the pages that the event is about."""

    step: int
    requests: int
    uses: list[str]


class RequestThen(Struct, frozen=True):
    """A request that has a part in it, as it was just before the event; lengths in tokens, None of one that is gone."""

    request: int
    rid: str
    state: str
    prompt: int | None = None
    length: int | None = None
    given_back: int | None = None
    """Tokens below its frontier, whose SWA it has given back; None where the rank has no SWA."""
    in_the_tree: int | None = None


def pools_then(state: State) -> list[PoolThen]:
    """The pools that the rank has."""
    return [_pool(book, state.evictable(book.pool)) for book in state.books if book.capacity]


def _pool(book: PoolBook, evictable: int) -> PoolThen:
    held = book.held
    return PoolThen(
        book.pool.name, book.capacity, held[Kind.FREE], held[Kind.PENDING], held[Kind.REQUEST],
        held[Kind.IN_FLIGHT], evictable, held[Kind.TREE] - evictable,
    )  # fmt: skip


def holders_then(state: State, things: Iterable[Thing]) -> list[HolderThen]:
    """Who had each page among `things`."""
    out = []
    rids: dict[int, str] = {each.id: each.rid for each in state.requests.values()}
    for thing in things:
        book = book_of(state, thing)
        if book is not None:
            mapped = int(state.mapping.swa_of[thing.number]) if book is state.full else 0
            out.append(
                HolderThen(
                    str(thing),
                    account_words(int(book.account[thing.number]), rids),
                    int(book.since[thing.number]),
                    mapped,
                )
            )
    return out


def book_of(state: State, thing: Thing) -> PoolBook | None:
    """The book in which a page stands; None for what is no page, and for one that the pool has not."""
    book = state.books[Pool[thing.kind]] if thing.is_page else None
    return book if book is not None and 0 <= thing.number <= book.capacity else None


def steps_then(state: State, things: Iterable[Thing]) -> list[StepThen]:
    """The device steps in flight."""
    pages = [thing for thing in things if thing.kind in (Pool.FULL.name, Pool.SWA.name)]
    return [
        StepThen(step, len(running.requests), list(_uses(state, running, pages))[:USES_TOLD])
        for step, running in list(state.running.items())[:STEPS_TOLD]
    ]


def _uses(state: State, running: Running, pages: list[Thing]) -> Iterator[str]:
    size, rows = state.page_size, state.rows
    for number, start, stop in zip(*running.writes, strict=False):
        live = state.requests.get(number)
        if live is None:
            yield f"runs request {number}, which is not live any more"
            continue
        table = rows.full_table[live.row, : pages_for(stop, size)]
        for thing in pages:
            named = table if thing.kind == Pool.FULL.name else state.mapping.swa_of[table]
            for at in np.flatnonzero(named == thing.number).tolist():
                first, last = at * size, (at + 1) * size
                does = _does(thing, first, last, start, stop, state.config.window_tokens)
                if does:
                    yield f"{does} {thing}: tokens [{first}, {last}) of request {number} ({live.rid})"


def _does(thing: Thing, first: int, last: int, start: int, stop: int, window: int) -> str:
    """What a step that writes [start, stop) does with tokens [first, last) of the row; the window counts in SWA alone."""
    if max(first, start) < min(last, stop):
        return "writes"
    below = start if thing.kind == Pool.FULL.name else max(0, start - window + 1)
    reads = first < start if thing.kind == Pool.FULL.name else last > below and first < start
    return "reads" if reads else ""


def requests_then(state: State, things: Iterable[Thing], story: CausalSlice) -> list[RequestThen]:
    """The requests among `things`, and those that the slice met."""
    numbers = [thing.number for thing in things if thing.kind == REQUEST]
    numbers += [number for number in story.rids if number not in numbers]
    return [_request(state, number, story) for number in dict.fromkeys(numbers)][:REQUESTS_TOLD]


def _request(state: State, number: int, story: CausalSlice) -> RequestThen:
    live, rows = state.requests.get(number), state.rows
    if live is None:
        how = story.ended.get(number)
        return RequestThen(number, story.rids.get(number, ""), f"{how} before" if how else "not live")
    row = live.row
    return RequestThen(
        number,
        live.rid,
        "live",
        live.prompt,
        int(rows.length[row]),
        int(rows.cursor[row]) if state.swa.capacity else None,
        int(rows.protected[row]),
    )
