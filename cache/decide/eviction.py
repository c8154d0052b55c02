"""Decisions that give the tree's pages back: eviction under pressure, and the flush of an idle rank.

A decider is a generator, see `decide.pages`. Rule: victims come from the orders that `evolve` keeps, the credit is
what the pools gained, and whatever holds pages is named before anything is cleared.
"""

from typing import NamedTuple

from radixledger.cache.components.component import leaf_removal
from radixledger.cache.decide.pages import Decision
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


class StateGain(NamedTuple):
    """What an eviction for state slots gained: FULL pages that went along, and slots."""

    full: int
    states: int


def evict(state: State, full_pages: int, swa_pages: int) -> Decision[Gain]:
    """Give pages back to the pools, oldest first; what FULL pressure took along counts for components too (R106)."""
    full, swa, _ = yield from _evict(state, (full_pages, swa_pages, 0))
    return Gain(full, swa)


def evict_states(state: State, count: int, full_pages: int = 0) -> Decision[StateGain]:
    """Give state slots back, and with each the FULL pages of its leaf: those whose state was used longest ago go first.

    full_pages: FULL pages that are wanted as well, and go before them; the states of their leaves count.
    """
    full, _, states = yield from _evict(state, (full_pages, 0, count))
    return StateGain(full, states)


def _evict(state: State, asked: tuple[int, int, int]) -> Decision[list[int]]:
    """Pages asked for and gained, by the number of the pool."""
    if state.group_open:
        raise Busy("a free group is open: what eviction frees would stay pending, so nothing can be gained")
    gained, events = [0, 0, 0], 0
    while gained[0] < asked[0]:
        leaf = oldest_leaf(state)
        if leaf is None:
            break
        events += 1
        yield _whole(state, leaf, _FULL_LEAF, gained)
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
            events += 1
            event = component.parting(state, node)
            if event is None:
                event = _whole(state, node, why, gained)
            else:
                gained[pool] += component.held(node)
            yield event
    yield Evicted(asked[0], asked[1], gained[0], gained[1], events, _EVICT, asked[2], gained[2])
    return gained


def _whole(state: State, leaf: Node, why: Cause, gained: list[int]) -> Removed:
    """A leaf goes with all that it has, which is counted as gained."""
    gained[0] += leaf.pages
    for component in state.components:
        gained[component.pool] += component.held(leaf)
    return leaf_removal(state, leaf, why)


_EVICT = cause(Operation.EVICT)
_FULL_LEAF = cause(Operation.EVICT, Site.FULL_LEAF)


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
    for book in (state.full, state.swa, state.recurrent):
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
            yield leaf_removal(state, node, why)
    yield Flushed(removed, why)
    return removed
