"""What is handed out, and what is left as it was when a pool is short: bounds, rollback, ranks, owners."""

import random

import pytest

from radixledger.cache.faces.allocator import SWATokenToKVPoolAllocator
from radixledger.cache.refusals import ForeignFree, LawBroken, RankPoisoned, Refusal
from radixledger.journal.events import Allocated, Bound, Refused, Violated

from .server import Server, every_page_is_named_once, text
from .test_allocator import PAGE_SIZES, free_sizes, mapped

paged = pytest.mark.parametrize("page_size", PAGE_SIZES)


@paged
def test_an_allocation_that_one_pool_cannot_serve_changes_neither(page_size: int) -> None:
    """R45: FULL pages, SWA pages and mapping are as before, and the numbers of both pools are told (R152)."""
    server = Server(page_size, full_pages=8, swa_pages=3)
    kept = server.slots(page_size)
    before = server.rank().digest(), mapped(server, kept), free_sizes(server)
    assert server.allocator.alloc(3 * page_size) is None
    assert (server.rank().digest(), mapped(server, kept), free_sizes(server)) == before
    short = server.allocator.last_refusal
    assert short is not None
    assert (short.needed, short.full_available, short.swa_available) == (3, 7, 2)
    assert [event.reason for event in server.journal.of(Refused)] == ["pool_short"]
    assert server.allocator.alloc(2 * page_size) is not None
    server.check()


@paged
def test_an_extend_or_a_decode_that_one_pool_cannot_serve_changes_neither(page_size: int) -> None:
    """R46: nor does it hand out what the first sequences of the batch could have had."""
    server = Server(page_size, full_pages=8, swa_pages=3)
    first = server.allocator.alloc_extend([0], [page_size], [-1], page_size)
    assert first is not None
    before = server.rank().digest()
    long = 2 * page_size
    assert server.allocator.alloc_extend([0, 0], [page_size, long], [-1, -1], 3 * page_size) is None
    assert server.rank().digest() == before
    assert server.allocator.alloc_extend([0], [long], [-1], long) is not None
    before = server.rank().digest()
    assert server.allocator.alloc_decode([page_size + 1], [int(first[-1])]) is None
    assert server.rank().digest() == before
    server.check()


@paged
def test_an_extend_uses_up_the_last_page_before_it_takes_new_ones(page_size: int) -> None:
    """R46: slots of one sequence are consecutive within its pages."""
    server = Server(page_size)
    begun = page_size // 2 or 1
    first = server.allocator.alloc_extend([0], [begun], [-1], begun)
    assert first is not None
    taken = free_sizes(server)
    stop = 2 * page_size
    more = server.allocator.alloc_extend([begun], [stop], [int(first[-1])], stop - begun)
    assert more is not None
    assert free_sizes(server) == (taken[0] - 1, taken[1] - 1)
    whole = [*first.tolist(), *more.tolist()]
    assert [slot % page_size for slot in whole] == [at % page_size for at in range(stop)]
    assert len({slot // page_size for slot in whole}) == 2
    decoded = server.allocator.alloc_decode([stop], [whole[-2]]) if page_size > 1 else None
    assert decoded is None or decoded.tolist() == whole[-1:]


def test_a_sequence_grows_in_no_page_but_its_own() -> None:
    """R46: last slots that do not fit the length, or lie in the tree's pages, are refused."""
    server = Server()
    slots = server.slots(4)
    server.insert(text("a", 0, 4), slots)
    with pytest.raises(ValueError, match="cannot be the last"):
        server.allocator.alloc_extend([2], [4], [int(slots[0])], 2)
    with pytest.raises(Refusal, match="no request's"):
        server.allocator.alloc_extend([2], [4], [int(slots[1])], 2)
    with pytest.raises(ValueError, match="grow by 2"):
        server.allocator.alloc_extend([0], [2], [-1], 3)
    with pytest.raises(ValueError, match="whole pages"):
        server.allocator.alloc(6)
    assert server.allocator.alloc(0) is not None


@paged
def test_what_one_rank_maps_and_frees_leaves_the_other_as_it_was(page_size: int) -> None:
    """R47."""
    server = Server(page_size, dp_size=2)
    zero, one = server.slots(2 * page_size, 0), server.slots(2 * page_size, 1)
    before = mapped(server, zero, 0), free_sizes(server, 0), server.rank(0).digest()
    server.allocator.free_swa(one[:page_size], 1)
    server.allocator.transfer_swa_mapping(one[page_size:], one[:page_size], dp_rank=1)
    server.allocator.free(one, 1)
    server.allocator.clear(1)
    assert (mapped(server, zero, 0), free_sizes(server, 0), server.rank(0).digest()) == before
    with pytest.raises(ValueError, match="dp_rank 2"):
        server.allocator.free(zero, 2)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("page_size", [1, 16])
def test_a_pool_never_has_more_than_its_capacity_available(page_size: int, seed: int) -> None:
    """R50: whatever is freed, refused, repeated or grouped."""
    chance = random.Random(seed)
    server = Server(page_size, dp_size=2)
    held: dict[int, list[int]] = {0: [], 1: []}
    for _ in range(80):
        rank = chance.randrange(2)
        slots = [*held[rank], *range(page_size, 3 * page_size)]
        some = chance.sample(slots, chance.randrange(1, len(slots) + 1))
        try:
            match chance.randrange(6):
                case 0 | 1:
                    given = server.allocator.alloc(chance.randrange(1, 4) * page_size, rank)
                    held[rank] += [] if given is None else given.tolist()
                case 2:
                    server.allocator.free(some, rank)
                case 3:
                    server.allocator.free_swa(some, rank)
                case 4:
                    server.allocator.free_group_begin()
                case _:
                    server.allocator.free_group_end()
        except Refusal:
            pass
        for each in (0, 1):
            assert max(free_sizes(server, each)) <= 16
    server.check()


@paged
def test_page_zero_is_never_handed_out_and_never_taken_back(page_size: int) -> None:
    """R51: the padding sink; the first slot is 1 at page size 1, else the page size."""
    server = Server(page_size, full_pages=4, swa_pages=4)
    slots = server.slots(4 * page_size)
    swa = mapped(server, slots)
    assert min(slots) == min(swa) == page_size
    assert max(slots) == max(swa) == 5 * page_size - 1
    for free in (server.allocator.free, server.allocator.free_swa):
        with pytest.raises(Refusal, match="page 0 is reserved"):
            free([0])
    with pytest.raises(Refusal):
        server.allocator.free([5 * page_size])
    assert free_sizes(server) == (0, 0)


@paged
def test_the_last_page_has_its_place_in_the_mapping(page_size: int) -> None:
    """R52."""
    server = Server(page_size, full_pages=3, swa_pages=3)
    slots = server.slots(3 * page_size)
    assert mapped(server, slots[-1:]) != [0]
    server.allocator.free_swa(slots[-1:])
    assert mapped(server, slots[-page_size:]) == [0] * page_size
    assert server.allocator.count_swa_mapped(slots) == 2 * page_size


def test_questions_about_pools_are_the_allocators_and_about_ownership_the_caches() -> None:
    """R53: the class still tells a dual pool, sizes are totals over ranks; the cache answers by capability."""
    server = Server(4, dp_size=2, full_pages=8, swa_pages=4)
    allocator = server.cache.token_to_kv_pool_allocator
    assert isinstance(allocator, SWATokenToKVPoolAllocator)
    assert (allocator.size_full, allocator.size_swa) == (64, 32)
    assert allocator.available_size(1) == min(32, 16)
    assert allocator.get_kvcache() is None
    assert server.cache.supports_swa()


def test_a_page_with_a_mapping_of_a_former_life_is_not_handed_out_in_silence() -> None:
    """R54: a planted stale mapping is noticed by the very allocation that meets it (B8)."""
    server = Server()
    state = server.rank().state
    state.mapping.swa_of[1] = 3
    with pytest.raises(LawBroken, match="a_fresh_page_has_no_mapping"):
        server.allocator.alloc(4)
    with pytest.raises(RankPoisoned):
        server.allocator.alloc(4)


@paged
def test_slots_that_come_back_carry_nothing_of_their_former_life(page_size: int) -> None:
    """R54: each life of a FULL slot has the SWA slot that it was given, and no other."""
    server = Server(page_size, full_pages=3, swa_pages=3)
    for _ in range(5):
        slots = server.slots(2 * page_size)
        event = server.journal.of(Allocated)[-1]
        assert mapped(server, slots[:1])[0] // page_size == int.from_bytes(event.swa[:4], "little")
        server.allocator.free_swa(slots[:page_size])
        server.allocator.free(slots)
        assert not any(mapped(server, slots))
    server.check()


@paged
def test_slots_handed_out_to_an_owner_are_its_rows_next_ones(page_size: int) -> None:
    """R28: nothing is nobody's for a moment, and a free names who gives."""
    server = Server(page_size)
    req = server.admit(text("a", 0, page_size + 1))
    given = server.allocator.alloc_extend([0], [page_size + 1], [-1], page_size + 1, owner=[req])
    assert given is not None
    assert every_page_is_named_once(server.rank())
    server.pool.write((req.row, slice(0, page_size + 1)), given)
    assert server.journal.of(Bound) == []
    next_slot = server.allocator.alloc_decode([page_size + 2], [int(given[-1])], owner=[req])
    assert next_slot is not None
    number = server.rank().number_of(req)
    assert number is not None
    row = server.rank().row_slots(number, 0, page_size + 2)
    assert row.tolist() == [*given.tolist(), *next_slot.tolist()]
    with pytest.raises(ValueError, match="tokens, not 0"):
        server.allocator.alloc_extend([0], [1], [-1], 1, owner=[req])


@paged
def test_a_free_by_somebody_else_than_the_named_giver_is_a_foreign_free(page_size: int) -> None:
    """R28: without a giver nothing can be told, with one it is; a row can only lose its end."""
    server = Server(page_size)
    mine, other = server.start(text("a", 0, 2 * page_size)), server.start(text("b", 0, 2 * page_size))
    row = server.pool.read(mine.row, 2 * page_size)
    with pytest.raises(ForeignFree, match=r"expected request\(\d+\), found request\(\d+\)"):
        server.allocator.free(row, giver=other)
    with pytest.raises(Refusal, match="middle of row"):
        server.allocator.free(row[:page_size], giver=mine)
    for free in (server.allocator.free_swa, lambda slots: server.allocator.free_full(slots, dp_rank=0)):
        with pytest.raises(Refusal, match="stands in the row"):
            free(row)
    server.allocator.free(row[page_size:], giver=mine)
    assert server.rank().state.rows.length[mine.row] == page_size
    assert every_page_is_named_once(server.rank())


@paged
def test_a_server_that_goes_on_is_told_of_a_foreign_free_and_nothing_moves(page_size: int) -> None:
    """R28: without `strict` the illegal pages are recorded and skipped, the rest of the call goes on."""
    server = Server(page_size, strict=False)
    req, other = server.start(text("a", 0, 2 * page_size)), server.start(text("b", 0, 2 * page_size))
    row, mine = server.pool.read(other.row, 2 * page_size), server.pool.read(req.row, 2 * page_size)
    server.allocator.free([*row.tolist(), *mine[page_size:].tolist()], giver=req)
    violated = server.journal.of(Violated)[0]
    assert (violated.law, len(violated.pages)) == ("foreign_free", 8)
    assert server.rank().state.rows.length[other.row] == 2 * page_size
    assert server.rank().state.rows.length[req.row] == page_size
    assert every_page_is_named_once(server.rank())
