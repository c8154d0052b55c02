"""What a journal tells of requests: who asked, who grew when, what was kept; and what it cannot tell."""

from pathlib import Path

import numpy as np
import pytest

from radixledger.cache.rank import RankCache
from radixledger.journal.errors import Damaged
from radixledger.journal.events import AnyEvent, Finished, Gap, Transferred
from radixledger.journal.reader import JournalReader
from radixledger.journal.retention import Retention
from radixledger.journal.units import UNBOUND, Rank
from radixledger.journal.writer import JournalWriter
from radixledger.replay.whatif.schedule import Admit, Empty, End, Grow, Keep, Leave
from radixledger.tools.driver import Driver
from radixledger.tools.streams import ConversationStream, Job

from ...cache.driven import FrameList
from ..runs import KEY, events_of
from .recorded import CHUNK, PAGE, RUNNING, TALK, Sequenced, drive, sent, taken, taken_of


def one(prompt: int, outputs: int) -> Sequenced:
    return Sequenced([Job("a", np.arange(prompt, dtype=np.int32), outputs)])


def events_in(run: Path) -> list[AnyEvent]:
    return events_of(JournalReader(run, Rank(0)).frames())


def test_a_request_is_told_by_where_it_was_after_each_step(tmp_path: Path) -> None:
    """J17: a prompt of 100 tokens in chunks of 64, then five steps of decoding as one act."""
    drive(tmp_path / "run", stream=one(100, 6), tokens="plain")
    record = taken(tmp_path / "run", tmp_path / "taken")
    zero = np.zeros(1, "<i4").tobytes()
    assert record.acts == [
        Admit(0, 100, 0),
        Grow(zero, np.array([64], "<i4").tobytes(), decode=False),
        Keep(0, 64),
        Grow(zero, np.array([100], "<i4").tobytes(), decode=False),
        Keep(0, 100),
        Grow(zero, np.array([101], "<i4").tobytes(), decode=True, times=5),
        Leave(0, End.FINISHED),
    ]
    (job,) = record.jobs
    assert (job.rid, job.prompt, job.tokens, job.given) == ("a", 100, 105, 105 // PAGE)
    assert job.key[:400] == np.arange(100, dtype="<i4").tobytes()
    assert record.schedule.chunk_tokens == CHUNK
    assert record.schedule.odd == ()


@pytest.mark.parametrize("route", ["unified", "swa_chunk"])
def test_the_key_of_who_ended_well_is_known_on_every_route(route: str, tmp_path: Path) -> None:
    drive(tmp_path / "run", route=route)
    record = taken(tmp_path / "run", tmp_path / "taken")
    assert len(record.jobs) == 30
    assert all(len(job.key) == 8 * (job.tokens // PAGE) for job in record.jobs)


def test_a_request_that_was_retracted_is_one_job(tmp_path: Path) -> None:
    """R140: it is admitted again with what it had sampled as part of its prompt."""
    drive(tmp_path / "run")
    record = taken(tmp_path / "run", tmp_path / "taken")
    again = [act.job for act in record.acts if isinstance(act, Leave) and act.how == End.RETRACTED]
    assert again
    for job in again:
        prompts = [act.prompt for act in record.acts if isinstance(act, Admit) and act.job == job]
        assert len(prompts) == 2
        assert prompts[1] >= prompts[0] == record.jobs[job].prompt


def test_the_files_of_a_schedule_do_not_grow_with_steps_of_decoding(tmp_path: Path) -> None:
    """Bounded: a batch that decodes on and on is one act."""
    for outputs in (20, 400):
        drive(tmp_path / f"{outputs}", stream=one(20, outputs), full=60, swa=60, window=40)
    few, many = (taken(tmp_path / f"{outputs}", tmp_path / f"{outputs} taken") for outputs in (20, 400))
    assert len(few.acts) == len(many.acts)
    assert many.schedule.steps - few.schedule.steps == 380


def test_a_journal_that_begins_at_a_snapshot_gives_those_who_were_live_there(tmp_path: Path) -> None:
    """J17: it begins cold, which makes it an estimate; whoever was under way goes on."""
    opened = drive(tmp_path / "whole").cache.state.opened
    writer = JournalWriter.open(tmp_path / "run", opened, key=KEY, rotate_bytes=8192, retention=Retention(1))
    cache = RankCache(writer.opened, writer, seq=writer.last_seq, snapshot_every=200)
    driver = Driver(cache, ConversationStream(TALK), chunk_tokens=CHUNK, max_running=RUNNING)
    while driver.step():
        pass
    cache.close()
    assert JournalReader(tmp_path / "run", Rank(0)).first_seq > 1
    record = taken(tmp_path / "run", tmp_path / "taken")
    assert "begins at a snapshot" in record.schedule.odd[0]
    redrive, _ = sent(record)
    assert redrive.figures.finished == record.figures.finished > 0
    assert redrive.broken == []


def test_damage_is_raised(tmp_path: Path) -> None:
    drive(tmp_path / "run")
    (segment,) = (tmp_path / "run").rglob("*.sealed")
    content = bytearray(segment.read_bytes())
    content[len(content) // 2] ^= 0xFF
    segment.write_bytes(content)
    with pytest.raises(Damaged):
        taken(tmp_path / "run", tmp_path / "taken")


@pytest.mark.parametrize("lost", [40, 100])
def test_around_a_gap_what_is_left_is_sent(lost: int, tmp_path: Path) -> None:
    """J17: whatever was lost is not sent again, and makes an estimate."""
    drive(tmp_path / "run")
    events = events_in(tmp_path / "run")
    record = taken_of([*events[:200], Gap(lost, "torn"), *events[200 + lost :]], tmp_path / "taken")
    assert any("lost" in why for why in record.schedule.odd)
    redrive, _ = sent(record)
    assert 20 < redrive.figures.finished <= 30
    assert redrive.broken == []


def test_a_journal_whose_first_events_are_lost_is_opened_as_its_heading_says(tmp_path: Path) -> None:
    drive(tmp_path / "run")
    first, *rest = events_in(tmp_path / "run")
    record = taken_of([first, Gap(1, "torn"), *rest], tmp_path / "taken")
    assert record.schedule.jobs == 30


def test_an_end_that_nobody_began_is_passed_over_and_noted(tmp_path: Path) -> None:
    drive(tmp_path / "run", stream=one(100, 6))
    events = events_in(tmp_path / "run")
    (end,) = [event for event in events if isinstance(event, Finished)]
    record = taken_of([*events, end], tmp_path / "taken")
    assert record.schedule.jobs == 1
    assert any("admission is not in the journal" in why for why in record.schedule.odd)


def test_what_strangers_brought_is_noted(tmp_path: Path) -> None:
    """J17: a tree that others fill too hits otherwise."""
    drive(tmp_path / "run", stream=one(100, 6))
    events = [
        _by_nobody(event) if isinstance(event, Transferred) else event
        for event in events_in(tmp_path / "run")
    ]
    assert any("strangers" in why for why in taken_of(events, tmp_path / "taken").schedule.odd)


def _by_nobody(event: Transferred) -> Transferred:
    return Transferred(
        event.node, event.parent, event.giver, event.key, event.full, event.swa, event.namespace, UNBOUND
    )


def test_a_flush_is_sent_again(tmp_path: Path) -> None:
    """R177: behind it nothing is found."""
    opened = drive(tmp_path / "run", stream=one(100, 6)).cache.state.opened
    journal = FrameList(opened)
    cache = RankCache(opened, journal)
    driver = Driver(cache, one(100, 6), chunk_tokens=CHUNK, max_running=1)
    while driver.step():
        pass
    cache.flush()
    record = taken_of(journal.events, tmp_path / "taken")
    redrive, end = sent(record)
    assert record.acts[-1] == Empty()
    assert end == cache.digest()
    assert redrive.broken == []
