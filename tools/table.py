"""Rows as a table, numbers to the right; where the terminal is too narrow for it, in a shape that fits.

Rule: nothing is cut off at any width. What is the same in every row is told once; where the rest is still too wide, it
becomes records, the fields of each one behind the other, and those of a single row one under the other.
"""

import re
from collections.abc import Sequence
from textwrap import wrap

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from radixledger.tools.console import PIPE_WIDTH, cell, print_facts, print_lines, stdout
from radixledger.tools.printable import in_a_line, printable

NO_ROWS = "no rows"

NUMBER = re.compile(r"[~+-]?\d[\d,]*(\.\d+)?(e[+-]?\d+)?%?|-")
"""What a column of numbers has in its cells, or nothing, or a dash."""

_GLUE = "\0"
"""Between a name and its value, where no line ends; no text has one (`in_a_line`)."""

Rows = Sequence[Sequence[str]]


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    title: str = "",
    otherwise: Sequence[str] = (),
) -> None:
    """Rows on stdout. `otherwise`: lines that say the same and are printed where the table is too wide. No rows are told, too."""
    console, texts = stdout(), [[cell(value) for value in row] for row in rows]
    if title:
        print_lines([*[""] * title.startswith("\n"), title.lstrip("\n")], style="bold")
    if not rows:
        console.print(NO_ROWS)
    elif _printed(console, columns, texts):
        return
    elif otherwise:
        print_lines(otherwise)
    elif len(rows) == 1:
        told = zip(columns, texts[0], strict=True)
        print_facts({name: text for name, text in told if text.strip()})
    else:
        _print_without_sameness(console, columns, texts)


def _printed(console: Console, columns: Sequence[str], rows: Rows) -> bool:
    """Whether the rows fit as a table, which is printed then."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name, texts in zip(columns, zip(*rows, strict=True), strict=True):
        table.add_column(printable(name), justify="right" if _are_numbers(texts) else "left", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    wanted = Measurement.get(console, console.options.update(max_width=PIPE_WIDTH), table).maximum
    if wanted <= console.width:
        console.print(table)
    return wanted <= console.width


def _are_numbers(texts: Sequence[str]) -> bool:
    told = [text.strip() for text in texts if text.strip()]
    return bool(told) and all(map(NUMBER.fullmatch, told))


def _print_without_sameness(console: Console, columns: Sequence[str], rows: Rows) -> None:
    """What is the same everywhere once, then the rest as a table, or as records."""
    same = [at for at in range(len(columns)) if len({row[at] for row in rows}) == 1]
    told = [f"{columns[at]} {text}" for at in same if (text := rows[0][at].strip())]
    if told:
        print_lines([f"in every row: {', '.join(told)}"])
    others = [at for at in range(len(columns)) if at not in same]
    names, rest = [columns[at] for at in others], [[row[at] for at in others] for row in rows]
    if not (names and _printed(console, names, rest)):
        for row in rest:
            _print_record(console, names, row)


def _print_record(console: Console, columns: Sequence[str], row: Sequence[str]) -> None:
    """The fields that say something, behind each other; a record begins at the edge, and goes on further in."""
    fields = [
        f"{name.replace(' ', _GLUE)}{_GLUE}{in_a_line(text.strip())}"
        for name, text in zip(columns, row, strict=True)
        if text.strip()
    ]
    lines = wrap(
        "  ".join(fields),
        console.width,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    for line in lines:
        console.print(line.replace(_GLUE, " "), soft_wrap=True)
