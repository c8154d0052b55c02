"""A report of a run with missing events: what is drawn is known, and where it is not, that is drawn and said (J11, J14)."""

import re
import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from radixledger.journal.events import Gap, Opened
from radixledger.journal.reader import JournalReader
from radixledger.replay.fold import fold
from radixledger.replay.known import STRETCHES_KEPT, Known
from radixledger.replay.report.cells import numbers_of
from radixledger.replay.report.occupancy import CUT_MOST, Occupancy
from radixledger.replay.report.shares import BUCKETS, Share
from radixledger.replay.report.track import Track, follow
from radixledger.replay.report.write import write_report
from radixledger.replay.seek import state_at

from ..cache.driven import Driven
from .report_reader import tracks_of
from .runs import RANK, framed, written


def collected(run: Path) -> Track:
    reader = JournalReader(run, RANK, salvage=True)
    return follow(reader, [(1, 10_000)], Share.of(1), tell=lambda event: type(event).__name__)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run without one of its segments and with a snapshot behind that; the whole of it beside it."""
    place = tmp_path_factory.mktemp("gaps")
    written(place / "whole", 250, snapshots=(170,), rotate_bytes=3_000)
    shutil.copytree(place / "whole", place / "run")
    sorted((place / "run" / "rank-0000").glob("*.sealed"))[2].unlink()
    return place / "run"


def test_a_curve_is_made_of_what_the_whole_journal_says_and_ends_where_that_is_not_known(run: Path) -> None:
    """J14: a stretch of the chart is known from its first event to its last, or is not drawn."""
    track, whole = collected(run), JournalReader(run.parent / "whole", RANK)
    (unknown,) = track.unknown
    assert unknown.since < unknown.lost_at < unknown.until < track.last_seq
    assert [each.known for each in track.buckets].count(False) > 1
    for before, each in pairwise(track.buckets):
        assert before.seq <= each.seq
        inside = before.seq + 1 >= unknown.since and each.seq <= unknown.until
        assert each.known != inside or each.seq == before.seq
        if each.known:
            assert each.numbers == numbers_of(state_at(whole, each.seq))
    ends = {each.seq for each in track.buckets}
    assert {unknown.since - 1, unknown.until} <= ends


def test_every_moment_from_the_snapshot_on_is_the_states(run: Path) -> None:
    """J12: what the fold had in its place is told over, cell by cell."""
    write_report([run], run.parent / "page.html", tell=lambda event: type(event).__name__)
    (read,) = tracks_of(run.parent / "page.html")
    whole, (_, _, until, _) = JournalReader(run.parent / "whole", RANK), read.head["unknown"][0]
    for seq in read.stops():
        if seq <= until or seq % 23:
            continue
        state = state_at(whole, seq)
        for pool, book in enumerate(state.books):
            assert (read.account[pool] == book.account).all()
        assert read.nodes.keys() == state.nodes.keys()
        assert read.requests.keys() == state.requests.keys()
    assert read.place == read.head["packets"] - 1


def test_a_page_counts_no_missing_event_and_says_what_its_shading_means(run: Path) -> None:
    page = run.parent / "said.html"
    summary = write_report([run], page, tell=lambda event: type(event).__name__)
    (unknown,) = collected(run).unknown
    text = page.read_text()
    lost = unknown.lost_at - unknown.since
    assert summary.events == JournalReader(run.parent / "whole", RANK).last_seq - lost
    assert summary.ranks[0].summaries == 0
    assert re.search(r"<td[^>]*>nothing<", text), "what is missing is in no summary"
    assert text.count('<rect class="unknown"') == 2, "one for each pool"
    assert f"not known, and shaded: events {unknown.since:,} to {unknown.until:,}" in text
    assert '<b>not known</b> <span class="soft">behind missing events' in text
    assert re.search(r"fewest free, where that is known: \d+", text)
    write_report([run.parent / "whole"], page, tell=lambda event: type(event).__name__)
    assert 'class="unknown"' not in page.read_text().split("<script>")[0]


def test_a_page_of_a_run_whose_beginning_is_missing_has_no_curve(tmp_path: Path) -> None:
    written(tmp_path / "run", 120, rotate_bytes=3_000)
    min((tmp_path / "run" / "rank-0000").glob("*.sealed")).unlink()
    track = collected(tmp_path / "run")
    (unknown,) = track.unknown
    assert (unknown.since, unknown.until) == (1, track.last_seq)
    assert {each.known for each in track.buckets} == {False}
    page = tmp_path / "page.html"
    write_report([tmp_path / "run"], page, tell=lambda event: type(event).__name__)
    assert "fewest free" not in page.read_text().split("<script>")[0]
    assert f"at the end: not known behind the gap of event {unknown.lost_at}" in page.read_text()


def test_what_is_kept_of_a_journal_full_of_gaps_is_bounded() -> None:
    """J7: a hostile journal loses and finds track as often as it likes; what is between its last stretches is not known either."""
    driven = Driven(3)
    opened, state = driven.journal.opened, fold(driven.run(5).journal.frames)
    known, occupancy, seq = Known(), Occupancy(1, 20_000, BUCKETS), int(state.seq)
    frame = framed([Gap(1, "")], seq)[0]
    for _ in range(3_000):
        for event in (Gap(1, ""), opened):
            assert isinstance(event, Gap | Opened)
            seq += 1
            state.seq = frame.seq_first
            known.see(state, event)
            occupancy.cut(frame, state) if known.lost_at else None
            frame = framed([event], seq)[0]
            occupancy.take(frame, [event], state, known=not known.lost_at)
    assert len(known.stretches) == STRETCHES_KEPT
    assert known.stretches[-1].until == seq - 1
    assert len(occupancy.buckets) <= CUT_MOST * BUCKETS + BUCKETS
    assert not all(each.known for each in occupancy.buckets[-10:])
