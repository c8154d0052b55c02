"""Folders as they are found: whole, split, wrapped, and broken in ways that name themselves."""

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save_file

from radixledger.tools.serve.loader import (
    CheckpointError,
    MissingTensor,
    ShapeMismatch,
    UnknownTensor,
    load_checkpoint,
    read_spec,
)
from radixledger.tools.serve.params import Params
from radixledger.tools.serve.spec import ConfigError
from radixledger.tools.serve.tiny import load_tiny, tiny_config, tiny_tensors, write_tiny

Tensors = dict[str, NDArray[Any]]


@pytest.fixture(scope="module")
def tensors() -> Tensors:
    return dict(tiny_tensors())


def write(folder: Path, tensors: Tensors, config: dict[str, Any] | None = None) -> Path:
    (folder / "config.json").write_text(json.dumps(config or tiny_config()))
    save_file({name: np.ascontiguousarray(x) for name, x in tensors.items()}, folder / "model.safetensors")
    return folder


def same(left: Params, right: Params) -> bool:
    pairs = zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True)
    return all(bool((a == b).all()) and a.dtype == b.dtype for a, b in pairs)


def test_what_was_written_is_what_is_loaded(tmp_path: Path) -> None:
    write_tiny(tmp_path / "model")
    loaded, made = load_checkpoint(tmp_path / "model", dtype="float32"), load_tiny()
    assert loaded.spec == made.spec
    assert same(loaded.params, made.params)


def test_weights_keep_their_type_unless_told(tmp_path: Path, tensors: Tensors) -> None:
    write_tiny(tmp_path)
    assert load_checkpoint(tmp_path).params.embed.dtype == jnp.bfloat16
    assert load_checkpoint(write(tmp_path, tensors)).params.embed.dtype == jnp.float32
    assert load_checkpoint(tmp_path, dtype="bfloat16").params.kinds[0].q.dtype == jnp.bfloat16


def test_half_precision_is_read_as_float32(tmp_path: Path, tensors: Tensors) -> None:
    halves: Tensors = {name: x.astype(np.float16) for name, x in tensors.items()}
    loaded = load_checkpoint(write(tmp_path, halves))
    assert same(loaded.params, load_tiny().params)


def test_an_index_joins_files(tmp_path: Path, tensors: Tensors) -> None:
    write(tmp_path, {})
    names = sorted(tensors)
    parts = {"model-00001-of-00002.safetensors": names[:40], "model-00002-of-00002.safetensors": names[40:]}
    for file_name, held in parts.items():
        save_file({name: tensors[name] for name in held}, tmp_path / file_name)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {name: f for f, held in parts.items() for name in held}}))
    assert same(load_checkpoint(tmp_path).params, load_tiny().params)

    index.write_text(json.dumps({"weight_map": dict.fromkeys(names, "model-00001-of-00002.safetensors")}))
    with pytest.raises(CheckpointError, match=names[40]):
        load_checkpoint(tmp_path)
    index.write_text(json.dumps({"weight_map": ["model-00001-of-00002.safetensors"]}))
    with pytest.raises(CheckpointError, match="weight_map"):
        load_checkpoint(tmp_path)


def test_a_multimodal_wrapper_keeps_its_decoder_under_a_longer_name(tmp_path: Path, tensors: Tensors) -> None:
    wrapped = {name.replace("model.", "model.language_model.", 1): x for name, x in tensors.items()}
    wrapped["model.vision_tower.patch.weight"] = np.ones((2, 2), np.float32)
    config = {"model_type": "gemma4", "text_config": tiny_config()}
    assert same(load_checkpoint(write(tmp_path, wrapped, config)).params, load_tiny().params)


def test_an_untied_head_is_loaded_and_a_stored_tied_one_is_the_embedding(
    tmp_path: Path, tensors: Tensors
) -> None:
    stored = tensors | {"lm_head.weight": np.full((512, 64), 0.5, np.float32)}
    assert load_checkpoint(write(tmp_path, stored)).params.head is None
    config = tiny_config() | {"tie_word_embeddings": False}
    head = load_checkpoint(write(tmp_path, stored, config)).params.head
    assert head is not None
    assert head.shape == (512, 64)
    with pytest.raises(MissingTensor, match="lm_head"):
        load_checkpoint(write(tmp_path, tensors, config))


def test_a_missing_tensor_is_named_with_its_shape(tmp_path: Path, tensors: Tensors) -> None:
    lost = "model.layers.3.self_attn.v_proj.weight"
    with pytest.raises(MissingTensor) as refused:
        load_checkpoint(write(tmp_path, {k: v for k, v in tensors.items() if k != lost}))
    assert (refused.value.name, refused.value.shape) == (lost, (64, 64))
    assert str(tmp_path) in str(refused.value)


def test_a_misshapen_tensor_is_named_with_both_shapes(tmp_path: Path, tensors: Tensors) -> None:
    bent = "model.layers.5.self_attn.k_norm.weight"
    with pytest.raises(ShapeMismatch) as refused:
        load_checkpoint(write(tmp_path, tensors | {bent: np.ones(16, np.float32)}))
    assert (refused.value.name, refused.value.found, refused.value.wanted) == (bent, (16,), (32,))


def test_a_tensor_nobody_uses_is_refused(tmp_path: Path, tensors: Tensors) -> None:
    extra = [f"model.layers.{i}.router.proj.weight" for i in range(6)]
    with pytest.raises(UnknownTensor) as refused:
        load_checkpoint(write(tmp_path, tensors | dict.fromkeys(extra, np.ones(2, np.float32))))
    assert refused.value.names == extra
    assert "2 more" in str(refused.value)


def test_a_quantised_tensor_is_refused_by_its_type(tmp_path: Path, tensors: Tensors) -> None:
    bad = {"model.norm.weight": np.ones(64, np.int8)}
    with pytest.raises(CheckpointError, match=r"model\.norm\.weight.*I8"):
        load_checkpoint(write(tmp_path, tensors | bad))


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_an_absent_or_garbled_file_is_named(tmp_path: Path, tensors: Tensors, name: str) -> None:
    path = write(tmp_path, tensors) / name
    path.write_bytes(b"\x01\x02[")
    with pytest.raises(CheckpointError, match=name):
        load_checkpoint(tmp_path)
    path.unlink()
    with pytest.raises(CheckpointError, match=name):
        load_checkpoint(tmp_path)


def test_a_config_that_is_no_object_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(CheckpointError, match="not a JSON object"):
        read_spec(tmp_path)


def test_the_generation_config_says_which_ids_end_a_sequence(tmp_path: Path, tensors: Tensors) -> None:
    write(tmp_path, tensors)
    assert read_spec(tmp_path).eos_ids == (1,)
    generation = tmp_path / "generation_config.json"
    generation.write_text(json.dumps({"eos_token_id": [1, 106]}))
    assert read_spec(tmp_path).eos_ids == (1, 106)
    generation.write_text(json.dumps({"eos_token_id": None}))
    assert read_spec(tmp_path).eos_ids == (1,)
    generation.write_text(json.dumps({"eos_token_id": "end"}))
    with pytest.raises(ConfigError, match=r"generation_config\.json"):
        read_spec(tmp_path)
