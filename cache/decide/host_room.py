"""Decisions that give HOST pages back: copies that are dropped for room, and what is lost with a node.

A decider is a generator, see `decide.pages`. Rule: a copy is dropped when it has landed and nothing holds it; one that
is still being written stays with its transfer, whatever becomes of its node (B19).
"""

from radixledger.cache.decide.pages import Decision, destination
from radixledger.cache.eviction import oldest_copy
from radixledger.cache.refusals import Refusal
from radixledger.cache.state import Node, State
from radixledger.journal.causes import Cause, Operation, cause
from radixledger.journal.events import HostDropped, Removed
from radixledger.journal.units import NO_PAGES

_EVICT = cause(Operation.EVICT_HOST)


def evict_copies(state: State, pages: int) -> Decision[int]:
    """Drop copies that stand alone, oldest first, until so many HOST pages are free more; returns how many are."""
    check_tier(state)
    gained = 0
    while gained < pages:
        node = oldest_copy(state)
        if node is None:
            break
        gained += node.pages
        yield from _drop(state, node, _EVICT)
    return gained


def make_room(state: State, pages: int) -> Decision[bool]:
    """Drop copies for so many free HOST pages; False if that cannot be, mostly before anything is dropped.

    A copy with another one below it that is still being written cannot go yet, and is counted as if it could.
    """
    while state.host.available < pages:
        node = oldest_copy(state) if state.host.available + state.host_evictable >= pages else None
        if node is None:
            return False
        yield from _drop(state, node, _EVICT)
    return True


def lose(state: State, node: Node, why: Cause) -> Decision[int]:
    """Remove a node and all below it, none of which anybody can reach; returns the number of events.

    Copies that are still being written stay with their transfers.
    """
    events, stack = 0, [node]
    while stack:
        each = stack[-1]
        if each.children:
            stack.extend(each.children.values())
            continue
        stack.pop()
        events += yield from _drop(state, each, why)
    return events


def _drop(state: State, node: Node, why: Cause) -> Decision[int]:
    """A childless node leaves, with its copy if that has landed; returns the number of events."""
    dropped = bool(node.host) and not node.backup
    if dropped:
        yield HostDropped(node.id, node.host, why)
    assert node.parent is not None, "the root is never removed (R70)"
    yield Removed(node.id, node.parent.id, node.full, NO_PAGES, destination(state), why)
    return 1 + dropped


def check_tier(state: State) -> None:
    """Refuse what only a rank with a host tier can be asked."""
    if not state.host.capacity:
        raise Refusal("this rank has no host tier (host_pages is 0)")
