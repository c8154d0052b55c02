"""The dual-pool allocator takes slots back: translation, the three frees, free groups, clearing."""

import numpy as np
import pytest
from numpy.typing import ArrayLike

from radixledger.cache.faces.allocator import MissingMapping
from radixledger.cache.refusals import Busy, DoubleFree, Refusal
from radixledger.journal.events import Freed, GroupFlushed, Refused

from .server import Server, text

PAGE_SIZES = (1, 16, 128, 256)
paged = pytest.mark.parametrize("page_size", PAGE_SIZES)


def free_sizes(server: Server, dp_rank: int = 0) -> tuple[int, int]:
    """FULL and SWA slots that are free, in pages."""
    allocator = server.allocator
    full, swa = allocator.full_available_size(dp_rank), allocator.swa_available_size(dp_rank)
    return full // server.page_size, swa // server.page_size


def mapped(server: Server, slots: ArrayLike, dp_rank: int = 0) -> list[int]:
    """The SWA slot of each FULL slot, 0 where there is none."""
    found: list[int] = server.allocator.translate_full_to_swa(
        slots, dp_rank=dp_rank, require_mapped=False
    ).tolist()
    return found


# -- translation -------------------------------------------------------------------------------------------------


@paged
def test_a_translation_is_a_copy(page_size: int) -> None:
    """R34: whoever writes into it changes nothing."""
    server = Server(page_size)
    slots = server.slots(2 * page_size)
    first = server.allocator.translate_full_to_swa(slots, dp_rank=0)
    first[:] = 0
    assert all(mapped(server, slots))
    assert len(set(mapped(server, slots))) == 2 * page_size


@paged
def test_a_missing_mapping_is_an_error_that_names_rank_and_slots(page_size: int) -> None:
    """R35: and the miss is recorded (A7)."""
    server = Server(page_size, dp_size=2)
    slots = server.slots(2 * page_size, 1)
    server.allocator.free_swa(slots[:page_size], 1)
    with pytest.raises(MissingMapping, match="dp_rank=1") as missing:
        server.allocator.translate_full_to_swa(slots, dp_rank=1)
    assert missing.value.dp_rank == 1
    assert missing.value.slots == slots[:page_size].tolist()
    assert [event.reason for event in server.journals[1].of(Refused)] == ["unmapped"]
    server.check()


@paged
def test_a_missing_mapping_is_slot_zero_where_none_is_required(page_size: int) -> None:
    """R36: the sentinel, without an error and without a word in the journal."""
    server = Server(page_size)
    slots = server.slots(2 * page_size)
    server.allocator.free_swa(slots[:page_size])
    found = mapped(server, slots)
    assert found[:page_size] == [0] * page_size
    assert 0 not in found[page_size:]
    assert server.allocator.count_swa_mapped(slots) == page_size
    assert server.journal.of(Refused) == []


def test_nothing_translates_to_a_fresh_empty_array() -> None:
    """R37: int32, of size 0, and not shared."""
    server = Server()
    empty = np.zeros(0, np.int32)
    first, second = (server.allocator.translate_full_to_swa(empty, dp_rank=0) for _ in range(2))
    assert first.dtype == np.int32
    assert first.shape == (0,)
    assert first is not second
    assert first is not empty
    assert server.allocator.translate_full_to_swa([], dp_rank=0).size == 0


# -- the three frees ---------------------------------------------------------------------------------------------


@paged
def test_freeing_full_alone_keeps_the_swa_slots_and_the_mapping(page_size: int) -> None:
    """R38: the second half of an ordered cascade finds its mapping."""
    server = Server(page_size)
    slots = server.slots(2 * page_size)
    before = mapped(server, slots)
    server.allocator.free_full(slots, dp_rank=0)
    assert free_sizes(server) == (16, 14)
    assert mapped(server, slots) == before
    server.allocator.free_swa(slots)
    assert free_sizes(server) == (16, 16)
    server.check()


def test_between_the_two_halves_of_a_cascade_nothing_is_handed_out() -> None:
    """R38, R54: FULL pages that still map to SWA pages would carry a former life along (A4)."""
    server = Server()
    slots = server.slots(4)
    server.allocator.free_full(slots, dp_rank=0)
    with pytest.raises(Refusal, match="free_swa"):
        server.allocator.alloc(4)
    server.allocator.free_swa(slots)
    assert server.allocator.alloc(4) is not None


@paged
def test_freeing_swa_takes_full_slots_and_clears_their_mapping_at_once(page_size: int) -> None:
    """R39: what was mapped is free, the FULL slots are still the caller's."""
    server = Server(page_size)
    slots = server.slots(3 * page_size)
    server.allocator.free_swa(slots[page_size:])
    assert free_sizes(server) == (13, 15)
    assert mapped(server, slots)[page_size:] == [0] * (2 * page_size)
    assert all(mapped(server, slots)[:page_size])
    server.check()


@paged
def test_freeing_swa_again_changes_nothing(page_size: int) -> None:
    """R40: a repeat is a no-op, one that is recorded."""
    server = Server(page_size)
    slots = server.slots(2 * page_size)
    server.allocator.free_swa(slots)
    digest = server.rank().digest()
    server.allocator.free_swa(slots)
    assert server.rank().digest() == digest
    assert free_sizes(server) == (14, 16)
    assert server.journal.of(Freed)[-1].swa == b""
    server.check()


@paged
def test_a_composite_free_gives_both_pools_back(page_size: int) -> None:
    """R41: also where the SWA half was freed before."""
    server = Server(page_size)
    slots = server.slots(3 * page_size)
    server.allocator.free_swa(slots[:page_size])
    server.allocator.free(slots)
    assert free_sizes(server) == (16, 16)
    assert not any(mapped(server, slots))
    server.check()


@paged
def test_a_second_free_is_loud_and_names_the_first(page_size: int) -> None:
    """R41, R3: outside a group a FULL page is freed once (A5)."""
    server = Server(page_size)
    slots = server.slots(page_size)
    server.allocator.free(slots)
    freed_at = len(server.journal.events) + 1
    with pytest.raises(DoubleFree) as refused:
        server.allocator.free(slots)
    assert refused.value.since == freed_at
    with pytest.raises(DoubleFree):
        server.allocator.free_full(slots, dp_rank=0)
    assert free_sizes(server) == (16, 16)
    assert [event.reason for event in server.journal.of(Refused)] == ["double_free", "double_free"]
    server.check()


def test_a_repeat_within_one_call_is_one_free() -> None:
    """R42: slots of one page, or the same slot twice (A5)."""
    server = Server()
    slots = server.slots(8)
    server.allocator.free([*slots, *slots, slots[0]])
    assert free_sizes(server) == (16, 16)
    server.check()


# -- groups ------------------------------------------------------------------------------------------------------


@paged
def test_in_one_group_every_kind_of_free_of_the_same_slots_counts_once(page_size: int) -> None:
    """R42: composite and single frees share what the group has seen, per pool."""
    server = Server(page_size)
    slots = server.slots(2 * page_size)
    allocator = server.allocator
    allocator.free_group_begin()
    allocator.free(slots)
    allocator.free(slots[:page_size])
    allocator.free_full(slots, dp_rank=0)
    allocator.free_swa(slots)
    allocator.free_group_end()
    assert free_sizes(server) == (16, 16)
    flushed = server.journal.of(GroupFlushed)[0]
    assert (len(flushed.full), len(flushed.swa)) == (8, 8)
    server.check()


@paged
def test_a_group_clears_the_mapping_at_once_and_frees_later(page_size: int) -> None:
    """R43: zero in the mapping, nothing available, nothing to be allocated."""
    server = Server(page_size, full_pages=2, swa_pages=2)
    slots = server.slots(2 * page_size)
    server.allocator.free_group_begin()
    server.allocator.free_swa(slots)
    assert mapped(server, slots) == [0] * (2 * page_size)
    assert server.allocator.swa_available_size() == 0
    server.allocator.free(slots)
    assert server.allocator.alloc(page_size) is None
    server.allocator.free_group_end()
    assert free_sizes(server) == (2, 2)


@paged
def test_a_group_flushes_the_pages_that_it_took_in_whatever_the_mapping_says_by_then(page_size: int) -> None:
    """R44: a heal within the group gives the same FULL slots another mapping, which stays (B6)."""
    server = Server(page_size, page_size)
    kept = server.slots(2 * page_size)
    swa_before = mapped(server, kept)
    server.allocator.free_group_begin()
    server.allocator.free_swa(kept[:page_size])
    server.insert(text("a", 0, 2 * page_size), kept, released=page_size)
    server.cache.inc_lock_ref(server.match(text("a", 0, 2 * page_size), full_only=True).last_device_node)
    fresh = server.slots(2 * page_size)
    swa_of_fresh = mapped(server, fresh)
    server.insert(text("a", 0, 2 * page_size), fresh)
    assert mapped(server, kept)[:page_size] == swa_of_fresh[:page_size]
    server.allocator.free_group_end()
    flushed = np.frombuffer(server.journal.of(GroupFlushed)[0].swa, "<i4") * page_size
    assert flushed.tolist() == [swa_before[0], swa_of_fresh[page_size]]
    assert mapped(server, kept) == [*swa_of_fresh[:page_size], *swa_before[page_size:]]
    assert free_sizes(server) == (14, 14)
    server.check()


@paged
def test_freeing_full_alone_waits_for_the_end_of_the_group_too(page_size: int) -> None:
    """R55."""
    server = Server(page_size)
    slots = server.slots(page_size)
    server.allocator.free_group_begin()
    server.allocator.free_full(slots, dp_rank=0)
    assert free_sizes(server) == (15, 15)
    server.allocator.free_swa(slots)
    assert free_sizes(server) == (15, 15)
    server.allocator.free_group_end()
    assert free_sizes(server) == (16, 16)
    server.check()


@paged
def test_a_group_begun_again_keeps_what_it_has(page_size: int) -> None:
    """R49: both halves are freed at the end."""
    server = Server(page_size)
    slots = server.slots(2 * page_size)
    server.allocator.free_group_begin()
    server.allocator.free(slots[:page_size])
    server.allocator.free_group_begin()
    server.allocator.free(slots[page_size:])
    assert free_sizes(server) == (14, 14)
    server.allocator.free_group_end()
    assert free_sizes(server) == (16, 16)
    server.check()


@paged
def test_clearing_one_rank_leaves_the_group_open_and_the_other_rank_alone(page_size: int) -> None:
    """R48: pending frees of rank 1 are still pending, and the next free on rank 0 is deferred again."""
    server = Server(page_size, dp_size=2)
    zero, one = server.slots(2 * page_size, 0), server.slots(2 * page_size, 1)
    server.allocator.free_group_begin()
    server.allocator.free(zero[:page_size], 0)
    server.allocator.free(one, 1)
    server.allocator.clear(0)
    assert free_sizes(server, 0) == (16, 16)
    assert free_sizes(server, 1) == (14, 14)
    again = server.slots(page_size, 0)
    server.allocator.free(again, 0)
    assert free_sizes(server, 0) == (15, 15)
    server.allocator.free_group_end()
    assert [free_sizes(server, rank) for rank in (0, 1)] == [(16, 16), (16, 16)]
    server.check()


def test_clearing_takes_back_what_was_half_freed_and_refuses_what_has_an_owner() -> None:
    """R48, R33: nobody's slots come back with their mapping; a tree or a live request stands in the way."""
    server = Server()
    slots = server.slots(12)
    server.allocator.free_full(slots[:4], dp_rank=0)
    server.allocator.free_swa(slots[4:8])
    server.allocator.clear()
    assert free_sizes(server) == (16, 16)
    assert not any(mapped(server, slots))
    server.insert(text("a", 0, 4))
    with pytest.raises(Busy, match="tree"):
        server.allocator.clear()
    live = server.start(text("b", 0, 5))
    with pytest.raises(Busy, match=live.rid):
        server.allocator.clear()
    server.check()
