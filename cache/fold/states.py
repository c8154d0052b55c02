"""How events change state slots of a recurrent model: who has them, what a row runs on and tracks, what a node keeps.

Part of `evolve`, with its rule: total, and what does not add up is noted.
"""

import numpy as np

from radixledger.cache.fold.pages import move, note
from radixledger.cache.state import Node, State
from radixledger.cache.tree import offer_state
from radixledger.cache.tree_sum import state_value
from radixledger.journal.accounts import FREE, Kind, Pool, request_account, tree_account
from radixledger.journal.events import (
    StateCopied,
    StateDonated,
    StateFreed,
    StateReplaced,
    StateTaken,
    StateTracked,
)
from radixledger.journal.moves import ids_of, pages_of
from radixledger.journal.units import NO_PAGES, ROOT, UNBOUND, Pages


def taken(state: State, event: StateTaken) -> None:
    move(state, state.recurrent, event.slots, FREE, request_account(event.request))
    if event.request == UNBOUND:
        return
    row, slots = state.requests[event.request].row, pages_of(event.slots)
    if state.rows.states[row].any():
        note(state, "a_request_takes_its_state_slots_once", f"request {event.request}", Pool.RECURRENT)
    state.rows.states[row, : slots.size] = slots
    state.rows.tracked[row] = 0


def copied(state: State, event: StateCopied) -> None:
    node, request = state.nodes[event.node], state.requests[event.request]
    running = int(state.rows.states[request.row, 0])
    if node.recurrent != event.source or pages_of(event.target).tolist() != [running]:
        text = f"request {event.request} runs on slot {running}; node {event.node}"
        note(state, "a_copied_state_is_the_nodes", text, Pool.RECURRENT, event.source)
    request.source = event.source


def tracked(state: State, event: StateTracked) -> None:
    rows = state.rows
    for request, slot, end in zip(
        ids_of(event.requests).tolist(),
        pages_of(event.slots).tolist(),
        pages_of(event.ends).tolist(),
        strict=True,
    ):
        places = np.flatnonzero(rows.states[state.requests[request].row, 1:] == slot)
        if places.size != 1:
            note(
                state, "a_state_is_tracked_in_a_track_slot", f"request {request}, slot {slot}", Pool.RECURRENT
            )
        rows.tracked[state.requests[request].row, places] = end


def replaced(state: State, event: StateReplaced) -> None:
    row = state.requests[event.request].row
    move(state, state.recurrent, event.fresh, FREE, request_account(event.request))
    (former,), (fresh,) = pages_of(event.former).tolist(), pages_of(event.fresh).tolist()
    place = state.rows.states[row, 1:] == former
    if not place.any():
        note(
            state,
            "a_state_is_tracked_in_a_track_slot",
            f"request {event.request}, slot {former}",
            Pool.RECURRENT,
        )
    state.rows.states[row, 1:][place] = fresh
    state.rows.tracked[row, place] = 0


def donated(state: State, event: StateDonated) -> None:
    node = state.nodes[event.node]
    if node.recurrent or node.children or node.parent is None:
        text = f"node {event.node} has a state or children, or is the root"
        note(state, "a_state_goes_to_a_leaf_without_one", text, Pool.RECURRENT, event.slot)
    move(state, state.recurrent, event.slot, event.giver, tree_account(event.node))
    _forget(state, event.giver, event.slot)
    _set(state, node, event.slot, node.tick)
    if node.anchors > 0:
        state.recurrent_protected += 1
    offer_state(state, node)


def freed(state: State, event: StateFreed) -> None:
    move(state, state.recurrent, event.slots, event.giver, FREE)
    if event.node == ROOT:
        _forget(state, event.giver, event.slots)
        return
    node = state.nodes[event.node]
    if node.recurrent != event.slots:
        text = f"node {event.node} has slot {pages_of(node.recurrent).tolist()}"
        note(state, "a_node_gives_up_its_own_state", text, Pool.RECURRENT, event.slots)
    if node.anchors > 0:
        note(state, "a_locked_state_is_kept", f"node {event.node}", Pool.RECURRENT, event.slots)
    drop(state, node)


def drop(state: State, node: Node) -> None:
    """The node has no state any more."""
    if node.recurrent and node.anchors > 0:
        state.recurrent_protected -= 1
    _set(state, node, NO_PAGES, 0)


def _set(state: State, node: Node, slot: Pages, tick: int) -> None:
    before = state_value(node)
    node.recurrent, node.recurrent_tick = slot, tick
    state.tree_digest += node.weight * (state_value(node) - before)


def _forget(state: State, giver: int, slots: Pages) -> None:
    """A row does not name slots any more that its request gave away."""
    request = state.requests.get(giver >> 3) if giver & 7 == Kind.REQUEST else None
    if request is not None:
        gone = np.isin(state.rows.states[request.row], pages_of(slots))
        state.rows.states[request.row, gone] = 0
        state.rows.tracked[request.row, gone[1:]] = 0
