"""Who gives the tree a state of a recurrent model: the slot that a request ran on, or one in which it tracked a boundary."""

import numpy as np
import pytest

from radixledger.journal.accounts import Kind, request_account
from radixledger.journal.causes import label
from radixledger.journal.events import (
    Removed,
    StateCopied,
    StateDonated,
    StateFreed,
    StateReplaced,
    StateTracked,
)
from radixledger.journal.moves import ids_of, pages_of
from radixledger.journal.units import UNBOUND

from .state_rank import BOTH, StateRank, base, buffered, names

NOBODY = request_account(UNBOUND)


# -- donations -------------------------------------------------------------------------------------------------------


def test_a_finished_request_donates_the_slot_it_ran_on_and_nothing_is_copied() -> None:
    """R211: base mode."""
    rank = base()
    request = rank.admit("abcd").request
    (running,) = rank.slots_of(request)
    rank.grow(request, 4)
    assert rank.finish(request, "abcd") == 4
    assert rank.states() == {rank.node("abcd").id: running}
    assert [names([event]) for event in rank.of(StateDonated)] == [["StateDonated"]]
    assert not rank.of(StateCopied) + rank.of(StateFreed)
    rank.check()


def test_an_unfinished_request_of_base_mode_donates_nothing() -> None:
    rank = base()
    request = rank.admit("abcdefgh").request
    rank.grow(request, 4)
    assert rank.unfinished(request, "abcd") == 4
    assert rank.states() == {}
    assert not rank.node("abcd").recurrent
    rank.grow(request, 4)
    assert rank.finish(request, "abcdefgh") == 8
    assert list(rank.states()) == [rank.node("abcdefgh").id]
    rank.check()


def test_what_is_cached_to_its_last_token_gets_its_state_at_the_end() -> None:
    """The whole prompt was cached before the request finished: the state still goes to the node where it ends."""
    rank = base()
    request = rank.admit("abcd").request
    rank.grow(request, 4)
    rank.unfinished(request, "abcd")
    assert rank.finish(request, "abcd") == 4
    assert rank.hit("abcde") == 4
    rank.check()


def test_a_state_behind_the_end_of_the_key_is_not_the_nodes() -> None:
    """A request that looked ahead runs on a state after more tokens than it caches: its slot is freed."""
    rank = base()
    request = rank.admit("abcd").request
    rank.grow(request, 5)
    assert rank.finish(request, "abcd") == 4
    assert rank.states() == {}
    assert [label(event.cause) for event in rank.of(StateFreed)] == ["finish/tail"]
    rank.check()


@BOTH
def test_a_node_that_has_a_state_takes_no_second_one(make: type[StateRank]) -> None:
    """Two requests with one prompt: the second one's slots are all freed."""
    rank = make()
    requests = [rank.admit("abcd").request for _ in range(2)]
    for request in requests:
        rank.grow(request, 4)
    for request in requests:
        assert rank.finish(request, "abcd") == 4
    rejected = [event for event in rank.of(StateFreed) if label(event.cause) == "finish/rejected"]
    assert len(rejected) == len(rank.states()) == 1
    assert rank.state.recurrent.held[Kind.REQUEST] == 0
    rank.check()


def test_an_inner_node_takes_no_state() -> None:
    rank = base()
    rank.serve("abcdef")
    request = rank.admit("abcd").request
    rank.grow(request, 4)
    assert rank.finish(request, "abcd") == 4
    assert [event.node for event in rank.of(StateDonated)] == [rank.node("abcdef").id]
    assert label(rank.of(StateFreed)[-1].cause) == "finish/rejected"
    rank.check()


# -- track slots -----------------------------------------------------------------------------------------------------


def test_track_slots_take_turns_and_the_boundary_slot_is_donated() -> None:
    """R211: the last boundary that was passed is cached; running and the other track slot are freed."""
    rank = buffered()
    request = rank.admit("abcdefghi").request
    running, one, other = rank.slots_of(request)
    told = []
    for letters in (1, 1, 2.5, 3):
        rank.grow(request, letters)
        told.append(rank.tracked(request))
    assert told == [[0, 0], [2, 0], [2, 4], [6, 4]]
    tracked = [
        (pages_of(event.slots).tolist(), pages_of(event.ends).tolist()) for event in rank.of(StateTracked)
    ]
    assert tracked == [([one], [256]), ([other], [512]), ([one], [768])]
    assert rank.finish(request, "abcdefg") == 6
    assert rank.states() == {rank.node("abcdef").id: one}
    assert pages_of(rank.of(StateFreed)[-1].slots).tolist() == [running, other]
    assert rank.hit("abcdefgh") == 6
    rank.check()


def test_a_chunk_over_many_boundaries_keeps_the_last_two() -> None:
    rank = buffered()
    request = rank.admit("abcdefghijk").request
    rank.grow(request, 9)
    assert rank.tracked(request) == [6, 8]
    rank.grow(request, 1)
    assert rank.tracked(request) == [10, 8]
    rank.check()


def test_a_key_that_ends_before_the_last_boundary_is_cached_up_to_the_one_before() -> None:
    """A request that looked ahead over a boundary: two track slots, so that the state before it is still there."""
    rank = buffered()
    request = rank.admit("abcde").request
    rank.grow(request, 2)
    rank.grow(request, 2)
    assert rank.tracked(request) == [2, 4]
    assert rank.finish(request, "abc") == 2
    assert rank.hit("abcd") == 2
    rank.check()


def test_nothing_is_cached_before_the_first_boundary_and_nothing_is_lost() -> None:
    """R150: the cap is 0, so no event is written and the row keeps all of its pages."""
    rank = buffered()
    request = rank.admit("abcd").request
    rank.grow(request, 1.5)
    before, digest = rank.journal.count, rank.cache.digest()
    assert rank.unfinished(request, "a") == 0
    assert (rank.journal.count, rank.cache.digest()) == (before, digest)
    assert rank.state.full.held[Kind.REQUEST] == 2
    rank.grow(request, 1)
    assert rank.unfinished(request, "ab") == 2
    assert rank.state.full.held[Kind.TREE] == 2
    rank.check()


def test_a_request_that_ends_before_the_first_boundary_leaves_nothing_in_the_tree() -> None:
    """R150."""
    rank = buffered()
    request = rank.admit("ab").request
    rank.grow(request, 1)
    assert rank.finish(request, "a") == 0
    assert (len(rank.state.nodes), rank.state.full.available) == (1, rank.state.full.capacity)
    rank.check()


def test_a_running_request_has_its_replacement_before_it_gives_a_slot_away() -> None:
    """R211: secured first, then donated; the next boundary is tracked in the fresh one."""
    rank = buffered()
    request = rank.admit("abcdef").request
    running, one, other = rank.slots_of(request)
    rank.grow(request, 3)
    before = rank.journal.count
    assert rank.unfinished(request, "abc") == 2
    assert names(rank.since(before))[:3] == ["StateReplaced", "Transferred", "StateDonated"]
    replaced = rank.of(StateReplaced)[-1]
    fresh = int(pages_of(replaced.fresh)[0])
    assert pages_of(replaced.former).tolist() == [one]
    assert rank.slots_of(request) == [running, fresh, other]
    assert rank.states() == {rank.node("ab").id: one}
    rank.grow(request, 1)
    assert rank.tracked(request) == [4, 0]
    rank.check()


def test_without_a_replacement_nothing_is_donated_and_nothing_changes() -> None:
    """R150: three slots are the request's, and nobody else has one to give."""
    rank = buffered(slots=3)
    request = rank.admit("abcd").request
    rank.grow(request, 2)
    before, digest = rank.journal.count, rank.cache.digest()
    assert rank.unfinished(request, "ab") == 0
    assert (rank.journal.count, rank.cache.digest()) == (before, digest)
    assert rank.finish(request, "ab") == 2
    assert rank.hit("abc") == 2
    rank.check()


def test_a_replacement_is_made_by_evicting_the_oldest_state() -> None:
    rank = buffered(slots=5)
    rank.serve("xy")
    rank.serve("vw")
    request = rank.admit("abcd").request
    rank.grow(request, 2)
    assert rank.unfinished(request, "ab") == 2
    (removed,) = rank.of(Removed)
    assert (label(removed.cause), pages_of(removed.full).size) == ("unfinished/state_leaf", 2)
    assert (rank.hit("xyz"), rank.hit("vwz"), rank.hit("abz")) == (0, 2, 2)
    rank.check()


def test_a_rejected_slot_of_a_running_request_is_freed_and_its_replacement_stays() -> None:
    rank = buffered()
    requests = [rank.admit("abcd").request for _ in range(2)]
    for request in requests:
        rank.grow(request, 2)
        assert rank.unfinished(request, "ab") == 2
    assert [label(event.cause) for event in rank.of(StateFreed)] == ["unfinished/rejected"]
    assert [len(rank.slots_of(request)) for request in requests] == [3, 3]
    assert len(rank.states()) == 1
    rank.check()


@pytest.mark.parametrize("order", [1, -1])
def test_where_a_state_is_tracked_does_not_depend_on_who_else_is_in_the_batch(order: int) -> None:
    """B72: two requests of other lengths in one step, in either order, and alone: the same boundaries."""
    alone = buffered()
    request = alone.admit("abcdefghijkl").request
    alone.grow(request, 5)
    both = buffered()
    requests = [both.admit("xyzxyz").request, both.admit("abcdefghijkl").request]
    grown = np.array([2.5 * 128, 5 * 128], np.int32)
    both.cache.extend(np.array(requests[::order]), grown[::order].copy())
    assert both.tracked(requests[1]) == alone.tracked(request) == [2, 4]
    assert both.tracked(requests[0]) == [2, 0]
    (event,) = both.of(StateTracked)
    told = dict.fromkeys(ids_of(event.requests).tolist())
    assert list(told) == requests[::order]
    both.check()


def test_a_boundary_is_counted_in_intervals_and_never_in_pages() -> None:
    """B75: an interval is several pages; the state of 512 tokens is the second one, whatever page 512 lies in."""
    rank = buffered(page=128, interval=512, slots=6)
    request = rank.admit("abcdefghijkl").request
    rank.grow(request, 3)
    assert rank.of(StateTracked) == []
    rank.grow(request, 1)
    rank.grow(request, 4)
    assert [pages_of(event.ends).tolist() for event in rank.of(StateTracked)] == [[512], [1024]]
    assert rank.finish(request, "abcdefgh") == 8
    rank.check()
