"""What differs between a state and what was told of it: owners of pages, mapping, nodes, requests, numbers.

A `Look` holds the cells as they were told last. It is asked about a whole state; about what many events have changed,
which were `noted`; or about what one event can have touched. An event changes the pages that it names, the nodes that it
names and those above them, and the rows of its requests. Rule: a test compares the ways of asking.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from radixledger.cache.state import State
from radixledger.journal.accounts import Kind, Pool
from radixledger.journal.events import (
    Allocated,
    AnyEvent,
    Extended,
    Freed,
    Healed,
    Opened,
    Reclaimed,
    Remapped,
    Removed,
    Tombstoned,
)
from radixledger.journal.fields import NODES_IN, PAGES_IN
from radixledger.journal.moves import ids_of, moves, pages_of
from radixledger.replay.report.cells import POOLS, node_record, numbers_of, request_record
from radixledger.replay.report.packet import Owners, Packet, Record

Number = TypeVar("Number", np.int32, np.int64)

_MAPPED_IN: dict[type, tuple[str, ...]] = {
    kind: tuple(name for name, pool in PAGES_IN[kind].items() if pool is Pool.FULL)
    for kind in (Allocated, Extended, Tombstoned, Healed, Reclaimed, Freed, Removed, Remapped)
}
"""By type of event: the columns of FULL pages whose mapping it may change."""


class Look:
    """The cells of a rank as they were told last."""

    def __init__(self, text: Callable[[str], int]) -> None:
        self._text = text
        self._owner: list[NDArray[np.int64]] = [np.zeros(1, np.int64) for _ in POOLS]
        self._since: list[NDArray[np.int64]] = [np.zeros(1, np.int64) for _ in POOLS]
        self._mapped: NDArray[np.int32] = np.zeros(1, np.int32)
        self._nodes: dict[int, Record] = {}
        self._requests: dict[int, Record] = {}
        self._in_row: dict[int, set[int]] = {}
        """By row: the requests that were told and stand in it; a lawful row has one."""
        self._noted: set[int] = set()
        self._anew = True
        """Whether nothing that was told can be relied on: at the beginning, and where an epoch begins."""

    def note(self, event: AnyEvent) -> None:
        """`event` has been folded, and is told later, with others."""
        kind = type(event)
        names = NODES_IN.get(kind)
        if names is not None:
            for name in names:
                self._noted.add(getattr(event, name))
        elif kind is Opened:
            self._anew = True

    def anew(self) -> None:
        """Another state is looked at from here on."""
        self._anew = True

    def noted(self, state: State, packet: Packet) -> None:
        """Put into `packet` every cell that differs behind the events noted since the last time."""
        named = self._noted
        self._noted = set()
        if self._anew:
            self._anew = False
            self.all_of(state, packet)
            return
        for number in tuple(named):
            above = state.nodes.get(number)
            while above is not None and (above := above.parent) is not None and above.id not in named:
                named.add(above.id)
        self._tell_all_but_nodes(state, packet)
        self._tell_nodes(packet, state, named)

    def all_of(self, state: State, packet: Packet) -> None:
        """Put into `packet` every cell of the state that differs."""
        self._in_row.clear()
        self._tell_all_but_nodes(state, packet)
        self._tell_nodes(packet, state, state.nodes.keys() | self._nodes.keys())

    def _tell_all_but_nodes(self, state: State, packet: Packet) -> None:
        for pool, book in enumerate(state.books):
            self._fit(pool, book.capacity + 1)
            account, since = (
                _grown(book.account, len(self._owner[pool])),
                _grown(book.since, len(self._owner[pool])),
            )
            changed = (account != self._owner[pool]) | (since != self._since[pool])
            self._tell_owners(packet, pool, np.flatnonzero(changed), account, since)
        swa_of = state.mapping.swa_of
        self._fit_mapping(len(swa_of))
        now = _grown(swa_of, len(self._mapped))
        self._tell_mapping(packet, np.flatnonzero(now != self._mapped), now)
        self._tell_requests(packet, state, state.requests.keys() | self._requests.keys())
        packet.numbers = numbers_of(state)

    def touched_by(self, state: State, event: AnyEvent, packet: Packet) -> None:
        """Put into `packet` every cell that `event`, folded just now, has changed.

        At the beginning, where an epoch begins, and where an event's columns are of no whole numbers, every cell is looked at.
        """
        if self._anew or isinstance(event, Opened):
            self._anew = False
            self.all_of(state, packet)
            return
        try:
            self._touched_by(state, event, packet)
        except ValueError:
            self.all_of(state, packet)

    def _touched_by(self, state: State, event: AnyEvent, packet: Packet) -> None:
        books = state.books
        for pool, pages in _pages_by_pool(event).items():
            book = books[pool]
            near = _within(pages, book.capacity)
            differ = (book.account[near] != self._owner[pool][near]) | (
                book.since[near] != self._since[pool][near]
            )
            self._tell_owners(packet, pool, near[differ], book.account, book.since)
        columns = _MAPPED_IN.get(type(event))
        if columns is not None:
            swa_of = state.mapping.swa_of
            near = _within([getattr(event, name) for name in columns], len(swa_of) - 1, first=0)
            self._tell_mapping(packet, near[swa_of[near] != self._mapped[near]], swa_of)
        self._tell_nodes(packet, state, self._nodes_near(state, event))
        named = _requests_named(event)
        if named:
            beside = (self._in_row.get(state.row_of(number), ()) for number in named)
            self._tell_requests(packet, state, named.union(*beside))
        packet.numbers = numbers_of(state)

    # -- what was told last ------------------------------------------------------------------------------------

    def _fit(self, pool: int, size: int) -> None:
        self._owner[pool] = _grown(self._owner[pool], size)
        self._since[pool] = _grown(self._since[pool], size)

    def _fit_mapping(self, size: int) -> None:
        self._mapped = _grown(self._mapped, size)

    def _tell_owners(self, packet: Packet, pool: int, pages: NDArray[np.intp], account: NDArray[np.int64],
                     since: NDArray[np.int64]) -> None:  # fmt: skip
        if pages.size:
            owners = Owners(pages, account[pages], since[pages])
            self._owner[pool][pages], self._since[pool][pages] = owners.account, owners.since
            packet.owners[pool] = owners

    def _tell_mapping(self, packet: Packet, full: NDArray[np.intp], swa_of: NDArray[np.int32]) -> None:
        if full.size:
            packet.mapping = (full, swa_of[full])
            self._mapped[full] = swa_of[full]

    def _tell_nodes(self, packet: Packet, state: State, named: Iterable[int]) -> None:
        for number in named:
            node = state.nodes.get(number)
            _tell(packet.nodes, self._nodes, number, None if node is None else node_record(node))

    def _tell_requests(self, packet: Packet, state: State, named: Iterable[int]) -> None:
        for number in named:
            request = state.requests.get(number)
            record = None if request is None else request_record(state, request, self._text)
            _tell(packet.requests, self._requests, number, record)
            row = self._in_row.setdefault(state.row_of(number), set())
            if record is None:
                row.discard(number)
            else:
                row.add(number)

    def _nodes_near(self, state: State, event: AnyEvent) -> Iterator[int]:
        """The nodes that an event names, and all above them."""
        seen: set[int] = set()
        for name in NODES_IN.get(type(event), ()):
            number = getattr(event, name)
            if number not in seen:
                seen.add(number)
                yield number
            above = state.nodes.get(number)
            while above is not None and (above.id not in seen or above.id == number):
                if above.id not in seen:
                    seen.add(above.id)
                    yield above.id
                above = above.parent


def _tell(
    told: dict[int, Record | None], known: dict[int, Record], number: int, record: Record | None
) -> None:
    if known.get(number) == record:
        return
    told[number] = record
    if record is None:
        del known[number]
    else:
        known[number] = record


def _pages_by_pool(event: AnyEvent) -> dict[int, list[bytes]]:
    found: dict[int, list[bytes]] = {}
    for move in moves(event):
        found.setdefault(int(move.pool), []).append(move.pages)
    return found


def _within(packed: Sequence[bytes], capacity: int, first: int = 1) -> NDArray[np.intp]:
    """Those of the named pages that a pool has, each once."""
    pages = np.unique(pages_of(b"".join(packed))).astype(np.intp)
    return pages[(pages >= first) & (pages <= capacity)]


def _requests_named(event: Any) -> set[int]:
    named = {event.request} if hasattr(event, "request") else set()
    for column in ("requests", "takers"):
        packed = getattr(event, column, b"")
        named.update(ids_of(packed[: len(packed) & ~7]).tolist())
    giver = getattr(event, "giver", 0)
    return named | {giver >> 3} if giver & 7 == Kind.REQUEST else named


def _grown(array: NDArray[Number], size: int) -> NDArray[Number]:
    """An array of at least `size`, with zeros behind what it has; a rank may open anew with other pools."""
    if len(array) >= size:
        return array
    grown: NDArray[Number] = np.zeros(size, array.dtype)
    grown[: len(array)] = array
    return grown
