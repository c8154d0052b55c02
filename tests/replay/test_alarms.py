"""Alarms: the audit of `verify`, one frame at a time, in the words that a person needs."""

from pathlib import Path

import pytest

from radixledger.cache.rank import RankCache
from radixledger.journal.accounts import request_account
from radixledger.journal.events import Freed, Opened
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import NO_PAGES, Pages
from radixledger.replay.alarms import Alarm, Alarms
from radixledger.replay.seek import beginning_before, beginning_of
from radixledger.replay.verdict import KEPT
from radixledger.replay.verify import verify_rank

from ..cache.driven import Driven
from ..mutants.caught import spoiled, write
from ..mutants.table import MUTANTS
from .runs import RANK, framed, written

WRONG = (
    "a_finish_keeps_its_lock", "a_lock_is_released_twice", "an_unfinished_request_keeps_its_old_lock",
    "a_finish_tells_more_than_was_cached", "a_lock_is_released_to_the_root",
)  # fmt: skip


def raised(run: Path) -> list[tuple[int, Alarm]]:
    """Every alarm of a journal, and the last event that had been read when it was raised."""
    reader = JournalReader(run, RANK)
    alarms, out, last = Alarms(reader, beginning_of(reader)), [], 0
    for frame in reader.frames():
        last = frame.seq_first + len(frame.events) - 1
        out += [(last, alarm) for alarm in alarms.take(frame)]
    out += [(last, alarm) for alarm in alarms.finish()]
    assert alarms.count == len(out)
    return out


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_server_raises_the_first_alarm_at_its_first_wrong_event(name: str, tmp_path: Path) -> None:
    """J29: the event that was predicted, and no more than the rest of its command goes by before the alarm."""
    mutant = MUTANTS[name]
    with spoiled(mutant):
        predicted = write(tmp_path / name, mutant)
    found = raised(tmp_path / name)
    read, first = min(found, key=lambda each: each[1].seq)
    assert first.seq == predicted
    frame = next(
        frame
        for frame in JournalReader(tmp_path / name, RANK).frames()
        if frame.seq_first + len(frame.events) > first.seq
    )
    assert read == frame.seq_first + len(frame.events) - 1
    event = frame.events[first.seq - frame.seq_first]
    assert (first.event, first.step) == (type(event).__name__, frame.step)
    assert first.request == getattr(event, "request", 0)
    assert mutant.law in {alarm.law for _, alarm in found if alarm.seq == predicted}


def test_alarms_are_the_findings_of_verify(tmp_path: Path) -> None:
    """One audit, so that what rings at night is what `verify` says in the morning."""
    mutant = MUTANTS[WRONG[0]]
    with spoiled(mutant):
        write(tmp_path / "run", mutant)
    found = [alarm for _, alarm in raised(tmp_path / "run")]
    report = verify_rank(tmp_path / "run", RANK)
    assert sorted((alarm.seq, alarm.law, alarm.detail) for alarm in found) == sorted(
        (told.seq, told.law, told.detail) for told in report.findings
    )


def test_an_alarm_names_page_slots_owner_and_who_did_it(tmp_path: Path) -> None:
    """J29: a live request's page is freed by somebody else; the alarm says whose it was, by request id."""
    driven = Driven(7).run(60)
    cache: RankCache = driven.cache
    account = cache.state.full.account.tolist()
    owners = {request_account(each.id): each for each in cache.state.requests.values()}
    page = next(page for page, owner in enumerate(account) if owner in owners)
    request = owners[account[page]]
    frames = driven.journal.frames
    wrong = Freed(3, Pages(page.to_bytes(4, "little")), NO_PAGES, NO_PAGES)
    last = frames[-1].seq_first + len(frames[-1].events)

    written(tmp_path / "run", 1)
    alarms = Alarms(
        JournalReader(tmp_path / "run", RANK), beginning_of(JournalReader(tmp_path / "run", RANK))
    )
    assert [alarm for frame in frames for alarm in alarms.take(frame)] == []
    (frame,) = framed([wrong], last)
    first = alarms.take(frame)[0]
    assert (first.seq, first.event, first.pool, first.pages) == (last, "Freed", "FULL", [page])
    assert first.slots == [page * cache.state.page_size, (page + 1) * cache.state.page_size - 1]
    assert request.rid in first.found


def test_no_alarm_is_dropped_when_there_are_many(tmp_path: Path) -> None:
    """A report keeps the first findings; a person who watches gets them all."""
    driven = Driven(7).run(30)
    written(tmp_path / "run", 1)
    reader = JournalReader(tmp_path / "run", RANK)
    alarms = Alarms(reader, beginning_of(reader))
    for frame in driven.journal.frames:
        alarms.take(frame)
    last = driven.journal.count
    wrong = Freed(3, Pages((1).to_bytes(4, "little")), NO_PAGES, NO_PAGES)
    rung = [alarm for frame in framed([wrong] * (2 * KEPT), last + 1) for alarm in alarms.take(frame)]
    assert len(rung) == alarms.count >= 2 * KEPT
    assert len({alarm.seq for alarm in rung}) == 2 * KEPT


def test_a_lawful_journal_raises_none_from_wherever_it_is_read(tmp_path: Path) -> None:
    written(tmp_path / "run", 150, snapshots=(50, 100))
    reader = JournalReader(tmp_path / "run", RANK)
    for begin in (beginning_of(reader), beginning_before(reader, reader.last_seq)):
        alarms = Alarms(reader, begin)
        assert [alarm for frame in reader.frames(alarms.next_seq) for alarm in alarms.take(frame)] == []
        assert alarms.finish() == []


def test_a_new_epoch_is_judged_anew(tmp_path: Path) -> None:
    for resume in (False, True):
        written(tmp_path / "run", 60, resume=resume)
    assert raised(tmp_path / "run") == []
    assert (
        sum(
            type(event) is Opened
            for frame in JournalReader(tmp_path / "run", RANK).frames()
            for event in frame.events
        )
        == 2
    )
