"""Triage: which event is called the first, what stood around it, and how ranks are put side by side."""

from pathlib import Path

from radixledger.cache.rank import RankCache
from radixledger.journal.accounts import request_account
from radixledger.journal.events import Digested, Freed
from radixledger.journal.units import NO_PAGES, Pages, Rank, RequestId
from radixledger.journal.writer import JournalWriter
from radixledger.replay.triage.align import span_of_step
from radixledger.replay.triage.sentences import verdict
from radixledger.replay.triage.triage import RankTriage, triage_rank

from ..cache.driven import Driven, opened
from ..mutants.desk import SMALL, Desk
from ..mutants.desk import opened as desk_opened
from .runs import RANK, Clock
from .test_verify import longer


def free_twice(cache: RankCache, writer: JournalWriter) -> int:
    """A page is taken, freed, and freed again past the cache; the number of the last."""
    page, _ = cache.alloc(1)
    cache.free(page)
    seq = int(writer.next_seq)
    writer.append(Freed(request_account(RequestId(0)), page, NO_PAGES, NO_PAGES))
    writer.end_command()
    return seq


def first(found: RankTriage) -> tuple[int, str]:
    """The event that is called the first wrong one, and its law."""
    assert found.explained is not None
    return found.explained.first.seq, found.explained.first.law


def test_a_law_that_broke_in_silence_is_traced_to_its_command(tmp_path: Path) -> None:
    """J14: the next digest differs and the laws at the end are broken; the command that did it lies between."""
    writer = JournalWriter.open(tmp_path / "run", opened(redaction="plain"), clock=Clock())
    driven = Driven(7, recorder=writer).run(100)
    begun = writer.next_seq
    writer.append(longer(driven.cache, max(driven.cache.state.requests)))
    writer.end_command()
    for _ in range(40):
        writer.append(Digested(driven.cache.digest()))
        writer.end_command()
    writer.close()
    found = triage_rank(tmp_path / "run", RANK)
    assert first(found) == (begun, "a_row_shows_nothing_behind_its_length")
    assert found.report.findings[0].law == "a_recorded_digest_is_the_states"


def test_what_broke_in_silence_comes_before_what_an_event_broke_later(tmp_path: Path) -> None:
    """J14: the double free is loud, and not the first."""
    writer = JournalWriter.open(tmp_path / "run", opened(redaction="plain"), clock=Clock())
    driven = Driven(7, recorder=writer).run(60)
    begun = writer.next_seq
    writer.append(longer(driven.cache, max(driven.cache.state.requests)))
    writer.end_command()
    free_twice(driven.cache, writer)
    writer.close()
    assert first(triage_rank(tmp_path / "run", RANK)) == (begun, "a_row_shows_nothing_behind_its_length")


def test_a_digest_that_differs_while_every_law_holds_names_a_stretch(tmp_path: Path) -> None:
    """The writer folded otherwise than its events say: no event is to blame, and none is blamed."""
    writer = JournalWriter.open(tmp_path / "run", opened(redaction="plain"), clock=Clock())
    driven = Driven(7, recorder=writer).run(60)
    writer.append(Digested(driven.cache.digest()))
    writer.append(Digested(b"\0" * 8))
    writer.end_command()
    seq = writer.last_seq
    writer.close()
    found = triage_rank(tmp_path / "run", RANK)
    assert first(found) == (seq, "a_recorded_digest_is_the_states")
    assert found.explained is not None
    assert not found.explained.located
    assert verdict(found)[0].startswith(
        f"between event {seq - 2:,} and event {seq:,}, step 2 the writer's state left"
    )


def test_the_scene_tells_who_had_the_page_and_what_the_running_step_does_with_it(tmp_path: Path) -> None:
    """R151: a free under a running step, of a page that it reads and of one that it writes."""
    writer = JournalWriter.open(tmp_path / "run", desk_opened(SMALL), clock=Clock())
    desk = Desk(RankCache(writer.opened, writer, seq=writer.last_seq))
    desk.admit("a", "abcd")
    desk.fill("a")
    request = desk.numbers["a"]
    writer.end_step(7)
    desk.step(7, "a", 12)
    row = desk.cache.state.rows.full_table[desk.cache.state.row_of(request)]
    pages = Pages(row[[0, 3]].astype("<i4").tobytes())
    swa = desk.cache.state.mapping.swa_pages(pages)
    seq = int(writer.next_seq)
    writer.append(Freed(int(request_account(RequestId(77))), pages, pages, swa))
    writer.end_command()
    desk.cache.alloc(30)
    writer.close()
    found = triage_rank(tmp_path / "run", RANK)
    assert first(found) == (seq, "a_page_is_given_by_its_owner")
    explained = found.explained
    assert explained is not None
    assert {each.account for each in explained.holders} == {f"request {request} (a)"}
    assert [(each.step, each.requests) for each in explained.steps] == [(7, 1)]
    assert explained.steps[0].uses == [
        f"reads FULL page 1: tokens [0, 4) of request {request} (a)",
        f"writes FULL page 4: tokens [12, 16) of request {request} (a)",
        f"writes SWA page 4: tokens [12, 16) of request {request} (a)",
    ], "the window of the first token written begins behind SWA page 1"
    assert [(each.pool, each.pages, each.requests) for each in explained.pools] == [
        ("FULL", 40, 4),
        ("SWA", 40, 4),
    ]
    assert [(each.rid, each.state, each.length) for each in explained.requests][:1] == [
        ("", "not live", None)
    ]
    assert ("a", "live", 16) in [(each.rid, each.state, each.length) for each in explained.requests]


def test_a_gap_before_the_first_wrong_event_is_said(tmp_path: Path) -> None:
    """Behind it a restart begins anew, so that what it broke can be told; what was wrong before it nobody knows."""
    seq = 0
    for resume in (False, True):
        writer = JournalWriter.open(tmp_path / "run", opened(redaction="plain"), clock=Clock(), resume=resume)
        driven = Driven(7, recorder=writer, seq=writer.last_seq).run(60)
        seq = free_twice(driven.cache, writer) if resume else 0
        writer.close()
    path = min((tmp_path / "run" / "rank-0000").glob("*.sealed"))
    path.write_bytes(path.read_bytes()[:-300])
    found = triage_rank(tmp_path / "run", RANK)
    assert first(found) == (seq, "a_page_is_freed_once")
    assert any(each.startswith("Events are missing before it") for each in verdict(found))


def test_a_rank_is_found_where_it_stood_in_a_step(tmp_path: Path) -> None:
    """Ranks are aligned by step, never by clock."""
    writer = JournalWriter.open(tmp_path / "run", opened(redaction="plain"), clock=Clock())
    cache = RankCache(writer.opened, writer, seq=writer.last_seq)
    begins = {}
    for step in (1, 2, 5):
        writer.end_step(step)
        begins[step] = int(writer.next_seq)
        for _ in range(3):
            cache.alloc(1)
    last = int(writer.last_seq)
    writer.close()

    def span(step: int) -> tuple[int, int]:
        found = span_of_step(tmp_path / "run", RANK, step)
        assert found is not None
        return found.seq_first, found.seq_last

    assert span(1) == (begins[1], begins[2] - 1)
    assert span(2) == (begins[2], begins[5] - 1)
    assert span(3) == (begins[5], begins[5] - 1), "nothing was written in it"
    assert span(5) == (begins[5], last)
    assert span(9) == (last + 1, last)
    assert span_of_step(tmp_path / "run", Rank(3), 1) is None
