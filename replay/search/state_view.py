"""What can be asked of a state by name: the fields of the state, of a pool, a page, a node and a request, as a table.

For texts that come from a command line (`predicate`). Rule: a field is read in constant time unless its help says
otherwise, changes nothing, and is total: on a lawless state it gives nothing where there is nothing.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from radixledger.cache.ledger import PoolBook
from radixledger.cache.state import Node, Request, State
from radixledger.journal.accounts import Kind as AccountKind
from radixledger.journal.accounts import Pool, describe

STATE, NUMBER, FLAG, TEXT = "state", "number", "flag", "text"


class Field(NamedTuple):
    """One field: the kind of what it gives, how it is read of a state and the thing, and what it means."""

    kind: str
    read: Callable[[State, Any], Any]
    help: str


class Item(NamedTuple):
    """How one of many is named, in brackets."""

    kind: str
    keys: tuple[type, ...]
    read: Callable[[State, Any, Any], Any]
    help: str


class Kind(NamedTuple):
    """A kind of thing: its fields, and what can be named in brackets behind it."""

    fields: dict[str, Field]
    item: Item | None = None


class Cell(NamedTuple):
    """One page of a pool."""

    book: PoolBook
    page: int


def _held(kind: AccountKind) -> Callable[[State, PoolBook], int]:
    return lambda _, book: book.held[kind]


def _evictable(state: State, book: PoolBook) -> int:
    return state.evictable(book.pool)


def _cell(_: State, book: PoolBook, page: int) -> Cell | None:
    return Cell(book, page) if 0 <= page <= book.capacity else None


def _partner(state: State, cell: Cell) -> int | None:
    """The page of the other pool; None where there is none, and for pools that have no mapping."""
    swa_of = state.mapping.swa_of
    if cell.book.pool is Pool.FULL:
        return int(swa_of[cell.page]) or None
    if cell.book.pool is Pool.SWA and cell.page:
        return next(iter((swa_of == cell.page).nonzero()[0].tolist()), None)
    return None


def _node(state: State, _: State, number: int) -> Node | None:
    return state.nodes.get(number)


def _request(state: State, _: State, key: int | str) -> Request | None:
    number = state.rids.get(key) if isinstance(key, str) else key
    return None if number is None else state.requests.get(number)


def _of_row(name: str) -> Callable[[State, Request], int]:
    return lambda state, request: int(getattr(state.rows, name)[request.row])


def _number_of(name: str) -> Callable[[State, Any], int]:
    return lambda _, thing: int(getattr(thing, name))


def _parent(_: State, node: Node) -> Node | None:
    return node.parent


def _tombstones(state: State, _: State) -> int:
    return (
        sum(not node.swa for node in state.nodes.values() if node.parent is not None) if state.windowed else 0
    )


def _receipts(state: State, _: State) -> int:
    return sum(node.anchors for node in state.nodes.values())


_POOL = "pool"
KINDS: dict[str, Kind] = {
    STATE: Kind(
        {
            "seq": Field(NUMBER, lambda state, _: state.seq, "the event behind which this is the state"),
            "epoch": Field(NUMBER, lambda state, _: state.opened.epoch, "the epoch of the writer"),
            "full": Field(_POOL, lambda state, _: state.full, "the FULL pool"),
            "swa": Field(_POOL, lambda state, _: state.swa, "the SWA pool"),
            "recurrent": Field(_POOL, lambda state, _: state.recurrent, "the pool of states; its pages are slots"),
            "host": Field(_POOL, lambda state, _: state.host, "the HOST pool"),
            "node": Field("nodes", lambda state, _: state, "the nodes of the tree, by number: `node[12]`"),
            "request": Field("requests", lambda state, _: state, 'live requests: `request["r-17"]`, `request[98]`'),
            "nodes": Field(NUMBER, lambda state, _: len(state.nodes) - 1, "how many nodes the tree has"),
            "tombstones": Field(NUMBER, _tombstones, "how many of them have no SWA pages; counted node by node"),
            "receipts": Field(NUMBER, _receipts, "locks that were handed out and not given back; counted node by node"),
            "requests": Field(NUMBER, lambda state, _: len(state.requests), "how many requests are live"),
            "running": Field(NUMBER, lambda state, _: len(state.running), "device steps that began and did not end"),
            "transfers": Field(NUMBER, lambda state, _: len(state.transfers), "copies under way"),
            "dangling": Field(NUMBER, lambda state, _: state.dangling, "FULL pages given up whose SWA part is not freed yet"),
            "group_open": Field(FLAG, lambda state, _: state.group_open, "whether a free group is open"),
            "closed": Field(FLAG, lambda state, _: state.closed, "whether the writer has ended cleanly"),
            "full_evicted": Field(NUMBER, lambda state, _: state.totals.full_evicted, "FULL pages evicted so far"),
            "swa_evicted": Field(NUMBER, lambda state, _: state.totals.swa_evicted, "SWA pages evicted so far"),
            "tombstoned": Field(NUMBER, lambda state, _: state.totals.tombstones, "tombstones made so far"),
            "healed": Field(NUMBER, lambda state, _: state.totals.healed, "tombstones healed so far"),
        }
    ),
    _POOL: Kind(
        {
            "capacity": Field(NUMBER, lambda _, book: book.capacity, "pages, without page 0"),
            "free": Field(NUMBER, _held(AccountKind.FREE), "pages that are free"),
            "pending": Field(NUMBER, _held(AccountKind.PENDING), "pages in an open free group"),
            "requests": Field(NUMBER, _held(AccountKind.REQUEST), "pages of requests"),
            "tree": Field(NUMBER, _held(AccountKind.TREE), "pages of the tree"),
            "in_flight": Field(NUMBER, _held(AccountKind.IN_FLIGHT), "pages that a copy is writing"),
            "evictable": Field(NUMBER, _evictable, "pages of the tree that no lock holds"),
            "protected": Field(NUMBER, lambda state, book: book.held[AccountKind.TREE] - _evictable(state, book), "pages of the tree that locks hold"),
        },
        Item("page", (int,), _cell, "a page: `full[57]`"),
    ),
    "page": Kind(
        {
            "owner": Field(TEXT, lambda _, cell: describe(int(cell.book.account[cell.page])), 'its account: "free", "request(98)", "tree(3)"'),
            "since": Field(NUMBER, lambda _, cell: int(cell.book.since[cell.page]), "the event that made it so"),
            "partner": Field(NUMBER, _partner, "the page of the other pool that it is mapped to; nothing for none"),
        }
    ),
    "nodes": Kind({}, Item("node", (int,), _node, "the node of that number, nothing where there is none")),
    "requests": Kind({}, Item("request", (int, str), _request, "the live request of that number or request id, or nothing")),
    "node": Kind(
        {
            "parent": Field("node", _parent, "the node above it; nothing for the root"),
            "id": Field(NUMBER, _number_of("id"), "its number"),
            "pages": Field(NUMBER, _number_of("pages"), "pages of its edge"),
            "stop": Field(NUMBER, lambda state, node: node.end * state.page_size, "tokens from the root to its end"),
            "live": Field(FLAG, lambda _, node: bool(node.swa), "whether it has SWA pages"),
            "tombstone": Field(FLAG, lambda state, node: state.windowed and not node.swa, "whether it lost them"),
            "children": Field(NUMBER, lambda _, node: len(node.children or ()), "nodes under it"),
            "receipts": Field(NUMBER, _number_of("anchors"), "locks on this very node"),
            "full_locks": Field(NUMBER, _number_of("holds"), "those, and held children"),
            "swa_locks": Field(NUMBER, _number_of("swa_locks"), "locked windows that run through it"),
            "boundary": Field(NUMBER, _number_of("boundary"), "its mark; 0 for none"),
        }
    ),
    "request": Kind(
        {
            "id": Field(NUMBER, _number_of("id"), "its number"),
            "rid": Field(TEXT, lambda _, request: request.rid, "its request id"),
            "row": Field(NUMBER, _number_of("row"), "its row of the page tables"),
            "prompt": Field(NUMBER, _number_of("prompt"), "tokens of the prompt"),
            "prefix": Field(NUMBER, _number_of("prefix"), "tokens that it began with from the tree"),
            "length": Field(NUMBER, _of_row("length"), "tokens computed, or being computed"),
            "protected": Field(NUMBER, _of_row("protected"), "tokens that the tree holds for it"),
            "cursor": Field(NUMBER, _of_row("cursor"), "tokens below which its SWA is given back"),
            "node": Field("node", lambda state, request: state.nodes.get(request.node), "where its path in the tree ends"),
            "locked": Field(FLAG, lambda _, request: request.receipt is not None, "whether it holds a lock"),
        }
    ),
}  # fmt: skip
"""Kinds by name; a field whose kind is not here is a number, a flag or a text."""
