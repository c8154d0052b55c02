"""What the docs show, taken out of their fences so that it can be run.

    ```console          run, line by line, by a shell; output below a command is compared
    $ radixledger journal stats run
    ...                 on a line of its own stands for any lines, in a line for any part of that line
    $ radixledger replay verify broken        # exit 1
    ```

    ```python           a program of its own, run alone; `>>>` sessions are compared, other code must not raise
    ```python continued one that goes on from those before it, among their names
    ```json file=a.json written to that file, for the examples after it
    ```sh               shown, not run (minutes long, or it needs what a test has not); its
                        `radixledger` commands and options must exist nevertheless

Rules: the examples of one document run in order, in one empty folder which is also their home. A layout is compared: which
line a thing stands on and what it stands behind; how wide a column or a rule under it is depends on its numbers, and is not.
"""

import doctest
import re
from pathlib import Path
from typing import NamedTuple

FENCE = re.compile(r"^( *)```(\w+)?(?: +file=(\S+))?( +continued)?.*\n((?:.*\n)*?)\1```$", re.MULTILINE)
EXIT = re.compile(r"#\s*exit (\d+)\s*$")
RUN = re.compile(r"([ ─])\1+")


class Example(NamedTuple):
    """One fenced block: where it is, what language it says it is, the file it becomes, its text, whether it goes on."""

    place: str
    language: str
    file: str
    text: str
    continued: bool


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
            text=re.sub(f"^{fence[1]}", "", fence[5], flags=re.MULTILINE),
            continued=bool(fence[4]),
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
    """Whether the output shown is what was printed, line by line; where nothing is shown, anything is.

    `...` stands for any lines or for any part of a line, and a run of blanks, or of a rule, for one of any length.
    """
    if not shown.strip():
        return True
    pattern = "".join(map(_pattern_of, shown.strip("\n").splitlines()))
    lines = (f"{_narrowed(line)}\n" for line in printed.strip("\n").splitlines())
    return re.fullmatch(pattern, "".join(lines)) is not None


def _narrowed(line: str) -> str:
    return RUN.sub(r"\1", line).strip()


def _pattern_of(line: str) -> str:
    """What a line of the output shown stands for."""
    line = _narrowed(line)
    return r"(?:.*\n)*?" if line == "..." else ".*?".join(map(re.escape, line.split("..."))) + r"\n"


class _Layout(doctest.OutputChecker):
    """A session of Python is compared like the output of a command."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return agrees(want, got) if want else not got


def run_python(example: Example, names: dict[str, object]) -> None:
    """Run a python example among the `names` of those before it; raises where it does not do as shown."""
    if ">>>" not in example.text:
        exec(compile(example.text, example.place, "exec"), names)
        return
    session = doctest.DocTestParser().get_doctest(example.text, names, example.place, example.place, 0)
    report: list[str] = []
    runner = doctest.DocTestRunner(_Layout(), verbose=False)
    runner.run(session, out=report.append, clear_globs=False)
    names.update(session.globs)
    assert not report, "".join(report)
