"""The story of a page is what the events say of it, no more and no less, and ends where the state stands."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from radixledger.journal.accounts import FREE, Kind, Pool, holder_of, request_account
from radixledger.journal.causes import Operation, Site, cause
from radixledger.journal.events import (
    Allocated,
    AnyEvent,
    Bound,
    Freed,
    Gap,
    Healed,
    HealMode,
    Opened,
    Refused,
    Remapped,
    Tombstoned,
    Transferred,
    Violated,
)
from radixledger.journal.frame import Frame
from radixledger.journal.moves import moves, pages_of
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import NO_PAGES, ROOT, NodeId, Pages, RequestId, Seq
from radixledger.replay.fold import fold
from radixledger.replay.seek import state_at
from radixledger.replay.story.blame import UNKNOWN, LifeStep, story

from ..cache.driven import FULL_SHAPES, SHAPES, STATE_SHAPES, STEP_NS, Driven, opened
from .runs import RANK, framed, written

POOLS = (Pool.FULL, Pool.SWA)


def pages(*ids: int) -> Pages:
    return Pages(b"".join(number.to_bytes(4, "little") for number in ids))


def happened(*events: AnyEvent) -> list[Frame]:
    """A journal of these events, from 2 on."""
    return framed([opened(), *events])


def moved(frames: list[Frame], pool: Pool, page: int) -> list[tuple[int, int, int]]:
    """Number, giver and taker of each move of a page, by reading every event whole."""
    return [
        (frame.seq_first + place, move.giver, move.taker)
        for frame in frames
        for place, event in enumerate(frame.events)
        for move in moves(event)
        if move.pool is pool
        for named in pages_of(move.pages).tolist()
        if named == page
    ]


@settings(max_examples=20)
@given(seed=st.integers(0, 1 << 32), shape=st.sampled_from((*SHAPES, *FULL_SHAPES, *STATE_SHAPES)))
def test_a_story_has_every_move_and_ends_where_the_state_stands(seed: int, shape: tuple[int, ...]) -> None:
    """J16: owner, partner and the event that made it so are those of the folded state, for every page."""
    frames = Driven(seed, shape).run(60).journal.frames
    state = fold(frames)
    full_of = {int(swa): full for full, swa in enumerate(state.mapping.swa_of.tolist()) if swa}
    for pool, book in ((Pool.FULL, state.full), (Pool.SWA, state.swa), (Pool.RECURRENT, state.recurrent)):
        for page in range(1, book.capacity + 1):
            steps = list(story(frames, pool, page))
            given = moved(frames, pool, page)
            told = [(step.seq, step.giver, step.taker) for step in steps]
            assert [each for each in told if each[1] != each[2]] == [
                each for each in given if each[1] != each[2]
            ]
            assert not any(step.wrong for step in steps)
            end = (steps[-1].taker, steps[-1].partner) if steps else (FREE, 0)
            partner = int(state.mapping.swa_of[page]) if pool is Pool.FULL else full_of.get(page, 0)
            partner = 0 if pool is Pool.RECURRENT else partner
            assert end == (book.account[page], partner)
            assert book.since[page] == (given[-1][0] if given else 0)


def test_a_life_begins_and_ends_with_free() -> None:
    frames = Driven(3).run(300).drain().journal.frames
    lives = 0
    for page in range(1, 41):
        steps = list(story(frames, Pool.SWA, page))
        for life in range(1, max(step.life for step in steps) + 1):
            own = [step for step in steps if step.life == life]
            lives += 1
            assert own[0].giver == FREE
            assert own[-1].taker == FREE
            assert FREE not in [step.taker for step in own[:-1]]
    assert lives > 40


def test_a_story_says_who_and_why() -> None:
    """Allocated for a request, given to the tree when it finished, evicted: three steps, each with its cause."""
    frames = Driven(3).run(300).journal.frames
    told = [step for page in range(1, 61) for step in story(frames, Pool.FULL, page)]
    assert {step.cause for step in told} >= {
        "extend/prefill",
        "finish",
        "evict/full_leaf",
        "finish/tail",
        "alloc",
    }
    assert all(step.rid for step in told if step.taker & 7 == Kind.REQUEST and holder_of(step.taker))
    assert all(step.time_ns % STEP_NS == 0 for step in told)


def test_a_page_of_a_journal_that_begins_at_a_snapshot_has_a_life_before(tmp_path: Path) -> None:
    """The first holder is asked of the snapshot; the rest is the end of the whole story."""
    written(tmp_path / "run", 120, snapshots=(60,))
    reader = JournalReader(tmp_path / "run", RANK)
    base = state_at(reader, reader.snapshots()[0].seq)
    told = 0
    for pool in POOLS:
        for page in range(1, 41):
            whole = [step for step in story(reader.frames(), pool, page) if step.seq > base.seq]
            part = list(story(reader.frames(Seq(base.seq + 1)), pool, page, base))
            assert [_without_life(step) for step in part] == [_without_life(step) for step in whole]
            told += sum(step.life == 0 for step in part)
    assert told > 0


def _without_life(step: LifeStep) -> tuple[object, ...]:
    return step.seq, step.event, step.giver, step.taker, step.rid, step.partner, step.wrong


def test_a_second_free_is_told_with_the_first() -> None:
    """B01: the story of the page names allocation, first free, second free and next owner."""
    seven = request_account(RequestId(7))
    frames = happened(
        Allocated(RequestId(7), pages(3), pages(4), cause(Operation.ALLOC)),
        Freed(seven, pages(3), pages(3), pages(4), cause=cause(Operation.ABORT, Site.TAIL)),
        Freed(seven, pages(3), NO_PAGES, NO_PAGES, cause=cause(Operation.FINISH, Site.TAIL)),
        Allocated(RequestId(8), pages(3), pages(5), cause(Operation.ALLOC)),
    )
    steps = list(story(frames, Pool.FULL, 3))
    assert [(step.life, step.seq, step.cause, step.partner) for step in steps] == [
        (1, 2, "alloc", 4),
        (1, 3, "abort/tail", 0),
        (1, 4, "finish/tail", 0),
        (2, 5, "alloc", 5),
    ]
    assert [step.wrong for step in steps] == [
        "",
        "",
        "request(7) did not have it: free did, since event 3",
        "",
    ]


def test_a_page_named_twice_in_one_event_is_told_twice() -> None:
    frames = happened(Allocated(RequestId(7), pages(3, 3), NO_PAGES))
    steps = list(story(frames, Pool.FULL, 3))
    assert [step.wrong for step in steps] == ["", "free did not have it: request(7) did, since event 2"]


def test_a_page_that_stays_while_its_partner_changes_is_told() -> None:
    """A tombstone, a heal that moves the mapping (A13), a remap: the FULL page keeps its owner."""
    seven = request_account(RequestId(7))
    frames = happened(
        Allocated(RequestId(7), pages(3), pages(4)),
        Transferred(NodeId(1), ROOT, seven, b"k" * 16, pages(3), pages(4)),
        Tombstoned(NodeId(1), pages(3), pages(4)),
        Allocated(RequestId(8), pages(5), pages(6)),
        Healed(NodeId(1), HealMode.TRANSFER, request_account(RequestId(8)), pages(5), pages(3), pages(6)),
        Allocated(RequestId(0), pages(8), NO_PAGES),
        Allocated(RequestId(0), pages(9), pages(9)),
        Remapped(request_account(RequestId(0)), request_account(RequestId(0)), pages(9), pages(8), pages(9)),
    )
    full = [(step.event, step.partner) for step in story(frames, Pool.FULL, 3)]
    assert full == [("Allocated", 4), ("Transferred", 4), ("Tombstoned", 0), ("Healed", 6)]
    swa = [(step.seq, step.partner) for step in story(frames, Pool.SWA, 6)]
    assert swa == [(5, 5), (6, 3)]
    assert [step.partner for step in story(frames, Pool.SWA, 9)] == [9, 8]
    assert [step.partner for step in story(frames, Pool.FULL, 9)] == [9, 0]


def test_what_did_not_happen_is_no_part_of_a_story() -> None:
    frames = happened(
        Refused("double_free", "", pages=pages(3)),
        Violated("double_free", "", pages=pages(3)),
    )
    assert list(story(frames, Pool.FULL, 3)) == []


def test_a_new_epoch_ends_every_life() -> None:
    frames = happened(Allocated(RequestId(7), pages(3), pages(4)), opened(epoch=1))
    last = list(story(frames, Pool.SWA, 4))[-1]
    assert (last.event, last.taker, last.partner, last.wrong) == (Opened.__name__, FREE, 0, "")


def test_behind_a_gap_nobody_is_accused() -> None:
    seven = request_account(RequestId(7))
    frames = happened(
        Allocated(RequestId(7), pages(3), pages(4)),
        Gap(1, "disk full"),
        Freed(request_account(RequestId(8)), pages(3), NO_PAGES, NO_PAGES),
        Freed(seven, pages(3), NO_PAGES, NO_PAGES),
    )
    steps = list(story(frames, Pool.FULL, 3))
    assert [(step.event, step.wrong) for step in steps] == [
        ("Allocated", ""),
        ("Gap", "1 event missing here"),
        ("Freed", ""),
        ("Freed", "request(7) did not have it: free did, since event 4"),
    ]
    assert UNKNOWN not in [step.giver for step in steps]


@pytest.mark.parametrize("pool", POOLS, ids=lambda pool: pool.name)
def test_bytes_that_look_like_the_page_between_two_others_are_not_it(pool: Pool) -> None:
    """Page 3 in bytes also stands across the border of pages 768 and 1: 00 03 00 00 | 01 ..."""
    frames = framed([opened((4, 4, 2000, 2000)), Allocated(RequestId(7), pages(768, 1), pages(768, 1))])
    assert list(story(frames, pool, 3)) == []


def test_pages_handed_out_for_nobody_are_bound_to_their_request() -> None:
    frames = happened(Allocated(RequestId(0), pages(3), pages(4)), Bound(RequestId(9), pages(3), pages(4)))
    for pool, page in ((Pool.FULL, 3), (Pool.SWA, 4)):
        assert [step.taker for step in story(frames, pool, page)] == [
            request_account(RequestId(0)),
            request_account(RequestId(9)),
        ]
