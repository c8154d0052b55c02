"""The cache as a scheduler may see it: commands, sizes and page tables, and nothing of what lies behind them.

`Served` is the whole of it (R5, R145): whatever answers these calls can be served from. `ServedRank` is the cache of
one rank with the size questions that admission asks. Rule: whether pages may be given up is the cache's to know;
nothing here frees, and nothing here tells a caller what it could free (R4, R16).
"""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from radixledger.cache.decide.eviction import Gain
from radixledger.cache.decide.requests import Admission
from radixledger.cache.match import Hit
from radixledger.cache.rank import RankCache
from radixledger.cache.state import Node
from radixledger.journal.units import TokenCount
from radixledger.journal.writer import JournalWriter

Ints = NDArray[np.int32]


ENDLESS = 1 << 40
"""What a pool that is not there has free: it is never short."""


class Room(NamedTuple):
    """Pages of both pools that are free, and those that eviction would gain; without a window SWA is endless."""

    full_free: int
    full_evictable: int
    swa_free: int
    swa_evictable: int

    @property
    def full(self) -> int:
        """FULL pages that can be had."""
        return self.full_free + self.full_evictable

    @property
    def swa(self) -> int:
        """SWA pages that can be had."""
        return self.swa_free + self.swa_evictable

    def less(self, claim: Gain) -> "Room":
        """What is left once the pages of `claim` can no longer be evicted (B114)."""
        return self._replace(
            full_evictable=self.full_evictable - claim.full, swa_evictable=self.swa_evictable - claim.swa
        )


class Served(Protocol):
    """What serving needs of one rank's cache; `RankCache` says what each command does."""

    @property
    def full_table(self) -> Ints:
        """FULL page of each row's page number, int32 [rows, context pages]; 0 where none is resident."""

    @property
    def swa_table(self) -> Ints:
        """SWA page of each row's page number, of the same shape."""

    def room(self) -> Room:
        """What both pools have left."""

    def claim(self, hit: Hit) -> Gain:
        """The evictable pages that a request which starts from `hit` would shield."""

    def key_of(self, tokens: Ints, /) -> bytes:
        """The key of these tokens, as this cache knows prefixes."""

    def peek(self, key: bytes, namespace: bytes = b"", /) -> Hit:
        """What a match would give."""

    def admit(
        self, rid: str, key: bytes, prompt: int, namespace: bytes = b"", /, *, force_miss: bool = False,
        priority: int = 0,
    ) -> Admission:  # fmt: skip
        """Match a prompt, take a row, lock its prefix."""

    def extend(self, requests: NDArray[np.int64], grown: Ints, /) -> None:
        """Let requests grow."""

    def decode(self, requests: NDArray[np.int64], /) -> Ints:
        """Let each request grow by one token."""

    def reclaim_batch(self, requests: NDArray[np.int64], /) -> None:
        """Give back what requests hold below their windows."""

    def cache_unfinished(self, request: int, key: bytes, /) -> TokenCount:
        """Give the tree what a running request has computed."""

    def finish(self, request: int, key: bytes | None, /) -> TokenCount:
        """End a request well."""

    def retract(self, request: int, /) -> None:
        """Take everything back from a request that will be admitted again."""

    def abort(self, request: int, /) -> None:
        """End a request without caching it."""

    def evict(self, full_pages: int, swa_pages: int, /) -> Gain:
        """Ask the tree for free pages."""

    def step_began(self, step: int, requests: NDArray[np.int64], starts: Ints, stops: Ints, /) -> None:
        """A device step is about to be dispatched; the journal is safe before this returns."""

    def step_ended(self, step: int, /) -> None:
        """The step's results are here."""

    def commit(self, step: int, /) -> None:
        """Make the journal safe before an output leaves."""


class ServedRank(RankCache):
    """The cache of one rank, and what a scheduler may ask about its size."""

    @property
    def full_table(self) -> Ints:
        """FULL page of each row's page number, int32 [rows, context pages]; 0 where none is resident."""
        return self.state.rows.full_table

    @property
    def swa_table(self) -> Ints:
        """SWA page of each row's page number, of the same shape."""
        return self.state.rows.swa_table

    def room(self) -> Room:
        """What both pools have left (R146); four counters are read."""
        state = self.state
        if not state.swa.capacity:
            return Room(state.full.available, state.full_evictable, ENDLESS, 0)
        return Room(state.full.available, state.full_evictable, state.swa.available, state.swa_evictable)

    def claim(self, hit: Hit) -> Gain:
        """The evictable pages that a request which starts from `hit` would shield: FULL to the root, SWA over its window.

        A node that the hit ends in counts with the pages before the hit: it will be cut there.
        """
        full, swa, window_pages = 0, 0, self.state.tail_pages
        node: Node | None = self.state.nodes[hit.node]
        stop = hit.tokens // self.state.page_size
        while node is not None and node.parent is not None and (not node.holds or window_pages > 0):
            start = node.end - node.pages
            full += 0 if node.holds else stop - start
            if window_pages > 0 and node.swa and not node.swa_locks:
                swa += stop - start
            window_pages -= stop - start
            node, stop = node.parent, start
        return Gain(full, swa)

    def commit(self, step: int) -> None:
        """Make the journal safe before an output leaves; under policy `sync` this waits for the disk."""
        if self.journal is not None:
            self.journal.end_step(step)
        if isinstance(self.journal, JournalWriter):
            self.journal.wait_durable(self.journal.last_seq)
