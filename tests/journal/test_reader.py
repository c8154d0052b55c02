"""Seeking, following, and reading where nothing may be written."""

import shutil
import stat
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from radixledger.journal import cursor, opening, segment
from radixledger.journal import seal as sealing_module
from radixledger.journal.disk import Disk
from radixledger.journal.errors import Damaged, MissingEvents, NoSuchEvent, Overtaken, TooNew
from radixledger.journal.events import AnyEvent, Closed, GroupOpened
from radixledger.journal.folder import Listing, listing, rank_folder
from radixledger.journal.frame import Frame
from radixledger.journal.reader import JournalReader
from radixledger.journal.seal import seal
from radixledger.journal.segment import Form, read_heading
from radixledger.journal.units import Rank, Seq
from radixledger.journal.writer import JournalWriter, Policy, Sealing

from .events_sample import opened
from .written import RANK, TICK_NS, Clock, append, new_writer, read, segment_paths, some_commands, write

COMMANDS = some_commands(60, seed=2)


@pytest.fixture(scope="module", params=["sealed", "live", "mixed"])
def journal(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Several segments of several blocks and two epochs; in one form, or the first half sealed."""
    run = tmp_path_factory.mktemp("journal") / "run"
    first = Sealing.NEVER if request.param == "live" else Sealing.INLINE
    second = Sealing.INLINE if request.param == "sealed" else Sealing.NEVER
    clock = Clock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sealing_module, "BLOCK_BYTES", 700)
        write(run, COMMANDS[:30], sealing=first, rotate_bytes=2_500, clock=clock)
        with new_writer(run, resume=True, sealing=second, rotate_bytes=2_500, clock=clock) as writer:
            for command in COMMANDS[30:]:
                append(writer, command)
    assert len(segment_paths(run)) >= 5
    return run


def numbered(frames: list[Frame]) -> dict[int, AnyEvent]:
    return {seq: event for frame in frames for seq, event in enumerate(frame.events, frame.seq_first)}


def test_a_reader_begins_at_any_number(journal: Path) -> None:
    """J12: a tail is what the whole says from there on."""
    reader = JournalReader(journal, RANK)
    whole = numbered(list(reader.frames()))
    assert list(whole) == list(range(1, reader.last_seq + 1))
    for seq in range(1, reader.last_seq + 1):
        tail = list(reader.frames(Seq(seq)))
        assert tail[0].seq_first == seq
        assert numbered(tail) == {number: event for number, event in whole.items() if number >= seq}


def test_a_raw_frame_that_holds_the_number_is_given_whole(journal: Path) -> None:
    reader = JournalReader(journal, RANK)
    frames = {frame.seq_first: frame for frame in reader.frames()}
    for seq in range(1, reader.last_seq + 1, 3):
        heading, raw = next(reader.raw_frames(Seq(seq)))
        assert raw.seq_first <= seq < raw.seq_next
        assert heading.decoder().decode(raw.body, raw.event_count) == frames[Seq(raw.seq_first)].events


def test_behind_the_last_event_there_is_nothing_yet(journal: Path) -> None:
    reader = JournalReader(journal, RANK)
    assert list(reader.frames(Seq(reader.last_seq + 1))) == []


def test_a_number_further_on_has_not_happened(journal: Path) -> None:
    """B107: an empty answer would look like being caught up."""
    reader = JournalReader(journal, RANK)
    with pytest.raises(NoSuchEvent, match=f"ends at event {reader.last_seq}") as missing:
        list(reader.frames(Seq(reader.last_seq + 2)))
    assert (missing.value.seq, missing.value.last_seq) == (reader.last_seq + 2, reader.last_seq)
    with pytest.raises(NoSuchEvent):
        next(reader.frames(Seq(0)))


def test_a_reader_begins_at_any_time(journal: Path) -> None:
    reader = JournalReader(journal, RANK)
    frames = list(reader.frames())
    times = [frame.time_ns for frame in frames]
    for time_ns in range(0, max(times) + 2 * TICK_NS, TICK_NS // 2):
        later = next((i for i, each in enumerate(times) if each >= time_ns), len(times))
        assert list(reader.frames_from_time(time_ns)) == frames[later:]


@given(st.lists(st.integers(0, 20), min_size=1, max_size=12), st.integers(0, 21))
@settings(max_examples=40)
def test_a_clock_that_was_set_back_hides_no_frame(
    tmp_path_factory: pytest.TempPathFactory, times: list[int], wanted: int
) -> None:
    run = tmp_path_factory.mktemp("clock") / "run"
    ticks = iter([0, *times, *[0] * 9])
    with new_writer(run, clock=lambda: next(ticks)) as writer:
        for _ in times[1:]:
            append(writer, [GroupOpened()])
    reader = JournalReader(run, RANK)
    frames = list(reader.frames())
    first = next((i for i, frame in enumerate(frames) if frame.time_ns >= wanted), len(frames))
    assert list(reader.frames_from_time(wanted)) == frames[first:]
    assert list(JournalReader(run, RANK, salvage=True).frames_from_time(wanted)) == frames[first:]


def test_a_live_journal_is_followed_through_rotation_sealing_and_a_new_epoch(tmp_path: Path) -> None:
    """J29: whoever follows sees every event once, in order, whatever the writer does with its files."""
    writer = new_writer(tmp_path, policy=Policy.STEP)
    todo = list(COMMANDS[:40])
    written: list[list[AnyEvent]] = [[writer.opened]]

    def more() -> bool:
        nonlocal writer
        if not todo:
            writer.close()
            return False
        if len(todo) % 7 == 0:
            writer.rotate()
        if len(todo) % 11 == 0:
            writer.close()
            writer = new_writer(tmp_path, policy=Policy.STEP, resume=True)
            written.append([writer.opened])
        append(writer, todo[0])
        writer.end_step(len(todo))
        written.append(todo.pop(0))
        return True

    seen = list(JournalReader(tmp_path, RANK).follow(wait=more))
    assert [frame.events for frame in seen] == written
    assert [frame.seq_first for frame in seen] == [
        frame.seq_first for frame in JournalReader(tmp_path, RANK).frames()
    ]


def test_following_waits_for_a_frame_that_is_half_written(tmp_path: Path) -> None:
    write(tmp_path, COMMANDS[:2], sealing=Sealing.NEVER)
    (path,) = segment_paths(tmp_path)
    whole = path.read_bytes()
    pieces = [whole[at : at + 13] for at in range(0, len(whole), 13)]
    path.write_bytes(b"")

    def more() -> bool:
        with path.open("ab") as file:
            file.write(pieces.pop(0))
        return bool(pieces)

    reader = JournalReader(tmp_path, RANK)
    seen = [frame.events for frame in reader.follow(wait=more)]
    assert pieces == []
    seen += [frame.events for frame in reader.frames(Seq(1 + sum(map(len, seen))))]
    assert seen == read(tmp_path)
    assert reader.notices == []


def test_following_can_begin_behind_the_last_event(tmp_path: Path) -> None:
    with new_writer(tmp_path) as writer:
        append(writer, COMMANDS[0])
        start = writer.next_seq
        todo = COMMANDS[1:3]

        def more() -> bool:
            if todo:
                append(writer, todo.pop(0))
                return True
            return False

        reader = JournalReader(tmp_path, RANK)
        assert [frame.events for frame in reader.follow(start, wait=more)] == COMMANDS[1:3]


def test_a_reader_changes_nothing_and_needs_no_right_to(tmp_path: Path) -> None:
    """Read-only mounts work."""
    run = tmp_path / "run"
    write(run, COMMANDS, rotate_bytes=2_500)
    with new_writer(run, resume=True, sealing=Sealing.NEVER) as writer:
        append(writer, COMMANDS[0])
        writer.write_snapshot(b"image", b"digest")
    everything = [run, *run.rglob("*")]
    for path in everything:
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in everything}
    reader = JournalReader(run, RANK)
    list(reader.frames())
    list(reader.frames(Seq(40)))
    list(reader.frames_from_time(5 * TICK_NS))
    list(reader.follow(wait=lambda: False))
    reader.read_snapshot(reader.snapshots()[0])
    assert {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in [run, *run.rglob("*")]} == before
    for path in everything:
        path.chmod(0o755 if path.is_dir() else 0o644)
    assert stat.S_IMODE(run.stat().st_mode) == 0o755


def test_a_missing_segment_is_a_hole_and_not_an_end(tmp_path: Path) -> None:
    """B107."""
    write(tmp_path, COMMANDS, rotate_bytes=2_500)
    paths = segment_paths(tmp_path)
    missing, found = Seq(int(paths[1].stem)), Seq(int(paths[2].stem))
    paths[1].unlink()
    seen: list[Frame] = []
    with pytest.raises(MissingEvents, match=f"missing {missing}, next is {found}") as hole:
        seen.extend(JournalReader(tmp_path, RANK).frames())
    assert seen[-1].seq_first + len(seen[-1].events) == missing
    assert (hole.value.missing, hole.value.found) == (missing, found)
    mended = list(JournalReader(tmp_path, RANK, salvage=True).frames())
    (gap,) = mended[len(seen)].events
    assert gap.lost == found - missing  # type: ignore[union-attr]


def test_a_segment_of_another_run_or_rank_does_not_belong(tmp_path: Path) -> None:
    for run in ("a", "b"):
        write(tmp_path / run, COMMANDS[:30], rotate_bytes=2_500)
    theirs, ours = segment_paths(tmp_path / "b")[1], segment_paths(tmp_path / "a")[1]
    shutil.copy(theirs, ours)
    with pytest.raises(Damaged, match="stands among those of"):
        read(tmp_path / "a")
    shutil.copytree(rank_folder(tmp_path / "b", RANK), rank_folder(tmp_path / "b", Rank(1)))
    with pytest.raises(Damaged, match="rank 0"):
        list(JournalReader(tmp_path / "b", Rank(1)).frames())


def test_a_segment_that_was_exchanged_breaks_the_chain(tmp_path: Path) -> None:
    """J7: same run name, same numbers, another history."""
    for parent, stream in (("a", COMMANDS[:30]), ("b", [*reversed(COMMANDS[:4]), *COMMANDS[4:30]])):
        write(tmp_path / parent / "run", stream, rotate_bytes=2_500)
    ours, theirs = segment_paths(tmp_path / "a" / "run"), segment_paths(tmp_path / "b" / "run")
    shutil.copy(theirs[1], ours[1])
    with pytest.raises(Damaged, match="chain is broken"):
        read(tmp_path / "a" / "run")


def test_a_newer_vocabulary_is_refused_by_the_version_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """J5."""
    with monkeypatch.context() as patch:
        patch.setattr(opening, "SCHEMA_VERSION", 7)
        JournalWriter.open(tmp_path, opened(""), sealing=Sealing.NEVER).close()
    for salvage in (False, True):
        with pytest.raises(TooNew, match="vocabulary version 7; this one reads up to 1") as newer:
            read(tmp_path, salvage=salvage)
        assert (newer.value.needs, newer.value.have) == (7, 1)


def test_a_newer_file_format_is_refused_by_the_version_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(segment, "FORMAT_VERSION", 3)
        write(tmp_path, [], sealing=Sealing.NEVER)
    with pytest.raises(TooNew, match="file format version 3"):
        read(tmp_path)


def test_the_same_version_of_another_build_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(opening, "fingerprint", lambda: b"another.")
        write(tmp_path, [], sealing=Sealing.NEVER)
    with pytest.raises(Damaged, match="another build"):
        read(tmp_path)


def test_an_empty_heading_is_a_journal_without_events(tmp_path: Path) -> None:
    folder = rank_folder(tmp_path, RANK)
    folder.mkdir(parents=True)
    (folder / f"{1:020d}.seg").write_bytes(b"RLED")
    reader = JournalReader(tmp_path, RANK)
    assert list(reader.frames()) == []
    assert (reader.first_seq, reader.last_seq) == (1, 0)
    assert "inside its heading" in reader.notices[0]


def test_closed_is_what_a_clean_end_looks_like(tmp_path: Path) -> None:
    with new_writer(tmp_path) as writer:
        append(writer, [Closed(b"digest", "done")])
    assert read(tmp_path)[-1] == [Closed(b"digest", "done")]


def test_the_heading_of_every_segment_explains_its_epoch(tmp_path: Path) -> None:
    """J5: page size, window, pools and the rest are there when the first segment is gone."""
    write(tmp_path, COMMANDS, rotate_bytes=2_500)
    for path in segment_paths(tmp_path):
        with path.open("rb") as file:
            heading = read_heading(path, file, Form.SEALED, seq_first=Seq(int(path.stem)))
        assert heading.opening() == JournalReader(tmp_path, RANK).opened
        assert (heading.policy, heading.epoch, heading.schema) == ("operation", 1, 1)


@pytest.mark.parametrize("suffix", [".seg", ".sealed"])
@pytest.mark.parametrize("number", [1 << 33, 10**18, (1 << 63) - 1, 1 << 63, 10**20 - 1])
def test_a_name_that_skips_more_numbers_than_any_journal_loses_is_damage(
    tmp_path: Path, number: int, suffix: str
) -> None:
    """J11: no gap can stand for so many; what is before is told, and numbers beyond int64 are no names at all."""
    write(tmp_path, some_commands(8))
    before = read(tmp_path)
    (path,) = segment_paths(tmp_path)
    path.with_name(f"{number:020d}{suffix}").write_bytes(path.read_bytes())
    told: list[list[AnyEvent]] = []
    with pytest.raises(Damaged, match="skips") if number < 1 << 63 else nullcontext():
        for frame in JournalReader(tmp_path, RANK, salvage=True).frames():
            told.append(frame.events)  # noqa: PERF401 — what was told before the end is what is asked
    assert told == before


def test_a_folder_is_not_listed_once_for_each_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A journal of years, or one that a failing disk cut into a thousand pieces, is read in the time of its events."""
    write(tmp_path, COMMANDS, rotate_bytes=300)
    count = len(segment_paths(tmp_path))
    assert count >= 30
    listings: list[Path] = []

    def counted(folder: Path) -> Listing:
        listings.append(folder)
        return listing(folder)

    monkeypatch.setattr(cursor, "listing", counted)
    assert read(tmp_path)[1:] == COMMANDS
    assert len(listings) <= 4


def test_a_follower_whose_listing_is_out_of_date_goes_on_with_what_is_there(tmp_path: Path) -> None:
    """Segments are sealed, and begun, and the next ones dropped, while a cursor still knows an older listing."""
    with new_writer(tmp_path, sealing=Sealing.NEVER, rotate_bytes=300) as writer:
        for command in COMMANDS[:20]:
            append(writer, command)
        reader = JournalReader(tmp_path, RANK)
        frames = reader.follow(wait=lambda: False)
        seen = [next(frames).events for _ in range(3)]
        for command in COMMANDS[20:]:
            append(writer, command)
        for listed in listing(rank_folder(tmp_path, RANK)).segments[3:9]:
            seal(listed, Disk())
        seen += [frame.events for frame in frames]
        assert seen[1:] == COMMANDS
    frames = JournalReader(tmp_path, RANK).frames()
    next(frames)
    for path in segment_paths(tmp_path)[4:7]:
        path.unlink()
    with pytest.raises(MissingEvents):
        list(frames)


@pytest.mark.parametrize("before", [1, 3, 9])
def test_a_reader_that_retention_overtakes_is_told_so_and_not_that_there_is_damage(
    tmp_path: Path, before: int
) -> None:
    """J12: what was dropped behind a snapshot is no loss; whoever reads again begins behind it."""
    write(tmp_path, COMMANDS, rotate_bytes=300)
    frames = JournalReader(tmp_path, RANK).frames()
    for _ in range(before):
        next(frames)
    paths = segment_paths(tmp_path)
    kept = paths[20]
    for path in paths[:20]:
        path.unlink()
    begins = listing(rank_folder(tmp_path, RANK)).segments[0].seq_first
    assert kept == segment_paths(tmp_path)[0]
    with pytest.raises(Overtaken, match=f"the journal begins at event {begins} by now") as overtaken:
        list(frames)
    assert overtaken.value.found == begins
    assert overtaken.value.missing < begins
