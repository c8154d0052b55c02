"""FULL tombstones: what an eviction leaves, what a match finds there, how their pages come back."""

import numpy as np
import pytest

from radixledger.cache.components.component import Component, Events
from radixledger.cache.digest import digest
from radixledger.cache.refusals import Busy, PoolShort, Refusal
from radixledger.cache.slices import Slice
from radixledger.cache.state import Node, State
from radixledger.journal.accounts import FREE, Kind, Pool, transfer_account
from radixledger.journal.causes import label
from radixledger.journal.events import (
    Adopted,
    Demoted,
    Evicted,
    LoadEnded,
    Stop,
)
from radixledger.journal.units import NodeId, TokenCount

from .hosted import Hosted, demoted_chain, hosted, numbers

# -- FULL tombstones -----------------------------------------------------------------------------------------


def test_a_leaf_with_a_copy_stays_as_a_full_tombstone() -> None:
    """R211, R105: the pool gains its FULL pages; the node, its place and its copy stay; the credit is what was gained."""
    rank = Hosted()
    rank.insert("abcd")
    rank.match("ab")
    rank.back_up("abcd")
    full = rank.node("abcd").full
    assert rank.rank.evict(1, 0) == (2, 0)
    demoted, evicted = rank.journal.events[-2:]
    assert isinstance(demoted, Demoted)
    assert isinstance(evicted, Evicted)
    assert (demoted.full, label(demoted.cause)) == (full, "evict/host_copy")
    assert (evicted.gained_full, evicted.events) == (2, 1)
    node = rank.node("abcd")
    assert (node.full, len(node.host), rank.state.totals.full_evicted) == (b"", 8, 2)
    assert rank.state.full.holders(full).tolist() == [FREE, FREE]


def test_a_match_tells_where_the_device_ends_and_how_far_copies_go_on() -> None:
    """R211: tokens on the device, tokens on the host behind them, a node each; both are cut where the key ends."""
    rank = Hosted()
    rank.insert("ab")
    rank.insert("abcdef")
    rank.back_up("abcdef")
    rank.match("ab")
    rank.rank.evict(1, 0)
    hit = rank.match("abcdxy")
    assert (hit.tokens, hit.host_tokens, hit.stop) == (8, 8, Stop.ON_HOST)
    assert rank.state.nodes[hit.node].end == 2
    assert rank.state.nodes[hit.host_node].end == 4
    assert (rank.peek("abcdef").host_tokens, rank.peek("abxy").host_tokens) == (16, 0)
    assert rank.peek("ab") == (hit.node, 8, 8, Stop.END_OF_KEY, TokenCount(0), 0)
    forced = rank.rank.match(rank.key("abcd"), force_miss=True)
    assert (forced.tokens, forced.host_tokens) == (0, 0)


def test_a_copy_that_has_not_landed_ends_what_a_match_can_use() -> None:
    """B19, R211: a node that is neither on the device nor, yet, on the host."""
    rank = Hosted()
    rank.insert("ab")
    rank.insert("abcd")
    rank.back_up("ab")
    (copy,) = rank.rank.write_through(rank.node("abcd").id)
    rank.rank.gathered(copy.transfer)
    rank.rank.evict(9, 0)
    hit = rank.peek("abcd")
    assert (hit.tokens, hit.host_tokens, hit.stop) == (0, 8, Stop.ON_HOST)
    lower = next(node for node in rank.state.nodes.values() if node.backup)
    for ask in (lambda: rank.rank.lock(lower.id), lambda: rank.rank.load_back(lower.id)):
        with pytest.raises(Busy, match="still being written"):
            ask()
    rank.rank.end_backup(copy.transfer, True)
    assert rank.peek("abcd").host_tokens == 16


def test_what_lies_behind_a_leaf_without_a_copy_goes_with_it() -> None:
    """A node without FULL pages and without a copy would end every walk; nothing behind it could be reached."""
    rank = Hosted(hosted(write="back", host=2))
    rank.insert("ab")
    rank.insert("abcd")
    copy = rank.rank.write_back()
    assert copy is not None
    rank.land(copy)
    rank.rank.evict(2, 0)
    rank.rank.lock(rank.node("abcd").id)
    assert rank.rank.write_back() is None, "the leaf is held by the lock on its copy"
    rank = Hosted(hosted(write="back", host=2))
    rank.insert("ab")
    rank.insert("abcd")
    copy = rank.rank.write_back()
    assert copy is not None
    rank.rank.gathered(copy.transfer)
    rank.rank.evict(2, 0)
    assert rank.rank.write_back() is None, "no room, and a copy under way makes none"
    assert rank.rank.evict(1, 0) == (2, 0)
    assert len(rank.state.nodes) == 1
    rank.rank.end_backup(copy.transfer, True)
    assert (rank.state.host.available, rank.state.full.available) == (2, 16)


# -- loading back --------------------------------------------------------------------------------------------


def test_a_load_brings_back_all_that_lies_between_the_device_and_its_end() -> None:
    """R211: the path is locked, pages are allocated, the copies stay; then all of it is on the device at once."""
    rank = demoted_chain()
    last = rank.node("abcdef")
    copy = rank.rank.load_back(last.id)
    assert rank.state.full.holders(copy.full).tolist() == [transfer_account(copy.transfer)] * 4
    assert rank.rank.evict(99, 0) == (0, 0), "what a load goes on from is held"
    assert rank.rank.evict_copies(99) == 0
    assert rank.peek("abcdef").tokens == 8
    rank.rank.end_load(copy.transfer, True)
    hit = rank.peek("abcdef")
    assert (hit.tokens, hit.host_tokens, hit.stop) == (24, 0, Stop.END_OF_KEY)
    assert rank.node("abcd").full + rank.node("abcdef").full == copy.full
    assert rank.node("abcd").host + rank.node("abcdef").host == copy.host
    assert not rank.state.root.holds


def test_a_load_that_fails_leaves_everything_as_it_was() -> None:
    rank = demoted_chain()
    before = (
        rank.state.full.available,
        [(node.id, node.full, node.host, node.holds) for node in rank.state.nodes.values()],
    )
    copy = rank.rank.load_back(rank.node("abcdef").id)
    rank.rank.end_load(copy.transfer, False)
    after = (
        rank.state.full.available,
        [(node.id, node.full, node.host, node.holds) for node in rank.state.nodes.values()],
    )
    assert before == after
    ended = rank.journal.events[-2]
    assert isinstance(ended, LoadEnded)
    assert (ended.full, ended.landed) == (copy.full, False)
    for landed in (True, False):
        with pytest.raises(Refusal, match="load 4 is not under way"):
            rank.rank.end_load(copy.transfer, landed)


def test_a_load_without_enough_free_pages_is_refused_with_the_numbers_and_holds_nothing() -> None:
    """R152: all or nothing; evicting for it is its caller's business."""
    rank = demoted_chain()
    rank.insert("xy")
    rank.rank.alloc(9)
    digested = digest(rank.state)
    with pytest.raises(PoolShort, match="4 pages are needed; FULL has 3 free \\+ 4 evictable") as refused:
        rank.rank.load_back(rank.node("abcdef").id)
    assert refused.value.pool is Pool.FULL
    assert digest(rank.state) == digested
    with pytest.raises(Refusal, match="is on the device"):
        rank.rank.load_back(rank.node("xy").id)
    with pytest.raises(Refusal, match="node 99 is not in the tree"):
        rank.rank.load_back(NodeId(99))


def test_a_load_lands_between_two_steps_and_never_under_one() -> None:
    """R151."""
    rank = demoted_chain()
    copy = rank.rank.load_back(rank.node("abcdef").id)
    none = np.zeros(0, np.int32)
    rank.rank.step_began(1, np.zeros(0, np.int64), none, none)
    with pytest.raises(Busy, match="step 1 is running: a load lands between two steps"):
        rank.rank.end_load(copy.transfer, True)
    rank.rank.step_ended(1)
    rank.rank.end_load(copy.transfer, True)
    assert rank.peek("abcdef").tokens == 24


def test_a_load_that_an_insert_overtook_gives_back_what_is_there_already() -> None:
    """R211: each page once; the rest of the chain lands."""
    rank = demoted_chain()
    copy = rank.rank.load_back(rank.node("abcdef").id)
    rank.insert("abcd")
    mine = rank.node("abcd").full
    rank.rank.end_load(copy.transfer, True)
    assert rank.node("abcd").full == mine
    assert rank.node("abcdef").full == copy.full[8:]
    assert rank.state.full.holders(copy.full).tolist()[:2] == [FREE, FREE]


def test_a_match_may_cut_what_is_being_loaded() -> None:
    rank = demoted_chain()
    copy = rank.rank.load_back(rank.node("abcdef").id)
    assert rank.match("abcde").host_tokens == 12
    rank.rank.end_load(copy.transfer, True)
    assert [numbers(rank.node(text).full) for text in ("abcde", "abcdef")] == [
        [numbers(copy.full)[2]],
        [numbers(copy.full)[3]],
    ]


# -- inserting over FULL tombstones --------------------------------------------------------------------------


class Recovering(Component):
    """Tells when it is asked, and what stands in the node by then."""

    def __init__(self, name: str, trace: list[tuple[str, int, bytes, bytes]]) -> None:
        self.name = name
        self.trace = trace

    def recover(self, state: State, node: Node, start: int, brought: Slice) -> Events:
        self.trace.append((self.name, node.id, node.full, brought.part(start, node.end)))
        return ()


def test_an_insert_over_full_tombstones_adopts_its_pages_and_recovers_once_before_they_count() -> None:
    """R64, R65, A11: one call per node and component, FULL is no component; the copies stay, and nothing is a duplicate."""
    rank = demoted_chain()
    trace: list[tuple[str, int, bytes, bytes]] = []
    rank.state.components = (Recovering("one", trace), Recovering("other", trace))
    copies = [rank.node(text).host for text in ("abcd", "abcdef")]
    before = rank.state.seq
    inserted = rank.insert("abcdef")
    assert inserted.prefix == 2, "what the request brought for the tombstones is no duplicate"
    first, second = (event for event in rank.since(before) if isinstance(event, Adopted))
    assert trace == [
        (name, event.node, b"", event.full) for event in (first, second) for name in ("one", "other")
    ]
    assert [label(event.cause) for event in (first, second)] == ["insert/adopted"] * 2
    assert [first.host, second.host] == copies == [rank.node(text).host for text in ("abcd", "abcdef")]
    assert rank.node("abcd").full + rank.node("abcdef").full == first.full + second.full
    assert rank.peek("abcdef").tokens == 24
    assert rank.state.full.held[Kind.REQUEST] == 0, "no page was left over, and none was freed twice"


def test_an_insert_that_ends_inside_a_full_tombstone_takes_the_part_that_it_covers() -> None:
    rank = demoted_chain()
    rank.insert("abcdeX")
    assert [bool(rank.node(text).full) for text in ("abcde", "abcdef")] == [True, False]
    assert rank.peek("abcdef") == (rank.node("abcde").id, 20, 20, Stop.ON_HOST, 4, rank.node("abcdef").id)
    assert rank.peek("abcdeX").tokens == 24
