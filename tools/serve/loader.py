"""Brings a checkpoint folder onto the device: `config.json`, safetensors in one file or behind an index.

The table `tensor_shapes` says which tensors a specification needs, by their names on disk; whatever the folder
has beyond it, or lacks, or shapes differently, is an error that names the tensor. Layers of one kind are stacked
along a first axis, so that the forward is one program body per kind.

Rule: a tensor is only ever renamed, transposed, stacked and cast; no arithmetic happens here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from radixledger.tools.serve.config_json import eos_ids, spec_from_config
from radixledger.tools.serve.params import LayerParams, Params
from radixledger.tools.serve.spec import LayerSpec, ModelSpec

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "DType",
    "MissingTensor",
    "ShapeMismatch",
    "UnknownTensor",
    "load_checkpoint",
    "params_from",
    "read_spec",
    "tensor_shapes",
]

DType = Literal["float32", "bfloat16"]
Tensors = Mapping[str, Callable[[], NDArray[Any]]]
"""Name on disk → how to read it; nothing is read before it is asked for."""

_READABLE = ("F32", "F16", "BF16")
_PREFIXES = ("model.language_model.", "language_model.model.", "model.")
_TOWERS = ("vision_tower", "audio_tower", "embed_vision", "embed_audio", "multi_modal_projector")


class CheckpointError(ValueError):
    """A checkpoint folder cannot be read; the message names the file."""


class MissingTensor(CheckpointError):
    """The specification needs a tensor that no file of the folder holds."""

    def __init__(self, name: str, *, shape: tuple[int, ...], where: str) -> None:
        super().__init__(f"{where}: tensor {name!r} of shape {list(shape)} is missing")
        self.name, self.shape = name, shape


class ShapeMismatch(CheckpointError):
    """A tensor does not have the shape that `config.json` implies."""

    def __init__(self, name: str, *, found: tuple[int, ...], wanted: tuple[int, ...], where: str) -> None:
        super().__init__(
            f"{where}: tensor {name!r} has shape {list(found)}, the configuration implies {list(wanted)}"
        )
        self.name, self.found, self.wanted = name, found, wanted


class UnknownTensor(CheckpointError):
    """The folder holds weights that the specification does not use, so its outputs would be wrong."""

    def __init__(self, names: list[str], *, where: str) -> None:
        shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        super().__init__(f"{where}: the configuration has no use for {shown}")
        self.names = names


class Checkpoint(NamedTuple):
    """A model ready to run."""

    spec: ModelSpec
    params: Params


def load_checkpoint(folder: Path, *, dtype: DType | None = None) -> Checkpoint:
    """Read `folder` (config.json, safetensors) onto the default device.

    `dtype` is that of weights, activations and KV pages; None keeps what the embedding is stored in (a half
    precision file counts as float32: no arithmetic here is done in float16).

    Raises
    ------
    ConfigError
        `config.json` asks for what is not built; names the field.
    CheckpointError
        A file is absent or unreadable, or a tensor is missing, unknown or misshapen; names it.
    """
    spec = read_spec(folder)
    return Checkpoint(spec, params_from(_read_tensors(folder), spec, dtype=dtype, where=str(folder)))


def read_spec(folder: Path) -> ModelSpec:
    """Read the specification alone; `generation_config.json`, where present, says which ids end a sequence."""
    spec = spec_from_config(_read_json(folder / "config.json"))
    generation = folder / "generation_config.json"
    if not generation.exists():
        return spec
    ends = _read_json(generation).get("eos_token_id")
    return (
        spec
        if ends is None
        else replace(spec, eos_ids=eos_ids(ends, field=f"{generation.name}: eos_token_id"))
    )


def tensor_shapes(spec: ModelSpec) -> dict[str, tuple[int, ...]]:
    """Return every tensor that `spec` needs: its name under `model.`, and its shape on disk ([out, in])."""
    shapes = {
        "model.embed_tokens.weight": (spec.vocab_size, spec.hidden),
        "model.norm.weight": (spec.hidden,),
    }
    if not spec.tied:
        shapes["lm_head.weight"] = (spec.vocab_size, spec.hidden)
    for number, layer in enumerate(spec.layers):
        for name, shape in _layer_tensors(spec, layer).values():
            shapes[f"model.layers.{number}.{name}"] = shape
    return shapes


def params_from(
    tensors: Tensors, spec: ModelSpec, *, dtype: DType | None = None, where: str = "tensors"
) -> Params:
    """Check `tensors` against `spec`, and place them on the default device.

    Raises
    ------
    MissingTensor, ShapeMismatch, UnknownTensor
        By name, before anything is placed (shapes: when the tensor is read).
    """
    named = _canonical(tensors)
    shapes = tensor_shapes(spec)
    _check_names(set(named), shapes, where)

    def read(name: str) -> NDArray[Any]:
        found = named[name]()
        if found.shape != shapes[name]:
            raise ShapeMismatch(name, found=found.shape, wanted=shapes[name], where=where)
        return found

    embed = read("model.embed_tokens.weight")
    target = _device_dtype(embed, dtype)
    return Params(
        embed=jnp.asarray(embed, target),
        final_norm=jnp.asarray(read("model.norm.weight"), target),
        head=None if spec.tied else jnp.asarray(read("lm_head.weight"), target),
        kinds=tuple(_stack(spec, kind, read, target) for kind in spec.kinds),
    )


def _layer_tensors(spec: ModelSpec, layer: LayerSpec) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return field of `LayerParams` → (name on disk within the layer, shape on disk)."""
    hidden, width, dim = spec.hidden, layer.mlp_width, layer.head_dim
    queries, keys = layer.q_heads * dim, layer.kv_heads * dim
    table: dict[str, tuple[str, tuple[int, ...]]] = {
        "input_norm": ("input_layernorm.weight", (hidden,)),
        "q": ("self_attn.q_proj.weight", (queries, hidden)),
        "k": ("self_attn.k_proj.weight", (keys, hidden)),
        "o": ("self_attn.o_proj.weight", (hidden, queries)),
        "attention_norm": ("post_attention_layernorm.weight", (hidden,)),
        "gate": ("mlp.gate_proj.weight", (width, hidden)),
        "up": ("mlp.up_proj.weight", (width, hidden)),
        "down": ("mlp.down_proj.weight", (hidden, width)),
    }
    if not layer.k_eq_v:
        table["v"] = ("self_attn.v_proj.weight", (keys, hidden))
    if layer.qk_norm:
        table["q_norm"] = ("self_attn.q_norm.weight", (dim,))
        table["k_norm"] = ("self_attn.k_norm.weight", (dim,))
    if layer.sandwich:
        table["mlp_norm"] = ("pre_feedforward_layernorm.weight", (hidden,))
        table["output_norm"] = ("post_feedforward_layernorm.weight", (hidden,))
    if layer.scalar:
        table["scalar"] = ("layer_scalar", (1,))
    return table


def _stack(
    spec: ModelSpec, kind: LayerSpec, read: Callable[[str], NDArray[Any]], dtype: jax.typing.DTypeLike
) -> LayerParams:
    """Return the layers of one kind along a first axis; matrices are turned to [in, out]."""
    table = _layer_tensors(spec, kind)
    numbers = spec.layers_of(kind)

    def stacked(field: str) -> jax.Array:
        name, _ = table[field]
        return jnp.asarray(np.stack([read(f"model.layers.{n}.{name}").T for n in numbers]), dtype)

    return LayerParams(**{field: stacked(field) for field in table})


def _canonical(tensors: Tensors) -> Tensors:
    """Rename to the plain text model's names: a multimodal wrapper keeps its decoder under a longer prefix."""
    prefix = next((x for x in _PREFIXES if f"{x}embed_tokens.weight" in tensors), "model.")
    renamed = {f"model.{k.removeprefix(prefix)}" if k.startswith(prefix) else k: tensors[k] for k in tensors}
    return {k: v for k, v in renamed.items() if not any(tower in k for tower in _TOWERS)}


def _check_names(found: set[str], shapes: Mapping[str, tuple[int, ...]], where: str) -> None:
    for name, shape in shapes.items():
        if name not in found:
            raise MissingTensor(name, shape=shape, where=where)
    # A tied head may be stored again; it is the embedding by definition.
    unknown = sorted(found - set(shapes) - {"lm_head.weight"})
    if unknown:
        raise UnknownTensor(unknown, where=where)


def _device_dtype(embed: NDArray[Any], dtype: DType | None) -> jax.typing.DTypeLike:
    wanted = dtype or ("bfloat16" if embed.dtype == jnp.bfloat16 else "float32")
    return jnp.dtype(wanted)


def _read_tensors(folder: Path) -> Tensors:
    index = folder / "model.safetensors.index.json"
    if not index.exists():
        return _open_file(folder / "model.safetensors")
    listed = _read_json(index).get("weight_map")
    if not isinstance(listed, dict):
        raise CheckpointError(f"{index}: 'weight_map' is not an object of tensor name → file name")
    tensors: dict[str, Callable[[], NDArray[Any]]] = {}
    for file_name in sorted(set(listed.values())):
        held = _open_file(folder / Path(file_name).name)
        for name in (n for n, f in listed.items() if f == file_name):
            if name not in held:
                raise CheckpointError(f"{index}: {file_name} was to hold {name!r} and does not")
            tensors[name] = held[name]
    return tensors


def _open_file(path: Path) -> Tensors:
    try:
        file = safe_open(path, framework="numpy")
        names = list(file.keys())  # type: ignore[no-untyped-call]
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path}: not a readable safetensors file ({error})") from error
    for name in names:
        stored = file.get_slice(name).get_dtype()  # type: ignore[no-untyped-call]
        if stored not in _READABLE:
            raise CheckpointError(f"{path}: tensor {name!r} is stored as {stored}, readable are {_READABLE}")
    return {name: partial(_read_tensor, file, name) for name in names}


def _read_tensor(file: safe_open, name: str) -> NDArray[Any]:
    return np.asarray(file.get_tensor(name))  # type: ignore[no-untyped-call]


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise CheckpointError(f"{path}: not JSON ({error})") from error
    if not isinstance(found, dict):
        raise CheckpointError(f"{path}: not a JSON object")
    return found
