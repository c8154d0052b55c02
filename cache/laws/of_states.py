"""The laws of recurrent states: where they stand, who runs on which, what is tracked, who goes next.

That each slot has one owner is a law of pages, as for every pool.
"""

from collections import Counter
from collections.abc import Iterator

from radixledger.cache.laws.law import Breach, law
from radixledger.cache.laws.of_the_tree import below_the_root
from radixledger.cache.state import IN_STATE_ORDER, State
from radixledger.journal.accounts import Pool, tree_account
from radixledger.journal.moves import pages_of
from radixledger.journal.units import NodeId


@law
def a_state_stands_on_a_leaf(state: State) -> Iterator[Breach]:
    """A node has one state or none; inner nodes have none, but while a lock keeps it."""
    for node in state.nodes.values():
        if not node.recurrent:
            continue
        slots = pages_of(node.recurrent)
        if slots.size > 1 or (slots.size and node.parent is None):
            yield Breach(f"node {node.id} has {slots.size} states", Pool.RECURRENT, node.recurrent)
        if slots.size and node.children and node.anchors <= 0:
            yield Breach(f"node {node.id} has a state and children", Pool.RECURRENT, node.recurrent)


@law
def a_live_request_has_its_slots(state: State) -> Iterator[Breach]:
    """One state slot to run on and, where states are tracked, two more; none where there are no states."""
    expected = state.states_each
    for request in state.requests.values():
        slots = state.rows.states[request.row].tolist()
        if [slot > 0 for slot in slots] != [place < expected for place in range(len(slots))]:
            yield Breach(
                f"request {request.id} has state slots {slots}, {expected} are its own", Pool.RECURRENT
            )


@law
def what_is_tracked_is_a_boundary_that_was_reached(state: State) -> Iterator[Breach]:
    """A track slot holds a state after a multiple of the interval, within the request's tokens, each another one."""
    interval = state.config.track_interval
    for request in state.requests.values():
        row = request.row
        ends, length = [end for end in state.rows.tracked[row].tolist() if end], int(state.rows.length[row])
        lawful = all(interval and end % interval == 0 and request.prefix < end <= length for end in ends)
        if not lawful or len(set(ends)) != len(ends):
            yield Breach(
                f"request {request.id} of {length} tokens tracks its states after {ends}", Pool.RECURRENT
            )


@law
def a_state_that_is_yet_to_be_copied_stays(state: State) -> Iterator[Breach]:
    """Until a hit's first step the state it goes on from is the locked node's (copy on write)."""
    for request in state.requests.values():
        if request.source:
            node = state.nodes.get(request.node)
            slot = int.from_bytes(request.source, "little")
            held = state.recurrent.account_at[slot] == tree_account(NodeId(request.node))
            if node is None or node.recurrent != request.source or node.anchors <= 0 or not held:
                text = f"request {request.id} is to copy slot {slot} of node {request.node}"
                yield Breach(text, Pool.RECURRENT, request.source)


@law
def protected_states_equal_a_recount(state: State) -> Iterator[Breach]:
    """Protected are the states of locked nodes (R118)."""
    count = sum(bool(node.recurrent) and node.anchors > 0 for node in below_the_root(state))
    if count != state.recurrent_protected:
        text = f"{state.recurrent_protected} states are counted as protected, there are {count}"
        yield Breach(text, Pool.RECURRENT, expected=count, found=state.recurrent_protected)


@law
def every_state_victim_is_in_its_order(state: State) -> Iterator[Breach]:
    """A leaf with a state that nothing holds waits once, at its tick or an older one (R67, R69)."""
    waiting = Counter(id(node) for _, _, node in state.state_order)
    ticks = {id(node): tick for tick, _, node in state.state_order}
    for node in below_the_root(state):
        count = waiting[id(node)]
        candidate = bool(node.recurrent) and not node.children and not node.holds
        if count > 1 or count < candidate or bool(node.queued & IN_STATE_ORDER) != bool(count):
            yield Breach(f"node {node.id} waits {count} times in the order of states, candidate: {candidate}")
        elif count and candidate and ticks[id(node)] > node.recurrent_tick:
            yield Breach(
                f"node {node.id} waits at tick {ticks[id(node)]}, its state has {node.recurrent_tick}"
            )
        if node.recurrent_tick > state.clock or (node.recurrent_tick and not node.recurrent):
            yield Breach(f"node {node.id} has state tick {node.recurrent_tick}, the clock is {state.clock}")


LAWS = (
    a_state_stands_on_a_leaf,
    a_live_request_has_its_slots,
    what_is_tracked_is_a_boundary_that_was_reached,
    a_state_that_is_yet_to_be_copied_stays,
    protected_states_equal_a_recount,
    every_state_victim_is_in_its_order,
)
