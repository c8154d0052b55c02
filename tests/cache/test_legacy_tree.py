"""The legacy SWA radix tree, sentence by sentence: matches, eviction, locks; beside the unified one where they differ.

Page 1 and window 4: a letter of a text is a page and a token.
"""

from itertools import product

import pytest

from radixledger.cache.decide.eviction import Gain
from radixledger.cache.refusals import Refusal
from radixledger.journal.causes import label
from radixledger.journal.events import (
    Evicted,
    Matched,
    Removed,
    Split,
    Stop,
    Tombstoned,
)
from radixledger.journal.units import ROOT, TO_ROOT

from .legacy_tree import WINDOW, Tree, key, kinds, of, spelled

# -- match ---------------------------------------------------------------------------------------------------


def built(route: str, pattern: str) -> Tree:
    """A path of nodes of two pages, `d` for a tombstone and `L` for a live one; a live leaf ends it."""
    tree = Tree(route)
    text = "".join(chr(ord("a") + at) * 2 for at in range(len(pattern)))
    tree.insert(text)
    for at in range(1, len(pattern)):
        tree.insert(text[: 2 * at] + "z")
    for at, mark in enumerate(pattern):
        if mark == "d":
            tree.tombstone(text[: 2 * at + 2])
    return tree


def allowed(pattern: str) -> int:
    """Pages of the deepest boundary, by trying all of them: live for a window before it, or from the root."""
    marks = "".join(mark * 2 for mark in pattern)
    return max(stop for stop in range(0, len(marks) + 1, 2) if "d" not in marks[max(0, stop - WINDOW) : stop])


@pytest.mark.parametrize("pattern", ["".join(marks) + "L" for marks in product("Ld", repeat=4)])
def test_a_match_ends_at_the_last_committed_boundary(pattern: str) -> None:
    """R73-R76, R2: whichever nodes are tombstones, the counter finds what trying every boundary finds."""
    tree = built("legacy", pattern)
    text = "".join(chr(ord("a") + at) * 2 for at in range(len(pattern)))
    assert tree.rank.peek(key(text)).tokens == allowed(pattern)
    hit = tree.match(text)
    assert (hit.tokens, hit.full_tokens) == (allowed(pattern), len(text))
    assert hit.stop == (Stop.END_OF_KEY if hit.tokens == len(text) else Stop.WINDOW_DEAD)
    tree.last()


@pytest.mark.parametrize(("route", "cut"), [("legacy", True), ("unified", False)])
def test_a_node_is_cut_where_the_walk_ends_even_if_its_window_is_dead(route: str, cut: bool) -> None:
    """The unified route cuts where the usable prefix ends, and only there."""
    tree = Tree(route)
    tree.insert("abcdefgh" + "ij", released=8)
    hit = tree.match("abcde")
    assert (hit.tokens, hit.full_tokens, hit.node) == (0, 5, ROOT)
    assert bool(of(tree.last(), Split)) is cut
    assert ("abcde" in tree.nodes()) is cut


def test_a_match_within_a_live_leaf_cuts_it() -> None:
    """R82, R114: the boundary mark and the lock counts go to the older part, which every lock runs through."""
    tree = Tree()
    leaf = tree.insert("abcdefgh").node
    receipt = tree.rank.lock(leaf.id)
    hit = tree.match("abcde")
    assert hit.tokens == 5
    upper, lower = tree.node("abcde"), tree.node("abcdefgh")
    assert (upper.swa_locks, lower.swa_locks) == (1, 1)
    assert (upper.boundary, lower.boundary) == (receipt.boundary, TO_ROOT)
    tree.rank.unlock(receipt)
    assert (upper.swa_locks, lower.swa_locks, upper.holds, lower.holds) == (0, 0, 0, 0)
    tree.last()


def swa_victims(tree: Tree) -> list[str]:
    """The paths of the nodes whose windows SWA pressure takes, in order."""
    found: list[str] = []
    while tree.rank.state.swa_evictable:
        names = {node.id: spelled(node) for node in tree.rank.state.nodes.values()}
        tree.last()
        tree.rank.evict(0, 1)
        gone = [event for event in tree.last() if isinstance(event, Tombstoned | Removed)]
        found += [names[event.node] for event in gone if event.swa]
    return found


@pytest.mark.parametrize(
    ("route", "order"),
    [
        ("legacy", ["uvwx", "abcd", "abcdef", "abcdefghij"]),
        ("unified", ["abcd", "abcdef", "uvwx", "abcdefghij"]),
    ],
)
def test_a_match_refreshes_its_whole_path_and_not_its_last_window_alone(route: str, order: list[str]) -> None:
    """R77, R79 differ on purpose: a long conversation keeps an ancestor outside every window younger than what others
    used before, so other paths lose their windows first (B120, B122).
    """
    tree = Tree(route)
    tree.insert("abcd")
    tree.insert("abcd" + "ef")
    tree.insert("abcd" + "ef" + "ghij")
    tree.insert("uvwx")
    tree.match("abcd" + "ef" + "ghij")
    assert swa_victims(tree) == order


def test_what_was_walked_beyond_the_usable_prefix_is_refreshed_too() -> None:
    """`Matched` names the end of the walk, so that a replay refreshes what the live tree refreshed."""
    tree = Tree()
    tree.insert("abcdefgh" + "ij", released=8)
    tree.insert("k" * 5)
    hit = tree.match("abcdefgh" + "ij")
    (matched,) = of(tree.last(), Matched)
    assert isinstance(matched, Matched)
    assert (hit.tokens, matched.hit, matched.node) == (0, 0, ROOT)
    assert matched.walked == tree.node("abcdefghij").id
    assert tree.rank.evict(1, 0) == Gain(5, 5), "the leaf that was walked is younger than the other"


def test_a_forced_miss_moves_nothing() -> None:
    tree = Tree()
    tree.insert("abcd")
    tree.insert("efgh")
    tree.last()
    assert tree.rank.match(key("ab"), force_miss=True).full_tokens == 2
    assert kinds(tree.last()) == ["Matched"]
    assert set(tree.nodes()) == {"abcd", "efgh"}
    tree.rank.evict(1, 0)
    assert set(tree.nodes()) == {"efgh"}


# -- eviction ------------------------------------------------------------------------------------------------


def deep(tree: Tree, released: int = 8) -> None:
    """Tombstones "abcd" and "abcdefgh" above one live leaf, and a younger path beside."""
    tree.insert("abcdefgh" + "ij", released=released)
    tree.match("abcd")
    tree.insert("uvwx")


def test_full_pressure_takes_a_leaf_and_the_childless_tombstones_above_it() -> None:
    """A leaf is never a tombstone: two are cleaned up, and what the pools gained is told exactly (R105, R106)."""
    tree = Tree()
    deep(tree)
    assert tree.nodes() == {"abcd": False, "abcdefgh": False, "abcdefghij": True, "uvwx": True}
    tree.last()
    full, swa = tree.rank.state.full.available, tree.rank.state.swa.available
    tree.match("uvwx")
    tree.last()
    assert tree.rank.evict(1, 2) == Gain(10, 2)
    removed = [event for event in tree.last() if isinstance(event, Removed)]
    assert [(len(event.full) // 4, len(event.swa) // 4, label(event.cause)) for event in removed] == [
        (2, 2, "evict/full_leaf"),
        (4, 0, "evict/childless_tombstone"),
        (4, 0, "evict/childless_tombstone"),
    ]
    assert (tree.rank.state.full.available - full, tree.rank.state.swa.available - swa) == (10, 2)
    assert set(tree.nodes()) == {"uvwx"}


def test_the_unified_route_leaves_such_a_tombstone_as_a_leaf() -> None:
    """A difference with a name: there FULL pressure takes it in its turn."""
    tree = Tree("unified")
    tree.insert("abcdefgh" + "ij", released=8)
    tree.insert("uvwx")
    tree.match("uvwx")
    tree.rank.evict(1, 0)
    assert tree.nodes() == {"abcdefgh": False, "uvwx": True}


def test_the_clean_up_stops_at_the_first_node_that_is_still_good_for_something() -> None:
    """A live parent stays, and so does a tombstone with another child."""
    tree = Tree()
    deep(tree)
    tree.insert("abcd" + "mn", prev=4, released=4)
    tree.match("abcd" + "mn")
    tree.match("uvwx")
    assert tree.rank.evict(1, 0) == Gain(6, 2)
    assert tree.nodes() == {"abcd": False, "abcdmn": True, "uvwx": True}
    tree.insert("uvwx" + "yz")
    tree.match("abcd" + "mn")
    assert tree.rank.evict(1, 0) == Gain(2, 2)
    assert tree.nodes() == {"abcd": False, "abcdmn": True, "uvwx": True}
    tree.last()


def test_swa_pressure_tombstones_inner_nodes_and_deletes_leaves() -> None:
    """R99, R104, R110: oldest unlocked first; a deleted leaf takes its childless tombstones along."""
    tree = Tree()
    tree.insert("abcdefgh")
    tree.insert("abcdxyz")
    tree.last()
    assert tree.rank.evict(0, 1) == Gain(4, 4)
    tree.last()
    assert tree.nodes() == {"abcd": True, "abcdxyz": True}, (
        "the older leaf went: it was used before the others"
    )
    tree.insert("abcdefgh")
    tree.last()
    receipts = [tree.rank.lock(tree.node(text).id) for text in ("abcdxyz",)]
    tree.rank.unlock(receipts.pop())
    assert tree.rank.state.totals.tombstones == 0
    gains = []
    while tree.rank.state.swa_evictable:
        tree.last()
        gains.append(tree.rank.evict(0, 1))
    (evicted,) = [event for event in tree.last() if isinstance(event, Evicted)]
    assert gains == [Gain(3, 3), Gain(0, 4), Gain(8, 4)]
    assert (evicted.events, evicted.gained_full, evicted.gained_swa) == (2, 8, 4)
    assert (tree.nodes(), tree.rank.state.totals.tombstones) == ({}, 1)


def test_a_locked_leaf_and_its_path_stay() -> None:
    """R102, R109: no pressure takes what a receipt holds; what lies above the window may lose its SWA."""
    tree = Tree()
    tree.insert("abcdef")
    tree.insert("abcdef" + "ghij")
    receipt = tree.rank.lock(tree.node("abcdefghij").id)
    assert tree.rank.evict(99, 99) == Gain(0, 6)
    assert tree.nodes() == {"abcdef": False, "abcdefghij": True}
    tree.rank.unlock(receipt)
    assert tree.rank.evict(99, 99) == Gain(10, 4)
    assert tree.nodes() == {}
    tree.last()


def test_full_recency_is_of_every_node_and_swa_recency_of_live_ones() -> None:
    """R67, R81: a tombstone waits in no SWA order, and keeps its place among FULL victims."""
    tree = Tree()
    tree.insert("abcdefgh" + "ij")
    tree.insert("abcdefgh" + "z")
    tree.tombstone("abcdefgh")
    stamp = tree.node("abcdefgh").swa_tick
    tree.match("abcdefgh" + "ij")
    assert tree.node("abcdefgh").swa_tick == stamp
    tree.rank.evict(1, 0)
    assert tree.nodes() == {"abcdefgh": False, "abcdefghij": True}, "the leaf that was used last stays"


# -- locks ---------------------------------------------------------------------------------------------------


def test_a_lock_holds_live_nodes_upward_until_they_fill_the_window() -> None:
    """R111, R116, R117, R119: two locks share the mark of a window; one that reaches the root has none."""
    tree = Tree()
    tree.insert("abcdef")
    tree.insert("abcdef" + "gh")
    tree.insert("abcdef" + "gh" + "i")
    leaf, other = tree.node("abcdefghi"), tree.insert("xyz").node
    first, second = tree.rank.lock(leaf.id), tree.rank.lock(leaf.id)
    assert first == second
    assert first.boundary == tree.node("abcdef").boundary != TO_ROOT
    assert [node.swa_locks for node in (leaf, tree.node("abcdefgh"), tree.node("abcdef"))] == [2, 2, 2]
    assert tree.rank.state.swa_protected == 9
    tree.rank.unlock(first)
    assert tree.rank.state.swa_protected == 9
    tree.rank.unlock(second)
    assert (tree.rank.state.swa_protected, tree.node("abcdef").boundary) == (0, first.boundary)
    assert tree.rank.lock(other.id).boundary == TO_ROOT
    tree.last()


def test_a_lock_over_a_tombstone_is_refused() -> None:
    """No tombstone may lie in the segment; the unified route counts it by position and keeps its number (A21)."""
    for route in ("legacy", "unified"):
        tree = Tree(route)
        tree.insert("abcdefgh" + "ij", released=8)
        node = tree.node("abcdefghij")
        if route == "unified":
            assert len(tree.rank.lock(node.id).skipped) == 1
        else:
            with pytest.raises(Refusal, match="a lock of the legacy route passes none"):
                tree.rank.lock(node.id)
            assert (node.anchors, tree.rank.state.full_protected) == (0, 0)
        tree.last()
