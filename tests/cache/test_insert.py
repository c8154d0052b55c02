"""What an insert leaves in the tree: new leaves, where they are cut, and what is not taken."""

import pytest

from radixledger.cache.refusals import ForeignFree, Refusal
from radixledger.cache.slices import Slice
from radixledger.journal.accounts import request_account
from radixledger.journal.causes import Operation, Site, cause
from radixledger.journal.events import Freed, Transferred
from radixledger.journal.units import UNBOUND

from .server import FULL, SWA, Server, every_page_is_named_once, path, shape, text

paged = pytest.mark.parametrize("page_size", [1, 16, 128, 256])


def roomy(page_size: int, window: int, **changes: object) -> Server:
    return Server(page_size, window, full_pages=40, swa_pages=40, **changes)  # type: ignore[arg-type]


@paged
@pytest.mark.parametrize("beyond", [0, 1])
def test_a_leaf_below_the_released_length_is_not_made(page_size: int, beyond: int) -> None:
    """R93: its slots are freed, both pools, and the prefix that was there is reported (policy `veto`, A15)."""
    server = roomy(page_size, page_size)
    path(server, "L")
    before = server.sizes()
    tokens = text("a", 0, 3 * page_size)
    assert server.insert(tokens, released=(3 + beyond) * page_size).prefix_len == page_size
    assert server.sizes() == before
    assert server.match(tokens, full_only=True).device_indices.size == page_size
    assert server.journal.of(Freed)[-1].cause == cause(Operation.INSERT, Site.VETO)
    server.check()


@paged
def test_a_leaf_below_the_released_length_is_made_where_the_policy_says_so(page_size: int) -> None:
    """R93: `materialise` keeps its FULL slots as a tombstone from birth, and frees its SWA slots (A15)."""
    server = roomy(page_size, page_size, tombstone_leaf="materialise")
    tokens = text("a", 0, 3 * page_size)
    slots = server.slots(3 * page_size)
    server.insert(tokens, slots, released=3 * page_size)
    found = server.match(tokens, full_only=True)
    assert found.device_indices.tolist() == slots.tolist()
    assert shape(server, tokens) == "ddd"
    assert server.sizes()["swa_free"] == 40 * page_size
    assert server.hit(tokens) == 0
    assert server.evict(full=page_size) == (3 * page_size, 0)
    server.check()


@paged
@pytest.mark.parametrize("mapped", [True, False])
def test_a_leaf_across_the_released_length_is_a_tombstone_and_a_live_leaf(
    page_size: int, mapped: bool
) -> None:
    """R94: whether the request had given its SWA back or only says so, the tree has none of it below."""
    server = roomy(page_size, page_size)
    tokens, slots = text("a", 0, 5 * page_size), server.slots(5 * page_size)
    if not mapped:
        server.allocator.free_swa(slots[: 3 * page_size])
    server.insert(tokens, slots, released=3 * page_size)
    assert shape(server, tokens) == "ddd L L"
    assert server.sizes()["swa_free"] == 38 * page_size
    assert server.sizes()["full_free"] == 35 * page_size
    assert every_page_is_named_once(server.rank())
    server.check()


@pytest.mark.parametrize(
    ("page_size", "window", "tokens", "nodes"),
    [
        (1, 4, 12, [8, 4]),
        (1, 4, 4, [4]),
        (1, 4, 3, [3]),
        (4, 5, 32, [24, 8]),
        (16, 16, 64, [48, 16]),
        (128, 100, 512, [384, 128]),
        (256, 300, 1024, [512, 512]),
    ],
)
def test_a_new_leaf_is_cut_once_so_that_its_end_is_one_window(
    page_size: int, window: int, tokens: int, nodes: list[int]
) -> None:
    """R95: a lock holds one window, the rest stays one node (A21)."""
    server = roomy(page_size, window)
    server.insert(text("a", 0, tokens))
    sizes = [len(event.full) // 4 * page_size for event in server.journal.of(Transferred)]
    assert sizes == nodes
    server.cache.inc_lock_ref(server.match(text("a", 0, tokens)).last_device_node)
    assert server.sizes()["swa_protected"] == nodes[-1]
    server.check()


@paged
def test_a_live_leaf_behind_a_released_part_is_cut_too(page_size: int) -> None:
    """R94, R95: tombstone, what is live beyond the window, and the window."""
    server = roomy(page_size, 2 * page_size)
    tokens = text("a", 0, 7 * page_size)
    server.insert(tokens, released=2 * page_size)
    assert shape(server, tokens) == "dd LLL LL"
    server.check()


@paged
@pytest.mark.parametrize("finished", [True, False])
def test_both_ways_of_caching_a_request_tell_the_tree_what_was_given_back(
    page_size: int, finished: bool
) -> None:
    """R96: the tree claims no SWA slot below the request's frontier (B7)."""
    server = roomy(page_size, page_size)
    req = server.start(text("a", 0, 8 * page_size))
    server.reclaim(req)
    released = req.swa_evicted_seqlen
    assert released == 5 * page_size
    if finished:
        server.end(req)
    else:
        server.cache_so_far(req)
    dead = released // page_size
    assert shape(server, text("a", 0, 8 * page_size)).replace(" ", "") == "d" * dead + "L" * (8 - dead)
    assert server.sizes()["swa_free"] == (40 - 8 + dead) * page_size
    server.check()


@paged
def test_key_and_value_are_cut_to_whole_pages_and_have_to_be_of_one_length(page_size: int) -> None:
    """R97, R272: slots of the unfinished page stay the caller's; a value too short, or strewn, is an error."""
    server = roomy(page_size, page_size)
    tokens, slots = text("a", 0, 3 * page_size), server.slots(3 * page_size)
    cut = tokens[: 3 * page_size - 1] if page_size > 1 else tokens
    server.insert(cut, slots)
    whole = len(cut) // page_size
    assert server.match(cut).device_indices.size == whole * page_size
    left = slots[whole * page_size :]
    if left.size:
        server.allocator.free(left)
    assert server.sizes()["full_free"] == (40 - whole) * page_size
    other = text("b", 0, 2 * page_size)
    fresh = server.slots(2 * page_size)
    before = server.rank().digest()
    with pytest.raises(ValueError, match="R97"):
        server.insert(other, fresh[: 2 * page_size - 1])
    if page_size > 1:
        with pytest.raises(ValueError, match="R272"):
            server.insert(other, fresh[::-1])
    assert server.rank().digest() == before
    server.insert(other, fresh)
    server.check()


@paged
def test_a_caller_gives_what_is_its_own_and_nothing_else(page_size: int) -> None:
    """R97, R62: slots of a live request, of the tree or of the free list are refused, and nothing changes."""
    server = roomy(page_size, page_size)
    live = server.start(text("b", 0, page_size))
    tree = server.slots(page_size)
    server.insert(text("c", 0, page_size), tree)
    free = server.slots(page_size)
    server.allocator.free(free)
    before = server.rank().digest()
    for slots in (server.pool.read(live.row, page_size), tree, free):
        with pytest.raises(ForeignFree):
            server.insert(text("a", 0, page_size), slots)
    with pytest.raises(Refusal, match="came with"):
        rank = server.rank()
        pages = rank.alloc(1)[0]
        before = rank.digest()
        rank.insert(b"", b"", Slice(pages, 0, 0, request_account(UNBOUND), UNBOUND, Operation.INSERT))
    assert server.rank().digest() == before
    server.check(laws=False)


def test_positions_below_zero_are_refused() -> None:
    """R97, R271: a frontier in another unit than the key once gave -64 (B2)."""
    server = roomy(4, 4)
    slots = server.slots(8)
    for field in ("prev", "released"):
        with pytest.raises(Refusal, match="negative"):
            server.insert(text("a", 0, 8), slots, **{field: -4})
    server.check()


def test_a_key_without_its_rank_is_refused_where_there_are_several() -> None:
    """R98: on match, insert and peek; with one rank it means that one (A29)."""
    server = roomy(4, 4, dp_size=2)
    tokens = text("a", 0, 4)
    for call in (
        lambda: server.match(tokens),
        lambda: server.insert(tokens, server.slots(4)),
        lambda: server.hit(tokens),
        lambda: server.start(tokens),
    ):
        with pytest.raises(ValueError, match="dp_rank"):
            call()
    alone = roomy(4, 4)
    alone.insert(tokens)
    assert alone.hit(tokens) == alone.hit(tokens, 0) == 4


@paged
def test_a_namespace_shares_nothing_with_another(page_size: int) -> None:
    """R97: the same tokens under another extra key are other tokens."""
    server = roomy(page_size, page_size)
    req = server.admit(text("a", 0, 2 * page_size), extra_key="tenant")
    server.prefill(req)
    server.end(req)
    assert server.hit(text("a", 0, 2 * page_size)) == 0
    named = server.cache.peek(server.key(text("a", 0, 2 * page_size), extra_key="tenant"))
    assert named.tokens == 2 * page_size
    again = server.admit(text("a", 0, 2 * page_size), extra_key="tenant")
    assert again.prefix_indices.size == (2 * page_size - 1) // page_size * page_size
    server.check()


@paged
def test_two_requests_that_cache_one_new_prefix_leave_it_once(page_size: int) -> None:
    """R61, R62: in the order of the journal the second is the duplicate (A48)."""
    server = roomy(page_size, page_size)
    first, second = (server.start(text("a", 0, 3 * page_size)) for _ in range(2))
    server.cache_so_far(first)
    kept = server.pool.read(first.row, 3 * page_size).tolist()
    server.cache_so_far(second)
    assert server.pool.read(second.row, 3 * page_size).tolist() == kept
    assert second.prefix_indices.tolist() == kept
    for req in (first, second):
        server.end(req)
    node = server.match(text("a", 0, 3 * page_size)).last_device_node
    assert node.component_data[FULL].lock_ref == node.component_data[SWA].lock_ref == 0
    assert server.sizes()["full_free"] == 37 * page_size
    server.check()
