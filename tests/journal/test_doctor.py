"""The verdict on every file, and the copy that is sound."""

import os
import shutil
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from radixledger.journal import seal as sealing_module
from radixledger.journal.doctor import UNSAID, RankReport, Verdict, examine
from radixledger.journal.errors import NoJournal, RunExists
from radixledger.journal.events import AnyEvent, Gap, Opened
from radixledger.journal.folder import listing, open_segment, rank_folder
from radixledger.journal.frame import Frame
from radixledger.journal.reader import JournalReader
from radixledger.journal.recover import recover
from radixledger.journal.segment import SEALED_SUFFIX, Form, encode_heading
from radixledger.journal.tally import tally
from radixledger.journal.units import Rank
from radixledger.journal.writer import OnFailure, Sealing

from .written import RANK, BrokenDisk, Clock, append, new_writer, segment_paths, some_commands, write

COMMANDS = some_commands(40)


@pytest.fixture(params=[Sealing.NEVER, Sealing.INLINE], ids=["live", "sealed"])
def run(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two epochs, five segments or more, two snapshots."""
    monkeypatch.setattr(sealing_module, "BLOCK_BYTES", 500)
    run = tmp_path / "run"
    clock = Clock()
    for stream in (COMMANDS[:20], COMMANDS[20:]):
        with new_writer(run, sealing=request.param, rotate_bytes=2_500, clock=clock, resume=True) as writer:
            for command in stream:
                append(writer, command)
            writer.write_snapshot(b"image", b"digest")
    assert len(segment_paths(run)) >= 5
    return run


def flip(path: Path, offset: int) -> None:
    with path.open("r+b", buffering=0) as file:
        old = os.pread(file.fileno(), 1, offset)[0]
        os.pwrite(file.fileno(), bytes([old ^ 1]), offset)


def verdicts(report: RankReport) -> list[Verdict]:
    return [each.verdict for each in report.segments]


def events_of(run: Path) -> dict[int, AnyEvent]:
    frames: list[Frame] = list(JournalReader(run, RANK).frames())
    return {seq: event for frame in frames for seq, event in enumerate(frame.events, frame.seq_first)}


def test_a_sound_journal_has_no_findings_and_all_its_events_counted(run: Path) -> None:
    report = examine(run, RANK)
    assert not report.has_findings
    assert set(verdicts(report)) == {Verdict.CLEAN}
    assert sum(each.events for each in report.segments) == JournalReader(run, RANK).last_seq
    assert [each.epoch for each in report.segments] == sorted(each.epoch for each in report.segments)
    assert [each.verdict for each in report.snapshots] == [Verdict.CLEAN] * 2
    sealed = segment_paths(run)[-1].suffix == SEALED_SUFFIX
    assert (report.problems, report.notices) == ([], [UNSAID] if sealed else [])


def test_the_bytes_gone_through_are_told(run: Path) -> None:
    seen: list[int] = []
    examine(run, RANK, seen.append)
    assert sum(seen) == sum(path.stat().st_size for path in segment_paths(run))


def test_every_damage_is_told_and_not_only_the_first(run: Path) -> None:
    paths = segment_paths(run)
    for path in (paths[1], paths[3]):
        flip(path, path.stat().st_size // 2)
    report = examine(run, RANK)
    assert verdicts(report)[1] is verdicts(report)[3] is Verdict.DAMAGED
    assert verdicts(report)[0] is verdicts(report)[2] is Verdict.CLEAN
    assert all(each.problems[0].startswith("offset ") for each in (report.segments[1], report.segments[3]))
    assert report.has_findings


def test_a_heading_that_cannot_be_read_makes_a_file_unreadable_and_no_other(run: Path) -> None:
    path = segment_paths(run)[2]
    flip(path, 30)
    report = examine(run, RANK)
    assert verdicts(report)[2] is Verdict.UNREADABLE
    assert set(verdicts(report)[3:]) == {Verdict.CLEAN}


def test_a_torn_end_is_told_and_is_no_finding(tmp_path: Path) -> None:
    write(tmp_path, COMMANDS[:3], sealing=Sealing.NEVER)
    (path,) = segment_paths(tmp_path)
    os.truncate(path, path.stat().st_size - 5)
    report = examine(tmp_path, RANK)
    assert verdicts(report) == [Verdict.TORN]
    assert "torn tail" in report.segments[0].problems[0]
    assert not report.has_findings
    (path.parent / f"{report.segments[0].seq_last + 1:020d}.seg").write_bytes(b"RLED")
    report = examine(tmp_path, RANK)
    assert verdicts(report) == [Verdict.TORN, Verdict.TORN]
    assert not report.has_findings


def test_a_missing_segment_is_a_finding_by_its_numbers(run: Path) -> None:
    """B107."""
    paths = segment_paths(run)
    paths[2].unlink()
    (problem,) = examine(run, RANK).problems
    assert problem.startswith(f"missing {int(paths[2].stem)}, next is {int(paths[3].stem)}")


def test_a_missing_beginning_needs_a_baseline(run: Path) -> None:
    for path in segment_paths(run)[:2]:
        path.unlink()
    assert not examine(run, RANK).has_findings
    for ref in JournalReader(run, RANK).snapshots():
        ref.path.unlink()
    assert "no snapshot at event" in examine(run, RANK).problems[0]


def test_a_gap_is_a_finding(tmp_path: Path) -> None:
    """J11: a journal that lost events passes no gate."""
    disk, clock = BrokenDisk("write"), Clock()
    writer = new_writer(tmp_path, disk=disk, clock=clock, on_failure=OnFailure.GAP, retry_ns=10**9)
    disk.broken = True
    append(writer, COMMANDS[0])
    disk.broken = False
    clock.now_ns += 10**9
    append(writer, COMMANDS[1])
    writer.close()
    report = examine(tmp_path, RANK)
    assert verdicts(report) == [Verdict.CLEAN, Verdict.GAPPED]
    assert report.segments[1].lost == len(COMMANDS[0])
    assert report.has_findings


def test_snapshots_are_examined_too(run: Path) -> None:
    first, second = JournalReader(run, RANK).snapshots()
    flip(first.path, first.path.stat().st_size - 3)
    report = examine(run, RANK)
    assert [each.verdict for each in report.snapshots] == [Verdict.UNREADABLE, Verdict.CLEAN]
    shutil.copy(second.path, first.path)
    report = examine(run, RANK)
    assert report.snapshots[0].problem == f"it is of run run, rank 0, event {second.seq}"


def test_a_snapshot_of_another_history_is_found_by_its_chain(tmp_path: Path) -> None:
    for parent, stream in (("a", COMMANDS[:3]), ("b", [COMMANDS[0][::-1], *COMMANDS[1:3]])):
        with new_writer(tmp_path / parent / "run") as writer:
            for command in stream:
                append(writer, command)
            writer.write_snapshot(b"image", b"digest")
    ours = JournalReader(tmp_path / "a" / "run", RANK).snapshots()[0].path
    shutil.copy(JournalReader(tmp_path / "b" / "run", RANK).snapshots()[0].path, ours)
    report = examine(tmp_path / "a" / "run", RANK)
    assert report.snapshots[0].verdict is Verdict.DAMAGED
    assert "another history" in report.snapshots[0].problem


def test_leftovers_and_writers_are_told(tmp_path: Path) -> None:
    with new_writer(tmp_path) as writer:
        append(writer, COMMANDS[0])
        (writer.folder / f"{7:020d}.snap.tmp").touch()
        report = examine(tmp_path, RANK)
    assert report.writer == os.getpid()
    assert report.notices == [f"{7:020d}.snap.tmp is left over; the next writer removes it"]


def test_a_sound_journal_is_copied_event_for_event(run: Path, tmp_path: Path) -> None:
    done = recover(run, RANK, tmp_path / "copy")
    assert (done.lost, done.notices, done.snapshots) == (0, [], 2)
    assert list(JournalReader(tmp_path / "copy", RANK).frames()) == list(JournalReader(run, RANK).frames())
    report = examine(tmp_path / "copy", RANK)
    assert not report.has_findings
    assert len(report.segments) == done.segments == len(segment_paths(run))


@pytest.mark.parametrize("place", range(0, 100, 7))
def test_a_damaged_journal_is_copied_with_a_gap_for_what_cannot_be_read(
    run: Path, tmp_path: Path, place: int
) -> None:
    """Never in place: what is recovered is evidence."""
    before = events_of(run)
    path = segment_paths(run)[2]
    flip(path, path.stat().st_size * place // 100 + 1)
    evidence = {each: each.read_bytes() for each in run.rglob("*") if each.is_file()}
    done = recover(run, RANK, tmp_path / "copy")
    assert {each: each.read_bytes() for each in run.rglob("*") if each.is_file()} == evidence
    copied = events_of(tmp_path / "copy")
    kept = {seq: event for seq, event in copied.items() if not isinstance(event, Gap)}
    assert kept.items() <= before.items()
    gaps = sum(event.lost for event in copied.values() if isinstance(event, Gap))
    assert gaps == done.lost == len(before) - len(kept)
    report = examine(tmp_path / "copy", RANK)
    assert set(verdicts(report)) <= {Verdict.CLEAN, Verdict.GAPPED}
    assert report.problems == []
    assert all(each.verdict is Verdict.CLEAN for each in report.snapshots)


def test_a_copy_can_be_gone_on_with(run: Path, tmp_path: Path) -> None:
    path = segment_paths(run)[-1]
    flip(path, path.stat().st_size // 2)
    done = recover(run, RANK, tmp_path / "copy")
    with new_writer(tmp_path / "copy", resume=True, sealing=Sealing.INLINE) as writer:
        assert writer.opened.epoch == 3
        append(writer, COMMANDS[0])
    assert done.lost > 0
    assert set(verdicts(examine(tmp_path / "copy", RANK))) == {Verdict.CLEAN, Verdict.GAPPED}


def test_the_first_heading_is_made_up_from_the_first_event(run: Path, tmp_path: Path) -> None:
    flip(segment_paths(run)[0], 30)
    recover(run, RANK, tmp_path / "copy")
    first = next(JournalReader(tmp_path / "copy", RANK).frames()).events[0]
    assert isinstance(first, Opened)
    assert JournalReader(tmp_path / "copy", RANK).opened == first
    assert not examine(tmp_path / "copy", RANK).has_findings


def test_a_torn_end_is_not_copied(tmp_path: Path) -> None:
    written = write(tmp_path / "run", COMMANDS[:3], sealing=Sealing.NEVER)
    (path,) = segment_paths(tmp_path / "run")
    os.truncate(path, path.stat().st_size - 5)
    done = recover(tmp_path / "run", RANK, tmp_path / "copy")
    assert (done.lost, done.events) == (0, sum(map(len, written[:-1])))
    assert "torn tail" in done.notices[0]


def lose_frames(run: Path, *places: int) -> None:
    """Damage the headers of some frames of the only segment."""
    (path,) = segment_paths(run)
    whole = path.read_bytes()
    begins = [at for at in range(len(whole)) if whole.startswith(b"RLFR", at)]
    for place in places:
        flip(path, begins[place] + 10)


@pytest.mark.parametrize(("places", "kept"), [((2,), 1), ((2, 3), 0)], ids=["before", "around"])
def test_a_snapshot_is_kept_where_something_continues_it(
    tmp_path: Path, places: tuple[int, ...], kept: int
) -> None:
    """It makes up for what was lost before it; inside of what was lost, nothing follows it."""
    with new_writer(tmp_path / "run", sealing=Sealing.NEVER) as writer:
        append(writer, COMMANDS[0])
        append(writer, COMMANDS[1])
        writer.write_snapshot(b"image", b"digest")
        append(writer, COMMANDS[2])
        append(writer, COMMANDS[3])
    lose_frames(tmp_path / "run", *places)
    done = recover(tmp_path / "run", RANK, tmp_path / "copy")
    assert done.snapshots == kept
    assert any("was left out" in notice for notice in done.notices) == (not kept)
    assert done.lost == sum(len(COMMANDS[place - 1]) for place in places)
    (gap,) = next(
        frame.events
        for frame in JournalReader(tmp_path / "copy", RANK).frames()
        if frame.seq_first > 1 + len(COMMANDS[0])
    )
    assert isinstance(gap, Gap)
    assert gap.lost == done.lost
    assert [each.verdict for each in examine(tmp_path / "copy", RANK).snapshots] == [Verdict.CLEAN] * kept


def test_nothing_is_written_over_and_nothing_comes_of_nothing(run: Path, tmp_path: Path) -> None:
    recover(run, RANK, tmp_path / "copy")
    with pytest.raises(RunExists):
        recover(run, RANK, tmp_path / "copy")
    with pytest.raises(NoJournal):
        recover(run, Rank(5), tmp_path / "copy")
    folder = rank_folder(tmp_path / "empty", RANK)
    folder.mkdir(parents=True)
    (folder / f"{1:020d}.seg").write_bytes(b"RLED")
    with pytest.raises(NoJournal, match="no event"):
        recover(tmp_path / "empty", RANK, tmp_path / "other")


def test_epochs_are_counted_also_where_the_heading_s_opening_is_none(tmp_path: Path) -> None:
    """What an epoch began with cannot be read; how many segments and events there are can."""
    told = write(tmp_path / "run", COMMANDS, sealing=Sealing.NEVER)
    path = segment_paths(tmp_path / "run")[0]
    with closing(open_segment(listing(path.parent).segments[0])) as segment:
        heading = segment.heading
        size = len(encode_heading(heading, Form.LIVE))
    spoiled = encode_heading(replace(heading, opened=msgspec.msgpack.encode([[1, 5]])), Form.LIVE)
    path.write_bytes(spoiled + path.read_bytes()[size:])
    counts = tally(tmp_path / "run", RANK, salvage=True, advance=lambda _: None)
    assert (counts.live_segments, [each.route for each in counts.epochs]) == (1, [""])
    assert counts.events == counts.epochs[0].events == sum(map(len, told))


def test_a_segment_of_which_only_the_name_is_left_tells_what_is_missing_before_it(tmp_path: Path) -> None:
    told = write(tmp_path / "run", COMMANDS)
    last = sum(map(len, told))
    folder = rank_folder(tmp_path / "run", RANK)
    (folder / f"{last + 1:020d}.seg").touch()  # as a crash leaves one: nothing is missing
    assert examine(tmp_path / "run", RANK).problems == []
    (folder / f"{last + 1:020d}.seg").rename(folder / f"{last + 50:020d}.seg")
    (problem,) = examine(tmp_path / "run", RANK).problems
    assert f"missing {last + 1}, next is {last + 50}" in problem
