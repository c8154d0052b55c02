"""A desk to work at: a runner of one tiny rank, with page tables dealt by hand, and no cache anywhere.

Runners are made anew for each test and cost nothing: equal shapes share what is compiled.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import numpy as np
from numpy.typing import NDArray

from radixledger.tools.serve.loader import Checkpoint
from radixledger.tools.serve.runner import Runner, Span

ROWS = 4
CONTEXT_TOKENS = {1: 320, 16: 320, 64: 320, 128: 384, 256: 512}
"""By page size: whole pages, and more than one of them."""
PAGES = (1, 16, 128, 256)
Ints = NDArray[np.int32]


def ids_of(seed: int, count: int, vocab: int = 512) -> Ints:
    """Ids that look like nothing in particular."""
    return np.random.default_rng(seed).integers(3, vocab, count).astype(np.int32)


@dataclass
class Desk:
    """A runner, and one row of page tables for each of four sequences."""

    runner: Runner
    full: Ints
    swa: Ints

    @classmethod
    def new(cls, model: Checkpoint, page_size: int, *, seed: int = 0, buckets: Sequence[int] = ()) -> "Desk":
        """Deal every page to some row, in an order that `seed` shuffles, differently in the two pools."""
        context = CONTEXT_TOKENS[page_size] // page_size
        pages = ROWS * context + 1
        runner = Runner(
            model.spec,
            model.params,
            page_size=page_size,
            full_pages=pages,
            swa_pages=pages,
            context_pages=context,
            buckets=buckets,
        )
        deal = np.random.default_rng(seed)
        full, swa = (deal.permutation(pages)[1:].reshape(ROWS, context) + 1 for _ in range(2))
        return cls(runner, full.astype(np.int32), swa.astype(np.int32))

    def step(self, *spans: tuple[int, int, Ints]) -> Ints:
        return self.runner.step([Span(*span) for span in spans], self.full, self.swa)

    def logits(self, *spans: tuple[int, int, Ints]) -> NDArray[np.float32]:
        return self.runner.step_logits([Span(*span) for span in spans], self.full, self.swa).logits

    def prefill(self, row: int, ids: Ints, cuts: Sequence[int] = ()) -> bytes:
        """Compute `ids` in chunks that end at `cuts` and at the end; return the bits of the last logits."""
        edges = (*cuts, len(ids))
        bits = [
            self.logits((row, start, ids[start:end])).tobytes()
            for start, end in zip((0, *cuts), edges, strict=True)
        ]
        return bits[-1]

    def generate(self, row: int, ids: Ints, count: int) -> list[int]:
        """Return `count` greedy ids after `ids`, which are computed whole."""
        made = [int(self.step((row, 0, ids))[0])]
        return made + self.decode(row, len(ids), made[0], count - 1)

    def decode(self, row: int, position: int, last: int, count: int) -> list[int]:
        """Return `count` greedy ids after the id `last`, which stands at `position`."""
        made: list[int] = []
        for place in range(position, position + count):
            last = int(self.step((row, place, np.array([last], np.int32)))[0])
            made.append(last)
        return made

    def kept(self, row: int, start: int, end: int) -> bytes:
        """Return the bits of K and V of every layer at positions [start, end) of a row."""
        bits = []
        for table, pool in ((self.full, self.runner.pools.full), (self.swa, self.runner.pools.swa)):
            slots = self.slots(table[row], np.arange(start, end))
            bits += [np.asarray(x)[:, slots].tobytes() for x in jax.tree.leaves(pool)]
        return b"".join(bits)

    def slots(self, pages: Ints, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        size = self.runner.sizes.page_size
        return pages[positions // size].astype(np.int64) * size + positions % size
