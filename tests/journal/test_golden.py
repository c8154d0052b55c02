"""Journals of every version must always decode, to the very events that were written (J5)."""

from pathlib import Path

import pytest

from radixledger.journal.doctor import examine
from radixledger.journal.events import SCHEMA_VERSION, Opened
from radixledger.journal.folder import listing, rank_folder
from radixledger.journal.reader import JournalReader, ranks_in
from radixledger.journal.redact import Redactor
from radixledger.journal.units import Rank
from tests.golden.make_journal_golden import FOLDER, make, one_of_each, opened

RANK = Rank(3)
VERSIONS = sorted(path.name for path in FOLDER.iterdir())


def files_of(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in rank_folder(run, RANK).iterdir() if path.name != "lock"}


def test_there_is_a_golden_journal_of_every_version() -> None:
    assert [f"v{version}" for version in range(1, SCHEMA_VERSION + 1)] == VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
def test_a_golden_journal_is_read_to_its_end(version: str) -> None:
    """A failure here that names the fingerprint: the vocabulary of a version has changed. If that version was released,
    it needs a new number; if not, `python -m tests.golden.make_journal_golden` makes its journal anew.
    """
    run = FOLDER / version
    assert ranks_in(run) == [RANK]
    reader = JournalReader(run, RANK)
    events = [event for frame in reader.frames() for event in frame.events]
    assert sum(isinstance(event, Opened) for event in events) == 2
    assert len(events) == reader.last_seq
    assert reader.notices == []
    assert not examine(run, RANK).has_findings
    assert reader.read_snapshot(reader.snapshots()[0]) == (b"the image of a state", b"its digest")


def test_the_golden_journal_of_today_holds_one_of_each_in_both_forms() -> None:
    run = FOLDER / f"v{SCHEMA_VERSION}"
    frames = list(JournalReader(run, RANK).frames())
    redactor = Redactor(bytes(range(32)), opened("hashed").stride)
    events = one_of_each()
    assert [frame.events for frame in frames[1:-2]] == [[redactor.redact(event)] for event in events]
    assert frames[-1].events == events
    assert (frames[0].epoch, frames[-1].epoch) == (1, 2)
    assert {each.path.suffix for each in listing(rank_folder(run, RANK)).segments} == {".sealed", ".seg"}


def test_todays_writer_makes_the_golden_journal_of_today_byte_for_byte(tmp_path: Path) -> None:
    """The file format is a promise too: no byte of it moves unnoticed."""
    name = f"v{SCHEMA_VERSION}"
    make(tmp_path / name)
    made, golden = files_of(tmp_path / name), files_of(FOLDER / name)
    assert made.keys() == golden.keys()
    live = {file for file in made if file.endswith(".seg")}
    assert {file: made[file] for file in live} == {file: golden[file] for file in live}
