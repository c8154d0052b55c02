"""Each law of recurrent states holds between the commands of a lawful cache, and fails on a state that was spoiled for it."""

import numpy as np
import pytest

from radixledger.cache.evolve import begin, evolve
from radixledger.cache.laws import of_state_events as laws
from radixledger.cache.laws import of_states as states
from radixledger.cache.laws.event_law import EventLaw
from radixledger.cache.laws.law import Law
from radixledger.cache.laws.of_events import EVENT_LAWS, EventLaws
from radixledger.cache.state import Node, State
from radixledger.journal.accounts import FREE, request_account, tree_account
from radixledger.journal.causes import Operation, Site, cause
from radixledger.journal.events import (
    Admitted,
    AnyEvent,
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
from radixledger.journal.units import NO_PAGES, TO_ROOT, NodeId, Pages, RequestId, TokenCount

from .driven import STATE_SHAPES, Driven
from .spoiled import Spoil, check_that_it_fails, name
from .state_rank import StateRank


def quiet_state() -> State:
    """Page 128, tracked at every second page: a request that goes on from node 3, and one that tracks after 2 pages."""
    rank = StateRank(page=128, interval=256, slots=12)
    rank.serve("ab")
    rank.serve("xy")
    rank.admit("abcd")
    request = rank.admit("mnop").request
    rank.grow(request, 3)
    return rank.state


def running(state: State) -> int:
    """The row of the one that goes on from a node's state."""
    return next(each.row for each in state.requests.values() if each.source)


def other(state: State) -> int:
    return next(each.row for each in state.requests.values() if not each.source)


def leaf(state: State) -> int:
    return next(node.id for node in state.nodes.values() if node.recurrent and not node.anchors)


def two_states(state: State) -> None:
    state.nodes[leaf(state)].recurrent += b"\1\0\0\0"  # type: ignore[assignment]  # spoiled


def a_child_below_a_state(state: State) -> None:
    node = state.nodes[leaf(state)]
    node.children = {b"": node}


def the_root_has_a_state(state: State) -> None:
    state.root.recurrent = state.nodes[leaf(state)].recurrent


def a_slot_too_few(state: State) -> None:
    state.rows.states[running(state), 2] = 0


def a_boundary_that_was_not_reached(state: State) -> None:
    state.rows.tracked[other(state), 1] = 512


def a_boundary_within_an_interval(state: State) -> None:
    state.rows.tracked[other(state), 0] = 128


def a_boundary_twice(state: State) -> None:
    state.rows.tracked[other(state)] = 256


def a_source_that_was_given_away(state: State) -> None:
    request = next(each for each in state.requests.values() if each.source)
    state.recurrent.move(
        request.source, int(state.recurrent.account[int(request.source[0])]), FREE, state.seq
    )


def a_source_of_nobody(state: State) -> None:
    next(each for each in state.requests.values() if each.source).node = state.nodes[leaf(state)].id


def a_forgotten_victim(state: State) -> None:
    state.state_order.clear()


def a_victim_twice(state: State) -> None:
    state.state_order.append(state.state_order[0])


def a_state_of_tomorrow(state: State) -> None:
    state.nodes[leaf(state)].recurrent_tick = state.clock + 1


def recency_without_a_state(state: State) -> None:
    node = state.nodes[leaf(state)]
    node.queued, node.recurrent = 0, type(node.recurrent)(b"")
    state.state_order.clear()


SPOILS: list[tuple[Law, Spoil]] = [
    (states.a_state_stands_on_a_leaf, two_states),
    (states.a_state_stands_on_a_leaf, a_child_below_a_state),
    (states.a_state_stands_on_a_leaf, the_root_has_a_state),
    (states.a_live_request_has_its_slots, a_slot_too_few),
    (states.what_is_tracked_is_a_boundary_that_was_reached, a_boundary_that_was_not_reached),
    (states.what_is_tracked_is_a_boundary_that_was_reached, a_boundary_within_an_interval),
    (states.what_is_tracked_is_a_boundary_that_was_reached, a_boundary_twice),
    (states.a_state_that_is_yet_to_be_copied_stays, a_source_that_was_given_away),
    (states.a_state_that_is_yet_to_be_copied_stays, a_source_of_nobody),
    (states.protected_states_equal_a_recount, lambda state: setattr(state, "recurrent_protected", 0)),
    (states.every_state_victim_is_in_its_order, a_forgotten_victim),
    (states.every_state_victim_is_in_its_order, a_victim_twice),
    (states.every_state_victim_is_in_its_order, a_state_of_tomorrow),
    (states.every_state_victim_is_in_its_order, recency_without_a_state),
]


@pytest.mark.parametrize(("broken", "spoil"), SPOILS, ids=name)
def test_a_law_of_states_fails_on_a_state_that_was_spoiled_for_it(broken: Law, spoil: Spoil) -> None:
    """J28: each law is shown able to fail."""
    check_that_it_fails(broken, spoil, quiet_state())


def told() -> tuple[StateRank, int]:
    """A lawful rank: a request that has passed two boundaries, behind a node with a state; its number."""
    rank = StateRank(page=128, interval=256, slots=12)
    rank.serve("ab")
    rank.serve("xy")
    request = rank.admit("abcdefg").request
    rank.grow(request, 4)
    return rank, request


def slot(number: int) -> Pages:
    return Pages(number.to_bytes(4, "little"))


def wrong_events(rank: StateRank, request: int) -> dict[EventLaw, AnyEvent]:
    """For each law of an event one that breaks it, in the state that the rank is in."""
    state, slots = rank.state, rank.slots_of(request)
    node, bare = rank.node("ab"), rank.node("xy")
    number, ids = RequestId(request), np.array([request], "<i8").tobytes()
    tokens = TokenCount(256)
    giver = request_account(number)
    empty = Node(NodeId(99), state.root, b"", bare.full, NO_PAGES, b"")
    state.nodes[99] = empty
    return {
        laws.a_match_ends_where_a_state_stands: Matched("r", number, tokens, tokens, tokens, empty.id, 0),
        laws.an_admission_goes_on_from_a_state: Admitted(
            RequestId(77), "r77", TokenCount(300), tokens, empty.id
        ),
        laws.a_lock_tells_whether_it_holds_a_state: Locked(node.id, TO_ROOT, node.id.to_bytes(8, "little")),
        laws.a_request_takes_all_of_its_slots: StateTaken(number, slot(9)),
        laws.what_is_copied_is_what_was_hit: StateCopied(number, bare.id, bare.recurrent, slot(slots[0])),
        laws.what_is_tracked_was_just_passed: StateTracked(ids, slot(slots[1]), slot(512 + 128)),
        laws.a_replaced_slot_holds_a_boundary: StateReplaced(number, slot(slots[0]), slot(9)),
        laws.a_donated_state_is_the_one_after_its_node: StateDonated(empty.id, giver, slot(slots[0])),
        laws.a_node_gives_its_state_up_for_its_children: StateFreed(
            tree_account(bare.id), bare.recurrent, bare.id
        ),
        laws.who_goes_for_a_slot_was_used_longest_ago: Removed(
            node.id,
            NodeId(0),
            node.full,
            NO_PAGES,
            FREE,
            cause(Operation.EVICT, Site.STATE_LEAF),
            node.recurrent,
        ),
    }


def test_each_law_of_an_event_of_states_is_broken_by_one() -> None:
    """J28: the laws that a rank with a watch asks before it records, and `verify` before it folds."""
    rank, request = told()
    asked = {each for of_kind in EVENT_LAWS.values() for each in of_kind if each.__module__ == laws.__name__}
    wrong = wrong_events(rank, request)
    assert set(wrong) == asked
    for of_event, event in wrong.items():
        assert of_event in EVENT_LAWS[type(event)]
        assert [finding.law for finding in of_event(rank.state, event)] == [of_event.__name__]


def test_a_watched_rank_with_states_serves_as_any_other() -> None:
    """No law of an event is broken by a lawful decider."""
    for shape in STATE_SHAPES:
        driven = Driven(3, shape)
        state, asked = begin(driven.journal.opened), EventLaws()
        for frame in driven.run(200).drain().journal.frames[1:]:
            for at, event in enumerate(frame.events):
                assert list(asked.broken_by(state, frame.events, at)) == []
                evolve(state, event)
