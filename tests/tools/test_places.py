"""Where results go: not over what is there, not into the folder of a run, and how that is said."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from radixledger.tools.cli import radixledger
from radixledger.tools.cli import run as command_line
from radixledger.tools.console import CommandFailure
from radixledger.tools.places import check_place, holds_a_run, new_file

from ..replay.runs import written
from ..test_docs import leaves

Capture = pytest.CaptureFixture[str]

WRITERS = {
    "demo --to": "demo --to PLACE",
    "journal recover --to": "journal recover RUN --to PLACE",
    "journal redact --to": "journal redact RUN --to PLACE",
    "journal redact --key-file": "journal redact RUN --to ELSEWHERE --key-file PLACE",
    "serve --output": "serve --offline EMPTY --model-path tiny --journal ELSEWHERE --output PLACE",
    "serve --journal": "serve --offline EMPTY --model-path tiny --output ELSEWHERE --journal PLACE",
    "serve --key-file": "serve --offline EMPTY --model-path tiny --output ELSEWHERE --journal OTHER --key-file PLACE",
    "drive --journal": "drive EMPTY --unified --journal PLACE",
    "drive --key-file": "drive EMPTY --unified --journal ELSEWHERE --key-file PLACE",
    "bench --folder": "bench journal --folder PLACE",
    "triage --report": "triage RUN --report PLACE",
    "export perfetto --output": "export perfetto RUN --force -o PLACE",
    "report --output": "report RUN --force -o PLACE",
    "whatif --plot": "whatif RUN --force --plot PLACE.svg",
    "reduce --output": "reduce RUN --force -o PLACE",
    "load --to": "load RUN --to PLACE.duckdb",
}
"""Every option that names something to be written, in a command that goes no further."""

READ = {"bench --trace", "replay bisect --sql", "serve --offline"}
"""Options that name a file to be read."""


def options_with_paths() -> Iterator[str]:
    for name, command in leaves(radixledger, "radixledger"):
        for each in command.params:
            if isinstance(each, click.Option) and isinstance(each.type, click.Path):
                yield f"{name.removeprefix('radixledger ')} {each.opts[-1]}"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("places") / "run"
    written(place, 20)
    return place


def test_every_option_that_names_a_path_is_read_or_is_a_writer_of_this_page() -> None:
    assert set(options_with_paths()) == {*WRITERS, *READ}


@pytest.mark.parametrize("option", WRITERS)
@pytest.mark.parametrize("inside", ["x", "rank-0000/x", "rank-0000/deeper/x"])
def test_nothing_is_written_into_the_folder_of_a_run(
    option: str, inside: str, run: Path, tmp_path: Path, capfd: Capture
) -> None:
    (tmp_path / "empty").touch()
    before = sorted(run.rglob("*"))
    places = {
        "PLACE": run / inside, "RUN": run, "ELSEWHERE": tmp_path / "new", "OTHER": tmp_path / "other",
        "EMPTY": tmp_path / "empty",
    }  # fmt: skip
    line = re.sub("|".join(places), lambda word: str(places[word[0]]), WRITERS[option])
    assert command_line(line.split()) == 2
    said = capfd.readouterr().err
    assert any(words in said for words in ("name a place outside it", "name a new folder")), said
    assert sorted(run.rglob("*")) == before
    assert not (tmp_path / "new").exists()


def test_no_file_of_a_journal_is_replaced_not_even_by_a_link_to_it(run: Path, tmp_path: Path) -> None:
    (segment,) = (run / "rank-0000").glob("0*1.*")
    (tmp_path / "page.html").symlink_to(segment)
    (tmp_path / "way").symlink_to(run / "rank-0000")
    for place in (segment, tmp_path / "page.html", tmp_path / "way" / "page.html"):
        with pytest.raises(CommandFailure, match="the folder of a journal") as refused:
            check_place(place, force=True)
        assert str(place) in refused.value.message
        assert refused.value.exit_code == 2


@pytest.mark.parametrize("output", ["serve --output", "drive --key-file"])
def test_a_run_that_is_to_be_made_holds_its_journal_alone(
    output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").touch()
    line = WRITERS[output].replace("PLACE", "new/x").replace("ELSEWHERE", "new").replace("EMPTY", "empty")
    assert command_line(line.split()) == 2
    assert "which is to hold the run's journal and nothing else" in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == [tmp_path / "empty"]


def test_triage_in_the_folder_of_a_run_says_that_it_writes_no_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    """The verdict is what was asked for; the page is extra."""
    written(tmp_path / "run", 20, close=False)
    (segment,) = (tmp_path / "run" / "rank-0000").glob("0*1.*")
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    monkeypatch.chdir(tmp_path / "run")
    before = sorted(tmp_path.rglob("*"))
    assert command_line(["triage", "."]) in (1, 3)
    said = capfd.readouterr()
    assert "rank 0" in said.out
    assert "no page is written: " in said.err
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_is_that_of_a_run_by_the_segments_in_it(run: Path, tmp_path: Path) -> None:
    """Ranks of other programs, and folders that hold runs, are places like any other."""
    (tmp_path / "rank-0000").mkdir()
    assert not holds_a_run(tmp_path)
    assert not holds_a_run(run.parent)
    assert holds_a_run(run)
    assert holds_a_run(run / "rank-0000")
    check_place(run.parent / "page.html", force=False)


def test_what_is_no_file_is_not_replaced_by_force_either(tmp_path: Path) -> None:
    """A device or a pipe that a result was renamed onto would be gone for everybody."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CommandFailure, match="no file that could be replaced"):
        check_place(tmp_path / "pipe", force=True)
    assert (tmp_path / "pipe").is_fifo()


def test_an_empty_name_is_no_file(capfd: Capture) -> None:
    with pytest.raises(click.BadParameter, match="it is empty"):
        new_file.convert("", None, None)
