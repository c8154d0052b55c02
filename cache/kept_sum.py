"""A sum that the digest needs, of an array that is written page by page: worked out when somebody asks, not with every write.

Whoever writes tells which pages; a digest is asked for every few thousand events, and most of those pages have changed
many times by then. Weights are worked out with it: kept, they would take as much memory as what they weigh. Rule: the
cost of asking grows with what was told since the last time, never with the array, unless more was told than the array
holds or than is kept.
"""

from collections import deque

import numpy as np
from numpy.typing import NDArray

from radixledger.cache.weights import MASK, weights_at

_TOLD_MOST = 1 << 12
"""So many writes are kept; where there were more, any place may have changed."""

_AT_ONCE = 1 << 15
"""Of so many places at a time the whole array is looked at, so that a large one needs no more memory for it."""

_TOLD_BYTES = 1 << 12
"""Of more pages than so many bytes hold nothing is kept: they are looked at when they are written."""

Values = NDArray[np.int64] | NDArray[np.int32]


class KeptSum:
    """Sum of weight x change over the places of `values`, modulo 2^64: 0 for the values that it begins with.

    lane: the number of the lane whose weights it takes.
    told: the pages that were written since it was asked for, packed; the writer's to append a few pages to, more by `tell_many`.
    """

    __slots__ = ("_known", "_lane", "_total", "_values", "told")

    def __init__(self, values: Values, lane: int) -> None:
        self._values, self._lane = values, lane
        self._known = values.copy()
        self._total = 0
        self.told: deque[bytes] = deque(maxlen=_TOLD_MOST)

    def total(self) -> int:
        """The sum, in [0, 2^64)."""
        told = self.told
        if told:
            places = np.frombuffer(b"".join(told), "<u4")
            if len(told) == _TOLD_MOST or places.size >= self._known.size:
                self.look_at_all()
            else:
                self.look_at(_each_once(places[places < self._known.size]))
            told.clear()
        return self._total

    def tell_many(self, pages: bytes, places: NDArray[np.intp]) -> None:
        """These pages, at these places, were written."""
        if len(pages) <= _TOLD_BYTES:
            self.told.append(pages)
        else:
            self.look_at(places)

    def look_at(self, places: NDArray[np.intp]) -> None:
        """These places, each named once, may have changed."""
        now = self._values.take(places)
        steps = now.astype(np.int64) - self._known.take(places)
        self._known[places] = now
        weighed = steps.view(np.uint64) * weights_at(self._lane, places)
        self._total = (self._total + int(np.add.reduce(weighed))) & MASK

    def look_at_all(self) -> None:
        """Every place may have changed."""
        for start in range(0, self._known.size, _AT_ONCE):
            self.look_at(np.arange(start, min(start + _AT_ONCE, self._known.size)))


def _each_once(places: NDArray[np.uint32]) -> NDArray[np.intp]:
    """The places in order. NumPy's own `unique` would load its masked arrays, for this alone."""
    places.sort()
    first = np.ones(places.size, np.bool_)
    np.not_equal(places[1:], places[:-1], out=first[1:])
    return places[first].astype(np.intp)
