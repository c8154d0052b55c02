"""Copies of FULL pages on the host: when they are made, what an eviction leaves, how they come back and how they go."""

import pytest

from radixledger.cache.rank import RankCache
from radixledger.cache.refusals import Busy, Refusal
from radixledger.journal.accounts import Kind, transfer_account, tree_account
from radixledger.journal.causes import label
from radixledger.journal.events import (
    BackupBegun,
    BackupEnded,
    Config,
    Demoted,
    HostDropped,
    Removed,
)
from radixledger.journal.sizes import BadConfig
from radixledger.journal.units import NodeId

from .driven import opened
from .hosted import Hosted, hosted, numbers


def test_a_host_tier_beside_a_window_is_refused_before_anything_exists() -> None:
    """R8, B152: a window that is lost before its FULL pages are copied cannot happen where windows have no host tier."""
    shape = (4, 8, 16, 16)
    with pytest.raises(
        BadConfig, match="host_pages: 8, but route 'unified' cannot have a host tier"
    ) as refused:
        RankCache(opened(shape, config=Config(4, 16, 16, 8, rows=8, context_pages=64, host_pages=8)))
    assert refused.value.field == "host_pages"
    with pytest.raises(BadConfig, match="host_pages"):
        RankCache(hosted(route="chunk"))
    for field, wrong in (
        ("host_write", {"write": "sometimes"}),
        ("host_threshold", {"threshold": 0}),
        ("host_pages", {"host": -1}),
    ):
        with pytest.raises(BadConfig, match=field):
            RankCache(hosted(**wrong))


def test_a_rank_without_a_host_tier_refuses_whatever_concerns_copies() -> None:
    rank = RankCache(opened((4, 0, 16, 0)))
    for ask in (
        lambda: rank.write_through(NodeId(1)),
        rank.write_back,
        lambda: rank.evict_copies(1),
        lambda: rank.load_back(NodeId(1)),
    ):
        with pytest.raises(Refusal, match="no host tier"):
            ask()


# -- when copies are made ------------------------------------------------------------------------------------


def test_a_node_is_written_through_when_it_was_used_often_enough_parents_first() -> None:
    """R211: an insert is a use, and so is every match that the node lies in; a cut half has been used as often."""
    rank = Hosted(hosted(threshold=3))
    rank.insert("abcd")
    assert rank.rank.write_through(rank.node("abcd").id) == []
    rank.match("abcd")
    rank.match("ab")
    assert [rank.node("ab").hits, rank.node("abcd").hits] == [3, 2]
    (copy,) = rank.rank.write_through(rank.node("abcd").id)
    assert numbers(copy.full) == numbers(rank.node("ab").full)
    rank.match("abcd")
    rank.insert("abcdef")
    rank.match("abcdef")
    rank.match("abcdef")
    begun = rank.rank.write_through(rank.node("abcdef").id)
    assert [numbers(each.full) for each in begun] == [
        numbers(rank.node(text).full) for text in ("abcd", "abcdef")
    ]
    assert rank.rank.write_through(rank.node("abcdef").id) == [], "a node has one copy"


def test_a_copy_is_made_only_where_there_is_room_or_can_be_made() -> None:
    """Copies that stand alone make room, the oldest first; copies of what is on the device do not."""
    rank = Hosted(hosted(host=4))
    rank.insert("ab")
    rank.back_up("ab")
    rank.rank.evict(2, 0)
    rank.insert("cd")
    rank.back_up("cd")
    rank.insert("xyz")
    before = rank.state.seq
    rank.back_up("xyz")
    assert rank.node("xyz").host == b"", "one page could be gained, three are needed"
    assert rank.since(before) == []
    rank.insert("ef")
    (copy,) = rank.rank.write_through(rank.node("ef").id)
    dropped, removed, begun = rank.since(before)[-3:]
    assert isinstance(dropped, HostDropped)
    assert isinstance(removed, Removed)
    assert isinstance(begun, BackupBegun)
    assert (label(dropped.cause), dropped.host) == ("evict_host", copy.host)
    assert (removed.node, removed.full) == (dropped.node, b"")


def test_the_next_victim_is_written_back_and_no_other() -> None:
    """R211: what is used again stays out of it, and what has a copy needs no second one."""
    rank = Hosted(hosted(write="back"))
    rank.insert("ab")
    rank.insert("cd")
    rank.match("ab")
    copy = rank.rank.write_back()
    assert copy is not None
    assert numbers(copy.full) == numbers(rank.node("cd").full)
    assert rank.state.hits_counted == 0
    with pytest.raises(Refusal, match="'back', not 'through'"):
        rank.rank.write_through(rank.node("ab").id)
    rank.land(copy)
    assert rank.rank.write_back() is None
    with pytest.raises(Refusal, match="'through', not 'back'"):
        Hosted().rank.write_back()


# -- copies under way ----------------------------------------------------------------------------------------


def test_pages_of_a_copy_under_way_belong_to_nobody_else() -> None:
    """B19: they are neither free nor the tree's; host pressure, eviction and a flush leave them alone."""
    rank = Hosted(hosted(host=2))
    rank.insert("ab")
    (copy,) = rank.rank.write_through(rank.node("ab").id)
    account = transfer_account(copy.transfer)
    assert rank.state.host.holders(copy.host).tolist() == [account, account]
    assert (rank.state.host.available, rank.state.host.held[Kind.IN_FLIGHT]) == (0, 2)
    rank.rank.gathered(copy.transfer)
    rank.rank.evict(2, 0)
    assert rank.rank.evict_copies(2) == 0
    with pytest.raises(Busy, match="1 copies between device and host are under way"):
        rank.rank.flush()
    rank.insert("cd")
    assert rank.rank.write_through(rank.node("cd").id) == []
    rank.rank.end_backup(copy.transfer, True)
    node = rank.node("ab")
    assert rank.state.host.holders(copy.host).tolist() == [tree_account(node.id)] * 2


def test_full_pages_are_read_before_they_are_given_up() -> None:
    """B19: until a backup is gathered its node is no victim; from then on it is, though nothing has landed."""
    rank = Hosted()
    rank.insert("ab")
    (copy,) = rank.rank.write_through(rank.node("ab").id)
    assert rank.rank.evict(2, 0) == (0, 0)
    with pytest.raises(Refusal, match="was not gathered"):
        rank.rank.end_backup(copy.transfer, True)
    rank.rank.gathered(copy.transfer)
    with pytest.raises(Refusal, match="was gathered already"):
        rank.rank.gathered(copy.transfer)
    assert rank.rank.evict(2, 0) == (2, 0)
    assert isinstance(rank.journal.events[-2], Demoted)


def test_a_failed_copy_leaves_nothing_and_is_given_back_once() -> None:
    """B150: the second end of a copy is refused, whoever tells it."""
    rank = Hosted()
    rank.insert("ab")
    (copy,) = rank.rank.write_through(rank.node("ab").id)
    rank.rank.gathered(copy.transfer)
    rank.rank.end_backup(copy.transfer, False)
    assert (rank.node("ab").host, rank.state.host.available) == (b"", 12)
    for landed in (True, False):
        with pytest.raises(Refusal, match="backup 1 is not under way"):
            rank.rank.end_backup(copy.transfer, landed)
    assert rank.state.host.available == 12
    assert rank.peek("ab").tokens == 8


def test_a_node_that_is_only_on_its_way_to_the_host_is_lost_with_its_copy_and_all_below() -> None:
    """R211: nobody could reach what lies behind it; copies below that are under way stay with their transfers (B19)."""
    rank = Hosted(hosted(write="back"))
    rank.insert("ab")
    rank.insert("abcd")
    rank.insert("abef")
    copies = []
    for _ in range(3):
        copy = rank.rank.write_back()
        assert copy is not None
        rank.rank.gathered(copy.transfer)
        rank.rank.evict(1, 0)
        copies.append(copy)
    upper, first, second = copies[2], copies[0], copies[1]
    rank.rank.end_backup(first.transfer, True)
    before = rank.state.seq
    rank.rank.end_backup(upper.transfer, False)
    told = rank.since(before)
    dropped = next(event for event in told if isinstance(event, HostDropped))
    assert [type(event) for event in told if event is not dropped] == [BackupEnded, Removed, Removed, Removed]
    gone = told[told.index(dropped) + 1]
    assert isinstance(gone, Removed)
    assert (gone.node, dropped.host) == (dropped.node, first.host)
    assert {label(event.cause) for event in told[1:]} == {"back_up/unreachable"}  # type: ignore[union-attr]
    assert len(rank.state.nodes) == 1
    assert rank.state.host.held[Kind.IN_FLIGHT] == 2, "the second is still being written"
    rank.rank.end_backup(second.transfer, True)
    assert rank.state.host.available == 12
    ended = rank.journal.events[-1]
    assert isinstance(ended, BackupEnded)
    assert (ended.node, ended.landed, label(ended.cause)) == (0, False, "back_up/unreachable")


def test_a_node_that_was_cut_while_it_was_copied_lands_in_both_parts() -> None:
    rank = Hosted()
    rank.insert("abcd")
    (copy,) = rank.rank.write_through(rank.node("abcd").id)
    rank.rank.gathered(copy.transfer)
    rank.match("ab")
    upper, lower = rank.node("ab"), rank.node("abcd")
    assert (upper.backup, lower.backup) == (copy.transfer, copy.transfer)
    assert upper.host + lower.host == copy.host
    rank.rank.end_backup(copy.transfer, True)
    holders = rank.state.host.holders(copy.host).tolist()
    assert holders == [tree_account(upper.id)] * 2 + [tree_account(lower.id)] * 2
    assert not rank.state.transfers
