"""Faults of a second tier: locks that a cut forgot, and pages that two callers gave back."""

import pytest

from radixledger.cache.refusals import Refusal
from radixledger.journal.accounts import Kind
from radixledger.journal.events import BackupEnded, LoadEnded

from ..cache.hosted import Hosted, demoted_chain, hosted


def test_a_lock_on_a_copy_holds_both_halves_of_a_node_that_is_cut() -> None:
    """B59: X[0:8) locked on the host, cut at 4: nothing of X is evicted, and both halves are back to 0 when it is unlocked.

    R115.
    """
    rank = Hosted(hosted(page=1))
    rank.insert("abcdefgh")
    rank.back_up("abcdefgh")
    rank.rank.evict(8, 0)
    node = rank.node("abcdefgh")
    receipt = rank.rank.lock(node.id)
    assert (rank.state.host_protected, rank.state.full_protected) == (8, 0)
    assert rank.match("abcd").host_tokens == 4
    halves = rank.node("abcd"), rank.node("abcdefgh")
    assert [half.holds for half in halves] == [1, 1]
    assert rank.rank.evict_copies(8) == 0
    rank.rank.unlock(receipt)
    assert [half.holds for half in halves] == [0, 0]
    assert rank.state.host_protected == 0
    assert rank.rank.evict_copies(8) == 8
    assert rank.state.host.available == 12


def test_pages_of_a_copy_that_was_not_completed_are_released_once() -> None:
    """B150: four host pages under way, two complete: two are released, once, though helper and caller both say so."""
    rank = Hosted(hosted(full=8, host=4))
    rank.insert("ab")
    rank.insert("abcd")
    done, lost = rank.rank.write_through(rank.node("abcd").id)
    assert rank.state.host.held[Kind.IN_FLIGHT] == 4
    for copy in (done, lost):
        rank.rank.gathered(copy.transfer)
    rank.rank.end_backup(done.transfer, True)
    rank.rank.end_backup(lost.transfer, False)
    for copy in (lost, done):
        with pytest.raises(Refusal, match="is not under way"):
            rank.rank.end_backup(copy.transfer, False)
    ends = [event for event in rank.journal.events if isinstance(event, BackupEnded)]
    assert [event.landed for event in ends] == [True, False]
    assert (rank.state.host.available, rank.state.host.held[Kind.TREE]) == (2, 2)
    assert rank.state.host.held[Kind.IN_FLIGHT] == 0


def test_pages_that_a_failed_load_took_are_released_once() -> None:
    """B150: the same on the way back: four FULL pages taken for a load that fails are free again, once."""
    rank = demoted_chain()
    free = rank.state.full.available
    load = rank.rank.load_back(rank.node("abcdef").id)
    assert rank.state.full.available == free - 4
    rank.rank.end_load(load.transfer, False)
    with pytest.raises(Refusal, match="is not under way"):
        rank.rank.end_load(load.transfer, False)
    assert rank.state.full.available == free
    assert len([event for event in rank.journal.events if isinstance(event, LoadEnded)]) == 1
    assert rank.peek("abcdef").host_tokens == 16, "the copies are what they were"
