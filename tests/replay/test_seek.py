"""Any state that was, from the nearest snapshot that can be believed."""

from itertools import pairwise
from pathlib import Path

import pytest

from radixledger.cache.digest import digest
from radixledger.cache.image import image
from radixledger.journal.errors import NoBaseline, NoSuchEvent
from radixledger.journal.reader import JournalReader
from radixledger.journal.retention import Retention
from radixledger.journal.writer import JournalWriter
from radixledger.replay.fold import fold
from radixledger.replay.seek import BadSnapshot, beginning_before, beginning_of, load, seq_at, state_at

from ..cache.driven import STEP_NS, Driven, opened
from .runs import RANK, Clock, written


def retained(run: Path) -> None:
    """Drop what retention may drop: everything behind the newest snapshot, by whole segments."""
    writer = JournalWriter.open(run, opened(), clock=Clock(), resume=True)
    writer.retain(Retention(keep_bytes=1))
    writer.close()


@pytest.mark.parametrize("redaction", ["plain", "hashed"])
def test_every_event_has_the_state_that_was_live(tmp_path: Path, redaction: str) -> None:
    """J12, J13: from a snapshot or from the beginning, in clear or hashed, the digest is the live one."""
    live = written(tmp_path / "run", 100, snapshots=(30, 60), redaction=redaction)
    reader = JournalReader(tmp_path / "run", RANK)
    assert len(reader.snapshots()) == 2
    for seq, recorded in live.items():
        assert digest(state_at(reader, seq)) == recorded
    for seq in range(1, reader.last_seq + 1):
        assert digest(state_at(reader, seq)) == digest(fold(reader.frames(), until=seq))


def test_the_nearest_snapshot_is_where_folding_begins(tmp_path: Path) -> None:
    written(tmp_path / "run", 100, snapshots=(30, 60))
    reader = JournalReader(tmp_path / "run", RANK)
    first, second = (ref.seq for ref in reader.snapshots())
    begun = {
        seq: beginning_before(reader, seq).next_seq
        for seq in (first - 1, first, second - 1, second, second + 9)
    }
    assert list(begun.values()) == [1, first + 1, first + 1, second + 1, second + 1]


def test_a_journal_without_its_beginning_is_folded_from_its_baseline(tmp_path: Path) -> None:
    """What retention dropped is not needed, and cannot be asked for."""
    live = written(tmp_path / "run", 200, snapshots=(20, 150), rotate_bytes=4096)
    retained(tmp_path / "run")
    reader = JournalReader(tmp_path / "run", RANK)
    assert reader.first_seq > 1
    baseline = reader.snapshots()[0].seq
    assert beginning_of(reader).next_seq == baseline + 1
    for seq, recorded in live.items():
        if seq >= baseline:
            assert digest(state_at(reader, seq)) == recorded
        else:
            with pytest.raises(NoSuchEvent) as refused:
                state_at(reader, seq)
            assert refused.value.first_seq == baseline


def test_a_journal_without_its_beginning_and_without_a_snapshot_says_so(tmp_path: Path) -> None:
    written(tmp_path / "run", 200, snapshots=(150,), rotate_bytes=4096)
    retained(tmp_path / "run")
    reader = JournalReader(tmp_path / "run", RANK)
    for ref in reader.snapshots():
        ref.path.unlink()
    with pytest.raises(NoBaseline):
        state_at(reader, reader.last_seq)


def test_a_damaged_snapshot_is_passed_over_for_an_older_one(tmp_path: Path) -> None:
    live = written(tmp_path / "run", 100, snapshots=(30, 60))
    reader = JournalReader(tmp_path / "run", RANK)
    older, newer = reader.snapshots()
    packed = bytearray(newer.path.read_bytes())
    packed[-9] ^= 1
    newer.path.write_bytes(packed)
    begin = beginning_before(reader, reader.last_seq)
    assert begin.next_seq == older.seq + 1
    assert len(begin.passed_over) == 1
    assert newer.path.name in begin.passed_over[0]
    assert digest(state_at(reader, max(live))) == live[max(live)]


def lying(run: Path, *, same_digest: bool) -> JournalReader:
    """A journal with a snapshot whose image is that of another state."""
    writer = JournalWriter.open(run, opened(redaction="plain"), clock=Clock())
    driven = Driven(4, recorder=writer).run(40)
    other = Driven(5).run(40).cache
    other.state.seq = driven.cache.state.seq
    writer.write_snapshot(image(other.state), driven.cache.digest() if same_digest else other.digest())
    writer.close()
    return JournalReader(run, RANK)


def test_a_snapshot_of_another_state_is_not_believed(tmp_path: Path) -> None:
    """Its checksum is right; the digest that was recorded with it is not its state's."""
    reader = lying(tmp_path / "run", same_digest=True)
    with pytest.raises(BadSnapshot, match="its state has digest"):
        load(reader, reader.snapshots()[0])
    assert beginning_before(reader, reader.last_seq).next_seq == 1


def test_a_snapshot_of_another_event_is_not_believed(tmp_path: Path) -> None:
    writer = JournalWriter.open(tmp_path / "run", opened(redaction="plain"), clock=Clock())
    driven = Driven(4, recorder=writer).run(40)
    driven.cache.state.seq += 1  # type: ignore[assignment]
    writer.write_snapshot(image(driven.cache.state), driven.cache.digest())
    writer.close()
    reader = JournalReader(tmp_path / "run", RANK)
    with pytest.raises(BadSnapshot, match="its image is that of event"):
        load(reader, reader.snapshots()[0])


def test_a_snapshot_that_holds_no_image_is_not_believed(tmp_path: Path) -> None:
    writer = JournalWriter.open(tmp_path / "run", opened(redaction="plain"), clock=Clock())
    writer.write_snapshot(b"a photograph", b"")
    writer.close()
    reader = JournalReader(tmp_path / "run", RANK)
    with pytest.raises(BadSnapshot, match="no image of a state"):
        load(reader, reader.snapshots()[0])


@pytest.mark.parametrize("seq", [0, -1, 10**9])
def test_an_event_that_is_not_there_cannot_be_asked_for(tmp_path: Path, seq: int) -> None:
    written(tmp_path / "run", 10)
    with pytest.raises(NoSuchEvent):
        state_at(JournalReader(tmp_path / "run", RANK), seq)


def test_a_time_means_the_last_event_that_is_not_later(tmp_path: Path) -> None:
    written(tmp_path / "run", 30)
    reader = JournalReader(tmp_path / "run", RANK)
    frames = list(reader.frames())
    for before, after in pairwise(frames):
        last = before.seq_first + len(before.events) - 1
        assert seq_at(reader, before.time_ns) == last
        assert seq_at(reader, after.time_ns - 1) == last
    assert seq_at(reader, frames[-1].time_ns + STEP_NS) == reader.last_seq
    with pytest.raises(NoSuchEvent):
        seq_at(reader, frames[0].time_ns - 1)
