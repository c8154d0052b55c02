"""The reference implementation's own files and its own greedy ids (tests/golden/make_gemma4_golden.py)."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from radixledger.tools.serve.loader import Checkpoint, load_checkpoint
from radixledger.tools.serve.tiny import Tiny, tiny_tensors

from .desk import Desk

FOLDER = Path(__file__).parents[2] / "golden" / "gemma4_tiny"
GOLDEN: dict[str, Any] = json.loads((FOLDER / "golden.json").read_text("utf-8"))
CASES: list[dict[str, Any]] = GOLDEN["cases"]


@pytest.fixture(scope="module")
def golden() -> Checkpoint:
    return load_checkpoint(FOLDER, dtype="float32")


@pytest.mark.parametrize("page_size", [1, 16, 128])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{len(case['prompt'])} tokens")
def test_greedy_ids_are_those_of_the_reference(
    golden: Checkpoint, case: dict[str, Any], page_size: int
) -> None:
    prompt = np.array(case["prompt"], np.int32)
    made = Desk.new(golden, page_size).generate(0, prompt, len(case["new_ids"]))
    assert made == case["new_ids"]


def test_first_logits_are_those_of_the_reference_but_for_rounding(golden: Checkpoint) -> None:
    """The margin is a tenth of the smallest gap between a first and a second id, so equal ids are no luck."""
    wanted = np.load(FOLDER / "first_logits.npy")
    desk = Desk.new(golden, 16)
    found = [desk.logits((0, 0, np.array(case["prompt"], np.int32)))[0] for case in CASES]
    margin = min(case["smallest_gap"] for case in CASES) / 10
    np.testing.assert_allclose(np.stack(found), wanted, rtol=0, atol=margin)


def test_the_fixture_says_something() -> None:
    assert all(len(set(case["new_ids"])) >= 10 for case in CASES)
    assert sorted(len(case["prompt"]) for case in CASES) == [5, 40, 100, 256]


def test_the_reference_saved_the_weights_that_integers_make(golden: Checkpoint) -> None:
    """Each weight is exact in bfloat16, so that the round through another library lost nothing."""
    tensors = tiny_tensors(Tiny(seed=GOLDEN["made_with"]["seed"]))
    np.testing.assert_array_equal(golden.params.embed, tensors["model.embed_tokens.weight"])
    last = golden.params.kinds[1]
    assert last.v is None
    np.testing.assert_array_equal(last.down[0], tensors["model.layers.5.mlp.down_proj.weight"].T)
