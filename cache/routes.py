"""Which rules a route follows: the table that `Opened.route` looks into.

A request's life is the same on every route and stands in `decide.requests`; what differs is how the tree matches,
inserts, locks and gives up pages. A route is a module with these functions; the shell and the life of requests ask
it by name and never know which it is. Rule: facts of a route that the fold needs stand in `traits`, not here.
"""

from typing import NamedTuple, Protocol

from radixledger.cache.components.component import Segment
from radixledger.cache.decide import chunk as decide_chunk
from radixledger.cache.decide import eviction as decide_eviction
from radixledger.cache.decide import host_tree as decide_host_tree
from radixledger.cache.decide import legacy as decide_legacy
from radixledger.cache.decide import unified as decide_unified
from radixledger.cache.decide.eviction import Gain
from radixledger.cache.decide.pages import Decision
from radixledger.cache.match import Hit, Walk
from radixledger.cache.slices import Inserted, Slice
from radixledger.cache.state import Node, Request, State
from radixledger.journal.causes import Cause
from radixledger.journal.events import Opened
from radixledger.journal.units import RequestId


class TreeRules(Protocol):
    """What a route's tree does with a key, a slice, a node. Deciders, but for `look` and `segment`, which read."""

    def look(self, state: State, key: bytes, namespace: bytes, /, *, full_only: bool = ...) -> Walk:
        """What a match would find (A19)."""

    def match(
        self, state: State, key: bytes, namespace: bytes = ..., /, *, rid: str = ..., request: RequestId = ...,
        full_only: bool = ..., force_miss: bool = ..., why: Cause = ...,
    ) -> Decision[Hit]:  # fmt: skip
        """Find the usable prefix of a key; recency moves, a node may be cut."""

    def insert(self, state: State, key: bytes, namespace: bytes, brought: Slice, /) -> Decision[Inserted]:
        """Give the tree a slice; refuses before the first event, or takes all of it."""

    def go_on(
        self, state: State, request: Request, key: bytes, ended: Inserted, why: Cause, /
    ) -> Decision[Node]:
        """The node that a request goes on from after its insert, the end of its protected path (R72, R149)."""

    def segment(self, state: State, node: Node, /) -> Segment:
        """What locking a node would hold; raises Refusal where the route cannot lock it."""


class EvictionRules(Protocol):
    """How a route's tree gives pages back."""

    def evict(self, state: State, full_pages: int, swa_pages: int, /) -> Decision[Gain]:
        """Ask the tree for free pages; the answer is what the pools gained (R105)."""

    def flush(self, state: State, /) -> Decision[int]:
        """Empty the tree of an idle rank; the number of nodes removed (R33)."""


class Route(NamedTuple):
    """One row of the table."""

    tree: TreeRules
    eviction: EvictionRules


ROUTES: dict[str, Route] = {
    "unified": Route(decide_unified, decide_eviction),
    "radix": Route(decide_unified, decide_eviction),
    "swa_chunk": Route(decide_chunk, decide_eviction),
    "chunk": Route(decide_chunk, decide_eviction),
    "legacy": Route(decide_legacy, decide_legacy),
}


WITH_HOST_TIER = Route(decide_host_tree, decide_host_tree)
"""What the rows that may have a host tier follow where they have one."""


def route_of(opened: Opened) -> Route:
    """The row of the table that a rank follows."""
    return WITH_HOST_TIER if opened.config.host_pages else ROUTES[opened.route]


def rules_of(state: State) -> TreeRules:
    """The tree rules of the state's route."""
    return WITH_HOST_TIER.tree if state.config.host_pages else ROUTES[state.opened.route].tree
