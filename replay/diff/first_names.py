"""Events without their numbers: what two runs have to share to have done the same, whatever they called it.

Nodes, requests, marks, copies, device steps and pages are named by first appearance, 1, 2, 3; a page gets a new name each time
that it leaves `free`, because which free page is handed out means nothing. Rule: left out are times, digests, ledgers and
texts that spell numbers. Keys and namespaces are compared where both runs wrote them the same way, and named where not.
"""

from collections.abc import Callable
from typing import Any, get_args

from msgspec import Struct
from msgspec.structs import fields

from radixledger.journal.accounts import FREE, Kind, Pool, holder_of
from radixledger.journal.causes import label
from radixledger.journal.events import (
    AnyEvent,
    Closed,
    Digested,
    LedgerTaken,
    Opened,
    Snapshotted,
)
from radixledger.journal.fields import PAGES_IN
from radixledger.journal.moves import ids_of, pages_of, whole_moves
from radixledger.journal.units import BoundaryId, NodeId, Pages, RequestId, TransferId

SILENT = (Opened, Digested, Snapshotted, LedgerTaken, Closed)
"""What a writer says of itself and not of the cache."""

_LEFT_OUT = frozenset({"detail", "since", "digest"})
_ACCOUNTS = frozenset({"giver", "taker", "to", "expected", "found"})
_NUMBERS = frozenset({"grown", "counts", "starts", "stops", "ends"})
_SECRET = frozenset({"key", "namespace"})
_PACKED = {"requests": "request", "takers": "request", "skipped": "node"}
_SINGLE = {NodeId: "node", RequestId: "request", BoundaryId: "boundary", TransferId: "transfer"}
_HOLDERS = {Kind.REQUEST: "request", Kind.TREE: "node", Kind.IN_FLIGHT: "transfer"}

Canonical = dict[str, Any]
"""The fields of an event by name, with names in the place of numbers."""


class FirstNames:
    """The names of one run so far. `keys`: whether keys can be compared with the other run's."""

    def __init__(self, *, keys: bool) -> None:
        self._keys = keys
        self._names: dict[str, dict[Any, int]] = {}
        self._last: dict[str, int] = {}

    def canonical(self, event: AnyEvent) -> Canonical:
        """The event with names; what it frees is forgotten then."""
        told = {name: read(self, event) for name, read in _READS[type(event)]}
        for move in whole_moves(event):
            if move.taker == FREE:
                known = self._names.get(move.pool.name, {})
                for page in pages_of(move.pages).tolist():
                    known.pop(page, None)
        return told

    def name(self, kind: str, number: Any) -> int:
        """The name of one thing; 0, which means none of its kind, keeps its own."""
        if number in (0, ""):
            return 0
        known = self._names.setdefault(kind, {})
        if number not in known:
            known[number] = self._last[kind] = self._last.get(kind, 0) + 1
        return known[number]

    def account(self, account: int) -> str:
        """An account by kind and the name of its holder."""
        kind = account & 7
        if kind in _HOLDERS and account > 0:
            return f"{Kind(kind).name.lower()}({self.name(_HOLDERS[Kind(kind)], holder_of(account))})"
        return str(account)

    def pages(self, pool: str, packed: bytes) -> tuple[int, ...]:
        """A column of pages by their names; how long it is, where it is no such column."""
        if len(packed) % 4:
            return (-len(packed),)
        return tuple(self.name(pool, page) for page in pages_of(packed).tolist())

    def ids(self, kind: str, packed: bytes) -> tuple[int, ...]:
        """A column of requests or nodes by their names."""
        if len(packed) % 8:
            return (-len(packed),)
        return tuple(self.name(kind, number) for number in ids_of(packed).tolist())

    def secret(self, kind: str, value: bytes) -> bytes | int:
        """A key or namespace, or its name where the other run's was written in another way."""
        return value if self._keys else self.name(kind, hash(value) if value else 0)


def numbers(packed: bytes) -> tuple[int, ...]:
    """A column of counts or positions."""
    return tuple(pages_of(packed).tolist()) if len(packed) % 4 == 0 else (-len(packed),)


_Read = Callable[[FirstNames, Any], Any]


def _reads(kind: type[Struct]) -> list[tuple[str, _Read]]:
    """How each field of an event is told."""
    return [
        (field.name, _read(kind, field.name, field.type))
        for field in fields(kind)
        if field.name not in _LEFT_OUT
    ]


def _read(kind: type[Struct], name: str, unit: Any) -> _Read:
    if unit in _SINGLE:
        return lambda names, event: names.name(_SINGLE[unit], getattr(event, name))
    if unit is Pages:
        pool = PAGES_IN[kind][name]
        if pool is None:
            return lambda names, event: names.pages(_pool_name(event.pool), getattr(event, name))
        return lambda names, event: names.pages(pool.name, getattr(event, name))
    if name in _PACKED:
        return lambda names, event: names.ids(_PACKED[name], getattr(event, name))
    return _read_plain(name)


def _read_plain(name: str) -> _Read:
    if name in _ACCOUNTS:
        return lambda names, event: names.account(getattr(event, name))
    if name in _NUMBERS:
        return lambda _, event: numbers(getattr(event, name))
    if name in _SECRET:
        return lambda names, event: names.secret(name, getattr(event, name))
    if name in ("rid", "step"):
        return lambda names, event: names.name(name, getattr(event, name))
    if name == "cause":
        return lambda _, event: label(event.cause)
    return lambda _, event: getattr(event, name)


def _pool_name(code: int) -> str:
    return Pool(code).name if 0 <= code < len(Pool) else "?"


_READS: dict[type, list[tuple[str, _Read]]] = {kind: _reads(kind) for kind in get_args(AnyEvent)}
