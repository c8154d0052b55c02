"""Segment locks: FULL is held from a node to the root, SWA over the last window of that path.

A lock covers positions, so tombstones within the window are counted like live nodes (A21), and a node
that is split, healed or tombstoned in between stays balanced (R120, R121). Rule: a receipt is the anchor and
a boundary mark; release walks exactly the same segment, because a split moves the mark to the older part.
"""

import numpy as np

from radixledger.cache.state import Node, Receipt, State
from radixledger.cache.tree import offer_leaf, offer_state, offer_window
from radixledger.cache.weights import ANCHORS, BOUNDARY, LOCKS
from radixledger.journal.events import Locked, Unlocked
from radixledger.journal.units import NodeId


def resident_end(node: Node) -> int:
    """Up to which page of the path to `node` there are FULL pages."""
    while not node.full and node.parent is not None:
        node = node.parent
    return node.end


def _offer_path(state: State, node: Node) -> None:
    """An unlocked anchor may be a victim; below the part with FULL pages, the node that ends that part as well."""
    offer_leaf(state, node)
    while not node.full and node.parent is not None:
        node = node.parent
        if node.full:
            offer_leaf(state, node)


def receipt_of(event: Locked) -> Receipt:
    """The receipt that a lock hands out."""
    if not event.skipped:
        return Receipt(event.node, event.boundary)
    skipped = tuple(NodeId(node) for node in np.frombuffer(event.skipped, "<i8").tolist())
    return Receipt(event.node, event.boundary, skipped)


def lock(state: State, node: Node, event: Locked) -> None:
    """Count a lock in: first holders move pages from evictable to protected (R118)."""
    if event.marked:
        marked = state.nodes[event.marked]
        state.tree_digest += marked.weight * (BOUNDARY * (event.boundary - marked.boundary))
        marked.boundary = event.boundary
        state.next_boundary = max(state.next_boundary, event.boundary + 1)
    node.anchors += 1
    state.tree_digest += node.weight * ANCHORS
    held: Node | None = node
    while held is not None:
        if held.holds:
            held.holds += 1
            break
        held.holds = 1
        held = held.parent
    held_end = held.end if held is not None else 0
    if node.full:
        state.full_protected += node.end - held_end
    else:
        end = resident_end(node)
        state.full_protected += max(0, end - held_end)
        state.host_protected += node.end - max(end, held_end)
    if node.recurrent and node.anchors == 1:
        state.recurrent_protected += 1
    if not state.tail_pages:
        return
    boundary, weights = event.boundary, 0
    while node.parent is not None:
        node.swa_locks += 1
        weights += node.weight
        if node.swa_locks == 1 and node.swa:
            state.swa_protected += node.pages
        if boundary and node.boundary == boundary:
            break
        node = node.parent
    if weights:
        state.tree_digest += LOCKS * weights


def unlock(state: State, node: Node, event: Unlocked) -> bool:
    """Count a lock out; False if something of what it claims to hold was not held (R122)."""
    balanced = node.anchors > 0 or node.parent is None
    node.anchors -= 1
    state.tree_digest -= node.weight * ANCHORS
    held: Node | None = node
    while held is not None:
        holds = held.holds - 1
        held.holds = holds
        if holds:
            break
        held = held.parent
    held_end = held.end if held is not None else 0
    if node.full:
        state.full_protected -= node.end - held_end
    else:
        end = resident_end(node)
        state.full_protected -= max(0, end - held_end)
        state.host_protected -= node.end - max(end, held_end)
    if (not node.children or node.demoted) and not node.holds and node.parent is not None:
        _offer_path(state, node)
    if node.recurrent and node.anchors == 0:
        state.recurrent_protected -= 1
        offer_state(state, node)
    if not state.tail_pages:
        return balanced
    boundary, weights = event.boundary, 0
    while node.parent is not None:
        left = node.swa_locks - 1
        node.swa_locks = left
        weights += node.weight
        if left <= 0:
            balanced = balanced and left == 0
            if left == 0:
                if node.swa:
                    state.swa_protected -= node.pages
                offer_window(state, node)
        if boundary and node.boundary == boundary:
            break
        node = node.parent
    if weights:
        state.tree_digest -= LOCKS * weights
    return balanced
