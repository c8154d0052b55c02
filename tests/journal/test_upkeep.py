"""What stands beside the writer: its name, its lock and its sealing thread; where they fail, nobody else does."""

import errno
import os
from pathlib import Path

import pytest

from radixledger.journal import upkeep
from radixledger.journal.errors import Damaged, NoJournal
from radixledger.journal.events import Gap
from radixledger.journal.folder import Listing, listing, rank_folder
from radixledger.journal.reader import JournalReader
from radixledger.journal.retention import Retention
from radixledger.journal.writer import Sealing

from .written import RANK, append, new_writer, read, segment_paths, some_commands, write

COMMANDS = some_commands(12)


def test_a_seal_that_goes_wrong_in_an_unforeseen_way_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a thread of its own, it would end the thread, and whoever waits for the jobs behind it would wait for ever."""

    def no_memory(*_: object, **__: object) -> None:
        raise MemoryError("a block is too large")

    monkeypatch.setattr(upkeep, "seal", no_memory)
    writer = new_writer(tmp_path, sealing=Sealing.BACKGROUND, rotate_bytes=300)
    for command in COMMANDS:
        append(writer, command)
    writer.retain(Retention(keep_bytes=1))
    writer.close()
    assert read(tmp_path)[1:] == COMMANDS
    assert "stays as it is: MemoryError('a block is too large')" in writer.notices[0]


def test_a_lock_that_a_full_disk_did_not_take_down_is_free_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next try of the same process would find itself in the way."""

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("radixledger.journal.lock.os.pwrite", full)
        with pytest.raises(OSError, match="No space left"):
            new_writer(tmp_path)
    assert write(tmp_path, [COMMANDS[0]])


def test_a_run_has_a_name_that_can_be_written_down(tmp_path: Path) -> None:
    """A folder may be named by any bytes; a journal says its name in UTF-8."""
    run = tmp_path / os.fsdecode(b"r\xff")
    with pytest.raises(ValueError, match="is no text in UTF-8"):
        write(run, [])
    assert write(tmp_path / "ünï 日本", [])


def test_a_rank_folder_without_a_segment_is_told_as_that(tmp_path: Path) -> None:
    """A disk that was full from the first byte on leaves the folder, and nothing in it."""
    rank_folder(tmp_path, RANK).mkdir()
    with pytest.raises(NoJournal, match="rank 0 has no journal here: its folder holds no segment"):
        JournalReader(tmp_path, RANK)


def test_a_first_segment_that_is_dropped_before_it_is_opened_is_not_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """J12: the reader lists again what retention has left."""
    write(tmp_path, COMMANDS, rotate_bytes=300)
    reader = JournalReader(tmp_path, RANK)
    paths = segment_paths(tmp_path)
    listings: list[Path] = []

    def late(folder: Path) -> Listing:
        found = listing(folder)
        if not listings:
            paths[0].unlink()
        listings.append(folder)
        return found

    monkeypatch.setattr("radixledger.journal.reader.listing", late)
    assert reader.opened == JournalReader(tmp_path, RANK).opened
    assert len(listings) >= 2
    assert not paths[0].exists()


@pytest.mark.parametrize("at", [0, 1, -1])
def test_a_link_to_nowhere_is_damage_and_not_waited_for(tmp_path: Path, at: int) -> None:
    """A copy of a run that took links for files; in salvage the other segments are told."""
    whole = write(tmp_path, COMMANDS, rotate_bytes=300)
    path = segment_paths(tmp_path)[at]
    path.unlink()
    path.symlink_to(tmp_path / "nowhere")
    with pytest.raises((Damaged, NoJournal), match="nowhere"):
        _ = JournalReader(tmp_path, RANK).opened, read(tmp_path)
    if at:
        told = [events for events in read(tmp_path, salvage=True) if type(events[0]) is not Gap]
        assert len(told) < len(whole)
        assert all(events in whole for events in told)
