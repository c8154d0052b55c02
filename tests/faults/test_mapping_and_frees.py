"""Faults of mappings and frees that people met in the field: what was mapped, and who had it twice."""

from collections.abc import Callable

import numpy as np
import pytest

from radixledger.cache.laws.invariants import broken_laws
from radixledger.cache.refusals import Busy, DoubleFree, Refusal
from radixledger.journal.units import Pages

from ..cache.server import Server, every_page_is_named_once, path, text


def mapped(server: Server, slots: list[int]) -> list[int]:
    found: list[int] = server.allocator.translate_full_to_swa(slots, dp_rank=0, require_mapped=False).tolist()
    return found


@pytest.mark.parametrize("offset", range(4))
@pytest.mark.parametrize("grouped", [False, True])
def test_freeing_one_slot_of_swa_clears_the_mapping_of_its_whole_page(offset: int, grouped: bool) -> None:
    """B01: the page-mates do not go on pointing at a page that somebody else has by now."""
    server = Server(4, 4, full_pages=4, swa_pages=4)
    first = server.slots(4).tolist()
    if grouped:
        server.allocator.free_group_begin()
    server.allocator.free_swa(first[offset : offset + 1])
    if grouped:
        server.allocator.free_group_end()
    assert server.allocator.swa_available_size() == 16
    assert mapped(server, first) == [0, 0, 0, 0]
    second = server.slots(4).tolist()
    assert server.allocator.swa_available_size() == 12
    server.allocator.free_swa([slot for slot in first if slot != first[offset]])
    assert server.allocator.swa_available_size() == 12
    assert 0 not in mapped(server, second)
    server.check()


@pytest.mark.parametrize("offset", range(4))
def test_freeing_one_slot_frees_its_whole_page_once(offset: int) -> None:
    """B01, in the shape of a composite free: the other three slots are free already, and saying so again is loud."""
    server = Server(4, 4, full_pages=4, swa_pages=4)
    slots = server.slots(8).tolist()
    server.allocator.free([slots[offset], slots[4 + offset]])
    assert server.allocator.available_size() == 16
    with pytest.raises(DoubleFree):
        server.allocator.free(slots[:4])
    assert server.allocator.available_size() == 16
    server.check()


def free_all(server: Server, slots: list[int]) -> None:
    server.allocator.free(slots)


def free_one_by_one(server: Server, slots: list[int]) -> None:
    for slot in slots[::4]:
        server.allocator.free([slot])


def free_in_a_group(server: Server, slots: list[int]) -> None:
    server.allocator.free_group_begin()
    server.allocator.free(slots[:4])
    server.allocator.free_swa(slots)
    server.allocator.free(slots)
    server.allocator.free_group_end()


def free_full_then_swa(server: Server, slots: list[int]) -> None:
    server.allocator.free_full(slots, dp_rank=0)
    server.allocator.free_swa(slots)


def free_as_a_vetoed_leaf(server: Server, slots: list[int]) -> None:
    server.insert(text("a", 0, 8), np.array(slots, np.int32), released=8)


def free_as_a_duplicate(server: Server, slots: list[int]) -> None:
    tree = server.slots(8)
    server.insert(text("a", 0, 8), tree)
    server.insert(text("a", 0, 8), np.array(slots, np.int32), released=4)
    server.evict(8)


FREES = (
    free_all,
    free_one_by_one,
    free_in_a_group,
    free_full_then_swa,
    free_as_a_vetoed_leaf,
    free_as_a_duplicate,
)


@pytest.mark.parametrize("free", FREES, ids=lambda free: free.__name__)
def test_a_page_without_a_partner_is_skipped_by_every_way_of_freeing(
    free: Callable[[Server, list[int]], None],
) -> None:
    """B05: two FULL pages and one SWA page come back, and page 0 is never among them."""
    server = Server(4, 4, full_pages=4, swa_pages=4)
    slots = server.slots(8).tolist()
    server.allocator.free_swa(slots[:4])
    free(server, slots)
    state = server.rank().state
    assert server.allocator.full_available_size() == server.allocator.swa_available_size() == 16
    for book in (state.full, state.swa):
        assert sorted(np.frombuffer(bytes(book.free), "<i4").tolist()) == [1, 2, 3, 4]
    server.check()


def test_a_branch_that_lost_its_first_window_gives_two_full_pages_and_one_swa_page() -> None:
    """B05: evicted by FULL pressure, step by step."""
    server = Server(4, 4, full_pages=16, swa_pages=4)
    path(server, "L")
    path(server, "LL")
    assert server.evict(swa=4) == (0, 4)
    assert server.sizes()["swa_free"] == 12
    assert server.evict(full=8) == (8, 4)
    assert server.sizes()["swa_free"] == 16
    assert server.sizes()["full_free"] == 64
    server.check()


def test_a_group_that_is_ended_twice_frees_once() -> None:
    """B07: the second end is refused, and four distinct pages can be had, not more."""
    server = Server(4, 4, full_pages=4, swa_pages=4)
    slots = server.slots(8)
    server.allocator.free_group_begin()
    server.allocator.free(slots)
    server.allocator.free_group_end()
    with pytest.raises(Busy, match="no free group is open"):
        server.allocator.free_group_end()
    assert server.allocator.available_size() == 16
    assert sorted(server.slots(16).tolist()) == list(range(4, 20))
    assert server.allocator.alloc(4) is None
    server.check()


# -- counts that balance -------------------------------------------------------------------------------------------


def two_requests() -> tuple[Server, int, int]:
    """Four pages of one token; A has 1 and 2, B has 3 and 4. Their rows."""
    server = Server(1, 1, full_pages=4, swa_pages=4)
    first, second = server.start(text("a", 0, 2), "A"), server.start(text("b", 0, 2), "B")
    return server, first.row, second.row


def found_laws(server: Server) -> dict[str, list[int]]:
    """The broken laws, each with the FULL pages that it names."""
    named: dict[str, list[int]] = {}
    for finding in broken_laws(server.rank().state):
        if finding.pool == 0:
            named.setdefault(finding.law, []).extend(np.frombuffer(finding.pages, "<i4").tolist())
    return named


def test_a_page_with_two_owners_and_one_with_none_are_named_though_the_counts_balance() -> None:
    """B14: rows [1, 2] and [2, 3], page 4 is nobody's; four are owned and none is free."""
    server, _, second = two_requests()
    state = server.rank().state
    state.rows.full_table[second, :2] = [2, 3]
    assert sum(state.full.held) == 4
    named = found_laws(server)
    assert named["every_page_has_one_owner"] == [2]
    assert 4 in named["every_request_page_stands_in_its_row"]
    assert not every_page_is_named_once(server.rank())
    with pytest.raises(Exception, match="every_page_has_one_owner"):
        server.cache.sanity_check()


def test_a_row_that_points_at_a_free_page_and_a_page_that_waits_twice_are_named() -> None:
    """B14, in its other shapes."""
    server, _, second = two_requests()
    state = server.rank().state
    server.allocator.free([4])
    state.rows.full_table[second, 1], state.rows.length[second] = 4, 2
    assert 4 in found_laws(server)["every_request_page_stands_in_its_row"]
    state.rows.full_table[second, 1], state.rows.length[second] = 0, 1
    assert "every_free_page_waits_once_in_the_queue" not in found_laws(server)
    state.full.free += Pages(b"\4\0\0\0")
    assert found_laws(server)["every_free_page_waits_once_in_the_queue"] == [4]


def test_a_request_that_says_it_computed_more_than_it_has_is_refused() -> None:
    """B14: committed beyond allocated, at the end and between chunks."""
    server = Server(4, 4)
    req = server.start(text("a", 0, 6))
    req.fill_ids = text("a", 0, 9)
    with pytest.raises(Refusal, match="9 tokens are computed, its row has 6"):
        server.cache_so_far(req)
    req.kv_committed_len = 9
    with pytest.raises(Refusal, match="its row has 6"):
        server.end(req)
    server.check()
