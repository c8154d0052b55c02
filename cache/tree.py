"""Structural writes to the radix tree: grow, cut, prune, and which nodes are candidates for eviction.

Called by `evolve` only. Rule: whoever changes what a node holds, or what holds it, updates the counts of
protected pages, the orders of victims and the digest in the same breath.
"""

from heapq import heapify, heappush

from radixledger.cache.spare import bequeath, offer_above, offer_spare, take_up, will
from radixledger.cache.standing import age, esteem
from radixledger.cache.state import (
    IN_HOST_ORDER,
    IN_LEAF_ORDER,
    IN_STATE_ORDER,
    IN_WINDOW_ORDER,
    Node,
    Order,
    State,
)
from radixledger.cache.tree_sum import content_of, node_value, weigh, weigh_one
from radixledger.cache.weights import (
    BOUNDARY,
    HITS,
    LIVE,
    PAGES,
    PARENT,
    RECURRENT_TICK,
    SWA_TICK,
    TICK,
)
from radixledger.journal.units import NO_PAGES, BoundaryId, Pages


def child_key(node: Node, stride: int) -> bytes | tuple[bytes, bytes]:
    """Under which key a node hangs in its parent: its first page, under the root with its namespace."""
    first = node.key[:stride]
    return first if node.parent is not None and node.parent.parent is not None else (node.namespace, first)


def touch(state: State, node: Node) -> None:
    """A path was used up to `node`: it is the youngest, and its window of live nodes with it (R77-R81).

    FULL recency is kept at the end of the path only: an inner node is no candidate, and inherits the tick
    of each child that is removed before it becomes one. Window recency goes up the last `ceilP(W)` tokens,
    each page one tick older than the next, so that an ancestor is strictly older than its descendant (R80),
    wherever the path is cut later. Where the route refreshes whole paths it goes up to the root.
    """
    if node.parent is None:
        return
    span = node.end if state.traits.refreshes_path else state.tail_pages
    state.clock = tick = state.clock + (span or 1)
    delta = TICK * (tick - node.tick)
    node.tick = tick
    if node.recurrent:
        delta += RECURRENT_TICK * (tick - node.recurrent_tick)
        node.recurrent_tick = tick
    if node.weight:
        state.tree_digest += node.weight * delta
    windows = 0
    walk: Node | None = node
    while walk is not None and span > 0:
        if walk.swa:
            windows += walk.weight * (tick - walk.swa_tick)
            walk.swa_tick = tick
        pages = walk.pages
        tick -= pages
        span -= pages
        walk = walk.parent
    if windows:
        state.tree_digest += SWA_TICK * windows


def bare_pages(node: Node) -> int:
    """The HOST pages of a FULL tombstone whose copy landed; 0 for any other node."""
    return 0 if node.full or node.backup else len(node.host) >> 2


def is_unread(state: State, node: Node) -> bool:
    """Whether a backup has still to read the node's FULL pages on the device."""
    transfer = state.transfers.get(node.backup)
    return transfer is not None and not transfer.gathered


def offer_leaf(state: State, node: Node) -> None:
    """Enter a node into the order of victims that it is one of, if nothing holds it.

    FULL victims have no children with FULL pages; host victims have a copy and nothing else, and no children at all.
    """
    if (node.children and len(node.children) != node.demoted) or node.holds:
        return
    if not node.full:
        if not (node.children or node.backup or node.queued & IN_HOST_ORDER) and node.host:
            node.queued |= IN_HOST_ORDER
            heappush(state.host_order, (node.tick, node.id, node))
    elif not node.queued & IN_LEAF_ORDER and not (node.backup and is_unread(state, node)):
        node.queued |= IN_LEAF_ORDER
        heappush(state.leaf_order, (age(state, node) if state.graded else node.tick, node.id, node))


def offer_window(state: State, node: Node) -> None:
    """Enter a node into the order of SWA victims if it is one: live and outside every locked window (R69)."""
    if node.swa and not node.swa_locks:
        if not node.queued & IN_WINDOW_ORDER:
            node.queued |= IN_WINDOW_ORDER
            heappush(state.window_order, (node.swa_tick, node.id, node))
        if state.spare_order is not None:
            offer_spare(state, node)


def offer_state(state: State, node: Node) -> None:
    """Enter a node into the order of state victims if it is one: a leaf with a state that nothing holds (R69)."""
    if node.recurrent and not node.children and not node.holds and not node.queued & IN_STATE_ORDER:
        node.queued |= IN_STATE_ORDER
        heappush(state.state_order, (node.recurrent_tick, node.id, node))


def graft(state: State, node: Node) -> None:
    """Hang a new leaf under its parent, the youngest of all."""
    parent = node.parent
    assert parent is not None, "only the root has no parent"
    if parent.children is None:
        parent.children = {}
    parent.children[child_key(node, state.stride)] = node
    _enter(state, node)
    touch(state, node)
    offer_leaf(state, node)
    offer_window(state, node)
    if state.spare_order is not None:
        if parent.answers:
            take_up(state, parent)
        offer_above(state, parent)


def _enter(state: State, node: Node) -> None:
    """The tree has one node more, which weighs nothing in the digest until that is asked for: most are gone by then."""
    if node.id >= state.next_node:
        state.nodes[node.id] = node
        state.next_node = node.id + 1
    else:  # no lawful writer gives a number twice
        weigh(state)
        state.nodes[node.id] = node
        weigh_one(state, node)


def cut(state: State, node: Node, upper: Node, boundary: BoundaryId) -> None:
    """Put `upper`, which has the first pages of `node`, between `node` and its parent (R114, R115)."""
    parent = node.parent
    assert parent is not None, "the root is never cut"
    assert parent.children is not None, "a node hangs in its parent"
    stride, live = state.stride, bool(node.swa)
    parent.children[child_key(node, stride)] = upper
    node.key = node.key[upper.pages * stride :]
    node.full = Pages(node.full[upper.pages * 4 :])
    node.swa = Pages(node.swa[upper.pages * 4 :])
    node.host = Pages(node.host[upper.pages * 4 :])
    node.pages -= upper.pages
    node.parent = upper
    upper.children = {node.key[:stride]: node}
    upper.holds = 1 if node.holds else 0
    upper.swa_locks = node.swa_locks
    upper.demoted = int(not node.full)
    upper.hits, upper.backup, upper.priority = node.hits, node.backup, node.priority
    upper.boundary = boundary
    former, node.boundary = node.boundary, BoundaryId(0)
    upper.tick = node.tick
    upper.swa_tick = node.swa_tick - node.pages
    if node.weight:
        content = content_of(upper)
        node.content -= content
        moved = PARENT * (upper.id - parent.id) - PAGES * upper.pages - BOUNDARY * former - content
        state.tree_digest += node.weight * (moved + LIVE * (bool(node.swa) - live))
    _enter(state, upper)
    offer_window(state, upper)


def prune(state: State, node: Node) -> None:
    """Take a leaf out of the tree; its parent is as young as the leaf was, and may become a candidate."""
    parent = node.parent
    assert parent is not None, "the root is never removed"
    assert parent.children is not None, "a node hangs in its parent"
    asked = will(state, node) if node.answers else None
    if node.weight:
        state.tree_digest -= node.weight * node_value(node)
    del parent.children[child_key(node, state.stride)]
    del state.nodes[node.id]
    node.parent = None
    if not node.full:
        parent.demoted -= 1
    node.full = node.swa = node.host = node.recurrent = NO_PAGES
    inherit(state, parent, node)
    if not parent.children:
        parent.children = None
    if parent.parent is not None and (parent.children is None or parent.demoted):
        offer_leaf(state, parent)
    if state.spare_order is not None:
        if asked is not None:
            bequeath(state, asked, parent)
        offer_above(state, parent)
    if not state.seq & 255:
        for order in (
            state.leaf_order,
            state.window_order,
            state.state_order,
            state.host_order,
            state.spare_order or [],
        ):
            if len(order) > 2 * len(state.nodes) + 1024:
                _forget_removed(order)


def inherit(state: State, parent: Node, node: Node) -> None:
    """A parent that may become a candidate is as young as the child that goes."""
    if parent.parent is not None and node.tick > parent.tick:
        if parent.weight:
            state.tree_digest += parent.weight * (TICK * (node.tick - parent.tick))
        parent.tick = node.tick
    if state.graded:
        esteem(state, parent, node.priority)


def count_hit(state: State, node: Node) -> None:
    """A path was used up to `node`: one more use of each of its nodes, up to the threshold.

    Whoever was there before his child has been used at least as often, so the walk ends at the first that has enough.
    """
    while node.parent is not None and node.hits < state.hits_counted:
        node.hits += 1
        state.tree_digest += node.weight * HITS
        node = node.parent


def _forget_removed(order: Order) -> None:
    """Drop the entries of removed nodes, which an order that nobody asks would keep for ever."""
    order[:] = [entry for entry in order if entry[2].parent is not None]
    heapify(order)
