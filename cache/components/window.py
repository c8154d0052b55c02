"""The SWA component: window pages beside FULL pages, of which a request needs the last window only.

A place is a boundary if the path up to it ends with live SWA that covers the window, or is live from the root
(R73-R76). Here stands all that a unified route knows of windows; the arithmetic is in `window`. Rule: intervals are
pages of the path, [a, b), and what is needed is `state.tail_pages` of them.
"""

from collections.abc import Sequence

import numpy as np

from radixledger.cache.components.component import Component, Events, Segment
from radixledger.cache.decide.pages import destination
from radixledger.cache.eviction import oldest_spare, oldest_window
from radixledger.cache.refusals import Refusal
from radixledger.cache.slices import Slice, split_at
from radixledger.cache.spare import spare_pages
from radixledger.cache.state import Node, Receipt, Request, State
from radixledger.journal.accounts import Pool
from radixledger.journal.causes import Cause, Operation, Site, cause, sited
from radixledger.journal.events import Freed, Healed, HealMode, Stop, Tombstoned
from radixledger.journal.units import NO_PAGES, ROOT, TO_ROOT, BoundaryId, NodeId, Pages

_SWA_INTERNAL = cause(Operation.EVICT, Site.SWA_INTERNAL)
_SWA_LOCKED_LEAF = cause(Operation.EVICT, Site.SWA_LOCKED_LEAF)


class WindowComponent(Component):
    """Sliding-window attention on a FULL-backed tree."""

    pool = Pool.SWA
    miss = Stop.WINDOW_DEAD
    leaf_site = Site.SWA_LEAF

    def boundary(self, state: State, node: Node, pages: int) -> tuple[Node, int]:
        """One way up from the deepest place: a run of live pages begins anew below each tombstone (R74, R76)."""
        need, run = state.tail_pages, 0
        end, span, each = node, pages, node
        while each.parent is not None:
            if each.swa:
                run += span
                if run >= need:
                    break
            else:
                end, pages, run = each.parent, each.parent.pages, 0
            each = each.parent
            span = each.pages
        return end, pages

    # -- insert ----------------------------------------------------------------------------------------------

    def consumed_from(self, state: State, node: Node, start: int, brought: Slice) -> int:
        """A tombstone takes what the request still has SWA for, a live node nothing (R83-R86, A12)."""
        end = start + node.pages
        return end if node.swa else min(end, max(start, brought.released, brought.prev))

    def adopt(self, state: State, node: Node, start: int, brought: Slice) -> Events:
        """Replace the node's FULL pages, unless a lock holds them: then only the mapping moves (A13, R90)."""
        assert not state.mapping.mapped(node.full)[0], "the FULL pages of a tombstone carry no mapping (R88)"
        fresh = brought.part(start, start + node.pages)
        mode = HealMode.TRANSFER if node.holds else HealMode.REPLACE
        yield Healed(
            node.id, mode, brought.giver, fresh, node.full, state.mapping.swa_pages(fresh), destination(state),
            brought.request, brought.why(Site.HEAL),
        )  # fmt: skip

    def vetoes(self, state: State, start: int, total: int, brought: Slice) -> bool:
        """A leaf wholly below the released length, unless tombstones are wanted as leaves (A15)."""
        return max(start, brought.released) >= total and state.config.tombstone_leaf == "veto"

    def cuts(self, state: State, start: int, total: int, brought: Slice) -> Sequence[int]:
        """A tombstone below the released length, then live, its last window apart (R94, R95)."""
        live = max(start, min(brought.released, total))
        tail = max(live, total - state.tail_pages)
        return [at for at in (live, tail) if start < at < total]

    def prepare(self, state: State, start: int, total: int, brought: Slice) -> Events:
        """SWA of the released part that is still mapped is freed: the tree gets tombstones there."""
        stop = min(brought.released, total)
        if stop > start:
            stale, swa = state.mapping.mapped(brought.part(start, stop))
            if swa:
                why = brought.why(Site.RELEASED)
                yield Freed(brought.giver, NO_PAGES, stale, swa, destination(state), brought.request, why)

    def beside(self, state: State, full: Pages, first: int, brought: Slice) -> Pages:
        """The SWA pages that the FULL pages are mapped to (R89), of the live part."""
        return state.mapping.swa_pages(full) if first >= brought.released else NO_PAGES

    def cap(self, state: State, request: Request, count: int, operation: Operation) -> int:
        """A running request goes on from what it caches, so its path must end in a window (R259)."""
        released = int(state.rows.cursor[request.row]) // state.page_size
        prev = int(state.rows.protected[request.row]) // state.page_size
        if operation is Operation.UNFINISHED and released > prev and count - released < state.tail_pages:
            raise Refusal(
                f"request {request.id} gave its SWA back below token {released * state.page_size}; "
                f"a path that ends at {count * state.page_size} would have no window (R259)",
                request=request.id,
            )
        return count

    # -- locks -----------------------------------------------------------------------------------------------

    def narrowed(self, state: State, node: Node, why: Cause) -> Events:
        """Where spare pages go first, a live node in which the window begins is cut there: what lies before may go."""
        return () if state.spare_order is None else self._narrowed(state, node, why)

    def _narrowed(self, state: State, node: Node, why: Cause) -> Events:
        span = state.tail_pages
        while node.parent is not None and span > 0:
            if span < node.pages:
                if node.swa:
                    yield split_at(state, node, node.pages - span, sited(why, Site.WINDOW))
                return
            span -= node.pages
            node = node.parent

    def segment(self, state: State, node: Node) -> Segment:
        """The last window of the path: positions, so tombstones within it are counted like live nodes (R111, A21).

        The boundary is the node in which the window is full; without one the lock runs to the root (R119).
        Concurrent locks of one window share its mark (R116), which stays when they are gone (R117).
        """
        span = state.tail_pages
        skipped: list[int] = []
        while node.parent is not None:
            if not node.swa:
                skipped.append(node.id)
            span -= node.pages
            if span <= 0:
                passed = np.array(skipped, "<i8").tobytes() if skipped else b""
                if node.boundary:
                    return Segment(node.boundary, ROOT, passed)
                return Segment(BoundaryId(state.next_boundary), NodeId(node.id), passed)
            node = node.parent
        return Segment(TO_ROOT, ROOT, np.array(skipped, "<i8").tobytes() if skipped else b"")

    def is_held(self, node: Node, receipt: Receipt) -> bool:
        """Whether the segment leads from its anchor to its boundary, all of it counted."""
        each: Node | None = node
        while each is not None and each.parent is not None:
            if each.swa_locks <= 0:
                return False
            if receipt.boundary and each.boundary == receipt.boundary:
                return True
            each = each.parent
        return not receipt.boundary

    # -- eviction --------------------------------------------------------------------------------------------

    def oldest(self, state: State) -> Node | None:
        """Live, outside every locked window, oldest first (R103); where spare pages go first, those that have some."""
        return oldest_spare(state) or oldest_window(state)

    def share(self, state: State, node: Node) -> int:
        """Its spare pages, if there are any; a node that is needed goes as a whole."""
        return node.pages if state.spare_order is None else spare_pages(state, node) or node.pages

    def held(self, node: Node) -> int:
        """The node's SWA pages, all of its pages or none."""
        return len(node.swa) >> 2

    def parting(self, state: State, node: Node) -> Tombstoned | None:
        """A node with children, or a leaf that FULL locks, keeps its FULL pages (R99, R109, A24)."""
        if node.children:
            return Tombstoned(node.id, node.full, node.swa, cause=_SWA_INTERNAL)
        if node.holds:
            return Tombstoned(node.id, node.full, node.swa, cause=_SWA_LOCKED_LEAF)
        return None
