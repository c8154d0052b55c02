"""Decisions of the unified route: one FULL-backed tree whose nodes carry SWA as a component.

Match, insert with healing, locks, eviction, flush. A decider is a generator, see `decide_pages`. Rule: every
refusal is raised before the first yield; intervals are pages of the path, [a, b).
"""

from typing import NamedTuple

from radixledger.cache import locks
from radixledger.cache.decide_pages import Decision, destination
from radixledger.cache.match import Walk, descend, walk
from radixledger.cache.refusals import Busy, ForeignFree, Refusal
from radixledger.cache.state import Node, Receipt, State
from radixledger.journal.accounts import Kind, Pool, describe
from radixledger.journal.causes import Cause, Operation, Site, cause
from radixledger.journal.events import (
    Freed,
    Healed,
    HealMode,
    Locked,
    Matched,
    Split,
    Stop,
    Transferred,
    Unlocked,
)
from radixledger.journal.units import NO_PAGES, ROOT, TO_ROOT, UNBOUND, NodeId, Pages, RequestId, TokenCount

_MATCH, _LOCK, _UNLOCK = cause(Operation.MATCH), cause(Operation.LOCK), cause(Operation.UNLOCK)


class Hit(NamedTuple):
    """A match: `tokens` usable tokens ending at `node`; `full_tokens` that FULL alone would give."""

    node: NodeId
    tokens: TokenCount
    full_tokens: TokenCount
    stop: Stop


class Inserted(NamedTuple):
    """An insert: the path ends at `node`; its first `prefix` pages were in the tree before (R63)."""

    node: Node
    prefix: int


class Slice(NamedTuple):
    """The pages that a request brings to an insert, and what of them is whose.

    pages: FULL pages of [0, n). prev: the tree gave it [0, prev). released: its SWA is gone in [0, released).
    start: the node whose path is [0, prev), where it is known: the walk begins there instead of at the root.
    """

    pages: Pages
    prev: int
    released: int
    giver: int
    request: RequestId
    operation: Operation
    start: Node | None = None

    def part(self, first: int, stop: int) -> Pages:
        """The FULL pages of [first, stop)."""
        return Pages(self.pages[first * 4 : stop * 4])

    def why(self, site: Site) -> Cause:
        """The cause of an event of this insert."""
        return cause(self.operation, site)


def split_at(state: State, node: Node, pages: int, why: Cause) -> Split:
    """The event that cuts `node` behind its first `pages` pages; the boundary mark goes to the older part (R114)."""
    assert node.parent is not None, "the root is never cut"
    assert 0 < pages < node.pages, "a cut leaves pages on both sides"
    return Split(
        node=node.id,
        upper=NodeId(state.next_node),
        parent=node.parent.id,
        full=Pages(node.full[: pages * 4]),
        swa=Pages(node.swa[: pages * 4]),
        boundary=node.boundary,
        cause=why,
    )


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
    hit = Hit(node.id, TokenCount(found.hit * page_size), TokenCount(found.full_hit * page_size), found.stop)
    yield Matched(
        rid, request, TokenCount(asked), hit.full_tokens, hit.tokens, node.id, found.stop, namespace, why
    )
    return hit


def lock(state: State, node: NodeId) -> Decision[Receipt]:
    """Shield a path: FULL to the root, SWA over its last window (R111). A live request has a lock of its own."""
    if node not in state.nodes:
        raise Refusal(f"node {node} is not in the tree")
    if node == ROOT:
        return Receipt(ROOT, TO_ROOT)
    event = locked_by(state, state.nodes[node], UNBOUND, _LOCK)
    yield event
    return locks.receipt_of(event)


def locked_by(state: State, node: Node, request: RequestId, why: Cause) -> Locked:
    """The lock event of a path for a request."""
    event = locks.locked(state, node)
    return Locked(event.node, event.boundary, event.skipped, event.marked, request, why)


def unlock(state: State, receipt: Receipt) -> Decision[None]:
    """Release exactly what the receipt holds; one that is not held, or that a live request holds, is refused (R122)."""
    if receipt.node != ROOT:
        check_receipt(state, receipt)
        yield Unlocked(receipt.node, receipt.boundary, cause=_UNLOCK)


def check_receipt(state: State, receipt: Receipt) -> None:
    """Refuse a receipt that is not held, whichever part of it is wrong, or that a live request holds."""
    node = state.nodes.get(receipt.node)
    owners = [
        live.rid for live in state.requests.values() if live.receipt and live.receipt.node == receipt.node
    ]
    if node is None or node.anchors <= len(owners) or not _segment_is_held(node, receipt):
        raise Refusal(
            f"the receipt of node {receipt.node}, boundary {receipt.boundary}, is not held"
            + (f", but by the live requests {', '.join(owners[:8])}" if owners else "")
        )


def _segment_is_held(node: Node, receipt: Receipt) -> bool:
    """Whether the window segment of a receipt leads from its anchor to its boundary, all of it counted."""
    walk_up: Node | None = node
    while walk_up is not None and walk_up.parent is not None:
        if walk_up.swa_locks <= 0:
            return False
        if receipt.boundary and walk_up.boundary == receipt.boundary:
            return True
        walk_up = walk_up.parent
    return not receipt.boundary


def check_slice(state: State, key: bytes, namespace: bytes, brought: Slice) -> None:
    """Refuse an insert whose pages are not the giver's, or whose live part has no SWA (R89, R97)."""
    count = len(brought.pages) // 4
    if len(key) // state.stride < count:
        raise Refusal(
            f"a key of {len(key) // state.stride} pages came with {count} FULL pages", request=brought.request
        )
    for name, at in (("prev_prefix_len", brought.prev), ("swa_evicted_seqlen", brought.released)):
        if at < 0:
            raise Refusal(
                f"{name} is {at} pages; a position cannot be negative (R271)", request=brought.request
            )
    if brought.start is None:
        _check_stranger(state, key, namespace, brought)
    own = brought.part(brought.prev, count)
    _check_held(state.full.all_with(own, brought.giver), state, Pool.FULL, own, brought)
    live = brought.part(max(brought.prev, brought.released), count)
    mapped, swa = state.mapping.mapped(live)
    if mapped != live:
        raise Refusal(
            f"{(len(live) - len(mapped)) // 4} pages at or beyond the released length have no SWA page",
            request=brought.request,
            pages=live,
        )
    _check_held(state.swa.all_with(swa, brought.giver), state, Pool.SWA, swa, brought)


def _check_stranger(state: State, key: bytes, namespace: bytes, brought: Slice) -> None:
    """Refuse a giver that can give nothing, a live row that would not know of it, and a prefix the tree never gave."""
    request = brought.request
    if brought.giver & 7 != Kind.REQUEST:
        raise Refusal(
            f"{describe(brought.giver)} is nobody who could give pages to the tree", request=request
        )
    if brought.giver >> 3 in state.requests:
        raise Busy(f"{describe(brought.giver)} is live: its pages go by its own calls", request=request)
    if brought.prev:
        given = walk(state, key[: brought.prev * state.stride], namespace, full_only=True).full_hit
        if given < brought.prev:
            raise Refusal(
                f"prev_prefix_len is {brought.prev} pages, the tree has {given} of them", request=request
            )


def _check_held(held: bool, state: State, pool: Pool, pages: Pages, brought: Slice) -> None:
    if not held:
        book = state.full if pool is Pool.FULL else state.swa
        holders = book.holders(pages)
        at = int((holders != brought.giver).argmax())
        page = int.from_bytes(pages[at * 4 : at * 4 + 4], "little")
        raise ForeignFree(
            pool=pool, pages=Pages(pages[at * 4 : at * 4 + 4]), expected=brought.giver, found=int(holders[at]),
            since=int(book.since_at[page]) if 0 <= page <= book.capacity else 0, request=brought.request,
        )  # fmt: skip


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
        yield from _free_duplicate(state, brought.part(first, end), brought)
        return
    if boundary > start:
        yield split_at(state, node, boundary - start, brought.why(Site.HEAL))
        yield from _free_duplicate(state, brought.part(first, boundary), brought)
    yield _heal(state, node, brought.part(max(boundary, start), end), brought)


def _heal(state: State, node: Node, fresh: Pages, brought: Slice) -> Healed:
    """Replace the node's FULL pages, unless a lock holds them: then only the mapping moves (A13, R90)."""
    assert not state.mapping.mapped(node.full)[0], "the FULL pages of a tombstone carry no mapping (R88)"
    mode = HealMode.TRANSFER if node.holds else HealMode.REPLACE
    return Healed(
        node.id, mode, brought.giver, fresh, node.full, state.mapping.swa_pages(fresh), destination(state),
        brought.request, brought.why(Site.HEAL),
    )  # fmt: skip


def _free_duplicate(
    state: State, pages: Pages, brought: Slice, site: Site = Site.DUPLICATE
) -> Decision[None]:
    if pages:
        unmapped, swa = state.mapping.mapped(pages)
        yield Freed(
            brought.giver, pages, unmapped, swa, destination(state), brought.request, brought.why(site)
        )


def _grow(
    state: State, node: Node, key: bytes, namespace: bytes, start: int, total: int, brought: Slice
) -> Decision[Node]:
    """New leaves for [start, total): a tombstone below the released length, then live, its last window apart (R94, R95)."""
    live = max(start, min(brought.released, total))
    if live == total and state.config.tombstone_leaf == "veto":
        yield from _free_duplicate(state, brought.part(start, total), brought, Site.VETO)
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
