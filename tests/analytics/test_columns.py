"""Events as columns: the same rows as `journal.moves` reads event by event, and nothing lost of what events say."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixledger.analytics.batch import EVENT_TYPES, NONE, MalformedEvent
from radixledger.analytics.columns import columns, end_to_end
from radixledger.analytics.tables import ARRAYS
from radixledger.journal.accounts import Pool
from radixledger.journal.events import (
    Admitted,
    Allocated,
    AnyEvent,
    Extended,
    Freed,
    Healed,
    Matched,
    StateTracked,
    Stepped,
    Unlocked,
)
from radixledger.journal.frame import Frame
from radixledger.journal.moves import mappings, moves, pages_of
from radixledger.journal.units import NodeId, Pages, RequestId, Seq, TokenCount

from ..journal.events_sample import commands
from ..journal.every_event import of_kind
from .story import healthy, ids, pages, request

Rows = list[tuple[int, ...]]


def framed(events: Sequence[AnyEvent], first: int = 1) -> list[Frame]:
    """One event a frame, each a millisecond and a step behind the other."""
    return [Frame(Seq(first + at), at * 1000, at, 1, [event]) for at, event in enumerate(events)]


def page_rows(events: Sequence[AnyEvent]) -> Rows:
    """(seq, pool, place, page, from, to) of every move, in the order in which they happen."""
    rows = []
    for seq, event in enumerate(events, 1):
        place = dict.fromkeys(Pool, 0)
        for move in moves(event):
            for page in pages_of(move.pages).tolist():
                rows.append((seq, int(move.pool), place[move.pool], page, move.giver, move.taker))
                place[move.pool] += 1
    return sorted(rows)


def mapping_rows(events: Sequence[AnyEvent]) -> Rows:
    """(seq, place, FULL page, SWA page or NONE) of every change of the mapping."""
    rows = []
    for seq, event in enumerate(events, 1):
        place = 0
        for change in mappings(event):
            full, swa = pages_of(change.full).tolist(), pages_of(change.swa).tolist()
            for page, partner in zip(full, swa or [NONE] * len(full), strict=True):
                rows.append((seq, place, page, partner))
                place += 1
    return sorted(rows)


def read_page_rows(events: Sequence[AnyEvent]) -> Rows:
    table = columns(framed(events)).get("pages")
    if table is None:
        return []
    giver = table["from_holder"] << 3 | table["from_kind"]
    taker = table["to_holder"] << 3 | table["to_kind"]
    names = [table["seq"], table["pool"], table["place"], table["page"], giver, taker]
    return sorted(zip(*(column.tolist() for column in names), strict=True))


def read_mapping_rows(events: Sequence[AnyEvent]) -> Rows:
    table = columns(framed(events)).get("mappings")
    if table is None:
        return []
    return sorted(
        zip(*(table[name].tolist() for name in ("seq", "place", "full_page", "swa_page")), strict=True)
    )


def sample(count: int) -> list[AnyEvent]:
    """A busy rank's events, of every kind."""
    stream = (event for command in commands(3) for event in command)
    return [event for event, _ in zip(stream, range(count), strict=False)]


def story_events() -> list[AnyEvent]:
    return [event for frame in healthy().frames for event in frame.events]


@pytest.mark.parametrize("events", [sample(3000), story_events()], ids=["a busy rank", "a told story"])
def test_pages_and_mappings_are_those_of_the_vocabulary(events: list[AnyEvent]) -> None:
    """J21, J6: the vectorised reading and `journal.moves` agree on every row."""
    assert read_page_rows(events) == page_rows(events)
    assert read_mapping_rows(events) == mapping_rows(events)


_SMALL_PAGES = st.lists(st.integers(0, 40), max_size=4).map(lambda numbers: pages(*numbers))


@st.composite
def page_events(draw: st.DrawFn) -> AnyEvent:
    """Events whose page columns fit each other, lawful or not."""
    moving = ("swa", "slot", "slots", "fresh", "host", "landed")
    movers = [
        kind for kind in EVENT_TYPES if set(moving) & set(kind.__struct_fields__) and kind is not StateTracked
    ]
    kind = draw(st.sampled_from(movers))
    fields: dict[str, Any] = {}
    swa = draw(_SMALL_PAGES)
    for name in kind.__struct_fields__:
        if name in ("swa", "host"):
            fields[name] = swa
        elif name in ("slot", "slots", "recurrent", "former"):
            fields[name] = draw(_SMALL_PAGES)
        elif name in ("full", "fresh", "old", "source", "target", "unmapped"):
            fields[name] = Pages(bytes(reversed(swa))[::1]) if draw(st.booleans()) else swa
        elif name in (
            "node",
            "upper",
            "parent",
            "request",
            "giver",
            "taker",
            "transfer",
            "above",
            "boundary",
        ):
            fields[name] = draw(st.integers(0, 2**40))
        elif name in {"mode", "to"}:
            fields[name] = draw(st.integers(0, 1))
        elif name == "landed":
            fields[name] = draw(st.booleans())
    if kind is Extended:
        fields |= _takers(draw, len(swa) // 4) | {"requests": ids(1), "grown": pages(1), "full": swa}
    required = {"key": b"", "start": 0, "stop": 4, "protected": 0}
    return kind(
        **{name: value for name, value in required.items() if name in kind.__struct_fields__} | fields
    )  # type: ignore[return-value]


def _takers(draw: st.DrawFn, taken: int) -> dict[str, Any]:
    counts: list[int] = []
    while sum(counts) < taken:
        counts.append(draw(st.integers(1, taken - sum(counts))))
    takers = [draw(st.integers(1, 2**40)) for _ in counts]
    return {"takers": ids(*takers), "counts": pages(*counts)}


@given(st.lists(page_events(), max_size=12))
def test_any_events_read_as_the_vocabulary_reads_them(events: list[AnyEvent]) -> None:
    assert read_page_rows(events) == page_rows(events)
    assert read_mapping_rows(events) == mapping_rows(events)


@pytest.mark.parametrize("kind", EVENT_TYPES, ids=lambda kind: kind.__name__)
def test_every_type_of_event_becomes_rows_or_is_refused_by_number(kind: type) -> None:
    """Untrusted journals can do no more than fail."""

    @given(st.lists(of_kind(kind), min_size=1, max_size=3))
    def reads(events: list[AnyEvent]) -> None:
        with suppress(MalformedEvent):
            tables = columns(framed(events))
            assert tables["events"]["seq"].tolist() == list(range(1, len(events) + 1))
            for name, arrays in tables.items():
                assert arrays.keys() == ARRAYS[name].keys()
                assert len({len(array) for array in arrays.values()}) == 1

    reads()


def test_columns_do_not_depend_on_how_frames_are_batched() -> None:
    frames = healthy().frames
    whole = columns(frames)
    parts = end_to_end([columns(frames[at : at + 3]) for at in range(0, len(frames), 3)])
    assert whole.keys() == parts.keys()
    for name, arrays in whole.items():
        order, other = (np.argsort(table["seq"], kind="stable") for table in (arrays, parts[name]))
        for column, array in arrays.items():
            assert array[order].tolist() == parts[name][column][other].tolist(), (name, column)


def test_no_frames_are_no_tables() -> None:
    assert columns([]) == {}


def test_events_know_their_frame_and_their_place_in_it() -> None:
    frames = [
        Frame(Seq(7), 70, 3, 2, [Stepped(3, 0), Stepped(3, 1)]),
        Frame(Seq(20), 80, 4, 3, [Stepped(4, 0)]),
    ]
    events = columns(frames)["events"]
    assert events["seq"].tolist() == [7, 8, 20]
    assert events["time_ns"].tolist() == [70, 70, 80]
    assert events["step"].tolist() == [3, 3, 4]
    assert events["epoch"].tolist() == [2, 2, 3]


def test_what_an_event_does_not_have_is_none() -> None:
    rows = columns(framed([Stepped(1, 0), Unlocked(NodeId(4), 2, RequestId(9))]))  # type: ignore[arg-type]
    assert rows["events"]["request"].tolist() == [NONE, 9]
    assert rows["events"]["node"].tolist() == [NONE, 4]
    assert rows["events"]["cause"].tolist() == [NONE, 0]
    assert rows["lock_changes"]["skipped"].tolist() == [NONE]


def test_a_cause_of_the_future_stays_apart_from_none() -> None:
    events = [Freed(request(1), pages(), pages(), pages(), cause=99_999)]  # type: ignore[arg-type]
    assert columns(framed(events))["events"]["cause"].tolist() == [2**15 - 1]


def partners(events: Sequence[AnyEvent]) -> set[tuple[int, int, int]]:
    table = columns(framed(events))["pages"]
    return set(zip(table["pool"].tolist(), table["page"].tolist(), table["partner"].tolist(), strict=True))


def test_the_last_full_pages_of_an_allocation_are_partners_of_its_swa_pages() -> None:
    event = Allocated(RequestId(1), pages(1, 2, 3), pages(8, 9))
    assert partners([event]) == {(0, 1, NONE), (0, 2, 8), (0, 3, 9), (1, 8, 2), (1, 9, 3)}


def test_healing_by_replacement_frees_the_old_pages_before_it_takes_the_fresh() -> None:
    event = Healed(NodeId(1), 0, request(2), pages(7), pages(3), pages(9))
    table = columns(framed([event]))["pages"]
    full = table["pool"] == 0
    order = np.argsort(table["place"][full])
    assert table["page"][full][order].tolist() == [3, 7]
    assert partners([event]) == {(1, 9, 7), (0, 3, NONE), (0, 7, 9)}


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (Allocated(RequestId(1), pages(1), pages(2, 3)), "more SWA pages than FULL pages"),
        (Allocated(RequestId(1), Pages(b"\1\0\0"), pages()), "no multiple of 4"),
        (Extended(ids(1), pages(1), ids(1), pages(2), pages(1), pages(1)), "do not add up"),
        (Extended(ids(1), pages(1), ids(1, 2), pages(1), pages(1), pages(1)), "differ in length"),
        (Extended(ids(1), pages(1), ids(1, 2), pages(2, -1), pages(1), pages(1)), "negative"),
        (Extended(ids(1), pages(1), ids(1), pages(1), pages(1), pages(2, 3)), "not as many"),
        (Extended(ids(1), pages(1), b"\1" * 12, pages(1), pages(1), pages(1)), "no multiple of 8"),
        (Admitted(RequestId(2**63), "r", TokenCount(1), TokenCount(0), NodeId(0)), "request is 9223372036854775808"),
        (Matched("r", RequestId(1), TokenCount(-(2**63) - 1), TokenCount(0), TokenCount(0), NodeId(0), 0), "asked is"),
    ],
)  # fmt: skip
def test_an_event_whose_columns_do_not_fit_is_refused_by_number(event: AnyEvent, why: str) -> None:
    with pytest.raises(MalformedEvent, match=why) as caught:
        columns(framed([Stepped(1, 0), event]))
    assert (caught.value.seq, caught.value.kind) == (2, type(event))


def test_a_rare_type_alone_fills_every_array_of_its_table() -> None:
    """An `Unlocked` has no marks, a `Retracted` no node: their tables have these columns all the same."""
    for frame in _single_event_frames():
        for name, arrays in columns([frame]).items():
            assert arrays.keys() == ARRAYS[name].keys()


def _single_event_frames() -> Iterator[Frame]:
    for frame in healthy().frames:
        for at, event in enumerate(frame.events):
            yield frame._replace(seq_first=Seq(frame.seq_first + at), events=[event])
