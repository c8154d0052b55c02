"""The books of one rank: which account holds each page, and which SWA page a FULL page is mapped to.

Double-entry by page: a move names giver and taker, and what it finds elsewhere it reports. Only
`evolve` writes here. Rule: a move is total. It takes the event's word whatever the books say and
returns the pages that were not where the event said, so that a foreign journal can be folded to
its first wrong event.
"""

from collections.abc import Callable
from operator import length_hint
from struct import Struct

import numpy as np
from numpy.typing import NDArray

from radixledger.cache.kept_sum import KeptSum
from radixledger.cache.weights import BOOK_LANES, MAPPING_LANE
from radixledger.journal.accounts import FREE, PENDING, RESERVED, Kind, Pool
from radixledger.journal.moves import pages_of
from radixledger.journal.units import NO_PAGES, Pages

page_of = int.from_bytes
"""`page_of(four_bytes, "little")`: one packed page id as an int; a name of its own because it is called so often."""

FEW = 24
"""Up to so many pages a loop over ints is faster than array operations."""

READ_FEW: dict[int, Callable[[bytes], tuple[int, ...]]] = {
    4 * count: Struct(f"<{count}I").unpack for count in range(1, FEW + 1)
}
"""How packed page ids become ints, by their length in bytes; nothing for a length of more, or of no whole number.

Unsigned, so that an id below zero is beyond every pool, and not counted from its end.
"""

_PACK_TARGETS = {size: Struct(f"<{size // 4}i").pack for size in READ_FEW}
_READ_TARGETS = {size: Struct(f"<{size // 4}i").unpack for size in READ_FEW}
"""The same, there and back, for the pages that a mapping leads to, as it holds them."""

Astray = list[tuple[int, int]]
"""Pages that a move did not find with its giver, each with the account that did hold it."""

_NOWHERE = -1


class PoolBook:
    """The pages of one pool of one rank: account, queue of free pages, counts by kind of account.

    account: int64 [capacity + 1]; since: int64 [capacity + 1], the event that made it so. kept: what the digest says of it.
    """

    __slots__ = ("_place", "_tell", "account", "account_at", "capacity", "free", "held", "kept", "pending", "pool", "since",
                 "since_at")  # fmt: skip

    def __init__(self, pool: Pool, capacity: int) -> None:
        self.pool = pool
        self.capacity = capacity
        self.account: NDArray[np.int64] = np.zeros(capacity + 1, np.int64)
        self.account[0] = RESERVED
        self.account_at = self.account.data
        self.since: NDArray[np.int64] = np.zeros(capacity + 1, np.int64)
        self.since_at = self.since.data
        self.kept = KeptSum(self.account, BOOK_LANES[pool])
        self._tell = self.kept.told.append
        self.free = bytearray(np.arange(1, capacity + 1, dtype="<i4").tobytes())
        self.pending = bytearray()
        self.held = [capacity, *[0] * (len(Kind) - 1)]
        self._place = np.zeros(capacity + 1, np.int32)

    @property
    def available(self) -> int:
        """Pages that can be handed out now."""
        return self.held[FREE]

    @property
    def digest(self) -> int:
        """What the digest says of the book: 0 for a pool of free pages."""
        return self.kept.total()

    def next_free(self, count: int) -> Pages:
        """The `count` pages that would be handed out next; the caller knows that there are so many."""
        return bytes(self.free[: count * 4])  # type: ignore[return-value]  # called for every allocation

    def move(self, pages: Pages, giver: int, taker: int, seq: int) -> Astray | None:
        """Move `pages` from `giver` to `taker`; None if every page was where it should be."""
        if len(pages) == 4:
            # One page at a time is what decoding does, and a few what almost every event moves: this calls nothing.
            count, page = 1, page_of(pages, "little")
            if not 0 < page <= self.capacity or self.account_at[page] != giver:
                return self._move_astray(pages, giver, taker, seq)
            self.account_at[page] = taker
            self.since_at[page] = seq
            self._tell(pages)
        elif (read := READ_FEW.get(len(pages))) is None:
            count = len(pages) >> 2
            if not self._move_many(pages, giver, taker, seq):
                return self._move_astray(pages, giver, taker, seq)
        else:
            ids = read(pages)
            count, left, account, since = len(ids), iter(ids), self.account_at, self.since_at
            self._tell(pages)
            try:
                for page in left:
                    if account[page] != giver or not page:
                        return self._move_rest(pages, length_hint(left) + 1, giver, taker, seq)
                    account[page] = taker
                    since[page] = seq
            except IndexError:
                return self._move_rest(pages, length_hint(left) + 1, giver, taker, seq)
        held = self.held
        held[giver & 7] -= count
        held[taker & 7] += count
        if taker == FREE:
            self.free += pages
        elif giver == FREE and self.free.startswith(pages):
            del self.free[: len(pages)]
            return None
        if giver <= PENDING or taker == PENDING:
            self._settle_queues(pages, giver, taker)
        return None

    def holders(self, pages: Pages) -> NDArray[np.int64]:
        """The account of each page, int64 [n]; -1 for an id that the pool does not have."""
        ids = pages_of(pages)
        known = (ids >= 0) & (ids <= self.capacity)
        found: NDArray[np.int64] = np.where(known, self.account[np.where(known, ids, 0)], _NOWHERE)
        return found

    def all_with(self, pages: Pages, account: int) -> bool:
        """Whether every page is in `account`, and none is named twice."""
        read = READ_FEW.get(len(pages))
        if read is not None:
            ids, accounts = read(pages), self.account_at
            try:
                for page in ids:
                    if accounts[page] != account or not page:
                        return False
            except IndexError:
                return False
            return len(ids) == 1 or len(set(ids)) == len(ids)
        places = places_of(pages)
        return self._held_by(places, account) and not self.repeats(places)

    def repeats(self, ids: NDArray[np.intp]) -> bool:
        """Whether a page is named twice among `ids`, all of which the pool has.

        Each page's place in the list is written to a scratch array and read back, which takes a tenth of the
        time that sorting would.
        """
        places = _places(ids.size)
        self._place[ids] = places
        return self._place.take(ids).tobytes() != places.tobytes()

    def _held_by(self, ids: NDArray[np.intp], account: int) -> bool:
        """Whether all pages are in `account`; ids that the pool does not have are in none."""
        try:
            return self.account.take(ids).tobytes() == account.to_bytes(8, "little") * ids.size
        except (IndexError, OverflowError):
            return False

    def _settle(self, pages: Pages, giver: int, taker: int) -> None:
        """Counts and queues follow a move."""
        count = len(pages) >> 2
        self.held[giver & 7] -= count
        self.held[taker & 7] += count
        if taker == FREE:
            self.free += pages
        self._settle_queues(pages, giver, taker)

    def _settle_queues(self, pages: Pages, giver: int, taker: int) -> None:
        """Pages leave the queue of free ones, or enter or leave that of pending ones."""
        if giver == FREE:
            _withdraw(self.free, pages)
        elif giver == PENDING:
            _withdraw(self.pending, pages)
        if taker == PENDING:
            self.pending += pages

    def _move_rest(self, pages: Pages, count: int, giver: int, taker: int, seq: int) -> Astray:
        """The last `count` pages are still to be moved, and the first of them is not with the giver."""
        first = len(pages) - 4 * count
        self._settle(Pages(pages[:first]), giver, taker)
        return self._move_astray(Pages(pages[first:]), giver, taker, seq)

    def _move_many(self, pages: Pages, giver: int, taker: int, seq: int) -> bool:
        """Move all pages with array operations, or none if one of them is elsewhere or named twice."""
        ids = places_of(pages)
        if giver == RESERVED or not self._held_by(ids, giver):
            return False
        if not (giver == FREE and self.free.startswith(pages)) and self.repeats(ids):
            return False
        self.account[ids] = taker
        self.since[ids] = seq
        self.kept.tell_many(pages, ids)
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
                self._tell(page.to_bytes(4, "little"))
                self._settle(Pages(page.to_bytes(4, "little")), found, taker)
            self.since_at[page] = seq
        return astray


class MappingBook:
    """FULL page → SWA page of one rank, 0 for none: int32 [full_pages + 1] (R52: the last page has its entry)."""

    __slots__ = ("_tell", "kept", "nonzero", "swa_of", "swa_of_at")

    def __init__(self, full_pages: int) -> None:
        self.swa_of: NDArray[np.int32] = np.zeros(full_pages + 1, np.int32)
        self.swa_of_at = self.swa_of.data
        self.kept = KeptSum(self.swa_of, MAPPING_LANE)
        self._tell = self.kept.told.append
        self.nonzero = 0

    @property
    def digest(self) -> int:
        """What the digest says of the mapping: 0 where nothing is mapped."""
        return self.kept.total()

    def swa_pages(self, full: Pages) -> Pages:
        """The SWA page of each FULL page, 0 where unmapped, as a copy (R34)."""
        if len(full) == 4:
            mapped: int = self.swa_of_at[page_of(full, "little")]
            return mapped.to_bytes(4, "little")  # type: ignore[return-value]  # called for every page that moves
        read = READ_FEW.get(len(full))
        if read is not None:
            swa = map(self.swa_of_at.__getitem__, read(full))
            return _PACK_TARGETS[len(full)](*swa)  # type: ignore[return-value]  # as above
        return Pages(self.swa_of.take(places_of(full)).tobytes())

    def leads(self, full: Pages, swa: Pages) -> bool:
        """Whether each FULL page is mapped to the SWA page beside it; raises IndexError for a page that is none."""
        read = READ_FEW.get(len(full))
        if read is None or len(full) != len(swa):
            return self.swa_pages(full) == swa
        swa_of = self.swa_of_at
        for page, target in zip(read(full), _READ_TARGETS[len(swa)](swa), strict=True):
            if swa_of[page] != target:
                return False
        return True

    def is_clear(self, full: Pages) -> bool:
        """Whether none of the FULL pages is mapped; raises IndexError for a page that is none."""
        read = READ_FEW.get(len(full))
        if read is None:
            return not np.count_nonzero(self.swa_of.take(places_of(full)))
        return not any(map(self.swa_of_at.__getitem__, read(full)))

    def mapped(self, full: Pages) -> tuple[Pages, Pages]:
        """Those of the FULL pages that are mapped, and their SWA pages."""
        swa = self.swa_pages(full)
        if len(full) == 4:
            return (full, swa) if swa != _ZERO else (NO_PAGES, NO_PAGES)
        targets = pages_of(swa)
        if np.count_nonzero(targets) == targets.size:
            return full, swa
        live = targets != 0
        return Pages(pages_of(full)[live].tobytes()), Pages(targets[live].tobytes())

    def set(self, full: Pages, swa: Pages) -> Pages:
        """Map `full` to `swa`, pairwise; returns the FULL pages that had a mapping already (R54).

        Raises ValueError where they are no pairs.
        """
        if len(full) != len(swa):
            raise ValueError(f"{len(full) >> 2} FULL pages are mapped to {len(swa) >> 2} SWA pages")
        if len(full) == 4 and self._write_one(full, 0, page_of(swa, "little")):
            self.nonzero += swa != _ZERO
            return NO_PAGES
        read = READ_FEW.get(len(full))
        if read is None:
            return self._write_many(full, NO_PAGES, swa)
        swa_of, ids = self.swa_of_at, read(full)
        try:
            for page in ids:
                if swa_of[page]:
                    return self._write_many(full, NO_PAGES, swa)
        except IndexError:
            return full
        for page, target in zip(ids, _READ_TARGETS[len(swa)](swa), strict=True):
            swa_of[page] = target
        self.nonzero += len(ids)
        self._tell(full)
        return NO_PAGES

    def clear(self, full: Pages, swa: Pages) -> Pages:
        """Unmap `full`; returns the FULL pages that were not mapped to the `swa` page the event names."""
        if len(full) == len(swa) == 4 and self._write_one(full, page_of(swa, "little"), 0):
            self.nonzero -= swa != _ZERO
            return NO_PAGES
        read = READ_FEW.get(len(full))
        if read is None or len(full) != len(swa):
            return self._write_many(full, swa, NO_PAGES)
        swa_of, ids = self.swa_of_at, read(full)
        try:
            for page, target in zip(ids, _READ_TARGETS[len(swa)](swa), strict=True):
                if swa_of[page] != target:
                    return self._write_many(full, swa, NO_PAGES)
        except IndexError:
            return full
        for page in ids:
            swa_of[page] = 0
        self.nonzero -= len(ids)
        self._tell(full)
        return NO_PAGES

    def _write_one(self, full: Pages, before: int, after: int) -> bool:
        """Write one entry if it is what it should be; else nothing is written."""
        page, swa_of = page_of(full, "little"), self.swa_of_at
        if page >= len(swa_of) or swa_of[page] != before:
            return False
        swa_of[page] = after
        self._tell(full)
        return True

    def _write_many(self, full: Pages, old: Pages, new: Pages) -> Pages:
        if not full:
            return NO_PAGES
        ids = places_of(full)
        if int(ids.max()) >= len(self.swa_of):
            return full
        before = self.swa_of.take(ids)
        expected = old if len(old) == len(full) else bytes(len(full))
        after = np.frombuffer(new if len(new) == len(full) else bytes(len(full)), "<i4")
        self.swa_of[ids] = after
        self.kept.tell_many(full, ids)
        self.nonzero += int(np.count_nonzero(after)) - int(np.count_nonzero(before))
        if before.tobytes() == expected:
            return NO_PAGES
        return Pages(pages_of(full)[before != np.frombuffer(expected, "<i4")].tobytes())


_ZERO = b"\0\0\0\0"

_UNSIGNED = np.dtype("<u4")
_PLACES = np.arange(1 << 12, dtype=np.int32)


def places_of(pages: Pages) -> NDArray[np.intp]:
    """Packed page ids as positions in an array; a negative id becomes one that no array has."""
    return np.frombuffer(pages, _UNSIGNED).astype(np.intp)


def _places(count: int) -> NDArray[np.int32]:
    return _PLACES[:count] if count <= _PLACES.size else np.arange(count, dtype=np.int32)


def _withdraw(queue: bytearray, pages: Pages) -> None:
    """Take pages out of a queue, wherever they stand; other than at its head only foreign journals need it."""
    if queue.startswith(pages):
        del queue[: len(pages)]
        return
    held = np.frombuffer(bytes(queue), "<i4")
    queue[:] = held[~np.isin(held, pages_of(pages))].tobytes()
