"""Tombstones come to life again: where, with whose slots, and what is freed for it."""

import numpy as np
import pytest

from radixledger.cache.prefix_cache import Slots
from radixledger.cache.refusals import RankPoisoned, Refusal
from radixledger.journal.events import Freed, Healed, HealMode, Split

from .server import FULL, SWA, Server, every_page_is_named_once, path, shape, text

paged = pytest.mark.parametrize("page_size", [1, 16, 128, 256])


def roomy(page_size: int, window_pages: int = 1, **changes: int) -> Server:
    return Server(page_size, page_size * window_pages, full_pages=32, swa_pages=32, **changes)  # type: ignore[arg-type]


def pages(server: Server, slots: Slots) -> list[int]:
    found: list[int] = (slots[:: server.page_size] // server.page_size).tolist()
    return found


def freed_by(server: Server, since: int) -> list[int]:
    """FULL pages that `Freed` events give back since event number `since` of the list."""
    events = [event for event in server.journal.events[since:] if isinstance(event, Freed)]
    return [page for event in events for page in np.frombuffer(event.full, "<i4").tolist()]


@paged
@pytest.mark.parametrize("released", [0, 1])
def test_a_tombstone_behind_the_live_boundary_takes_the_whole_slice(page_size: int, released: int) -> None:
    """R83: nothing of the slice is freed, and the node's old FULL slots are."""
    server = roomy(page_size)
    tokens = path(server, "L dd" + "L")
    old = server.match(tokens[: 3 * page_size], full_only=True).last_device_node
    old_slots = old.component_data[FULL].value
    before, fresh = len(server.journal.events), server.slots(4 * page_size)
    assert shape(server, tokens) == "L dd L"
    result = server.insert(tokens, fresh, released=released * page_size)
    assert result.prefix_len == 4 * page_size
    assert shape(server, tokens) == "L LL L"
    healed = server.journal.of(Healed)[0]
    assert healed.mode == HealMode.REPLACE
    assert np.frombuffer(healed.old, "<i4").tolist() == pages(server, old_slots)
    assert old.component_data[FULL].value.tolist() == fresh[page_size : 3 * page_size].tolist()
    given = pages(server, fresh)
    assert freed_by(server, before) == [given[0], given[3]]
    server.check()


@paged
def test_a_tombstone_across_the_live_boundary_is_cut_there_and_its_end_is_healed(page_size: int) -> None:
    """R84: the first part stays a tombstone and its slots are freed, the second takes the request's."""
    server = roomy(page_size)
    tokens = path(server, "ddd" + "L")
    before, fresh = len(server.journal.events), server.slots(4 * page_size)
    server.insert(tokens, fresh, released=page_size)
    assert shape(server, tokens) == "d LL L"
    assert len(server.journal.of(Split)) == 1
    given = pages(server, fresh)
    assert freed_by(server, before) == [given[0], given[3]]
    assert np.frombuffer(server.journal.of(Healed)[0].fresh, "<i4").tolist() == given[1:3]
    server.check()


@paged
@pytest.mark.parametrize("released", [2, 3])
def test_a_tombstone_before_the_live_boundary_stays_and_takes_nothing(page_size: int, released: int) -> None:
    """R85: all of the slice over it is freed."""
    server = roomy(page_size)
    tokens = path(server, "dd" + "LL")
    before, fresh = len(server.journal.events), server.slots(4 * page_size)
    server.insert(tokens, fresh, released=released * page_size)
    assert shape(server, tokens).startswith("dd L")
    assert server.journal.of(Healed) == []
    assert freed_by(server, before) == pages(server, fresh)
    server.check()


@paged
def test_a_tombstone_that_the_tree_itself_gave_is_not_healed(page_size: int) -> None:
    """R86: below `prev_prefix_len` there are no fresh slots; the boundary is the larger of both (A12)."""
    server = roomy(page_size)
    tokens = path(server, "ddd" + "L")
    prefix = server.match(tokens[: 3 * page_size], full_only=True).device_indices[: 2 * page_size]
    assert shape(server, tokens) == "ddd L"
    fresh = server.slots(2 * page_size)
    value = np.concatenate([prefix, fresh])
    server.insert(tokens, value, prev=2 * page_size)
    assert shape(server, tokens) == "dd L L"
    assert np.frombuffer(server.journal.of(Healed)[0].fresh, "<i4").tolist() == pages(server, fresh)[:1]
    server.check()


@paged
def test_healing_frees_the_old_full_slots_and_no_swa_slot(page_size: int) -> None:
    """R87: FULL gains what the tombstone had, SWA nothing but the duplicates of live nodes."""
    server = roomy(page_size)
    tokens = path(server, "dd" + "L")
    fresh = server.slots(3 * page_size)
    before = server.sizes()
    server.insert(tokens, fresh)
    after = server.sizes()
    assert after["full_free"] - before["full_free"] == 3 * page_size
    assert after["swa_free"] - before["swa_free"] == page_size
    assert every_page_is_named_once(server.rank())
    server.check()


@paged
def test_a_stale_mapping_of_a_tombstone_is_an_error_and_frees_nothing(page_size: int) -> None:
    """R88: planted, it stops the rank before a live slot is freed in its name (B5)."""
    server = roomy(page_size)
    tokens = path(server, "d" + "L")
    state = server.rank().state
    node = next(each for each in state.nodes.values() if each.parent and not each.swa)
    fresh = server.slots(2 * page_size)
    state.mapping.swa_of[int.from_bytes(node.full[:4], "little")] = 7
    before = len(server.journal.of(Freed))
    with pytest.raises(AssertionError, match="R88"):
        server.insert(tokens, fresh)
    assert len(server.journal.of(Freed)) == before
    assert server.journal.of(Healed) == []
    with pytest.raises(RankPoisoned):
        server.insert(tokens, fresh)


@paged
def test_the_swa_slots_of_a_healed_node_are_those_its_full_slots_came_with(page_size: int) -> None:
    """R89: the value is the translation of the adopted FULL slots, which a slice without SWA cannot give."""
    server = roomy(page_size)
    tokens = path(server, "d" + "L")
    fresh = server.slots(2 * page_size)
    came_with = server.allocator.translate_full_to_swa(fresh[:page_size], dp_rank=0)
    server.insert(tokens, fresh)
    healed = server.match(tokens[:page_size]).last_device_node
    assert healed.component_data[SWA].value.tolist() == came_with.tolist()
    other = path(server, "d" + "L", "b")
    bare = server.slots(2 * page_size)
    server.allocator.free_swa(bare)
    with pytest.raises(Refusal, match="have no SWA"):
        server.insert(other, bare)
    server.check()


@paged
def test_full_slots_that_a_request_reads_are_kept_and_only_the_mapping_moves(page_size: int) -> None:
    """R90: the row of the running request is as valid as before, and both pools hold the path once (A13, B10)."""
    server = roomy(page_size)
    reader = server.start(text("a", 0, 3 * page_size + 1))
    server.cache_so_far(reader)
    tokens = text("a", 0, 3 * page_size)
    row = server.pool.read(reader.row, 3 * page_size)
    server.evict(swa=page_size)
    dead = "dd L" if page_size > 1 else "ddd L"
    assert shape(server, reader.fill_ids) == dead
    fresh = server.slots(3 * page_size)
    swa_fresh = server.allocator.translate_full_to_swa(fresh, dp_rank=0)
    server.insert(tokens, fresh)
    assert server.journal.of(Healed)[0].mode == HealMode.TRANSFER
    assert server.pool.read(reader.row, 3 * page_size).tolist() == row.tolist()
    mapped = server.allocator.translate_full_to_swa(row, dp_rank=0)
    assert mapped[: 2 * page_size].tolist() == swa_fresh[: 2 * page_size].tolist()
    assert server.match(tokens).device_indices.tolist() == row.tolist()
    assert every_page_is_named_once(server.rank())
    server.end(reader)
    server.check()


@paged
def test_a_mapping_changes_hands_whole_or_not_at_all(page_size: int) -> None:
    """R91: equal shapes, a mapped source, an unmapped target; else an error and no change."""
    server = roomy(page_size)
    source, target, third = (server.slots(2 * page_size) for _ in range(3))
    server.allocator.free_swa(target)
    server.allocator.free_swa(third[:page_size])
    before = server.rank().digest()
    move = server.allocator.transfer_swa_mapping
    for giver, taker in (
        (source, target[:page_size]),
        (third, target),
        (source, third),
        (target, target),
        (source, np.concatenate([target[:page_size], third[page_size:]])),
    ):
        with pytest.raises((Refusal, ValueError)):
            move(giver, taker, dp_rank=0)
        assert server.rank().digest() == before
    swa = server.allocator.translate_full_to_swa(source, dp_rank=0)
    move(source, target, dp_rank=0)
    assert server.allocator.translate_full_to_swa(target, dp_rank=0).tolist() == swa.tolist()
    assert server.allocator.count_swa_mapped(source) == 0
    server.check()


@paged
def test_each_revived_node_counts_once_on_its_own_rank_and_is_a_candidate_again(page_size: int) -> None:
    """R92."""
    server = roomy(page_size, dp_size=2)
    tokens = path(server, "d" + "L" + " dL", dp_rank=0)
    path(server, "d" + "L" + " dL", dp_rank=1)
    server.insert(tokens, dp_rank=1)
    healed = [row["tombstone_healed_total"] for row in server.cache.ledger()]
    assert healed == [0, 2]
    assert shape(server, tokens, 1) == "L L L L"
    assert server.cache.swa_evictable_size(1) == 4 * page_size
    assert server.evict(swa=4 * page_size, dp_rank=1)[1] == 4 * page_size
    server.check()
