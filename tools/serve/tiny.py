"""The built-in checkpoint: a Gemma 4 of a third of a million weights, made by integer arithmetic.

Its weights are the same on every machine and with every version of every library, because they are small integers
times powers of two: a hash of the tensor's name and the element's place, no random stream of anybody's. Each is
exact in bfloat16, so that both precisions serve the same model. The spread is that of a trained initialisation, which
keeps outputs varied; a model that answers one token to everything proves nothing.

Rule: what is made here is what a folder on disk would hold; it passes through the same readers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from radixledger.tools.serve.config_json import spec_from_config
from radixledger.tools.serve.loader import Checkpoint, DType, params_from, tensor_shapes
from radixledger.tools.serve.spec import ModelSpec

__all__ = ["Tiny", "load_tiny", "made_tensors", "tiny_config", "tiny_tensors", "write_tiny"]

_FNV_START, _FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3
_SCALAR_MIDDLE = 0.625
"""Layers that fade what came before keep the next id from being an echo of the last: the head is the embedding."""
_GOLDEN = 0x9E3779B97F4A7C15
_MIX = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


@dataclass(frozen=True, slots=True)
class Tiny:
    """The sizes that may be chosen; `window_tokens` counts the query, the last of every 6 layers is full; 0: all are."""

    window_tokens: int = 32
    vocab_size: int = 512
    hidden: int = 64
    layers: int = 6
    seed: int = 1


def load_tiny(tiny: Tiny = Tiny(), *, dtype: DType = "float32") -> Checkpoint:
    """Return the built-in model on the default device."""
    spec = spec_from_config(tiny_config(tiny))
    tensors = tiny_tensors(tiny)
    readers = {name: partial(tensors.__getitem__, name) for name in tensors}
    return Checkpoint(spec, params_from(readers, spec, dtype=dtype, where="tiny"))


def write_tiny(folder: Path, tiny: Tiny = Tiny()) -> None:
    """Write the model as a Hugging Face folder: config.json and bfloat16 weights in one safetensors file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(tiny_config(tiny), indent=2, sort_keys=True) + "\n")
    stored = {name: np.asarray(x, ml_dtypes.bfloat16) for name, x in tiny_tensors(tiny).items()}
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})


def tiny_config(tiny: Tiny = Tiny()) -> dict[str, Any]:
    """Return the `config.json` of the model, in the hub's spelling."""
    return {
        "architectures": ["Gemma4ForCausalLM"],
        "model_type": "gemma4_text",
        "dtype": "bfloat16",
        "vocab_size": tiny.vocab_size,
        "hidden_size": tiny.hidden,
        "intermediate_size": 2 * tiny.hidden,
        "num_hidden_layers": tiny.layers,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 16,
        "global_head_dim": 32,
        "num_global_key_value_heads": 2,
        "attention_k_eq_v": True,
        **_layers_of(tiny),
        "max_position_embeddings": 131_072,
        "hidden_size_per_layer_input": 0,
        "final_logit_softcapping": 30.0,
        "tie_word_embeddings": True,
        "bos_token_id": 2,
        "eos_token_id": 1,
        "pad_token_id": 0,
    }


def _layers_of(tiny: Tiny) -> dict[str, Any]:
    if tiny.window_tokens:
        return {"sliding_window": tiny.window_tokens}
    return {"layer_types": ["full_attention"] * tiny.layers}


def tiny_tensors(tiny: Tiny = Tiny()) -> dict[str, NDArray[np.float32]]:
    """Return every weight under its name on disk, [out, in]."""
    return made_tensors(spec_from_config(tiny_config(tiny)), tiny.seed)


def made_tensors(spec: ModelSpec, seed: int) -> dict[str, NDArray[np.float32]]:
    """Return weights for any specification, made in the same way."""
    return {name: _tensor(name, shape, seed) for name, shape in tensor_shapes(spec).items()}


def _tensor(name: str, shape: tuple[int, ...], seed: int) -> NDArray[np.float32]:
    """Return integers of spread 37 scaled by a power of two: matrices to about fan_in^-0.5, vectors to 1 ± 0.07."""
    whole = _bells(_name_hash(name) ^ seed * _GOLDEN, int(np.prod(shape)))
    if len(shape) == 1:
        middle = np.float32(_SCALAR_MIDDLE if name.endswith("layer_scalar") else 1.0)
        return (middle + (whole >> 2).astype(np.float32) * np.float32(2.0**-7)).reshape(shape)
    # 2^-5 / 37 ... 2^-9: the power of two next below 1 / (37 * sqrt(fan_in)).
    halvings = 5 + (shape[-1].bit_length()) // 2
    return (whole.astype(np.float32) * np.float32(2.0**-halvings)).reshape(shape)


def _bells(key: int, count: int) -> NDArray[np.int64]:
    """Return `count` integers in [-126, 126], bell-shaped about 0: the sum of four 6-bit fields of a hash."""
    with np.errstate(over="ignore"):
        bits = (np.arange(1, count + 1, dtype=np.uint64) * np.uint64(_GOLDEN)) + np.uint64(key % 2**64)
        for shift, factor in _MIX:
            bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
        bits ^= bits >> np.uint64(31)
    fields = sum(((bits >> np.uint64(place)) & np.uint64(63)).astype(np.int64) for place in (0, 16, 32, 48))
    return np.asarray(fields - 126, np.int64)


def _name_hash(name: str) -> int:
    value = _FNV_START
    for byte in name.encode():
        value = (value ^ byte) * _FNV_PRIME % 2**64
    return value
