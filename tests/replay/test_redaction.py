"""A redacted copy holds no token, and is the same run in everything else (N18, J10)."""

from pathlib import Path

import pytest

from radixledger.journal.events import Opened, Transferred
from radixledger.journal.reader import JournalReader
from radixledger.journal.redact import key_id
from radixledger.journal.units import Rank
from radixledger.replay.export.redaction import AlreadyHashed, redact
from radixledger.replay.seek import load
from radixledger.replay.verify import verify_rank

from ..cache.driven import CHUNK_SHAPES, FULL_SHAPES, SHAPES
from .runs import KEY, RANK, written

OTHER = bytes(range(1, 33))


def keys(run: Path) -> list[bytes]:
    return [
        event.key
        for frame in JournalReader(run, RANK).frames()
        for event in frame.events
        if isinstance(event, Transferred)
    ]


@pytest.mark.parametrize(("route", "shape"), [
    ("unified", SHAPES[1]), ("legacy", SHAPES[1]), ("radix", FULL_SHAPES[1]), *CHUNK_SHAPES.items(),
])  # fmt: skip
def test_a_redacted_copy_comes_to_the_verdict_of_its_source(
    tmp_path: Path, route: str, shape: tuple[int, ...]
) -> None:
    written(tmp_path / "plain", route=route, shape=shape)
    redact(tmp_path / "plain", RANK, tmp_path / "hashed", KEY)
    before, after = (verify_rank(tmp_path / name, RANK) for name in ("plain", "hashed"))
    assert after.clean
    assert (after.events, after.digests, after.ledgers) == (before.events, before.digests, before.ledgers)


def test_the_copy_is_the_journal_that_a_server_with_this_key_would_have_written(tmp_path: Path) -> None:
    written(tmp_path / "plain")
    written(tmp_path / "hashed", redaction="hashed")
    redact(tmp_path / "plain", RANK, tmp_path / "copy", KEY)
    hashed, copy = (
        [event for frame in JournalReader(tmp_path / name, RANK).frames() for event in frame.events]
        for name in ("hashed", "copy")
    )
    assert isinstance(hashed[0], Opened)
    assert isinstance(copy[0], Opened)
    assert copy[0].key_id == hashed[0].key_id == key_id(KEY)
    assert copy[1:] == hashed[1:]
    assert JournalReader(tmp_path / "copy", RANK).opened.stride == 8


def test_no_byte_of_a_key_is_left_in_the_copy(tmp_path: Path) -> None:
    """Neither in events nor in the images of snapshots, which are rewritten and still stand for their state."""
    written(tmp_path / "plain", snapshots=(40, 80), shape=(16, 16, 60, 40))
    done = redact(tmp_path / "plain", RANK, tmp_path / "copy", KEY)
    assert done.snapshots == 2
    plain = keys(tmp_path / "plain")
    assert plain
    reader = JournalReader(tmp_path / "copy", RANK)
    texts = [raw.body for _, raw in reader.raw_frames()]
    texts += [reader.read_snapshot(ref)[0] for ref in reader.snapshots()]
    assert [key for key in plain if any(key in text for text in texts)] == []
    for ref in reader.snapshots():
        state = load(reader, ref)  # raises where its digest is not the recorded one
        assert state.stride == 8
        assert state.opened.redaction == "hashed"
    assert verify_rank(tmp_path / "copy", RANK, from_snapshot=True).clean


def test_the_same_key_gives_the_same_hashes_and_another_key_others(tmp_path: Path) -> None:
    written(tmp_path / "plain")
    for name, key in (("one", KEY), ("two", KEY), ("three", OTHER)):
        redact(tmp_path / "plain", RANK, tmp_path / name, key)
    one, two, three = (keys(tmp_path / name) for name in ("one", "two", "three"))
    assert one == two
    assert not set(one) & set(three)


def test_a_run_of_hashes_is_not_hashed_again(tmp_path: Path) -> None:
    written(tmp_path / "hashed", redaction="hashed")
    with pytest.raises(AlreadyHashed, match=f"hashes already, under the key {key_id(KEY)}"):
        redact(tmp_path / "hashed", RANK, tmp_path / "copy", OTHER)
    assert not (tmp_path / "copy").exists()


def test_what_is_damaged_is_a_gap_in_the_copy(tmp_path: Path) -> None:
    written(tmp_path / "plain", close=False)
    (segment,) = (tmp_path / "plain").rglob("*.sealed")
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(bytes(data))
    done = redact(tmp_path / "plain", Rank(0), tmp_path / "copy", KEY)
    assert done.lost > 0
    assert verify_rank(tmp_path / "copy", RANK).gaps == 1
