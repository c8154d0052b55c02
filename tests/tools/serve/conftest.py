"""One tiny model for every test, under JAX's strictest rules about types and ranks."""

import os
from collections.abc import Iterator

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import pytest

from radixledger.tools.serve.loader import Checkpoint
from radixledger.tools.serve.tiny import load_tiny


@pytest.fixture(scope="session", autouse=True)
def strict_arrays() -> Iterator[None]:
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        yield


@pytest.fixture(scope="session")
def tiny() -> Checkpoint:
    return load_tiny()
