"""States of a recurrent model in the tree: where a request may start, what a lock holds, who goes for a slot."""

import pytest

from radixledger.journal.accounts import request_account
from radixledger.journal.causes import label
from radixledger.journal.events import (
    Locked,
    Removed,
    Split,
    StateFreed,
    Stop,
)
from radixledger.journal.moves import ids_of, pages_of
from radixledger.journal.units import UNBOUND

from .driven import FULL_SHAPES, STATE_SHAPES, Driven
from .state_rank import BOTH, StateRank, base, buffered

NOBODY = request_account(UNBOUND)


# -- where a request may start ---------------------------------------------------------------------------------------


@BOTH
def test_a_match_needs_a_state_at_its_very_end(make: type[StateRank]) -> None:
    """R71: FULL goes further, no state stands there; a state cannot be cut back to where a prompt leaves its path."""
    rank = make()
    rank.serve("abcdefgh")
    assert [rank.hit("abcdefgh"[:count]) for count in (1, 7, 8)] == [0, 0, 8]
    found = rank.cache.match(rank.key("abcdefxy"))
    assert (found.tokens, found.full_tokens // rank.unit, found.stop) == (0, 6, Stop.NO_STATE)
    assert rank.of(Split) == []
    rank.check()


@BOTH
def test_a_node_without_a_state_is_skipped_and_a_deeper_one_wins(make: type[StateRank]) -> None:
    """R71: the walk goes on over inner nodes, which have none."""
    rank = make()
    rank.serve("abcd")
    rank.serve("abcdefgh")
    assert not rank.node("abcd").recurrent
    assert [rank.hit(text) for text in ("abcd", "abcdefgh", "abcdefghij")] == [0, 8, 8]
    rank.check()


def test_the_same_prompt_again_finds_no_state_before_its_last_token_and_a_longer_one_finds_the_end() -> None:
    """B73: nothing is kept on the way, so the answer is 0 and never 7; the end state survives a cut of its node."""
    rank = base()
    rank.serve("abcdefgh")
    same = rank.admit("abcdefgh")
    assert (same.hit.tokens, same.hit.full_tokens, same.hit.stop) == (0, 7, Stop.NO_STATE)
    rank.cache.abort(same.request)
    rank.serve("abcdxy")
    assert rank.node("abcd").children
    assert rank.hit("abcdefghijkl") == 8
    rank.check()


@pytest.mark.parametrize(("make", "usable"), [(base, 0), (buffered, 4)])
def test_a_running_request_goes_on_from_its_own_path_whatever_states_there_are(
    make: type[StateRank], usable: int
) -> None:
    """R72: what it gave the tree is its prefix, though a match may not end there."""
    rank = make()
    first, second = (rank.admit("abcdefgh").request for _ in range(2))
    for request in (first, second):
        rank.grow(request, 4)
        assert rank.unfinished(request, "abcd") == 4
    rank.serve("abcdxy")
    assert rank.hit("abcdz") == usable
    for request in (first, second):
        rank.grow(request, 4)
        assert rank.unfinished(request, "abcdefgh") == 8
        assert rank.state.rows.protected[rank.state.row_of(request)] == 8 * rank.unit
    rank.check()


# -- leaves, cuts, locks ---------------------------------------------------------------------------------------------


def test_a_leaf_that_gains_a_child_drops_its_state_at_once() -> None:
    rank = base()
    rank.serve("abcd")
    ((node, slot),) = rank.states().items()
    rank.serve("abcdef")
    freed = [event for event in rank.of(StateFreed) if label(event.cause).endswith("outgrown")]
    assert [(event.node, pages_of(event.slots).tolist()) for event in freed] == [(node, [slot])]
    assert list(rank.states()) == [rank.node("abcdef").id]
    rank.check()


def test_a_locked_leaf_that_gains_a_child_drops_its_state_at_its_last_unlock() -> None:
    rank = base()
    rank.serve("abcd")
    leaf = rank.node("abcd")
    receipts = [rank.cache.lock(leaf.id) for _ in range(2)]
    request = rank.admit("abcdxy", force_miss=True).request
    rank.grow(request, 6)
    rank.finish(request, "abcdxy")
    assert leaf.recurrent
    assert rank.state.recurrent_protected == 1
    rank.cache.unlock(receipts[0])
    assert leaf.recurrent
    rank.cache.unlock(receipts[1])
    assert not leaf.recurrent
    assert label(rank.of(StateFreed)[-1].cause) == "unlock/outgrown"
    rank.check()


@pytest.mark.parametrize("end", ["abort", "retract", "finish"])
def test_a_request_that_ends_unlocks_the_leaf_that_it_went_on_from(end: str) -> None:
    """Another's insert made an inner node of it: the last one who holds it drops its state."""
    rank = base()
    rank.serve("abcd")
    leaf = rank.node("abcd")
    request = rank.admit("abcdmn").request
    rank.grow(request, 2)
    rank.serve("abcdxy")
    assert leaf.recurrent
    if end == "finish":
        rank.finish(request, "abcdmn")
    else:
        getattr(rank.cache, end)(request)
    assert not leaf.recurrent
    assert label(rank.of(StateFreed)[-1].cause) == f"{end}/outgrown"
    rank.check()


def test_a_leaf_that_is_one_again_at_its_last_unlock_keeps_its_state() -> None:
    rank = base()
    rank.serve("abcd")
    leaf = rank.node("abcd")
    receipt = rank.cache.lock(leaf.id)
    request = rank.admit("abcdxy", force_miss=True).request
    rank.grow(request, 6)
    rank.finish(request, "abcdxy")
    assert rank.cache.evict(2, 0) == (2, 0)
    rank.cache.unlock(receipt)
    assert rank.hit("abcde") == 4
    rank.check()


def test_a_cut_leaves_the_state_with_the_lower_part() -> None:
    """R66: the two halves share nothing: the upper one has no state and no recency of one."""
    rank = base()
    rank.serve("abcdef")
    lower = rank.node("abcdef")
    slot, tick = lower.recurrent, lower.recurrent_tick
    rank.serve("abcx")
    upper = rank.node("abc")
    assert (upper.recurrent, upper.recurrent_tick) == (b"", 0)
    assert (lower.recurrent, lower.recurrent_tick) == (slot, tick)
    assert lower.parent is upper
    rank.cache.match(rank.key("abcdef"))
    assert lower.recurrent_tick > tick
    assert upper.recurrent_tick == 0
    rank.check()


def test_a_lock_holds_the_state_of_its_own_node_and_passes_over_one_without() -> None:
    """R112: a receipt names what it found no state in; the path above is FULL's alone."""
    rank = base()
    for text in ("abcd", "abxy", "abxyz"):
        rank.serve(text)
    inner, leaf, other = rank.node("abxy"), rank.node("abxyz"), rank.node("abcd")
    receipts = [rank.cache.lock(node.id) for node in (leaf, inner)]
    assert [ids_of(event.skipped).tolist() for event in rank.of(Locked)[-2:]] == [[], [inner.id]]
    assert rank.state.recurrent_protected == 1
    assert receipts[1].skipped == (inner.id,)
    assert rank.cache.evict_states(5) == (2, 1)
    assert other.id not in rank.state.nodes
    for receipt in receipts:
        rank.cache.unlock(receipt)
    assert rank.state.recurrent_protected == 0
    rank.check()


# -- orders and eviction ---------------------------------------------------------------------------------------------


def test_states_go_in_their_own_order_with_the_full_pages_of_their_leaf() -> None:
    """R67, R102: a match makes a state young; a FULL victim takes its state along (R106)."""
    rank = base()
    for text in ("ab", "cdx", "ef"):
        rank.serve(text)
    rank.cache.match(rank.key("ab"))
    assert rank.cache.evict_states(1) == (3, 1)
    assert (rank.hit("abz"), rank.hit("cdxz"), rank.hit("efz")) == (2, 0, 2)
    assert label(rank.of(Removed)[-1].cause) == "evict/state_leaf"
    assert rank.cache.evict(1, 0) == (2, 0)
    assert rank.hit("efz") == 0
    assert rank.state.recurrent.available == 5
    assert rank.cache.evict_states(5) == (2, 1)
    rank.check()


def test_recency_of_full_and_of_states_move_apart() -> None:
    """R67: a parent inherits the recency of FULL from a child that goes, and no recency of its state."""
    rank = base()
    rank.serve("abcd")
    leaf = rank.node("abcd")
    receipt = rank.cache.lock(leaf.id)
    request = rank.admit("abcdxy", force_miss=True).request
    rank.grow(request, 6)
    rank.finish(request, "abcdxy")
    rank.serve("mn")
    rank.cache.match(rank.key("abcdxy"))
    assert rank.cache.evict(2, 0) == (2, 0)
    assert rank.hit("mnz") == 0
    rank.serve("mn")
    rank.cache.match(rank.key("abcdxy"))
    child = rank.node("abcdxy")
    assert child.tick > rank.node("mn").tick
    rank.cache.match(rank.key("mn"))
    rank.cache.match(rank.key("abcdxy"))
    assert rank.cache.evict_states(1) == (2, 1)
    assert rank.hit("mnz") == 0
    rank.cache.unlock(receipt)
    rank.check()


def full_victims(shape: tuple[int, ...]) -> list[int]:
    """The leaves that FULL pressure takes, in order, by the first page of their edge's key."""
    rank = StateRank(slots=shape[4] if len(shape) > 4 else 0)
    for text in ("ab", "cd", "ef", "gh"):
        rank.serve(text)
    for text in ("cd", "ab"):
        rank.cache.match(rank.key(text))
    rank.cache.evict(8, 0)
    return [event.node for event in rank.of(Removed)]


def test_the_order_of_full_victims_is_the_same_with_states_and_without() -> None:
    """R68: the component adds an order and changes none."""
    assert full_victims((1, 0, 60, 0, 6, 0)) == full_victims((1, 0, 60, 0)) == [3, 4, 2, 1]


@pytest.mark.parametrize("shape", STATE_SHAPES, ids=str)
def test_the_candidates_are_at_every_moment_those_that_a_scan_would_find(shape: tuple[int, ...]) -> None:
    """R69, R70: leaves that have a state and that no lock holds; never the root."""
    driven = Driven(1, shape)
    for _ in driven.steps(200):
        state = driven.cache.state
        scanned = {
            node.id
            for node in state.nodes.values()
            if node.recurrent and not node.children and not node.holds
        }
        waiting = {
            node.id
            for _, _, node in state.state_order
            if node.parent and node.recurrent and not node.children and not node.holds
        }
        assert waiting == scanned
        assert len(scanned) == state.recurrent_evictable
        assert not state.root.recurrent


@pytest.mark.parametrize("shape", FULL_SHAPES, ids=str)
def test_a_rank_without_states_says_nothing_of_them(shape: tuple[int, ...]) -> None:
    """R178: no event of theirs, and zeros in its ledger."""
    driven = Driven(2, shape).run(120)
    assert not any(type(event).__name__.startswith("State") for event in driven.journal.events)
    row = driven.cache.ledger()
    assert (row.recurrent_capacity, row.recurrent_available, row.recurrent_request_running) == (0, 0, 0)
