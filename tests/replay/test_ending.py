"""How a journal ends: leaks are named where no event is wrong, and what a crash leaves half done is none."""

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from radixledger.cache.rank import RankCache
from radixledger.cache.refusals import DoubleFree, Unmapped
from radixledger.journal.events import Config
from radixledger.journal.recorder import Recorder
from radixledger.journal.writer import JournalWriter
from radixledger.replay.triage.ending import LAST_TOLD, PAGES_KEPT, QUIET_GROWTHS
from radixledger.replay.triage.sentences import verdict
from radixledger.replay.triage.triage import RankTriage, triage_rank
from radixledger.replay.verdict import PAGES_KEPT as FINDING_KEPT

from ..mutants.desk import SMALL, Desk, opened
from .runs import RANK, Clock


def served(
    run: Path, script: Callable[[Desk], None], *, closed: bool = True, config: Config = SMALL
) -> RankTriage:
    """What triage says of a server that did this and then ended, or was killed."""
    writer = JournalWriter.open(run, opened(config), clock=Clock())
    desk = Desk(RankCache(writer.opened, writer, seq=writer.last_seq))
    script(desk)
    if closed:
        desk.cache.close()
    else:
        writer.close()
    return triage_rank(run, RANK)


def quiet(desk: Desk) -> None:
    """A request is admitted, and forgotten while another one is served to its end."""
    desk.admit("forgotten", "abc")
    desk.fill("forgotten")
    desk.admit("other", "xy")
    desk.fill("other")
    for _ in range(QUIET_GROWTHS):
        desk.grow("other", 1)
    desk.finish("other")


def many(desk: Desk) -> None:
    """Several whole lives."""
    for name in "abcdefgh":
        desk.serve(name, name * 2)


def test_pages_that_a_caller_took_and_lost_are_a_leak(tmp_path: Path) -> None:
    """What a server calls "pool memory leak detected": available and evictable do not add up, and nobody is live."""

    def script(desk: Desk) -> None:
        desk.serve("a", "ab")
        desk.cache.alloc(3)

    found = served(tmp_path / "run", script)
    assert found.kind == "leak"
    assert found.report.clean, "no event is wrong by itself"
    assert [(each.what, len(each.pages), each.holder) for each in found.ending.leaks] == [
        ("FULL pages", 3, "a caller without a request"),
        ("SWA pages", 3, "a caller without a request"),
    ]
    (seq,) = {each.since for each in found.ending.leaks}
    assert f"holds 3 FULL pages, since event {seq}: handed out" in verdict(found)[0]


def test_a_leak_of_more_pages_than_are_listed_says_how_many_there_are(tmp_path: Path) -> None:
    """J14: a list that is cut says so; who counts what is left counts wrong."""
    many = PAGES_KEPT + 44
    config = replace(SMALL, full_pages=2 * many, swa_pages=2 * many)

    def script(desk: Desk) -> None:
        desk.cache.alloc(many)

    found = served(tmp_path / "run", script, config=config)
    told = [(leak.what, leak.page_count, len(leak.pages)) for leak in found.ending.leaks]
    assert told == [("FULL pages", many, PAGES_KEPT), ("SWA pages", many, PAGES_KEPT)]
    assert f"holds {many} FULL pages" in verdict(found)[0]


def test_a_finding_of_more_pages_than_are_listed_says_how_many_there_are(tmp_path: Path) -> None:
    """J14: as with leaks, in the verdict and on the page for the ticket."""
    many = FINDING_KEPT + 100
    pages = range(1, many + 1)
    with Recorder.open(
        tmp_path / "run", replace(SMALL, full_pages=many, swa_pages=0, window_tokens=0), clock=Clock()
    ) as recorder:
        recorder.allocated(None, pages)
        recorder.freed(pages)
        recorder.freed(pages)
    found = triage_rank(tmp_path / "run", RANK)
    assert found.explained is not None
    first = found.explained.first
    assert (first.law, first.page_count, len(first.pages)) == ("a_page_is_freed_once", many, FINDING_KEPT)
    assert f"FULL pages 1, 2, 3, 4 and {many - 4} more" in verdict(found)[0]


def test_a_free_group_that_was_never_flushed_is_a_leak(tmp_path: Path) -> None:
    def script(desk: Desk) -> None:
        full, _ = desk.cache.alloc(2)
        desk.cache.open_group()
        desk.cache.free(full)

    found = served(tmp_path / "run", script)
    assert found.kind == "leak"
    assert {each.holder for each in found.ending.leaks} == {"the open free group"}


def test_a_lock_that_outlives_everybody_is_a_leak(tmp_path: Path) -> None:
    """What it shields can never be evicted."""

    def script(desk: Desk) -> None:
        desk.serve("a", "ab")
        desk.cache.lock(desk.node("ab"))

    found = served(tmp_path / "run", script)
    assert found.kind == "leak"
    (leak,) = found.ending.leaks
    assert leak.what == "a lock"
    assert "1 receipt of no live request" in leak.holder


def test_a_request_that_nobody_ended_is_a_leak_once_others_have_gone_on(tmp_path: Path) -> None:
    """A client left and nobody told the cache: the request is live for ever, and holds its pages."""
    found = served(tmp_path / "run", quiet)
    assert found.kind == "leak"
    (left,) = found.ending.live
    assert (left.rid, left.pages, left.quiet) == ("forgotten", 3, True)
    assert "unless it waits for something" in verdict(found)[0]
    assert "(forgotten) holds 3 FULL pages" in verdict(found)[0]


@pytest.mark.parametrize("closed", [True, False])
def test_requests_that_were_running_when_the_server_ended_are_no_leak(closed: bool, tmp_path: Path) -> None:
    def script(desk: Desk) -> None:
        quiet(desk)
        desk.grow("forgotten", 1)

    found = served(tmp_path / "run", script, closed=closed)
    assert found.kind == "clean"
    assert [(each.rid, each.quiet) for each in found.ending.live] == [("forgotten", False)]


def test_what_a_killed_server_was_about_to_use_is_no_leak(tmp_path: Path) -> None:
    """Pages on their way to a row, a lock on its way to a request."""

    def script(desk: Desk) -> None:
        desk.serve("a", "ab")
        desk.cache.alloc(3)
        desk.cache.lock(desk.node("ab"))

    assert served(tmp_path / "run", script, closed=False).kind == "clean"


def test_commands_that_gave_up_what_they_did_not_have_are_told_with_the_event_that_made_it_so(
    tmp_path: Path,
) -> None:
    def script(desk: Desk) -> None:
        full, _ = desk.cache.alloc(2)
        desk.cache.free(full)
        for _ in range(2):
            with pytest.raises((DoubleFree, Unmapped)):
                desk.cache.free(full)

    found = served(tmp_path / "run", script)
    assert found.kind == "turned down"
    first, again = found.ending.turned_down
    assert (first.reason, first.pages, first.since) == ("double_free", [1, 2], 3)
    assert again.seq == first.seq + 1
    assert "; 1 more like it" in verdict(found)[0]


def test_the_last_events_are_kept_and_no_more(tmp_path: Path) -> None:
    found = served(tmp_path / "run", many)
    assert [each.seq for each in found.ending.last] == list(
        range(found.report.seq_last - LAST_TOLD + 1, found.report.seq_last + 1)
    )
    assert found.ending.last[-1].event == "Closed"
    assert (found.ending.idle, found.ending.closed, found.ending.leaks) == (True, True, [])


def test_of_a_journal_whose_end_cannot_be_judged_no_leak_is_told(tmp_path: Path) -> None:
    """Frees may be among what is missing."""
    served(tmp_path / "run", many)
    (path,) = (tmp_path / "run" / "rank-0000").glob("*.sealed")
    packed = bytearray(path.read_bytes())
    packed[len(packed) // 2] ^= 0xFF
    path.write_bytes(packed)
    found = triage_rank(tmp_path / "run", RANK)
    assert found.kind == "damaged"
    assert found.ending.leaks == []
