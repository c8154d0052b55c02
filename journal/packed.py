"""Packed columns of events that anybody may have written.

Not here: which fields are such columns (`fields`), and what pages do (`moves`). Rule: total; bytes that are no column hold nothing.
"""

from radixledger.journal.moves import ids_of, pages_of


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
