"""A state in words: pools, accounts, requests, locks, copies under way and the tree, as a person on call reads them, or as JSON.

Rule: it shows what the state holds and works nothing out but counts; whatever is shown can be asked about with
`radixledger replay blame`.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from radixledger.cache.digest import digest
from radixledger.cache.ledger import PoolBook
from radixledger.cache.state import Node, Receipt, Request, State
from radixledger.cache.window import pages_for
from radixledger.journal.accounts import Kind, Pool, describe, holder_of
from radixledger.journal.moves import pages_of
from radixledger.journal.units import ROOT
from radixledger.tools.event_text import ranges

Rows = list[Sequence[object]]

POOL_COLUMNS = (
    "pool",
    "capacity",
    "free",
    "pending",
    "requests",
    "in flight",
    "tree evictable",
    "tree protected",
)
REQUEST_COLUMNS = (
    "request", "request id", "row", "prompt", "prefix", "protected", "cursor", "length", "node", "lock",
)  # fmt: skip
STATE_COLUMNS = ("runs on", "copies from", "tracks (slot: tokens)")
LOCK_COLUMNS = ("node", "boundary", "held by", "passed over")
TRANSFER_COLUMNS = ("transfer", "what", "node", "pages", "left", "gathered")
NAMES = frozenset({"request", "row", "node", "boundary", "transfer", "runs on", "copies from"})
"""Columns of numbers that name something and count nothing."""


def summary(state: State) -> dict[str, object]:
    """What the state is of, and its counters."""
    opened, totals = state.opened, state.totals
    return {
        "run": opened.run,
        "rank": f"{opened.rank} of {opened.ranks}",
        "epoch": opened.epoch,
        "route": opened.route,
        "page size": state.page_size,
        "window": state.config.window_tokens,
        "digest": digest(state).hex(),
        "tree nodes": len(state.nodes) - 1,
        "live requests": len(state.requests),
        "running steps": ", ".join(map(str, state.running)) or "none",
        "free group": "open" if state.group_open else "none",
        "FULL pages waiting for free_swa": state.dangling,
        "evicted pages (FULL, SWA)": f"{totals.full_evicted}, {totals.swa_evicted}",
        "tombstones made, healed": f"{totals.tombstones}, {totals.healed}",
    }


def pools(state: State) -> Rows:
    """Pages of each pool by account; slots of states. On the host what may go is what stands alone and unlocked."""
    return [_pool(book, state.evictable(book.pool)) for book in _books(state)]


def _books(state: State) -> list[PoolBook]:
    """The pools that the rank has."""
    return [book for book in state.books if book.capacity]


def _pool(book: PoolBook, evictable: int) -> Sequence[object]:
    held = book.held
    return (
        book.pool.name, book.capacity, held[Kind.FREE], held[Kind.PENDING], held[Kind.REQUEST], held[Kind.IN_FLIGHT],
        evictable, held[Kind.TREE] - evictable,
    )  # fmt: skip


def account_columns(state: State) -> Sequence[str]:
    """The columns of `accounts`: two for each pool that the rank has."""
    units = {Pool.RECURRENT: "slots"}
    pairs = [(each.pool.name, f"{each.pool.name} {units.get(each.pool, 'pages')}") for each in _books(state)]
    return ("account", "request id", *(name for pair in pairs for name in pair))


def accounts(state: State) -> Rows:
    """Which requests and copies under way hold which pages, and what an open free group has taken in."""
    held = np.unique(np.concatenate([book.account for book in _books(state)]))
    shown = held[np.isin(held & 7, (Kind.PENDING, Kind.REQUEST, Kind.IN_FLIGHT))]
    return [_account(state, account) for account in shown.tolist()]


def _account(state: State, account: int) -> Sequence[object]:
    live = state.requests.get(holder_of(account)) if account & 7 == Kind.REQUEST else None
    out: list[object] = [describe(account), live.rid if live is not None else ""]
    for book in _books(state):
        held = np.flatnonzero(book.account == account).tolist()
        out += [len(held), ranges(held)]
    return out


def request_columns(state: State) -> Sequence[str]:
    """The columns of `requests`."""
    return REQUEST_COLUMNS + STATE_COLUMNS * bool(state.states_each)


def requests(state: State) -> Rows:
    """Live requests with their lengths in tokens, where their path ends, and the states that they have."""
    rows = state.rows
    return [
        (
            each.id, each.rid, each.row, each.prompt, each.prefix, int(rows.protected[each.row]),
            int(rows.cursor[each.row]), int(rows.length[each.row]), each.node, _receipt(each.receipt),
            *_states(state, each),
        )
        for each in state.requests.values()
    ]  # fmt: skip


def _states(state: State, request: Request) -> Sequence[object]:
    if not state.states_each:
        return ()
    running, track = _slots(state, request)
    told = ", ".join(f"{slot}: {end}" for slot, end in track)
    return running, ", ".join(map(str, pages_of(request.source).tolist())), told


def _slots(state: State, request: Request) -> tuple[int, list[tuple[int, int]]]:
    """The slot that a request runs on, and those that track, with the tokens whose state they hold."""
    running, *track = state.rows.states[request.row, : state.states_each].tolist()
    return running, list(zip(track, state.rows.tracked[request.row].tolist(), strict=False))


def transfers(state: State) -> Rows:
    """Copies between device and host that are under way, with the pages that they write."""
    return [
        (
            each.id, "load" if each.loads else "backup", each.node,
            f"{'FULL' if each.loads else 'HOST'} {ranges(pages_of(each.pages).tolist())}", each.left,
            "" if each.loads else each.gathered,
        )
        for each in state.transfers.values()
    ]  # fmt: skip


def _receipt(receipt: Receipt | None) -> str:
    if receipt is None:
        return "none"
    return f"node {receipt.node} to {f'boundary {receipt.boundary}' if receipt.boundary else 'root'}"


def locks(state: State) -> Rows:
    """Receipts of live requests, then nodes that hold more receipts than those."""
    held = [each for each in state.requests.values() if each.receipt is not None]
    known: dict[int, int] = {}
    out: Rows = []
    for each in held:
        assert each.receipt is not None
        known[each.receipt.node] = known.get(each.receipt.node, 0) + 1
        skipped = ", ".join(map(str, each.receipt.skipped))
        out.append(
            (each.receipt.node, each.receipt.boundary or "root", f"{each.rid} (request {each.id})", skipped)
        )
    for node in state.nodes.values():
        others = node.anchors - known.get(node.id, 0)
        if others:
            out.append((node.id, "", f"{others} receipts of no live request", ""))
    return out


def tables(state: State) -> Iterator[tuple[str, Sequence[str], Rows]]:
    """What is shown in tables, as title, columns and rows; numbers that name something are typed without separators."""
    for title, columns, rows in (
        ("pools, in pages", POOL_COLUMNS, pools(state)),
        ("accounts of requests", account_columns(state), accounts(state)),
        ("requests, in tokens", request_columns(state), requests(state)),
        ("locks", LOCK_COLUMNS, locks(state)),
        *([("copies under way", TRANSFER_COLUMNS, transfers(state))] if state.host.capacity else []),
    ):
        yield title, columns, [_plain(columns, row) for row in rows]


def _plain(columns: Sequence[str], row: Sequence[object]) -> Sequence[object]:
    return [str(value) if column in NAMES else value for column, value in zip(columns, row, strict=True)]


def tree_lines(state: State) -> Iterator[str]:
    """The tree, a node a line, children indented under their parent, in the order in which they came."""
    stack = [(state.root, 0)]
    while stack:
        node, depth = stack.pop()
        yield "  " * depth + (_node_line(state, node) if node.parent is not None else "root")
        stack.extend((child, depth + 1) for child in reversed((node.children or {}).values()))


def _node_line(state: State, node: Node) -> str:
    start, stop = (node.end - node.pages) * state.page_size, node.end * state.page_size
    full = f"FULL {ranges(pages_of(node.full).tolist())}" if node.full else "FULL tombstone"
    words = [f"node {node.id}", f"[{start}, {stop})", full]
    if state.windowed:
        words.append(f"SWA {ranges(pages_of(node.swa).tolist())}" if node.swa else "tombstone")
    if node.recurrent:
        words.append(f"state {ranges(pages_of(node.recurrent).tolist())}")
    if node.host:
        landing = f" (transfer {node.backup} is writing)" if node.backup else ""
        words.append(f"HOST {ranges(pages_of(node.host).tolist())}{landing}")
    if node.holds or node.swa_locks:
        words.append(f"locked: FULL {node.holds}, SWA {node.swa_locks}, receipts here {node.anchors}")
    if node.boundary:
        words.append(f"boundary {node.boundary}")
    if node.parent is not None and node.parent.id == ROOT and node.namespace:
        words.append(f"namespace {node.namespace.hex()[:16]}")
    return "  ".join(words)


def as_json(state: State) -> dict[str, object]:
    """The whole state, page lists and all."""
    return {
        **{name.replace(" ", "_"): value for name, value in summary(state).items()},
        "pools": _records(POOL_COLUMNS, pools(state)),
        "accounts": _records(account_columns(state), accounts(state)),
        "requests": [_request_json(state, each) for each in state.requests.values()],
        "locks": _records(LOCK_COLUMNS, locks(state)),
        "transfers": _records(TRANSFER_COLUMNS, transfers(state)),
        "nodes": [_node_json(node) for node in state.nodes.values() if node.parent is not None],
    }


def _records(columns: Sequence[str], rows: Rows) -> list[dict[str, object]]:
    names = [column.replace(" ", "_").lower() for column in columns]
    return [dict(zip(names, row, strict=True)) for row in rows]


def _request_json(state: State, request: Request) -> dict[str, object]:
    rows, row = state.rows, request.row
    held = pages_for(int(rows.length[row]), state.page_size)
    running, track = _slots(state, request) if state.states_each else (0, [])
    return {
        "request": request.id,
        "rid": request.rid,
        "row": row,
        "prompt": request.prompt,
        "prefix": request.prefix,
        "protected": int(rows.protected[row]),
        "cursor": int(rows.cursor[row]),
        "length": int(rows.length[row]),
        "node": request.node,
        "receipt": request.receipt._asdict() if request.receipt else None,
        "full": rows.full_table[row, :held].tolist(),
        "swa": rows.swa_table[row, :held].tolist(),
        "runs_on": running,
        "copies_from": int.from_bytes(request.source, "little"),
        "tracks": [{"slot": slot, "tokens": end} for slot, end in track],
    }


def _node_json(node: Node) -> dict[str, object]:
    return {
        "node": node.id,
        "parent": node.parent.id if node.parent else None,
        "start_page": node.end - node.pages,
        "end_page": node.end,
        "full": pages_of(node.full).tolist(),
        "swa": pages_of(node.swa).tolist(),
        "live": bool(node.swa),
        "recurrent": pages_of(node.recurrent).tolist(),
        "host": pages_of(node.host).tolist(),
        "backup": node.backup,
        "receipts": node.anchors,
        "full_locks": node.holds,
        "swa_locks": node.swa_locks,
        "boundary": node.boundary,
        "tick": node.tick,
        "swa_tick": node.swa_tick,
        "namespace": node.namespace.hex(),
    }
