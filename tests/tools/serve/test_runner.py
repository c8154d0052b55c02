"""A runner as its caller sees it: limits, sharing, refusals that change nothing, compiling ahead and on disk."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax.experimental.compilation_cache.compilation_cache import reset_cache

from radixledger.tools.serve.batch import PageNotResident, StepTooLarge
from radixledger.tools.serve.loader import Checkpoint
from radixledger.tools.serve.model import program_of
from radixledger.tools.serve.runner import Runner, Span, compile_cache

from .desk import Desk, ids_of


def bits(runner: Runner) -> bytes:
    return b"".join(np.asarray(x).tobytes() for x in jax.tree.leaves(runner.pools))


def test_a_step_returns_one_int32_id_for_each_span(tiny: Checkpoint) -> None:
    desk = Desk.new(tiny, 16)
    ids = desk.step((2, 0, ids_of(1, 20)), (0, 0, ids_of(2, 7)))
    assert ids.dtype == np.int32
    assert ids.shape == (2,)
    stepped = desk.runner.step_logits([Span(1, 0, ids_of(1, 20))], desk.full, desk.swa)
    assert stepped.logits.shape == (1, 512)
    assert stepped.ids[0] == ids[0] == stepped.logits[0].argmax()


def test_no_spans_are_no_work(tiny: Checkpoint) -> None:
    desk = Desk.new(tiny, 16)
    assert desk.step().shape == (0,)
    assert desk.logits().shape == (0, 512)


def test_limits_are_told_and_kept(tiny: Checkpoint) -> None:
    desk = Desk.new(tiny, 16)
    assert (desk.runner.max_tokens, desk.runner.max_spans) == (256, 32)
    with pytest.raises(StepTooLarge) as refused:
        desk.step((0, 0, ids_of(1, 200)), (1, 0, ids_of(2, 57)))
    assert (refused.value.asked, refused.value.limit) == (257, 256)
    assert desk.step((0, 0, ids_of(1, 200)), (1, 0, ids_of(2, 56))).shape == (2,)


@pytest.mark.parametrize("pool", ["full_pages", "swa_pages"])
def test_a_pool_that_the_model_needs_has_a_page(tiny: Checkpoint, pool: str) -> None:
    sizes: dict[str, Any] = {"page_size": 16, "full_pages": 4, "swa_pages": 4, "context_pages": 4, pool: 0}
    with pytest.raises(ValueError, match=f"{pool} 0"):
        Runner(tiny.spec, tiny.params, **sizes)


def test_more_spans_than_a_tile_holds_fit(tiny: Checkpoint) -> None:
    """Twenty sequences share one prompt's pages but for their own last: each answers as it would alone."""
    desk, prompt = Desk.new(tiny, 16), ids_of(3, 49)
    wanted = desk.step((0, 0, prompt))[0]
    full, swa = (np.repeat(table[:1], 20, axis=0) for table in (desk.full, desk.swa))
    full[:, 3], swa[:, 3] = desk.full[1:3, :10].ravel(), desk.swa[1:3, :10].ravel()
    spans = [Span(row, 48, prompt[48:]) for row in range(20)]
    assert desk.runner.step(spans, full, swa).tolist() == [wanted] * 20


def test_a_refused_step_leaves_the_pools_as_they_were(tiny: Checkpoint) -> None:
    desk = Desk.new(tiny, 16)
    desk.step((0, 0, ids_of(4, 50)))
    before = bits(desk.runner)
    desk.swa[0, 2] = 0
    with pytest.raises(PageNotResident):
        desk.step((1, 0, ids_of(5, 20)), (0, 50, ids_of(6, 1)))
    assert bits(desk.runner) == before


def test_compiling_ahead_leaves_the_pools_as_they_were(tiny: Checkpoint) -> None:
    desk = Desk.new(tiny, 16)
    desk.step((0, 0, ids_of(7, 50)))
    before = bits(desk.runner)
    desk.runner.compile()
    assert bits(desk.runner) == before


def test_a_step_writes_its_own_slots_and_no_others(tiny: Checkpoint) -> None:
    """Page 0 stays zero, whatever is padded (E8)."""
    desk = Desk.new(tiny, 16)
    desk.step((0, 0, ids_of(8, 37)))
    for table, pool in ((desk.full, desk.runner.pools.full), (desk.swa, desk.runner.pools.swa)):
        written = set(desk.slots(table[0], np.arange(37)).tolist())
        for rows in jax.tree.leaves(pool):
            touched = np.flatnonzero(np.asarray(rows).any(axis=(0, 2, 3)))
            assert set(touched.tolist()) == written


def test_pools_are_donated(tiny: Checkpoint) -> None:
    desk = Desk.new(tiny, 16)
    old = desk.runner.pools
    desk.step((0, 0, ids_of(9, 3)))
    assert all(x.is_deleted() for x in jax.tree.leaves(old))


def test_runners_of_equal_shape_share_one_program(tiny: Checkpoint) -> None:
    one, two = Desk.new(tiny, 16), Desk.new(tiny, 16)
    one.step((0, 0, ids_of(10, 3)))
    program: Any = program_of(tiny.spec, 16)
    compiled = program._cache_size()
    two.step((0, 0, ids_of(10, 3)))
    one.step((0, 0, ids_of(10, 100)), (1, 0, ids_of(11, 30)))
    assert program._cache_size() == compiled


def test_spoilt_pages_change_ids_only_where_they_are_read(tiny: Checkpoint) -> None:
    """E8: the poison that other tests rely on is seen when it should be."""
    desk, ids = Desk.new(tiny, 16), ids_of(12, 100)
    desk.prefill(0, ids)
    good = desk.decode(0, 100, 5, 4)
    desk.runner.poison(desk.full[1].tolist(), [*desk.swa[1].tolist(), int(desk.swa[0, 0])])
    assert desk.decode(0, 100, 5, 4) == good
    desk.runner.poison([int(desk.full[0, 0])], [])
    assert desk.decode(0, 100, 5, 4) != good


def test_a_page_that_does_not_exist_cannot_be_spoilt(tiny: Checkpoint) -> None:
    runner = Desk.new(tiny, 16).runner
    for page in (0, runner.sizes.swa_pages + 1):
        with pytest.raises(ValueError, match=f"page {page} of the SWA pool"):
            runner.poison([], [page])


def test_compiled_programs_are_kept_in_a_folder(tiny: Checkpoint, tmp_path: Path) -> None:
    settings = "jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs"
    before = {name: getattr(jax.config, name) for name in settings}
    try:
        compile_cache(tmp_path / "programs")
        Runner(tiny.spec, tiny.params, page_size=16, full_pages=9, swa_pages=9, context_pages=4).compile()
        assert list((tmp_path / "programs").iterdir())
    finally:
        for name, value in before.items():
            jax.config.update(name, value)  # type: ignore[no-untyped-call]
        reset_cache()
