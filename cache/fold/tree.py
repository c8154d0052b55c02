"""How events change the tree: leaves, splits, tombstones, healing, recency, locks.

Part of `evolve`, with its rule: total, and what does not add up is noted.
"""

from radixledger.cache import locks
from radixledger.cache.fold.pages import map_pages, move, move_both, note, unmap_pages
from radixledger.cache.fold.states import drop
from radixledger.cache.spare import offer_above
from radixledger.cache.standing import priority_of
from radixledger.cache.state import Node, State
from radixledger.cache.tree import (
    count_hit,
    cut,
    graft,
    is_unread,
    offer_window,
    prune,
    touch,
)
from radixledger.cache.tree_sum import place_sum
from radixledger.cache.weights import LIVE
from radixledger.journal.accounts import Pool, tree_account
from radixledger.journal.causes import Operation, cause
from radixledger.journal.events import (
    Healed,
    HealMode,
    Locked,
    Matched,
    Removed,
    Split,
    Tombstoned,
    Transferred,
    Unlocked,
)
from radixledger.journal.moves import pages_of
from radixledger.journal.units import NO_PAGES, UNBOUND

_FLUSH = cause(Operation.FLUSH)
"""Why a leaf goes that nobody evicts: evictions are evidence of pressure, so totals leave it out (R172, A40)."""


def transferred(state: State, event: Transferred) -> None:
    parent = state.nodes[event.parent]
    account = tree_account(event.node)
    full, swa = event.full, event.swa
    move_both(state, full, swa, event.giver, account)
    if swa and not state.mapping.leads(full, swa):
        note(state, "a_live_leaf_is_mapped_to_its_window", f"node {event.node}", 0, full)
    node = Node(event.node, parent, event.key, full, swa, event.namespace)
    node.hits = int(state.hits_counted > 0)
    if state.graded:
        node.priority = priority_of(state, event.request)
    graft(state, node)


def split(state: State, event: Split) -> None:
    node = state.nodes[event.node]
    parent = node.parent
    assert parent is not None, "the root is never cut"
    assert parent.id == event.parent, f"node {event.node} is not a child of {event.parent}"
    length = len(event.full or event.host)
    assert 0 < length < 4 * node.pages, f"a cut leaves pages on both sides of node {event.node}"
    given, taken = tree_account(event.node), tree_account(event.upper)
    move_both(state, event.full, event.swa, given, taken)
    if event.host and not event.transfer:
        move(state, state.host, event.host, given, taken)
    pages_of(event.host)  # raises for a column of no whole numbers, while nothing hangs in the tree yet
    if node.full[:length] != event.full or node.swa[:length] != event.swa:
        note(state, "a_split_keeps_the_pages", f"node {event.node}", 0, event.full)
    if node.host[:length] != event.host or node.backup != event.transfer:
        note(state, "a_split_keeps_the_pages", f"node {event.node}", Pool.HOST, event.host)
    key = node.key[: length // 4 * state.stride]
    upper = Node(event.upper, parent, key, event.full, event.swa, node.namespace, event.host)
    cut(state, node, upper, event.boundary)


def tombstoned(state: State, event: Tombstoned) -> None:
    node = state.nodes[event.node]
    if not node.swa or node.swa != event.swa:
        note(state, "only_live_nodes_are_tombstoned", f"node {event.node}", 1, event.swa)
    if node.swa_locks:
        note(
            state,
            "a_locked_window_is_never_evicted",
            f"node {event.node} has {node.swa_locks} locks",
            1,
            event.swa,
        )
        state.swa_protected -= len(node.swa) >> 2
    unmap_pages(state, event.full, event.swa)
    move(state, state.swa, event.swa, tree_account(event.node), event.to)
    state.tree_digest -= node.weight * (LIVE * bool(node.swa))
    node.swa = NO_PAGES
    if node.parent is not None:
        offer_above(state, node.parent)
    state.totals.tombstones += 1
    state.totals.swa_evicted += len(event.swa) >> 2


def healed(state: State, event: Healed) -> None:
    node = state.nodes[event.node]
    account = tree_account(event.node)
    if node.swa:
        note(state, "only_tombstones_are_healed", f"node {event.node}", 1, event.swa)
    move(state, state.swa, event.swa, event.giver, account)
    if event.mode == HealMode.TRANSFER:
        unmap_pages(state, event.fresh, event.swa)
        map_pages(state, event.old, event.swa)
        move(state, state.full, event.fresh, event.giver, event.to)
    else:
        if node.holds:
            note(state, "locked_full_pages_are_never_replaced", f"node {event.node}", 0, event.old)
        if not state.mapping.is_clear(event.old):
            note(state, "a_tombstone_has_no_mapping", f"node {event.node}", 0, event.old)
        move(state, state.full, event.old, account, event.to)
        move(state, state.full, event.fresh, event.giver, account)
        if node.weight:
            content = place_sum(node.end - node.pages, event.fresh)
            state.tree_digest += node.weight * (content - node.content)
            node.content = content
        node.full = event.fresh
    node.swa = event.swa
    state.tree_digest += node.weight * LIVE
    if node.swa_locks:
        state.swa_protected += node.pages
    offer_window(state, node)
    state.totals.healed += 1


def removed(state: State, event: Removed) -> None:
    node = state.nodes[event.node]
    if node.children:
        note(state, "only_leaves_are_removed", f"node {event.node} has {len(node.children)} children")
    if node.holds or node.swa_locks:
        note(state, "a_locked_leaf_is_never_removed", f"node {event.node}", 0, event.full)
    if node.host:
        _check_copy_of_removed(state, node)
    assert not node.children, f"node {event.node} has children"
    account = tree_account(event.node)
    if event.swa:
        unmap_pages(state, event.full, event.swa)
        move(state, state.swa, event.swa, account, event.to)
    move(state, state.full, event.full, account, event.to)
    if event.recurrent:
        move(state, state.recurrent, event.recurrent, account, event.to)
        drop(state, node)
    if event.cause != _FLUSH:
        state.totals.swa_evicted += len(event.swa) >> 2
        state.totals.full_evicted += len(event.full) >> 2
    prune(state, node)


def _check_copy_of_removed(state: State, node: Node) -> None:
    """A copy that landed is dropped before its node; one that is being written stays with its transfer (B19)."""
    if not node.backup:
        note(state, "a_copy_is_dropped_before_its_node", f"node {node.id}", Pool.HOST, node.host)
    elif is_unread(state, node) and node.full:
        note(state, "pages_are_read_before_they_are_given_up", f"node {node.id}", 0, node.full)


def matched(state: State, event: Matched) -> None:
    node = state.nodes[event.node]
    if node.end * state.page_size != event.hit:
        note(
            state,
            "a_match_ends_where_its_node_ends",
            f"node {node.id} ends at page {node.end}, hit {event.hit}",
        )
    touch(state, state.nodes[event.walked] if event.walked else node)
    if state.hits_counted:
        count_hit(state, node)
    if event.host_node:
        touch(state, state.nodes[event.host_node])


def locked(state: State, event: Locked) -> None:
    locks.lock(state, state.nodes[event.node], event)
    if event.request != UNBOUND:
        request = state.requests[event.request]
        request.receipt = locks.receipt_of(event)


def unlocked(state: State, event: Unlocked) -> None:
    if not locks.unlock(state, state.nodes[event.node], event):
        note(state, "a_lock_is_released_once", f"node {event.node}, boundary {event.boundary}")
    request = state.requests.get(event.request)
    if (
        request is not None
        and request.receipt is not None
        and request.receipt[:2] == (event.node, event.boundary)
    ):
        request.receipt = None
