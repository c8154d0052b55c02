"""A model as data: what each layer is, and nothing of how it is computed or where it was read.

Rule 1: a specification is a value; equal specifications share compiled programs.
Rule 2: what a specification can say, the forward can do; anything else is refused when a file is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["Activation", "ConfigError", "LayerSpec", "ModelSpec", "Pool", "RopeSpec"]

Pool = Literal["full", "swa"]
Activation = Literal["gelu_tanh", "silu"]


class ConfigError(ValueError):
    """A model configuration cannot be served: `field` is absent, malformed, or asks for what is not built.

    Change the field if it is a mistake; otherwise the model needs a family that this version does not have.
    """

    def __init__(self, field: str, *, found: object, wanted: str) -> None:
        super().__init__(f"config field {field!r}: found {found!r}, wanted {wanted}")
        self.field, self.found, self.wanted = field, found, wanted


@dataclass(frozen=True, slots=True)
class RopeSpec:
    """Rotary embedding over a whole head: pair i turns by position * theta^(-2i/head_dim) / factor.

    Only the first `live_pairs` pairs turn; the others have frequency zero, which is the identity.
    """

    theta: float
    live_pairs: int
    factor: float = 1.0

    def frequencies(self, head_dim: int) -> NDArray[np.float32]:
        """Return the turn per position of each pair, float32 [head_dim / 2]."""
        pairs = np.arange(head_dim // 2)
        turns = self.theta ** (-2.0 * pairs / head_dim) / self.factor
        return np.where(pairs < self.live_pairs, turns, 0.0).astype(np.float32)


@dataclass(frozen=True, slots=True)
class LayerSpec:
    """One decoder layer. `window_tokens` counts the query itself (E10); None is full attention."""

    q_heads: int
    kv_heads: int
    head_dim: int
    mlp_width: int
    window_tokens: int | None
    rope: RopeSpec
    scale: float
    """Factor on q·k before the softmax."""
    k_eq_v: bool = False
    """V is made from the key projection, before its norm and rope; there is no value projection."""
    qk_norm: bool = True
    v_norm: bool = False
    """V is divided by its root mean square, without a weight."""
    sandwich: bool = True
    """Norms stand after attention and MLP too, before the residual is added."""
    scalar: bool = False
    """The layer's output is multiplied by one saved number."""

    @property
    def pool(self) -> Pool:
        """The pool that holds this layer's K and V."""
        return "full" if self.window_tokens is None else "swa"


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A decoder: embedding, layers, final norm, head.

    Raises
    ------
    ConfigError
        Layers of one pool differ in what they store or, for SWA, in their window; heads do not divide.
    """

    family: str
    vocab_size: int
    hidden: int
    layers: tuple[LayerSpec, ...]
    eps: float
    norm_offset: float
    """Added to every stored norm weight: 0 for plain weights, 1 where the file holds w - 1."""
    activation: Activation
    embed_scale: float
    logit_softcap: float | None
    tied: bool
    """The head is the embedding; the file has no `lm_head.weight`."""
    context_tokens: int
    eos_ids: tuple[int, ...]

    def __post_init__(self) -> None:
        for pool in ("full", "swa"):
            stored = {(x.kv_heads, x.head_dim, x.window_tokens) for x in self.layers if x.pool == pool}
            if len(stored) > 1:
                raise ConfigError(
                    "layers", found=sorted(stored, key=str), wanted=f"one shape of page in {pool}"
                )
        for layer in self.layers:
            if layer.q_heads % layer.kv_heads or layer.head_dim % 2:
                found = (layer.q_heads, layer.kv_heads, layer.head_dim)
                raise ConfigError(
                    "heads", found=found, wanted="q_heads a multiple of kv_heads, head_dim even"
                )

    @property
    def window_tokens(self) -> int | None:
        """The window of the SWA layers, the query included; None when no layer slides."""
        return next((x.window_tokens for x in self.layers if x.window_tokens is not None), None)

    @property
    def kinds(self) -> tuple[LayerSpec, ...]:
        """The distinct layers, in order of first use: one program body each."""
        return tuple(dict.fromkeys(self.layers))

    @property
    def pattern(self) -> tuple[tuple[tuple[int, int], ...], int]:
        """The layers as a shortest repeated pattern: runs of (kind, count), and how often the pattern occurs."""
        kinds = self.kinds
        runs = tuple((kind, len(list(same))) for kind, same in groupby(kinds.index(x) for x in self.layers))
        for length in range(1, len(runs) + 1):
            if len(runs) % length == 0 and runs == runs[:length] * (len(runs) // length):
                return runs[:length], len(runs) // length
        raise ConfigError("layers", found=self.layers, wanted="one layer at least")

    @property
    def place_in_kind(self) -> tuple[int, ...]:
        """For each layer, how many layers of its kind come before it."""
        return tuple(self.layers[:i].count(layer) for i, layer in enumerate(self.layers))

    @property
    def place_in_pool(self) -> tuple[int, ...]:
        """For each layer, how many layers of its pool come before it."""
        pools = [layer.pool for layer in self.layers]
        return tuple(pools[:i].count(pool) for i, pool in enumerate(pools))

    def layers_of(self, kind: LayerSpec) -> tuple[int, ...]:
        """Return the numbers of the layers that are `kind`, ascending."""
        return tuple(i for i, layer in enumerate(self.layers) if layer == kind)
