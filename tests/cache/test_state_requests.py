"""Requests of a recurrent model: what a hit copies, what an admission takes, what strangers bring, and that slots add up."""

import numpy as np
import pytest

from radixledger.cache.refusals import DoubleFree, ForeignFree, PoolShort, Refusal, StateShort
from radixledger.cache.slices import Slice
from radixledger.journal.accounts import Kind, request_account
from radixledger.journal.causes import Operation, label
from radixledger.journal.events import (
    Removed,
    StateCopied,
    StateDonated,
    StateFreed,
    StateReplaced,
    StateTaken,
)
from radixledger.journal.moves import pages_of
from radixledger.journal.units import UNBOUND, Pages

from .driven import STATE_SHAPES, Driven
from .state_rank import BOTH, StateRank, base, buffered, names

NOBODY = request_account(UNBOUND)


# -- hits ------------------------------------------------------------------------------------------------------------


@BOTH
def test_a_hit_copies_the_state_to_a_slot_of_its_own_and_holds_the_nodes_until_then(
    make: type[StateRank],
) -> None:
    """R211: copy on write. The next hit finds the same state."""
    rank = make()
    rank.serve("abcd")
    ((node, source),) = rank.states().items()
    admission = rank.admit("abcdef")
    request = admission.request
    assert admission.hit.tokens == 4 * rank.unit
    (copied,) = rank.of(StateCopied)
    assert (copied.node, pages_of(copied.source).tolist()) == (node, [source])
    assert pages_of(copied.target).tolist() == rank.slots_of(request)[:1] != [source]
    assert rank.state.requests[request].source == copied.source
    assert rank.cache.evict_states(9) == (0, 0)
    assert rank.cache.evict(9, 0) == (0, 0)
    rank.grow(request)
    numbers = np.array([request]), np.array([4 * rank.unit], np.int32), np.array([5 * rank.unit], np.int32)
    rank.cache.step_began(1, *numbers)
    assert rank.state.requests[request].source == b""
    rank.cache.step_ended(1)
    assert rank.admit("abcdxy").hit.tokens == 4 * rank.unit
    rank.check()


def test_a_slot_that_is_taken_again_carries_nothing_of_its_former_owner() -> None:
    """B77: whoever hits is told what to copy, and whoever does not begins at zero, in the same slot."""
    rank = base(slots=2)
    first = rank.admit("abcdefgh").request
    (slot,) = rank.slots_of(first)
    rank.grow(first, 8)
    rank.finish(first, "abcdefgh")
    second = rank.admit("abcdefghi").request
    assert (rank.states(), len(rank.of(StateCopied))) == ({rank.node("abcdefgh").id: slot}, 1)
    (again,) = rank.slots_of(second)
    rank.cache.abort(second)
    third = rank.admit("xyz").request
    assert rank.slots_of(third) == [again]
    assert len(rank.of(StateCopied)) == 1
    assert names(rank.journal.frames[-1].events) == ["Matched", "Admitted", "StateTaken"]
    rank.check()


def test_a_miss_that_is_forced_copies_nothing() -> None:
    rank = base()
    rank.serve("abcd")
    admission = rank.admit("abcdef", force_miss=True)
    assert (admission.hit.tokens, rank.of(StateCopied)) == (0, [])
    rank.check()


# -- admission -------------------------------------------------------------------------------------------------------


def test_a_request_makes_room_for_its_slots_and_spares_the_state_that_it_goes_on_from() -> None:
    """R211: eviction on demand; a hit's own state is locked before any other goes."""
    rank = base(slots=3)
    for text in ("ab", "cd", "ef"):
        rank.serve(text)
    admission = rank.admit("abz")
    assert admission.hit.tokens == 2
    assert [label(event.cause) for event in rank.of(Removed)] == ["admit/state_leaf"]
    assert (rank.hit("abz"), rank.hit("cdz"), rank.hit("efz")) == (2, 0, 2)
    rank.check()


def test_a_request_for_which_there_are_no_slots_is_refused_and_holds_nothing() -> None:
    """B78: told with numbers, before anything is taken."""
    rank = buffered(slots=5)
    first = rank.admit("ab").request
    before = rank.cache.digest()
    with pytest.raises(StateShort) as short:
        rank.admit("cd")
    assert (short.value.needed, short.value.available, short.value.evictable) == (3, 2, 0)
    rank.state.seq -= 1  # type: ignore[assignment]  # the refusal that was told
    assert rank.cache.digest() == before
    rank.state.seq += 1  # type: ignore[assignment]
    rank.grow(first, 2)
    rank.finish(first, "ab")
    rank.admit("cd")
    rank.check()


def test_the_only_state_there_is_cannot_be_evicted_for_the_one_who_goes_on_from_it() -> None:
    rank = base(slots=1)
    rank.serve("ab")
    with pytest.raises(StateShort) as short:
        rank.admit("abz")
    assert (short.value.available, short.value.evictable) == (0, 0)
    assert rank.admit("abz", force_miss=True).hit.tokens == 0
    rank.check()


def test_a_request_that_cannot_grow_gives_its_slot_back_each_time() -> None:
    """B78: three slots, one cached, one running; five ticks without a page to compute in, then success."""
    rank = base(slots=3, full=8)
    rank.serve("ab")
    running = rank.admit("mnopqr").request
    rank.grow(running, 6)
    for _ in range(5):
        waiting = rank.admit("abc").request
        assert rank.state.recurrent.held[Kind.REQUEST] == 2
        with pytest.raises(PoolShort):
            rank.grow(waiting, 1)
        rank.cache.retract(waiting)
        assert rank.state.recurrent.held[Kind.REQUEST] == 1
        assert rank.state.recurrent.available == 1
    rank.cache.abort(running)
    assert rank.serve("abc") == 2
    assert rank.state.recurrent.available == 3 - len(rank.states()) == 2
    rank.check()


@pytest.mark.parametrize("prompt", ["abcdefghij", "abcdefgh"])
@pytest.mark.parametrize("retracted", [False, True])
def test_a_request_keeps_its_row_and_its_slots_through_all_of_its_chunks(
    prompt: str, retracted: bool
) -> None:
    """B80: chunks of 4, the last one whole or not; retracted in between, all rows and slots are free."""
    rank = base()
    rows = len(rank.state.rows.free)
    admission = rank.admit(prompt)
    slots = rank.slots_of(admission.request)
    for start in range(0, len(prompt), 4):
        rank.grow_to(admission.request, prompt[: start + 4])
        rank.unfinished(admission.request, prompt[: start + 4])
        assert rank.slots_of(admission.request) == slots
        assert rank.state.row_of(admission.request) == admission.row
        if retracted and start:
            break
    if retracted:
        rank.cache.retract(admission.request)
    else:
        rank.finish(admission.request, prompt)
    assert len(rank.state.rows.free) == rows
    assert rank.state.recurrent.held[Kind.REQUEST] == 0
    rank.check()


@BOTH
@pytest.mark.parametrize("end", ["abort", "retract"])
def test_whoever_ends_early_gives_all_of_its_slots_back(make: type[StateRank], end: str) -> None:
    """R140, R141."""
    rank = make()
    request = rank.admit("abcd").request
    rank.grow(request, 3)
    rank.unfinished(request, "abc")
    getattr(rank.cache, end)(request)
    assert rank.state.recurrent.held[Kind.REQUEST] == 0
    rank.check()


# -- strangers -------------------------------------------------------------------------------------------------------


def brought(rank: StateRank, text: str, slot: Pages, prev: int = 0) -> Slice:
    pages, _ = rank.cache.alloc(len(text) - prev)
    given = b"".join(rank.state.nodes[rank.node(text[: at + 1]).id].full[-4:] for at in range(prev))
    return Slice(Pages(given + pages), prev, prev, NOBODY, UNBOUND, Operation.INSERT, recurrent=slot)


def test_a_stranger_brings_a_state_and_is_told_whether_it_was_taken() -> None:
    rank = base()
    slot, second = (rank.cache.take_states(1) for _ in range(2))
    assert rank.cache.insert(rank.key("ab"), b"", brought(rank, "ab", slot)).donated
    found = rank.cache.insert(rank.key("ab"), b"", brought(rank, "ab", second))
    assert (found.donated, found.prefix) == (False, 2)
    assert rank.state.recurrent.held[Kind.REQUEST] == 0
    assert rank.hit("abc") == 2


def test_slots_are_given_back_by_those_who_have_them() -> None:
    """A5, R39: what is free, the tree's or a request's is refused by its name."""
    rank = base(slots=3)
    rank.serve("ab")
    slots = rank.cache.take_states(1)
    request = rank.admit("cd").request
    tree = next(iter(rank.states().values())).to_bytes(4, "little")
    for pages in (tree, rank.slots_of(request)[0].to_bytes(4, "little"), bytes(4), b"\xff" * 4):
        with pytest.raises(ForeignFree):
            rank.cache.free_states(Pages(slots + pages))
    with pytest.raises(Refusal, match="named twice"):
        rank.cache.free_states(Pages(slots * 2))
    rank.cache.free_states(slots)
    with pytest.raises(DoubleFree):
        rank.cache.free_states(slots)
    with pytest.raises(StateShort):
        rank.cache.take_states(2)
    with pytest.raises(Refusal, match="at least one"):
        rank.cache.take_states(0)
    with pytest.raises(ForeignFree):
        rank.cache.insert(rank.key("xy"), b"", brought(rank, "xy", slots))


# -- numbers ---------------------------------------------------------------------------------------------------------


@BOTH
def test_the_slots_add_up_at_every_step_of_a_conversation(make: type[StateRank]) -> None:
    """R156, R211: free + tree + running + track = slots; a later turn goes on from where the last one ended."""
    rank = make()
    text, hits = "", []
    for turn in ("abcd", "efgh", "ijkl", "mnop"):
        text += turn
        admission = rank.admit(text)
        hits.append(admission.hit.tokens // rank.unit)
        rank.check()
        rank.grow_to(admission.request, text[:-2])
        rank.unfinished(admission.request, text[:-2])
        rank.check()
        rank.grow_to(admission.request, text)
        rank.finish(admission.request, text)
        rank.check()
    assert hits == [0, 4, 8, 12]
    assert len(rank.states()) == 1
    assert rank.cache.flush() == len(rank.of(Removed))
    assert rank.cache.ledger().recurrent_available == rank.state.recurrent.capacity


def test_the_keys_of_a_run_are_not_needed_to_tell_who_has_a_slot() -> None:
    """J4: every event of a slot names its cause, and a request or a node."""
    driven = Driven(4, STATE_SHAPES[1]).run(200)
    kinds = (StateTaken, StateReplaced, StateDonated, StateFreed)
    told = [event for event in driven.journal.events if isinstance(event, kinds)]
    assert {type(event) for event in told} == set(kinds)
    assert all(event.cause for event in told)
