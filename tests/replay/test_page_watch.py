"""Judged by pages alone: what a stretch says of one page has to fit together, whatever was before it."""

from pathlib import Path

from radixledger.journal.accounts import FREE, Kind, request_account
from radixledger.journal.events import Allocated, AnyEvent, Freed, Gap
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Pages, RequestId, Seq
from radixledger.replay.page_watch import PageWatch

from .runs import RANK, audited, events_of, framed, with_inserted, written


def one(page: int) -> Pages:
    return Pages(page.to_bytes(4, "little"))


def freed(request: int, page: int) -> Freed:
    return Freed(int(request_account(RequestId(request))), one(page), one(page), one(page))


def taken(request: int, page: int) -> Allocated:
    return Allocated(RequestId(request), one(page), one(page))


def laws(*events: AnyEvent) -> list[tuple[int, str, int]]:
    """Number, law and pool of each finding."""
    watch = PageWatch()
    return [
        (found.seq, found.law, found.pool)
        for seq, event in enumerate(events, 1)
        for found in watch.look(Seq(seq), event)
    ]


def test_nothing_is_known_of_a_page_before_it_moves() -> None:
    assert laws(freed(7, 1), taken(8, 1), freed(8, 1), taken(9, 2)) == []


def test_each_way_to_contradict_has_the_name_that_the_fold_gives_it() -> None:
    assert laws(freed(7, 1), freed(7, 1)) == [(2, "a_page_is_freed_once", 0), (2, "a_page_is_freed_once", 1)]
    assert {law for _, law, _ in laws(taken(7, 1), taken(8, 1))} == {"only_free_pages_are_allocated"}
    assert {law for _, law, _ in laws(taken(7, 1), freed(8, 1))} == {"a_page_is_given_by_its_owner"}


def test_a_lawful_stretch_contradicts_nothing_wherever_it_begins(tmp_path: Path) -> None:
    written(tmp_path / "run", 150)
    events = events_of(JournalReader(tmp_path / "run", RANK).frames())
    for begin in range(0, len(events), 17):
        assert laws(*events[begin:]) == []


def test_a_page_that_is_freed_twice_behind_a_gap_is_found(tmp_path: Path) -> None:
    """J14: no digest agrees behind it, and the double free is told all the same; of the state nothing is."""
    written(tmp_path / "run", 150)
    frames = list(JournalReader(tmp_path / "run", RANK).frames())
    missing = frames[40:43]
    lost = sum(len(frame.events) for frame in missing)
    last = missing[-1].seq_first + len(missing[-1].events) - 1
    with_gap = [*frames[:40], *framed([Gap(lost, "planted")], last), *frames[43:]]
    assert audited(with_gap).broken == {"no_event_is_missing": 1}
    event = next(
        event
        for event in events_of(frames[60:])
        if isinstance(event, Freed) and event.to == FREE and event.full and event.giver & 7 == Kind.REQUEST
    )
    seq = 1 + next(seq for seq, each in enumerate(events_of(frames), 1) if each is event)
    spoiled, planted = with_inserted(with_gap, seq, event)
    report = audited(spoiled)
    first = next(each for each in report.findings if each.pool == "FULL")
    assert (first.seq, first.law, first.by_pages) == (planted, "a_page_is_freed_once", True)
