"""One request that grows on a rank of its own, in either key mode: what it caches, gives back and leaves to others.

Pages come from the rank's pools through its own commands, aligned and mapped pairwise as a server's are (R272).
"""

import numpy as np
from numpy.typing import NDArray

from radixledger.cache.laws.invariants import broken_laws
from radixledger.cache.rank import RankCache
from radixledger.journal.moves import pages_of
from radixledger.journal.units import Pages, RequestId

from ..machine import opened
from ..model_tree import Shape
from ..witnesses import Tape


class Sliding:
    """A request whose token at position i is i; `tokens` of them are computed, `protected` are the tree's."""

    def __init__(self, shape: Shape, tokens: int, protected: int = 0, *, rank: RankCache | None = None):
        self.shape = shape
        self.tape = Tape(opened(shape))
        self.rank = rank or RankCache(self.tape.opened, self.tape)
        self.request: RequestId = self.rank.admit("r", b"", max(tokens, 1)).request
        self.extend(tokens)
        if protected:
            assert self.rank.cache_unfinished(self.request, self.key(protected + shape.ahead)) == protected

    @property
    def length(self) -> int:
        return int(self.rank.state.rows.length[self.rank.state.row_of(self.request)])

    @property
    def cursor(self) -> int:
        return int(self.rank.state.rows.cursor[self.rank.state.row_of(self.request)])

    def key(self, tokens: int) -> bytes:
        """The key of the first so many tokens, in the rank's own way."""
        return self.rank.key_of(text(tokens))

    def extend(self, tokens: int) -> None:
        if tokens:
            self.rank.extend(np.array([self.request], np.int64), np.array([tokens], np.int32))

    def decode(self, tokens: int, *, eager: bool = False) -> None:
        """One token after the other, each after a reclaim; `eager`: with the largest `pre` that may be asked for."""
        one = np.array([self.request], np.int64)
        for _ in range(tokens):
            if eager:
                self.rank.reclaim(self.request, self.length)
            else:
                self.rank.reclaim_batch(one)
            self.rank.decode(one)

    def row(self, first: int, stop: int) -> Pages:
        state = self.rank.state
        return Pages(state.rows.full_table[state.row_of(self.request), first:stop].tobytes())

    def mapped(self, first: int, stop: int) -> list[bool]:
        """Which page positions of the row have SWA."""
        swa = self.rank.translate(self.row(first, stop), require_mapped=False)
        return [page != 0 for page in pages_of(swa).tolist()]

    def check(self) -> None:
        assert list(broken_laws(self.rank.state)) == []


def text(tokens: int) -> NDArray[np.int32]:
    return np.arange(tokens, dtype=np.int32)


def roomy(page: int, window: int, tokens: int, mode: str = "raw", formula: str = "rfc") -> Shape:
    """A shape whose pools hold a request of so many tokens twice."""
    pages = 2 * (tokens // page + 2)
    return Shape(page, window, pages, pages, row_pages=pages, formula=formula, ahead=int(mode == "bigram"))
