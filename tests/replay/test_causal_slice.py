"""The slice of an event: what its pages, nodes and requests went through, back to where they began, and no more."""

from pathlib import Path

import pytest

from radixledger.journal.accounts import request_account
from radixledger.journal.events import Aborted, Admitted, Allocated, AnyEvent, Freed, Reclaimed
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import NO_PAGES, ROOT, Pages, RequestId, TokenCount
from radixledger.journal.writer import JournalWriter
from radixledger.replay.triage import causal_slice as slices
from radixledger.replay.triage.causal_slice import backwards, causal_slice, handed_out_next
from radixledger.replay.triage.things import NODE, REQUEST, Thing, holder, named_by, pages_words

from ..cache.driven import opened
from .runs import RANK, Clock, events_of, written


def one(page: int) -> Pages:
    return Pages(page.to_bytes(4, "little"))


def put_down(run: Path, *events: AnyEvent) -> JournalReader:
    """A journal of these events, each a command; the first has number 2."""
    with JournalWriter.open(run, opened(redaction="plain"), clock=Clock()) as writer:
        for event in events:
            writer.append(event)
            writer.end_command()
    return JournalReader(run, RANK)


def taken(request: int, page: int) -> Allocated:
    return Allocated(RequestId(request), one(page), one(page))


def freed(request: int, page: int) -> Freed:
    return Freed(int(request_account(RequestId(request))), one(page), one(page), one(page))


def test_a_page_is_followed_to_the_beginning_of_its_present_life(tmp_path: Path) -> None:
    reader = put_down(tmp_path / "run", taken(5, 1), freed(5, 1), taken(6, 1), taken(7, 2), freed(6, 1))
    told = causal_slice(reader, 7, [Thing("FULL", 1)])
    assert [(each.seq, each.what) for each in told.events] == [
        (4, ["FULL page 1: free → request(6)"]),
        (6, ["FULL page 1: request(6) → free"]),
    ]
    assert not told.unfinished


def test_who_gave_up_what_another_has_is_followed_into_the_life_before(tmp_path: Path) -> None:
    """A foreign free: the giver had the page in a life that ended, or in this one, or never."""
    reader = put_down(tmp_path / "run", taken(4, 1), freed(4, 1), taken(5, 1), freed(5, 1), taken(6, 1))

    def told(giver: int) -> list[int]:
        return [each.seq for each in causal_slice(reader, 7, [Thing("FULL", 1)], giver=Thing(REQUEST, giver)).events]  # fmt: skip

    assert told(6) == [6]
    assert told(5) == [4, 5, 6]
    assert told(9) == [4, 5, 6]


def test_pages_of_two_pools_with_one_number_are_told_apart(tmp_path: Path) -> None:
    """Both end where they begin, and neither takes the other with it."""
    reader = put_down(tmp_path / "run", taken(5, 1), Freed(freed(5, 1).giver, one(1), NO_PAGES, NO_PAGES), taken(6, 2))  # fmt: skip
    told = causal_slice(reader, 5, [Thing("SWA", 1), Thing("FULL", 1), Thing("FULL", 2)])
    assert [each.what for each in told.events] == [
        ["FULL page 1: free → request(5)", "SWA page 1: free → request(5)"],
        ["FULL page 1: request(5) → free"],
        ["FULL page 2: free → request(6)"],
    ]


def test_windows_are_read_backwards_and_meet_without_a_seam(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "WINDOW_FIRST", 7)
    monkeypatch.setattr(slices, "WINDOW_MAX", 29)
    written(tmp_path / "run", 60)
    reader = JournalReader(tmp_path / "run", RANK)
    events = events_of(reader.frames())
    for stop, floor in ((len(events) + 1, 1), (40, 1), (41, 13), (5, 5)):
        read: list[AnyEvent] = []
        seqs = []
        for frame in backwards(reader, stop, floor):
            read += reversed(frame.events)
            seqs.append(frame.seq_first)
        assert read == list(reversed(events[floor - 1 : stop - 1]))
        assert seqs == sorted(seqs, reverse=True)


def test_a_look_back_that_ends_early_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = [event for page in range(2, 20) for event in (taken(6, page), freed(6, page))]
    reader = put_down(tmp_path / "run", taken(5, 1), *others)
    assert not causal_slice(reader, 39, [Thing("FULL", 1)]).unfinished
    monkeypatch.setattr(slices, "LOOK_BACK", 30)
    short = causal_slice(reader, 39, [Thing("FULL", 1)])
    assert (short.events, short.unfinished) == ([], True)


def test_a_thing_that_changes_often_tells_its_latest_changes(tmp_path: Path) -> None:
    """And how many it leaves out; its beginning and its end are always told."""
    nine = RequestId(9)
    changes = [Reclaimed(nine, TokenCount(0), TokenCount(0), NO_PAGES, NO_PAGES) for _ in range(20)]
    reader = put_down(
        tmp_path / "run", Admitted(nine, "r", TokenCount(9), TokenCount(0), ROOT), *changes, Aborted(nine, TokenCount(9))
    )  # fmt: skip
    told = causal_slice(reader, 24, [Thing(REQUEST, 9)])
    assert [each.event for each in told.events] == ["Admitted", *["Reclaimed"] * slices.CHANGES[0], "Aborted"]
    assert told.events[1].seq == 22 - slices.CHANGES[0] + 1
    assert told.left_out == {"request 9": 20 - slices.CHANGES[0]}
    assert (told.rids, told.ended) == ({9: "r"}, {9: "aborted"})


def test_who_gets_a_page_next_is_told_with_the_name_of_the_request(tmp_path: Path) -> None:
    written(tmp_path / "run", 200)
    reader = JournalReader(tmp_path / "run", RANK)
    seq, event = next(
        (seq, event)
        for seq, event in enumerate(events_of(reader.frames()), 1)
        if isinstance(event, Freed) and event.full
    )
    assert isinstance(event, Freed)
    page = Thing("FULL", int.from_bytes(event.full[:4], "little"))
    rids: dict[int, str] = {}
    (following, *_) = handed_out_next(reader, seq, [page, Thing(NODE, 1)], rids)
    (moved,) = (move for move in following.moved if move.page == str(page))
    assert following.seq > seq
    assert moved.giver == 0
    assert handed_out_next(reader, seq, [Thing(NODE, 1)], rids) == []


def test_what_an_event_names_is_told_by_kind() -> None:
    given = Freed(int(request_account(RequestId(9))), one(3), NO_PAGES, NO_PAGES, request=RequestId(8))
    assert named_by(given) == [Thing(REQUEST, 8), Thing(REQUEST, 9)]
    assert [holder(code) for code in (0, 1, 3, 11, 12, 5 | 16, 77777 << 3 | 7, -1)] == [
        None,
        None,
        None,
        Thing(REQUEST, 1),
        Thing(NODE, 1),
        Thing("transfer", 2),
        None,
        None,
    ]
    assert pages_words("FULL", [1]) == "FULL page 1"
    assert pages_words("SWA", list(range(1, 8))) == "SWA pages 1, 2, 3, 4 and 3 more"
    assert str(Thing("RECURRENT", 2)) == "RECURRENT slot 2"


def test_a_slice_ends_at_a_restart(tmp_path: Path) -> None:
    """Pages, nodes and requests of the life before are gone with it."""
    written(tmp_path / "run", 60, close=False)
    written(tmp_path / "run", 60, seed=9, resume=True)
    reader = JournalReader(tmp_path / "run", RANK)
    (second,) = [seq for seq, event in enumerate(events_of(reader.frames()), 1) if type(event).__name__ == "Opened"][1:]  # fmt: skip
    told = causal_slice(reader, reader.last_seq, [Thing("FULL", page) for page in range(1, 60)])
    assert told.events[0].seq > second
