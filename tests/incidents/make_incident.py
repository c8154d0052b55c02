"""Makes `docs/incident`, the broken run of the tutorial: a small server of two ranks, with a bug in what it does when clients leave.

    python -m tests.incidents.make_incident

The server is one of chunked prefill in which two batches take turns: while one is on the device, the host caches, ends and
admits requests of the other. The bug: an aborted request frees its row from the prefix that it was admitted with, though the
tree has taken its first chunks over since. Live laws are off. Everything is decided by numbers in this file, so that the
run is the same wherever it is made; rank 1 was killed while it wrote.
"""

import random
import shutil
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from radixledger.cache.decide import requests as decide_requests
from radixledger.cache.decide.pages import Decision
from radixledger.cache.rank import RankCache
from radixledger.cache.refusals import PoolShort
from radixledger.cache.state import Request as Live
from radixledger.cache.state import State
from radixledger.journal.causes import Operation
from radixledger.journal.disk import Disk
from radixledger.journal.events import Config, Opened
from radixledger.journal.folder import listing, rank_folder
from radixledger.journal.redact import HASHED
from radixledger.journal.seal import seal
from radixledger.journal.units import Rank, TokenCount
from radixledger.journal.writer import JournalWriter, Sealing

from ..mutants.caught import Unheard

PATH = Path(__file__).parents[2] / "docs" / "incident"
PAGE, WINDOW, CHUNK, RUNNING = 16, 32, 64, 8
CONFIG = Config(PAGE, 96, 64, WINDOW, rows=8, context_pages=32)
BEGUN_NS, STEP_NS = 1_773_496_800_000_000_000, 11_000_000
"""14 March 2026, 14:00 UTC; a step takes 11 ms."""
KEY = bytes(range(32))
TORN_BYTES, ROTATED = 23, 40_000
KILLED_IN_STEP = 300
LEAVES = 9
"""After so many steps one client of rank 1 leaves: between two chunks of its prompt."""

_surrender = decide_requests._surrender


def from_the_prefix(state: State, live: Live, kept: int, operation: Operation) -> Decision[None]:
    """The bug: what an aborted request gives back begins where its own computing began."""
    yield from _surrender(
        state, live, live.prefix // PAGE if operation is Operation.ABORT else kept, operation
    )


class Wanted:
    """A request that somebody sends: its prompt, how many tokens it gets, and after how many steps its client leaves."""

    def __init__(self, rid: str, prompt: list[int], answer: int, leaves: int = 0) -> None:
        self.rid, self.prompt, self.answer, self.leaves = rid, prompt, answer, leaves
        self.number = self.step = self.sampled = 0


def wanted(rank: int) -> Iterator[Wanted]:
    """What is sent to a rank: questions about a few documents, short ones and, on rank 1, one that is read in several chunks."""
    dice = random.Random(40 + rank)
    system = [7] * 2 * PAGE
    documents = [
        [100 * (1 + each) + at % 50 for at in range(pages * PAGE)]
        for each, pages in enumerate((1, 2, 11 * rank))
    ]
    for place in range(36):
        which = 2 if rank and place in (17, 18, 21, 24) else dice.randrange(2)
        question = [dice.randrange(1_000, 2_000) for _ in range(dice.randrange(5, 30))]
        leaves = LEAVES if rank and place == 17 else 0
        yield Wanted(f"chat-{place}", [*system, *documents[which], *question], dice.randrange(12, 40), leaves)


class Clock:
    """The time of the step."""

    def __init__(self) -> None:
        self.step = 0

    def __call__(self) -> int:
        return BEGUN_NS + self.step * STEP_NS


class Server:
    """One rank: two batches that take turns."""

    def __init__(self, cache: RankCache, clock: Clock, queue: Iterator[Wanted]) -> None:
        self.cache, self.clock, self.queue = cache, clock, deque(queue)
        self.batches: tuple[list[Wanted], list[Wanted]] = [], []
        self.ran: list[tuple[Wanted, int]] = []
        """What is on the device: who, and how many tokens each."""

    @property
    def live(self) -> int:
        """Requests that were admitted and have not ended."""
        return sum(map(len, self.batches))

    def step(self) -> bool:
        """Dispatch a batch, then do the host's work for the other; False when nobody is left."""
        self.clock.step += 1
        mine, other = (self.batches[(self.clock.step + each) % 2] for each in range(2))
        before, self.ran = self.ran, []
        chosen = self._planned(mine)
        if chosen:
            self._dispatch(chosen)
        if before:
            self.cache.step_ended(self.clock.step - 1)
        for each, count in before:
            self._result(each, count, other)
        self._leave(other)
        self._admit(other)
        return bool(self.live or self.queue)

    def _planned(self, batch: list[Wanted]) -> list[tuple[Wanted, int]]:
        """A chunk of the first prompt that is not computed yet, or one token each."""
        for each in batch:
            left = len(each.prompt) - self._length(each)
            if left > 0:
                return [(each, min(left, CHUNK))]
        return [(each, 1) for each in batch]

    def _dispatch(self, chosen: list[tuple[Wanted, int]]) -> None:
        requests = np.array([each.number for each, _ in chosen], np.int64)
        starts = np.array([self._length(each) for each, _ in chosen], np.int32)
        grown = np.array([count for _, count in chosen], np.int32)
        try:
            self.cache.extend(requests, grown)
        except PoolShort as short:
            state = self.cache.state
            self.cache.evict(
                max(0, short.needed - state.full.available), max(0, short.needed - state.swa.available)
            )
            self.cache.extend(requests, grown)
        self.cache.step_began(self.clock.step, requests, starts, starts + grown)
        self.ran = chosen

    def _result(self, each: Wanted, count: int, batch: list[Wanted]) -> None:
        if self._length(each) <= len(each.prompt):
            self.cache.cache_unfinished(each.number, self.cache.key_of(each.prompt[: self._length(each)]))
        else:
            each.sampled += count
        self.cache.reclaim(each.number, self._length(each) - 1)
        if each.sampled == each.answer:
            answer = [-1 - at for at in range(self._length(each) - len(each.prompt))]
            self.cache.finish(each.number, self.cache.key_of([*each.prompt, *answer]))
            batch.remove(each)

    def _leave(self, batch: list[Wanted]) -> None:
        """Clients that are tired of waiting."""
        for each in [each for each in batch if each.leaves and self.clock.step - each.step >= each.leaves]:
            self.cache.abort(each.number)
            batch.remove(each)

    def _admit(self, batch: list[Wanted]) -> None:
        if self.queue and self.live < RUNNING and len(batch) < RUNNING // 2:
            each = self.queue.popleft()
            each.number = self.cache.admit(each.rid, self.cache.key_of(each.prompt), len(each.prompt)).request
            each.step = self.clock.step
            batch.append(each)

    def _length(self, each: Wanted) -> int:
        return int(self.cache.state.rows.length[self.cache.state.row_of(each.number)])


def serve(run: Path, rank: int) -> None:
    """The journal of one rank; nobody looks at what its laws say. Rank 1 is killed after a while, the other ends cleanly."""
    clock = Clock()
    opened = Opened(run.name, Rank(rank), 2, 0, "unified", CONFIG, TokenCount(WINDOW), 4 * PAGE, HASHED)
    writer = JournalWriter.open(
        run, opened, key=KEY, clock=clock, sealing=Sealing.NEVER, rotate_bytes=ROTATED
    )
    cache = RankCache(writer.opened, writer, seq=writer.last_seq, digest_every=512)
    cache.state.findings = Unheard()
    server = Server(cache, clock, wanted(rank))
    while server.step() and not (rank and clock.step == KILLED_IN_STEP):
        pass
    if rank:
        writer.close()
    else:
        cache.close()


def make(run: Path) -> None:
    """The whole run, without the lock files and the key."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decide_requests, "_surrender", from_the_prefix)
        for rank in range(2):
            serve(run, rank)
    for path in [path for path in run.rglob("*") if path.name == "lock" or path.suffix == ".key"]:
        path.unlink()
    for rank in range(2):
        segments = listing(rank_folder(run, Rank(rank))).segments
        for each in segments[: len(segments) - rank]:
            seal(each, Disk())
    (torn,) = (run / "rank-0001").glob("*.seg")
    torn.write_bytes(torn.read_bytes()[:-TORN_BYTES])


if __name__ == "__main__":
    shutil.rmtree(PATH, ignore_errors=True)
    make(PATH)
