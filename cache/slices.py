"""What a request brings to an insert, on every route that has a tree: its pages, and the checks before they move.

What the tree does with them is the route's business. Rule: every refusal is raised before the first yield; intervals
are pages of the path, [a, b).
"""

from typing import NamedTuple

from radixledger.cache.decide.pages import Decision, destination
from radixledger.cache.locks import resident_end
from radixledger.cache.match import walk
from radixledger.cache.refusals import Busy, ForeignFree, Refusal
from radixledger.cache.state import Node, State
from radixledger.journal.accounts import Kind, Pool, describe
from radixledger.journal.causes import Cause, Operation, Site, cause
from radixledger.journal.events import Freed, Split
from radixledger.journal.units import NO_PAGES, NodeId, Pages, RequestId


class Inserted(NamedTuple):
    """An insert: the path ends at `node`; its first `prefix` pages were in the tree before (R63)."""

    node: Node
    prefix: int
    donated: bool = False
    """Whether the slice's state is the node's now."""


class Slice(NamedTuple):
    """The pages that a request brings to an insert, and what of them is whose.

    pages: FULL pages of [0, n). prev: the tree gave it [0, prev). released: its SWA is gone in [0, released).
    start: the node whose path is [0, prev), where it is known: the walk begins there instead of at the root.
    recurrent: the state slot after the last of these pages, for the node that ends them; or empty.
    """

    pages: Pages
    prev: int
    released: int
    giver: int
    request: RequestId
    operation: Operation
    start: Node | None = None
    recurrent: Pages = NO_PAGES

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
        host=Pages(node.host[: pages * 4]),
        transfer=node.backup,
    )


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
    if brought.recurrent:
        held = state.recurrent.all_with(brought.recurrent, brought.giver)
        _check_held(held, state, Pool.RECURRENT, brought.recurrent, brought)
    if not state.windowed:
        if brought.released > brought.prev:
            raise Refusal(
                f"swa_evicted_seqlen is {brought.released} pages, but nothing here has SWA that could be gone",
                request=brought.request,
            )
        return
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
        found = walk(state, key[: brought.prev * state.stride], namespace, full_only=True)
        given = min(found.full_hit, resident_end(found.node))
        if given < brought.prev:
            raise Refusal(
                f"prev_prefix_len is {brought.prev} pages, the tree has {given} of them", request=request
            )


def _check_held(held: bool, state: State, pool: Pool, pages: Pages, brought: Slice) -> None:
    if not held:
        book = {Pool.FULL: state.full, Pool.SWA: state.swa}.get(pool, state.recurrent)
        holders = book.holders(pages)
        at = int((holders != brought.giver).argmax())
        page = int.from_bytes(pages[at * 4 : at * 4 + 4], "little")
        raise ForeignFree(
            pool=pool, pages=Pages(pages[at * 4 : at * 4 + 4]), expected=brought.giver, found=int(holders[at]),
            since=int(book.since_at[page]) if 0 <= page <= book.capacity else 0, request=brought.request,
        )  # fmt: skip


def free_duplicate(state: State, pages: Pages, brought: Slice, site: Site = Site.DUPLICATE) -> Decision[None]:
    """Free what of a slice the tree does not take, FULL and SWA, once and by nobody else (R61, R62)."""
    if pages:
        unmapped, swa = state.mapping.mapped(pages)
        yield Freed(
            brought.giver, pages, unmapped, swa, destination(state), brought.request, brought.why(site)
        )
