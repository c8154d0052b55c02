"""The laws of events of recurrent states: who goes on from what, what is tracked where, what a node is given.

Part of `laws.of_events`. That a slot is given by whoever has it is noticed by `evolve`.
"""

from collections.abc import Iterator, Sequence

from radixledger.cache.laws.event_law import LAWFUL, event_law
from radixledger.cache.laws.law import Breach
from radixledger.cache.state import State
from radixledger.journal.accounts import Kind, Pool, tree_account
from radixledger.journal.causes import Site
from radixledger.journal.events import (
    Admitted,
    Locked,
    Matched,
    Removed,
    StateCopied,
    StateDonated,
    StateFreed,
    StateReplaced,
    StateTaken,
    StateTracked,
)
from radixledger.journal.moves import ids_of, pages_of
from radixledger.journal.units import ROOT, UNBOUND, Pages


@event_law
def a_match_ends_where_a_state_stands(state: State, event: Matched) -> Sequence[Breach]:
    """A usable prefix ends with a node that has a state, or is empty (R71)."""
    asked = state.states_each and event.node != ROOT and not event.full_only
    if asked and not state.nodes[event.node].recurrent:
        return [Breach(f"node {event.node} has no state", Pool.RECURRENT)]
    return LAWFUL


@event_law
def an_admission_goes_on_from_a_state(state: State, event: Admitted) -> Sequence[Breach]:
    """A request begins at the root, or where a state stands."""
    if state.states_each and event.node != ROOT and not state.nodes[event.node].recurrent:
        return [Breach(f"node {event.node} has no state", Pool.RECURRENT)]
    return LAWFUL


@event_law
def a_lock_tells_whether_it_holds_a_state(state: State, event: Locked) -> Sequence[Breach]:
    """A node without a state is passed over, and told; no other node is (R112)."""
    if state.states_each:
        bare = [] if state.nodes[event.node].recurrent else [event.node]
        told = ids_of(event.skipped).tolist()
        if told != bare:
            return [Breach(f"nodes without a state {bare} were passed over, {told} are told", Pool.RECURRENT)]
    return LAWFUL


@event_law
def a_request_takes_all_of_its_slots(state: State, event: StateTaken) -> Iterator[Breach]:
    """One to run on and, where states are tracked, two more, when it has none."""
    count = len(event.slots) >> 2
    if event.request != UNBOUND and count != state.states_each:
        text = f"request {event.request} takes {count} slots, {state.states_each} are its own"
        yield Breach(text, Pool.RECURRENT, event.slots, state.states_each, count)


@event_law
def what_is_copied_is_what_was_hit(state: State, event: StateCopied) -> Iterator[Breach]:
    """From the node that the request was admitted behind, which it has locked, to the slot that it runs on (B77)."""
    request, node = state.requests[event.request], state.nodes[event.node]
    running = int(state.rows.states[request.row, 0])
    if request.node != event.node or node.anchors <= 0 or node.recurrent != event.source:
        text = f"request {event.request} starts at node {request.node}; node {event.node} has "
        text += f"slot {pages_of(node.recurrent).tolist()} and {node.anchors} locks"
        yield Breach(text, Pool.RECURRENT, event.source)
    if pages_of(event.target).tolist() != [running]:
        yield Breach(f"request {event.request} runs on slot {running}", Pool.RECURRENT, event.target)


@event_law
def what_is_tracked_was_just_passed(state: State, event: StateTracked) -> Iterator[Breach]:
    """A multiple of the interval within the tokens of a request, and later than what it tracks already (B72, B75)."""
    interval = state.config.track_interval
    columns = (ids_of(event.requests), pages_of(event.slots), pages_of(event.ends))
    latest: dict[int, int] = {}
    for number, slot, end in zip(*(column.tolist() for column in columns), strict=True):
        row = state.requests[number].row
        before = latest.get(number, int(state.rows.tracked[row].max()))
        latest[number] = end
        if not interval or end % interval or not before < end <= int(state.rows.length[row]):
            text = f"request {number} tracks its state after {end} of {state.rows.length[row]} tokens, last {before}"
            yield Breach(text, Pool.RECURRENT, _slot(slot))
        if slot not in state.rows.states[row, 1:].tolist():
            yield Breach(f"slot {slot} is no track slot of request {number}", Pool.RECURRENT, _slot(slot))


@event_law
def a_replaced_slot_holds_a_boundary(state: State, event: StateReplaced) -> Iterator[Breach]:
    """What a running request is about to give away is one of its tracked states."""
    row = state.requests[event.request].row
    tracked = dict(zip(state.rows.states[row, 1:].tolist(), state.rows.tracked[row].tolist(), strict=True))
    (former,) = pages_of(event.former).tolist()
    if not tracked.get(former):
        yield Breach(f"slot {former} of request {event.request} tracks nothing", Pool.RECURRENT, event.former)


@event_law
def a_donated_state_is_the_one_after_its_node(state: State, event: StateDonated) -> Iterator[Breach]:
    """The tracked boundary, or all tokens of the request that ran on it, is where the node ends."""
    request = state.requests.get(event.giver >> 3) if event.giver & 7 == Kind.REQUEST else None
    if request is None:
        return
    rows, (slot,) = state.rows, pages_of(event.slot).tolist()
    ends = dict(zip(rows.states[request.row, 1:].tolist(), rows.tracked[request.row].tolist(), strict=True))
    ends[int(rows.states[request.row, 0])] = int(rows.length[request.row])
    end = state.nodes[event.node].end * state.page_size
    if slot in ends and ends[slot] != end:
        text = f"slot {slot} has the state after {ends[slot]} tokens, node {event.node} ends after {end}"
        yield Breach(text, Pool.RECURRENT, event.slot, end, ends[slot])


@event_law
def a_node_gives_its_state_up_for_its_children(state: State, event: StateFreed) -> Iterator[Breach]:
    """A node keeps its state while it is a leaf or locked; whatever else is freed is a request's."""
    if event.node == ROOT:
        if event.giver & 7 != Kind.REQUEST:
            yield Breach("slots of no request are freed, and no node is named", Pool.RECURRENT, event.slots)
        return
    node = state.nodes[event.node]
    if event.giver != tree_account(event.node) or not node.children or node.anchors > 0:
        text = f"node {node.id} has {len(node.children or ())} children and {node.anchors} locks"
        yield Breach(text, Pool.RECURRENT, event.slots)


@event_law
def who_goes_for_a_slot_was_used_longest_ago(state: State, event: Removed) -> Sequence[Breach]:
    """A shortage of slots takes the unlocked leaf whose state was used longest ago (R67, R102)."""
    if event.cause & 31 != Site.STATE_LEAF:
        return LAWFUL
    node = state.nodes[event.node]
    candidates = [
        (each.recurrent_tick, each.id)
        for each in state.nodes.values()
        if each.recurrent and not each.children and each.holds <= 0
    ]
    if (node.recurrent_tick, node.id) != min(candidates, default=(0, 0)):
        text = f"node {node.id}, used at {node.recurrent_tick}, went before node {min(candidates, default=(0, 0))[1]}"
        return [Breach(text, Pool.RECURRENT, event.recurrent)]
    return LAWFUL


def _slot(number: int) -> Pages:
    return Pages(number.to_bytes(4, "little", signed=True))
