"""The docs are run: every example, every command that is only shown, and the list of commands.

How an example is marked is said in `tests/examples.py`.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from radixledger.tools.cli import radixledger
from radixledger.tools.lazy_group import LazyGroup

from .examples import Example, agrees, examples_of, run_python, steps_of

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
STEP_LIMIT_S = 600


def environment(home: Path) -> dict[str, str]:
    """A newcomer's: our command on the path, an empty home, a plain terminal of 100 columns; the code is this tree's."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return {
        "PATH": path,
        "PYTHONPATH": str(Path(__file__).parents[1] / "src"),
        "HOME": str(home),
        "COLUMNS": "100",
        "NO_COLOR": "1",
        "JAX_PLATFORMS": "cpu",
        "LANG": "C.UTF-8",
    }


def run_console(example: Example, home: Path) -> None:
    for step in steps_of(example.text):
        done = subprocess.run(
            ["sh", "-c", step.command],
            cwd=home,
            env=environment(home),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=STEP_LIMIT_S,
        )
        told = f"{example.place}: $ {step.command}\n{done.stdout}"
        assert done.returncode == step.exit_code, told
        assert agrees(step.output, done.stdout), f"{told}\n--- but the document shows ---\n{step.output}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_examples_of_a_document_do_what_it_shows(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").symlink_to(ROOT / "docs")  # the run that the tutorial is about
    names: dict[str, object] = {}
    for example in examples_of(document):
        if example.file:
            (tmp_path / example.file).write_text(example.text, "utf-8")
        elif example.language == "console":
            run_console(example, tmp_path)
        elif example.language == "python":
            if not example.continued:  # as who saves it and runs it
                names = {"__name__": "__example__"}
            run_python(example, names)


def leaves(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, by its whole name."""
    if not isinstance(command, click.Group):
        yield name, command
        return
    context = click.Context(command, info_name=name)
    for each in command.list_commands(context):
        child = command.get_command(context, each)
        assert child is not None, f"{name} lists {each} and does not have it"
        yield from leaves(child, f"{name} {each}")


def commands_shown(document: Path) -> Iterator[tuple[str, list[str]]]:
    """The words of each `radixledger` command in a block that is shown and not run."""
    for example in examples_of(document):
        if example.language == "sh":
            for line in example.text.replace("\\\n", " ").splitlines():
                words = shlex.split(line.removeprefix("$ "), comments=True)
                if words and Path(words[0]).name == "radixledger":
                    yield example.place, words[1:]


def unknown_words(words: list[str]) -> list[str]:
    """Commands and options among the words that the command line does not have."""
    command: click.Command | None = radixledger
    rest = list(words)
    while isinstance(command, click.Group) and rest:
        name, *rest = rest
        command = command.get_command(click.Context(command), name)
        if command is None:
            return [name]
    assert command is not None
    options = {spelling for option in command.params for spelling in (*option.opts, *option.secondary_opts)}
    return [
        word
        for word in rest
        if word.startswith("-") and word.partition("=")[0] not in options | {"-h", "--help"}
    ]


def test_what_is_only_shown_exists_nevertheless() -> None:
    wrong = [
        f"{place}: {word}"
        for document in DOCUMENTS
        for place, words in commands_shown(document)
        for word in unknown_words(words)
    ]
    assert wrong == []


def test_every_command_is_in_the_docs() -> None:
    prose = "\n".join(document.read_text("utf-8") for document in DOCUMENTS)
    missing = [
        name
        for name, _ in leaves(radixledger, "radixledger")
        if not re.search(rf"{re.escape(name)}\b", prose)
    ]
    assert missing == []


def test_every_command_has_help_with_an_example() -> None:
    bare = [
        name
        for name, command in leaves(radixledger, "radixledger")
        if not command.help or f"$ {name}" not in (command.epilog or "")
    ]
    assert bare == []


def test_every_option_says_what_it_does() -> None:
    silent = [
        f"{name} {parameter.opts[0]}"
        for name, command in leaves(radixledger, "radixledger")
        for parameter in command.params
        if isinstance(parameter, click.Option) and not parameter.help
    ]
    assert silent == []


def test_the_table_of_commands_tells_what_each_command_tells_itself() -> None:
    tables: list[LazyGroup] = [radixledger]
    for group in tables:
        for name, entry in group.table.items():
            command = group.get_command(click.Context(group), name)
            assert command is not None
            assert (command.help or "").splitlines()[0].rstrip(".") == entry.help.rstrip("."), name
            if isinstance(command, LazyGroup):
                tables.append(command)


def test_examples_that_are_wrong_are_told_apart(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```json file=a.json\n{}\n```\n\n```console\n$ cat a.json\n{}\n$ echo one \\\n  two\none ...\n$ false  # exit 1\n```\n"
    )
    written, run = examples_of(page)
    assert (written.file, written.text, run.place) == ("a.json", "{}\n", "page.md:5")
    steps = steps_of(run.text)
    assert [(step.output, step.exit_code) for step in steps] == [("{}\n", 0), ("one ...\n", 0), ("", 1)]
    assert agrees("one ...\n", "one two\n")
    assert not agrees("one\n", "two\n")
    assert agrees("", "whatever\n")
    (tmp_path / "a.json").write_text("{}")
    run_console(run, tmp_path)
    with pytest.raises(AssertionError):
        run_console(run._replace(text="$ false\n"), tmp_path)
    with pytest.raises(AssertionError):
        run_python(run._replace(text=">>> 1 + 1\n3\n"), {})
    with pytest.raises(AssertionError):
        run_python(run._replace(text=">>> print('life 1  event 15')\nlife 1\nevent 15\n"), {})
    assert unknown_words(["no-such-command"]) == ["no-such-command"]


def test_a_program_that_is_shown_has_no_names_of_those_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    begun = "```python\nname = 1\n```\n\n"
    page.write_text(f"{begun}```python continued\nassert name == 1\n```\n")
    test_the_examples_of_a_document_do_what_it_shows(page, _folder(tmp_path, "goes-on"), monkeypatch)
    page.write_text(f"{begun}```python\nassert name == 1\n```\n")
    with pytest.raises(NameError):
        test_the_examples_of_a_document_do_what_it_shows(page, _folder(tmp_path, "alone"), monkeypatch)


def _folder(parent: Path, name: str) -> Path:
    (parent / name).mkdir()
    return parent / name


PRINTED = """\
rank   events   verdict
────────────────────────
   0    1,190   clean
   1    1,211   wrong
life 1  event 26  what Freed
  wrong request(98) did not have it
"""


@pytest.mark.parametrize(
    ("shown", "agreed"),
    [
        (PRINTED, True),
        ("rank events verdict\n───\n0 1,190 clean\n1  1,211  wrong\n...\n", True),
        ("...\nlife 1  event 26  what ...\n  wrong request(98) ...\n", True),
        ("rank   ...\n...\n1    1,211   ...\n...\n", True),
        ("rank   ...   verdict\n...\n...\n", True),
        ("...\nlife         1\nevent        26\nwhat         Freed\n...\n", False),
        ("...\nwrong  request(98) did not have it\n", True),
        ("...\nlife 1  event 26  what Freed  wrong request(98) did not have it\n", False),
        ("events   rank   verdict\n...\n", False),
        ("rank   events   verdict\n0    1,190   clean\n...\n", False),
        ("rank ... wrong\n...\n", False),
        ("rank   events\n...\n", False),
        ("...\n1    1,211   wrong\n", False),
    ],
)  # fmt: skip
def test_a_stale_layout_is_told_and_the_widths_of_numbers_are_not(shown: str, agreed: bool) -> None:
    """Line by line, what stands behind what: three dots in a line do not reach over its end."""
    assert agrees(shown, PRINTED) == agreed
