"""The arithmetic of one layer on one tile of rows: norms, projections, rotary embedding, MLP.

A tile is always `TILE_ROWS` rows, whatever the step holds: the same row then meets the same machine code in every
batch, which is what makes its bits independent of its neighbours (E1, E3). Nothing here sees a page or a pool.

Rule: a function takes and returns a whole tile; norms and rotations are computed in float32 and cast back.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from radixledger.tools.serve.params import LayerParams
from radixledger.tools.serve.spec import Activation, LayerSpec, ModelSpec

__all__ = ["TILE_ROWS", "Ints", "Rows", "head", "map_tiles", "project_qkv", "rms_norm", "rope", "transform"]

TILE_ROWS = 16
"""Rows of a tile. On CPU 16 keeps a decode step cheap and a matrix product efficient; any fixed number is exact."""

Ints = jax.Array | NDArray[np.int32]
"""int32: numpy on the host, traced in a program."""
Rows = tuple[jax.Array, ...]


def map_tiles(tile: Callable[..., Rows], rows: tuple[Ints, ...], tiles: Ints) -> Rows:
    """Apply `tile` to the first `tiles` tiles of `rows`; the rows after them come back zero.

    rows: arrays [tokens, ...], tokens a multiple of TILE_ROWS; tiles int32 [], traced. A traced bound keeps the
    compiler from unrolling a loop of one trip and fusing its body differently, and costs nothing for padding (E4).
    """
    shapes = jax.eval_shape(tile, *(_cut(x, jnp.int32(0)) for x in rows))
    tokens = rows[0].shape[0]
    empty = tuple(jnp.zeros((tokens, *s.shape[1:]), s.dtype) for s in shapes)

    def step(number: jax.Array, done: Rows) -> Rows:
        made = tile(*(_cut(x, number) for x in rows))
        return tuple(
            lax.dynamic_update_slice_in_dim(d, m, number * TILE_ROWS, 0)
            for d, m in zip(done, made, strict=True)
        )

    made: Rows = lax.fori_loop(jnp.int32(0), tiles, step, empty)
    return made


def _cut(rows: Ints, number: jax.Array) -> jax.Array:
    return lax.dynamic_slice_in_dim(rows, number * TILE_ROWS, TILE_ROWS, 0)


def rms_norm(x: jax.Array, weight: jax.Array | None, *, eps: float, offset: float) -> jax.Array:
    """Divide the last axis by its root mean square; times (weight + offset) where there is a weight."""
    wide = x.astype(jnp.float32)
    wide = wide * lax.pow(jnp.mean(wide * wide, -1, keepdims=True) + eps, -0.5)
    if weight is not None:
        scale = weight.astype(jnp.float32) + offset
        wide = wide * scale.reshape((1,) * (x.ndim - 1) + scale.shape)
    return wide.astype(x.dtype)


def rope(x: jax.Array, positions: jax.Array, layer: LayerSpec) -> jax.Array:
    """Turn pair (i, i + half) of every head by its position: x [rows, heads, head_dim], positions int32 [rows]."""
    turns = jnp.asarray(layer.rope.frequencies(layer.head_dim))
    angles = (positions.astype(jnp.float32)[:, None] * turns[None, :])[:, None, :]
    cos, sin = jnp.cos(angles).astype(x.dtype), jnp.sin(angles).astype(x.dtype)
    left, right = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([left * cos - right * sin, right * cos + left * sin], axis=-1)


def project_qkv(
    spec: ModelSpec, layer: LayerSpec, params: LayerParams, h: jax.Array, positions: jax.Array
) -> Rows:
    """Return q [rows, q_heads, dim], and k, v [rows, kv_heads, dim] as they are stored."""

    def norm(x: jax.Array, weight: jax.Array | None) -> jax.Array:
        return rms_norm(x, weight, eps=spec.eps, offset=spec.norm_offset)

    x = norm(h, params.input_norm)
    q = _dot(x, params.q).reshape(-1, layer.q_heads, layer.head_dim)
    k = _dot(x, params.k).reshape(-1, layer.kv_heads, layer.head_dim)
    v = k if params.v is None else _dot(x, params.v).reshape(k.shape)
    if layer.qk_norm:
        q, k = norm(q, params.q_norm), norm(k, params.k_norm)
    if layer.v_norm:
        v = rms_norm(v, None, eps=spec.eps, offset=0.0)
    return rope(q, positions, layer), rope(k, positions, layer), v


def transform(
    spec: ModelSpec, layer: LayerSpec, params: LayerParams, h: jax.Array, attended: jax.Array
) -> jax.Array:
    """Return the layer's output: residual, output projection and MLP.

    h [rows, hidden]; attended [rows, q_heads, dim].
    """

    def norm(x: jax.Array, weight: jax.Array | None) -> jax.Array:
        return rms_norm(x, weight, eps=spec.eps, offset=spec.norm_offset)

    out = _dot(attended.reshape(h.shape[0], -1), params.o)
    if layer.sandwich:
        h = h + norm(out, params.attention_norm)
        h = h + norm(_mlp(spec.activation, params, norm(h, params.mlp_norm)), params.output_norm)
    else:
        h = h + out
        h = h + _mlp(spec.activation, params, norm(h, params.attention_norm))
    return h if params.scalar is None else h * params.scalar[None, :]


def head(spec: ModelSpec, weights: jax.Array, final_norm: jax.Array, h: jax.Array) -> jax.Array:
    """Return float32 logits [rows, vocab]; weights [vocab, hidden]."""
    x = rms_norm(h, final_norm, eps=spec.eps, offset=spec.norm_offset)
    logits = lax.dot_general(
        x,
        weights,
        (((1,), (1,)), ((), ())),
        precision=lax.Precision.HIGHEST,
        preferred_element_type=jnp.float32,
    )
    cap = spec.logit_softcap
    return logits if cap is None else jnp.tanh(logits / cap) * cap


def _mlp(activation: Activation, params: LayerParams, x: jax.Array) -> jax.Array:
    return _dot(_ACTIVATIONS[activation](_dot(x, params.gate)) * _dot(x, params.up), params.down)


def _dot(x: jax.Array, weights: jax.Array) -> jax.Array:
    """Return x @ weights, accumulated in float32, in the dtype of x."""
    made = jnp.dot(x, weights, precision=lax.Precision.HIGHEST, preferred_element_type=jnp.float32)
    return made.astype(x.dtype)


def _gelu_tanh(x: jax.Array) -> jax.Array:
    return jax.nn.gelu(x, approximate=True)


_ACTIVATIONS: dict[Activation, Callable[[jax.Array], jax.Array]] = {
    "gelu_tanh": _gelu_tanh,
    "silu": jax.nn.silu,
}
