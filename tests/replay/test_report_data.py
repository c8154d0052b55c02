"""What a report holds is what replay says: every moment of it, of every kind of run, read by a second reader."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixledger.cache.evolve import begin, evolve
from radixledger.cache.state import State
from radixledger.journal.accounts import request_account
from radixledger.journal.events import AnyEvent, Config, Freed, Opened
from radixledger.journal.frame import Frame
from radixledger.journal.reader import JournalReader
from radixledger.journal.recorder import Recorder
from radixledger.journal.units import NO_PAGES, Pages, Rank, RequestId
from radixledger.journal.writer import JournalWriter
from radixledger.replay.report import shares, track
from radixledger.replay.report.look import Look
from radixledger.replay.report.packet import Packet
from radixledger.replay.report.ranges import detail_ranges
from radixledger.replay.report.shares import Share
from radixledger.replay.report.write import ReportSummary, write_report
from radixledger.replay.seek import state_at
from radixledger.replay.triage.ending import Ending
from radixledger.replay.triage.triage import RankTriage
from radixledger.replay.verdict import RankReport, Told

from ..cache.driven import SHAPES, Driven, opened
from ..journal.every_event import any_event
from ..machine import SETTINGS
from ..mutants.caught import spoiled, write
from ..mutants.table import MUTANTS
from ..test_machine import by_seed
from .report_reader import ReadTrack, tracks_of
from .runs import RANK, Clock, written

SOUND = Driven(7).run(8).journal.events
"""What a sound cache wrote, so that there are pages, nodes and requests to be named."""


def reported(run: Path, page: Path) -> ReportSummary:
    return write_report([run], page, tell=lambda event: type(event).__name__)


def assert_same(read: ReadTrack, state: State) -> None:
    """Every cell of a moment is the state's."""
    for pool, book in enumerate((state.full, state.swa, state.recurrent, state.host)):
        assert np.array_equal(read.account[pool], book.account)
        assert np.array_equal(read.since[pool], book.since)
    assert np.array_equal(read.mapped, state.mapping.swa_of)
    assert read.nodes.keys() == state.nodes.keys()
    for number, node in state.nodes.items():
        told = read.named("node", read.nodes[number])
        assert told["parent"] == (node.parent.id if node.parent else -1)
        assert (told["end"], told["pages"]) == (node.end, node.pages)
        assert [told[pool] * 4 for pool in ("full", "swa", "host")] == [
            len(node.full),
            len(node.swa),
            len(node.host),
        ]
        assert (told["anchors"], told["holds"]) == (node.anchors, node.holds)
        assert (told["swa_locks"], told["boundary"]) == (node.swa_locks, node.boundary)
        assert (told["backup"], told["recurrent"]) == (
            node.backup,
            int.from_bytes(node.recurrent[:4], "little"),
        )
    assert read.requests.keys() == state.requests.keys()
    for number, request in state.requests.items():
        told, row = read.named("request", read.requests[number]), request.row
        assert read.head["texts"][told["rid"]] == request.rid
        assert (told["prompt"], told["prefix"], told["node"]) == (
            request.prompt,
            request.prefix,
            request.node,
        )
        assert (told["length"], told["cursor"], told["protected"]) == (
            state.rows.length[row], state.rows.cursor[row], state.rows.protected[row],
        )  # fmt: skip
        assert told["receipt"] == (request.receipt.node if request.receipt else -1)
    numbers = read.named("number", read.numbers)
    assert numbers["full_protected"] == state.full_protected
    assert numbers["SWA_free"] == state.swa.available
    assert (numbers["nodes"], numbers["requests"]) == (len(state.nodes), len(state.requests))


@pytest.mark.parametrize("shape", SHAPES)
def test_every_moment_of_a_short_run_is_the_state_that_replay_gives(
    shape: tuple[int, ...], tmp_path: Path
) -> None:
    """J12: event by event, from the first to the last."""
    written(tmp_path / "run", 60, shape=shape)
    summary = reported(tmp_path / "run", tmp_path / "page.html")
    reader = JournalReader(tmp_path / "run", RANK)
    (read,) = tracks_of(tmp_path / "page.html")
    state: State | None = None
    events = iter([event for frame in reader.frames() for event in frame.events])
    for seq in read.stops():
        event = next(events)
        if state is None:
            assert isinstance(event, Opened)
            state = begin(event)
        else:
            evolve(state, event)
        assert seq == state.seq
        assert (
            read.lines[read.line[read.place]]
            == read.head["events"][str(read.tag[read.place])]
            == type(event).__name__
        )
        assert_same(read, state)
    assert summary.events == reader.last_seq
    assert summary.ranks[0].detail == [(1, reader.last_seq)]


def test_a_long_run_is_summarised_and_every_moment_is_true_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Summaries, merged ones among them, and details beside each other; two ranks share what there is."""
    monkeypatch.setattr(shares, "DETAIL_EVENTS", 800)
    monkeypatch.setattr(shares, "SUMMARY_CELLS", 12_000)
    for rank in range(2):
        written(tmp_path / "run", 200, seed=rank, rank=rank, ranks=2)
    summary = reported(tmp_path / "run", tmp_path / "page.html")
    for rank, read in enumerate(tracks_of(tmp_path / "page.html")):
        reader, told = JournalReader(tmp_path / "run", Rank(rank)), summary.ranks[rank]
        assert [last - first > 90 for first, last in told.detail] == [False, True]
        assert 8 < told.summaries < shares.STRETCHES // 2
        for count, seq in enumerate(read.stops()):
            if not read.tag[read.place] or count % 40 == 0:
                assert_same(read, state_at(reader, seq))
        assert read.seq[-1] == reader.last_seq


def test_a_journal_that_begins_at_a_snapshot_is_shown_from_there(tmp_path: Path) -> None:
    written(tmp_path / "run", 120, snapshots=(60,), rotate_bytes=2_000)
    folder = tmp_path / "run" / "rank-0000"
    (snapshot,) = folder.glob("*.snap")
    for segment in sorted(folder.glob("*.sealed")):
        later = [
            each
            for each in folder.glob("*.s*")
            if int(segment.stem) < int(each.stem) <= int(snapshot.stem) + 1
        ]
        if any(each.suffix != ".snap" for each in later):
            segment.unlink()
    reader = JournalReader(tmp_path / "run", RANK)
    assert reader.first_seq > 1
    summary = reported(tmp_path / "run", tmp_path / "page.html")
    (read,) = tracks_of(tmp_path / "page.html")
    for seq in read.stops():
        assert_same(read, state_at(reader, seq))
    assert read.seq[0] == int(snapshot.stem)
    assert read.tag[0] == 0
    assert summary.events == reader.last_seq - int(snapshot.stem)


def cells_that_were_missed(events: Sequence[AnyEvent], at_once: int = 1) -> list[tuple[int, str]]:
    """Events behind which a look at the whole state finds what a look at what they touched did not.

    at_once: how many events are noted before that is told; 1: each is told by itself.
    """
    texts: dict[str, int] = {}
    look = Look(lambda rid: texts.setdefault(rid, len(texts)))
    assert isinstance(events[0], Opened)
    state = begin(events[0])
    look.noted(state, packet(state))
    missed = []
    for count, event in enumerate(events[1:], 1):
        evolve(state, event)
        if at_once == 1:
            look.touched_by(state, event, packet(state))
        else:
            look.note(event)
        if count % at_once == 0:
            if at_once > 1:
                look.noted(state, packet(state))
            left = packet(state)
            look.all_of(state, left)
            if left.owners or left.mapping or left.nodes or left.requests:
                missed.append((int(state.seq), type(event).__name__))
    return missed


def packet(state: State) -> Packet:
    return Packet(state.seq, 0, 0, owners={}, nodes={}, requests={})


@pytest.mark.parametrize("kind", ["windows", "states", "copies"])
def test_what_an_event_touched_is_all_that_it_changed(kind: str) -> None:
    """R28: also of states of recurrent layers and of copies on the host."""
    settings = {
        "windows": next(each for each in SETTINGS.values() if each.shape.swa),
        "states": next(each for each in SETTINGS.values() if each.shape.states and each.shape.interval),
        "copies": next(each for each in SETTINGS.values() if each.shape.host),
    }
    for player in by_seed(settings[kind], 1, 120).players:
        events = [player.sides.live.state.opened, *player.sides.tape.events]
        assert cells_that_were_missed(events) == []
        assert cells_that_were_missed(events, 7) == []


def test_what_a_wrong_event_touched_is_all_that_it_changed(tmp_path: Path) -> None:
    """J14: of every wrong version of the cache that the tests have."""
    for name, mutant in MUTANTS.items():
        with spoiled(mutant):
            write(tmp_path / name, mutant)
        events = [event for frame in JournalReader(tmp_path / name, RANK).frames() for event in frame.events]
        assert cells_that_were_missed(events) == [], name
        assert cells_that_were_missed(events, 3) == [], name


@given(st.lists(any_event.filter(lambda event: not isinstance(event, Opened)), max_size=12))
def test_whatever_an_event_says_what_it_touched_is_all_that_it_changed(said: list[AnyEvent]) -> None:
    """Pages that no pool has, columns of different lengths, requests in other requests' rows."""
    assert cells_that_were_missed([*SOUND, *said]) == []
    assert cells_that_were_missed([*SOUND, *said], 5) == []


def test_a_finding_is_in_the_data_and_surrounded_by_detail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """J14: the first wrong event is at full detail in a page that summarises nearly all."""
    monkeypatch.setattr(shares, "DETAIL_EVENTS", 200)
    writer = JournalWriter.open(tmp_path / "run", opened(redaction="plain"), clock=Clock())
    driven = Driven(7, recorder=writer).run(60)
    page, _ = driven.cache.alloc(1)
    driven.cache.free(page)
    writer.append(Freed(request_account(RequestId(0)), page, NO_PAGES, NO_PAGES))
    writer.end_command()
    wrong = writer.last_seq
    for number in range(60):
        writer.append(Freed(request_account(RequestId(number + 1)), NO_PAGES, NO_PAGES, NO_PAGES))
        writer.end_command()
    writer.close()
    summary = reported(tmp_path / "run", tmp_path / "page.html")
    (read,) = tracks_of(tmp_path / "page.html")
    assert (summary.ranks[0].kind, summary.ranks[0].findings > 0) == ("wrong", True)
    assert read.head["begin"] == wrong
    (first, *_) = read.head["findings"]
    assert (first["seq"], first["law"], first["pages"]) == (
        wrong,
        "a_page_is_freed_once",
        [int.from_bytes(page, "little")],
    )
    assert any(begun <= wrong - 19 and wrong + 4 <= end for begun, end in summary.ranks[0].detail)
    for seq in read.stops():
        assert_same(read, state_at(JournalReader(tmp_path / "run", RANK), seq))


def test_detail_is_chosen_around_what_was_found_and_within_its_budget() -> None:
    told = [Told(seq=seq, time_ns=0, step=0, law="a_law", detail="") for seq in (500_000, 700_000, 700_050)]
    ranked = RankReport("run", 0, findings=told, first_frame=(400_000, 400_010))
    report = RankTriage("", "run", 0, "leak", ranked, [], Ending())
    chosen = detail_ranges(report, 1, 1_000_000, 40_000)
    assert chosen == sorted(chosen)
    assert all(one[1] + 1 < other[0] for one, other in pairwise(chosen))
    for seq in (400_000, 500_000, 700_000, 700_050, 1, 1_000_000):
        assert any(first <= seq <= last for first, last in chosen), seq
    assert sum(last - first + 1 for first, last in chosen) <= 40_000
    assert sum(last - first + 1 for first, last in detail_ranges(report, 1, 1_000_000, 3_000)) <= 3_000
    assert detail_ranges(report, 1, 39_000, 40_000) == [(1, 39_000)]


def test_what_is_kept_of_many_requests_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "LIVES", 5)
    written(tmp_path / "run", 200)
    reported(tmp_path / "run", tmp_path / "page.html")
    (read,) = tracks_of(tmp_path / "page.html")
    assert len(read.head["lives"]) == 5
    assert read.head["lives_left_out"] > 0
    assert Share.of(1 / 4).lives == 1


def test_columns_of_no_whole_numbers_make_a_look_at_everything() -> None:
    """A hostile event may list three bytes as pages."""
    events: list[AnyEvent] = [opened(), Freed(0, Pages(b"\1\2\3"), NO_PAGES, NO_PAGES)]
    assert cells_that_were_missed(events) == []


def test_a_journal_that_grows_while_its_page_is_made_is_told_as_far_as_it_was_read(
    tmp_path: Path,
) -> None:
    """A server at work writes on behind the number at which the page was to end."""
    recorder = Recorder.open(tmp_path / "run", Config(4, 60, 0, 0, 8))
    recorder.admitted("a", 8)

    def growing(frames: Iterable[Frame]) -> Iterator[Frame]:
        for frame in frames:
            yield frame
            if recorder.last_seq < 40:
                recorder.allocated("a", [recorder.last_seq])

    reader = JournalReader(tmp_path / "run", RANK)
    share = Share(detail_events=10, detail_cells=10_000, summary_cells=10_000, stretches=8, lives=10)
    last = reader.last_seq
    told = track.follow(reader, [(1, last)], share, tell=str, watch=growing)
    recorder.close()
    assert (last, told.last_seq, told.unreadable) == (2, 40, "")
