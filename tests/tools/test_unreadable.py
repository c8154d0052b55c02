"""A place that cannot be read has one exit code, whatever reads it."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from radixledger.tools.cli import radixledger
from radixledger.tools.cli import run as command_line
from radixledger.tools.places import SourceFile
from radixledger.tools.run_argument import RunPath

from ..test_docs import leaves

Capture = pytest.CaptureFixture[str]

BESIDES = {
    "counterfactual": "--with .",
    "export perfetto": "-o made",
    "journal recover": "--to made",
    "journal redact": "--to made",
    "load": "--to made",
    "reduce": "-o made",
    "replay bisect": "--law every_page_has_one_owner",
    "replay blame": "--request a",
    "replay tail": "--once",
    "replay why-miss": "a",
    "report": "-o made",
    "sql": "--checks",
    "whatif": "--set full_pages=9",
}
"""What a command has to be told besides its RUN."""

SERVED = "serve --output made --model-path tiny --journal made --offline"
READERS = {"drive": "drive --journal made", "serve": SERVED, "bench": "bench workload --trace"}
"""How a command begins that ends in the file it reads."""


def parameters_of(kind: type[SourceFile | RunPath]) -> Iterator[tuple[str, click.Command, click.Parameter]]:
    for name, command in leaves(radixledger, "radixledger"):
        for each in command.params:
            if isinstance(each.type, kind):
                yield name.removeprefix("radixledger "), command, each


def runs_of() -> dict[str, int]:
    """Every command that takes a RUN, and how many it needs."""
    found: dict[str, int] = {}
    for name, _, _ in parameters_of(RunPath):
        found[name] = found.get(name, 0) + 1
    return found


@pytest.mark.parametrize("command", sorted(runs_of()))
@pytest.mark.parametrize("place", ["nowhere", "letter.txt", "empty", "file://nowhere"])
def test_a_run_that_cannot_be_read_is_unreadable_for_every_command(
    command: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "letter.txt").write_text("dear " * 100)
    (tmp_path / "empty").mkdir()
    words = [*command.split(), *[place] * runs_of()[command], *BESIDES.get(command, "").split()]
    assert command_line(words) == 3
    said = capfd.readouterr()
    assert said.out == ""
    assert place.rpartition("/")[2] in said.err
    assert "Traceback" not in said.err
    assert "Usage" not in said.err
    assert sorted(each.name for each in tmp_path.iterdir()) == ["empty", "letter.txt"]


def test_every_command_that_reads_a_file_is_tried() -> None:
    assert {name for name, _, _ in parameters_of(SourceFile)} == READERS.keys()


@pytest.mark.parametrize("command", READERS.values(), ids=READERS.keys())
@pytest.mark.parametrize(
    ("place", "why"), [("nowhere", "there is no such file"), ("empty", "this is a folder")]
)
def test_a_file_that_cannot_be_read_is_unreadable_too(
    command: str, place: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    assert command_line([*command.split(), place]) == 3
    assert f"{place}: {why}" in capfd.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["empty"]
