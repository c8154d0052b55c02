"""The digest of a state: 8 bytes that tell two states apart.

It covers accounts, mapping, tree (places, pages, locks, marks, recency), rows, requests, running steps and the
counters that decide the next ids; everything but the contents of keys, so that a state folded from a journal
with hashed keys has the same digest (N18). Rule: of the large parts only what changed since the last digest is summed
up; the rows of live requests always. `recount` sums up everything, for tests and `verify`.
"""

from zlib import crc32

import numpy as np

from radixledger.cache.ledger import MappingBook, PoolBook
from radixledger.cache.state import Request, State
from radixledger.cache.tree_sum import content_of, node_value, place_sum, weigh
from radixledger.cache.weights import BOOK_LANES, MAPPING_LANE, MASK, lane, mix, node_weight
from radixledger.cache.window import pages_for
from radixledger.journal.accounts import RESERVED
from radixledger.journal.units import Pages


def digest(state: State) -> bytes:
    """The digest from the kept sums; cost grows with live requests and with what changed since the last one."""
    weigh(state)
    total = state.full.digest + state.swa.digest + state.recurrent.digest + state.host.digest
    total += state.mapping.digest + state.tree_digest
    return _sealed(total + _live_part(state))


def recount(state: State) -> bytes:
    """The digest summed up from scratch: equal to `digest`, or a kept sum is wrong."""
    total = sum(book_sum(book) for book in (state.full, state.swa, state.recurrent, state.host))
    total += mapping_sum(state.mapping)
    for node in state.nodes.values():
        if node.parent is not None:
            value = node_value(node) - node.content + content_of(node)
        else:
            value = node_value(node)
        total += node_weight(node.id) * value
    return _sealed(total + _live_part(state))


def book_sum(book: PoolBook) -> int:
    """What `book.digest` has to be, modulo 2^64: a pool of free pages, and page 0 reserved, has 0."""
    with np.errstate(over="ignore"):
        weights = lane(BOOK_LANES[book.pool], book.account.size)
        return int((book.account.view(np.uint64) * weights).sum()) - RESERVED * int(weights[0])


def mapping_sum(book: MappingBook) -> int:
    """What `book.digest` has to be, modulo 2^64."""
    with np.errstate(over="ignore"):
        return int((book.swa_of.astype(np.uint64) * lane(MAPPING_LANE, book.swa_of.size)).sum())


def _live_part(state: State) -> int:
    total = sum(_request_value(state, request) for request in state.requests.values())
    totals = state.totals
    counters = (
        state.clock, state.next_node, state.next_boundary, state.next_request, state.dangling, int(state.group_open),
        totals.full_evicted, totals.swa_evicted, totals.tombstones, totals.healed, state.next_transfer,
    )  # fmt: skip
    total += sum(weight * value for weight, value in zip(_COUNTERS, counters, strict=True))
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
    held = pages_for(int(rows.length[row]), state.page_size)
    pages = rows.full_table[row, :held].tobytes()
    total: int = sum(weight * value for weight, value in zip(_FIELDS, fields, strict=True))
    return mix(request.id) * (total + (place_sum(0, Pages(pages)) if pages else 0))


_COUNTERS = tuple(mix(place + 1) for place in range(11))
_FIELDS = tuple(mix(place + 100) for place in range(17))
"""The coefficients of the counters, and of a request's fields, in their order."""


def hash_of(text: str) -> int:
    """A small hash of a text that is the same in every process (B157)."""
    return crc32(text.encode())


def _sealed(total: int) -> bytes:
    return mix(total & MASK).to_bytes(8, "little")
