"""A table of a page. Wide pages show it as one; on a narrow one each row becomes a paragraph, every cell behind its column's name.

Rule: cells are HTML that was made safe before; a cell that has nothing in it takes no room where rows are paragraphs.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

NUMBER, TEXT = "n", "text"
"""Kinds of columns, as the style sheet calls them: of numbers, and of what may be broken into lines. Others stay on a line."""


class Column(NamedTuple):
    """Its name, and its kind where it has one."""

    name: str
    kind: str = ""


Row = Sequence[str]


def table(
    columns: Sequence[Column], rows: Sequence[Row], *, wrong: Collection[int] = (), kind: str = ""
) -> str:
    """The rows under their heads; wrong: the places of those to be marked; kind: the class of the table."""
    heads = "".join(f"<th{_class(column.kind)}>{column.name}" for column in columns)
    body = "".join(
        f"<tr{_class('wrong' if place in wrong else '')}>{_cells(columns, row)}</tr>"
        for place, row in enumerate(rows)
    )
    return f'<div class="wide"><table{_class(kind)}><tr>{heads}</tr>{body}</table></div>'


def _cells(columns: Sequence[Column], row: Row) -> str:
    return "".join(
        f'<td{_class(column.kind)} data-name="{column.name}">{cell}'
        for column, cell in zip(columns, row, strict=True)
    )


def _class(name: str) -> str:
    return f" class={name}" if name else ""
