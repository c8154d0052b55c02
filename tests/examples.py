"""What the docs show, taken out of their fences so that it can be run.

    ```console          run, line by line, by a shell; output below a command is compared
    $ radixledger journal stats run
    ...                 stands for any output, or any part of a line
    $ radixledger replay verify broken        # exit 1
    ```

    ```python           run; `>>>` sessions are compared, other code must not raise
    ```json file=a.json written to that file, for the examples after it
    ```sh               shown, not run (minutes long, or it needs what a test has not); its
                        `radixledger` commands and options must exist nevertheless

Rule: the examples of one document run in order, in one empty folder which is also their home.
"""

import doctest
import re
from pathlib import Path
from typing import NamedTuple

FENCE = re.compile(r"^( *)```(\w+)?(?: +file=(\S+))?.*\n((?:.*\n)*?)\1```$", re.MULTILINE)
EXIT = re.compile(r"#\s*exit (\d+)\s*$")
LENIENT = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Example(NamedTuple):
    """One fenced block: where it is, what language it says it is, the file it becomes, its text."""

    place: str
    language: str
    file: str
    text: str


class Step(NamedTuple):
    """One `$` command of a console example, the output shown for it, and the exit code it must have."""

    command: str
    output: str
    exit_code: int


def examples_of(document: Path) -> list[Example]:
    """The fenced blocks of a document, in order."""
    text = document.read_text("utf-8")
    return [
        Example(
            place=f"{document.name}:{text.count(chr(10), 0, fence.start()) + 1}",
            language=fence[2] or "",
            file=fence[3] or "",
            text=re.sub(f"^{fence[1]}", "", fence[4], flags=re.MULTILINE),
        )
        for fence in FENCE.finditer(text)
    ]


def steps_of(transcript: str) -> list[Step]:
    """The commands of a console example; a command goes on while its lines end in a backslash."""
    steps: list[Step] = []
    commands = re.split(r"^\$ ", transcript, flags=re.MULTILINE)
    assert not commands[0].strip(), f"a console example starts with `$ `, not with {commands[0]!r}"
    for part in commands[1:]:
        shown = re.fullmatch(r"((?:.*\\\n)*.*\n?)((?:.*\n?)*)", part)
        assert shown is not None
        command, output = shown[1].rstrip("\n"), shown[2]
        code = EXIT.search(command)
        steps.append(Step(command, output, int(code[1]) if code else 0))
    return steps


def agrees(shown: str, printed: str) -> bool:
    """Whether the output shown is what was printed; `...` stands for anything, white space for any other."""
    return not shown.strip() or doctest.OutputChecker().check_output(shown, printed, LENIENT)


def run_python(example: Example, names: dict[str, object]) -> None:
    """Run a python example among the `names` of those before it; raises where it does not do as shown."""
    if ">>>" not in example.text:
        exec(compile(example.text, example.place, "exec"), names)
        return
    session = doctest.DocTestParser().get_doctest(example.text, names, example.place, example.place, 0)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=LENIENT, verbose=False)
    runner.run(session, out=report.append, clear_globs=False)
    names.update(session.globs)
    assert not report, "".join(report)
