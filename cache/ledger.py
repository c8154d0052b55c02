"""The books of one rank: which account holds each page, and which SWA page a FULL page is mapped to.

Double-entry by page: a move names giver and taker, and what it finds elsewhere it reports. Only
`evolve` writes here. Rule: a move is total. It takes the event's word whatever the books say and
returns the pages that were not where the event said, so that a foreign journal can be folded to
its first wrong event.
"""

import numpy as np
from numpy.typing import NDArray

from radixledger.cache.weights import MAPPING_LANE, lane
from radixledger.journal.accounts import FREE, PENDING, RESERVED, Kind, Pool
from radixledger.journal.moves import pages_of
from radixledger.journal.units import NO_PAGES, Pages

FEW = 12
"""Up to so many pages a loop over ints is faster than array operations."""

Astray = list[tuple[int, int]]
"""Pages that a move did not find with its giver, each with the account that did hold it."""

_NOWHERE = -1


class PoolBook:
    """The pages of one pool of one rank: account, queue of free pages, counts by kind of account.

    account: int64 [capacity + 1]; since: int64 [capacity + 1], the event that made it so.
    """

    __slots__ = ("account", "account_at", "capacity", "digest", "free", "held", "pending", "pool", "since", "since_at",
                 "weight", "weight_at")  # fmt: skip

    def __init__(self, pool: Pool, capacity: int) -> None:
        self.pool = pool
        self.capacity = capacity
        self.account: NDArray[np.int64] = np.zeros(capacity + 1, np.int64)
        self.account[0] = RESERVED
        self.account_at = self.account.data
        self.since: NDArray[np.int64] = np.zeros(capacity + 1, np.int64)
        self.since_at = self.since.data
        self.weight: NDArray[np.uint64] = lane(pool, capacity + 1)
        self.weight_at = self.weight.data
        self.free = bytearray(np.arange(1, capacity + 1, dtype="<i4").tobytes())
        self.pending = bytearray()
        self.held = [capacity, 0, 0, 0, 0]
        self.digest = 0

    @property
    def available(self) -> int:
        """Pages that can be handed out now."""
        return self.held[Kind.FREE]

    def next_free(self, count: int) -> Pages:
        """The `count` pages that would be handed out next; the caller knows that there are so many."""
        return Pages(bytes(self.free[: count * 4]))

    def move(self, pages: Pages, giver: int, taker: int, seq: int) -> Astray | None:
        """Move `pages` from `giver` to `taker`; None if every page was where it should be."""
        count = len(pages) >> 2
        if count > FEW:
            if not self._move_many(pages, giver, taker, seq):
                return self._move_astray(pages, giver, taker, seq)
        else:
            account, since, weight = self.account_at, self.since_at, self.weight_at
            ids = (int.from_bytes(pages, "little"),) if count == 1 else memoryview(pages).cast("I")
            capacity = self.capacity
            step = taker - giver
            moved = 0
            for page in ids:
                if not 0 < page <= capacity or account[page] != giver:
                    break
                account[page] = taker
                since[page] = seq
                self.digest += step * weight[page]
                moved += 1
            if moved < count:
                self._settle(Pages(pages[: moved * 4]), giver, taker)
                return self._move_astray(Pages(pages[moved * 4 :]), giver, taker, seq)
        self._settle(pages, giver, taker)
        return None

    def holders(self, pages: Pages) -> NDArray[np.int64]:
        """The account of each page, int64 [n]; -1 for an id that the pool does not have."""
        ids = pages_of(pages)
        known = (ids >= 0) & (ids <= self.capacity)
        found: NDArray[np.int64] = np.where(known, self.account[np.where(known, ids, 0)], _NOWHERE)
        return found

    def all_with(self, pages: Pages, account: int) -> bool:
        """Whether every page is in `account`, and none is named twice."""
        if len(pages) == 4:
            page = int.from_bytes(pages, "little")
            return 0 < page <= self.capacity and self.account_at[page] == account
        ids = np.frombuffer(pages, "<u4")
        if not ids.size:
            return True
        if int(ids.max()) > self.capacity or (self.account[ids] != account).any():
            return False
        return ids.size == 1 or np.unique(ids).size == ids.size

    def _settle(self, pages: Pages, giver: int, taker: int) -> None:
        """Counts and queues follow a lawful move."""
        count = len(pages) >> 2
        self.held[giver & 7] -= count
        self.held[taker & 7] += count
        if taker == FREE:
            self.free += pages
        elif giver == FREE:
            if self.free.startswith(pages):
                del self.free[: len(pages)]
            else:
                _withdraw(self.free, pages)
        if taker == PENDING:
            self.pending += pages
        elif giver == PENDING:
            if len(pages) == len(self.pending):
                self.pending.clear()
            else:
                _withdraw(self.pending, pages)

    def _move_many(self, pages: Pages, giver: int, taker: int, seq: int) -> bool:
        ids = np.frombuffer(pages, "<u4")
        try:
            if (self.account[ids] != giver).any():
                return False
        except IndexError:
            return False
        # Writing each page's place in the list and reading it back shows a page that is named twice.
        places = np.arange(ids.size, dtype=np.int64)
        self.account[ids] = places
        if (self.account[ids] != places).any() or giver == RESERVED:
            self.account[ids] = giver
            return False
        self.account[ids] = taker
        self.since[ids] = seq
        self.digest += (taker - giver) * int(self.weight[ids].sum())
        return True

    def _move_astray(self, pages: Pages, giver: int, taker: int, seq: int) -> Astray:
        astray: Astray = []
        for page in pages_of(pages).tolist():
            if not 0 < page <= self.capacity:
                astray.append((page, RESERVED if page == 0 else _NOWHERE))
                continue
            found = self.account_at[page]
            if found != giver:
                astray.append((page, found))
            if found != taker:
                self.account_at[page] = taker
                self.digest += (taker - found) * self.weight_at[page]
                self._settle(Pages(page.to_bytes(4, "little")), found, taker)
            self.since_at[page] = seq
        return astray


class MappingBook:
    """FULL page → SWA page of one rank, 0 for none: int32 [full_pages + 1] (R52: the last page has its entry)."""

    __slots__ = ("digest", "nonzero", "swa_of", "swa_of_at", "weight", "weight_at")

    def __init__(self, full_pages: int) -> None:
        self.swa_of: NDArray[np.int32] = np.zeros(full_pages + 1, np.int32)
        self.swa_of_at = self.swa_of.data
        self.weight: NDArray[np.uint64] = lane(MAPPING_LANE, full_pages + 1)
        self.weight_at = self.weight.data
        self.nonzero = 0
        self.digest = 0

    def swa_pages(self, full: Pages) -> Pages:
        """The SWA page of each FULL page, 0 where unmapped, as a copy (R34)."""
        if len(full) == 4:
            mapped: int = self.swa_of_at[int.from_bytes(full, "little")]
            return Pages(mapped.to_bytes(4, "little"))
        return Pages(self.swa_of[np.frombuffer(full, "<u4")].tobytes())

    def mapped(self, full: Pages) -> tuple[Pages, Pages]:
        """Those of the FULL pages that are mapped, and their SWA pages."""
        swa = self.swa_pages(full)
        if len(full) == 4:
            return (full, swa) if swa != _ZERO else (NO_PAGES, NO_PAGES)
        targets = pages_of(swa)
        live = targets != 0
        if live.all():
            return full, swa
        return Pages(pages_of(full)[live].tobytes()), Pages(targets[live].tobytes())

    def set(self, full: Pages, swa: Pages) -> Pages:
        """Map `full` to `swa`, pairwise; returns the FULL pages that had a mapping already (R54)."""
        return self._write(full, NO_PAGES, swa)

    def clear(self, full: Pages, swa: Pages) -> Pages:
        """Unmap `full`; returns the FULL pages that were not mapped to the `swa` page the event names."""
        return self._write(full, swa, NO_PAGES)

    def _write(self, full: Pages, old: Pages, new: Pages) -> Pages:
        count = len(full) >> 2
        if count == 0:
            return NO_PAGES
        if count > 1:
            return self._write_many(full, old, new)
        page = int.from_bytes(full, "little")
        if page >= len(self.swa_of):
            return full
        before, expected = self.swa_of_at[page], int.from_bytes(old[:4], "little")
        after = int.from_bytes(new[:4], "little")
        self.swa_of_at[page] = after
        self.digest += (after - before) * self.weight_at[page]
        self.nonzero += (after != 0) - (before != 0)
        return NO_PAGES if before == expected else full

    def _write_many(self, full: Pages, old: Pages, new: Pages) -> Pages:
        ids = np.frombuffer(full, "<u4")
        sane = ids < len(self.swa_of)
        if not sane.all():
            return Pages(ids[~sane].astype("<i4").tobytes())
        before = self.swa_of[ids]
        expected = pages_of(old) if len(old) == len(full) else np.zeros(ids.size, np.int32)
        after = pages_of(new) if len(new) == len(full) else np.zeros(ids.size, np.int32)
        self.swa_of[ids] = after
        steps = (after.astype(np.int64) - before).view(np.uint64)
        self.digest += int((steps * self.weight[ids]).sum())
        self.nonzero += int(np.count_nonzero(after)) - int(np.count_nonzero(before))
        wrong = before != expected
        return Pages(pages_of(full)[wrong].tobytes()) if wrong.any() else NO_PAGES


_ZERO = b"\0\0\0\0"


def _withdraw(queue: bytearray, pages: Pages) -> None:
    """Take pages out of the middle of a queue; only foreign journals and lawless moves need it."""
    held = np.frombuffer(bytes(queue), "<i4")
    queue[:] = held[~np.isin(held, pages_of(pages))].tobytes()
