"""Who is evicted next: the orders of victims that `evolve` keeps.

An order is an index over the state, a heap whose entries may lag behind their nodes. Finding the oldest
candidate settles the entries it meets; that changes how the index is stored, never what it answers, so
it is the one thing that a decider may do to a state. Rule: no tree is scanned, no heap is built per call.
"""

from heapq import heappop, heapreplace

from radixledger.cache.spare import spare_pages
from radixledger.cache.standing import age
from radixledger.cache.state import (
    IN_HOST_ORDER,
    IN_LEAF_ORDER,
    IN_SPARE_ORDER,
    IN_STATE_ORDER,
    IN_WINDOW_ORDER,
    Node,
    State,
)
from radixledger.cache.tree import is_unread


def oldest_leaf(state: State) -> Node | None:
    """The next victim of FULL pressure: the unheld node without FULL pages below it that was used longest ago (R102)."""
    order = state.leaf_order
    while order:
        tick, _, node = order[0]
        if (
            (node.children and len(node.children) != node.demoted)
            or node.holds
            or not node.full
            or (node.backup and is_unread(state, node))
        ):
            heappop(order)
            node.queued &= ~IN_LEAF_ORDER
        elif (now := age(state, node) if state.graded else node.tick) != tick:
            heapreplace(order, (now, node.id, node))
        else:
            return node
    return None


def oldest_window(state: State) -> Node | None:
    """The next victim of SWA pressure: live, outside every locked window; by tick, then node id (R103)."""
    order = state.window_order
    while order:
        tick, _, node = order[0]
        if not node.swa or node.swa_locks or node.parent is None:
            heappop(order)
            node.queued &= ~IN_WINDOW_ORDER
        elif node.swa_tick != tick:
            heapreplace(order, (node.swa_tick, node.id, node))
        else:
            return node
    return None


def oldest_copy(state: State) -> Node | None:
    """The next victim of host pressure: a FULL tombstone without children whose copy landed, used longest ago."""
    order = state.host_order
    while order:
        tick, _, node = order[0]
        if node.children or node.holds or node.full or node.backup or not node.host:
            heappop(order)
            node.queued &= ~IN_HOST_ORDER
        elif node.tick != tick:
            heapreplace(order, (node.tick, node.id, node))
        else:
            return node
    return None


def oldest_spare(state: State) -> Node | None:
    """The next node that has window pages for nobody, by tick, then node id; None where there are none, or recency rules."""
    order = state.spare_order
    while order:
        tick, _, node = order[0]
        if not node.swa or node.swa_locks or node.parent is None or not spare_pages(state, node):
            heappop(order)
            node.queued &= ~IN_SPARE_ORDER
        elif node.swa_tick != tick:
            heapreplace(order, (node.swa_tick, node.id, node))
        else:
            return node
    return None


def oldest_state(state: State) -> Node | None:
    """The next victim of a shortage of state slots: the unheld leaf whose state was used longest ago (R102)."""
    order = state.state_order
    while order:
        tick, _, node = order[0]
        if not node.recurrent or node.children or node.holds or node.parent is None:
            heappop(order)
            node.queued &= ~IN_STATE_ORDER
        elif node.recurrent_tick != tick:
            heapreplace(order, (node.recurrent_tick, node.id, node))
        else:
            return node
    return None
