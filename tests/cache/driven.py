"""A cache that is driven by chance, and what it wrote down: material for tests of laws, images and replay.

The same seed gives the same run. Every command is used; pools are small, so that tombstones, heals, refusals and
evictions of every kind happen within a few hundred steps.
"""

import random
from collections.abc import Callable, Iterator

import numpy as np

from radixledger.cache.keys import namespace, raw_key
from radixledger.cache.rank import RankCache
from radixledger.cache.refusals import PoolShort, Refusal
from radixledger.cache.shell import Journal
from radixledger.cache.slices import Slice
from radixledger.cache.state import Receipt
from radixledger.journal.accounts import request_account
from radixledger.journal.causes import Operation
from radixledger.journal.events import AnyEvent, Config, Opened
from radixledger.journal.frame import Frame
from radixledger.journal.units import FIRST, UNBOUND, Pages, Rank, Seq, TokenCount

SHAPES = ((1, 4, 60, 40), (4, 5, 60, 40), (4, 4, 60, 30), (8, 4, 60, 20), (4, 16, 80, 60))
"""Page size, window, FULL pages, SWA pages: W smaller than, equal to and larger than P, W mod P among them (R274)."""

CHUNK_SHAPES = {"chunk": (4, 0, 40, 0), "swa_chunk": (4, 9, 40, 30)}
"""A shape for each route without a tree."""

FULL_SHAPES = ((1, 0, 60, 0), (4, 0, 60, 0), (16, 0, 40, 0))
"""Shapes of the route `radix`: no window, no SWA pages."""

STATE_SHAPES = ((1, 0, 60, 0, 9, 0), (128, 0, 60, 0, 16, 256))
"""Shapes of the route `radix` with states: behind the others the state slots and the interval of tracking."""

STEP_NS = 1_000_000


class FrameList:
    """A journal in memory: one frame per command, a millisecond apart."""

    def __init__(self, opened: Opened) -> None:
        self.opened = opened
        self.frames: list[Frame] = []
        self.count = 0
        self.step = 0
        self._open: list[AnyEvent] = []
        self.append = self._open.append
        self.append(opened)
        self.end_command()

    def end_command(self) -> None:
        """Close the frame that is being built."""
        events = list(self._open)
        if events:
            time_ns = len(self.frames) * STEP_NS
            self.frames.append(Frame(Seq(self.count + 1), time_ns, self.step, self.opened.epoch, events))
            self.count += len(events)
            self._open.clear()

    def end_step(self, step: int) -> None:
        """Nothing is kept back here."""
        self.step = step

    def close(self) -> None:
        """Nothing to let go."""

    @property
    def events(self) -> list[AnyEvent]:
        """All events so far."""
        return [event for frame in self.frames for event in frame.events]


def opened(shape: tuple[int, ...] = SHAPES[1], **changes: object) -> Opened:
    """A small rank of this shape, on the route that serves it unless another is named."""
    page_size, window, full, swa, slots, interval = (*shape, 0, 0)[:6]
    mode = ("extra_buffer" if interval else "base") if slots else ""
    config = Config(
        page_size, full, swa, window, rows=8, context_pages=64, recurrent_slots=slots, recurrent_mode=mode,
        track_interval=interval,
    )  # fmt: skip
    fields: dict[str, object] = {
        "run": "driven", "rank": Rank(0), "ranks": 1, "epoch": 0, "route": "unified" if window else "radix", "config": config,
        "window_need": TokenCount(window), "stride": 4 * page_size, "redaction": "plain",
    }  # fmt: skip
    return Opened(**(fields | changes))  # type: ignore[arg-type]


class Driven:
    """A cache and the requests that it serves, changed by one command or two with every `step`."""

    def __init__(
        self,
        seed: int,
        shape: tuple[int, ...] = SHAPES[1],
        *,
        recorder: Journal | None = None,
        seq: Seq = FIRST,
        digest_every: int = 50,
        route: str | None = None,
    ) -> None:
        self.chance = random.Random(seed)
        self.journal = FrameList(opened(shape, **({"route": route} if route else {})))
        """What is written down, unless there is another `recorder`."""
        recorder = recorder or self.journal
        self.cache = RankCache(recorder.opened, recorder, digest_every=digest_every, seq=seq)
        self.page_size = shape[0]
        self.device_steps = 0
        longest = 12 * self.page_size
        self.texts = [
            [self.chance.randrange(3) for _ in range(self.chance.randrange(1, longest))] for _ in range(6)
        ]
        self.spaces = (b"", namespace(extra_key="tenant"))
        self.live: dict[int, list[int]] = {}
        self.receipts: list[Receipt] = []
        self.unbound: list[Pages] = []
        self.count = 0
        self._moves: tuple[tuple[Callable[[], None], int], ...] = (
            (self._admit, 22), (self._grow, 42), (self._finish, 10), (self._give_up, 4), (self._evict, 8),
            (self._lock, 3), (self._unlock, 3), (self._match, 3), (self._alloc, 2), (self._free, 2),
            (self._remap, 1), (self._device_step, 4), (self._ledger, 1),
        )  # fmt: skip
        if self.cache.state.states_each:
            self._moves += ((self._evict_states, 2), (self._stray_state, 3))

    def steps(self, count: int) -> Iterator[int]:
        """Take `count` steps, one for each number that is asked for."""
        for number in range(count):
            self.step()
            yield number

    def run(self, count: int) -> "Driven":
        """Take `count` steps."""
        for _ in self.steps(count):
            pass
        return self

    def step(self) -> None:
        """One random command; a refusal is part of the run, and a short pool is helped by an eviction."""
        move = self.chance.choices([move for move, _ in self._moves], [weight for _, weight in self._moves])[
            0
        ]
        try:
            move()
        except PoolShort:
            self.cache.evict(self.chance.randrange(1, 12), self.chance.randrange(1, 12))
        except Refusal:
            pass

    def drain(self) -> "Driven":
        """End everything that is live and give every page back."""
        for request in list(self.live):
            self.cache.abort(request)
        for receipt in self.receipts:
            self.cache.unlock(receipt)
        for pages in self.unbound:
            self.cache.free(pages)
        self.live, self.receipts, self.unbound = {}, [], []
        self.cache.flush()
        return self

    def _any(self) -> int:
        if not self.live:
            raise Refusal("nobody is live")
        return self.chance.choice(list(self.live))

    def _computed(self, request: int) -> int:
        return int(self.cache.state.rows.length[self.cache.state.row_of(request)])

    def _admit(self) -> None:
        chance = self.chance
        text = chance.choice(self.texts)[: chance.randrange(1, 12 * self.page_size)]
        self.count += 1
        space = chance.choice((*self.spaces, b""))
        admission = self.cache.admit(
            f"r{self.count}", raw_key(text), len(text), space, force_miss=chance.random() < 0.1
        )
        self.live[admission.request] = list(text)

    def _grow(self) -> None:
        chance, request = self.chance, self._any()
        text, grown = self.live[request], chance.randrange(1, 2 * self.page_size + 1)
        length = self._computed(request) + grown
        text.extend(chance.randrange(3) for _ in range(length - len(text)))
        ids = np.array([request], np.int64)
        if grown == 1:
            self.cache.decode(ids)
        else:
            self.cache.extend(ids, np.array([grown], np.int32))
        if chance.random() < 0.5:
            self.cache.reclaim(request, length - 1)
        if chance.random() < 0.5:
            self.cache.cache_unfinished(request, raw_key(text[:length]))

    def _finish(self) -> None:
        request = self._any()
        text, length = self.live[request], self._computed(request)
        self.cache.finish(request, raw_key(text[:length]) if self.chance.random() < 0.9 else None)
        del self.live[request]

    def _give_up(self) -> None:
        request = self._any()
        self.chance.choice((self.cache.abort, self.cache.retract))(request)
        del self.live[request]

    def _evict(self) -> None:
        self.cache.evict(self.chance.randrange(5), self.chance.randrange(5))

    def _evict_states(self) -> None:
        self.cache.evict_states(self.chance.randrange(3))

    def _stray_state(self) -> None:
        """A slot for nobody in particular goes to the tree with a stranger's pages, or back."""
        slot = self.cache.take_states(1)
        if self.unbound and self.chance.random() < 0.5:
            pages = self.unbound.pop()
            key = raw_key([3] * self.page_size * (len(pages) // 4))
            brought = Slice(pages, 0, 0, request_account(UNBOUND), UNBOUND, Operation.INSERT, recurrent=slot)
            kept = self.cache.insert(key, b"", brought).prefix
            self.cache.free(Pages(pages[: kept * 4]))
        else:
            self.cache.free_states(slot)

    def _lock(self) -> None:
        if len(self.receipts) < 3:
            self.receipts.append(
                self.cache.lock(self.chance.choice(list(self.cache.state.nodes.values())).id)
            )

    def _unlock(self) -> None:
        if self.receipts:
            self.cache.unlock(self.receipts.pop(self.chance.randrange(len(self.receipts))))

    def _match(self) -> None:
        self.cache.match(raw_key(self.chance.choice(self.texts)), self.chance.choice(self.spaces))

    def _alloc(self) -> None:
        if len(self.unbound) < 3:
            self.unbound.append(self.cache.alloc(self.chance.randrange(1, 4))[0])

    def _free(self) -> None:
        if not self.unbound:
            return
        pages, cache, owner = self.unbound.pop(), self.cache, request_account(UNBOUND)
        match self.chance.randrange(4):
            case 0:
                cache.free(pages)
            case 1:
                cache.free_full(pages, owner)
                cache.free_swa(pages, owner)
            case 2:
                cache.free_swa(pages)
                cache.free(pages)
            case _:
                cache.open_group()
                cache.free(pages)
                cache.flush_group()

    def _remap(self) -> None:
        if len(self.unbound) >= 2:
            source, target = sorted(self.unbound[-2:], key=len)
            self.cache.free_swa(target)
            self.cache.remap(source, Pages(target[: len(source)]))

    def _device_step(self) -> None:
        self.device_steps += 1
        step = self.device_steps
        ids = np.array(sorted(self.live), np.int64)
        stops = np.array([self._computed(request) for request in ids.tolist()], np.int32)
        self.cache.step_began(step, ids, np.maximum(stops - 1, 0), stops)
        try:
            for request in ids.tolist():
                self.cache.reclaim(request, self._computed(request) - 1)
        finally:
            self.cache.step_ended(step)

    def _ledger(self) -> None:
        self.cache.record_ledger("driven")
