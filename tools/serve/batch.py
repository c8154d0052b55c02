"""One step as data: the spans that a caller asks for, the arrays that the device is given, and what is refused.

Rule: the shapes of a `Batch` depend on the runner's sizes and the bucket alone, never on who is in the step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from radixledger.tools.serve.attention import GROUP_TILES, Queries, strip_tokens
from radixledger.tools.serve.layers import TILE_ROWS, Ints

__all__ = [
    "Batch",
    "Geometry",
    "Live",
    "PageNotResident",
    "Paging",
    "Span",
    "StepRefused",
    "StepTooLarge",
    "filled",
]

Host = NDArray[np.int32]


class Span(NamedTuple):
    """A run of one request's tokens, computed in this step: token i stands at position `start + i`.

    `row` is the request's row of both page tables; `tokens` is int32 [1 or more].
    """

    row: int
    start: int
    tokens: Host


class StepRefused(ValueError):
    """A step that cannot be run as asked; nothing was computed or written."""


class StepTooLarge(StepRefused):
    """More spans, tokens or positions than this runner was built for: `asked` of `what`, `limit` at most."""

    def __init__(self, what: str, *, asked: int, limit: int) -> None:
        super().__init__(
            f"{asked} {what} in a step, at most {limit} fit: split the step, or build a larger runner"
        )
        self.what, self.asked, self.limit = what, asked, limit


class PageNotResident(StepRefused):
    """A span reads or writes page number `index` of its row, and the page table has no usable page there.

    Running it would give wrong tokens (E10); the cache has freed a page too early or handed over a stale table.
    """

    def __init__(self, pool: str, *, row: int, index: int, page: int, pages: int) -> None:
        super().__init__(
            f"{pool.upper()} table, row {row}, page {index} of the sequence: entry {page}, usable are 1 to {pages}"
        )
        self.pool, self.row, self.index, self.page, self.pages = pool, row, index, page, pages


@dataclass(frozen=True, slots=True)
class Geometry:
    """The fixed sizes of one runner; a pool of 0 pages belongs to a model without such layers.

    Raises
    ------
    ValueError
        `page_size` neither divides 64 nor reaches it, so that a page would lie in two strips (E2); or a size is
        below 1, or both pools have no page.
    """

    page_size: int
    full_pages: int
    swa_pages: int
    context_pages: int
    max_spans: int
    window_tokens: int | None
    vocab_size: int

    def __post_init__(self) -> None:
        strip_tokens(self.page_size)
        least = {
            "context_pages": self.context_pages,
            "max_spans": self.max_spans,
            "pages": max(self.full_pages, self.swa_pages),
        }
        for name, value in least.items():
            if value < 1:
                raise ValueError(f"{name} {value}: at least 1 is needed")

    @property
    def strip_tokens(self) -> int:
        """Length of a strip: the run of K and V, at absolute positions, that attention takes at once (E2)."""
        return strip_tokens(self.page_size)

    @property
    def context_tokens(self) -> int:
        """Positions that a sequence can have."""
        return self.context_pages * self.page_size

    @property
    def table_pages(self) -> int:
        """Columns of the page tables on the device: whole strips."""
        per_strip = self.strip_tokens // self.page_size
        return -(-self.context_pages // per_strip) * per_strip

    @property
    def span_rows(self) -> int:
        """Rows of arrays that have one entry a span: whole tiles."""
        return -(-self.max_spans // TILE_ROWS) * TILE_ROWS

    def past(self, pages: int) -> int:
        """Return the slot just past a pool of `pages`: where padding is written, which is nowhere."""
        return (pages + 1) * self.page_size

    def groups(self, bucket: int) -> int:
        """Return the groups of query tiles that `bucket` tokens can need: each span may end in a part tile."""
        return -(-(bucket // TILE_ROWS + self.max_spans) // GROUP_TILES)


class Paging(NamedTuple):
    """One pool's share of a step; int32."""

    slots: Ints
    """[T]: where K and V of a token go; padding goes just past the pool, which is nowhere"""
    pages: Ints
    """[S, P]: the page tables of the spans"""
    strips: Ints
    """[N / 4, 2]: first strip and end of what a group of query tiles sees"""


class Live(NamedTuple):
    """How many tiles hold anything: the bounds of the loops; int32 [] each."""

    token_tiles: Ints
    span_tiles: Ints


class Batch(NamedTuple):
    """One step of at most T tokens, S spans, P pages a row and N query tiles in N / 4 groups; int32."""

    ids: Ints
    """[T]"""
    positions: Ints
    """[T]"""
    last_tokens: Ints
    """[S]: the token whose logits a span wants"""
    queries: Queries
    full: Paging
    swa: Paging
    live: Live

    @classmethod
    def idle(cls, sizes: Geometry, bucket: int) -> Batch:
        """Return a step that holds nothing: it runs the whole program, and changes no page."""
        groups = sizes.groups(bucket)
        tiles = groups * GROUP_TILES

        def paging(pages: int) -> Paging:
            slots, table = filled(sizes.past(pages), bucket), filled(0, sizes.span_rows, sizes.table_pages)
            return Paging(slots, table, filled(0, groups, 2))

        return cls(
            ids=filled(0, bucket),
            positions=filled(0, bucket),
            last_tokens=filled(0, sizes.span_rows),
            queries=Queries(
                row_of=filled(0, bucket),
                tokens=filled(0, tiles, TILE_ROWS),
                positions=filled(-1, tiles, TILE_ROWS),
                spans=filled(0, tiles),
                groups=filled(0),
            ),
            full=paging(sizes.full_pages),
            swa=paging(sizes.swa_pages),
            live=Live(filled(0), filled(0)),
        )


def filled(value: int, *shape: int) -> Host:
    """Return an int32 array of one value; without a shape, a scalar."""
    return np.full(shape, value, np.int32)
