"""Attention over pages, in pieces of fixed size, so that a query's bits depend on its own sequence alone (E2).

Queries come in tiles of 16 rows of one sequence, tiles in groups of 4; K and V come in strips of B tokens that lie at
absolute positions, whatever was cached, chunked or batched. A strip is folded into a running maximum, sum and
weighted V in float32. Where a query sees nothing of a strip, its p is exactly 0 and its maximum stays, so the strip
changes nothing: extra strips, padding and neighbours are exact no-ops.

Rule: every shape below is fixed by the model and the runner; only loop bounds are data (E4).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from radixledger.cache.pool import Pool, read
from radixledger.tools.serve.layers import TILE_ROWS, Ints
from radixledger.tools.serve.spec import LayerSpec

__all__ = ["GROUP_TILES", "Held", "Queries", "attend", "strip_tokens"]

GROUP_TILES = 4
"""Query tiles that are computed together: a fixed batch, so that its loops are split alike in every step."""
STRIP_TOKENS_MIN = 64

UNSEEN = -1e30
"""Score of a masked pair: finite, so that a row that has seen nothing yet subtracts it from itself and gets 0."""


def strip_tokens(page_size: int) -> int:
    """Return B, the length of a strip: whole pages, and enough tokens for a matrix product to be worth it.

    Raises
    ------
    ValueError
        `page_size` neither divides 64 nor reaches it, so that a page would lie in two strips.
    """
    tokens = max(STRIP_TOKENS_MIN, page_size)
    if page_size < 1 or tokens % page_size:
        raise ValueError(f"page_size {page_size}: it must divide {STRIP_TOKENS_MIN} or be at least that")
    return tokens


class Queries(NamedTuple):
    """How the tokens of a step lie in query tiles: N tiles of 16 rows, each of one span; int32.

    Made on the host (numpy), used on the device.
    """

    row_of: Ints
    """[T]: where token i lies among the N * 16 rows"""
    tokens: Ints
    """[N, 16]: which token a row is; 0 where it is padding"""
    positions: Ints
    """[N, 16]: the token's position; -1 where the row is padding"""
    spans: Ints
    """[N]: which row of the page tables a tile reads"""
    groups: Ints
    """[]: how many groups of tiles hold anything"""


class _Sum(NamedTuple):
    """What has been folded so far, for each tile, K/V head and query row; float32."""

    peak: jax.Array
    """[4, kv_heads, rows]"""
    weight: jax.Array
    """[4, kv_heads, rows]"""
    value: jax.Array
    """[4, kv_heads, rows, dim]"""


class Held(NamedTuple):
    """Where K and V of one layer are: its pool with this step's tokens written, and the page tables of the spans."""

    pool: Pool
    number: jax.Array
    """int32 []: the layer's place in the pool"""
    table: Ints
    """int32 [S, P]: whole strips wide"""
    page_size: int


def attend(layer: LayerSpec, q: jax.Array, held: Held, queries: Queries, strips: Ints) -> jax.Array:
    """Return what each token attends to, [T, q_heads, dim] in the dtype of q.

    q [T, q_heads, dim]; strips int32 [N / 4, 2], first strip and end of what each group of tiles sees.
    """
    made: jax.Array = jnp.zeros((queries.spans.shape[0], TILE_ROWS, layer.q_heads, layer.head_dim), q.dtype)

    def step(group: jax.Array, made: jax.Array) -> jax.Array:
        tokens = _four(queries.tokens, group)
        positions = _four(queries.positions, group)
        own = held._replace(table=held.table[_four(queries.spans, group)])
        low, high = strips[group]
        out = _attend_group(layer, q[tokens], positions, own, (low, high))
        return lax.dynamic_update_slice_in_dim(made, out.astype(q.dtype), group * GROUP_TILES, 0)

    made = lax.fori_loop(jnp.int32(0), queries.groups, step, made)
    return made.reshape(-1, layer.q_heads, layer.head_dim)[queries.row_of]


def _four(rows: Ints, group: jax.Array) -> jax.Array:
    return lax.dynamic_slice_in_dim(rows, group * GROUP_TILES, GROUP_TILES, 0)


def _attend_group(
    layer: LayerSpec, q: jax.Array, positions: jax.Array, held: Held, strips: tuple[jax.Array, jax.Array]
) -> jax.Array:
    """Attend from four tiles: q [4, 16, q_heads, dim], positions [4, 16], held.table [4, P]; float32 result like q."""
    rows = _rows_by_kv_head(layer, q)
    seen_from = jnp.tile(positions, (1, layer.q_heads // layer.kv_heads))

    def fold(strip: jax.Array, done: _Sum) -> _Sum:
        slots, keys = _strip(held, strip)
        k, v = read(held.pool, held.number, slots)
        return _fold(done, _scores(layer, rows, k), _visible(layer, seen_from, keys), v)

    shape = rows.shape[:3]
    zero = jnp.zeros(shape, jnp.float32)
    start = _Sum(jnp.full(shape, UNSEEN, jnp.float32), zero, jnp.zeros((*shape, layer.head_dim), jnp.float32))
    done = lax.fori_loop(*strips, fold, start)
    # A padding row has seen nothing and divides by 1.
    return _rows_by_token(layer, done.value / jnp.where(done.weight > 0, done.weight, 1.0)[..., None])


def _strip(held: Held, strip: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the slots, int32 [4, B], and the positions, int32 [B], of one strip."""
    length, size = strip_tokens(held.page_size), held.page_size
    pages = lax.dynamic_slice_in_dim(held.table, strip * (length // size), length // size, 1)
    slots = pages[:, :, None] * size + jnp.arange(size, dtype=jnp.int32)[None, None, :]
    return slots.reshape(GROUP_TILES, length), strip * length + jnp.arange(length, dtype=jnp.int32)


def _rows_by_kv_head(layer: LayerSpec, q: jax.Array) -> jax.Array:
    """[4, 16, q_heads, dim] → [4, kv_heads, q heads of one kv head * 16, dim]."""
    apart = q.reshape(GROUP_TILES, TILE_ROWS, layer.kv_heads, -1, layer.head_dim)
    return apart.transpose(0, 2, 3, 1, 4).reshape(GROUP_TILES, layer.kv_heads, -1, layer.head_dim)


def _rows_by_token(layer: LayerSpec, rows: jax.Array) -> jax.Array:
    """The way back of `_rows_by_kv_head`."""
    apart = rows.reshape(GROUP_TILES, layer.kv_heads, -1, TILE_ROWS, layer.head_dim)
    return apart.transpose(0, 3, 1, 2, 4).reshape(GROUP_TILES, TILE_ROWS, layer.q_heads, layer.head_dim)


def _visible(layer: LayerSpec, seen_from: jax.Array, positions: jax.Array) -> jax.Array:
    """Return which keys a row sees, bool [4, rows, B]; the window counts the query itself (E10)."""
    query, key = seen_from[:, :, None], positions[None, None, :]
    visible = key <= query
    return visible if layer.window_tokens is None else visible & (key > query - layer.window_tokens)


def _scores(layer: LayerSpec, q: jax.Array, k: jax.Array) -> jax.Array:
    """Return float32 [4, kv_heads, rows, B] for q [4, kv_heads, rows, dim] and k [4, B, kv_heads, dim]."""
    return layer.scale * lax.dot_general(
        q,
        k.transpose(0, 2, 1, 3),
        (((3,), (3,)), ((0, 1), (0, 1))),
        precision=lax.Precision.HIGHEST,
        preferred_element_type=jnp.float32,
    )


def _fold(done: _Sum, scores: jax.Array, visible: jax.Array, v: jax.Array) -> _Sum:
    """Fold one strip: scores [4, kv_heads, rows, B], visible [4, rows, B], v [4, B, kv_heads, dim]."""
    shown = visible[:, None, :, :]
    peak = jnp.maximum(done.peak, jnp.where(shown, scores, UNSEEN).max(-1))
    p = jnp.where(shown, jnp.exp(scores - peak[..., None]), 0.0)
    fade = jnp.exp(done.peak - peak)
    added = lax.dot_general(
        p.astype(v.dtype),
        v.transpose(0, 2, 1, 3),
        (((3,), (2,)), ((0, 1), (0, 1))),
        precision=lax.Precision.HIGHEST,
        preferred_element_type=jnp.float32,
    )
    return _Sum(peak, done.weight * fade + p.sum(-1), done.value * fade[..., None] + added)
