"""Two journals are the same whatever their numbers are, and part at the first event that says something else (J24, N17)."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from radixledger.journal.accounts import Kind, request_account
from radixledger.journal.causes import Operation, cause
from radixledger.journal.events import (
    Admitted,
    Allocated,
    AnyEvent,
    Freed,
    Gap,
    Matched,
    Refused,
    Violated,
)
from radixledger.journal.frame import Frame
from radixledger.journal.moves import ids_of, pages_of
from radixledger.journal.units import BoundaryId, NodeId, Pages, RequestId, TransferId
from radixledger.replay.diff.diverge import (
    Compared,
    comparable_keys,
    compare,
    openings_differ,
    outcome,
    whole,
)
from radixledger.replay.diff.first_names import SILENT

from ..cache.driven import SHAPES, STATE_SHAPES, Driven, opened
from ..cache.hosted import all_of_it
from .runs import framed
from .test_blame import pages
from .test_fold import spoiled

ACCOUNTS = ("giver", "taker", "to", "expected", "found")


def compared(a: list[Frame], b: list[Frame], *, keys: bool = True) -> Compared:
    return compare(a, b, whole, keys=keys)


def renumbered(event: AnyEvent) -> AnyEvent:
    """The event as a run would have written it that counts otherwise: other pages, nodes, requests, marks and copies."""
    changes: dict[str, Any] = {}
    for field in fields(event):
        value = getattr(event, field.name)
        if field.type in (NodeId, RequestId, BoundaryId, TransferId):
            changes[field.name] = value and value + 8_000
        elif field.type is Pages:
            changes[field.name] = ((pages_of(value) * 7) % 1009).astype("<i4").tobytes()
        elif field.name in ("requests", "takers", "skipped"):
            changes[field.name] = (ids_of(value) + 8_000).astype("<i8").tobytes()
        elif field.name in ACCOUNTS and value & 7 in (Kind.REQUEST, Kind.TREE, Kind.IN_FLIGHT) and value >> 3:
            changes[field.name] = value + (8_000 << 3)
    return replace(event, **changes)


def changed(frames: list[Frame], change: Callable[[AnyEvent], AnyEvent]) -> list[Frame]:
    return [frame._replace(events=[change(event) for event in frame.events]) for frame in frames]


@settings(max_examples=20)
@given(seed=st.integers(0, 1 << 32), shape=st.sampled_from((*SHAPES, *STATE_SHAPES)))
def test_a_run_that_counts_otherwise_is_the_same_run(seed: int, shape: tuple[int, ...]) -> None:
    frames = Driven(seed, shape).run(80).journal.frames
    other = changed(frames, renumbered)
    for tell in (whole, outcome):
        assert compare(frames, other, tell, keys=True).parting is None
    told = sum(not isinstance(event, SILENT) for frame in frames for event in frame.events)
    assert compared(frames, other).compared == told


def test_copies_on_the_host_have_names_too() -> None:
    frames = all_of_it().journal.frames
    assert compared(frames, changed(frames, renumbered)).parting is None


def test_which_free_page_is_handed_out_means_nothing() -> None:
    """A page has a name for each of its lives."""
    seven, eight = RequestId(7), RequestId(8)

    def run(second: int) -> list[Frame]:
        return framed(
            [
                opened(),
                Allocated(seven, pages(3), pages(4), cause(Operation.ALLOC)),
                Freed(request_account(seven), pages(3), pages(3), pages(4)),
                Allocated(eight, pages(second), pages(4), cause(Operation.ALLOC)),
                Freed(request_account(eight), pages(second), pages(second), pages(4)),
            ]
        )

    assert compared(run(3), run(9)).parting is None
    twice = run(3)
    twice[4] = twice[4]._replace(events=[Freed(request_account(eight), pages(9), pages(9), pages(4))])
    parting = compared(run(3), twice).parting
    assert parting is not None
    assert (parting.compared, parting.a and parting.a.seq) == (3, 5)
    assert set(parting.fields) == {"full", "unmapped"}


@settings(max_examples=40)
@given(seed=st.integers(0, 1000), chance=st.data())
def test_the_first_event_that_says_something_else_is_named(seed: int, chance: st.DataObject) -> None:
    """One number of one event is another one: they part there, and the field is named."""
    events = Driven(seed).run(40).journal.events
    counts = (
        "prompt",
        "prefix",
        "tokens",
        "asked",
        "hit",
        "start",
        "stop",
        "length",
        "gained_full",
        "cached",
    )
    places = [
        (at, name)
        for at, event in enumerate(events)
        for name in counts
        if hasattr(event, name) and not isinstance(event, SILENT)
    ]
    at, name = chance.draw(st.sampled_from(places))
    other = [*events]
    other[at] = replace(other[at], **{name: getattr(other[at], name) + 1})
    parting = compared(framed(events), framed(other)).parting
    assert parting is not None
    assert parting.a is not None
    assert parting.b is not None
    assert (parting.a.seq, parting.b.seq) == (at + 1, at + 1)
    assert parting.fields == {name: (getattr(events[at], name), getattr(other[at], name))}
    assert parting.compared == sum(not isinstance(event, SILENT) for event in events[:at])
    assert [place.seq for place in parting.behind[0]][:1] == [at + 1]
    assert all(mine.seq == theirs.seq < at + 1 for mine, theirs in parting.before)


def test_a_journal_that_ends_sooner_parts_there() -> None:
    frames = Driven(5).run(60).journal.frames
    for a, b, short in ((frames, frames[:30], "b"), (frames[:30], frames, "a")):
        parting = compared(a, b).parting
        assert parting is not None
        assert (parting.a is None, parting.b is None) == (short == "a", short == "b")
        assert parting.fields == {}
    assert compared([], []).parting is None


def test_behind_a_gap_nothing_is_compared() -> None:
    frames = Driven(5).run(60).journal.frames
    lost = [*frames[:10], Frame(frames[10].seq_first, 0, 0, 0, [Gap(1, "lost")]), *frames[11:]]
    for tell in (whole, outcome):
        parting = compare(frames, lost, tell, keys=True).parting
        assert parting is not None
        assert parting.gap
        assert parting.fields == {}


def test_request_ids_that_are_spelt_otherwise_are_told_and_are_no_difference() -> None:
    frames = Driven(5).run(60).journal.frames

    def spelt(event: AnyEvent) -> AnyEvent:
        return (
            replace(event, rid=f"other-{event.rid}")
            if isinstance(event, Admitted | Matched) and event.rid
            else event
        )

    other = changed(frames, spelt)
    found = compared(frames, other)
    assert found.parting is None
    assert found.renamed
    assert all(b == f"other-{a}" for a, b in found.renamed)


def test_keys_are_compared_where_they_were_written_alike_and_named_where_not() -> None:
    frames = Driven(5).run(60).journal.frames

    def turned(event: AnyEvent) -> AnyEvent:
        key = getattr(event, "key", b"")
        return replace(event, key=key[::-1]) if key else event

    parting = compared(frames, changed(frames, turned)).parting
    assert parting is not None
    assert set(parting.fields) == {"key"}
    assert compared(frames, changed(frames, turned), keys=False).parting is None


def test_what_was_opened_otherwise_is_told() -> None:
    a = opened(redaction="hashed", key_id="k")
    assert comparable_keys(a, opened(redaction="hashed", key_id="k", run="other"))
    assert not comparable_keys(a, opened(redaction="hashed", key_id="l"))
    assert not comparable_keys(a, opened(redaction="plain"))
    b = opened(redaction="hashed", key_id="k", route="legacy", run="other")
    assert openings_differ(a, b) == {"route": (a.route, "legacy")}
    bigger = replace(a, config=replace(a.config, full_pages=61))
    assert openings_differ(a, bigger) == {"full_pages": (60, 61)}


@given(seed=st.integers(0, 1000), chance=st.data())
def test_whatever_was_written_down_can_be_compared(seed: int, chance: st.DataObject) -> None:
    events = Driven(seed).run(25).journal.events
    other = spoiled(events, chance)
    for tell in (whole, outcome):
        assert compare(framed(other), framed(other), tell, keys=True).parting is None or any(
            isinstance(event, Gap) for event in other
        )
        compare(framed(events), framed(other), tell, keys=False)


@pytest.mark.parametrize("kind", [Refused, Violated])
def test_texts_that_spell_numbers_are_no_difference(kind: type) -> None:
    def of(page: int) -> list[Frame]:
        event = kind("double_free", f"page {page} was freed at {page}", pages=pages(page), since=page)
        return framed([opened(), event])

    assert compared(of(3), of(9)).parting is None
