"""The built-in model: the same everywhere, exact in both precisions, and with something to say."""

import zlib

import ml_dtypes
import numpy as np
import pytest

from radixledger.tools.serve.loader import Checkpoint
from radixledger.tools.serve.tiny import Tiny, load_tiny, tiny_tensors

from .desk import Desk, ids_of


def test_weights_are_the_same_bits_on_every_machine() -> None:
    """Integers times powers of two: nothing here may depend on a library's random stream or its rounding."""
    checksum = 0
    for name, tensor in sorted(tiny_tensors().items()):
        checksum = zlib.crc32(tensor.astype("<f4").tobytes(), zlib.crc32(name.encode(), checksum))
    assert checksum == 729_069_478


def test_every_weight_is_exact_in_bfloat16() -> None:
    for name, tensor in tiny_tensors().items():
        np.testing.assert_array_equal(tensor, tensor.astype(ml_dtypes.bfloat16).astype(np.float32), name)


def test_matrices_have_the_spread_of_a_fresh_model() -> None:
    for name, tensor in tiny_tensors().items():
        if tensor.ndim == 2:
            spread = float(tensor.std() * tensor.shape[1] ** 0.5)
            assert 0.7 < spread < 1.5, name
            assert abs(float(tensor.mean())) < 0.1 * spread, name


def test_names_and_seeds_give_different_weights() -> None:
    one, two = tiny_tensors(), tiny_tensors(Tiny(seed=2))
    gate, up = "model.layers.0.mlp.gate_proj.weight", "model.layers.0.mlp.up_proj.weight"
    assert (one[gate] != one[up]).mean() > 0.9
    assert (one[gate] != two[gate]).mean() > 0.9


@pytest.mark.parametrize("length", [5, 40, 100, 256])
def test_outputs_are_varied(tiny: Checkpoint, length: int) -> None:
    """A model that answers one id to everything would prove nothing."""
    made = Desk.new(tiny, 16).generate(0, ids_of(length, length), 64)
    assert len(set(made)) >= 10


def test_sizes_may_be_chosen() -> None:
    chosen = Tiny(window_tokens=100, vocab_size=384, hidden=48, layers=3)
    spec, params = load_tiny(chosen, dtype="bfloat16")
    assert (spec.window_tokens, len(spec.layers), spec.layers[-1].pool) == (100, 3, "full")
    assert params.embed.shape == (384, 48)
