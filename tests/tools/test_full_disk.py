"""A disk that takes no more, under every command that writes: one sentence that names the file, and no half of a result.

A limit on the size of files stands in for the full disk: the kernel refuses the same writes, of any library, with another number.
"""

import errno
import io
import re
import resource
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from radixledger.journal.units import Rank
from radixledger.tools.cli import main
from radixledger.tools.cli import run as command_line
from radixledger.tools.drill import plant_double_free
from radixledger.tools.serve.result_file import ResultFile

from ..replay.runs import written

Capture = pytest.CaptureFixture[str]

TRACE = '{"timestamp": 0, "input_length": 300, "output_length": 4, "hash_ids": [1]}\n'
REQUESTS = '{"rid": "a", "input_ids": [5, 6, 7], "max_new_tokens": 3}\n'

WRITERS = {
    "journal recover RUN --to PLACE": "PLACE/rank-0000",
    "journal redact PLAIN --to PLACE --key-file KEY": "KEY",
    "serve --offline REQUESTS --model-path tiny --journal JOURNAL --output PLACE": "JOURNAL/rank-0000/lock",
    "serve --offline REQUESTS --model-path tiny --commit-policy off --output PLACE": "PLACE",
    "drive TRACE --unified --page-size 16 --window 64 --journal PLACE": "PLACE/rank-0000/lock",
    "export perfetto RUN -o PLACE": "PLACE",
    "report RUN -o PLACE": "PLACE",
    "whatif RUN --processes 1 --set swa_pages=30": "radixledger-whatif-",
    "reduce RUN -o PLACE": "PLACE",
    "load RUN --to PLACE.duckdb": "PLACE.duckdb",
    "load RUN --to PLACE": "PLACE/LAYOUT",
}
"""Command lines, and the file that each of them could not write."""


class FullFile(io.StringIO):
    """A text stream into a file on a full disk."""

    def write(self, text: str) -> int:
        """Nothing more."""
        raise OSError(errno.ENOSPC, "No space left on device")


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """No file grows beyond `size` bytes in here."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An incident, and a run with its tokens in it."""
    place = tmp_path_factory.mktemp("full_disk")
    written(place / "whole", 200)
    plant_double_free(place / "whole", place / "run", Rank(0))
    written(place / "plain", 20, redaction="plain")
    (place / "trace").write_text(TRACE)
    (place / "requests").write_text(REQUESTS)
    return place


@pytest.mark.parametrize("call", WRITERS)
def test_a_full_disk_is_told_by_the_file_that_it_has_no_room_for(
    call: str, runs: Path, tmp_path: Path, capsys: Capture
) -> None:
    places = {
        "RUN": runs / "run", "PLAIN": runs / "plain", "TRACE": runs / "trace", "REQUESTS": runs / "requests",
        "PLACE": tmp_path / "new", "KEY": tmp_path / "key", "JOURNAL": tmp_path / "journal",
    }  # fmt: skip

    def placed(words: str) -> str:
        return re.sub("|".join(places), lambda word: str(places[word[0]]), words)

    with files_of_at_most(0):
        code = command_line(placed(call).split())
    said = capsys.readouterr().err
    assert code in (2, 3), said
    (told,) = [line for line in said.splitlines() if line.startswith("Error: ")]
    assert placed(WRITERS[call]) in told
    assert "File too large" in told
    left = [each for each in tmp_path.rglob("*") if each.is_file() and each.name != "lock"]
    assert [each for each in left if each.stat().st_size or each == tmp_path / "new.duckdb"] == []


@pytest.mark.parametrize("room", [0, 4096])
@pytest.mark.parametrize("place", ["runs.duckdb", "warehouse"])
def test_a_load_that_found_the_disk_full_can_be_made_again(
    room: int, place: str, runs: Path, tmp_path: Path, capsys: Capture
) -> None:
    """Half a store that is none would stand in the way of the next load."""
    line = ["load", str(runs / "run"), "--to", str(tmp_path / place)]
    with files_of_at_most(room):
        code = command_line(line)
    said = capsys.readouterr().err
    assert (code in (2, 3), "could not write" in said.lower() or "too large" in said) == (True, True), said
    assert "exception_message" not in said
    assert command_line(line) == 0
    assert command_line(["sql", str(tmp_path / place), "double_free", "--json"]) == 1


def test_a_result_that_finds_no_room_leaves_those_before_it_and_no_half_line(tmp_path: Path) -> None:
    with (
        pytest.raises(OSError, match="results"),
        ResultFile(tmp_path / "results") as results,
        files_of_at_most(25),
    ):
        results.write(b"the first, whole\n")
        results.write(b"the second, too long\n")
    assert (tmp_path / "results").read_text() == "the first, whole\n"


@pytest.mark.parametrize("line", ["replay state RUN", "triage nowhere", "--no-such-option"])
def test_where_not_even_the_failure_can_be_told_the_exit_code_is_no_finding(
    line: str, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Output and errors into a file on the full disk, as a nightly job has them: Python's own code would be 1."""
    monkeypatch.setattr(sys, "argv", ["radixledger", *line.replace("RUN", str(runs / "whole")).split()])
    with ExitStack() as full, pytest.raises(SystemExit) as left:
        for stream in ("stdout", "stderr"):
            monkeypatch.setattr(sys, stream, full.enter_context(FullFile()))
        main()
    assert left.value.code == 3
