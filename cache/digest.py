"""The digest of a state: 8 bytes that tell two states apart.

It covers accounts, mapping, tree (places, pages, locks, marks, recency), rows, requests, running steps and the
counters that decide the next ids; everything but the contents of keys, so that a state folded from a journal
with hashed keys has the same digest (N18). Rule: the large parts are sums that `evolve` keeps; only the rows of live
requests are summed up here. `recount` sums up everything, for tests and `verify`.
"""

from zlib import crc32

import numpy as np

from radixledger.cache.ledger import MappingBook, PoolBook
from radixledger.cache.state import Request, State
from radixledger.cache.tree import content_of, node_value, place_sum
from radixledger.cache.weights import MASK, mix
from radixledger.cache.window import pages_for
from radixledger.journal.accounts import RESERVED
from radixledger.journal.units import Pages


def digest(state: State) -> bytes:
    """The digest from the kept sums; cost grows with live requests only."""
    total = state.full.digest + state.swa.digest + state.recurrent.digest + state.host.digest
    total += state.mapping.digest + state.tree_digest
    content: dict[int, int] = {
        request.id: state.rows.content[request.row] for request in state.requests.values()
    }
    return _sealed(total + _live_part(state, content))


def recount(state: State) -> bytes:
    """The digest summed up from scratch: equal to `digest`, or a kept sum is wrong."""
    total = sum(book_sum(book) for book in (state.full, state.swa, state.recurrent, state.host))
    total += mapping_sum(state.mapping)
    for node in state.nodes.values():
        if node.parent is not None:
            value = node_value(node) - node.content + content_of(node)
        else:
            value = node_value(node)
        total += node.weight * value
    content: dict[int, int] = {}
    for request in state.requests.values():
        held = pages_for(int(state.rows.length[request.row]), state.page_size)
        row = np.ascontiguousarray(state.rows.full_table[request.row, :held])
        content[request.id] = place_sum(0, Pages(row.tobytes())) if held else 0
    return _sealed(total + _live_part(state, content))


def book_sum(book: PoolBook) -> int:
    """What `book.digest` has to be, modulo 2^64: a pool of free pages, and page 0 reserved, has 0."""
    with np.errstate(over="ignore"):
        return int((book.account.view(np.uint64) * book.weight).sum()) - RESERVED * int(book.weight[0])


def mapping_sum(book: MappingBook) -> int:
    """What `book.digest` has to be, modulo 2^64."""
    with np.errstate(over="ignore"):
        return int((book.swa_of.astype(np.uint64) * book.weight).sum())


def _live_part(state: State, content: dict[int, int]) -> int:
    total = sum(
        _request_value(state, request) + mix(request.id) * content[request.id]
        for request in state.requests.values()
    )
    totals = state.totals
    counters = (
        state.clock, state.next_node, state.next_boundary, state.next_request, state.dangling, int(state.group_open),
        totals.full_evicted, totals.swa_evicted, totals.tombstones, totals.healed, state.next_transfer,
    )  # fmt: skip
    total += sum(mix(place + 1) * value for place, value in enumerate(counters))
    for step, running in state.running.items():
        total += mix(step) * hash_of(repr(tuple(running.writes)))
    for number, transfer in state.transfers.items():
        told = (
            transfer.node,
            transfer.pages,
            transfer.left,
            transfer.gathered,
            transfer.receipt and transfer.receipt[:2],
        )
        total += mix(-number) * hash_of(repr(told))
    return total


def _request_value(state: State, request: Request) -> int:
    rows, row = state.rows, request.row
    receipt = request.receipt
    fields = (
        row, request.prompt, request.prefix, request.node, int(rows.length[row]), int(rows.cursor[row]),
        int(rows.protected[row]), receipt.node if receipt else -1, receipt.boundary if receipt else -1,
        hash_of(request.rid), request.priority, *rows.states[row].tolist(), *rows.tracked[row].tolist(),
        int.from_bytes(request.source, "little"),
    )  # fmt: skip
    total: int = sum(mix(place + 100) * value for place, value in enumerate(fields))
    return mix(request.id) * total


def hash_of(text: str) -> int:
    """A small hash of a text that is the same in every process (B157)."""
    return crc32(text.encode())


def _sealed(total: int) -> bytes:
    return mix(total & MASK).to_bytes(8, "little")
