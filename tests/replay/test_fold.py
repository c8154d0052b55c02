"""Folding frames: the same state as live, a clear end where it cannot go on, and the first frame that is wrong."""

from collections.abc import Callable
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from radixledger.cache.digest import digest
from radixledger.cache.laws.invariants import broken_laws
from radixledger.cache.rank import RankCache
from radixledger.journal.accounts import request_account, tree_account
from radixledger.journal.events import (
    AnyEvent,
    Extended,
    Freed,
    Gap,
    GroupOpened,
    Locked,
    Opened,
    Refused,
    Removed,
    Transferred,
)
from radixledger.journal.frame import Frame
from radixledger.journal.redact import Redactor
from radixledger.journal.units import NO_PAGES, UNBOUND, NodeId, Pages, Seq
from radixledger.replay.fold import Unfoldable, first_wrong, fold

from ..cache.driven import FULL_SHAPES, SHAPES, STATE_SHAPES, Driven, FrameList, opened
from ..cache.hosted import all_of_it
from .runs import KEY, audited, events_of, framed, with_changed, with_inserted


@pytest.mark.parametrize("shape", [*SHAPES, *FULL_SHAPES, *STATE_SHAPES], ids=str)
def test_the_folded_state_is_the_live_one_behind_every_command(shape: tuple[int, ...]) -> None:
    """J2, J12: events are the only way in which a state changes, so folding them again is enough."""
    driven = Driven(2, shape)
    frames = driven.journal.frames
    state = fold(frames)
    for _ in driven.steps(120):
        done = int(state.seq)
        fold((frame for frame in frames if frame.seq_first > done), state)
        assert (state.seq, digest(state)) == (driven.cache.state.seq, driven.cache.digest())
    assert state.findings == []


def test_a_fold_stops_behind_the_event_that_was_asked_for() -> None:
    frames = Driven(2).run(60).journal.frames
    events = events_of(frames)
    for until in range(1, len(events) + 1):
        state = fold(frames, until=until)
        assert state.seq == until
        assert digest(state) == digest(fold(framed(events[:until])))


def test_a_hashed_journal_folds_to_the_digest_of_the_live_state() -> None:
    """N18, J10: hashed keys, of 8 bytes a page, are keys like others."""
    driven = Driven(9).run(150)
    redactor = Redactor(KEY, driven.journal.opened.stride)
    state = fold(framed(map(redactor.redact, driven.journal.events)))
    assert state.stride == 8
    assert state.findings == []
    assert digest(state) == driven.cache.digest()
    assert list(broken_laws(state)) == []


def test_a_new_epoch_begins_with_empty_pools_and_numbers_of_its_own() -> None:
    first = Driven(1).run(80)
    seq = Seq(first.journal.count + 1)
    second = Driven(2, seq=seq).run(80)
    epoch = [frame._replace(seq_first=Seq(frame.seq_first + seq - 1)) for frame in second.journal.frames]
    state = fold([*first.journal.frames, *epoch])
    assert state.findings == []
    assert (state.seq, digest(state)) == (second.cache.state.seq, second.cache.digest())


def test_a_gap_moves_the_number_on_and_nothing_else() -> None:
    frames = Driven(1).run(5).journal.frames
    before = fold(frames)
    seq, now = before.seq, digest(before)
    state = fold([Frame(Seq(seq + 10), 0, 0, 0, [Gap(10, "disk full")])], before)
    assert (state.seq, digest(state)) == (seq + 10, now)


UNFOLDABLE: dict[str, tuple[Callable[[], list[Frame]], str]] = {
    "nothing": (list, "there are no events"),
    "no beginning": (lambda: framed([GroupOpened()]), "a journal begins with Opened"),
    "a number that is missing": (lambda: [*framed([opened()]), *framed([GroupOpened()], 3)], "stands behind event 1"),
    "a number that came before": (lambda: [*framed([opened()]), *framed([GroupOpened()], 1)], "stands behind event 1"),
    "pools that no machine has": (
        lambda: framed([opened((4, 4, 1 << 29, 4))]), "event 1 cannot be folded: no state can be built"
    ),
    "the same in a later epoch": (
        lambda: framed([opened(), opened((4, 4, 1 << 29, 4))]), "event 2 cannot be folded: no state can be built"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNFOLDABLE)
def test_what_gives_no_state_says_so(name: str) -> None:
    make, told = UNFOLDABLE[name]
    with pytest.raises(Unfoldable, match=told):
        fold(make())


def test_a_fold_up_to_what_is_lost_says_so() -> None:
    """In salvage a gap may stand for the first events; there is no state up to one of them."""
    frames = [Frame(Seq(50), 0, 0, 0, [Gap(50, "lost")]), *Driven(1).run(5).journal.frames]
    for until in (1, 10, 49):
        with pytest.raises(Unfoldable, match=f"up to {until}"):
            fold(frames, until=until)


def with_double_free(frames: list[Frame]) -> tuple[list[Frame], int]:
    """The frames with a second free of pages behind their first, and its number."""
    for frame in frames:
        for place, event in enumerate(frame.events):
            if isinstance(event, Freed) and event.full:
                return with_inserted(frames, frame.seq_first + len(frame.events), frame.events[place])
    raise AssertionError("nothing was freed")


def test_the_first_wrong_frame_is_the_double_free() -> None:
    """J14: not the allocation that met the consequence."""
    frames, seq = with_double_free(Driven(3).run(100).journal.frames)
    wrong = first_wrong(frames)
    assert wrong is not None
    assert wrong.frame.seq_first == seq
    assert {finding.law for finding in wrong.findings} >= {"a_page_is_freed_once"}
    assert all(finding.seq == seq for finding in wrong.findings)


def test_what_no_event_shows_is_found_in_the_whole_state_behind_its_frame() -> None:
    """A request that grows without its pages breaks no rule of `Extended`, only its row."""

    def without_pages(event: AnyEvent) -> AnyEvent:
        assert isinstance(event, Extended)
        return replace(event, takers=b"", counts=b"", full=NO_PAGES, swa=NO_PAGES)

    frames, seq = with_changed(Driven(3).run(30).journal.frames, Extended, without_pages)
    wrong = first_wrong(frames)
    assert wrong is not None
    assert wrong.frame.seq_first <= seq < wrong.frame.seq_first + len(wrong.frame.events)
    assert {finding.law for finding in wrong.findings} >= {"a_row_shows_nothing_behind_its_length"}


def test_a_lawful_run_has_no_wrong_frame() -> None:
    assert first_wrong(Driven(3).run(60).journal.frames) is None


def test_only_the_laws_that_were_asked_for_are_looked_at() -> None:
    frames, _ = with_double_free(Driven(3).run(100).journal.frames)
    state = fold(frames)
    state.findings.clear()
    assert first_wrong([], state, laws=()) is None


def spoiled(events: list[AnyEvent], chance: st.DataObject) -> list[AnyEvent]:
    """The events with some dropped, doubled, moved, or with numbers and pages of others."""
    out = list(events)
    for _ in range(chance.draw(st.integers(1, 6))):
        at = chance.draw(st.integers(1, len(out) - 1))
        match chance.draw(st.integers(0, 4)):
            case 0:
                del out[at]
            case 1:
                out.insert(at, out[chance.draw(st.integers(1, len(out) - 1))])
            case 2:
                out[at : at + 5] = reversed(out[at : at + 5])
            case 3:
                out[at] = chance.draw(st.sampled_from(STRANGE))
            case _:
                out[at] = changed_numbers(out[at], chance)
    return out


STRANGE: list[AnyEvent] = [
    Freed(request_account(UNBOUND), Pages(b"\1\0\0\0\xff\xff\xff\x7f"), NO_PAGES, Pages(b"\1\0\0\0")),
    Freed(-7, Pages(b"\0\0\0\0"), NO_PAGES, NO_PAGES, to=99),
    Removed(NodeId(1), NodeId(0), Pages(b"\1\0\0\0"), NO_PAGES),
    Removed(NodeId(0), NodeId(0), NO_PAGES, NO_PAGES),
    Transferred(NodeId(1), NodeId(0), tree_account(NodeId(1)), b"", NO_PAGES, NO_PAGES),
    Transferred(NodeId(999), NodeId(1), 3, b"k" * 16, Pages(b"\5\0\0\0"), Pages(b"\5\0\0\0")),
    Extended(b"\1" * 8, b"\1" * 4, b"\1" * 8, b"\xff" * 4, Pages(b"\1\0\0\0"), Pages(b"\1\0\0\0")),
    Extended(b"\1" * 7, b"\1" * 4),
    Locked(NodeId(1), 7, marked=NodeId(0)),  # type: ignore[arg-type]
    Refused("double_free", "of a mile" * 1000),
    Gap(5, "of no number"),
]


def changed_numbers(event: AnyEvent, chance: st.DataObject) -> AnyEvent:
    """One field of the event at random, of the type that it has."""
    names = [name for name in event.__struct_fields__ if isinstance(getattr(event, name), int | bytes)]
    if not names:
        return event
    name = chance.draw(st.sampled_from(names))
    value = getattr(event, name)
    if isinstance(value, bytes):
        return replace(event, **{name: chance.draw(st.binary(max_size=40))})
    return replace(event, **{name: chance.draw(st.integers(-(1 << 63), (1 << 63) - 1))})


@given(seed=st.integers(0, 1000), chance=st.data())
def test_whatever_was_written_down_can_be_folded_and_judged(seed: int, chance: st.DataObject) -> None:
    """The fold is total: a mutant's journal is told apart from a lawful one and never crashes the reader."""
    events = spoiled(Driven(seed).run(25).journal.events, chance)
    assert isinstance(events[0], Opened)
    try:
        report = audited(framed(events))
        state = fold(framed(events))
    except Unfoldable:
        return  # an Opened that asks for the moon
    assert report.events == len(events)
    for finding in broken_laws(state):
        assert finding.detail


def test_every_kind_of_event_is_folded_by_the_fold() -> None:
    seen = {
        type(event)
        for shape in (SHAPES[1], STATE_SHAPES[1])
        for seed in range(6)
        for event in Driven(seed, shape).run(250).drain().journal.events
    } | {type(event) for event in all_of_it().journal.events}
    seldom = {"Bound", "Snapshotted", "Violated", "Gap", "Closed", "Retokened"}
    assert {kind.__name__ for kind in set(get_args(AnyEvent)) - seen} <= seldom


def test_a_run_without_a_cache_is_told_by_its_first_event() -> None:
    journal = FrameList(opened())
    cache = RankCache(journal.opened, journal)
    assert digest(fold(journal.frames)) == cache.digest()
