"""The packed columns of events: which fields hold pages, and columns that anybody may have written.

Not here: what pages do (`moves`). Rule: total; bytes that are no column hold nothing.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, get_args

from msgspec.structs import fields

from radixledger.journal.events import AnyEvent, Refused, Violated
from radixledger.journal.moves import ids_of, pages_of
from radixledger.journal.units import Pages

PAGE_COLUMNS: dict[type, tuple[Callable[[Any], bytes], ...]] = {
    kind: columns
    for kind in get_args(AnyEvent)
    if (columns := tuple(attrgetter(field.name) for field in fields(kind) if field.type is Pages))
    and kind not in (Refused, Violated)
}
"""By type of event: how its columns of pages are read. What was refused or not done did not happen to a page."""

PAGE_FIELDS = frozenset(
    field.name for kind in get_args(AnyEvent) for field in fields(kind) if field.type is Pages
)
"""The names of all such columns."""


def whole_pages(packed: bytes, most: int | None = None) -> list[int]:
    """The page ids, or other int32, of a column that anybody may have written; none where it is no such column.

    most: the first ones only.
    """
    pages: list[int] = [] if len(packed) % 4 else pages_of(packed)[:most].tolist()
    return pages


def whole_ids(packed: bytes) -> list[int]:
    """The request or node ids of a column that anybody may have written; none where it is no such column."""
    ids: list[int] = [] if len(packed) % 8 else ids_of(packed).tolist()
    return ids
