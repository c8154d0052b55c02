"""The rules of the legacy SWA radix tree, the rollback route, as it behaves: kept as it is, not improved.

It differs from the unified route where that was built to be better. A use makes all of its path the youngest, not the
last window alone. A match cuts every node that it ends in, also where the window is dead. A new leaf is not cut at the
window, so a lock of it holds all of it. A leaf is never a tombstone: who removes a leaf removes the childless
tombstones above it, too. A lock passes no tombstone. A request looks its own path up again by the rule that everybody
has. Only where its rules would free FULL pages that another live request reads does it do as we decided (A13): the
mapping moves, and the fresh pages are freed.

A decider is a generator, see `decide.pages`. Rule: every refusal is raised before the first yield; intervals are pages
of the path, [a, b).
"""

from typing import NamedTuple

from radixledger.cache.components.component import Segment
from radixledger.cache.decide import eviction as decide_eviction
from radixledger.cache.decide.eviction import Gain
from radixledger.cache.decide.pages import Decision, destination
from radixledger.cache.eviction import oldest_leaf, oldest_window
from radixledger.cache.match import Hit, Walk, descend, hit_of
from radixledger.cache.refusals import Busy, Refusal
from radixledger.cache.slices import Inserted, Slice, check_slice, free_duplicate, split_at
from radixledger.cache.state import Node, Request, State
from radixledger.journal.causes import Cause, Operation, Site, cause
from radixledger.journal.events import (
    Evicted,
    Freed,
    Healed,
    HealMode,
    Matched,
    Removed,
    Stop,
    Tombstoned,
    Transferred,
)
from radixledger.journal.units import (
    NO_PAGES,
    ROOT,
    UNBOUND,
    BoundaryId,
    NodeId,
    RequestId,
    TokenCount,
)

_FROM_ROOT = 1 << 60
"""The live pages that the count begins with at the root: as many as any window needs (R75)."""

_MATCH = cause(Operation.MATCH)
_EVICT = cause(Operation.EVICT)
_FULL_LEAF = cause(Operation.EVICT, Site.FULL_LEAF)
_SWA_LEAF = cause(Operation.EVICT, Site.SWA_LEAF)
_SWA_INTERNAL = cause(Operation.EVICT, Site.SWA_INTERNAL)
_CHILDLESS = cause(Operation.EVICT, Site.CHILDLESS_TOMBSTONE)


# -- match ---------------------------------------------------------------------------------------------------


class _Way(NamedTuple):
    """Where a key leads: to `last`, of which only the first `inside` pages are its own unless that is 0."""

    last: Node
    inside: int
    depth: int
    run: int
    """Live pages that end there, without a gap; counted from infinity at the root."""
    best: Node
    """The node before the last tombstone that ended a run of a window."""
    stop: Stop


def _way(state: State, key: bytes, namespace: bytes) -> _Way:
    stop_at = len(key) // state.stride * state.stride
    node = best = state.root
    depth, run = 0, _FROM_ROOT
    while depth * state.stride < stop_at:
        child, shared = descend(state, key, stop_at, namespace, node, depth * state.stride)
        if child is None:
            return _Way(node, 0, depth, run, best, Stop.NO_CHILD)
        if not child.swa and run >= state.tail_pages:
            best = node
        depth, run = depth + shared, run + shared if child.swa else 0
        if shared < child.pages:
            stop = Stop.END_OF_KEY if depth * state.stride == stop_at else Stop.DIVERGED
            return _Way(child, shared, depth, run, best, stop)
        node = child
    return _Way(node, 0, depth, run, best, Stop.END_OF_KEY)


def _boundary(state: State, way: _Way, *, full_only: bool) -> Walk:
    """The usable prefix: all of the way where its last window is live, else up to the last committed node."""
    if full_only or way.run >= state.tail_pages:
        return Walk(way.last, way.inside, way.depth, way.depth, way.stop)
    return Walk(way.best, 0, way.best.end, way.depth, Stop.WINDOW_DEAD)


def look(state: State, key: bytes, namespace: bytes, *, full_only: bool = False) -> Walk:
    """What `match` would find; reads only."""
    return _boundary(state, _way(state, key, namespace), full_only=full_only)


def match(
    state: State, key: bytes, namespace: bytes = b"", *, rid: str = "", request: RequestId = UNBOUND,
    full_only: bool = False, force_miss: bool = False, why: Cause = _MATCH,
) -> Decision[Hit]:  # fmt: skip
    """Find the usable prefix of `key`, cut the node that the walk ends in, and make all that was walked the youngest."""
    way = _way(state, key, namespace)
    found, last = _boundary(state, way, full_only=full_only), way.last
    if force_miss:
        found, last = Walk(state.root, 0, 0, way.depth, Stop.FORCED_MISS), state.root
    elif way.inside:
        event = split_at(state, last, way.inside, why)
        yield event
        last = state.nodes[event.upper]
    node = last if found.hit == last.end else found.node
    hit = hit_of(found, node, state.page_size)
    yield Matched(
        rid, request, TokenCount(len(key) // state.stride * state.page_size), hit.full_tokens, hit.tokens, node.id,
        found.stop, namespace, why, full_only, last.id if last is not node else ROOT,
    )  # fmt: skip
    return hit


def go_on(state: State, request: Request, _key: bytes, ended: Inserted, why: Cause) -> Decision[Node]:
    """Where a request goes on after its insert: where a match of its own path ends, by the rule of every match."""
    key, namespace = _path_key(ended.node), ended.node.namespace
    hit = yield from match(state, key, namespace, rid=request.rid, request=request.id, why=why)
    return state.nodes[hit.node]


def _path_key(node: Node) -> bytes:
    """The key of the path to `node`, from the root."""
    parts: list[bytes] = []
    while node.parent is not None:
        parts.append(node.key)
        node = node.parent
    parts.reverse()
    return b"".join(parts)


# -- insert --------------------------------------------------------------------------------------------------


def insert(state: State, key: bytes, namespace: bytes, brought: Slice) -> Decision[Inserted]:
    """Give the tree a slice: what it has of it is freed or heals a tombstone, the rest becomes a new leaf.

    What was walked becomes the youngest: with the new leaf, or by what the caller tells next of the request, or, for
    an insert without either, by the `Matched` that ends it.
    """
    check_slice(state, key, namespace, brought)
    node, total = brought.start or state.root, len(brought.pages) // 4
    done = node.end
    while done < total:
        child, shared = descend(state, key, total * state.stride, namespace, node, done * state.stride)
        if child is None:
            break
        if shared < child.pages:
            event = split_at(state, child, shared, brought.why(Site.WHOLE))
            yield event
            child = state.nodes[event.upper]
        if child.end > brought.prev:
            yield from _overlap(state, child, brought)
        node, done = child, child.end
    prefix = done
    if done < total:
        node = yield from _grow(state, node, key, namespace, done, brought)
    if brought.start is None and node.parent is not None:
        asked, tokens = TokenCount(total * state.page_size), TokenCount(node.end * state.page_size)
        stop = Stop.END_OF_KEY if tokens == asked else Stop.NO_CHILD
        why = brought.why(Site.WHOLE)
        yield Matched(
            "", brought.request, asked, tokens, tokens, node.id, stop, namespace, why, full_only=True
        )
    return Inserted(node, prefix)


def _overlap(state: State, node: Node, brought: Slice) -> Decision[None]:
    """The slice runs over `node`, [first, end) of it is fresh. Three branches for a tombstone, by where SWA is live."""
    start, end = node.end - node.pages, node.end
    first = max(start, brought.prev)
    live = max(first, brought.released)
    if node.swa or live >= end:
        yield from free_duplicate(state, brought.part(first, end), brought)
        return
    if live > start:
        yield split_at(state, node, live - start, brought.why(Site.HEAL))
        yield from free_duplicate(state, brought.part(first, live), brought)
    assert not state.mapping.mapped(node.full)[0], "the FULL pages of a tombstone carry no mapping (R88)"
    fresh = brought.part(live, end)
    # A13: FULL pages that a lock holds stay where other requests read them.
    mode = HealMode.TRANSFER if node.holds else HealMode.REPLACE
    swa = state.mapping.swa_pages(fresh)
    yield Healed(
        node.id,
        mode,
        brought.giver,
        fresh,
        node.full,
        swa,
        destination(state),
        brought.request,
        brought.why(Site.HEAL),
    )


def _grow(
    state: State, node: Node, key: bytes, namespace: bytes, start: int, brought: Slice
) -> Decision[Node]:
    """The new part [start, total): nothing if its SWA is all gone, else a tombstone below that and one live leaf."""
    total, stride = len(brought.pages) // 4, state.stride
    live = max(start, brought.released)
    if live >= total:
        yield from free_duplicate(state, brought.part(start, total), brought, Site.VETO)
        return node
    stale, swa = state.mapping.mapped(brought.part(start, live))
    if swa:
        yield Freed(
            brought.giver,
            NO_PAGES,
            stale,
            swa,
            destination(state),
            brought.request,
            brought.why(Site.RELEASED),
        )
    for first, stop in ((start, live), (live, total)):
        if first < stop:
            full = brought.part(first, stop)
            event = Transferred(
                node=NodeId(state.next_node),
                parent=node.id,
                giver=brought.giver,
                key=key[first * stride : stop * stride],
                full=full,
                swa=state.mapping.swa_pages(full) if first == live else NO_PAGES,
                namespace=namespace,
                request=brought.request,
                cause=brought.why(Site.WHOLE),
            )
            yield event
            node = state.nodes[event.node]
    return node


# -- locks ---------------------------------------------------------------------------------------------------


def segment(state: State, node: Node) -> Segment:
    """What a lock of `node` holds: live nodes upward until they fill the window; raises Refusal over a tombstone."""
    anchor, filled = node, 0
    while node.parent is not None:
        if not node.swa:
            raise Refusal(
                f"node {anchor.id} cannot be locked: node {node.id} in its last window is a tombstone, and a lock of "
                "the legacy route passes none"
            )
        filled += node.pages
        if filled >= state.tail_pages:
            if node.boundary:
                return Segment(node.boundary)
            return Segment(BoundaryId(state.next_boundary), node.id)
        node = node.parent
    return Segment()


# -- eviction ------------------------------------------------------------------------------------------------


def evict(state: State, full_pages: int, swa_pages: int) -> Decision[Gain]:
    """Give pages back to the pools, oldest first; what FULL pressure took along counts for SWA too (R106)."""
    if state.group_open:
        raise Busy("a free group is open: what eviction frees would stay pending, so nothing can be gained")
    begun, full, swa = state.seq, 0, 0
    while full < full_pages and (leaf := oldest_leaf(state)) is not None:
        gain = yield from _delete(state, leaf, _FULL_LEAF)
        full, swa = full + gain.full, swa + gain.swa
    while swa < swa_pages and (node := oldest_window(state)) is not None:
        if node.children:
            swa += node.pages
            yield Tombstoned(node.id, node.full, node.swa, cause=_SWA_INTERNAL)
        else:
            gain = yield from _delete(state, node, _SWA_LEAF)
            full, swa = full + gain.full, swa + gain.swa
    yield Evicted(full_pages, swa_pages, full, swa, state.seq - begun, _EVICT)
    return Gain(full, swa)


def _delete(state: State, leaf: Node, why: Cause) -> Decision[Gain]:
    """Remove a leaf, and then each parent that is left a childless tombstone which nothing holds."""
    assert not leaf.holds, "a leaf that a lock holds has its window in that lock, so no order names it (R102)"
    full = swa = 0
    node: Node | None = leaf
    while node is not None:
        parent = node.parent
        assert parent is not None, "the root is never a candidate (R70)"
        full, swa = full + node.pages, swa + len(node.swa) // 4
        yield Removed(node.id, parent.id, node.full, node.swa, destination(state), why)
        left = parent.parent is not None and not parent.swa and not parent.children and not parent.holds
        node, why = (parent if left else None), _CHILDLESS
    return Gain(full, swa)


def flush(state: State) -> Decision[int]:
    """Empty the tree of an idle rank, leaf by leaf (R33)."""
    return (yield from decide_eviction.flush(state))
