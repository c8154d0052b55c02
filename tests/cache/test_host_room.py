"""Room on the host: who goes first, what locks hold, what a flush, the ledger and a snapshot say of it."""

import pytest

from radixledger.cache.digest import digest, recount
from radixledger.cache.image import image, restore
from radixledger.cache.refusals import Busy, Refusal
from radixledger.journal.events import (
    HostDropped,
)
from radixledger.journal.redact import KEY_BYTES, Redactor
from radixledger.journal.units import TransferId

from .hosted import demoted_chain


def test_host_pressure_takes_copies_that_stand_alone_from_the_leaves_up_by_recency() -> None:
    """R211: not those of nodes on the device, and none with a copy below it."""
    rank = demoted_chain()
    rank.insert("xy")
    rank.back_up("xy")
    rank.match("ab")
    rank.rank.evict(2, 0)
    copies = [rank.node(text).host for text in ("xy", "abcdef", "abcd")]
    rank.match("abcdef")
    rank.match("abcd")
    gone = []
    while rank.rank.evict_copies(1):
        dropped = rank.journal.events[-2]
        assert isinstance(dropped, HostDropped)
        gone.append(dropped.host)
    assert gone == copies
    assert rank.node("ab").host, "a copy of what is on the device stays"


def test_the_receipt_of_a_load_is_its_own() -> None:
    """R122: nobody else can give it back."""
    rank = demoted_chain()
    node = rank.node("abcdef")
    copy = rank.rank.load_back(node.id)
    receipt = rank.state.transfers[copy.transfer].receipt
    assert receipt is not None
    with pytest.raises(Refusal, match=r"is not held, but by load \d"):
        rank.rank.unlock(receipt)


def test_a_flush_empties_both_tiers_when_no_copy_is_under_way() -> None:
    """R33, R166: copies are dropped before their nodes go."""
    rank = demoted_chain()
    copy = rank.rank.load_back(rank.node("abcdef").id)
    with pytest.raises(Busy, match="copies between device and host"):
        rank.rank.flush()
    rank.rank.end_load(copy.transfer, False)
    assert rank.rank.flush() == 3
    assert (rank.state.full.available, rank.state.host.available) == (16, 12)
    assert len(rank.state.nodes) == 1


def test_the_ledger_knows_where_the_pages_of_both_tiers_are() -> None:
    """R156, R171: the terms of each pool add up to its capacity, copies under way among them."""
    rank = demoted_chain()
    rank.insert("xy")
    rank.rank.write_through(rank.node("xy").id)
    rank.rank.load_back(rank.node("abcd").id)
    row = rank.rank.ledger("busy")
    assert not row.idle
    host = (
        row.host_available,
        row.host_tree_evictable,
        row.host_tree_protected,
        row.host_tree_mirrored,
        row.host_in_flight,
    )
    assert host == (16, 8, 8, 8, 8)
    assert sum(host) == row.host_capacity == 48
    full = (
        row.full_available,
        row.full_tree_evictable,
        row.full_tree_protected,
        row.full_request_owned,
        row.full_in_flight,
    )
    assert full == (40, 8, 8, 0, 8)
    assert sum(full) == row.full_capacity == 64


@pytest.mark.parametrize("redactor", [None, Redactor(bytes(range(KEY_BYTES)), 16)])
def test_a_snapshot_goes_on_where_the_tier_was(redactor: Redactor | None) -> None:
    """J12: copies, transfers, uses and the order of victims among it."""
    rank = demoted_chain()
    rank.insert("xy")
    (copy,) = rank.rank.write_through(rank.node("xy").id)
    rank.rank.gathered(copy.transfer)
    load = rank.rank.load_back(rank.node("abcd").id)
    again = restore(image(rank.state, redactor))
    assert digest(again) == recount(again) == digest(rank.state)
    assert again.next_transfer == TransferId(load.transfer + 1)
    assert (again.host_bare, again.host_protected) == (rank.state.host_bare, rank.state.host_protected)
    assert sorted(node.id for _, _, node in again.host_order) == sorted(
        node.id for _, _, node in rank.state.host_order if node.host and not node.full and not node.holds
    )
    assert again.transfers[load.transfer].receipt == rank.state.transfers[load.transfer].receipt
