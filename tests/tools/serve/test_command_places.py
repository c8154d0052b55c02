"""What the command reads and writes: results that are there, a model that is not, and files that are for another command."""

import json
from pathlib import Path
from typing import Any

import pytest

from radixledger.tools.cli import run as run_command

SERVE = [
    "serve",
    "--offline",
    "requests.jsonl",
    "--output",
    "results.jsonl",
    "--model-path",
    "tiny",
    "--unified",
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with a file of two requests."""
    monkeypatch.chdir(tmp_path)
    lines = [f'{{"rid": "r{who}", "input_ids": [5, 6, {who}], "max_new_tokens": 2}}\n' for who in range(2)]
    (tmp_path / "requests.jsonl").write_text("".join(lines))
    return tmp_path


def results_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "results.jsonl").read_bytes().splitlines()]


def test_results_that_are_there_are_replaced_by_force_alone(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = [*SERVE, "--journal", "run"]
    (here / "results.jsonl").write_bytes(b"mine\n")
    assert run_command(command) == 2
    assert (
        "results.jsonl is there already: name another file, or replace it with --force"
        in capfd.readouterr().err
    )
    assert (here / "results.jsonl").read_bytes() == b"mine\n"
    assert not (here / "run").exists()
    assert run_command([*command, "--force"]) == 0
    assert len(results_of(here)) == 2


def test_results_may_go_into_a_device_or_a_pipe(here: Path) -> None:
    """They are written line by line, and nothing is put in its place."""
    words = [*SERVE, "--commit-policy", "off"]
    assert run_command([*words, "--output", "/dev/null"]) == 0
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("tinny", "there is no such folder; did you mean tiny?"),
        ("gemma-4-it", "there is no such folder; --model-path tiny is a model that is built in"),
        ("requests.jsonl", "this is a file, and a model is a folder"),
        (".", "config.json"),
    ],
)
def test_a_model_that_cannot_be_read_is_unreadable(
    here: Path, capfd: pytest.CaptureFixture[str], model: str, why: str
) -> None:
    assert run_command([*SERVE, "--journal", "run", "--model-path", model]) == 3
    assert why in capfd.readouterr().err
    assert not (here / "run").exists()


def test_a_trace_is_told_that_drive_takes_it(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """And a line of one among requests, where it was refused; `drive` names `serve` in turn."""
    line = '{"timestamp": 0, "input_length": 5, "output_length": 4, "hash_ids": [1]}\n'
    (here / "trace.jsonl").write_text(line * 2)
    command = [*SERVE, "--journal", "run"]
    assert run_command([*command, "--offline", "trace.jsonl"]) == 3
    assert "`radixledger drive trace.jsonl --journal RUN`" in capfd.readouterr().err
    assert [(here / name).exists() for name in ("run", "results.jsonl")] == [False, False]
    (here / "mixed.jsonl").write_text((here / "requests.jsonl").read_text() + line)
    assert run_command([*command, "--offline", "mixed.jsonl"]) == 1
    assert "refused: line 3: a line of a trace" in capfd.readouterr().err
    assert run_command(["drive", "requests.jsonl", "--journal", "driven"]) == 3
    assert "`radixledger serve --offline` takes it" in capfd.readouterr().err
