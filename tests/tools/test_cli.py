"""The door: which command is imported when, and which exit code it leaves with."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import click
import numpy as np
import pytest

from radixledger import __version__
from radixledger.journal.errors import Damaged, JournalError, NoJournal, WriterBusy
from radixledger.tools.cli import COMMANDS, run
from radixledger.tools.console import FINDINGS, CommandFailure, exit_with
from radixledger.tools.lazy_group import Subcommand

from ..replay.runs import written

Plant = Callable[[Callable[[], None]], None]


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Plant:
    """Registers a function as `radixledger sample`."""

    def register(function: Callable[[], None]) -> None:
        module = ModuleType("sample_command")
        module.command = click.command("sample")(function)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "sample_command", module)
        monkeypatch.setitem(COMMANDS, "sample", Subcommand("sample_command", "command", "A sample."))

    return register


def test_version_is_the_version_of_the_package(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capfd.readouterr().out == f"radixledger, version {__version__}\n"


def test_help_lists_the_table_without_importing_it(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(
        COMMANDS, "ghost", Subcommand("radixledger.tools.no_such_module", "command", "Haunts.")
    )
    assert run(["--help"]) == 0
    assert "ghost" in capfd.readouterr().out


def test_an_unknown_command_is_a_usage_error(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["no-such-command"]) == 2
    told = capfd.readouterr().err
    assert "no-such-command" in told
    assert "Did you mean" not in told


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (["triag"], "radixledger triage?"),
        (["verify", "X"], "radixledger replay verify?"),
        (["verfy", "X"], "radixledger replay verify?"),
        (["doctor"], "radixledger journal doctor?"),
        (["perfeto"], "radixledger export perfetto?"),
        (["replay", "blam"], "radixledger replay blame?"),
        (["journal", "docto"], "radixledger journal doctor?"),
        (["journal", "verify", "X"], "radixledger replay verify?"),
        (["replay", "stat"], "radixledger replay state?"),
        (["replay", "perfetto"], "radixledger export perfetto?"),
        (["export", "repotr"], "radixledger report,"),
    ],
)
def test_a_command_that_is_none_is_answered_with_those_that_are_near(
    words: list[str], near: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 2
    assert f"Did you mean: {near}" in capfd.readouterr().err


NO_NAME = pytest.mark.parametrize(
    "words",
    [
        ["drive", "TRACE", "--unified", "--journal", ""],
        ["drive", "TRACE", "--unified", "--journal", "run", "--key-file", ""],
        [
            "serve",
            "--offline",
            "TRACE",
            "--output",
            "out",
            "--model-path",
            "tiny",
            "--unified",
            "--journal",
            "",
        ],
        ["serve", "--offline", "TRACE", "--output", "", "--model-path", "tiny", "--journal", "run"],
        ["demo", "--to", ""],
        ["load", "", "--to", "runs.duckdb"],
        ["load", "run", "--to", ""],
        ["sql", "", "--checks"],
        ["replay", "verify", ""],
        ["journal", "recover", ".", "--to", ""],
        ["bench", "--folder", ""],
    ],
)


@NO_NAME
def test_a_name_that_is_no_text_is_refused_before_anything_is_made_of_it(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A journal has the name of its run in it, and so have tables."""
    (tmp_path / "trace").write_text("")
    monkeypatch.chdir(tmp_path)
    name = os.fsdecode(b"r\xff")
    assert run([{"TRACE": "trace", "": name}.get(word, word) for word in words]) == 2
    assert "b'r\\xff' is no text in UTF-8" in capfd.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["trace"]


@NO_NAME
def test_an_empty_path_is_refused_and_never_means_the_current_folder(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """`--journal "$RUN"` with no RUN set writes nowhere."""
    (tmp_path / "trace").write_text("")
    monkeypatch.chdir(tmp_path)
    assert run(["trace" if word == "TRACE" else word for word in words]) == 2
    assert "it is empty, and names no place" in capfd.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["trace"]


def test_a_command_that_found_nothing_leaves_with_0(plant: Plant) -> None:
    plant(lambda: None)
    assert run(["sample"]) == 0


def test_a_command_with_findings_leaves_with_1(plant: Plant) -> None:
    plant(lambda: exit_with(FINDINGS))
    assert run(["sample"]) == 1


def test_a_failure_is_one_line_and_leaves_with_its_code(
    plant: Plant, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise CommandFailure("run.0/000.seg: not a journal")

    plant(fail)
    assert run(["sample"]) == 3
    assert capfd.readouterr().err == "Error: run.0/000.seg: not a journal\n"


def test_a_file_that_cannot_be_read_leaves_with_3_and_is_named(
    plant: Plant, capfd: pytest.CaptureFixture[str]
) -> None:
    def read() -> None:
        with open("no/such/file", encoding="utf-8"):  # noqa: PTH123 — as a library below would
            pass

    plant(read)
    assert run(["sample"]) == 3
    assert capfd.readouterr().err == "Error: no/such/file: No such file or directory\n"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NoJournal(Path("run.0"), "no segment here"), 3),
        (Damaged(Path("run.0/1.seg"), offset=40, after=None, reason="checksum"), 3),
        (WriterBusy(Path("run.0"), pid=0), 2),
    ],
)
def test_an_error_of_a_journal_is_told_and_leaves_with_its_code(
    plant: Plant, capfd: pytest.CaptureFixture[str], error: JournalError, code: int
) -> None:
    def read() -> None:
        raise error

    plant(read)
    assert run(["sample"]) == code
    assert capfd.readouterr().err == f"Error: {error}\n"


def test_an_interrupt_is_no_finding(plant: Plant) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    plant(interrupt)
    assert run(["sample"]) == 130


def test_a_bug_is_no_finding_and_shows_its_traceback(plant: Plant, capfd: pytest.CaptureFixture[str]) -> None:
    def crash() -> None:
        raise ZeroDivisionError("planted")

    plant(crash)
    assert run(["sample"]) == 70
    assert "ZeroDivisionError: planted" in capfd.readouterr().err


def test_a_missing_engine_is_named_with_the_command_that_installs_it(
    plant: Plant, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    plant(lambda: None)
    monkeypatch.delitem(sys.modules, "sample_command")

    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "sample_command":
            raise ModuleNotFoundError("No module named 'jax'", name="jax")

    finder = ModuleType("finder")
    finder.find_spec = find_spec  # type: ignore[attr-defined]
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    assert run(["sample"]) == 2
    assert "pip install 'radixledger[serve]'" in capfd.readouterr().err


def test_a_reader_that_goes_away_is_no_finding_and_leaves_no_noise() -> None:
    program = """
import sys, click, types
from radixledger.tools import cli, lazy_group
@click.command()
def chatter():
    while True:
        click.echo("line " * 100)
sys.modules["chatter"] = types.SimpleNamespace(command=chatter)
cli.COMMANDS["chatter"] = lazy_group.Subcommand("chatter", "command", "Talks.")
sys.exit(cli.run(["chatter"]))
"""
    talker = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with talker:
        assert talker.stdout is not None
        assert talker.stderr is not None
        talker.stdout.readline()
        talker.stdout.close()
        noise = talker.stderr.read()
    assert (talker.returncode, noise) == (141, b"")


@pytest.mark.parametrize(
    "line", ["--help", "journal --help", "sql --list", "sql --list --json", "triage RUN --no-report"]
)
def test_a_pipe_that_nobody_reads_is_no_finding_whoever_writes_into_it(line: str, tmp_path: Path) -> None:
    """Click answers `--help` before any command runs, and rich prints the tables; both would leave with 1."""
    written(tmp_path / "run", 20)
    here, there = os.pipe()
    os.close(here)
    program = "import sys; from radixledger.tools.cli import main; main()"
    command = [sys.executable, "-c", program, *line.replace("RUN", str(tmp_path / "run")).split()]
    done = subprocess.run(command, stdout=there, stderr=subprocess.PIPE, check=False)
    os.close(there)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_program_that_was_started_with_its_output_closed_is_no_bug() -> None:
    """A shell's `>&-`: there is nobody to tell, and nothing wrong."""
    command = [sys.executable, "-m", "radixledger.tools.cli", "--version"]
    done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *command], stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_memory_that_runs_out_is_a_sentence_and_not_a_finding(
    plant: Plant, capfd: pytest.CaptureFixture[str]
) -> None:
    """Ours and numpy's, which says how much it wanted."""

    def sample() -> None:
        np.zeros(1 << 50, np.int64)

    plant(sample)
    assert run(["sample"]) == 3
    told = capfd.readouterr().err
    assert "there was not enough memory: give" in told
    assert "Unable to allocate 8.00 PiB" in told
    assert "Traceback" not in told

    def bare() -> None:
        raise MemoryError

    plant(bare)
    assert run(["sample"]) == 3
    assert "there was not enough memory: give" in capfd.readouterr().err
