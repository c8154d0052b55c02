"""The legacy SWA radix tree, sentence by sentence: inserts, requests, and what it can be built with.

Page 1 and window 4: a letter of a text is a page and a token.
"""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from radixledger.cache.config import checked
from radixledger.cache.refusals import Refusal
from radixledger.journal.causes import label
from radixledger.journal.events import (
    AnyEvent,
    Freed,
    Healed,
    HealMode,
    Locked,
    Matched,
    Reclaimed,
    Repointed,
    Split,
    Transferred,
    Unlocked,
)
from radixledger.journal.moves import pages_of
from radixledger.journal.sizes import BadConfig
from radixledger.journal.units import Pages, TokenCount

from ..machine import opened
from ..model_tree import Shape
from .legacy_tree import WINDOW, Tree, key, kinds, spelled

# -- insert --------------------------------------------------------------------------------------------------


def test_a_new_leaf_is_not_cut_at_the_window() -> None:
    """R95 differs on purpose: one node of 12, where the unified route has 8 and 4; a lock of it holds all of it (R111)."""
    for route, nodes, held in (("legacy", {12}, 12), ("unified", {8, 4}, 4)):
        tree = Tree(route)
        leaf = tree.insert("abcdefghijkl").node
        assert {node.pages for node in tree.rank.state.nodes.values() if node.parent} == nodes
        tree.rank.lock(leaf.id)
        assert (tree.rank.state.full_protected, tree.rank.state.swa_protected) == (12, held)
        tree.last()


def test_a_new_part_below_the_released_length_is_freed_and_nothing_is_added() -> None:
    """R93: with pages of both pools that are left, and the walk's length as the answer."""
    tree = Tree()
    tree.insert("abcd")
    ended = tree.insert("abcdefgh", prev=4, released=8)
    freed = [event for event in tree.last() if isinstance(event, Freed)]
    assert [(len(event.full) // 4, len(event.swa) // 4, label(event.cause)) for event in freed] == [
        (4, 0, "insert/veto")
    ]
    assert (ended.prefix, spelled(ended.node)) == (4, "abcd")
    assert set(tree.nodes()) == {"abcd"}


def test_a_new_part_over_the_released_length_is_a_tombstone_and_one_live_leaf() -> None:
    """R94: the live rest is one node, however long it is."""
    tree = Tree()
    tree.insert("abcdefghijklmn", released=3)
    assert tree.nodes() == {"abc": False, "abcdefghijklmn": True}
    assert kinds(tree.last()) == ["Transferred", "Transferred", "Matched"]


def test_what_the_tree_has_live_is_freed_from_the_slice_once() -> None:
    """R61, R62: FULL and SWA of [start, end) of each node beyond `prev`, as one composite free each."""
    tree = Tree()
    tree.insert("abcdef")
    tree.insert("abcxyz")
    ended = tree.insert("abcdefgh", prev=2)
    freed = [event for event in tree.last() if isinstance(event, Freed)]
    assert [(len(event.full) // 4, len(event.swa) // 4) for event in freed] == [(1, 1), (3, 3)]
    assert {label(event.cause) for event in freed} == {"insert/duplicate"}
    assert ended.prefix == 6


BRANCHES = [
    (0, 0, "heal 8", {"abcdefgh": True}),
    (2, 0, "heal 6, cut at 2", {"ab": False, "abcdefgh": True}),
    (0, 3, "free 3, heal 5, cut at 3", {"abc": False, "abcdefgh": True}),
    (2, 5, "free 3, heal 3, cut at 5", {"abcde": False, "abcdefgh": True}),
    (0, 8, "free 8", {"abcdefgh": False}),
    (3, 9, "free 5", {"abcdefgh": False}),
]
"""prev, released, what happens to the slice over a tombstone of 8 pages, and what its nodes are then."""


def branch(events: Sequence[AnyEvent]) -> str:
    """What an insert did to the nodes that it ran over, in words."""
    words = []
    for event in events:
        if isinstance(event, Freed) and label(event.cause) == "insert/duplicate":
            words.append(f"free {len(event.full) // 4}")
        elif isinstance(event, Healed):
            words.append(f"heal {len(event.fresh) // 4}")
    cuts = [len(event.full) // 4 for event in events if isinstance(event, Split)]
    return ", ".join(words + [f"cut at {at}" for at in cuts])


@pytest.mark.parametrize(("prev", "released", "told", "nodes"), BRANCHES)
def test_a_tombstone_takes_one_of_three_branches(
    prev: int, released: int, told: str, nodes: dict[str, bool]
) -> None:
    """R83-R86, R96: by where the request's SWA is live; what `prev` covers has no fresh pages to adopt (A12)."""
    tree = Tree()
    tree.insert("abcdefgh" + "ijkl")
    tree.insert("abcdefgh" + "z")
    tree.tombstone("abcdefgh")
    before = tree.rank.state.full.available
    tree.insert("abcdefgh" + "ijkl", prev=prev, released=released)
    events = tree.last()
    assert (
        branch([event for event in events if not (isinstance(event, Freed) and len(event.full) == 16)])
        == told
    )
    own = {"abcdefghijkl": True, "abcdefghz": True}
    assert tree.nodes() == nodes | own
    assert tree.rank.state.full.available == before, "the tree holds as many FULL pages as before"
    assert [event.mode for event in events if isinstance(event, Healed)] in ([], [HealMode.REPLACE])


def test_full_pages_that_another_request_reads_are_never_replaced() -> None:
    """A13, R90: where the route would free them, the mapping moves and the fresh pages are freed."""
    tree = Tree()
    tree.insert("abcdefgh" + "ijkl")
    tree.insert("abcdefgh" + "z")
    reader = tree.begin("abcdefgh" + "ijkl" + "m")
    tree.tombstone("abcdefgh")
    row = tree.rank.state.rows.full_table[tree.rank.state.row_of(reader), :12].copy()
    tree.insert("abcdefgh" + "y")
    (healed,) = [event for event in tree.last() if isinstance(event, Healed)]
    assert healed.mode == HealMode.TRANSFER
    assert pages_of(tree.node("abcdefgh").full).tolist() == row[:8].tolist()
    assert tree.rank.state.rows.full_table[tree.rank.state.row_of(reader), :12].tolist() == row.tolist()
    tree.rank.finish(reader, None)
    tree.last()


def test_an_insert_that_adds_nothing_refreshes_its_path_all_the_same() -> None:
    """Every walked node becomes the youngest: told as a `Matched` of the insert, which asks no window."""
    tree = Tree()
    tree.insert("abcdef")
    tree.insert("uvwxyz")
    tree.insert("abcdef")
    (matched,) = [event for event in tree.last() if isinstance(event, Matched)]
    assert (label(matched.cause), matched.full_only, matched.hit) == ("insert", True, 6)
    tree.rank.evict(1, 0)
    assert set(tree.nodes()) == {"abcdef"}


# -- requests ------------------------------------------------------------------------------------------------


def test_a_request_looks_its_own_path_up_by_the_rule_of_every_match() -> None:
    """R72 differs on purpose: a `Matched` of its own, gated by the window, tells where it goes on (R149, R260)."""
    tree = Tree()
    tree.insert("abcd" + "efgh")
    request = tree.begin("abcdijklmnop", 8)
    assert tree.rank.cache_unfinished(request, key("abcdijkl")) == 8
    events = tree.last()
    assert kinds(events) == ["Transferred", "Matched", "Repointed", "Locked", "Unlocked"]
    matched, repointed = events[1], events[2]
    assert isinstance(matched, Matched)
    assert isinstance(repointed, Repointed)
    assert (matched.request, matched.full_only, label(matched.cause)) == (request, False, "unfinished")
    assert (matched.hit, repointed.protected, repointed.node) == (8, 8, matched.node)
    locked, unlocked = events[3], events[4]
    assert isinstance(locked, Locked)
    assert isinstance(unlocked, Unlocked)
    assert (locked.node, locked.skipped) == (matched.node, b"")


def test_an_unfinished_request_names_the_pages_that_the_tree_had() -> None:
    """R149, R96: its row is re-pointed over [old prefix, new length), its duplicates are freed once (R147)."""
    tree = Tree()
    first, second = tree.begin("abcdefgh"), tree.begin("abcdefgh")
    tree.rank.cache_unfinished(first, key("abcdefgh"))
    tree.last()
    assert tree.rank.cache_unfinished(second, key("abcdefgh")) == 8
    events = tree.last()
    assert kinds(events) == ["Freed", "Matched", "Repointed", "Locked"]
    rows = tree.rank.state.rows.full_table
    assert (
        rows[second & 63 & tree.rank.state.rows.mask, :8].tolist()
        == rows[first & tree.rank.state.rows.mask, :8].tolist()
    )
    tree.rank.finish(first, None)
    tree.rank.finish(second, None)
    assert tree.rank.state.full.available == 64 - 8


def test_a_finished_request_frees_its_tail_and_a_retracted_one_all_of_its_own() -> None:
    """R147, R148, A45: from the cached length, or from the protected one; never the tree's."""
    tree = Tree()
    request = tree.begin("abcdefgh" + "ij")
    tree.rank.cache_unfinished(request, key("abcdefgh"))
    tree.last()
    tree.rank.retract(request)
    freed = [event for event in tree.last() if isinstance(event, Freed)]
    assert [(len(event.full) // 4, label(event.cause)) for event in freed] == [(2, "retract/tail")]
    again = tree.begin("abcdefgh" + "ij" + "k")
    tree.rank.finish(again, key("abcdefgh" + "ij"))
    freed = [event for event in tree.last() if isinstance(event, Freed)]
    assert [(len(event.full) // 4, label(event.cause)) for event in freed] == [(1, "finish/tail")]
    assert tree.nodes() == {"abcdefgh": True, "abcdefghij": True}


def test_a_request_gives_back_what_lies_below_its_window_and_nothing_of_the_trees() -> None:
    """R129-R132, R135, R127: protected 4, pre 16: the cursor goes to 11, [4, 11) is unmapped, [11, 17) is mapped."""
    tree = Tree()
    tree.insert("abcd")
    request = tree.begin("abcd" + "efghijklmnopq")
    assert tree.rank.reclaim(request, 16) == TokenCount(11)
    (reclaimed,) = [event for event in tree.last() if isinstance(event, Reclaimed)]
    assert (reclaimed.start, reclaimed.stop, len(reclaimed.swa) // 4) == (4, 11, 7)
    row = Pages(tree.rank.state.rows.full_table[tree.rank.state.row_of(request), :17].tobytes())
    mapped = [bool(swa) for swa in pages_of(tree.rank.state.mapping.swa_pages(row)).tolist()]
    assert mapped == [True] * 4 + [False] * 7 + [True] * 6
    tree.rank.finish(request, key("abcd" + "efghijklmnopq"))
    assert tree.nodes() == {"abcd": True, "abcdefghijk": False, "abcdefghijklmnopq": True}
    tree.last()


def test_what_a_reclaimed_request_caches_ends_in_a_window() -> None:
    """R96, R259: both caching paths say how far its SWA is gone; what would end without a window is refused."""
    tree = Tree()
    request = tree.begin("abcdefghijklmnop")
    tree.rank.reclaim(request, 15)
    with pytest.raises(Refusal, match="R259"):
        tree.rank.cache_unfinished(request, key("abcdefghijklm"))
    assert tree.rank.cache_unfinished(request, key("abcdefghijklmnop")) == 16
    assert tree.nodes() == {"abcdefghij": False, "abcdefghijklmnop": True}
    tree.last()


# -- what it can be built with -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value"), [("tombstone_leaf", "materialise"), ("swa_victims", "use"), ("eviction", "slru")]
)
def test_no_policy_changes_the_rules_of_the_rollback_route(field: str, value: str) -> None:
    """R6, R24: they are refused by name before anything is built."""
    whole = opened(Shape(1, WINDOW, 16, 16, route="legacy"))
    with pytest.raises(BadConfig) as bad:
        checked(replace(whole, config=replace(whole.config, **{field: value})))
    assert bad.value.field == field


def test_the_transferred_nodes_of_a_long_insert_are_at_most_two() -> None:
    """R94, R95: whatever its length."""
    tree = Tree()
    tree.insert("abcdefghijklmnopqrstuvwxyz", released=20)
    assert [len(event.full) // 4 for event in tree.last() if isinstance(event, Transferred)] == [20, 6]
