"""What is different between two states: two moments of one run, or the same moment of two.

Of one run, numbers mean the same: requests, nodes and pages are compared by number. Of two runs, requests are compared by
their request ids, nodes by the path that leads to them or, where keys cannot be compared, by structure; pages are counted only. Rule: it works nothing out but that.
"""

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

import numpy as np
from msgspec import Struct

from radixledger.cache.ledger import PoolBook
from radixledger.cache.state import Node, Request, State
from radixledger.journal.accounts import Kind, Pool, describe
from radixledger.journal.units import NodeId
from radixledger.replay.diff.diverge import comparable_keys
from radixledger.replay.diff.pairing import Names, paired

Key = int | str


class Differs(Struct, frozen=True):
    """One field of one thing; a side without a value does not have the thing."""

    what: str
    field: str
    a: str
    b: str


class PagesMoved(Struct, frozen=True):
    """Pages of one pool whose account is another one: from `a` to `b`."""

    pool: str
    a: str
    b: str
    pages: list[int]


class StateDiff(Struct, frozen=True):
    """Every difference; `same_run`: whether numbers mean the same on both sides. pages: of one run only."""

    same_run: bool
    keys: bool
    numbers: list[Differs]
    requests: list[Differs]
    nodes: list[Differs]
    pages: list[PagesMoved]

    @property
    def differs(self) -> bool:
        """Whether there is any difference."""
        return bool(self.numbers or self.requests or self.nodes or self.pages)


def state_diff(a: State, b: State) -> StateDiff:
    """Compare two states."""
    mine, theirs = a.opened, b.opened
    same_run = (mine.run, mine.rank, mine.epoch) == (theirs.run, theirs.rank, theirs.epoch)
    keys = comparable_keys(mine, theirs)
    names = (None, None) if same_run else (_by_path(a), _by_path(b)) if keys else paired(a, b)
    return StateDiff(
        same_run=same_run,
        keys=keys,
        numbers=list(_differing("", {"": _numbers(a)}, {"": _numbers(b)})),
        requests=list(_differing("request ", _requests(a, same_run), _requests(b, same_run))),
        nodes=list(_differing("node ", _nodes(a, names[0]), _nodes(b, names[1]))),
        pages=[each for pair in zip(a.books, b.books, strict=True) for each in _moved(*pair)]
        if same_run
        else [],
    )


def _differing(
    kind: str, mine: Mapping[Key, Mapping[str, Any]], theirs: Mapping[Key, Mapping[str, Any]]
) -> Iterator[Differs]:
    """Fields that differ, thing by thing: those of A in their order, then those that only B has."""
    for key in dict.fromkeys([*mine, *theirs]):
        one, other = mine.get(key), theirs.get(key)
        label = str((one or other or {}).get("label", key))
        if one is None or other is None:
            yield Differs(f"{kind}{label}", "", "is there" if one else "", "is there" if other else "")
            continue
        for field, value in one.items():
            if field != "label" and value != other.get(field):
                yield Differs(f"{kind}{label}", field, str(value), str(other.get(field)))


def _numbers(state: State) -> dict[str, Any]:
    """Counters of the state, and pages of each pool by kind of account."""
    told: dict[str, Any] = {
        f"{book.pool.name} pages {kind.name.lower()}": book.held[kind]
        for book in state.books
        for kind in Kind
        if kind is not Kind.RESERVED
    }
    evictable = {"FULL": state.full_evictable, "SWA": state.swa_evictable}
    told |= {f"{pool} pages evictable": count for pool, count in evictable.items()}
    totals = state.totals
    return told | {
        "tree nodes": len(state.nodes) - 1,
        "tombstones": sum(not node.swa for node in state.nodes.values()) - 1 if state.windowed else 0,
        "receipts": sum(node.anchors for node in state.nodes.values()),
        "live requests": len(state.requests),
        "running steps": ", ".join(map(str, state.running)),
        "free group": "open" if state.group_open else "none",
        "evicted so far": f"FULL {totals.full_evicted}, SWA {totals.swa_evicted}",
        "tombstones so far": f"{totals.tombstones} made, {totals.healed} healed",
    }


def _requests(state: State, same_run: bool) -> dict[Key, dict[str, Any]]:
    rows = state.rows
    return {
        (each.id if same_run else each.rid): {
            "label": f"{each.rid} ({each.id})" if same_run else each.rid,
            "prompt": each.prompt,
            "prefix": each.prefix,
            "length": int(rows.length[each.row]),
            "in the tree": int(rows.protected[each.row]),
            "cursor": int(rows.cursor[each.row]),
            "path": _path_end(state, each, same_run),
            "lock": _lock(each, same_run),
        }
        for each in state.requests.values()
    }


def _path_end(state: State, request: Request, same_run: bool) -> str:
    if same_run:
        return f"node {request.node}"
    node = state.nodes.get(request.node)
    return f"{node.end * state.page_size} tokens" if node is not None else "nowhere"


def _lock(request: Request, same_run: bool) -> str:
    if request.receipt is None:
        return "none"
    return f"node {request.receipt.node}, boundary {request.receipt.boundary}" if same_run else "held"


def _nodes(state: State, names: Names | None) -> dict[Key, dict[str, Any]]:
    """Nodes by number, or by these names."""
    size = state.page_size
    return {
        (node.id if names is None else names[node.id]): {
            "label": f"{node.id}" if names is None else f"at {node.end * size} tokens ({node.id})",
            "tokens": f"[{(node.end - node.pages) * size}, {node.end * size})",
            "FULL": _count(node.full),
            "SWA": _count(node.swa) if state.windowed else "none",
            "HOST": _count(node.host),
            "receipts": node.anchors,
            "FULL locks": node.holds,
            "SWA locks": node.swa_locks,
        }
        for node in state.nodes.values()
        if node.parent is not None and (names is None or node.id in names)
    }


def _count(packed: bytes) -> str:
    return f"{len(packed) // 4} pages" if packed else "none"


def _by_path(state: State) -> Names:
    """A digest of the way from the root to each node."""
    todo, named = [(state.root, b"")], dict[NodeId, str]()
    while todo:
        node, way = todo.pop()
        if node.id in named:
            continue  # a lawless journal may have bent the tree into a ring
        named[node.id] = way.hex()
        todo += [(child, _step(way, child, state.stride)) for child in (node.children or {}).values()]
    return named


def _step(way: bytes, child: Node, stride: int) -> bytes:
    """Page by page, so that a cut elsewhere changes nothing; a namespace begins the way."""
    way = way or child.namespace
    for at in range(0, len(child.key), max(1, stride)):
        way = blake2b(way + child.key[at : at + stride], digest_size=16).digest()
    return way


def _moved(mine: PoolBook, theirs: PoolBook) -> Iterator[PagesMoved]:
    """Pages that changed hands, those of the same two accounts together."""
    if mine.capacity != theirs.capacity:
        return
    changed = np.flatnonzero(mine.account != theirs.account)
    pairs: dict[tuple[int, int], list[int]] = {}
    for page in changed.tolist():
        pairs.setdefault((int(mine.account[page]), int(theirs.account[page])), []).append(page)
    for (one, other), pages in pairs.items():
        yield PagesMoved(Pool(mine.pool).name, describe(one), describe(other), pages)
