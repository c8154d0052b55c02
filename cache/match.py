"""Walk a key down the tree and find the deepest boundary that a request may start from. Reads only.

FULL pages are contiguous by construction; where the components have something to start from is theirs to say (R71).
Rule: the key is never re-sliced; a node is one `startswith` at an offset, a child one look-up of its first page.
"""

from typing import NamedTuple

from radixledger.cache.keys import common_pages
from radixledger.cache.state import Node, State
from radixledger.journal.events import Stop
from radixledger.journal.units import ROOT, NodeId, TokenCount


class Beyond(NamedTuple):
    """How far copies on the host go on behind what is on the device: to `node`, or `inside` pages of it; `hit` pages."""

    node: Node
    inside: int
    hit: int


class Walk(NamedTuple):
    """Where a key leads. `node` ends the usable prefix; if `inside`, only its first `inside` pages do."""

    node: Node
    inside: int
    hit: int
    """Pages of the usable prefix."""
    full_hit: int
    """Pages that FULL alone would give."""
    stop: Stop
    beyond: Beyond | None = None


class Hit(NamedTuple):
    """A match: `tokens` usable tokens ending at `node`; `full_tokens` that FULL alone would give.

    Behind them copies on the host reach `host_tokens` further, up to `host_node`; the root if there are none.
    """

    node: NodeId
    tokens: TokenCount
    full_tokens: TokenCount
    stop: Stop
    host_tokens: TokenCount = TokenCount(0)
    host_node: NodeId = ROOT


def hit_of(found: Walk, node: Node, page_size: int) -> Hit:
    """What a walk found, told in tokens, where the usable prefix ends at `node`."""
    _, _, hit, full_hit, stop, beyond = found
    tokens, full_tokens = hit * page_size, full_hit * page_size
    if beyond is not None:
        host_tokens = TokenCount(beyond.hit * page_size)
        return Hit(node.id, TokenCount(tokens), TokenCount(full_tokens), stop, host_tokens, beyond.node.id)
    return Hit(node.id, tokens, full_tokens, stop)  # type: ignore[arg-type]  # calls that every match would pay for


def find_child(state: State, node: Node, key: bytes, at: int, namespace: bytes) -> Node | None:
    """The child of `node` whose first page stands in `key` at byte `at`."""
    if node.children is None:
        return None
    page = key[at : at + state.stride]
    return node.children.get((namespace, page) if node.parent is None else page)


def walk(state: State, key: bytes, namespace: bytes, *, full_only: bool = False) -> Walk:
    """The deepest valid boundary for `key`, whole pages of it; `full_only` asks no component (R72)."""
    stride = state.stride
    stop_at = len(key) - len(key) % stride
    node, at, pages = state.root, 0, -1
    stop = Stop.END_OF_KEY
    while at < stop_at:
        child = find_child(state, node, key, at, namespace)
        if child is None:
            stop = Stop.NO_CHILD
            break
        node, child_key = child, child.key
        if key.startswith(child_key, at):
            at += len(child_key)
            continue
        pages = common_pages(key[:stop_at] if stop_at < len(key) else key, at, child_key, stride)
        at += pages * stride
        stop = Stop.END_OF_KEY if at == stop_at else Stop.DIVERGED
        break
    if pages < 0:
        pages = node.pages
    if not full_only:
        node, pages, stop = boundary(state, node, pages, stop)
    hit = node.end - node.pages + pages
    return Walk(node, pages if pages < node.pages else 0, hit, at // stride, stop)


def boundary(state: State, node: Node, pages: int, stop: Stop = Stop.END_OF_KEY) -> tuple[Node, int, Stop]:
    """The deepest place, at or above the one `pages` pages into `node`, that every component can start from.

    A component that moves it up is asked again after the others have moved it. `stop` is why a walk ended there, or
    which component had nothing for it.
    """
    components = state.components
    if len(components) == 1:
        (only,) = components
        reached, whole = only.boundary(state, node, pages)
        return reached, whole, stop if reached is node and whole == pages else only.miss
    while True:
        reached, before = node, pages
        for component in components:
            here, whole = node, pages
            node, pages = component.boundary(state, node, pages)
            if node is not here or pages != whole:
                stop = component.miss
        if node is reached and pages == before:
            return node, pages, stop


def is_boundary(state: State, node: Node) -> bool:
    """Whether a request may start where `node` ends: behind FULL pages, and where every component can."""
    if not node.full and node.parent is not None:
        return False
    return boundary(state, node, node.pages)[0] is node


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
