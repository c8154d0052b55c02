"""Old segments go by size and by age, and the baseline never does."""

from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixledger.journal import seal as sealing_module
from radixledger.journal.belonging import Whose
from radixledger.journal.disk import Disk
from radixledger.journal.folder import listing, rank_folder
from radixledger.journal.reader import JournalReader
from radixledger.journal.retention import Aged, Retention, overdue, retain
from radixledger.journal.segment import Form, SegmentFile
from radixledger.journal.units import Seq
from radixledger.journal.writer import JournalWriter, Sealing

from .written import RANK, Clock, append, new_writer, read, some_commands

COMMANDS = some_commands(40)
NOTHING_KEPT = Retention(keep_bytes=0)


def journal(run: Path, snapshots: set[int], **options: object) -> JournalWriter:
    """Ten segments of four commands, the snapshots after those that `snapshots` counts."""
    writer = new_writer(run, **options)
    for number in range(10):
        for command in COMMANDS[4 * number : 4 * number + 4]:
            append(writer, command)
        if number in snapshots:
            writer.write_snapshot(b"image %d" % number, b"digest")
        writer.rotate()
    return writer


def test_without_a_snapshot_nothing_may_go(tmp_path: Path) -> None:
    writer = journal(tmp_path, set())
    before = read(tmp_path)
    assert writer.retain(NOTHING_KEPT).segments == []
    writer.close()
    assert read(tmp_path) == before


def test_what_goes_lies_behind_the_newest_good_snapshot(tmp_path: Path) -> None:
    writer = journal(tmp_path, {2, 6})
    snapshots = listing(writer.folder).snapshots
    dropped = writer.retain(NOTHING_KEPT)
    writer.close()
    assert len(dropped.segments) == 7
    assert dropped.baseline == snapshots[1]
    assert dropped.snapshots == [snapshots[0]], "nothing continues the older one any more"
    reader = JournalReader(tmp_path, RANK)
    assert reader.first_seq == snapshots[1].seq + 1
    assert reader.baseline() == snapshots[1]
    assert [frame.events for frame in reader.frames()][:-1] == COMMANDS[
        28:
    ] or reader.last_seq >= reader.first_seq


def test_a_damaged_snapshot_is_no_baseline(tmp_path: Path) -> None:
    writer = journal(tmp_path, {2, 6})
    older, newer = listing(writer.folder).snapshots
    newer.path.write_bytes(newer.path.read_bytes()[:-1])
    dropped = writer.retain(NOTHING_KEPT)
    writer.close()
    assert (len(dropped.segments), dropped.baseline) == (3, older)
    assert JournalReader(tmp_path, RANK).baseline() == older


def test_size_drops_as_many_of_the_oldest_as_it_takes(tmp_path: Path) -> None:
    writer = journal(tmp_path, {8})
    sizes = [each.path.stat().st_size for each in listing(writer.folder).segments]
    dropped = writer.retain(Retention(keep_bytes=sum(sizes[3:])))
    assert len(dropped.segments) == 3
    assert writer.retain(Retention(keep_bytes=sum(sizes[3:]))).segments == []
    writer.close()


def test_age_drops_what_is_older(tmp_path: Path) -> None:
    clock = Clock()
    writer = new_writer(tmp_path, clock=clock)
    for number in range(5):
        clock.now_ns = number * 10**9
        append(writer, COMMANDS[number])
        writer.write_snapshot(b"image", b"digest")
        writer.rotate()
    clock.now_ns = 5 * 10**9
    dropped = writer.retain(Retention(keep_ns=25 * 10**8))
    writer.close()
    assert len(dropped.segments) == 3


def test_the_live_segment_and_what_is_not_sealed_stay(tmp_path: Path) -> None:
    writer = journal(tmp_path, {8}, sealing=Sealing.NEVER)
    assert writer.retain(NOTHING_KEPT).segments == []
    writer.close()


def test_retention_stops_at_damage(tmp_path: Path) -> None:
    """Evidence is not thrown away, nor is a hole made behind it."""
    writer = journal(tmp_path, {8})
    bad = listing(writer.folder).segments[2].path
    bad.write_bytes(bad.read_bytes()[:-3])
    assert len(writer.retain(NOTHING_KEPT).segments) == 2
    writer.close()


def test_a_standing_retention_is_applied_whenever_a_segment_was_sealed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealing_module, "BLOCK_BYTES", 500)
    for sealing in (Sealing.INLINE, Sealing.BACKGROUND):
        run = tmp_path / sealing
        journal(run, set(range(10)), retention=Retention(keep_bytes=4_000), sealing=sealing).close()
        kept = listing(rank_folder(run, RANK)).segments
        assert 1 <= len(kept) < 9
        assert sum(each.path.stat().st_size for each in kept[1:]) <= 4_000
        JournalReader(run, RANK).baseline()


class DyingDisk(Disk):
    """Stops at the n-th removal, as a process does that is killed there."""

    def __init__(self, removals: int) -> None:
        self.removals = removals

    def remove(self, path: Path) -> None:
        if self.removals == 0:
            raise KeyboardInterrupt
        self.removals -= 1
        super().remove(path)


@pytest.mark.parametrize("removals", range(10))
def test_a_crash_between_any_two_removals_leaves_a_journal_with_its_baseline(
    tmp_path: Path, removals: int
) -> None:
    """J8."""
    writer = journal(tmp_path, {1, 4, 6})
    writer.close()
    before = [frame.events for frame in JournalReader(tmp_path, RANK).frames()]
    folder = rank_folder(tmp_path, RANK)
    with pytest.raises(KeyboardInterrupt) if removals < 9 else nullcontext():
        retain(folder, Whose(tmp_path.name, RANK), NOTHING_KEPT, 0, DyingDisk(removals))
    reader = JournalReader(tmp_path, RANK)
    reader.baseline()
    left = [frame.events for frame in reader.frames()]
    assert left == before[len(before) - len(left) :]


@given(
    st.lists(st.tuples(st.integers(1, 100), st.integers(0, 100)), max_size=8),
    st.none() | st.integers(0, 400),
    st.none() | st.integers(0, 120),
)
def test_what_is_overdue_is_the_shortest_prefix_that_satisfies_both_limits(
    segments: list[tuple[int, int]], keep_bytes: int | None, keep_ns: int | None
) -> None:
    now = 120
    aged = [
        Aged(SegmentFile(Path(str(place)), Seq(place + 1), Form.SEALED), place + 1, size, time_ns)
        for place, (size, time_ns) in enumerate(segments)
    ]
    total = sum(size for size, _ in segments)
    out = overdue(aged, total, now, Retention(keep_bytes, keep_ns))
    assert out == aged[: len(out)]
    left = segments[len(out) :]
    if left:
        assert keep_bytes is None or sum(size for size, _ in left) <= keep_bytes
        assert keep_ns is None or now - left[0][1] <= keep_ns
    if out:
        size, time_ns = segments[len(out) - 1]
        too_big = keep_bytes is not None and sum(s for s, _ in left) + size > keep_bytes
        assert too_big or (keep_ns is not None and now - time_ns > keep_ns)
