"""Faults of locks and cuts that people met in the field: whose count went below zero, what was evicted in use."""

import pytest

from radixledger.cache.faces.tree_view import TreeNode
from radixledger.cache.refusals import Busy, Refusal
from radixledger.journal.events import Tombstoned

from ..cache.server import FULL, SWA, Server, path, shape, text


def locked_counts(server: Server, node: TreeNode) -> list[tuple[int, int, int]]:
    """(where it ends, FULL count, SWA count) of each node from the root down to `node`."""
    found: list[tuple[int, int, int]] = []
    walk: TreeNode | None = node
    while walk is not None and walk.parent is not None:
        data = walk.component_data
        found.insert(0, (walk.path_slots.size, data[FULL].lock_ref, data[SWA].lock_ref))
        walk = walk.parent
    return found


def test_a_window_lock_and_its_release_walk_the_same_nodes_though_one_was_cut() -> None:
    """B49: P=2, W=8, a[0:12) in three nodes; the boundary node is cut at 6, and nobody goes below zero."""
    server = Server(2, 8, full_pages=32, swa_pages=32)
    leaf = server.match(path(server, "LL LL LL")).last_device_node
    receipt = server.cache.inc_lock_ref(leaf).to_dec_params()
    assert locked_counts(server, leaf) == [(4, 1, 0), (8, 1, 1), (12, 1, 1)]
    server.insert(text("a", 0, 6) + text("x", 0, 2))
    assert locked_counts(server, leaf) == [(4, 1, 0), (6, 1, 1), (8, 1, 1), (12, 1, 1)]
    server.cache.dec_lock_ref(leaf, receipt)
    assert locked_counts(server, leaf) == [(4, 0, 0), (6, 0, 0), (8, 0, 0), (12, 0, 0)]
    assert server.sizes()["full_protected"] == server.sizes()["swa_protected"] == 0
    server.check()


def test_a_boundary_survives_two_cuts_of_its_node() -> None:
    """B51: P=2, W=8, X[8:16) is cut at 12 and then at 10; the mark is at [8:10), A is never counted."""
    server = Server(2, 8, full_pages=32, swa_pages=32)
    leaf = server.match(path(server, "LLLL LLLL")).last_device_node
    receipt = server.cache.inc_lock_ref(leaf).to_dec_params()
    for stop in (12, 10):
        server.insert(text("a", 0, stop) + text("x", stop, stop + 2))
        assert locked_counts(server, leaf)[0] == (8, 1, 0)
    assert locked_counts(server, leaf) == [(8, 1, 0), (10, 1, 1), (12, 1, 1), (16, 1, 1)]
    marked = [node for node in server.rank().state.nodes.values() if node.boundary]
    assert [(node.end * 2, node.boundary) for node in marked] == [(10, receipt.swa_uuid_for_lock)]
    server.cache.dec_lock_ref(leaf, receipt)
    assert locked_counts(server, leaf) == [(8, 0, 0), (10, 0, 0), (12, 0, 0), (16, 0, 0)]
    server.check()


def test_a_branch_in_use_cannot_be_detached_and_a_late_release_meets_no_other_tree() -> None:
    """B54: flush is refused, evict gains nothing; after both handle and receipt are stale and say so."""
    server = Server(4, 4)
    node = server.match(path(server, "LL")).last_device_node
    receipt = server.cache.inc_lock_ref(node).to_dec_params()
    with pytest.raises(Busy, match="locks"):
        server.cache.reset()
    assert server.evict(99, 99) == (0, 4)
    assert server.hit(text("a", 0, 8)) == 8
    server.cache.dec_lock_ref(node, receipt)
    server.cache.reset()
    path(server, "LL")
    for late in (lambda: server.cache.dec_lock_ref(node, receipt), lambda: server.cache.inc_lock_ref(node)):
        with pytest.raises(Refusal):
            late()
    with pytest.raises(LookupError):
        _ = node.component_data
    assert server.sizes()["full_protected"] == server.sizes()["swa_protected"] == 0
    server.check()


@pytest.mark.parametrize("locked", [1, 2])
def test_a_lock_counts_the_node_that_it_is_taken_on(locked: int) -> None:
    """B55: and its ancestors; whatever is asked, they stay."""
    server = Server(4, 8)
    tokens = path(server, "L L")
    node = server.match(tokens[: 4 * locked]).last_device_node
    server.cache.inc_lock_ref(node)
    assert locked_counts(server, node) == [(4, 1, 1), (8, 1, 1)][:locked]
    assert server.evict(99, 99) == (4 * (2 - locked),) * 2
    assert server.sizes()["full_protected"] == 4 * locked
    assert server.hit(tokens) == 4 * locked
    server.check()


def test_swa_pressure_on_a_path_that_only_full_locks_hold_takes_its_windows_and_nothing_else() -> None:
    """B57: a request at length 24 needs its last window; a[0:8) loses SWA, stays in FULL, and goes later without SWA."""
    server = Server(4, 4)
    tokens = path(server, "L L")
    runner = server.start(tokens + text("x", 0, 16))
    server.cache_so_far(runner)
    before = server.sizes()
    assert server.evict(swa=8) == (0, 8)
    assert server.sizes()["swa_free"] == before["swa_free"] + 8
    assert server.sizes()["full_protected"] == 24
    assert shape(server, tokens) == "d d"
    assert len(server.journal.of(Tombstoned)) == 2
    server.decode(runner)
    server.end(runner, insert=False)
    gained = server.evict(full=99)
    assert gained[0] == 24
    assert gained[1] == 16
    assert server.sizes()["full_free"] == server.sizes()["swa_free"] == 64
    server.check()


def test_a_cut_falls_on_a_page() -> None:
    """B60: a[0:8) and a[0:6)+b share [0:4); 16 tokens are cached in 4 pages, and the duplicate page is free."""
    server = Server(4, 8, full_pages=8, swa_pages=8)
    server.insert(text("a", 0, 8))
    server.insert(text("a", 0, 6) + text("b", 6, 12))
    assert server.cache.total_size()[0] == 16
    assert server.sizes()["full_free"] == 16
    root = server.match([]).last_device_node
    (shared,) = root.children
    assert len(shared.key) == 4
    sizes = []
    for child in shared.children:
        below = child
        size = len(below.key)
        while below.children:
            (below,) = below.children
            size += len(below.key)
        sizes.append(size)
    assert sorted(sizes) == [4, 8]
    assert server.hit(text("a", 0, 6) + text("b", 6, 12)) == 12
    server.check()
