"""The forward against mathematics in float64: for the built-in model, and for layers that say otherwise."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from radixledger.tools.serve.loader import Checkpoint, params_from
from radixledger.tools.serve.spec import ModelSpec, RopeSpec
from radixledger.tools.serve.tiny import Tiny, load_tiny, made_tensors

from .desk import Desk, ids_of
from .oracle import logits_of


def everything_else(spec: ModelSpec) -> ModelSpec:
    """Every choice that the built-in model does not make, in a pattern that repeats."""
    sliding, full = spec.kinds
    other: dict[str, Any] = {
        "qk_norm": False,
        "v_norm": False,
        "sandwich": False,
        "scalar": False,
        "scale": 0.25,
    }
    sliding = replace(sliding, window_tokens=20, q_heads=4, kv_heads=4, **other)
    full = replace(full, k_eq_v=False, rope=RopeSpec(1e5, 16, 8.0), mlp_width=96, **other)
    return replace(
        spec,
        layers=(sliding, sliding, full) * 2,
        norm_offset=1.0,
        activation="silu",
        embed_scale=1.0,
        logit_softcap=None,
        tied=False,
    )


SHAPES: dict[str, Callable[[ModelSpec], ModelSpec]] = {
    "gemma 4": lambda spec: spec,
    "everything else": everything_else,
    "no full layer": lambda spec: replace(spec, layers=spec.layers[:2]),
    "no sliding layer": lambda spec: replace(spec, layers=spec.layers[5:]),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_logits_are_those_of_plain_mathematics(tiny: Checkpoint, shape: str) -> None:
    """Within float32: the softmax is peaked, so rounding grows to some 1e-4 over the layers."""
    spec = SHAPES[shape](tiny.spec)
    tensors = made_tensors(spec, 3)
    model = Checkpoint(
        spec, params_from({name: partial(tensors.__getitem__, name) for name in tensors}, spec)
    )
    ids = ids_of(20, 150)
    wanted = logits_of(spec, tensors, ids)
    desk = Desk.new(model, 16)
    for start, end in ((0, 90), (90, 91), (91, 150)):
        found = desk.logits((0, start, ids[start:end]))[0]
        np.testing.assert_allclose(found, wanted[end - 1], rtol=0, atol=1e-3)


def test_a_deep_model_is_the_pattern_repeated(tiny: Checkpoint) -> None:
    """Twelve layers run in a loop over two periods: logits are those of twelve layers in a row."""
    deep = Tiny(layers=12)
    model = load_tiny(deep)
    assert model.spec.pattern == (tiny.spec.pattern[0], 2)
    ids = ids_of(21, 60)
    wanted = logits_of(model.spec, made_tensors(model.spec, deep.seed), ids)[-1]
    found = Desk.new(model, 16).logits((0, 0, ids))[0]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-3)


def test_bfloat16_stays_near_the_mathematics() -> None:
    """As near as the reference does: its logits correlate by 0.97 to 0.99 on prompts of ten ids."""
    model, tensors = load_tiny(dtype="bfloat16"), made_tensors(load_tiny().spec, 1)
    desk, likeness = Desk.new(model, 16), []
    for seed in range(6):
        ids = ids_of(seed, 10)
        wanted = logits_of(model.spec, tensors, ids)[-1]
        likeness.append(float(np.corrcoef(desk.logits((0, 0, ids))[0], wanted)[0, 1]))
    assert np.mean(likeness) > 0.97, likeness


def test_equal_logits_give_the_lowest_id(tiny: Checkpoint) -> None:
    """E7: two ids are given the winner's embedding, one below it and one above; neither is in the prompt."""
    ids = ids_of(23, 30)
    best = int(Desk.new(tiny, 16).step((0, 0, ids))[0])
    below, above = (int(x) for x in (best - 1, best + 1))
    assert not {below, best, above} & set(ids.tolist())
    embed = tiny.params.embed.at[above].set(tiny.params.embed[best])
    desk = Desk.new(Checkpoint(tiny.spec, tiny.params._replace(embed=embed)), 16)
    assert int(desk.step((0, 0, ids))[0]) == best
    embed = embed.at[below].set(tiny.params.embed[best])
    desk = Desk.new(Checkpoint(tiny.spec, tiny.params._replace(embed=embed)), 16)
    assert int(desk.step((0, 0, ids))[0]) == below
