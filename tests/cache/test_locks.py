"""Segment locks: what they hold, what their receipts say, and that whatever happens between is balanced."""

import pytest

from radixledger.cache.faces.tree_view import TreeNode
from radixledger.cache.prefix_cache import DecLockRefParams, IncLockRefResult
from radixledger.cache.refusals import Refusal
from radixledger.cache.state import State
from radixledger.journal.events import Locked

from .driven import SHAPES, Driven
from .server import FULL, SWA, Server, path, shape, text

paged = pytest.mark.parametrize("page_size", [1, 16, 128, 256])


def roomy(page_size: int, window_pages: int, **changes: int) -> Server:
    return Server(page_size, page_size * window_pages, full_pages=64, swa_pages=64, **changes)  # type: ignore[arg-type]


def lock(server: Server, tokens: list[int], dp_rank: int | None = None) -> tuple[TreeNode, IncLockRefResult]:
    node = server.match(tokens, dp_rank, full_only=True).last_device_node
    return node, server.cache.inc_lock_ref(node)


def counts(server: Server, tokens: list[int]) -> list[tuple[int, int]]:
    """(FULL, SWA) lock counts of the nodes of a path, from the root down; nothing is cut."""
    page_size = server.page_size
    found: list[tuple[int, int]] = []
    hit = server.rank().peek(b"".join(t.to_bytes(4, "little") for t in tokens), full_only=True)
    assert hit.full_tokens == len(tokens) // page_size * page_size
    node: TreeNode | None = TreeNode(server.rank(), hit.node)
    while node is not None and node.parent is not None:
        data = node.component_data
        found.insert(0, (data[FULL].lock_ref, data[SWA].lock_ref))
        node = node.parent
    return found


def is_balanced(state: State) -> bool:
    """No lock is left anywhere, and the sizes say so."""
    counted = all(not (node.anchors or node.swa_locks or node.holds) for node in state.nodes.values())
    return counted and state.full_protected == state.swa_protected == 0


@paged
def test_a_lock_holds_the_whole_path_in_full_and_the_last_window_in_swa(page_size: int) -> None:
    """R111: also where it is taken on a node above others, of which it holds none."""
    server = roomy(page_size, 2)
    tokens = path(server, "L L L L L")
    node, result = lock(server, tokens[: 4 * page_size])
    assert counts(server, tokens) == [(1, 0), (1, 0), (1, 1), (1, 1), (0, 0)]
    assert server.sizes()["full_protected"] == 4 * page_size
    assert server.sizes()["swa_protected"] == 2 * page_size
    server.cache.dec_lock_ref(node, result.to_dec_params())
    assert is_balanced(server.rank().state)
    server.check()


@paged
def test_a_receipt_names_the_boundary_and_the_tombstones_that_it_passed(page_size: int) -> None:
    """R112, R113: the boundary is a mark of the node where the window is full, and positions count tombstones too (A21)."""
    server = roomy(page_size, 3)
    tokens = path(server, "L dL L")
    node, result = lock(server, tokens)
    gap = [each for each in server.rank().state.nodes.values() if each.parent and not each.swa]
    assert result.skip_lock_node_ids == {SWA: [gap[0].id]}
    assert result.swa_uuid_for_lock == gap[0].boundary != 0
    assert counts(server, tokens) == [(1, 0), (1, 1), (1, 1), (1, 1)]
    params = result.to_dec_params()
    assert params == DecLockRefParams(result.swa_uuid_for_lock, {SWA: [gap[0].id]})
    server.cache.dec_lock_ref(node, params)
    assert is_balanced(server.rank().state)
    server.check()


@paged
def test_a_cut_moves_the_boundary_mark_to_the_older_part(page_size: int) -> None:
    """R114: one node has it before and after."""
    server = roomy(page_size, 4)
    tokens = path(server, "LLLL LLLL")
    _, result = lock(server, tokens)
    assert [node.boundary for node in server.rank().state.nodes.values() if node.boundary] == [1]
    server.insert(tokens[: 6 * page_size] + text("x", 0, page_size))
    upper = server.match(tokens[: 6 * page_size]).last_device_node
    marked = [node.id for node in server.rank().state.nodes.values() if node.boundary]
    assert marked == [upper.id]
    assert server.rank().state.nodes[upper.id].boundary == result.swa_uuid_for_lock
    server.check()


@paged
def test_a_cut_leaves_both_halves_locked(page_size: int) -> None:
    """R115."""
    server = roomy(page_size, 4)
    tokens = path(server, "LLLL LLLL")
    node, result = lock(server, tokens)
    server.insert(tokens[: 6 * page_size] + text("x", 0, page_size))
    assert counts(server, tokens) == [(1, 0), (1, 1), (1, 1)]
    assert server.sizes()["full_protected"] == 8 * page_size
    assert server.sizes()["swa_protected"] == 4 * page_size
    server.cache.dec_lock_ref(node, result.to_dec_params())
    assert is_balanced(server.rank().state)
    server.check()


@paged
def test_two_locks_of_one_window_share_its_mark_and_are_released_one_by_one(page_size: int) -> None:
    """R116, R117: the mark stays on the node when they are gone."""
    server = roomy(page_size, 2)
    tokens = path(server, "L L L")
    node, first = lock(server, tokens)
    _, second = lock(server, tokens)
    assert first.swa_uuid_for_lock == second.swa_uuid_for_lock
    seen = []
    for result in (first, second):
        seen.append(counts(server, tokens)[-1])
        server.cache.dec_lock_ref(node, result.to_dec_params())
    assert seen == [(2, 2), (1, 1)]
    assert is_balanced(server.rank().state)
    marks = [each.boundary for each in server.rank().state.nodes.values() if each.boundary]
    assert marks == [first.swa_uuid_for_lock]
    _, again = lock(server, tokens)
    assert again.swa_uuid_for_lock == first.swa_uuid_for_lock
    assert [event.marked for event in server.journal.of(Locked)][1:] == [0, 0]
    server.check()


@paged
@pytest.mark.parametrize("dp_size", [1, 2])
def test_pages_become_protected_with_the_first_lock_and_evictable_with_the_last(
    page_size: int, dp_size: int
) -> None:
    """R118: per component and rank."""
    server = roomy(page_size, 1, dp_size=dp_size)
    rank = dp_size - 1
    dp_rank = rank if dp_size > 1 else None
    tokens = path(server, "L L L", dp_rank=dp_rank)
    path(server, "L", "b", dp_rank=dp_rank)
    held = []
    seen = []
    for stop in (3, 2):
        held.append(lock(server, tokens[: stop * page_size], dp_rank))
        seen.append(protected(server, rank))
    for node, result in held:
        server.cache.dec_lock_ref(node, result.to_dec_params())
        seen.append(protected(server, rank))
    assert seen == [(3, 1), (3, 2), (2, 1), (0, 0)]
    assert server.cache.full_evictable_size(rank) == server.cache.swa_evictable_size(rank) == 4 * page_size
    if dp_size > 1:
        assert set(server.sizes(0).values()) == {64 * page_size, 0}
    server.check()


def protected(server: Server, rank: int) -> tuple[int, int]:
    sizes = server.sizes(rank)
    page_size = server.page_size
    assert sizes["full_evictable"] + sizes["full_protected"] == 4 * page_size
    assert sizes["swa_evictable"] + sizes["swa_protected"] == 4 * page_size
    return sizes["full_protected"] // page_size, sizes["swa_protected"] // page_size


@paged
def test_a_lock_of_a_path_shorter_than_the_window_runs_to_the_root(page_size: int) -> None:
    """R119: without a boundary, and so does its release."""
    server = roomy(page_size, 4)
    tokens = path(server, "L L")
    node, result = lock(server, tokens)
    assert result.swa_uuid_for_lock is None
    assert counts(server, tokens) == [(1, 1), (1, 1)]
    server.cache.dec_lock_ref(node, None)
    assert is_balanced(server.rank().state)
    root = server.match([]).last_device_node
    server.cache.dec_lock_ref(root, server.cache.inc_lock_ref(root).to_dec_params())
    server.check()


@paged
def test_a_tombstone_that_is_healed_under_a_lock_stays_balanced_and_is_protected(page_size: int) -> None:
    """R120, R123: it was counted at the lock and is counted down at the release (B9, A14)."""
    server = roomy(page_size, 3)
    tokens = path(server, "L dL L")
    node, result = lock(server, tokens)
    assert server.sizes()["swa_protected"] == 2 * page_size
    evictable = server.sizes()["swa_evictable"]
    server.insert(tokens)
    assert shape(server, tokens) == "L L L L"
    assert server.sizes()["swa_protected"] == 3 * page_size
    assert server.sizes()["swa_evictable"] == evictable
    other, second = lock(server, tokens)
    server.cache.dec_lock_ref(node, result.to_dec_params())
    assert counts(server, tokens) == [(1, 0), (1, 1), (1, 1), (1, 1)]
    server.cache.dec_lock_ref(other, second.to_dec_params())
    assert is_balanced(server.rank().state)
    server.check()


@paged
def test_a_tombstone_that_is_cut_under_a_lock_leaves_no_part_unlocked(page_size: int) -> None:
    """R121: both parts are held and both are let go (A22, B13)."""
    server = roomy(page_size, 5)
    tokens = path(server, "L dddL L")
    node, result = lock(server, tokens)
    assert counts(server, tokens) == [(1, 0), (1, 1), (1, 1), (1, 1)]
    server.insert(tokens, released=3 * page_size)
    assert shape(server, tokens) == "L dd L L L"
    assert counts(server, tokens) == [(1, 0)] + [(1, 1)] * 4
    server.cache.dec_lock_ref(node, result.to_dec_params())
    assert is_balanced(server.rank().state)
    server.check()


@paged
def test_a_release_that_nothing_was_locked_for_is_refused(page_size: int) -> None:
    """R122: no count goes below zero, whichever half of the receipt is wrong."""
    server = roomy(page_size, 2)
    tokens = path(server, "L L L")
    node, result = lock(server, tokens)
    above = node.parent
    assert above is not None
    good = result.to_dec_params()
    before = server.rank().digest()
    for where, params in (
        (above, good),
        (node, DecLockRefParams(99)),
        (node, None),
        (TreeNode(server.rank(), 99), good),
    ):
        with pytest.raises(Refusal, match="is not held"):
            server.cache.dec_lock_ref(where, params)
    assert server.rank().digest() == before
    server.cache.dec_lock_ref(node, good)
    with pytest.raises(Refusal, match="is not held"):
        server.cache.dec_lock_ref(node, good)
    assert is_balanced(server.rank().state)
    with pytest.raises(Refusal, match="not in the tree"):
        server.cache.inc_lock_ref(TreeNode(server.rank(), 99))
    server.check()


@paged
def test_a_live_requests_own_lock_is_not_given_back_over_its_head(page_size: int) -> None:
    """R122, R137: the receipt on the request is for its own end; another lock of the node is another receipt."""
    server = roomy(page_size, 1)
    tokens = path(server, "L L")
    req = server.start(tokens + text("x", 0, 1))
    assert req.last_node is not None
    with pytest.raises(Refusal, match=req.rid):
        server.cache.dec_lock_ref(req.last_node, req.cache_lock_params)
    other = server.cache.inc_lock_ref(req.last_node)
    assert counts(server, tokens) == [(2, 0), (2, 2)]
    server.cache.dec_lock_ref(req.last_node, other.to_dec_params())
    server.end(req)
    assert is_balanced(server.rank().state)
    server.check()


@pytest.mark.parametrize("shape_of_rank", SHAPES)
def test_after_any_run_every_lock_can_be_released_and_nothing_is_left(
    shape_of_rank: tuple[int, int, int, int],
) -> None:
    """R113, R118, R120, R121, R122: whatever was cut, healed, tombstoned or evicted in between."""
    for seed in (3, 4):
        driven = Driven(seed, shape_of_rank).run(300)
        assert not is_balanced(driven.cache.state)
        driven.drain()
        assert is_balanced(driven.cache.state)
        assert driven.cache.state.full.available == driven.cache.state.full.capacity
