"""The server's rows: for each of its requests the FULL slots of its tokens, as a server of sglang-jax reads them.

`req_to_token` is what the server wrote, slot by slot; what the cache knows of it are pages. Rule: a write is told to
the rank of the row's request before it stands in the table, so that slots which were handed out to nobody get their
owner, and a write over pages that would be lost is refused.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from radixledger.cache.decide_faces import Written
from radixledger.cache.face_rank import FaceRank, as_slots, rank_of
from radixledger.cache.prefix_cache import Req, Slots
from radixledger.cache.refusals import Busy, Refusal
from radixledger.journal.units import Pages


class ReqToTokenPool:
    """Rows for `size` requests of up to `max_context_len` tokens, of all ranks together.

    req_to_token: int32 [size, max_context_len], 0 where nothing was written.
    """

    def __init__(self, size: int, max_context_len: int) -> None:
        if size < 1 or max_context_len < 1:
            raise ValueError(f"{size} rows of {max_context_len} tokens: both are at least 1")
        self.size = size
        self.max_context_len = max_context_len
        self.req_to_token: Slots = np.zeros((size, max_context_len), np.int32)
        self.free_slots = list(range(size))
        self._requests: dict[int, Req] = {}
        self._ranks: Sequence[FaceRank] = ()

    def attach(self, ranks: Sequence[FaceRank]) -> None:
        """From now on writes are told to these ranks; the cache that is built over this pool calls it."""
        if self._requests:
            raise Busy(f"{len(self._requests)} rows were handed out before the cache was built")
        self._ranks = ranks

    def available_size(self) -> int:
        """Rows that are free."""
        return len(self.free_slots)

    def alloc(self, reqs: Sequence[Req]) -> list[int] | None:
        """A row for each request, which keeps one that it has; None, and nothing changed, if there are not so many."""
        waiting = [req for req in reqs if req.req_pool_idx is None]
        if len(waiting) > len(self.free_slots):
            return None
        for req in waiting:
            req.req_pool_idx = self.free_slots.pop(0)
            self._requests[req.req_pool_idx] = req
        return [row for req in reqs if (row := req.req_pool_idx) is not None]

    def free(self, req: Req) -> None:
        """Take a request's row back. Raises Busy while the cache holds pages or a lock for it."""
        row = req.req_pool_idx
        if row is None or self._requests.get(row) is not req:
            raise Refusal(f"request {req.rid!r} has no row to free")
        if self._ranks and rank_of(self._ranks, req.dp_rank).number_of(req) is not None:
            raise Busy(f"request {req.rid!r} is live: cache_finished_req ends it, then its row is free")
        del self._requests[row]
        self.req_to_token[row] = 0
        self.free_slots.append(row)
        req.req_pool_idx = None

    def clear(self) -> None:
        """Take all rows back; raises Busy while a request is live."""
        for req in list(self._requests.values()):
            self.free(req)
        self.free_slots = list(range(self.size))

    def read(self, row: int, count: int) -> Slots:
        """The first `count` slots of a row, a copy."""
        return self.req_to_token[row, :count].copy()

    def write(self, indices: tuple[Any, Any], values: ArrayLike) -> None:
        """Write slots: `(row, slice)`, or `(rows, positions)` with one slot each.

        The first write of a request seats it. Raises Refusal if pages would be lost or are somebody else's,
        ValueError if the slots do not lie in pages as positions do.
        """
        slots = as_slots(values)
        rows, positions = self._places(indices, slots.size)
        if not slots.size:
            return
        if self._ranks:
            for number, here in enumerate(self._ranks):
                mine = [self._rank_number(int(row)) == number for row in rows]
                if any(mine):
                    here.write(self._written(here, rows[mine], positions[mine], slots[mine]))
        self.req_to_token[rows, positions] = slots

    def _places(self, indices: tuple[Any, Any], count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The row and the position of each slot, int64 [n]."""
        row, where = indices
        if isinstance(where, slice):
            start = where.start or 0
            stop = self.max_context_len if where.stop is None else where.stop
            if where.step not in (None, 1) or not 0 <= start <= stop:
                raise ValueError(f"a row is written in one run of positions, not {where}")
            positions = np.arange(start, stop)
            rows = np.full(positions.size, int(row))
        else:
            rows, positions = np.atleast_1d(row).astype(np.int64), np.atleast_1d(where).astype(np.int64)
        if not rows.size == positions.size == count:
            raise ValueError(f"{count} slots were given for {rows.size} rows and {positions.size} positions")
        if count and not 0 <= int(positions.min()) <= int(positions.max()) < self.max_context_len:
            raise ValueError(
                f"positions reach from {positions.min()} to {positions.max()}; a row has {self.max_context_len}"
            )
        return rows, positions

    def _rank_number(self, row: int) -> int:
        req = self._requests.get(row)
        if req is None:
            raise Refusal(f"row {row} was not handed out")
        return rank_of(self._ranks, req.dp_rank).dp_rank

    def _written(
        self, rank: FaceRank, rows: NDArray[np.int64], positions: NDArray[np.int64], slots: NDArray[np.int64]
    ) -> list[Written]:
        """One run of positions per row, with the pages that they touch."""
        written = []
        for row in dict.fromkeys(rows.tolist()):
            mine = np.flatnonzero(rows == row)
            mine = mine[np.argsort(positions[mine], kind="stable")]
            start, stop = int(positions[mine[0]]), int(positions[mine[-1]]) + 1
            pages = _pages_of_run(start, stop, positions[mine], slots[mine], rank.state.page_size)
            written.append(Written(rank.seated(self._requests[row]), start, stop, pages))
        return written

    def show(self, req: Req, start: int, slots: Slots) -> None:
        """The row of a request names these slots from position `start` on: the tree's, in place of its own (R149)."""
        assert req.req_pool_idx is not None, "only a request with a row is cached"
        self.req_to_token[req.req_pool_idx, start : start + slots.size] = slots

    def forget(self, req: Req) -> None:
        """Nothing in the row of an ended request can be freed again."""
        if req.req_pool_idx is not None:
            self.req_to_token[req.req_pool_idx] = 0


def _pages_of_run(
    start: int, stop: int, positions: NDArray[np.int64], slots: NDArray[np.int64], page_size: int
) -> Pages:
    """The FULL page of each page position in [start, stop); raises ValueError if slots are strewn otherwise."""
    pages, places = slots // page_size, positions // page_size
    first = np.searchsorted(places, np.arange(places[0], places[-1] + 1))
    whole = positions.size == stop - start and (positions == np.arange(start, stop)).all()
    aligned = whole and (slots % page_size == positions % page_size).all()
    if not aligned or (pages != pages[first][places - places[0]]).any():
        raise ValueError(
            f"slots {slots[:8].tolist()} do not lie in pages of {page_size} as positions [{start}, {stop}) do (R272)"
        )
    return Pages(pages[first].astype("<i4").tobytes())
