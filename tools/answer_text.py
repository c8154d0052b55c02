"""What SQL answered, printed: as a table, as CSV, as JSON.

Rule: CSV and JSON are whole, in values that any reader can take; a table is for people, and ends where nobody reads on.
"""

import csv
import io
from collections.abc import Sequence
from typing import Any

import click

from radixledger.analytics.queries import Answer
from radixledger.tools.console import count_of, count_text, print_json, remark
from radixledger.tools.table import print_table

TABLE_ROWS = 2_000
"""So many rows are a table, which nobody reads further and which takes a millisecond each to set."""


def print_answer(answer: Answer, form: str) -> None:
    """All rows in one of the three forms."""
    if form == "json":
        print_json(objects(answer))
    elif form == "csv":
        print_csv(answer.columns, answer.rows)
    else:
        print_rows(answer)


def print_rows(answer: Answer, title: str = "") -> None:
    """Numbers stand as they are typed, since most of them name something."""
    shown = answer.rows[:TABLE_ROWS]
    rows = [["" if value is None else _text(value) for value in row] for row in shown]
    print_table(answer.columns, rows, title=title)
    if len(answer.rows) > len(shown):
        remark(
            f"the first {count_text(len(shown))} of {count_of(len(answer.rows), 'row')}; --format csv or --json gives all"
        )


def _text(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case bytes():
            return value.hex()
        case dict():
            return " ".join(f"{key}={each}" for key, each in value.items())
        case _:
            return str(value)


def objects(answer: Answer) -> list[dict[str, Any]]:
    """Rows as JSON objects; bytes as hexadecimal, numbers that JSON readers would round as text."""
    return [dict(zip(answer.columns, map(_plain, row), strict=True)) for row in answer.rows]


def _plain(value: Any) -> Any:
    match value:
        case bytes():
            return value.hex()
        case bool() | None | str() | float() | list() | dict():
            return value
        case int():
            return value if abs(value) < 1 << 63 else str(value)
        case _:
            return str(value)


def print_csv(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A line of names, then a line for each row; nothing for NULL."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(["" if value is None else _text(value) for value in row] for row in rows)
    click.echo(text.getvalue(), nl=False)
