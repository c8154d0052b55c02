"""The host tier at work: what a page holds survives eviction and loading, on whatever thread and in whatever order.

Each page of the device holds a stamp of the path that it ends; a page that is handed out is scribbled over at once, so
that whoever reads too late reads nonsense.
"""

import random
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest

from radixledger.cache.host_memory import Contents, MemoryCopier, ThreadCarrier
from radixledger.cache.host_tier import Arrival, Carrier, HostTier
from radixledger.cache.refusals import Busy, PoolShort
from radixledger.cache.state import Node
from radixledger.journal.accounts import Kind
from radixledger.journal.events import Opened
from radixledger.journal.moves import pages_of
from radixledger.journal.units import NodeId, TransferId

from .hosted import Hosted, hosted

SCRIBBLE = -1


class ByHand:
    """A carrier that does its jobs when a test says so, in the order that it says."""

    def __init__(self) -> None:
        self.jobs: dict[TransferId, Callable[[], object]] = {}
        self.over: list[Arrival] = []
        self.breaks: set[TransferId] = set()

    def carry(self, transfer: TransferId, job: Callable[[], object], /) -> None:
        self.jobs[transfer] = job

    def do(self, transfer: TransferId) -> None:
        """One job, now."""
        job = self.jobs.pop(transfer)
        if transfer in self.breaks:
            self.over.append(Arrival(transfer, None, OSError("the host is out of order")))
        else:
            self.over.append(Arrival(transfer, job(), None))

    def arrived(self, *, wait: bool) -> list[Arrival]:
        while wait and self.jobs and not self.over:
            self.do(next(iter(self.jobs)))
        over, self.over = self.over, []
        return over


class Stamped(Hosted):
    """A rank whose pages hold stamps."""

    def __init__(self, opened: Opened | None = None, carrier: Carrier | None = None) -> None:
        super().__init__(opened)
        config = self.state.config
        shape = (self.page,)
        self.device: Contents = np.zeros((config.full_pages + 1, *shape), np.int64)
        self.hand = ByHand()
        self.copier = MemoryCopier(self.device, np.zeros((config.host_pages + 1, *shape), np.int64))
        self.tier = HostTier(self.rank, self.copier, carrier or self.hand)

    def compute(self, text: str) -> NodeId:
        """What a prefill does: what is not on the device is computed into fresh pages and given to the tree."""
        short = len(text) - self.state.full.available
        if short > 0:
            self.tier.evict(short)
        full, _ = self.rank.alloc(len(text))
        self.device[pages_of(full)] = SCRIBBLE
        for place, page in enumerate(pages_of(full).tolist()):
            self.device[page] = stamps(text[: place + 1], self.page)
        node = self.give(text, full).node.id
        self.tier.used(node)
        return node

    def check(self) -> None:
        """Every page of the tree holds the stamp of its path, on the device and, where a copy has landed, on the host."""
        for node in self.state.nodes.values():
            path = self.text_of(node)
            for pool, pages, there in (
                (self.device, node.full, bool(node.full)),
                (self.copier.host, node.host, bool(node.host) and not node.backup),
            ):
                for at, page in enumerate(pages_of(pages).tolist() if there else []):
                    stamp = stamps(path[: node.end - node.pages + at + 1], self.page)
                    assert pool[page].tolist() == stamp.tolist(), (
                        f"page {page} of node {node.id}, path {path}"
                    )

    def text_of(self, node: Node) -> str:
        """The letters of a node's path."""
        parts = []
        walk: Node | None = node
        while walk is not None:
            parts.append("".join(chr(token) for token in np.frombuffer(walk.key, "<i4")[:: self.page]))
            walk = walk.parent
        return "".join(reversed(parts))


def stamps(path: str, count: int) -> Contents:
    """What a page that ends this path holds."""
    return np.full(count, int.from_bytes(path.encode(), "big") % (1 << 61), np.int64) + np.arange(count)


@pytest.mark.parametrize("page", [1, 16, 128, 256])
@pytest.mark.parametrize("write", ["through", "back"])
def test_what_a_path_holds_comes_back_from_the_host(write: str, page: int) -> None:
    """R211: stamped, evicted, written over, loaded, compared."""
    tier = Stamped(hosted(page=page, write=write, full=6, host=12))
    tier.compute("abcd")
    tier.tier.drain()
    tier.tier.evict(6)
    tier.tier.drain()
    assert tier.peek("abcd").tokens == 0
    tier.compute("wxyz")
    tier.compute("uv")
    assert (tier.device == stamps("abcd", page)).all(axis=1).sum() == 0, "nothing of it is left on the device"
    hit = tier.match("abcd")
    assert hit.host_tokens == 4 * page
    transfer = tier.tier.load(hit.host_node)
    (ended,) = [each for each in tier.tier.drain() if each.transfer == transfer]
    assert ended == (transfer, True, None)
    assert tier.peek("abcd").tokens == 4 * page
    tier.check()


def test_pages_may_be_written_over_as_soon_as_they_were_gathered() -> None:
    """B19: what lands is what was there when the copy began, however late it is stored."""
    tier = Stamped(hosted(write="back", full=4, host=4))
    tier.compute("abcd")
    tier.tier.evict(4)
    tier.compute("wxyz")
    assert tier.tier.settle() == []
    (stored,) = tier.hand.jobs
    tier.hand.do(stored)
    assert [(each.transfer, each.landed) for each in tier.tier.settle()] == [(stored, True)]
    tier.check()
    assert tier.peek("abcd").host_tokens == 16


def test_a_copy_that_nobody_wants_any_more_is_given_back_once_and_not_before_its_carrier_is_done() -> None:
    """B150, B19: four pages under way, two of them wanted: the others are released once, after the last write to them.

    The field's prefetch released what it had not completed twice, by its helper and by its caller.
    """
    tier = Stamped(hosted(full=8, host=4))
    tier.compute("ab")
    tier.compute("cd")
    wanted, other = tier.hand.jobs
    tier.tier.cancel(other)
    tier.tier.cancel(other)
    assert tier.state.host.held[Kind.IN_FLIGHT] == 4, "a carrier may still write to them"
    tier.hand.do(other)
    tier.hand.do(wanted)
    ended = tier.tier.settle()
    assert [(each.transfer, each.landed) for each in ended] == [(other, False), (wanted, True)]
    tier.tier.cancel(other)
    assert tier.tier.settle() == []
    assert (tier.state.host.available, tier.state.host.held[Kind.TREE]) == (2, 2)
    tier.check()


def test_whatever_breaks_is_told_and_leaves_the_tree_whole() -> None:
    """A store, a gather, a fetch, a flush that raise: no copy, or everything as it was."""
    tier = Stamped(hosted(full=8, host=8))
    tier.compute("ab")
    (store,) = tier.hand.jobs
    tier.hand.breaks.add(store)
    (ended,) = tier.tier.drain()
    assert (ended.landed, str(ended.error)) == (False, "the host is out of order")
    assert (tier.node("ab").host, tier.state.host.available) == (b"", 8)
    gather, tier.copier.gather = tier.copier.gather, broken  # type: ignore[method-assign]
    assert tier.tier.used(tier.match("ab").node) == []
    assert (tier.node("ab").host, tier.state.transfers) == (b"", {})
    tier.copier.gather = gather  # type: ignore[method-assign]
    tier.tier.used(tier.match("ab").node)
    tier.tier.drain()
    tier.tier.evict(2)
    for way in ("fetch", "flush"):
        whole = getattr(tier.copier, way)
        setattr(tier.copier, way, broken)
        if way == "fetch":
            tier.hand.breaks.add(tier.state.next_transfer)  # type: ignore[arg-type]
        tier.tier.load(tier.node("ab").id)
        (ended,) = tier.tier.drain()
        setattr(tier.copier, way, whole)
        assert (ended.landed, type(ended.error)) == (False, OSError)
        assert (tier.peek("ab").host_tokens, tier.state.full.available) == (8, 8)
    tier.tier.load(tier.node("ab").id)
    tier.tier.drain()
    tier.check()
    assert tier.peek("ab").tokens == 8


def broken(*_: object) -> Contents:
    raise OSError("the device is out of order")


def test_a_load_makes_room_while_its_path_is_locked_and_is_refused_where_there_is_none() -> None:
    """R152: what it goes on from is not evicted for it; with everything else lent out it is refused, and holds nothing."""
    tier = Stamped(hosted(full=6, host=8))
    tier.compute("ab")
    tier.compute("abcd")
    tier.tier.drain()
    tier.tier.evict(2)
    tier.compute("wxyz")
    tier.tier.drain()
    assert [tier.peek(text).tokens for text in ("ab", "wxyz")] == [8, 16]
    tier.tier.load(tier.node("abcd").id)
    tier.tier.drain()
    assert [tier.peek(text).tokens for text in ("abcd", "wxyz")] == [16, 0]
    tier.tier.evict(2)
    lent, _ = tier.rank.alloc(4)
    with pytest.raises(PoolShort):
        tier.tier.load(tier.node("abcd").id)
    assert not tier.state.root.holds
    tier.rank.free(lent)
    tier.tier.load(tier.node("abcd").id)
    tier.tier.drain()
    tier.check()


def test_a_load_waits_for_the_end_of_a_step() -> None:
    tier = Stamped(hosted(full=6, host=8))
    tier.compute("ab")
    tier.tier.drain()
    tier.tier.evict(2)
    transfer = tier.tier.load(tier.node("ab").id)
    tier.hand.do(transfer)
    none = np.zeros(0, np.int32)
    tier.rank.step_began(1, np.zeros(0, np.int64), none, none)
    assert tier.tier.settle() == []
    with pytest.raises(Busy, match="step 1 is running"):
        tier.tier.drain()
    tier.rank.step_ended(1)
    assert [each.transfer for each in tier.tier.settle()] == [transfer]
    tier.check()


def test_a_reset_waits_for_what_is_under_way_and_then_gives_everything_back() -> None:
    """R211: drained first, then emptied, on both tiers."""
    tier = Stamped(hosted(full=8, host=8))
    tier.compute("abcd")
    tier.compute("wx")
    assert tier.tier.flush() == 2
    assert (tier.state.full.available, tier.state.host.available, tier.hand.jobs) == (8, 8, {})
    tier.compute("ab")
    transfer = tier.rank.write_through(tier.compute("cd"))
    assert transfer == []
    (copy,) = tier.hand.jobs.keys() - {min(tier.hand.jobs)}
    del tier.hand.jobs[copy]
    with pytest.raises(Busy, match=f"copies {copy} were not begun here"):
        tier.tier.drain()


@pytest.mark.parametrize("write", ["through", "back"])
@pytest.mark.parametrize("seed", range(2))
def test_no_page_ever_holds_anything_but_its_path(seed: int, write: str) -> None:
    """R211, B19, B150: paths come and go by chance, copies end in any order, some of them badly or unwanted."""
    tier, chance = Stamped(hosted(page=1, write=write, full=14, host=10)), random.Random(seed)
    seen = {"loaded": 0, "failed": 0, "adopted": 0}
    for _ in range(160):
        text = "".join(chance.choice("ab") for _ in range(chance.randint(1, 6)))
        hit = tier.match(text)
        if hit.host_tokens and chance.random() < 0.5:
            with suppress(Busy, PoolShort):
                tier.tier.load(hit.host_node)
        else:
            with suppress(PoolShort):
                tier.compute(text)
                seen["adopted"] += hit.host_tokens > 0
        for transfer in chance.sample(sorted(tier.hand.jobs), chance.randint(0, len(tier.hand.jobs))):
            if chance.random() < 0.2:
                tier.hand.breaks.add(transfer)
            if chance.random() < 0.2:
                tier.tier.cancel(transfer)
            tier.hand.do(transfer)
        for ended in tier.tier.settle():
            seen["failed"] += not ended.landed
            seen["loaded"] += ended.landed
        tier.check()
    tier.tier.drain()
    tier.check()
    assert min(seen.values()) > 5, seen
    assert len(tier.state.nodes) > 3
    tier.tier.flush()
    assert (tier.state.full.available, tier.state.host.available) == (14, 10)


def test_copies_run_on_a_thread_of_their_own() -> None:
    """B137, R211: decisions stay on the caller's thread, copies on the carrier's; both see whole pages."""
    carrier = ThreadCarrier()
    tier, chance = Stamped(hosted(page=16, full=20, host=16), carrier), random.Random(5)
    for _ in range(120):
        text = "".join(chance.choice("ab") for _ in range(chance.randint(1, 5)))
        hit = tier.match(text)
        if hit.host_tokens:
            tier.tier.load(hit.host_node)
            tier.tier.drain()
        tier.compute(text)
        tier.tier.settle()
        if chance.random() < 0.3:
            tier.tier.evict(6)
            tier.tier.drain()
            tier.check()
    assert tier.tier.flush() > 0
    carrier.close()
    assert tier.state.host.available == 16
    with pytest.raises(ValueError, match=r"pages of int64\(16,\) do not fit into int64\(4,\)"):
        MemoryCopier(tier.device, np.zeros((3, 4), np.int64))
