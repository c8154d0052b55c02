"""Configurations in both spellings, and what is refused by name."""

import json
from pathlib import Path
from typing import Any

import pytest

from radixledger.tools.serve.config_json import spec_from_config
from radixledger.tools.serve.spec import ConfigError, ModelSpec, RopeSpec
from radixledger.tools.serve.tiny import tiny_config

SAVED = Path(__file__).parents[2] / "golden" / "gemma4_tiny" / "config.json"


def saved_config() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(SAVED.read_text("utf-8"))
    return found


def read(**changes: Any) -> ModelSpec:
    return spec_from_config(tiny_config() | changes)


def test_both_spellings_of_one_model_are_one_specification() -> None:
    hub, saved = tiny_config(), saved_config()
    assert "global_head_dim" in hub
    assert "global_head_dim" not in saved
    assert "per_layer_config" in saved
    assert spec_from_config(hub) == spec_from_config(saved)


def test_layers_are_what_the_reference_builds() -> None:
    """serving.md 1.1: five sliding layers to one full; K is V on the full ones, on fewer and wider heads."""
    spec = read()
    sliding, full = spec.kinds
    assert spec.layers == (sliding,) * 5 + (full,)
    assert (sliding.window_tokens, sliding.kv_heads, sliding.head_dim, sliding.k_eq_v) == (32, 4, 16, False)
    assert (full.window_tokens, full.kv_heads, full.head_dim, full.k_eq_v) == (None, 2, 32, True)
    assert sliding.rope == RopeSpec(theta=1e4, live_pairs=8)
    assert full.rope == RopeSpec(theta=1e6, live_pairs=4)
    assert (spec.embed_scale, spec.logit_softcap, spec.tied, spec.eos_ids) == (8.0, 30.0, True, (1,))


def test_a_saved_override_may_name_one_field_and_leave_the_other() -> None:
    config = saved_config() | {"per_layer_config": {"5": {"head_dim": 64}}}
    full = spec_from_config(config).layers[5]
    assert (full.head_dim, full.kv_heads) == (64, 4)


def test_the_saved_spelling_wins_over_the_hub_spelling() -> None:
    config = saved_config() | {"global_head_dim": 128}
    assert spec_from_config(config).layers[5].head_dim == 32


def test_global_heads_count_only_where_keys_are_values() -> None:
    assert read(attention_k_eq_v=False).layers[5].kv_heads == 4
    assert read(attention_k_eq_v=False).layers[5].k_eq_v is False


def test_a_multimodal_wrapper_is_read_through_its_text_config() -> None:
    wrapper = {"model_type": "gemma4", "vision_config": {"depth": 2}, "text_config": tiny_config()}
    assert spec_from_config(wrapper) == read()


def test_the_last_layer_is_full_whatever_the_file_says() -> None:
    kinds = [layer.pool for layer in read(layer_types=["sliding_attention"] * 6).layers]
    assert kinds == ["swa"] * 5 + ["full"]


def test_an_absent_field_means_the_reference_default() -> None:
    assert read(num_hidden_layers=12).pattern == (((0, 5), (1, 1)), 2)
    config = tiny_config()
    for field in ("sliding_window", "global_head_dim", "tie_word_embeddings", "max_position_embeddings"):
        del config[field]
    spec = spec_from_config(config)
    assert (spec.window_tokens, spec.layers[5].head_dim, spec.tied) == (512, 512, True)
    assert spec.context_tokens == 131_072


def test_ends_of_sequence_are_one_a_list_or_none() -> None:
    assert read(eos_token_id=[1, 106]).eos_ids == (1, 106)
    assert read(eos_token_id=None).eos_ids == ()


REFUSED = {
    "hidden_size_per_layer_input": 256,
    "num_kv_shared_layers": 2,
    "enable_moe_block": True,
    "use_bidirectional_attention": "all",
    "attention_bias": True,
    "hidden_activation": "relu",
    "model_type": "gemma3_text",
    "vocab_size": 0,
    "hidden_size": "64",
    "num_hidden_layers": None,
    "sliding_window": True,
    "rms_norm_eps": -1e-6,
    "tie_word_embeddings": "yes",
    "layer_types": ["full_attention"] * 5,
    "eos_token_id": "</s>",
    "final_logit_softcapping": float("inf"),
}


@pytest.mark.parametrize("field", REFUSED)
def test_what_is_not_built_or_malformed_is_refused_by_name(field: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read(**{field: REFUSED[field]})
    assert refused.value.field == field
    assert refused.value.found == REFUSED[field]


def test_per_layer_inputs_are_refused_when_the_field_is_absent() -> None:
    """The reference's default is 256, so a file that leaves the field out has them."""
    config = tiny_config()
    del config["hidden_size_per_layer_input"]
    with pytest.raises(ConfigError) as refused:
        spec_from_config(config)
    assert (refused.value.field, refused.value.found) == ("hidden_size_per_layer_input", 256)


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("per_layer_config.5.num_attention_heads", {"per_layer_config": {"5": {"num_attention_heads": 4}}}),
        ("per_layer_config.5.head_dim", {"per_layer_config": {"5": {"head_dim": -1}}}),
        ("per_layer_config.5", {"per_layer_config": {"5": 32}}),
        ("rope_parameters.sliding_attention", {"rope_parameters": {"full_attention": {"rope_theta": 1e6}}}),
        ("text_config.vocab_size", {"text_config": tiny_config() | {"vocab_size": None}}),
    ],
)
def test_an_inner_field_is_named_by_its_path(field: str, changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as refused:
        read(**changes)
    assert refused.value.field == field


def test_an_unknown_rope_is_refused() -> None:
    ropes = {
        kind: {"rope_type": "yarn", "rope_theta": 1e4} for kind in ("sliding_attention", "full_attention")
    }
    with pytest.raises(ConfigError) as refused:
        read(rope_parameters=ropes)
    assert refused.value.field == "rope_parameters.sliding_attention.rope_type"
