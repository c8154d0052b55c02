"""Names for what a rank hands out: requests, pages, state slots, receipts, copies; the same in every run of a command.

A page is called by who was handed it and its place there: `r1.3` is the page behind the first three of request `r1`'s
row, `a2.0` the first of the second allocation. Whoever holds it later, it keeps that name until it is handed out anew.
Rule: names follow from events and from the state before each; nobody's numbers enter them.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from radixledger.cache.locks import receipt_of
from radixledger.cache.state import Receipt, State
from radixledger.cache.window import pages_for
from radixledger.journal import events as e
from radixledger.journal.causes import Operation
from radixledger.journal.events import AnyEvent
from radixledger.journal.moves import takings
from radixledger.journal.units import UNBOUND

T = TypeVar("T")
Title = Callable[[str], str]
"""Gives the next name: of a request (`r`), an allocation (`a`), state slots (`s`), a lock (`l`) or a copy (`t`)."""


class Unplayable(Exception):
    """A command names what there is not: a request, page, path, receipt or copy."""


class Known(dict[str, T]):
    """What is known by its name; `hints` are asked where it is not."""

    hints: Mapping[str, T] = MappingProxyType({})

    def knows(self, name: str) -> bool:
        """Whether something is called so."""
        return name in self or name in self.hints

    def __missing__(self, name: str) -> T:
        if name in self.hints:
            return self.hints[name]
        raise Unplayable(f"nothing is called {name!r}")


class Shelf:
    """Things of one kind with their names; a number that is handed out anew has its new name from then on."""

    def __init__(self) -> None:
        self.numbers: Known[int] = Known()
        self.names: dict[int, str] = {}

    def put(self, name: str, number: int) -> None:
        """Call a number by a name."""
        self.numbers[name], self.names[number] = number, name

    def put_all(self, name: str, first: int, packed: bytes) -> None:
        """Call packed ids by a name and their places, from `first` on."""
        for place, number in enumerate(np.frombuffer(packed[: len(packed) & ~3], "<i4").tolist(), first):
            self.put(f"{name}.{place}", number)


SHELVES = ("requests", "copies", "full", "swa", "states", "host")


class NameBook:
    """Who is called what on one rank; numbers are those of its events."""

    def __init__(self) -> None:
        self.requests, self.copies = Shelf(), Shelf()
        self.full, self.swa, self.states, self.host = Shelf(), Shelf(), Shelf(), Shelf()
        self.receipts: Known[Receipt] = Known()
        self.given: dict[str, int] = {}
        """How many things of a name there were."""

    def hand_out(self, state: State, event: AnyEvent, title: Title) -> None:
        """Name what `event`, which `state` does not know yet, hands out."""
        self.introduce(event, title)
        self.hand_pages(state, event, title)

    def introduce(self, event: AnyEvent, title: Title) -> None:
        """Name the request, lock or copy that begins with `event`."""
        name = _INTRODUCE.get(type(event))
        if name is not None:
            name(self, event, title)

    def hand_pages(self, state: State, event: AnyEvent, title: Title) -> None:
        """Name the pages and slots that `event` takes from those that are free."""
        name = _HAND_PAGES.get(type(event))
        if name is not None:
            name(self, state, event, title)

    def copy(self) -> "NameBook":
        """The same names, apart."""
        other = NameBook()
        other.become(self)
        return other

    def become(self, other: "NameBook") -> None:
        """Know what `other` knows, and nothing else."""
        for name in SHELVES:
            mine, its = getattr(self, name), getattr(other, name)
            mine.numbers, mine.names = Known(its.numbers), dict(its.names)
        self.receipts, self.given = Known(other.receipts), dict(other.given)

    def foretold_by(self, other: "NameBook") -> None:
        """What is not known here is what `other` knows of it, which went the same way and further."""
        for name in SHELVES:
            getattr(self, name).numbers.hints = getattr(other, name).numbers

    def request(self, number: int) -> str:
        """The name of a request, or nobody's."""
        return self.requests.names.get(number, "nobody")

    def one_more(self, name: str, count: int = 1) -> int:
        """How many things of this name there are already; then there are `count` more."""
        before = self.given.get(name, 0)
        self.given[name] = before + count
        return before


def _admitted(book: NameBook, event: e.Admitted, title: Title) -> None:
    book.requests.put(title("r"), event.request)


def _allocated(book: NameBook, _: State, event: e.Allocated, title: Title) -> None:
    name = title("a")
    book.full.put_all(name, 0, event.full)
    book.swa.put_all(name, (len(event.full) - len(event.swa)) // 4, event.swa)


def _extended(book: NameBook, state: State, event: e.Extended, _: Title) -> None:
    with suppress(ValueError):  # columns that no lawful writer wrote: named as far as they go
        for taker, full, swa in takings(event):
            name = book.request(taker)
            first = pages_for(int(state.rows.length[state.row_of(taker)]), state.page_size)
            book.full.put_all(name, first, full)
            book.swa.put_all(name, first, swa)


def _locked(book: NameBook, event: e.Locked, title: Title) -> None:
    if event.request == UNBOUND and event.cause >> 5 == Operation.LOCK:
        book.receipts[title("l")] = receipt_of(event)


def _state_taken(book: NameBook, _: State, event: e.StateTaken, title: Title) -> None:
    name = title("s") if event.request == UNBOUND else book.request(event.request)
    book.states.put_all(name, book.one_more(name, len(event.slots) // 4), event.slots)


def _state_replaced(book: NameBook, _: State, event: e.StateReplaced, __: Title) -> None:
    name = book.request(event.request)
    book.states.put_all(name, book.one_more(name), event.fresh)


def _copy_begun(book: NameBook, event: e.BackupBegun | e.LoadBegun, title: Title) -> None:
    book.copies.put(title("t"), event.transfer)


def _backup_begun(book: NameBook, _: State, event: e.BackupBegun, __: Title) -> None:
    book.host.put_all(book.copies.names.get(event.transfer, "nobody"), 0, event.host)


def _load_begun(book: NameBook, _: State, event: e.LoadBegun, __: Title) -> None:
    book.full.put_all(book.copies.names.get(event.transfer, "nobody"), 0, event.full)


_INTRODUCE: dict[type, Callable[[NameBook, Any, Title], None]] = {
    e.Admitted: _admitted,
    e.Locked: _locked,
    e.BackupBegun: _copy_begun,
    e.LoadBegun: _copy_begun,
}
_HAND_PAGES: dict[type, Callable[[NameBook, State, Any, Title], None]] = {
    e.Allocated: _allocated,
    e.Extended: _extended,
    e.StateTaken: _state_taken,
    e.StateReplaced: _state_replaced,
    e.BackupBegun: _backup_begun,
    e.LoadBegun: _load_begun,
}
