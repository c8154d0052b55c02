"""Decisions that give the tree's pages back: eviction under pressure, and the flush of an idle rank.

A decider is a generator, see `decide_pages`. Rule: victims come from the orders that `evolve` keeps, the credit is
what the pools gained, and whatever holds pages is named before anything is cleared.
"""

from typing import NamedTuple

from radixledger.cache.decide_pages import Decision, destination
from radixledger.cache.eviction import oldest_leaf
from radixledger.cache.refusals import Busy
from radixledger.cache.slices import split_at
from radixledger.cache.state import Node, State
from radixledger.journal.accounts import Kind
from radixledger.journal.causes import Cause, Operation, Site, cause
from radixledger.journal.events import Evicted, Flushed, HostDropped, Removed


class Gain(NamedTuple):
    """What the pools gained by an eviction, in pages: never more than it reports (R105, R108)."""

    full: int
    swa: int


def evict(state: State, full_pages: int, swa_pages: int) -> Decision[Gain]:
    """Give pages back to the pools, oldest first; what FULL pressure took along counts for components too (R106)."""
    if state.group_open:
        raise Busy("a free group is open: what eviction frees would stay pending, so nothing can be gained")
    asked, gained, events = (full_pages, swa_pages), [0, 0], 0
    while gained[0] < full_pages:
        leaf = oldest_leaf(state)
        if leaf is None:
            break
        gained[0] += leaf.pages
        gained[1] += len(leaf.swa) >> 2
        events += 1
        yield remove(state, leaf, _FULL_LEAF)
    for component in state.components:
        pool, why = component.pool, cause(Operation.EVICT, component.leaf_site)
        while gained[pool] < asked[pool]:
            node = component.oldest(state)
            if node is None:
                break
            share = component.share(state, node)
            if share < node.pages:
                events += 1
                part = split_at(state, node, share, _EVICT)
                yield part
                node = state.nodes[part.upper]
            gained[pool] += component.held(node)
            events += 1
            event = component.parting(state, node)
            if event is None:
                gained[0] += node.pages
                event = remove(state, node, why)
            yield event
    yield Evicted(full_pages, swa_pages, gained[0], gained[1], events, _EVICT)
    return Gain(gained[0], gained[1])


_EVICT = cause(Operation.EVICT)
_FULL_LEAF = cause(Operation.EVICT, Site.FULL_LEAF)


def remove(state: State, leaf: Node, why: Cause) -> Removed:
    """The fixed cascade of a leaf, FULL then SWA, as one event (R100, R101)."""
    assert leaf.parent is not None, "the root is never a candidate (R70)"
    return Removed(leaf.id, leaf.parent.id, leaf.full, leaf.swa, destination(state), why)


def check_quiet(state: State) -> None:
    """Refuse unless the tree alone holds pages, and no lock is left: whatever else does is named (R33)."""
    if state.requests:
        raise Busy(f"{len(state.requests)} requests are live: {', '.join(sorted(state.rids)[:8])}")
    if state.group_open:
        raise Busy("a free group is open")
    if state.running:
        raise Busy(f"step {next(iter(state.running))} is running")
    if state.transfers:
        raise Busy(f"{len(state.transfers)} copies between device and host are under way; let them end first")
    if state.root.holds:
        raise Busy(f"{state.full_protected} FULL pages are held by locks that no live request owns")
    for book in (state.full, state.swa):
        lost = book.held[Kind.REQUEST] + book.held[Kind.PENDING]
        if lost:
            raise Busy(
                f"{lost} {book.pool.name} pages belong to no live request: a leak, which a flush must not hide"
            )


def flush(state: State) -> Decision[int]:
    """Empty the tree of an idle rank, leaf by leaf; nothing is cleared if anything else holds pages (R33)."""
    check_quiet(state)
    why, removed = cause(Operation.FLUSH), 0
    stack = [state.root]
    while stack:
        node = stack[-1]
        if node.children:
            stack.extend(node.children.values())
            continue
        stack.pop()
        if node.parent is not None:
            removed += 1
            if node.host:
                yield HostDropped(node.id, node.host, why)
            yield remove(state, node, why)
    yield Flushed(removed, why)
    return removed
