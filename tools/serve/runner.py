"""Runs steps of one rank on the device: holds its pools, packs, dispatches, brings the next ids back.

The runner knows page tables and nothing of the cache that made them: two routes that hand it the same tables get the
same bits. Runners of equal shape share weights and compiled programs; one stands for each data-parallel rank.

Rule: `step` either refuses before anything is written, or has written K and V of all its tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
from jax.experimental.compilation_cache.compilation_cache import reset_cache
from numpy.typing import NDArray

from radixledger.cache.pool import PagedPools, Pool, PoolShape, empty_pool, poison
from radixledger.tools.serve.batch import Batch, Geometry, Span, StepTooLarge
from radixledger.tools.serve.layers import TILE_ROWS
from radixledger.tools.serve.model import program_of
from radixledger.tools.serve.packing import pack
from radixledger.tools.serve.params import Params
from radixledger.tools.serve.spec import ModelSpec

__all__ = ["Runner", "Span", "Stepped", "compile_cache"]

Ints = NDArray[np.int32]
_Results = tuple[jax.typing.ArrayLike, jax.typing.ArrayLike]
"""Ids and logits, still where they were made."""


class Stepped(NamedTuple):
    """A step's results on the host: next ids int32 [spans], logits float32 [spans, vocab]."""

    ids: Ints
    logits: NDArray[np.float32]


class Runner:
    """One rank's model and pools.

    Parameters
    ----------
    spec, params
        The model; `params` may be shared between runners.
    page_size
        Tokens of a page: a divisor of 64, or 64 and more.
    full_pages, swa_pages
        Usable pages of each pool, numbered from 1; page 0 is reserved.
    context_pages
        Pages that the longest sequence can have.
    max_spans, max_tokens
        What one step can hold; `max_tokens` is rounded up to whole tiles.
    buckets
        Smaller sizes to compile as well, for decode steps of a wide model. Loops run over live tiles only, so padding
        costs a few copies, and one program for all steps is the default.

    Raises
    ------
    ValueError
        `page_size` does not fit into strips, or a size is below 1 (a pool without layers may have no pages).
    """

    def __init__(
        self,
        spec: ModelSpec,
        params: Params,
        *,
        page_size: int,
        full_pages: int,
        swa_pages: int,
        context_pages: int,
        max_spans: int = 32,
        max_tokens: int = 256,
        buckets: Sequence[int] = (),
    ) -> None:
        self.spec, self.params = spec, params
        self.sizes = Geometry(
            page_size=page_size,
            full_pages=_pages(spec, "full", full_pages),
            swa_pages=_pages(spec, "swa", swa_pages),
            context_pages=context_pages,
            max_spans=max_spans,
            window_tokens=spec.window_tokens,
            vocab_size=spec.vocab_size,
        )
        self.buckets = tuple(sorted({_whole_tiles(tokens) for tokens in (*buckets, max_tokens)}))
        self.pools = PagedPools(
            self._empty("full", self.sizes.full_pages), self._empty("swa", self.sizes.swa_pages)
        )
        self._program = program_of(spec, page_size)

    def _empty(self, pool: str, pages: int) -> Pool:
        stored = [layer for layer in self.spec.layers if layer.pool == pool]
        heads, dim = (stored[0].kv_heads, stored[0].head_dim) if stored else (1, 1)
        shape = PoolShape(len(stored), pages, self.sizes.page_size, heads, dim, dim)
        return empty_pool(shape, self.params.embed.dtype)

    @property
    def max_tokens(self) -> int:
        """The most tokens that one step can hold, over all its spans."""
        return self.buckets[-1]

    @property
    def max_spans(self) -> int:
        """The most spans that one step can hold."""
        return self.sizes.max_spans

    def step(self, spans: Sequence[Span], full_table: Ints, swa_table: Ints) -> Ints:
        """Run one step, prefill and decode mixed; return the greedy next id after each span's last token.

        full_table and swa_table are int32 [rows, pages]: the page of each row's page number, 0 where it is not
        resident. Position p of a row lies in slot `table[row, p // page_size] * page_size + p % page_size`; K and V of
        every span's tokens are written there, and read back from there for whatever positions came before. An SWA
        page must be resident if a position in it is within the window of a token of the span (E10); a FULL page always.
        Returns int32 [spans]. No spans, no work.

        Raises
        ------
        StepTooLarge
            More spans, tokens or positions than the runner holds; see `max_spans`, `max_tokens`.
        PageNotResident
            A page that the step needs is missing from its table.
        StepRefused
            A span is empty, or a row or token id is out of range.
        """
        return np.asarray(self._run(spans, full_table, swa_table)[0])[: len(spans)]

    def step_logits(self, spans: Sequence[Span], full_table: Ints, swa_table: Ints) -> Stepped:
        """Do as `step` (the same program), and bring the logits to the host too."""
        ids, logits = self._run(spans, full_table, swa_table)
        return Stepped(np.asarray(ids)[: len(spans)], np.asarray(logits)[: len(spans)])

    def poison(self, full_pages: Sequence[int], swa_pages: Sequence[int]) -> None:
        """Fill freed pages with a large finite number, so that a step which still reads them is found out (E8)."""
        self.pools = poison(self.pools, full_pages, swa_pages, page_size=self.sizes.page_size)

    def compile(self) -> None:
        """Compile every bucket now, so that no step waits for it; the pools stay as they are."""
        for bucket in self.buckets:
            self._dispatch(Batch.idle(self.sizes, bucket))

    def _run(self, spans: Sequence[Span], full_table: Ints, swa_table: Ints) -> _Results:
        if not spans:
            return np.zeros(0, np.int32), np.zeros((0, self.spec.vocab_size), np.float32)
        tokens = sum(len(span.tokens) for span in spans)
        bucket = next((x for x in self.buckets if x >= tokens), None)
        if bucket is None:
            raise StepTooLarge("tokens", asked=tokens, limit=self.max_tokens)
        return self._dispatch(pack(spans, full_table, swa_table, self.sizes, bucket))

    def _dispatch(self, batch: Batch) -> _Results:
        ids, logits, self.pools = self._program(self.params, self.pools, batch)
        return ids, logits


def compile_cache(folder: Path) -> None:
    """Keep compiled programs in `folder` for later processes: seconds a bucket become tenths.

    The folder is created when needed and may be deleted at any time; what is already compiled is not written to it.
    """
    jax.config.update("jax_compilation_cache_dir", str(folder))  # type: ignore[no-untyped-call]
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)  # type: ignore[no-untyped-call]
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)  # type: ignore[no-untyped-call]
    # A process that has compiled before would go on without a cache.
    reset_cache()


def _pages(spec: ModelSpec, pool: str, pages: int) -> int:
    """Return how many pages a pool has: none where the model has no such layers."""
    if all(layer.pool != pool for layer in spec.layers):
        return 0
    if pages < 1:
        raise ValueError(f"{pool}_pages {pages}: at least 1 is needed, for the model has such layers")
    return pages


def _whole_tiles(tokens: int) -> int:
    return -(-max(tokens, 1) // TILE_ROWS) * TILE_ROWS
