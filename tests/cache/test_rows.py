"""A request's row: what a server writes into it, what the tree puts in its place, and what its end gives back."""

import pytest

from radixledger.cache.refusals import Busy, Refusal
from radixledger.journal.accounts import request_account

from .server import Request, every_page_is_named_once, text
from .test_lifecycle import freed_pages, roomy

paged = pytest.mark.parametrize("page_size", [1, 16, 128, 256])


@paged
def test_a_finished_request_frees_its_tail_once_and_its_cached_pages_never(page_size: int) -> None:
    """R147, R148: the tail begins at the aligned length, or at the protected one where that is more."""
    server = roomy(page_size)
    tail = page_size // 2 or 1
    req = server.start(text("a", 0, 2 * page_size) + text("x", 0, tail))
    row = server.pool.read(req.row, 2 * page_size + tail)
    start = len(server.journal.events)
    server.end(req)
    expected = [int(row[-1]) // page_size] if page_size > 1 else []
    assert freed_pages(server.journal, start) == expected
    cached = 2 * page_size + (tail if page_size == 1 else 0)
    assert server.hit(text("a", 0, 2 * page_size) + text("x", 0, tail)) == cached
    short = server.start(text("a", 0, 2 * page_size) + text("y", 0, page_size))
    short.kv_committed_len = page_size  # less than what the tree gave it
    start = len(server.journal.events)
    server.end(short)
    assert len(freed_pages(server.journal, start)) == 1
    assert server.hit(text("a", 0, 2 * page_size)) == 2 * page_size
    server.check()


@paged
def test_a_row_names_the_trees_slots_where_they_replaced_its_own(page_size: int) -> None:
    """R149: [old prefix, new length) of the row, `prefix_indices` with the unfinished tail, and the protected length."""
    server = roomy(page_size)
    other = server.start(text("a", 0, 3 * page_size))
    tail = page_size // 2
    req = server.start(text("a", 0, 3 * page_size) + text("x", 0, tail))
    own = server.pool.read(req.row, 3 * page_size + tail)
    server.cache_so_far(other)
    server.cache_so_far(req)
    tree = server.match(text("a", 0, 3 * page_size)).device_indices
    row = server.pool.read(req.row, 3 * page_size + tail)
    assert row[: 3 * page_size].tolist() == tree.tolist() != own[: 3 * page_size].tolist()
    assert row[3 * page_size :].tolist() == own[3 * page_size :].tolist()
    assert req.prefix_indices.tolist() == row.tolist()
    assert req.cache_protected_len == req.last_matched_prefix_len == 3 * page_size
    assert every_page_is_named_once(server.rank())
    server.check()


@pytest.mark.parametrize("page_size", [16, 128, 256])
def test_a_request_that_has_no_whole_page_keeps_what_it_has(page_size: int) -> None:
    """R150: nothing is inserted, and its slots are still its own."""
    server = roomy(page_size)
    req = server.start(text("a", 0, page_size - 1))
    server.cache_so_far(req)
    assert req.cache_protected_len == 0
    assert req.prefix_indices.size == page_size - 1
    assert server.cache.total_size() == (0, 0)
    number = server.rank().number_of(req)
    assert number is not None
    page = int(req.prefix_indices[0]) // page_size
    assert server.rank().state.full.account[page] == request_account(number)
    server.end(req)
    assert server.sizes()["full_free"] == 40 * page_size
    server.check()


@paged
def test_a_row_is_written_once_behind_what_it_names(page_size: int) -> None:
    """R28: a hole, pages of others, and pages written over others are refused, and the row is as it was (B18)."""
    server = roomy(page_size)
    req, other = server.start(text("a", 0, 2 * page_size)), server.start(text("b", 0, page_size))
    row, fresh = server.pool.read(req.row, 2 * page_size), server.slots(2 * page_size)
    for where, slots in (
        (slice(3 * page_size, 4 * page_size), fresh[:page_size]),
        (slice(page_size, 3 * page_size), fresh),
        (slice(2 * page_size, 3 * page_size), server.pool.read(other.row, page_size)),
        (slice(2 * page_size, 3 * page_size), row[:page_size]),
    ):
        with pytest.raises(Refusal):
            server.pool.write((req.row, where), slots)
        assert server.pool.read(req.row, 2 * page_size).tolist() == row.tolist()
    if page_size > 1:
        with pytest.raises(ValueError, match="R272"):
            server.pool.write((req.row, slice(2 * page_size, 3 * page_size)), fresh[:page_size][::-1])
    server.pool.write((req.row, slice(0, 2 * page_size)), row)
    server.pool.write((req.row, slice(2 * page_size, 4 * page_size)), fresh)
    server.check()


def test_a_row_is_given_back_when_its_request_has_ended_and_not_before() -> None:
    """R141: rows of requests that were never written come back freely (B25, B31)."""
    server = roomy(4)
    req = server.start(text("a", 0, 5))
    with pytest.raises(Busy, match=req.rid):
        server.pool.free(req)
    server.end(req)
    with pytest.raises(Refusal, match="no row"):
        server.pool.free(req)
    waiting = [Request(f"w{number}", text("b", 0, 5)) for number in range(9)]
    assert server.pool.alloc(waiting) is None
    assert all(each.req_pool_idx is None for each in waiting)
    assert server.pool.alloc(waiting[:8]) == server.pool.alloc(waiting[:8])
    server.pool.clear()
    assert server.pool.available_size() == 8
    server.check()


@paged
@pytest.mark.parametrize("dp_size", [1, 2])
def test_rows_of_a_batch_are_written_at_once_in_any_order(page_size: int, dp_size: int) -> None:
    """R28, R16: one slot per row and position, each told to the rank of its request; a row without one is refused."""
    server = roomy(page_size, dp_size=dp_size)
    ranks = [rank % dp_size if dp_size > 1 else None for rank in range(4)]
    reqs = [
        server.start(text(letter, 0, page_size), dp_rank=rank)
        for letter, rank in zip("abcd", ranks, strict=True)
    ]
    given = {req.rid: server.slots(page_size, req.dp_rank or 0).tolist() for req in reqs}
    order = [(req, at) for at in reversed(range(page_size)) for req in reversed(reqs)]
    server.pool.write(
        ([req.row for req, _ in order], [page_size + at for _, at in order]),
        [given[req.rid][at] for req, at in order],
    )
    for req in reqs:
        assert server.pool.read(req.row, 2 * page_size)[page_size:].tolist() == given[req.rid]
        req.kv_committed_len = req.kv_allocated_len = 2 * page_size
        req.output_ids = text("z", 0, page_size)
    server.check()
    for where, slots in (((7, slice(0, 1)), [page_size]), (([0, 1], [0]), [1, 2]), ((0, slice(3, 2)), [])):
        with pytest.raises((Refusal, ValueError)):
            server.pool.write(where, slots)
    for req in reqs:
        server.end(req)
    server.check()
