"""The rows of live requests, and batches of them: what a device step reads, and what decoding asks in every step.

Part of the state, with its rule: data only. What is remembered here (a batch, which requests live) follows from the
rest, and whoever asks may remember it.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from radixledger.journal.events import Config
from radixledger.journal.units import UNBOUND


class Rows:
    """The page tables and lengths of all live requests, one row each; what a device step reads.

    full_table, swa_table: int32 [rows, context_pages], 0 = not resident. length, cursor, protected: int32
    [rows], tokens: computed or being computed; SWA given back below; held by the tree below. request: int64
    [rows], 0 = a free row. last_page: int32 [rows], the FULL page that was appended last, where decoding writes.
    page: int32 [], the page size, because numpy takes longer to make an array of an int than to divide a batch by one.
    full_at, swa_at, length_at: the same memory, flat, for one row: reading or writing one number there takes half the time.
    states: int32 [rows, 3], slots of the RECURRENT pool: the running one, two that track; 0 = none. tracked: int32
    [rows, 2], tokens after which the state stands in each of those two; 0 = nothing yet. living: packed numbers of requests
    that all live, which whoever changes `request` forgets.
    """

    __slots__ = ("_asked", "cursor", "free", "full_at", "full_table", "last_page", "length", "length_at", "living", "mask", "page", "protected", "reclaim_at", "request",
                 "states", "swa_at", "swa_table", "tracked", "width")  # fmt: skip

    def __init__(self, config: Config) -> None:
        count, pages = config.rows, config.context_pages
        self.mask = count - 1
        self.page: NDArray[np.int32] = np.array(config.page_size, np.int32)
        self.full_table: NDArray[np.int32] = np.zeros((count, pages), np.int32)
        self.swa_table: NDArray[np.int32] = np.zeros((count, pages), np.int32)
        self.width = pages
        self.full_at = self.full_table.reshape(-1).data
        self.swa_at = self.swa_table.reshape(-1).data
        self.length: NDArray[np.int32] = np.zeros(count, np.int32)
        self.length_at = self.length.data
        self.cursor: NDArray[np.int32] = np.zeros(count, np.int32)
        self.protected: NDArray[np.int32] = np.zeros(count, np.int32)
        self.reclaim_at: NDArray[np.int32] = np.zeros(count, np.int32)
        self.last_page: NDArray[np.int32] = np.zeros(count, np.int32)
        self.request: NDArray[np.int64] = np.zeros(count, np.int64)
        self.states: NDArray[np.int32] = np.zeros((count, 3), np.int32)
        self.tracked: NDArray[np.int32] = np.zeros((count, 2), np.int32)
        self.free = list(range(count - 1, -1, -1))
        self.living = b""
        self._asked: tuple[bytes, Batch] = b"", _batch_of(b"", self.mask)

    def at(self, coded: bytes) -> "Batch":
        """The requests of packed numbers, and their rows.

        A batch that decodes asks for the same rows in every step, several times, so the last answer is at hand.
        """
        asked = self._asked
        if asked[0] != coded:
            asked = self._asked = coded, _batch_of(coded, self.mask)
        return asked[1]

    def are_live(self, coded: bytes) -> bool:
        """Whether all of the packed request numbers are live requests'; the last batch of which it was so is at hand."""
        if self.living == coded:
            return True
        if self.request[self.at(coded).at].tobytes() != coded:
            return False
        self.living = coded
        return True


class Batch:
    """Requests that are named together, by packed numbers.

    at: int64 [n], their rows, read-only. distinct: whether each is a request's, named once. ones: what each grows by that
    decodes, packed int32.
    """

    __slots__ = ("_rows", "_step", "at", "distinct", "ones")

    def __init__(self, coded: bytes, mask: int) -> None:
        requests = np.frombuffer(coded, "<i8")
        self.at: NDArray[np.int64] = requests & mask
        self.at.flags.writeable = False
        distinct = set(requests.tolist())
        self.distinct = len(distinct) == len(requests) and UNBOUND not in distinct
        self.ones = b"\1\0\0\0" * len(requests)
        self._rows, self._step = mask + 1, _NO_STEP

    @property
    def step(self) -> NDArray[np.int32]:
        """By how much each row grows where the batch decodes, int32 [rows], read-only; a batch that does is asked again."""
        if not self._step.size:
            self._step = np.zeros(self._rows, np.int32)
            self._step[self.at] = 1
            self._step.flags.writeable = False
        return self._step


_NO_STEP = np.zeros(0, np.int32)


@lru_cache(maxsize=64)
def _batch_of(coded: bytes, mask: int) -> Batch:
    """As `Rows.at`: what it says depends on nothing else; remembered because a few batches take turns."""
    return Batch(coded, mask)
