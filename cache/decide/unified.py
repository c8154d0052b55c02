"""The tree's rules on the unified route: one FULL-backed tree whose nodes carry other components beside.

Match, insert, what a request goes on from, what a lock holds; see `routes` for who asks. A decider is a generator, see
`decide.pages`. Rules: every refusal is raised before the first yield; intervals are pages of the path, [a, b); what a
component keeps, and why, is its own business: it is asked through `components` (R15).
"""

from itertools import pairwise

from radixledger.cache.components.component import Component, Segment, cut_points
from radixledger.cache.decide.pages import Decision
from radixledger.cache.match import Hit, Walk, descend, hit_of, walk
from radixledger.cache.slices import Inserted, Slice, check_slice, free_duplicate, split_at
from radixledger.cache.state import Node, Request, State
from radixledger.journal.causes import Cause, Operation, Site, cause
from radixledger.journal.events import Adopted, Matched, Stop, Transferred
from radixledger.journal.units import ROOT, TO_ROOT, UNBOUND, NodeId, Pages, RequestId, TokenCount

_MATCH = cause(Operation.MATCH)


def look(state: State, key: bytes, namespace: bytes, *, full_only: bool = False) -> Walk:
    """What `match` would find; reads only."""
    return walk(state, key, namespace, full_only=full_only)


def match(
    state: State, key: bytes, namespace: bytes = b"", *, rid: str = "", request: RequestId = UNBOUND,
    full_only: bool = False, force_miss: bool = False, why: Cause = _MATCH,
) -> Decision[Hit]:  # fmt: skip
    """Find the usable prefix of `key`, cut the node it ends in, and make its path the youngest."""
    found = walk(state, key, namespace, full_only=full_only)
    if force_miss:
        found = Walk(state.root, 0, 0, found.full_hit, Stop.FORCED_MISS)
    node = found.node
    if found.inside:
        event = split_at(state, node, found.inside, why)
        yield event
        node = state.nodes[event.upper]
    page_size = state.page_size
    asked = len(key) // state.stride * page_size
    hit = hit_of(found, node, page_size)
    yield Matched(
        rid,
        request,
        TokenCount(asked),
        hit.full_tokens,
        hit.tokens,
        node.id,
        found.stop,
        namespace,
        why,
        full_only,
    )
    return hit


def go_on(_: State, _request: Request, _key: bytes, ended: Inserted, _why: Cause) -> Decision[Node]:
    """Where a request goes on after its insert: where that ended, since FULL alone decides (R72)."""
    yield from ()
    return ended.node


def segment(state: State, node: Node) -> Segment:
    """What a lock of `node` holds: FULL to the root, and what each component says (R111, R112)."""
    components = state.components
    if len(components) == 1:
        return components[0].segment(state, node)
    boundary, marked, skipped = TO_ROOT, ROOT, b""
    for component in components:
        mine = component.segment(state, node)
        boundary, marked, skipped = mine.boundary or boundary, mine.marked or marked, skipped + mine.skipped
    return Segment(boundary, marked, skipped)


def insert(state: State, key: bytes, namespace: bytes, brought: Slice) -> Decision[Inserted]:
    """Give the tree a request's pages for the first pages of `key`: what it has is freed, healed or left, the rest is new.

    The duplicate interval that no component consumes is freed here and by nobody else (R61, R62), unless a stranger
    brought it to a route that leaves it with him. Own pages behind the end of the returned node, if a leaf was vetoed,
    are freed too (R93).
    """
    check_slice(state, key, namespace, brought)
    node, done, total, stride = state.root, 0, len(brought.pages) // 4, state.stride
    if brought.start is not None:
        assert brought.start.end == brought.prev, "a request's protected path ends where its last node ends"
        node, done = brought.start, brought.prev
    prefix = done
    while done < total:
        child, shared = descend(state, key, total * stride, namespace, node, done * stride)
        if child is None:
            break
        if shared < child.pages:
            event = split_at(state, child, shared, brought.why(Site.WHOLE))
            yield event
            child = state.nodes[event.upper]
        if child.full:
            prefix = done + shared
        if done + shared > brought.prev:
            yield from _overlap(state, child, done, brought)
        node, done = child, done + shared
    if done < total:
        node = yield from _grow(state, node, key, namespace, done, total, brought)
    for component in state.components:
        yield from component.settled(state, node, brought)
    return Inserted(node, prefix, bool(brought.recurrent) and node.recurrent == brought.recurrent)


def _overlap(state: State, node: Node, start: int, brought: Slice) -> Decision[None]:
    """The slice runs over `node`, which covers [start, end): who consumes it, and from where, the components say.

    The smallest of their boundaries counts (R59, R60); what lies before it is freed here (R61).
    """
    end = start + node.pages
    if not node.full:
        yield from unevict(state, node, start, brought)
        return
    first, boundary = max(start, brought.prev), end
    takers: list[Component] = []
    for component in state.components:
        consumed = component.consumed_from(state, node, start, brought)
        assert first <= consumed <= end, "what is consumed is the request's own, and within the node (A9)"
        if consumed < end:
            takers.append(component)
            boundary = min(boundary, consumed)
    if start < boundary < end:
        yield split_at(state, node, boundary - start, brought.why(Site.HEAL))
    if state.traits.frees_duplicates or brought.start is not None:
        yield from free_duplicate(state, brought.part(first, boundary), brought)
    for component in takers:
        yield from component.adopt(state, node, boundary, brought)


def unevict(state: State, node: Node, start: int, brought: Slice) -> Decision[None]:
    """A FULL tombstone gets the slice's pages and keeps its copy; they are no duplicates, so nobody frees them.

    The slice is what is staged: each component recovers once by it, before the pages are the node's and count (R64,
    A11). FULL itself recovers nothing (R65).
    """
    for component in state.components:
        yield from component.recover(state, node, start, brought)
    fresh = brought.part(start, start + node.pages)
    yield Adopted(node.id, brought.giver, fresh, node.host, brought.request, brought.why(Site.ADOPTED))


def _grow(
    state: State, node: Node, key: bytes, namespace: bytes, start: int, total: int, brought: Slice
) -> Decision[Node]:
    """New nodes for [start, total), cut where the components want it; none at all if one of them vetoes (R93-R95)."""
    components = state.components
    for component in components:
        if component.vetoes(state, start, total, brought):
            yield from free_duplicate(state, brought.part(start, total), brought, Site.VETO)
            return node
    for component in components:
        yield from component.prepare(state, start, total, brought)
    parent = node
    for first, stop in pairwise(cut_points(components, state, start, total, brought)):
        full = brought.part(first, stop)
        event = Transferred(
            node=NodeId(state.next_node),
            parent=node.id,
            giver=brought.giver,
            key=key[first * state.stride : stop * state.stride],
            full=full,
            swa=Pages(b"".join([each.beside(state, full, first, brought) for each in components])),
            namespace=namespace,
            request=brought.request,
            cause=brought.why(Site.WHOLE),
        )
        yield event
        node = state.nodes[event.node]
    for component in components:
        yield from component.outgrown(state, parent, brought)
    return node
