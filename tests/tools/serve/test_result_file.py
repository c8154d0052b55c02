"""The file of results is spoilt by no run that never served."""

from pathlib import Path

import pytest

from radixledger.journal.folder import LOCK_NAME, rank_folder
from radixledger.journal.lock import WriterLock
from radixledger.journal.units import Rank
from radixledger.tools.cli import run
from radixledger.tools.serve.result_file import ResultFile

BEFORE = b"results of before\n"


def test_results_of_before_stay_until_the_first_new_one(tmp_path: Path) -> None:
    path = tmp_path / "results"
    path.write_bytes(BEFORE)
    with ResultFile(path) as file:
        assert path.read_bytes() == BEFORE
        file.write(b"a\n")
        assert path.read_bytes() == b"a\n"
        file.write(b"b\n")
    assert path.read_bytes() == b"a\nb\n"


def test_a_run_that_ends_well_without_results_leaves_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "results"
    path.write_bytes(BEFORE)
    with pytest.raises(KeyError), ResultFile(path):
        raise KeyError
    assert path.read_bytes() == BEFORE
    with ResultFile(path):
        pass
    assert path.read_bytes() == b""


@pytest.mark.parametrize("place", ["nowhere/results", "file/results"])
def test_a_place_where_nothing_can_be_written_is_told_before_anything_is_served(
    tmp_path: Path, place: str
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"no file can be made here|Not a directory"):
        ResultFile(tmp_path / place)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_run_that_is_refused_leaves_the_results_of_the_one_that_is_under_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second process with the same command line is turned away at the journal: by then the first has results."""
    requests, results, journal = tmp_path / "requests", tmp_path / "results", tmp_path / "run"
    requests.write_text('{"rid": "a", "input_ids": [5, 6, 7], "max_new_tokens": 2}\n')
    results.write_bytes(BEFORE)
    folder = rank_folder(journal, Rank(0))
    folder.mkdir(parents=True)
    lock = WriterLock(folder / LOCK_NAME)
    command = [
        "serve",
        "--offline",
        str(requests),
        "--output",
        str(results),
        "--force",
        "--model-path",
        "tiny",
    ]
    try:
        assert run([*command, "--journal", str(journal)]) == 2
    finally:
        lock.release()
    assert "one writer per rank" in capsys.readouterr().err
    assert results.read_bytes() == BEFORE
    assert run([*command, "--journal", str(journal)]) == 0
    assert results.read_bytes().startswith(b'{"rid":"a"')
