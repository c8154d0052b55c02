"""Specifications as values: what they derive, and what they will not be."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from radixledger.tools.serve.config_json import spec_from_config
from radixledger.tools.serve.spec import ConfigError, ModelSpec, RopeSpec
from radixledger.tools.serve.tiny import tiny_config


@pytest.fixture
def spec() -> ModelSpec:
    return spec_from_config(tiny_config())


def test_frequencies_fall_by_the_head_and_dead_pairs_stand_still() -> None:
    """serving.md 1.1: the exponent divides by head_dim, not by the rotary part; a zero frequency is the identity."""
    found = RopeSpec(theta=1e6, live_pairs=2, factor=2.0).frequencies(16)
    np.testing.assert_allclose(found, [0.5, 0.5 * 1e6 ** (-2 / 16), 0, 0, 0, 0, 0, 0], rtol=1e-6)
    assert found.dtype == np.float32


def test_repeated_runs_of_layers_are_found_and_irregular_ones_are_spelt_out(spec: ModelSpec) -> None:
    sliding, full = spec.kinds
    deep = replace(spec, layers=((sliding,) * 5 + (full,)) * 10)
    odd = replace(spec, layers=(full, sliding, sliding, full, sliding))
    assert deep.pattern == (((0, 5), (1, 1)), 10)
    assert odd.pattern == (((0, 1), (1, 2), (0, 1), (1, 1)), 1)
    assert odd.place_in_pool == odd.place_in_kind == (0, 0, 1, 1, 2)


def test_kinds_of_one_pool_share_it(spec: ModelSpec) -> None:
    sliding, full = spec.kinds
    mixed = replace(spec, layers=(sliding, replace(sliding, mlp_width=64), full, sliding))
    assert mixed.place_in_pool == (0, 1, 0, 2)
    assert mixed.place_in_kind == (0, 0, 0, 1)


def test_the_window_is_that_of_the_sliding_layers(spec: ModelSpec) -> None:
    assert spec.window_tokens == 32
    assert replace(spec, layers=(spec.kinds[1],)).window_tokens is None


def test_equal_specifications_are_one_key(spec: ModelSpec) -> None:
    assert hash(spec) == hash(spec_from_config(tiny_config()))


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("layers", {"kv_heads": 2}),
        ("layers", {"window_tokens": 64}),
        ("heads", {"q_heads": 7}),
        ("heads", {"head_dim": 15}),
    ],
)
def test_layers_that_cannot_share_a_pool_or_split_their_heads_are_refused(
    spec: ModelSpec, field: str, change: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError) as refused:
        changed = replace(spec.layers[0], **change)
        layers = (spec.layers[0], changed) if field == "layers" else (changed,)
        replace(spec, layers=layers)
    assert refused.value.field == field


def test_a_model_without_layers_has_no_pattern(spec: ModelSpec) -> None:
    with pytest.raises(ConfigError):
        _ = replace(spec, layers=()).pattern
