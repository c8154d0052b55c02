"""Decisions of the chunk routes: there is no tree, so nothing is found, kept or given to anybody.

A request owns every page of its row from its first chunk to its end; with SWA it gives back what lies below its window.
What its life is stands in `decide.requests`, as on every route; here is what a tree that never grows answers. Rule: the
root is the only node, and no decision here moves a page.
"""

from radixledger.cache.components.component import Segment
from radixledger.cache.decide.pages import Decision
from radixledger.cache.match import Hit, Walk, hit_of
from radixledger.cache.refusals import Refusal
from radixledger.cache.slices import Inserted, Slice
from radixledger.cache.state import Node, Request, State
from radixledger.journal.causes import Cause, Operation, cause
from radixledger.journal.events import Matched, Stop
from radixledger.journal.units import ROOT, UNBOUND, RequestId, TokenCount

_MATCH = cause(Operation.MATCH)


def look(state: State, key: bytes, namespace: bytes, *, full_only: bool = False) -> Walk:
    """Nothing of any key."""
    return Walk(state.root, 0, 0, 0, Stop.NO_CHILD if len(key) >= state.stride else Stop.END_OF_KEY)


def match(
    state: State, key: bytes, namespace: bytes = b"", *, rid: str = "", request: RequestId = UNBOUND,
    full_only: bool = False, force_miss: bool = False, why: Cause = _MATCH,
) -> Decision[Hit]:  # fmt: skip
    """Nothing is found; that it was asked for is told, so that hit rates of routes can be compared."""
    found = look(state, key, namespace)
    stop = Stop.FORCED_MISS if force_miss else found.stop
    asked = TokenCount(len(key) // state.stride * state.page_size)
    yield Matched(rid, request, asked, TokenCount(0), TokenCount(0), ROOT, stop, namespace, why)
    return hit_of(found._replace(stop=stop), state.root, state.page_size)


def insert(state: State, key: bytes, namespace: bytes, brought: Slice) -> Decision[Inserted]:
    """Refused: whoever brings pages keeps them (R63)."""
    yield from ()
    raise _no_tree(state)


def go_on(state: State, request: Request, key: bytes, ended: Inserted, why: Cause) -> Decision[Node]:
    """Refused: no request goes on from an insert."""
    yield from ()
    raise _no_tree(state)


def segment(state: State, node: Node) -> Segment:
    """Refused: the root, the only node, is never locked."""
    raise _no_tree(state)


def _no_tree(state: State) -> Refusal:
    return Refusal(f"route {state.opened.route!r} has no tree: pages stay with whoever holds them")
