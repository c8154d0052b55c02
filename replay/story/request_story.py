"""The story of one request: what it was given, computed, gave back and shared, each time that it was admitted (J16).

It is asked by its number or by its request id, which may have several numbers: one for each admission, after a
retraction or in a later epoch. Numbers are used once. Rule: an event belongs to the story where it names the request, in a field, in a packed
column or as the account that pages leave or enter.
"""

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Any, get_args

import numpy as np
from msgspec import Struct
from msgspec.structs import fields
from numpy.typing import NDArray

from radixledger.cache.state import State
from radixledger.journal.accounts import request_account
from radixledger.journal.causes import label_of
from radixledger.journal.events import (
    Admitted,
    AnyEvent,
    Extended,
    Finished,
    Gap,
    Locked,
    Matched,
    Opened,
    Phase,
    Refused,
    Stepped,
    Stop,
    Unlocked,
    Violated,
)
from radixledger.journal.frame import Frame
from radixledger.journal.moves import pages_of, whole_moves
from radixledger.journal.packed import whole_ids, whole_pages
from radixledger.journal.units import RequestId
from radixledger.replay.known import Known
from radixledger.replay.walk import Walked, lost_here, told_wrong, walk

NONE: NDArray[np.int64] = np.empty(0, np.int64)
STOPS = {int(stop): stop.name.lower() for stop in Stop}


class RequestStep(Struct, frozen=True):
    """One event of a request, and how it stood behind it; lengths in tokens.

    attempt: which admission, from 1; 0 is before the first one of the journal. detail: what
    the event says beside pages. took, gave: pages that entered and left its account as the event tells it, by pool: it
    may give what it has not. full, swa: pages that its account holds by the books; those that it reads in the tree are not among
    them. node: where its path in the tree ends.
    wrong: laws that the event broke, empty where it broke none.
    """

    attempt: int
    seq: int
    time_ns: int
    step: int
    event: str
    detail: str
    cause: str
    request: int
    rid: str
    length: int
    protected: int
    cursor: int
    node: int
    took: dict[str, list[int]]
    gave: dict[str, list[int]]
    full: int
    swa: int
    wrong: str


def request_story(
    frames: Iterable[Frame],
    asked: str,
    base: State | None = None,
    opened: Opened | None = None,
    known: Known | None = None,
) -> Iterator[RequestStep]:
    """Every event of the request that is called `asked`, in order: its request id, or else its number.

    `base` is the state that the frames go on from; opened: as in `fold.begun`; known: as in `walk`. Where events are missing while it lives
    a step says so. Raises Unfoldable and whatever reading raises.
    """
    story = _Story(asked, base)
    for walked in walk(frames, base, opened, known):
        event = walked.event
        if isinstance(event, Admitted | Matched) and event.rid == asked:
            story.numbers.add(event.request)
        for number in story.concerned(event, walked.state):
            yield story.step(walked, number)


class _Story:
    """Which numbers the request has had so far, and the pages that each holds."""

    def __init__(self, asked: str, base: State | None) -> None:
        number = int(asked) if asked.isascii() and asked.isdecimal() and len(asked) < 19 else 0
        live = base.requests.values() if base is not None else ()
        self.numbers = {number, *(request.id for request in live if request.rid == asked)} - {0}
        self._held = {number: _held(base, number) for number in self.numbers}
        self._attempts = 0

    def concerned(self, event: AnyEvent, state: State) -> Iterator[int]:
        """The numbers of the request that an event names, or that live where events are missing."""
        if lost_here(event):
            yield from sorted(self.numbers & state.requests.keys())
            return
        read = _NAMED.get(type(event))
        named = read(event) if read is not None else ()
        for number in sorted(self.numbers):
            account = request_account(RequestId(number))
            if number in named or any(account in (move.giver, move.taker) for move in whole_moves(event)):
                yield number

    def step(self, walked: Walked, number: int) -> RequestStep:
        """The event as a step of the story."""
        event, state = walked.event, walked.state
        self._attempts += isinstance(event, Admitted)
        took, gave = _moved(event, number)
        held = self._holding(state, number, took)
        live = state.requests.get(number)
        row = live.row if live is not None else None
        return RequestStep(
            attempt=self._attempts,
            seq=walked.seq,
            time_ns=walked.frame.time_ns,
            step=walked.frame.step,
            event=type(event).__name__,
            detail=_detail(event, number),
            cause=label_of(event),
            request=number,
            rid=live.rid if live is not None else getattr(event, "rid", ""),
            length=int(state.rows.length[row]) if row is not None else 0,
            protected=int(state.rows.protected[row]) if row is not None else 0,
            cursor=int(state.rows.cursor[row]) if row is not None else 0,
            node=live.node if live is not None else 0,
            took=took,
            gave=gave,
            full=held.get("FULL", 0),
            swa=held.get("SWA", 0),
            wrong=lost_here(event) or told_wrong(walked.broken),
        )

    def _holding(self, state: State, number: int, took: dict[str, list[int]]) -> dict[str, int]:
        """How many pages of each pool its account holds behind an event in which it `took` these."""
        account, held = request_account(RequestId(number)), self._held.setdefault(number, {})
        for book in state.books:
            pool = book.pool.name
            pages = np.union1d(held.get(pool, NONE), np.array(took.get(pool, ()), np.int64))
            pages = pages[(pages >= 0) & (pages <= book.capacity)]
            held[pool] = pages[book.account[pages] == account]
        return {pool: len(pages) for pool, pages in held.items()}


def _moved(event: AnyEvent, number: int) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    took: dict[str, list[int]] = {}
    gave: dict[str, list[int]] = {}
    account = request_account(RequestId(number))
    for move in whole_moves(event):
        pages, pool = pages_of(move.pages).tolist(), move.pool.name
        if move.taker == account:
            took.setdefault(pool, []).extend(pages)
        if move.giver == account:
            gave.setdefault(pool, []).extend(pages)
    return took, gave


def _held(base: State | None, number: int) -> dict[str, NDArray[np.int64]]:
    if base is None:
        return {}
    account = request_account(RequestId(number))
    return {book.pool.name: np.flatnonzero(book.account == account) for book in base.books}


def _detail(event: AnyEvent, number: int) -> str:
    match event:
        case Gap():
            return "not known from here on"
        case Admitted():
            return f"{event.prefix} of {event.prompt} tokens from the tree"
        case Matched():
            return f"hit {event.hit} of {event.asked} tokens: {STOPS.get(event.stop, f'stop {event.stop}')}"
        case Extended():
            grown = dict(zip(whole_ids(event.requests), whole_pages(event.grown), strict=False))
            return f"+{grown[number]} tokens" if number in grown else ""
        case Stepped():
            return "began" if event.phase == Phase.BEGAN else "ended"
        case Finished():
            return f"{event.cached} of {event.tokens} tokens in the tree"
        case Locked() | Unlocked():
            return f"node {event.node} to {f'boundary {event.boundary}' if event.boundary else 'root'}"
        case Refused():
            return f"{event.reason}: {event.detail}"
        case Violated():
            return f"{event.law}: {event.detail}"
        case _:
            return ""


def _named(kind: type[Struct]) -> Callable[[Any], Any] | None:
    """How to read the requests that an event names: a field of its own, or a packed column."""
    single = [field.name for field in fields(kind) if field.type is RequestId]
    if single:
        one = attrgetter(single[0])
        return lambda event: (one(event),)
    packed = [field.name for field in fields(kind) if field.name in ("requests", "takers")]
    if packed:
        return lambda event: {number for name in packed for number in whole_ids(getattr(event, name))}
    return None


_NAMED: dict[type, Callable[[Any], Any]] = {
    kind: read for kind in get_args(AnyEvent) if (read := _named(kind)) is not None
}
"""By event: how to read the requests that it names."""
