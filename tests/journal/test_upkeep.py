"""What stands beside the writer: its name, its lock and its sealing thread; where they fail, nobody else does."""

import errno
import os
from pathlib import Path

import pytest

from radixledger.journal import upkeep
from radixledger.journal.errors import NoJournal
from radixledger.journal.folder import rank_folder
from radixledger.journal.reader import JournalReader
from radixledger.journal.retention import Retention
from radixledger.journal.writer import Sealing

from .written import RANK, append, new_writer, read, some_commands, write

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
