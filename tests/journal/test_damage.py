"""Every way in which a file can be cut or flipped: the exact prefix or a clear error, never a wrong event.

J7, J8, B104, B107. The journals are small and whole: every byte and every bit of them is tried.
"""

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zlib import crc32

import pytest

from radixledger.journal import seal as sealing_module
from radixledger.journal.codec import Encoder
from radixledger.journal.errors import Damaged, MissingEvents, TooNew
from radixledger.journal.events import AnyEvent, Gap, GroupOpened
from radixledger.journal.frame import FrameFile, encode_frame
from radixledger.journal.reader import JournalReader
from radixledger.journal.writer import Sealing

from .written import RANK, only_segment, read_until_error, some_commands, write

Written = tuple[Path, bytes, list[list[AnyEvent]]]
COMMANDS = [[each for each in events if not hasattr(each, "key")] for events in some_commands(40)]
SMALL = [events for events in COMMANDS if events][:9]


@pytest.fixture
def live(tmp_path: Path) -> Written:
    """One live segment: its file, its bytes, its frames."""
    frames = write(tmp_path, SMALL, sealing=Sealing.NEVER)
    path = only_segment(tmp_path)
    return path, path.read_bytes(), frames


@pytest.fixture
def sealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Written:
    """The same, sealed, with blocks of two frames or so."""
    monkeypatch.setattr(sealing_module, "BLOCK_BYTES", 100)
    frames = write(tmp_path, SMALL)
    path = only_segment(tmp_path)
    return path, path.read_bytes(), frames


def boundaries(path: Path) -> list[int]:
    """Where the frames of a live segment begin, and where the last one ends."""
    whole = path.read_bytes()
    begin = whole.index(b"RLFR")
    with path.open("rb") as file:
        frames = FrameFile(path, file, offset=begin, seq_next=1, chain=None)
        offsets = [begin]
        while frames.read() is not None:
            offsets.append(frames.offset)
    return offsets


@contextmanager
def flipped(path: Path, bit: int) -> Iterator[None]:
    """One bit of a file, flipped in place and flipped back."""
    with path.open("r+b", buffering=0) as file:
        (old,) = os.pread(file.fileno(), 1, bit // 8)
        os.pwrite(file.fileno(), bytes([old ^ 1 << bit % 8]), bit // 8)
        yield
        os.pwrite(file.fileno(), bytes([old]), bit // 8)


def shorter_and_shorter(path: Path) -> Iterator[int]:
    """Every length of a file below its own, the file being cut to it in place."""
    for size in reversed(range(path.stat().st_size)):
        os.truncate(path, size)
        yield size


def accounted(run: Path, frames: list[list[AnyEvent]]) -> int:
    """In salvage every number is told by its own event or by a gap; how many are told by gaps."""
    events = dict(enumerate((event for frame in frames for event in frame), 1))
    expected, lost = 1, 0
    for frame in JournalReader(run, RANK, salvage=True).frames():
        for seq, event in enumerate(frame.events, frame.seq_first):
            if isinstance(event, Gap):
                assert seq == expected + event.lost - 1
                lost += event.lost
            else:
                assert seq == expected
                assert event == events[seq]
            expected = seq + 1
    assert expected > len(events) or lost
    return lost


def test_a_live_segment_cut_anywhere_yields_the_frames_before_the_cut_and_one_line(
    live: Written, tmp_path: Path
) -> None:
    """J8: a torn end is the end; what was written whole before it is the journal."""
    path, _, frames = live
    ends = boundaries(path)
    for size in shorter_and_shorter(path):
        found, error, notices = read_until_error(tmp_path)
        assert error is None, f"cut at {size}"
        assert [each.events for each in found] == frames[: max(0, sum(end <= size for end in ends) - 1)]
        assert len(notices) == (size not in ends)


def test_the_notice_of_a_torn_tail_counts_the_bytes_and_names_the_last_event(
    live: Written, tmp_path: Path
) -> None:
    path, whole, frames = live
    path.write_bytes(whole + b"R" * 37)
    reader = JournalReader(tmp_path, RANK)
    list(reader.frames())
    last = sum(map(len, frames))
    place = f"{path.name}, offset {len(whole)}"
    notice = f"torn tail: 37 bytes of an unfinished frame after event {last} were left out ({place})"
    assert reader.notices == [notice]


def test_zeros_behind_the_last_frame_are_a_torn_tail_too(live: Written, tmp_path: Path) -> None:
    """J8: a file that grew before a loss of power and was never filled."""
    path, whole, frames = live
    path.write_bytes(whole + bytes(200_000))
    found, error, notices = read_until_error(tmp_path)
    assert ([each.events for each in found], error) == (frames, None)
    assert notices[0].startswith("torn tail: 200000 bytes")
    path.write_bytes(whole + bytes(200_000) + b"\x01")
    assert isinstance(read_until_error(tmp_path)[1], Damaged)


def test_a_live_segment_with_any_bit_flipped_is_an_error_behind_the_exact_prefix(
    live: Written, tmp_path: Path
) -> None:
    """B104: damage does not pass, and nothing behind it is applied."""
    path, whole, frames = live
    begins = boundaries(path)
    for bit in range(8 * len(whole)):
        with flipped(path, bit):
            found, error, _ = read_until_error(tmp_path)
        before = sum(end <= bit // 8 for end in begins[1:])
        assert [each.events for each in found] == frames[:before]
        assert isinstance(error, Damaged | TooNew), f"bit {bit}"
        if isinstance(error, Damaged) and before:
            assert (error.path, error.offset) == (path, begins[before])
            assert error.after == sum(map(len, frames[:before]))


def test_in_salvage_a_flipped_bit_of_a_live_segment_costs_the_frame_it_is_in(
    live: Written, tmp_path: Path
) -> None:
    path, _, frames = live
    begins = boundaries(path)
    last = begins[-2]
    for bit in range(0, 8 * last, 3):
        with flipped(path, bit):
            lost = accounted(tmp_path, frames)
        hit = sum(begin <= bit // 8 for begin in begins)
        assert lost == (len(frames[hit - 1]) if hit else 0), f"bit {bit}"


def test_in_salvage_damage_at_the_very_end_costs_one_event_at_least(live: Written, tmp_path: Path) -> None:
    """J11: a frame whose header cannot be read does not say how many events it held."""
    path, whole, frames = live
    for bit in range(8 * boundaries(path)[-2], 8 * len(whole), 3):
        with flipped(path, bit):
            assert accounted(tmp_path, frames) >= 1


def test_a_sealed_segment_with_any_bit_flipped_is_an_error_or_told_in_full(
    sealed: Written, tmp_path: Path
) -> None:
    path, whole, frames = sealed
    footer = whole.index(b"RLFT")
    for bit in range(8 * len(whole)):
        with flipped(path, bit):
            found, error, notices = read_until_error(tmp_path)
        told = [each.events for each in found]
        assert told == frames[: len(told)]
        if bit // 8 < footer:
            assert isinstance(error, Damaged | TooNew), f"bit {bit}"
        elif error is None:
            assert told == frames
            assert notices == [f"the footer of {path.name} is damaged: its index was rebuilt by scanning"]


def test_a_sealed_segment_cut_anywhere_is_an_error_or_told_in_full(sealed: Written, tmp_path: Path) -> None:
    """Sealing is atomic: a sealed file that ends early has lost events, and no crash did that."""
    path, whole, frames = sealed
    footer = whole.index(b"RLFT")
    for size in shorter_and_shorter(path):
        found, error, notices = read_until_error(tmp_path)
        told = [each.events for each in found]
        assert told == frames[: len(told)]
        if size < footer + 4:
            assert isinstance(error, Damaged), f"cut at {size}"
        else:
            assert (told, error, len(notices)) == (frames, None, 1)


def test_in_salvage_a_flipped_bit_of_a_sealed_segment_costs_the_block_it_is_in(
    sealed: Written, tmp_path: Path
) -> None:
    path, whole, frames = sealed
    footer = whole.index(b"RLFT")
    total = sum(map(len, frames))
    for bit in range(0, 8 * footer, 5):
        with flipped(path, bit):
            lost = accounted(tmp_path, frames)
        assert 0 <= lost < total / 2, f"bit {bit}"
        assert (lost == 0) == (bit // 8 < whole.index(b"RLBK"))


def test_a_frame_that_was_taken_out_is_missed_by_its_numbers(live: Written, tmp_path: Path) -> None:
    """B107: the reader stops before the hole and names it; it never counts it as caught up."""
    path, whole, frames = live
    begins = boundaries(path)
    path.write_bytes(whole[: begins[3]] + whole[begins[4] :])
    found, error, _ = read_until_error(tmp_path)
    assert [each.events for each in found] == frames[:3]
    assert isinstance(error, MissingEvents)
    missing = sum(map(len, frames[:3])) + 1
    assert (error.missing, error.found) == (missing, missing + len(frames[3]))
    assert f"missing {missing}, next is {missing + len(frames[3])}" in str(error)
    assert accounted(tmp_path, frames) == len(frames[3])


def test_a_frame_that_stands_twice_is_damage(live: Written, tmp_path: Path) -> None:
    path, whole, frames = live
    begins = boundaries(path)
    path.write_bytes(whole[: begins[4]] + whole[begins[3] :])
    found, error, _ = read_until_error(tmp_path)
    assert [each.events for each in found] == frames[:4]
    assert isinstance(error, Damaged)
    assert "second time" in error.reason
    assert accounted(tmp_path, frames) == 0


def test_an_edited_frame_with_honest_checksums_breaks_the_chain(live: Written, tmp_path: Path) -> None:
    """J7: who edits an event has to rewrite everything behind it."""
    path, whole, frames = live
    begins = boundaries(path)
    with path.open("rb") as file:
        reading = FrameFile(path, file, offset=begins[0], seq_next=1, chain=None)
        raws = list(iter(reading.read, None))
    body = raws[2].body[:-1] + b"c"
    edited, _ = encode_frame(body, *raws[2][:5], chain=b"a chain of mine.")
    path.write_bytes(whole[: begins[2]] + edited + whole[begins[3] :])
    found, error, _ = read_until_error(tmp_path)
    assert [each.events for each in found] == frames[:2]
    assert isinstance(error, Damaged)
    assert "the chain is broken" in error.reason


def test_frames_of_another_journal_do_not_pass_for_ours(tmp_path: Path) -> None:
    """J7: the chain begins with run and rank, so the same events in another run have other frames."""
    for name in ("ours", "theirs"):
        write(tmp_path / name, SMALL, sealing=Sealing.NEVER)
    ours, theirs = only_segment(tmp_path / "ours"), only_segment(tmp_path / "theirs")
    begins, other = boundaries(ours), boundaries(theirs)
    mixed = (
        ours.read_bytes()[: begins[4]]
        + theirs.read_bytes()[other[4] : other[5]]
        + ours.read_bytes()[begins[5] :]
    )
    ours.write_bytes(mixed)
    _, error, _ = read_until_error(tmp_path / "ours")
    assert isinstance(error, Damaged)
    assert "the chain is broken" in error.reason


@pytest.mark.parametrize(
    ("size", "count", "lost"), [(2**32 - 1, 1, 0), (2**26 + 1, 1, 0), (40, 0, 0), (40, 21, 0), (40, 1, 2**31)]
)
def test_absurd_lengths_are_refused_before_anything_is_allocated(
    live: Written, tmp_path: Path, size: int, count: int, lost: int
) -> None:
    path, whole, frames = live
    last = sum(map(len, frames))
    fields = struct.pack("<IIQIIqq16s", 0, size, last + 1, count, lost, 0, 0, bytes(16))
    path.write_bytes(whole + b"RLFR" + crc32(fields).to_bytes(4, "little") + fields + bytes(100))
    _, error, _ = read_until_error(tmp_path)
    assert isinstance(error, Damaged)
    assert "absurd" in error.reason


def test_a_frame_that_skips_numbers_without_a_gap_is_refused(live: Written, tmp_path: Path) -> None:
    """J11: numbers are lost only where a gap says so."""
    path, whole, frames = live
    begins = boundaries(path)
    last = sum(map(len, frames))
    body = Encoder().encode([GroupOpened()])
    chain = whole[begins[-2] + 48 : begins[-2] + 64]
    honest, _ = encode_frame(body, last + 5, 1, 4, 0, 0, chain)
    path.write_bytes(whole + honest)
    found, error, _ = read_until_error(tmp_path)
    assert len(found) == len(frames)
    assert isinstance(error, Damaged)
    assert "no gap says so" in error.reason
    assert accounted(tmp_path, [*frames, []]) == 5
