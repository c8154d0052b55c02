"""How a journal ends: what is held by nobody who lives, who was left behind, what was turned down, what came last.

For a run in which no event is wrong by itself. A server that stops with "pool memory leak detected" wrote lawful events
and forgot to write others, so what is missing shows only at the end. Rule: what may be lawful is told with the reason
why it looks wrong; what a crash leaves in any case is no leak.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Set
from itertools import islice
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from radixledger.cache.ledger import PoolBook
from radixledger.cache.state import State
from radixledger.journal.accounts import Kind
from radixledger.journal.causes import label, label_of
from radixledger.journal.events import (
    Aborted,
    Admitted,
    Closed,
    Extended,
    Finished,
    Locked,
    Opened,
    Refused,
    Retracted,
    Stepped,
)
from radixledger.journal.frame import Frame
from radixledger.journal.packed import whole_ids, whole_pages
from radixledger.journal.units import SEQ_MAX, UNBOUND
from radixledger.replay.counted import counted

LAST_TOLD = 8
TOLD = 16
PAGES_KEPT = 256
QUIET_GROWTHS = 8
"""So many growths of others a request misses before it counts as left behind."""
OF_OWNERSHIP = ("double_free", "foreign_free", "unmapped")
"""Refusals that no sound caller meets: what was given up was not the giver's."""


class Leak(Struct, frozen=True):
    """Pages, or a lock with its pages, that nobody who lives holds: the first `PAGES_KEPT`, and how many there are.

    since: the earliest event that made it so, 0 where none says.
    """

    what: str
    pages: list[int]
    page_count: int
    holder: str
    since: int
    why: str


class LeftBehind(Struct, frozen=True):
    """A request that is live at the end. last_seq, last_step: where it was last admitted or grew. quiet: others went on."""

    request: int
    rid: str
    pages: int
    last_seq: int
    last_step: int
    quiet: bool


class TurnedDown(Struct, frozen=True):
    """A command that gave up what its giver did not have. since: the event that made the pages what they were."""

    seq: int
    step: int
    reason: str
    detail: str
    cause: str
    pool: int
    pages: list[int]
    request: int
    expected: int
    found: int
    since: int


class LastEvent(Struct, frozen=True):
    """One of the last events."""

    seq: int
    step: int
    event: str
    cause: str


class Ending(Struct):
    """What is known at the end of a journal."""

    closed: bool = False
    """Whether `Closed` is the last event that is here."""
    sealed: bool = False
    """Whether the last segment is sealed, as a writer that is at work, or was killed, does not leave it."""
    known: bool = False
    """Whether the state at the end is: behind damage it need not be, and what is idle, live or leaked is not told."""
    idle: bool = False
    last_step: int = 0
    stepped: bool = False
    """Whether device steps are told at all."""
    leaks: list[Leak] = []
    live: list[LeftBehind] = []
    turned_down: list[TurnedDown] = []
    retractions: int = 0
    last: list[LastEvent] = []


class Passing:
    """Watches frames go by while they are judged, and keeps what only the end gives a meaning to."""

    def __init__(self) -> None:
        self.ending = Ending()
        self._touched: dict[int, tuple[int, int]] = {}
        self._growths: deque[int] = deque(maxlen=QUIET_GROWTHS)
        self._frames: deque[Frame] = deque(maxlen=LAST_TOLD)
        self._step = 0
        self._looks: dict[type, Callable[[int, Any], None]] = {
            Extended: self._extended, Admitted: self._admitted, Finished: self._ended, Aborted: self._ended,
            Retracted: self._retracted, Refused: self._refused, Opened: self._opened, Stepped: self._stepped,
        }  # fmt: skip

    def watch(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        """The same frames."""
        looks = self._looks
        for frame in frames:
            self._step = frame.step
            for seq, event in enumerate(frame.events, frame.seq_first):
                look = looks.get(type(event))
                if look is not None:
                    look(seq, event)
            self._frames.append(frame)
            yield frame

    def finish(self, state: State | None) -> Ending:
        """What is known once the last frame went by; `state` is the one behind it."""
        ending = self.ending
        ending.last_step = self._step
        ending.last = self._last()
        ending.closed = bool(self._frames) and type(self._frames[-1].events[-1]) is Closed
        if state is not None:
            ending.known = True
            ending.idle = not (state.requests or state.running or state.transfers)
            ending.live = [self._left_behind(state, number) for number in islice(state.requests, TOLD)]
            ending.leaks = list(islice(leaks(state, self._on_its_way()), TOLD))
        return ending

    def _on_its_way(self) -> tuple[int, Set[int]]:
        """From which event on what was taken may be on its way to somebody, and the nodes locked since then."""
        if self.ending.closed:
            return SEQ_MAX, set()
        late = [frame for frame in self._frames if frame.step == self._step]
        locked = {event.node for frame in late for event in frame.events if isinstance(event, Locked)}
        return (late[0].seq_first if late else SEQ_MAX), locked

    def _last(self) -> list[LastEvent]:
        told: deque[LastEvent] = deque(maxlen=LAST_TOLD)
        for frame in self._frames:
            for seq, event in enumerate(frame.events, frame.seq_first):
                cause = label_of(event)
                told.append(LastEvent(seq, frame.step, type(event).__name__, cause))
        return list(told)

    def _left_behind(self, state: State, number: int) -> LeftBehind:
        seq, step = self._touched.get(number, (0, 0))
        quiet = len(self._growths) == QUIET_GROWTHS and seq < self._growths[0]
        held = int(np.count_nonzero(state.full.account == (number << 3 | Kind.REQUEST)))
        return LeftBehind(number, state.requests[number].rid, held, seq, step, quiet)

    def _extended(self, seq: int, event: Extended) -> None:
        self._growths.append(seq)
        for number in whole_ids(event.requests):
            self._touched[number] = seq, self._step

    def _admitted(self, seq: int, event: Admitted) -> None:
        self._touched[event.request] = seq, self._step

    def _ended(self, _: int, event: Finished | Aborted | Retracted) -> None:
        self._touched.pop(event.request, None)

    def _retracted(self, seq: int, event: Retracted) -> None:
        self.ending.retractions += 1
        self._ended(seq, event)

    def _refused(self, seq: int, event: Refused) -> None:
        told = self.ending.turned_down
        if event.reason in OF_OWNERSHIP and len(told) < TOLD:
            pages = whole_pages(event.pages, TOLD)
            told.append(
                TurnedDown(
                    seq, self._step, event.reason, event.detail[:400], label(event.cause), event.pool, pages,
                    event.request, event.expected, event.found, event.since,
                )
            )  # fmt: skip

    def _opened(self, _: int, __: Opened) -> None:
        self._touched.clear()
        self._growths.clear()

    def _stepped(self, _: int, __: Stepped) -> None:
        self.ending.stepped = True


def leaks(state: State, on_its_way: tuple[int, Set[int]]) -> Iterator[Leak]:
    """What nobody who lives holds, once nobody is live. on_its_way: what a crash left half done, from which event on."""
    late, just_locked = on_its_way
    if state.requests or state.running or state.transfers:
        return
    for book in (state.full, state.swa, state.recurrent):
        lost = np.flatnonzero((book.account == (UNBOUND << 3 | Kind.REQUEST)) & (book.since < late))
        if lost.size:
            why = "handed out, and neither written into a row nor given back"
            yield _leaked(book, lost, "a caller without a request", why)
        pending = np.flatnonzero(book.account == Kind.PENDING)
        if pending.size and state.group_open:
            why = "surrendered inside a free group that was never flushed"
            yield _leaked(book, pending, "the open free group", why)
    for node in state.nodes.values():
        if node.anchors and node.id not in just_locked:
            held = whole_pages(node.full)
            yield Leak(
                what="a lock",
                pages=held[:PAGES_KEPT],
                page_count=len(held),
                holder=f"{counted(node.anchors, 'receipt')} of no live request on node {node.id}",
                since=0,
                why="never released: nothing above can be evicted",
            )


def _leaked(book: PoolBook, pages: NDArray[np.intp], holder: str, why: str) -> Leak:
    since = int(book.since[pages].min())
    return Leak(f"{book.pool.name} pages", pages[:PAGES_KEPT].tolist(), len(pages), holder, since, why)


def left_behind(ending: Ending) -> list[LeftBehind]:
    """Live requests that hold pages while nobody grows any more: a leak, unless the server says that they wait."""
    if not ending.live or not all(each.quiet for each in ending.live):
        return []
    return [each for each in ending.live if each.pages]
