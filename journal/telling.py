"""What every call of a recorder does: find the numbers, pack the columns, hand the event over.

Part of `recorder`, see there. Rule: columns that do not fit each other are refused before anything is told.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from radixledger.journal.accounts import FREE, Account, request_account, tree_account
from radixledger.journal.events import AnyEvent
from radixledger.journal.names import Names
from radixledger.journal.units import NO_PAGES, UNBOUND, NodeId, Pages, RequestId
from radixledger.journal.writer import JournalWriter

PageIds = Sequence[int] | NDArray[np.integer]
"""Page numbers of one pool on this rank, from 1; page 0 is padding and nobody's."""

ROOT: None = None
"""The root of the tree, where a node is asked for."""


class Telling:
    """A writer, and the names that the caller uses."""

    def __init__(self, writer: JournalWriter) -> None:
        self.writer = writer
        self._names = Names(writer.last_seq, writer.opened.config.rows)
        self._nested = 0
        self._to: int = FREE
        """Where pages go that are given up: pending while a free group is open."""

    @contextmanager
    def command(self) -> Iterator[None]:
        """What is told inside is one command: one frame, which a torn end loses whole or not at all."""
        self._nested += 1
        try:
            yield
        finally:
            self._nested -= 1
            self._end()

    def _tell(self, event: AnyEvent) -> None:
        self.writer.append(event)
        self._end()

    def _end(self) -> None:
        if not self._nested:
            self.writer.end_command()

    def _id(self, node: Hashable) -> NodeId:
        return self._names.node(node).id

    def _request(self, rid: str | None) -> RequestId:
        return UNBOUND if rid is None else self._names.request(rid)

    def _account(self, rid: str | None, node: Hashable) -> Account:
        return tree_account(self._id(node)) if node is not ROOT else request_account(self._request(rid))


def packed(numbers: PageIds) -> Pages:
    """Numbers as packed int32; raises ValueError for what does not fit."""
    if not len(numbers):
        return NO_PAGES
    wide = np.asarray(numbers)
    if wide.ndim != 1 or wide.dtype.kind not in "iu":
        raise ValueError(
            f"pages and lengths are one row of whole numbers, not {wide.dtype} {list(wide.shape)}"
        )
    if wide.min() < 0 or wide.max() >= 1 << 31:
        raise ValueError(f"numbers from {wide.min()} to {wide.max()} are given; pages and lengths are int32")
    return Pages(wide.astype("<i4").tobytes())


def ids(numbers: Iterable[int]) -> bytes:
    """Numbers of requests or nodes as packed int64."""
    return np.fromiter(numbers, "<i8").tobytes()


def same_length(**columns: Sequence[object]) -> None:
    """Raise ValueError where columns that tell of the same things differ in length."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{length} {name}" for name, length in lengths.items())
        raise ValueError(f"{told}: they tell of the same requests, one for each")
