"""The tree's rules on the unified route: one FULL-backed tree whose nodes carry SWA as a component.

Match, insert with healing, what a request goes on from, what a lock holds; see `routes` for who asks. A decider is a
generator, see `decide_pages`. Rule: every refusal is raised before the first yield; intervals are pages of the path,
[a, b).
"""

from radixledger.cache import locks
from radixledger.cache.decide_pages import Decision, destination
from radixledger.cache.match import Hit, Walk, descend, hit_of, walk
from radixledger.cache.slices import Inserted, Slice, check_slice, free_duplicate, split_at
from radixledger.cache.state import Node, Request, State
from radixledger.journal.causes import Cause, Operation, Site, cause
from radixledger.journal.events import Freed, Healed, HealMode, Locked, Matched, Stop, Transferred
from radixledger.journal.units import NO_PAGES, UNBOUND, NodeId, Pages, RequestId, TokenCount

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
        rid, request, TokenCount(asked), hit.full_tokens, hit.tokens, node.id, found.stop, namespace, why
    )
    return hit


def go_on(_: State, _request: Request, _key: bytes, ended: Inserted, _why: Cause) -> Decision[Node]:
    """Where a request goes on after its insert: where that ended, since FULL alone decides (R72)."""
    yield from ()
    return ended.node


def segment(state: State, node: Node) -> Locked:
    """What a lock of `node` holds: the last window by position, tombstones counted too (A21, R112)."""
    return locks.locked(state, node)


def insert(state: State, key: bytes, namespace: bytes, brought: Slice) -> Decision[Inserted]:
    """Give the tree a request's pages for the first pages of `key`: what it has is freed, healed or left, the rest is new.

    The duplicate interval that no component consumes is freed here and by nobody else (R61, R62). Own pages
    behind the end of the returned node, if a leaf was vetoed, are freed too (R93).
    """
    check_slice(state, key, namespace, brought)
    node, done, total, stride = state.root, 0, len(brought.pages) // 4, state.stride
    if brought.start is not None:
        assert brought.start.end == brought.prev, "a request's protected path ends where its last node ends"
        node, done = brought.start, brought.prev
    while done < total:
        child, shared = descend(state, key, total * stride, namespace, node, done * stride)
        if child is None:
            break
        if shared < child.pages:
            event = split_at(state, child, shared, brought.why(Site.WHOLE))
            yield event
            child = state.nodes[event.upper]
        if done + shared > brought.prev:
            yield from _overlap(state, child, done, brought)
        node, done = child, done + shared
    prefix = done
    if done < total:
        node = yield from _grow(state, node, key, namespace, done, total, brought)
    return Inserted(node, prefix)


def _overlap(state: State, node: Node, start: int, brought: Slice) -> Decision[None]:
    """The slice runs over `node`, which covers [start, end). Consumed from `boundary` on (R83-R86, A12)."""
    end = start + node.pages
    first = max(start, brought.prev)
    boundary = end if node.swa else max(brought.released, brought.prev)
    if boundary >= end:
        yield from free_duplicate(state, brought.part(first, end), brought)
        return
    if boundary > start:
        yield split_at(state, node, boundary - start, brought.why(Site.HEAL))
        yield from free_duplicate(state, brought.part(first, boundary), brought)
    yield _heal(state, node, brought.part(max(boundary, start), end), brought)


def _heal(state: State, node: Node, fresh: Pages, brought: Slice) -> Healed:
    """Replace the node's FULL pages, unless a lock holds them: then only the mapping moves (A13, R90)."""
    assert not state.mapping.mapped(node.full)[0], "the FULL pages of a tombstone carry no mapping (R88)"
    mode = HealMode.TRANSFER if node.holds else HealMode.REPLACE
    return Healed(
        node.id, mode, brought.giver, fresh, node.full, state.mapping.swa_pages(fresh), destination(state),
        brought.request, brought.why(Site.HEAL),
    )  # fmt: skip


def _grow(
    state: State, node: Node, key: bytes, namespace: bytes, start: int, total: int, brought: Slice
) -> Decision[Node]:
    """New leaves for [start, total): a tombstone below the released length, then live, its last window apart (R94, R95)."""
    live = max(start, min(brought.released, total))
    if live == total and state.config.tombstone_leaf == "veto":
        yield from free_duplicate(state, brought.part(start, total), brought, Site.VETO)
        return node
    tail = max(live, total - state.tail_pages)
    if live > start:
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
    for first, stop in ((start, live), (live, tail), (tail, total)):
        if first < stop:
            full = brought.part(first, stop)
            event = Transferred(
                node=NodeId(state.next_node),
                parent=node.id,
                giver=brought.giver,
                key=key[first * state.stride : stop * state.stride],
                full=full,
                swa=state.mapping.swa_pages(full) if first >= live else NO_PAGES,
                namespace=namespace,
                request=brought.request,
                cause=brought.why(Site.WHOLE),
            )
            yield event
            node = state.nodes[event.node]
    return node
