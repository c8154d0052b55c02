"""What the core asks of a component: whoever keeps something beside FULL on the nodes of the tree.

FULL is no component, it is the tree: its pages are contiguous from the root, and what it gives up or takes is the
core's business (R65). A component knows what it keeps, where a request may start from it, what of a request's slice it
takes over, and who of its own is evicted next; the core (`decide.unified`, `match`, `decide.eviction`) walks, cuts,
grows, frees and locks, asks every component of the state in order, and knows no window and no state of a model (R15).

Rule: a component holds nothing of its own. It reads the state and answers, or yields events, and `evolve` writes.
What is asked here is answered for a component that keeps nothing; a component overrides what concerns it.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from radixledger.cache.decide.pages import destination
from radixledger.cache.slices import Slice
from radixledger.cache.state import Node, Receipt, Request, State
from radixledger.journal.accounts import Pool
from radixledger.journal.causes import Cause, Operation, Site
from radixledger.journal.events import AnyEvent, Removed, Stop
from radixledger.journal.units import NO_PAGES, ROOT, TO_ROOT, BoundaryId, NodeId, Pages, RequestId

Events = Iterable[AnyEvent]
"""What a component decides: a generator, or nothing."""


class Segment(NamedTuple):
    """What a lock of a path holds of one component.

    boundary: the mark of the node up to which it is held, `TO_ROOT` for a component without one. marked: the node
    that the mark is set on by this lock, the root for none. skipped: nodes of it that have nothing, packed int64.
    """

    boundary: BoundaryId = TO_ROOT
    marked: NodeId = ROOT
    skipped: bytes = b""


class Component:
    """A component that keeps nothing: its answers change nothing. Positions and intervals are pages of the path."""

    pool: Pool = Pool.FULL
    """The pool that it keeps pages of; FULL for none of its own."""
    miss: Stop = Stop.NO_CHILD
    """Why a match ends before FULL does, where this component is the reason."""
    leaf_site: Site = Site.FULL_LEAF
    """Where in an eviction a whole leaf goes because this component is short."""

    # -- match -----------------------------------------------------------------------------------------------

    def boundary(self, state: State, node: Node, pages: int) -> tuple[Node, int]:
        """The deepest place that a request may start from, at or above the one `pages` pages into `node` (R71).

        A place that this component has nothing for is skipped, not the end of it: the answer is asked for once per
        walk, after FULL has said how far it reaches. The root always will do.
        """
        return node, pages

    # -- insert ----------------------------------------------------------------------------------------------

    def consumed_from(self, state: State, node: Node, start: int, brought: Slice) -> int:
        """From where in `node`, which covers [start, end), the slice's pages go over to it: `end` for nothing (R59).

        Never below what the request brings of its own, `max(start, brought.prev)` (A9).
        """
        return start + node.pages

    def adopt(self, state: State, node: Node, start: int, brought: Slice) -> Events:
        """Take over the slice's pages of the whole of `node`, which begins at the boundary that was consumed from."""
        return ()

    def recover(self, state: State, node: Node, start: int, brought: Slice) -> Events:
        """`node` had no FULL pages and gets the slice's: get back what this component lost with them.

        Asked once per node and insert, while the pages are staged in the slice, checked and still the giver's; right
        after the last component they are the node's (R64, A11). Nothing may be cut here.
        """
        return ()

    def vetoes(self, state: State, start: int, total: int, brought: Slice) -> bool:
        """Whether a new leaf for [start, total) would be of no use, so that its pages are freed instead (R93)."""
        return False

    def cuts(self, state: State, start: int, total: int, brought: Slice) -> Sequence[int]:
        """Where in (start, total) the new part of a path is cut into nodes (R94, R95)."""
        return ()

    def prepare(self, state: State, start: int, total: int, brought: Slice) -> Events:
        """Put right what the slice of a new leaf must not carry into the tree."""
        return ()

    def beside(self, state: State, full: Pages, first: int, brought: Slice) -> Pages:
        """The pages that go into a new node together with `full`, which begin at position `first`."""
        return NO_PAGES

    def outgrown(self, state: State, node: Node, brought: Slice) -> Events:
        """A node just got a child by this insert."""
        return ()

    def settled(self, state: State, node: Node, brought: Slice) -> Events:
        """The insert is over, and `node` ends its path."""
        return ()

    def cap(self, state: State, request: Request, count: int, operation: Operation) -> int:
        """How many of the first `count` pages of a request may be cached now (R150); raises Refusal if none ever may."""
        return count

    def secure(self, state: State, request: Request, count: int) -> Events:
        """Before a running request caches `count` pages: get what it needs in exchange for what it will give away."""
        return ()

    def carried(self, state: State, request: Request, count: int, operation: Operation) -> Pages:
        """What of its own the slice of a request's first `count` pages carries to the node that ends it."""
        return NO_PAGES

    # -- requests --------------------------------------------------------------------------------------------

    def check_admission(self, state: State, key: bytes, namespace: bytes, force_miss: bool) -> None:
        """Raise Refusal if a request with this key cannot be given what it needs of this component's pool."""

    def check_seat(self, state: State, node: Node) -> None:
        """The same for a request that starts at `node`."""

    def admitted(self, state: State, request: RequestId, node: Node, why: Cause) -> Events:
        """A request was admitted and starts at `node`, which it has locked."""
        return ()

    def grown(
        self, state: State, requests: NDArray[np.int64], before: NDArray[np.int32], why: Cause
    ) -> Events:
        """Requests grew; `before` are their lengths until now, int32 [n]."""
        return ()

    def check_cut(self, state: State, request: Request) -> None:
        """Raise Refusal if a request cannot go on from fewer tokens than it has."""

    def left(self, state: State, request: Request, operation: Operation) -> Events:
        """A request ends: what it still has of this component's pool is given back."""
        return ()

    # -- locks -----------------------------------------------------------------------------------------------

    def narrowed(self, state: State, node: Node, why: Cause) -> Events:
        """`node` is about to be locked: cut its path where the lock would hold more than it needs."""
        return ()

    def segment(self, state: State, node: Node) -> Segment:
        """What locking `node` holds of this component (R112)."""
        return Segment()

    def is_held(self, node: Node, receipt: Receipt) -> bool:
        """Whether all of what a receipt says is held."""
        return True

    def unlocked(self, state: State, node: Node, request: RequestId, why: Cause) -> Events:
        """A receipt of `node` was just given back."""
        return ()

    # -- eviction --------------------------------------------------------------------------------------------

    def oldest(self, state: State) -> Node | None:
        """Its next victim, by its own recency among its own candidates (R67, R69)."""
        return None

    def share(self, state: State, node: Node) -> int:
        """How many of the first pages of its victim go: all of them, or the node is cut behind them first."""
        return node.pages

    def held(self, node: Node) -> int:
        """How many pages of its pool the node has."""
        return 0

    def parting(self, state: State, node: Node) -> AnyEvent | None:
        """The event that takes this component's pages from its victim; None if the whole leaf has to go (R104)."""
        return None


def leaf_removal(state: State, leaf: Node, why: Cause) -> Removed:
    """The fixed cascade of a leaf, FULL first, then whatever else it has, as one event (R100, R101)."""
    assert leaf.parent is not None, "the root is never a candidate (R70)"
    return Removed(leaf.id, leaf.parent.id, leaf.full, leaf.swa, destination(state), why, leaf.recurrent)


def cut_points(
    components: Iterable[Component], state: State, start: int, total: int, brought: Slice
) -> list[int]:
    """Where the nodes of a new part [start, total) begin and end, start and total among them."""
    inner = {at for component in components for at in component.cuts(state, start, total, brought)}
    if not inner:
        return [start, total]
    assert start < min(inner) <= max(inner) < total, "a cut leaves pages on both sides"
    return [start, *sorted(inner), total]
