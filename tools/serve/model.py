"""One forward for every family: it reads the specification and decides nothing.

Equal layers that follow each other run in a loop, and so do repeated patterns of them: a program holds one body for
each run in the pattern, and compiles as fast for 60 layers as for 6. (A switch over kinds inside one loop would be
shorter, and copies both pools at every layer: XLA does not write through a conditional in place.)

Rule 1: the pools are carried through loops and written by scatters only, so that a step costs what it writes.
Rule 2: every dense product goes through `map_tiles`, every attention through `attend`; what stands between them is
element-wise or moves rows, and cannot mix them (E1).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from radixledger.cache.pool import PagedPools, write
from radixledger.tools.serve.attention import Held, attend
from radixledger.tools.serve.batch import Batch, Paging
from radixledger.tools.serve.layers import Rows, head, map_tiles, project_qkv, transform
from radixledger.tools.serve.params import LayerParams, Params
from radixledger.tools.serve.spec import ModelSpec

__all__ = ["Output", "Program", "program_of"]


class Output(NamedTuple):
    """What one step gives: the spans' next ids, the logits they were chosen from, and the pools it wrote."""

    ids: jax.Array
    """int32 [S]; rows beyond the step's spans mean nothing"""
    logits: jax.Array
    """float32 [S, vocab]"""
    pools: PagedPools


Program = Callable[[Params, PagedPools, Batch], Output]


@cache
def program_of(spec: ModelSpec, page_size: int) -> Program:
    """Return the step of a model, compiled once for each shape of its arguments; the pools are donated.

    Runners of equal specification share it, and so share what is compiled.
    """
    return jax.jit(partial(_forward, spec, page_size), donate_argnums=1)


class _Step(NamedTuple):
    """What stays the same from layer to layer."""

    spec: ModelSpec
    page_size: int
    params: Params
    batch: Batch


class _Place(NamedTuple):
    """Where one layer stands: among its kind's weights, and in its pool; int32, traced."""

    weights: jax.Array
    pool: jax.Array


_Carry = tuple[jax.Array, PagedPools]


def _forward(spec: ModelSpec, page_size: int, params: Params, pools: PagedPools, batch: Batch) -> Output:
    h = params.embed[batch.ids] * jnp.asarray(spec.embed_scale, params.embed.dtype)
    h, pools = _run_layers(_Step(spec, page_size, params, batch), (h, pools))
    logits = _logits(spec, params, h, batch)
    return Output(jnp.argmax(logits, axis=-1).astype(jnp.int32), logits, pools)


def _run_layers(step: _Step, carry: _Carry) -> _Carry:
    spec = step.spec
    weights, within = (jnp.asarray(np.array(x, np.int32)) for x in (spec.place_in_kind, spec.place_in_pool))
    runs, repeats = spec.pattern
    period = len(spec.layers) // repeats

    def body(kind: int, first: jax.Array, number: jax.Array, carry: _Carry) -> _Carry:
        return _layer(step, kind, _Place(weights[first + number], within[first + number]), *carry)

    def pattern(number: jax.Array, carry: _Carry) -> _Carry:
        first = number * period
        for kind, count in runs:
            carry = lax.fori_loop(0, count, partial(body, kind, first), carry)
            first += count
        return carry

    done: _Carry = lax.fori_loop(0, repeats, pattern, carry)
    return done


def _layer(step: _Step, kind: int, place: _Place, h: jax.Array, pools: PagedPools) -> _Carry:
    """Run one layer over the whole step: project, write K and V, attend, transform."""
    spec, layer, batch = step.spec, step.spec.kinds[kind], step.batch
    params: LayerParams = jax.tree.map(lambda x: x[place.weights], step.params.kinds[kind])
    paging: Paging = getattr(batch, layer.pool)

    def project(h: jax.Array, positions: jax.Array) -> Rows:
        return project_qkv(spec, layer, params, h, positions)

    def finish(h: jax.Array, attended: jax.Array) -> Rows:
        return (transform(spec, layer, params, h, attended),)

    q, k, v = map_tiles(project, (h, batch.positions), batch.live.token_tiles)
    pool = write(getattr(pools, layer.pool), place.pool, paging.slots, k, v)
    attended = attend(
        layer, q, Held(pool, place.pool, paging.pages, step.page_size), batch.queries, paging.strips
    )
    (h,) = map_tiles(finish, (h, attended), batch.live.token_tiles)
    return h, pools._replace(**{layer.pool: pool})


def _logits(spec: ModelSpec, params: Params, h: jax.Array, batch: Batch) -> jax.Array:
    weights = params.embed if params.head is None else params.head

    def tile(h: jax.Array) -> tuple[jax.Array]:
        return (head(spec, weights, params.final_norm, h),)

    (logits,) = map_tiles(tile, (h[batch.last_tokens],), batch.live.span_tiles)
    return logits
