"""What the digest says of the tree: its places, pages, locks, marks and recency, each node times its weight.

A node has no weight until a digest is asked for; from then on who changes it changes `tree_digest` in the same breath.
Most nodes are gone before that. Rule: weighing settles how the sum is kept and never what it is, so a reader may do it.
"""

from operator import mul

import numpy as np

from radixledger.cache.ledger import READ_FEW
from radixledger.cache.state import Node, State
from radixledger.cache.weights import (
    ANCHORS,
    ANSWERS,
    ASKED,
    BACKUP,
    BOUNDARY,
    END,
    HITS,
    HOST,
    LIVE,
    LOCKS,
    PAGES,
    PARENT,
    PLACE_LANE,
    PRIORITY,
    RECURRENT,
    RECURRENT_TICK,
    SWA_TICK,
    TICK,
    lane,
    node_weight,
)
from radixledger.journal.units import Pages

_UNSIGNED = np.dtype("<u4")
_NEAR = lane(PLACE_LANE, 1 << 12)
_NEAR_INTS: tuple[int, ...] = tuple(_NEAR.tolist())
_FEW_BYTES = 64
"""Up to so many bytes of pages a loop over ints sums up faster than arrays do."""


def place_sum(start: int, pages: Pages) -> int:
    """Order-keeping sum of page ids at positions `start`, `start + 1`, ... of a path or row."""
    end = start + (len(pages) >> 2)
    if len(pages) <= _FEW_BYTES and end <= _NEAR.size:
        return sum(map(mul, _NEAR_INTS[start:end], READ_FEW[len(pages)](pages)))
    weights = _NEAR if end <= _NEAR.size else lane(PLACE_LANE, 1 << end.bit_length())
    return int(weights[start:end].dot(np.frombuffer(pages, _UNSIGNED)))


def node_value(node: Node) -> int:
    """What the digest says of one node, to be multiplied with its weight."""
    return (
        PARENT * (node.parent.id if node.parent else 0)
        + END * node.end
        + PAGES * node.pages
        + ANCHORS * node.anchors
        + LOCKS * node.swa_locks
        + BOUNDARY * node.boundary
        + TICK * node.tick
        + SWA_TICK * node.swa_tick
        + LIVE * bool(node.swa)
        + HITS * node.hits
        + BACKUP * node.backup
        + ASKED * node.asked
        + ANSWERS * node.answers
        + PRIORITY * node.priority
        + node.content
        + (state_value(node) if node.recurrent or node.recurrent_tick else 0)
    )


def content_of(node: Node) -> int:
    """What the digest says of a node's pages: which stand where, FULL and HOST."""
    start = node.end - node.pages
    full = place_sum(start, node.full) if node.full else 0
    return full + (HOST * place_sum(start, node.host) if node.host else 0)


def state_value(node: Node) -> int:
    """What the digest says of a node's state of a recurrent model."""
    return RECURRENT * int.from_bytes(node.recurrent, "little") + RECURRENT_TICK * node.recurrent_tick


def weigh(state: State) -> None:
    """Give every node its weight in `tree_digest`; those that have none yet are the last that came."""
    for node in reversed(state.nodes.values()):
        if node.weight:
            return
        weigh_one(state, node)


def weigh_one(state: State, node: Node) -> None:
    """Let one node that has no weight count from now on."""
    node.weight = node_weight(node.id)
    node.content = content_of(node)
    state.tree_digest += node.weight * node_value(node)
