"""How every command talks: tables, JSON, progress, figures for people, and failures without a traceback.

Rule 1: results go to stdout, everything else (progress, remarks, failures) to stderr, so that a pipe
carries results only. Rule 2: text is data, never markup: a page list like `[3]` prints as it stands.

Exit codes, the same for every command: 0 clean, 1 findings, 2 usage, 3 unreadable. An interrupt
gives 130, a closed pipe 141, and a bug of ours 70 with its traceback.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from textwrap import wrap
from typing import NoReturn

import click
import msgspec
from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from radixledger.tools.printable import in_a_line, printable, say_lines

CLEAN, FINDINGS, USAGE, UNREADABLE = 0, 1, 2, 3
BUG, INTERRUPTED, PIPE_CLOSED = 70, 130, 141
SIGNALLED = 128
"""And the signal's number, where one said to go."""

PROGRESS_AFTER_S = 1.0
PROGRESS_EVERY_S = 0.1
WIDTH_UNKNOWN = 80
PIPE_WIDTH = 10_000  # a pipe has no edge: rows stay whole, for grep and cut

json_flag = click.option("--json", "as_json", is_flag=True, help="Print one JSON document, for programs.")
"""The `--json` flag of every command that reports; the command receives `as_json: bool`."""


class CommandFailure(click.ClickException):
    """The command cannot go on: one clear message on stderr, and an exit code of the table above."""

    def __init__(self, message: str, exit_code: int = UNREADABLE) -> None:
        super().__init__(printable(message))
        self.exit_code = exit_code  # type: ignore[misc]  # declared per class, read from the instance


class GivenPath(click.Path):
    """A path, and an empty one is none: `--journal "$RUN"` without a RUN does not mean the current folder.

    Nor is one that is no text: a journal has its name in it, and so have tables.
    """

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str | bytes | os.PathLike[str]:
        """The path as click makes it; an empty one is wrong usage, and one that UTF-8 does not hold."""
        name = os.fspath(value)
        if not name:
            self.fail("it is empty, and names no place; is a variable of the shell not set?", param, ctx)
        if not _is_text(name):
            self.fail(f"{os.fsencode(name)!r} is no text in UTF-8; give it another name", param, ctx)
        return super().convert(value, param, ctx)


def _is_text(name: str | bytes) -> bool:
    try:
        os.fsencode(name).decode()
    except UnicodeDecodeError:
        return False
    return True


def exit_with(code: int) -> NoReturn:
    """Leave the command with `code`, its output being complete: `exit_with(FINDINGS)`."""
    raise click.exceptions.Exit(code)


def stdout() -> Console:
    """The console for results. Made anew at each call, so that it follows a redirected `sys.stdout`."""
    console = _console(stderr=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPE_WIDTH
    return console


def stderr() -> Console:
    """The console for remarks and progress."""
    return _console(stderr=True)


def examples(*lines: str) -> str:
    """The epilog of a command: its examples, one a line, kept as they stand by click."""
    return "\n".join(["\b", "Examples:", *(f"  $ {line}" for line in lines)])


def print_json(value: object) -> None:
    """One JSON document on stdout, indented; whatever msgspec can encode."""
    say_lines(msgspec.json.format(msgspec.json.encode(value), indent=2))


def remark(text: str) -> None:
    """A line for the person at the terminal, on stderr."""
    click.echo(printable(text), err=True)


def print_lines(lines: Sequence[str], *, style: str = "") -> None:
    """Lines on stdout; one that is wider than the terminal goes on below its own beginning."""
    console = stdout()
    for line in map(in_a_line, lines):
        indent = " " * (len(line) - len(line.lstrip(" "))) + "  " * line.startswith(" ")
        for part in _wrapped(line, console.width, indent):
            console.print(part, style=style, soft_wrap=True)


def print_title(title: str) -> None:
    """A line between sections."""
    console = stdout()
    console.print(f"\n{printable(title)}", style="bold", soft_wrap=True)


def cell(value: object) -> str:
    """Integers with separators, floats with four digits that count, nothing for None."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case int():
            return count_text(value)
        case float():
            return f"{value:.4g}"
        case _:
            return printable(str(value))


def print_facts(facts: Mapping[str, object], *, title: str = "") -> None:
    """Names and values, one pair a line: the summary at the end of a run.

    A value that is wider than the terminal goes on below its own beginning; a command, there to be copied, does not.
    """
    console = stdout()
    if title:
        console.print(printable(title), style="bold")
    width = max(map(len, facts), default=0)
    indent = " " * (width + 2 if width + 2 <= console.width // 2 else 2)
    for name, value in facts.items():
        text = in_a_line(cell(value).strip())
        line = f"{name:<{width}}  {text}".rstrip()
        for part in [line] if text.startswith("radixledger ") else _wrapped(line, console.width, indent):
            console.print(part, soft_wrap=True)


def _wrapped(line: str, width: int, indent: str) -> list[str]:
    """A line in parts that fit, but for words that are longer; those behind the first one are indented."""
    parts = wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return parts or [""]


@contextmanager
def progress(label: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """A bar on stderr for work longer than a second; yields `advance(count)`, which is cheap to call.

    Silent where stderr is no terminal that can redraw a line. `total=None` counts without an end. The bar disappears
    when the work is done: what remains on the screen is the result.
    """
    console = stderr()
    if not console.is_interactive:
        yield _advance_nothing
        return
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
    task = bar.add_task(label, total=total)
    done, drawn_at = 0, time.monotonic() + PROGRESS_AFTER_S - PROGRESS_EVERY_S

    def advance(count: int) -> None:
        nonlocal done, drawn_at
        done += count
        now = time.monotonic()
        if now - drawn_at >= PROGRESS_EVERY_S:
            drawn_at = now
            bar.start()
            bar.update(task, completed=done)

    try:
        yield advance
    finally:
        if bar.live.is_started:
            bar.stop()


@contextmanager
def waiting(label: str) -> Iterator[None]:
    """A moving line on stderr, cut to one where it is long, for work that cannot tell how far it is; silent where nobody looks."""
    console = stderr()
    if not console.is_interactive:
        yield
        return
    line = Table.grid(padding=(0, 1))
    line.add_column()
    line.add_column(no_wrap=True, overflow="ellipsis")
    line.add_row(Spinner("line"), Text(label))
    with Live(line, console=console, transient=True, redirect_stdout=False, redirect_stderr=False):
        yield


def count_text(number: int) -> str:
    """12345 as `12,345`."""
    return f"{number:,}"


def count_of(number: int, noun: str) -> str:
    """`1 segment`, `12,345 segments`: a count with its noun, which takes an s."""
    return f"{count_text(number)} {noun}{'' if number == 1 else 's'}"


def bytes_text(number: float) -> str:
    """A byte count for people: `17 B`, `1.5 KiB`, `3.2 GiB`."""
    if abs(number) < 1024:
        return f"{number:.0f} B"
    for unit in ("KiB", "MiB", "GiB"):
        number /= 1024
        if abs(number) < 1024:
            return f"{number:.1f} {unit}"
    return f"{number / 1024:.1f} TiB"


def seconds_text(seconds: float) -> str:
    """A duration for people: `350 µs`, `12 ms`, `4.2 s`, `3 min 5 s`."""
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


class _Console(Console):
    """A console whose closed pipe is told like that of everybody else; rich leaves with 1, which means findings."""

    def on_broken_pipe(self) -> None:
        """Called where the error is at hand."""
        raise  # noqa: PLE0704


def _console(*, stderr: bool) -> Console:
    console = _Console(stderr=stderr, markup=False, highlight=False, emoji=False, soft_wrap=False)
    if console.width < 1:  # COLUMNS=0 of a program that had no terminal either
        console.width = WIDTH_UNKNOWN
    return console


def _advance_nothing(count: int) -> None:
    """Where nobody looks, there is nothing to draw."""
