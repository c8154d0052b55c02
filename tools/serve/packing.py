"""Packs one step on the host: spans of tokens and two page tables become arrays of fixed shape.

Everything that depends on who is in the batch is decided here, in numpy; the program on the device sees arrays and
the counts that bound its loops.

Rule: a step that would read or write wrongly is refused here, before the device sees any of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from radixledger.tools.serve.attention import GROUP_TILES, Queries
from radixledger.tools.serve.batch import (
    Batch,
    Geometry,
    Host,
    Live,
    PageNotResident,
    Paging,
    Span,
    StepRefused,
    StepTooLarge,
    filled,
)
from radixledger.tools.serve.layers import TILE_ROWS

__all__ = ["pack"]


def pack(spans: Sequence[Span], full_table: Host, swa_table: Host, sizes: Geometry, bucket: int) -> Batch:
    """Pack `spans` (one at least) into arrays for `bucket` tokens.

    Raises
    ------
    StepTooLarge
        More spans, tokens or positions than `sizes` and `bucket` hold.
    PageNotResident
        A page that attention will read, or K and V will be written to, is not in its table.
    StepRefused
        An empty span, two spans of one row, a row or token id out of range.
    """
    plan = _plan(spans, sizes)
    limits = (
        ("spans", len(spans), sizes.max_spans),
        ("tokens", len(plan.ids), bucket),
        ("positions", int(plan.ends.max()), sizes.context_tokens),
    )
    for what, asked, limit in limits:
        if asked > limit:
            raise StepTooLarge(what, asked=asked, limit=limit)
    tiles = _tiles(plan)
    return Batch(
        ids=_padded(plan.ids, bucket, 0),
        positions=_padded(plan.positions, bucket, 0),
        last_tokens=_padded(np.cumsum(plan.lengths) - 1, sizes.span_rows, 0),
        queries=_queries(tiles, sizes.groups(bucket), bucket),
        full=_paging(_Side("full", full_table, sizes.full_pages, None), plan, tiles, sizes, bucket),
        swa=_paging(
            _Side("swa", swa_table, sizes.swa_pages, sizes.window_tokens), plan, tiles, sizes, bucket
        ),
        live=Live(filled(_over(len(plan.ids), TILE_ROWS)), filled(_over(len(spans), TILE_ROWS))),
    )


class _Plan(NamedTuple):
    """The spans in columns: one entry a span, then (`ids`, `span_of`, `positions`) one a token."""

    rows: Host
    starts: Host
    lengths: Host
    ends: Host
    ids: Host
    span_of: Host
    positions: Host


def _plan(spans: Sequence[Span], sizes: Geometry) -> _Plan:
    rows = np.array([span.row for span in spans], np.int32)
    starts = np.array([span.start for span in spans], np.int32)
    lengths = np.array([len(span.tokens) for span in spans], np.int32)
    ids = np.concatenate([np.asarray(span.tokens, np.int32) for span in spans])
    if lengths.min() < 1 or starts.min() < 0:
        raise StepRefused("a span holds one token at least, and starts at position 0 or later")
    if len(set(rows.tolist())) < len(rows):
        raise StepRefused(f"two spans of one row in a step: rows {sorted(rows.tolist())}")
    if ids.min() < 0 or ids.max() >= sizes.vocab_size:
        raise StepRefused(
            f"token ids {ids.min()} to {ids.max()}, the vocabulary is 0 to {sizes.vocab_size - 1}"
        )
    span_of = np.repeat(np.arange(len(spans), dtype=np.int32), lengths)
    positions = starts[span_of] + np.arange(len(ids), dtype=np.int32) - _before(lengths)[span_of]
    return _Plan(rows, starts, lengths, starts + lengths, ids, span_of, positions.astype(np.int32))


class _Tiles(NamedTuple):
    """The query tiles of all spans, in order: 16 rows each, the last of a span partly padding."""

    spans: Host
    """[tiles]"""
    tokens: Host
    """[tiles, 16]"""
    positions: Host
    """[tiles, 16]; -1 where a row is padding"""


def _tiles(plan: _Plan) -> _Tiles:
    counts = -(-plan.lengths // TILE_ROWS)
    spans = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    number = np.arange(len(spans)) - _before(counts)[spans]
    offsets = number[:, None] * TILE_ROWS + np.arange(TILE_ROWS)
    live = offsets < plan.lengths[spans][:, None]
    tokens = np.where(live, _before(plan.lengths)[spans][:, None] + offsets, 0)
    return _Tiles(spans, tokens, np.where(live, plan.starts[spans][:, None] + offsets, -1))


def _queries(tiles: _Tiles, groups: int, bucket: int) -> Queries:
    held, live = groups * GROUP_TILES, tiles.positions >= 0
    row_of = filled(0, bucket)
    row_of[tiles.tokens[live]] = np.flatnonzero(live)
    return Queries(
        row_of=row_of,
        tokens=_padded(tiles.tokens, held, 0),
        positions=_padded(tiles.positions, held, -1),
        spans=_padded(tiles.spans, held, 0),
        groups=filled(_over(len(tiles.spans), GROUP_TILES)),
    )


class _Side(NamedTuple):
    """One pool as the caller hands it over."""

    name: str
    table: Host
    pages: int
    window_tokens: int | None

    def seen_from(self, positions: Host) -> Host:
        """Return the first position that a query at each of `positions` sees."""
        return (
            positions * 0 if self.window_tokens is None else np.maximum(positions - self.window_tokens + 1, 0)
        )


def _paging(side: _Side, plan: _Plan, tiles: _Tiles, sizes: Geometry, bucket: int) -> Paging:
    held = _resident(side, plan, sizes)
    page = held[plan.span_of, plan.positions // sizes.page_size]
    slots = page * sizes.page_size + plan.positions % sizes.page_size
    low = side.seen_from(tiles.positions[:, 0]) // sizes.strip_tokens
    high = tiles.positions.max(axis=1) // sizes.strip_tokens + 1
    return Paging(
        slots=_padded(slots, bucket, sizes.past(side.pages)),
        pages=held,
        strips=_group_strips(low, high, sizes.groups(bucket)),
    )


def _resident(side: _Side, plan: _Plan, sizes: Geometry) -> Host:
    """Return the spans' rows of one page table, padded, if each holds the pages of all that its span sees."""
    held = filled(0, sizes.span_rows, sizes.table_pages)
    if side.pages == 0:
        return held
    if plan.rows.min() < 0 or plan.rows.max() >= len(side.table):
        raise StepRefused(
            f"{side.name.upper()} table has {len(side.table)} rows, spans name {plan.rows.tolist()}"
        )
    found = held[: len(plan.rows)]
    width = min(side.table.shape[1], sizes.table_pages)
    found[:, :width] = side.table[plan.rows, :width]
    first, last = side.seen_from(plan.starts) // sizes.page_size, (plan.ends - 1) // sizes.page_size
    numbers = np.arange(sizes.table_pages)
    needed = (numbers >= first[:, None]) & (numbers <= last[:, None])
    missing = np.argwhere(needed & ((found < 1) | (found > side.pages)))
    if len(missing):
        span, index = missing[0].tolist()
        page = int(found[span, index])
        raise PageNotResident(side.name, row=int(plan.rows[span]), index=index, page=page, pages=side.pages)
    return held


def _group_strips(low: Host, high: Host, groups: int) -> Host:
    """Return [first strip, end) of each group: what any of its tiles sees; the rest is masked, at no effect (E2)."""
    held = groups * GROUP_TILES
    lows = _padded(low, held, np.iinfo(np.int32).max).reshape(groups, GROUP_TILES).min(axis=1)
    highs = _padded(high, held, 0).reshape(groups, GROUP_TILES).max(axis=1)
    return np.stack([lows, highs], axis=1)


def _before(counts: Host) -> Host:
    """Return how many things come before each entry's own."""
    return np.asarray(np.cumsum(counts) - counts, np.int32)


def _over(count: int, size: int) -> int:
    return -(-count // size)


def _padded(values: Host, length: int, fill: int) -> Host:
    held = filled(fill, length, *values.shape[1:])
    held[: len(values)] = values
    return held
