"""The server's rows: for each of its requests the FULL slots of its tokens, as a server of sglang-jax reads them.

`req_to_token` is what the server wrote, slot by slot; what the cache knows of it are pages. Rule: a write is told to
the rank of the row's request before it stands in the table, so that slots which were handed out to nobody get their
owner, and a write over pages that would be lost is refused.
"""

from collections.abc import Sequence
from threading import RLock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from radixledger.cache.arguments import number, sequence, told
from radixledger.cache.decide.faces import Written
from radixledger.cache.face_rank import FaceRank, as_slots, rank_of
from radixledger.cache.prefix_cache import Req, Slots
from radixledger.cache.refusals import Busy, Refusal
from radixledger.journal.units import Pages


class Run(NamedTuple):
    """Slots of one row, with the position of each."""

    row: int
    positions: NDArray[np.int64]
    slots: NDArray[np.int64]


class ReqToTokenPool:
    """Rows for `size` requests of up to `max_context_len` tokens, of all ranks together.

    req_to_token: int32 [size, max_context_len], 0 where nothing was written.
    """

    def __init__(self, size: int, max_context_len: int) -> None:
        size, max_context_len = number(size, "size"), number(max_context_len, "max_context_len")
        if size < 1 or max_context_len < 1:
            raise ValueError(f"{size} rows of {max_context_len} tokens: both are at least 1")
        self.size = size
        self.max_context_len = max_context_len
        self.req_to_token: Slots = np.zeros((size, max_context_len), np.int32)
        self.free_slots = list(range(size))
        self._requests: dict[int, Req] = {}
        self._entry = RLock()  # rows are of all ranks together, whose threads take turns here too
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
        for req in sequence(reqs, "reqs"):
            told(req, "reqs", "req_pool_idx")
        waiting = [req for req in reqs if req.req_pool_idx is None]
        with self._entry:
            if len(waiting) > len(self.free_slots):
                return None
            for req in waiting:
                req.req_pool_idx = self.free_slots.pop(0)
                self._requests[req.req_pool_idx] = req
        return [row for req in reqs if (row := req.req_pool_idx) is not None]

    def free(self, req: Req) -> None:
        """Take a request's row back. Raises Busy while the cache holds pages or a lock for it."""
        row = told(req, "req", "rid", "req_pool_idx").req_pool_idx
        with self._entry:
            if row is None or self._requests.get(row := number(row, "req_pool_idx")) is not req:
                raise Refusal(f"request {req.rid!r} has no row to free")
            if self._ranks and rank_of(self._ranks, req.dp_rank).number_of(req) is not None:
                raise Busy(f"request {req.rid!r} is live: cache_finished_req ends it, then its row is free")
            del self._requests[row]
            self.req_to_token[row] = 0
            self.free_slots.append(row)
            req.req_pool_idx = None

    def clear(self) -> None:
        """Take all rows back; raises Busy while a request is live."""
        with self._entry:
            for req in list(self._requests.values()):
                self.free(req)
            self.free_slots = list(range(self.size))

    def read(self, row: int, count: int) -> Slots:
        """The first `count` slots of a row, a copy."""
        row, count = number(row, "row"), number(count, "count")
        if not (0 <= row < self.size and 0 <= count <= self.max_context_len):
            raise ValueError(
                f"{count} slots of row {row}; there are {self.size} rows of {self.max_context_len}"
            )
        return self.req_to_token[row, :count].copy()

    def write(self, indices: tuple[Any, Any], values: ArrayLike) -> None:
        """Write slots: `(row, slice)`, or `(rows, positions)` with one slot each.

        The first write of a request seats it. Raises Refusal if pages would be lost or are somebody else's,
        ValueError if the slots do not lie in pages as positions do.
        """
        runs = self._runs(indices, as_slots(values))
        if self._ranks:
            told = [(rank_of(self._ranks, self._request_in(run.row).dp_rank), run) for run in runs]
            for rank in self._ranks:
                mine = [run for here, run in told if here is rank]
                if mine:
                    with rank.turn:
                        rank.write([self._written(rank, run) for run in mine])
                        self._stand(mine)
        else:
            self._stand(runs)

    def _runs(self, indices: object, slots: NDArray[np.int64]) -> list[Run]:
        """What is written, row by row, by rising position."""
        if not isinstance(indices, tuple) or len(indices) != 2:
            raise TypeError(
                f"indices: a row and its positions, or rows and positions, not {type(indices).__name__}"
            )
        row, where = indices
        if isinstance(where, slice):
            start = 0 if where.start is None else number(where.start, "indices")
            stop = self.max_context_len if where.stop is None else number(where.stop, "indices")
            if where.step not in (None, 1) or not 0 <= start <= stop <= self.max_context_len:
                raise ValueError(
                    f"a row of {self.max_context_len} is written in one run of positions, not {where}"
                )
            positions = np.arange(start, stop)
            rows = np.full(positions.size, number(row, "indices"))
        else:
            rows, positions = (as_slots(np.atleast_1d(np.asarray(each))) for each in indices)
        if not rows.size == positions.size == slots.size:
            raise ValueError(f"{slots.size} slots were given for other rows and positions: {indices}")
        runs = _by_row(rows, positions, slots)
        for run in runs:
            if not 0 <= int(run.positions[0]) <= int(run.positions[-1]) < self.max_context_len:
                reach = f"{run.positions[0]} to {run.positions[-1]}"
                raise ValueError(f"positions reach from {reach}; a row has {self.max_context_len}")
        return runs

    def _request_in(self, row: int) -> Req:
        req = self._requests.get(row)
        if req is None:
            raise Refusal(f"row {row} was not handed out")
        return req

    def _written(self, rank: FaceRank, run: Run) -> Written:
        """A run as its rank is told it, with the pages that it touches."""
        pages = _pages_of_run(run, rank.state.page_size)
        number = rank.seated(self._request_in(run.row))
        return Written(number, int(run.positions[0]), int(run.positions[-1]) + 1, pages)

    def _stand(self, runs: Sequence[Run]) -> None:
        for run in runs:
            self.req_to_token[run.row, run.positions] = run.slots

    def show(self, req: Req, start: int, slots: Slots) -> None:
        """The row of a request names these slots from position `start` on: the tree's, in place of its own (R149)."""
        assert req.req_pool_idx is not None, "only a request with a row is cached"
        self.req_to_token[req.req_pool_idx, start : start + slots.size] = slots

    def forget(self, req: Req) -> None:
        """Nothing in the row of an ended request can be freed again."""
        if req.req_pool_idx is not None:
            self.req_to_token[req.req_pool_idx] = 0


def _by_row(rows: NDArray[np.int64], positions: NDArray[np.int64], slots: NDArray[np.int64]) -> list[Run]:
    order = np.lexsort((positions, rows))
    edges = np.flatnonzero(np.diff(rows[order])) + 1
    return [
        Run(int(rows[part[0]]), positions[part], slots[part]) for part in np.split(order, edges) if part.size
    ]


def _pages_of_run(run: Run, page_size: int) -> Pages:
    """The FULL page of each page position of a run; raises ValueError if slots are strewn otherwise."""
    positions, slots = run.positions, run.slots
    start, stop = int(positions[0]), int(positions[-1]) + 1
    pages, places = slots // page_size, positions // page_size
    first = np.searchsorted(places, np.arange(places[0], places[-1] + 1))
    whole = positions.size == stop - start and (positions == np.arange(start, stop)).all()
    aligned = whole and (slots % page_size == positions % page_size).all()
    if not aligned or (pages != pages[first][places - places[0]]).any():
        raise ValueError(
            f"slots {slots[:8].tolist()} do not lie in pages of {page_size} as positions [{start}, {stop}) do (R272)"
        )
    return Pages(pages[first].astype("<i4").tobytes())
