"""The device pools: K and V of every layer, by slot, as JAX arrays that each step is given and gives back.

A page is `page_size` neighbouring slots; arrays have no axis for it. (With one, and pages of a single token, XLA picks
another layout for the axis of length 1 and copies the pool at every step.) A pool knows slots, never requests, trees or owners: which page is whose is decided elsewhere and
reaches the device as page tables only.

Rule 1: page 0 is reserved, is never written and stays zero; a page table says "not resident" with it.
Rule 2: every entry is finite at all times. A masked score still multiplies the V it masks, and 0 * NaN is NaN (E8).
Rule 3: a step donates the pools; whoever holds the old arrays holds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

__all__ = [
    "POISON",
    "PagedPools",
    "Pool",
    "PoolShape",
    "empty_pool",
    "poison",
    "read",
    "write",
]

Ints = jax.Array | NDArray[np.int32]

POISON = 1e4
"""Large enough to ruin any softmax that reads it, finite so that a mask still hides it."""


class PoolShape(NamedTuple):
    """What one pool stores: `pages` usable pages, numbered 1 to `pages`, of `page_size` tokens in each layer."""

    layers: int
    pages: int
    page_size: int
    kv_heads: int
    k_dim: int
    v_dim: int


class Pool(NamedTuple):
    """One component: k [layers, (pages + 1) * page_size, kv_heads, k_dim], v likewise with v_dim."""

    k: jax.Array
    v: jax.Array


class PagedPools(NamedTuple):
    """Both components of one rank; a model without such layers has a pool of no layers."""

    full: Pool
    swa: Pool


def empty_pool(shape: PoolShape, dtype: jax.typing.DTypeLike) -> Pool:
    """Return a pool of zeros."""
    lead = (shape.layers, (shape.pages + 1) * shape.page_size, shape.kv_heads)
    return Pool(jnp.zeros((*lead, shape.k_dim), dtype), jnp.zeros((*lead, shape.v_dim), dtype))


def write(pool: Pool, layer: jax.Array, slots: Ints, k: jax.Array, v: jax.Array) -> Pool:
    """Return `pool` with token i of one layer at `slots[i]`; a slot past the pool is written nowhere.

    layer int32 []; slots int32 [tokens]; k [tokens, kv_heads, k_dim] and v [tokens, kv_heads, v_dim] in the pool's
    dtype.
    """
    return Pool(pool.k.at[layer, slots].set(k, mode="drop"), pool.v.at[layer, slots].set(v, mode="drop"))


def read(pool: Pool, layer: jax.Array, slots: Ints) -> tuple[jax.Array, jax.Array]:
    """Return k and v of one layer at `slots` int32 [...], all of them within the pool: [..., kv_heads, dim]."""
    k, v = pool.k.at[layer, slots], pool.v.at[layer, slots]
    return k.get(mode="promise_in_bounds"), v.get(mode="promise_in_bounds")


def poison(
    pools: PagedPools, full_pages: Sequence[int], swa_pages: Sequence[int], *, page_size: int
) -> PagedPools:
    """Fill the given pages of every layer with `POISON`, to make a read of a freed page visible (E8).

    The arrays of `pools` are donated.

    Raises
    ------
    ValueError
        A page is 0 or beyond its pool.
    """
    full = _marked("full", pools.full, full_pages, page_size)
    swa = _marked("swa", pools.swa, swa_pages, page_size)
    return PagedPools(_fill(pools.full, full), _fill(pools.swa, swa))


def _marked(name: str, pool: Pool, pages: Sequence[int], page_size: int) -> NDArray[np.bool_]:
    """Return which slots lie in `pages`, bool [slots]."""
    last = pool.k.shape[1] // page_size - 1
    for page in pages:
        if not 1 <= page <= last:
            raise ValueError(f"page {page} of the {name.upper()} pool: usable pages are 1 to {last}")
    hit = np.zeros((last + 1, page_size), np.bool_)
    hit[list(pages)] = True
    return hit.reshape(-1)


@partial(jax.jit, donate_argnames="pool")
def _fill(pool: Pool, hit: NDArray[np.bool_]) -> Pool:
    def fill(rows: jax.Array) -> jax.Array:
        return jnp.where(hit[None, :, None, None], jnp.asarray(POISON, rows.dtype), rows)

    return Pool(fill(pool.k), fill(pool.v))
