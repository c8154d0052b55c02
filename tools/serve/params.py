"""The weights of a model as they lie on the device: a pytree, shared by every rank and every step.

Rule: matrices are [in, out], so that a row of activations multiplies from the left; the embedding stays
[vocab, hidden], because rows of it are looked up.
"""

from __future__ import annotations

from typing import NamedTuple

import jax

__all__ = ["LayerParams", "Params"]


class LayerParams(NamedTuple):
    """All layers of one kind, stacked along a first axis (not repeated in the shapes below).

    A field is None where the kind does not have it; `LayerSpec` says when.
    """

    input_norm: jax.Array
    """[hidden]"""
    q: jax.Array
    """[hidden, q_heads * head_dim]"""
    k: jax.Array
    """[hidden, kv_heads * head_dim]"""
    o: jax.Array
    """[q_heads * head_dim, hidden]"""
    attention_norm: jax.Array
    """[hidden]; after attention in a sandwich, before the MLP otherwise"""
    gate: jax.Array
    """[hidden, mlp_width]"""
    up: jax.Array
    """[hidden, mlp_width]"""
    down: jax.Array
    """[mlp_width, hidden]"""
    v: jax.Array | None = None
    """[hidden, kv_heads * head_dim]"""
    q_norm: jax.Array | None = None
    """[head_dim]"""
    k_norm: jax.Array | None = None
    """[head_dim]"""
    mlp_norm: jax.Array | None = None
    """[hidden]"""
    output_norm: jax.Array | None = None
    """[hidden]"""
    scalar: jax.Array | None = None
    """[1]"""


class Params(NamedTuple):
    """A whole model; `kinds[i]` holds the layers of `spec.kinds[i]`."""

    embed: jax.Array
    """[vocab, hidden]"""
    final_norm: jax.Array
    """[hidden]"""
    head: jax.Array | None
    """[vocab, hidden]; None where the head is the embedding"""
    kinds: tuple[LayerParams, ...]
