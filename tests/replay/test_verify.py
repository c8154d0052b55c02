"""Verification: whatever was recorded is compared, whatever broke is found, and the first wrong event is named."""

from collections.abc import Callable
from pathlib import Path

import pytest

from radixledger.cache.rank import RankCache
from radixledger.journal import opening
from radixledger.journal.accounts import request_account
from radixledger.journal.events import (
    Bound,
    Digested,
    Freed,
    Gap,
    Opened,
    Refused,
)
from radixledger.journal.reader import JournalReader, ranks_in
from radixledger.journal.retention import Retention
from radixledger.journal.units import NO_PAGES, Pages, RequestId, TokenCount
from radixledger.journal.writer import JournalWriter, Policy
from radixledger.replay.audit import Audit
from radixledger.replay.seek import load
from radixledger.replay.verdict import RankReport
from radixledger.replay.verify import verify_rank

from ..cache.driven import Driven, opened
from .runs import RANK, Clock, audited, damage, framed, written


@pytest.mark.parametrize("policy", [Policy.OPERATION, Policy.STEP, Policy.SYNC])
@pytest.mark.parametrize("redaction", ["plain", "hashed"])
def test_a_lawful_journal_is_clean(tmp_path: Path, policy: Policy, redaction: str) -> None:
    """J12: every digest, ledger and snapshot was compared, every law was asked, nothing was found."""
    live = written(tmp_path / "run", 250, snapshots=(40, 90), policy=policy, redaction=redaction)
    report = verify_rank(tmp_path / "run", RANK)
    assert report.clean
    assert (report.findings, report.notices, report.unreadable) == ([], [], "")
    assert (report.seq_first, report.events, report.seq_last) == (1, max(live) + 1, max(live) + 1)
    assert (report.epochs, report.closed, report.snapshots) == (1, True, 2)
    assert report.digests >= 10
    assert report.ledgers >= 1
    assert report.whole_checks >= 1
    assert report.refusals["pool_short"] >= 1


def test_each_rank_is_judged_alone(tmp_path: Path) -> None:
    """R18: ranks use the same page numbers and share nothing."""
    for rank in range(2):
        written(tmp_path / "run", 60, seed=rank, rank=rank, ranks=2)
    first, second = (verify_rank(tmp_path / "run", rank) for rank in ranks_in(tmp_path / "run"))
    assert first.clean
    assert second.clean
    assert (first.rank, second.rank) == (0, 1)
    assert first.events != second.events


def test_several_epochs_are_one_journal(tmp_path: Path) -> None:
    written(tmp_path / "run", 60)
    written(tmp_path / "run", 60, seed=8, resume=True, close=False)
    written(tmp_path / "run", 60, seed=9, resume=True)
    report = verify_rank(tmp_path / "run", RANK)
    assert (report.clean, report.epochs, report.closed) == (True, 3, True)


def test_a_journal_that_was_not_closed_is_clean_and_says_so(tmp_path: Path) -> None:
    written(tmp_path / "run", 60, close=False)
    report = verify_rank(tmp_path / "run", RANK)
    assert (report.clean, report.closed) == (True, False)


def test_a_journal_without_its_beginning_is_judged_from_its_baseline(tmp_path: Path) -> None:
    """Without a baseline every early free would look like a violation."""
    written(tmp_path / "run", 200, snapshots=(150,), rotate_bytes=4096)
    writer = JournalWriter.open(tmp_path / "run", opened(), clock=Clock(), resume=True)
    writer.retain(Retention(keep_bytes=1))
    writer.close()
    report = verify_rank(tmp_path / "run", RANK)
    assert report.clean
    assert report.from_snapshot == JournalReader(tmp_path / "run", RANK).snapshots()[0].seq
    assert report.seq_first == report.from_snapshot + 1


def test_from_snapshot_begins_at_the_newest_one(tmp_path: Path) -> None:
    written(tmp_path / "run", 100, snapshots=(30, 60))
    report = verify_rank(tmp_path / "run", RANK, from_snapshot=True)
    assert report.clean
    assert report.from_snapshot == JournalReader(tmp_path / "run", RANK).snapshots()[1].seq
    assert report.events == report.seq_last - report.from_snapshot


# -- planted faults, on disk ---------------------------------------------------------------------------------


def planted(run: Path, plant: Callable[[RankCache, JournalWriter], None], *, after: int = 100) -> int:
    """A run in which somebody writes past the cache, then goes on; the number of the first planted event."""
    writer = JournalWriter.open(run, opened(redaction="plain"), clock=Clock())
    driven = Driven(7, recorder=writer).run(after)
    seq = writer.next_seq
    plant(driven.cache, writer)
    writer.end_command()
    for _ in range(3):
        writer.append(Digested(driven.cache.digest()))
    writer.close()
    return seq


def test_a_double_free_is_named_with_the_life_of_its_page(tmp_path: Path) -> None:
    """The first wrong event, and who had the page, gave it up, and gave it up again."""
    page = Pages(b"")

    def free_twice(cache: RankCache, writer: JournalWriter) -> None:
        nonlocal page
        page, _ = cache.alloc(1)
        cache.free(page)
        writer.append(Freed(request_account(RequestId(0)), page, NO_PAGES, NO_PAGES))

    begun = planted(tmp_path / "run", free_twice)
    report = verify_rank(tmp_path / "run", RANK)
    first = report.findings[0]
    number = int.from_bytes(page, "little")
    assert (first.seq, first.law, first.pool, first.pages) == (
        begun + 2,
        "a_page_is_freed_once",
        "FULL",
        [number],
    )
    assert [(step.event, step.seq) for step in report.story[-3:]] == [
        ("Allocated", begun),
        ("Freed", begun + 1),
        ("Freed", begun + 2),
    ]
    assert report.story[-1].wrong == f"request(unbound) did not have it: free did, since event {begun + 1}"


def longer(cache: RankCache, request: int) -> Bound:
    """A server says that its row is 40 tokens longer, and names no pages for them."""
    rows, row, page_size = cache.state.rows, cache.state.row_of(request), cache.state.page_size
    length = int(rows.length[row])
    start = -(-length // page_size) * page_size
    return Bound(RequestId(request), NO_PAGES, NO_PAGES, TokenCount(start), NO_PAGES, TokenCount(length + 40))


def test_a_law_of_the_whole_state_is_traced_to_the_first_frame_that_broke_it(tmp_path: Path) -> None:
    """A row that grows without pages is seen by no event, by the next digest, and by the laws at the end."""

    def grow_without_pages(cache: RankCache, writer: JournalWriter) -> None:
        request = max(cache.state.requests)
        writer.append(longer(cache, request))

    begun = planted(tmp_path / "run", grow_without_pages)
    report = verify_rank(tmp_path / "run", RANK)
    assert report.broken["a_recorded_digest_is_the_states"] == 3
    assert report.broken["a_row_shows_nothing_behind_its_length"] == 1
    assert report.findings[0].seq == begun + 1
    report.findings = [each for each in report.findings if each.law != "a_recorded_digest_is_the_states"]
    assert report.findings[0].lawful_at is not None
    assert report.findings[0].lawful_at < begun


def test_a_broken_law_alone_names_its_frame(tmp_path: Path) -> None:
    """J14: no digest was recorded behind the fault, so only the laws tell; reading again narrows it to the frame."""
    writer = JournalWriter.open(tmp_path / "run", opened(redaction="plain"), clock=Clock())
    driven = Driven(7, recorder=writer).run(60)
    request = max(driven.cache.state.requests)
    begun = writer.next_seq
    writer.append(longer(driven.cache, request))
    writer.end_command()
    for step in range(5):
        writer.append(Refused("busy", str(step)))
        writer.end_command()
    writer.close()
    report = verify_rank(tmp_path / "run", RANK)
    assert report.broken == {"a_row_shows_nothing_behind_its_length": 1, "every_live_window_can_be_read": 1}
    assert report.findings[0].seq == begun + 5
    assert report.first_frame == (begun, begun)


def test_damage_ends_the_reading_and_keeps_what_was_seen(tmp_path: Path) -> None:
    """B104: what lies before the damage is judged, what lies behind it is not guessed."""
    written(tmp_path / "run", 100)
    damage(tmp_path / "run")
    report = verify_rank(tmp_path / "run", RANK)
    assert report.unreadable
    assert not report.clean
    salvaged = verify_rank(tmp_path / "run", RANK, salvage=True)
    assert salvaged.unreadable == ""
    assert salvaged.gaps >= 1
    assert not salvaged.clean


def test_behind_a_gap_nothing_is_judged_until_a_snapshot_stands_in(tmp_path: Path) -> None:
    """What follows from missing events is no finding; a snapshot says again what was true."""
    written(tmp_path / "run", 200, snapshots=(120,))
    reader = JournalReader(tmp_path / "run", RANK)
    frames = list(reader.frames())
    missing = frames[60:70]
    gap = Gap(sum(len(frame.events) for frame in missing), "planted")
    last = missing[-1].seq_first + len(missing[-1].events) - 1
    with_gap = [*frames[:60], *framed([gap], last), *frames[70:]]

    adrift = audited(with_gap)
    assert adrift.broken == {"no_event_is_missing": 1}
    assert adrift.unjudged == sum(len(frame.events) for frame in frames[70:]), "a gap is no event"

    ref = reader.snapshots()[0]
    audit = Audit(
        RankReport(run="", rank=0), snapshot_at=lambda seq: load(reader, ref) if seq == ref.seq else None
    )
    for frame in with_gap:
        audit.take(frame)
    audit.finish()
    assert audit.report.broken == {"no_event_is_missing": 1}
    assert 0 < audit.report.unjudged < adrift.unjudged
    assert audit.report.digests > adrift.digests
    assert audit.report.whole_checks >= 1


def test_a_torn_end_is_no_finding_and_is_told(tmp_path: Path) -> None:
    writer = JournalWriter.open(tmp_path / "run", opened(redaction="plain"), clock=Clock())
    Driven(7, recorder=writer).run(40)
    segment = next((tmp_path / "run" / "rank-0000").glob("*.seg"))
    segment.write_bytes(segment.read_bytes()[:-3])
    report = verify_rank(tmp_path / "run", RANK)
    assert report.clean
    assert len(report.notices) == 1
    assert "torn" in report.notices[0]


def test_a_snapshot_that_cannot_be_read_is_told_where_it_was_to_be_compared(tmp_path: Path) -> None:
    written(tmp_path / "run", 60, snapshots=(30,))
    ref = JournalReader(tmp_path / "run", RANK).snapshots()[0]
    ref.path.write_bytes(ref.path.read_bytes()[:-20])
    report = verify_rank(tmp_path / "run", RANK)
    assert report.clean
    assert report.snapshots == 0
    assert ref.path.name in report.notices[0]


def test_an_opened_that_asks_for_the_moon_is_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our writer refuses such sizes; a foreign one, or one of before, may have written them."""
    monkeypatch.setattr(opening, "check_sizes", lambda _: None)
    monkeypatch.setattr(opening, "check_memory", lambda _: None)
    writer = JournalWriter.open(
        tmp_path / "run", opened((4, 4, 1 << 29, 4), redaction="plain"), clock=Clock()
    )
    writer.close()
    report = verify_rank(tmp_path / "run", RANK)
    assert isinstance(JournalReader(tmp_path / "run", RANK).opened, Opened)
    assert "no state can be built" in report.unreadable
