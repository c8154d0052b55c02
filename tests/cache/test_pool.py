"""Device pools by themselves: slots in, slots out, and what poison may touch."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from radixledger.cache.pool import POISON, PagedPools, Pool, PoolShape, empty_pool, poison, read, write

SHAPE = PoolShape(layers=3, pages=5, page_size=4, kv_heads=2, k_dim=8, v_dim=6)
LAYER = jnp.int32(1)


@pytest.fixture
def pool() -> Pool:
    return empty_pool(SHAPE, jnp.float32)


def rows(count: int, dim: int) -> jax.Array:
    return jnp.arange(1, count * 2 * dim + 1, dtype=jnp.float32).reshape(count, 2, dim)


def test_an_empty_pool_is_zero_and_has_a_page_that_nobody_uses(pool: Pool) -> None:
    assert pool.k.shape == (3, 24, 2, 8)
    assert pool.v.shape == (3, 24, 2, 6)
    assert not np.asarray(pool.k).any()


def test_a_written_token_is_read_from_its_slot(pool: Pool) -> None:
    slots = np.array([7, 20, 4], np.int32)
    k, v = rows(3, 8), rows(3, 6)
    read_k, read_v = read(write(pool, LAYER, slots, k, v), LAYER, np.array([[4, 7], [20, 5]], np.int32))
    np.testing.assert_array_equal(read_k, jnp.stack([jnp.stack([k[2], k[0]]), jnp.stack([k[1], k[0] * 0])]))
    np.testing.assert_array_equal(read_v[0], jnp.stack([v[2], v[0]]))


def test_a_write_touches_one_layer_and_its_slots(pool: Pool) -> None:
    written = np.asarray(write(pool, LAYER, np.array([9, 10], np.int32), rows(2, 8), rows(2, 6)).k)
    assert np.argwhere(written.any(axis=(2, 3))).tolist() == [[1, 9], [1, 10]]


def test_a_slot_past_the_pool_is_written_nowhere(pool: Pool) -> None:
    written = write(pool, LAYER, np.array([24, 24], np.int32), rows(2, 8), rows(2, 6))
    assert not any(np.asarray(x).any() for x in written)


def test_poison_fills_whole_pages_of_every_layer_and_is_finite() -> None:
    """E8: 0 * 1e4 is 0 behind a mask, where 0 * NaN would not be."""
    pools = PagedPools(empty_pool(SHAPE, jnp.float32), empty_pool(SHAPE, jnp.bfloat16))
    full, swa = poison(pools, [2], [1, 5], page_size=4)
    for pool, pages in ((full, [2]), (swa, [1, 5])):
        for x in pool:
            hit = np.asarray(x).astype(np.float32).reshape(3, 6, 4, 2, -1)
            others = [page for page in range(6) if page not in pages]
            np.testing.assert_allclose(hit[:, pages], POISON, rtol=1e-2)
            assert not hit[:, others].any()


def test_poison_spares_the_reserved_page_and_knows_the_last() -> None:
    for page in (0, -1, 6):
        pools = PagedPools(empty_pool(SHAPE, jnp.float32), empty_pool(SHAPE, jnp.float32))
        with pytest.raises(ValueError, match=f"page {page} of the FULL pool: usable pages are 1 to 5"):
            poison(pools, [page], [], page_size=4)
