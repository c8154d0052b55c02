"""Decisions about locks: shield a path, release it with its receipt.

Which segment a lock holds is the route's rule. A decider is a generator, see `decide.pages`. Rule: a receipt that is
not held, or that a live request holds, is refused before the first yield.
"""

from radixledger.cache import locks
from radixledger.cache.decide.pages import Decision
from radixledger.cache.refusals import Refusal
from radixledger.cache.routes import rules_of
from radixledger.cache.state import Node, Receipt, State
from radixledger.journal.causes import Cause, Operation, cause
from radixledger.journal.events import Locked, Unlocked
from radixledger.journal.units import ROOT, TO_ROOT, UNBOUND, NodeId, RequestId

_LOCK, _UNLOCK = cause(Operation.LOCK), cause(Operation.UNLOCK)


def lock(state: State, node: NodeId) -> Decision[Receipt]:
    """Shield a path: FULL to the root, SWA over its last window (R111). A live request has a lock of its own."""
    if node not in state.nodes:
        raise Refusal(f"node {node} is not in the tree")
    if node == ROOT:
        return Receipt(ROOT, TO_ROOT)
    path = state.nodes[node]
    for component in state.components:
        yield from component.narrowed(state, path, _LOCK)
    event = locked_by(state, path, UNBOUND, _LOCK)
    yield event
    return locks.receipt_of(event)


def lock_path(state: State, node: Node, request: RequestId, why: Cause) -> Decision[Locked]:
    """Shield the path to a node for a request; it may be cut first, so that no more is held than must be."""
    for component in state.components:
        yield from component.narrowed(state, node, why)
    event = locked_by(state, node, request, why)
    yield event
    return event


def locked_by(state: State, node: Node, request: RequestId, why: Cause) -> Locked:
    """The lock event of a path for a request."""
    boundary, marked, skipped = rules_of(state).segment(state, node)
    return Locked(node.id, boundary, skipped, marked, request, why)


def unlock(state: State, receipt: Receipt) -> Decision[None]:
    """Release exactly what the receipt holds; one that is not held, or that a live request holds, is refused (R122)."""
    if receipt.node != ROOT:
        check_receipt(state, receipt)
        yield Unlocked(receipt.node, receipt.boundary, cause=_UNLOCK)
        for component in state.components:
            yield from component.unlocked(state, state.nodes[receipt.node], UNBOUND, _UNLOCK)


def released(state: State, receipt: Receipt, request: RequestId, why: Cause) -> Decision[None]:
    """Give a receipt back, and let each component know."""
    yield Unlocked(receipt.node, receipt.boundary, request, why)
    for component in state.components:
        yield from component.unlocked(state, state.nodes[receipt.node], request, why)


def check_receipt(state: State, receipt: Receipt) -> None:
    """Refuse a receipt that is not held, whichever part of it is wrong, or that a live request holds."""
    node = state.nodes.get(receipt.node)
    owners = [
        live.rid for live in state.requests.values() if live.receipt and live.receipt.node == receipt.node
    ]
    if state.transfers:
        owners += [
            f"load {load.id}"
            for load in state.transfers.values()
            if load.receipt and load.receipt.node == receipt.node
        ]
    held = node is not None and node.anchors > len(owners) and (state.windowed or not receipt.boundary)
    if node is not None and held:
        for component in state.components:
            held = held and component.is_held(node, receipt)
    if not held:
        raise Refusal(
            f"the receipt of node {receipt.node}, boundary {receipt.boundary}, is not held"
            + (f", but by {', '.join(owners[:8])}" if owners else "")
        )
