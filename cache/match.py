"""Walk a key down the tree and find the deepest boundary that a request may start from. Reads only.

A boundary is valid if the path up to it ends with live SWA that covers the window, or is live from the
root (R73-R76); FULL pages are contiguous by construction. Rule: the key is never re-sliced; a node is one
`startswith` at an offset, a child one look-up of its first page.
"""

from typing import NamedTuple

from radixledger.cache.keys import common_pages
from radixledger.cache.state import Node, State
from radixledger.journal.events import Stop
from radixledger.journal.units import NodeId, TokenCount

FROM_ROOT = 1 << 60
"""The live run of a path without a gap: as good as any window (R75)."""


class Walk(NamedTuple):
    """Where a key leads. `node` ends the usable prefix; if `inside`, only its first `inside` pages do."""

    node: Node
    inside: int
    hit: int
    """Pages of the usable prefix."""
    full_hit: int
    """Pages that FULL alone would give."""
    stop: Stop


class Hit(NamedTuple):
    """A match: `tokens` usable tokens ending at `node`; `full_tokens` that FULL alone would give."""

    node: NodeId
    tokens: TokenCount
    full_tokens: TokenCount
    stop: Stop


def hit_of(found: Walk, node: Node, page_size: int) -> Hit:
    """What a walk found, told in tokens, where the usable prefix ends at `node`."""
    return Hit(node.id, TokenCount(found.hit * page_size), TokenCount(found.full_hit * page_size), found.stop)


def find_child(state: State, node: Node, key: bytes, at: int, namespace: bytes) -> Node | None:
    """The child of `node` whose first page stands in `key` at byte `at`."""
    if node.children is None:
        return None
    page = key[at : at + state.stride]
    return node.children.get((namespace, page) if node.parent is None else page)


def walk(state: State, key: bytes, namespace: bytes, *, full_only: bool = False) -> Walk:
    """The deepest valid boundary for `key`, whole pages of it; `full_only` ignores SWA (R72)."""
    stride, need = state.stride, state.tail_pages
    stop_at = len(key) - len(key) % stride
    node = best = state.root
    at, run, hit = 0, FROM_ROOT, 0
    stop = Stop.END_OF_KEY
    while at < stop_at:
        child = find_child(state, node, key, at, namespace)
        if child is None:
            stop = Stop.NO_CHILD
            break
        child_key = child.key
        if at + len(child_key) <= stop_at and key.startswith(child_key, at):
            at += len(child_key)
            run = run + child.pages if child.swa else 0
            if run >= need or full_only:
                best, hit = child, at
            node = child
            continue
        inside = common_pages(key[:stop_at] if stop_at < len(key) else key, at, child_key, stride)
        at += inside * stride
        stop = Stop.END_OF_KEY if at == stop_at else Stop.DIVERGED
        if full_only or (child.swa and run + inside >= need):
            return Walk(child, inside, at // stride, at // stride, stop)
        break
    if hit < at:
        stop = Stop.WINDOW_DEAD
    return Walk(best, 0, hit // stride, at // stride, stop)


def descend(
    state: State, key: bytes, stop: int, namespace: bytes, node: Node, at: int
) -> tuple[Node | None, int]:
    """One step of an insert below `node`: the child that key bytes [at, stop) share pages with, and how many."""
    child = find_child(state, node, key, at, namespace)
    if child is None:
        return None, 0
    if at + len(child.key) <= stop and key.startswith(child.key, at):
        return child, child.pages
    return child, common_pages(key[:stop] if stop < len(key) else key, at, child.key, state.stride)
