"""The core and its components: a fake one, of which no code of the core can know, is asked for all that it should be.

Fakes keep nothing in the state; what they were asked is in their `calls`. The ranks here have FULL pages only in
their slices (the SWA part of each is freed before), so that the fake alone decides.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from radixledger.cache.components.component import Component, Events, Segment
from radixledger.cache.components.table import components_of
from radixledger.cache.decide.unified import unevict
from radixledger.cache.eviction import oldest_leaf
from radixledger.cache.laws.invariants import broken_laws
from radixledger.cache.match import is_boundary
from radixledger.cache.rank import RankCache
from radixledger.cache.refusals import RankPoisoned, Refusal
from radixledger.cache.slices import Slice
from radixledger.cache.state import Node, Receipt, State
from radixledger.journal.accounts import FREE, Pool, request_account
from radixledger.journal.causes import Cause, Operation, Site, label
from radixledger.journal.events import (
    AnyEvent,
    Digested,
    Evicted,
    Freed,
    Locked,
    Removed,
    Split,
    Stop,
    Transferred,
    Unlocked,
)
from radixledger.journal.moves import pages_of
from radixledger.journal.units import NO_PAGES, ROOT, TO_ROOT, UNBOUND, BoundaryId, NodeId, Pages, RequestId

from .driven import SHAPES, Driven, FrameList, opened

CACHE = Path(__file__).parents[2] / "cache"
CORE = ("components/component.py", "decide/unified.py", "decide/eviction.py", "match.py")
PAGE = 4
NOBODY = request_account(UNBOUND)


class Fake(Component):
    """Boundaries at multiples of `every` pages; takes over what lies behind page `consumes`; all calls are kept."""

    pool = Pool.SWA
    miss = Stop.FORCED_MISS
    leaf_site = Site.PREFIX
    frees_duplicates = True

    def __init__(self, name: str = "fake", *, every: int = 1, consumes: int | None = None) -> None:
        self.name = name
        self.every = every
        self.consumes = consumes
        self.veto = False
        self.cut_at: tuple[int, ...] = ()
        self.victims: list[int] = []
        self.keeps_leaf = False
        self.calls: list[str] = []

    def boundary(self, state: State, node: Node, pages: int) -> tuple[Node, int]:
        while node.parent is not None and (node.end - node.pages + pages) % self.every:
            pages -= 1
            if not pages:
                node = node.parent
                pages = node.pages
        return node, pages

    def consumed_from(self, state: State, node: Node, start: int, brought: Slice) -> int:
        return node.end if self.consumes is None else self.consumes

    def adopt(self, state: State, node: Node, start: int, brought: Slice) -> Events:
        self.calls.append(f"adopt [{start}, {node.end})")
        taken = brought.part(start, node.end)
        yield Freed(
            brought.giver, taken, NO_PAGES, NO_PAGES, FREE, brought.request, brought.why(Site.COMPOSITE)
        )

    def recover(self, state: State, node: Node, start: int, brought: Slice) -> Events:
        self.calls.append(f"{self.name} recovers {node.id} at {start}")
        return ()

    def vetoes(self, state: State, start: int, total: int, brought: Slice) -> bool:
        return self.veto

    def cuts(self, state: State, start: int, total: int, brought: Slice) -> tuple[int, ...]:
        return tuple(at for at in self.cut_at if start < at < total)

    def prepare(self, state: State, start: int, total: int, brought: Slice) -> Events:
        self.calls.append(f"prepare [{start}, {total})")
        return ()

    def outgrown(self, state: State, node: Node, brought: Slice) -> Events:
        self.calls.append(f"node at {node.end} outgrown")
        return ()

    def settled(self, state: State, node: Node, brought: Slice) -> Events:
        self.calls.append(f"settled at {node.end}")
        return ()

    def segment(self, state: State, node: Node) -> Segment:
        return Segment(skipped=bytes([self.every]) * 8)

    def is_held(self, node: Node, receipt: Receipt) -> bool:
        return not self.veto

    def unlocked(self, state: State, node: Node, request: RequestId, why: Cause) -> Events:
        self.calls.append(f"unlocked at {node.end} with {node.anchors} left, {label(why)}")
        return ()

    def oldest(self, state: State) -> Node | None:
        return state.nodes.get(self.victims[0]) if self.victims else None

    def held(self, node: Node) -> int:
        return 1

    def parting(self, state: State, node: Node) -> AnyEvent | None:
        self.victims.pop(0)
        return Digested(b"gone") if self.keeps_leaf else None


class Rank:
    """A rank whose tree has these components and no other."""

    def __init__(self, *components: Component) -> None:
        self.journal = FrameList(opened((PAGE, PAGE, 40, 40)))
        self.cache = RankCache(self.journal.opened, self.journal)
        self.cache.state.components = components

    @property
    def state(self) -> State:
        return self.cache.state

    def slice(self, count: int, prev: int = 0, node: Node | None = None) -> Slice:
        """So many FULL pages; the first `prev` are those of `node`'s path."""
        full, _ = self.cache.alloc(count - prev)
        self.cache.free_swa(full)
        given = b"" if node is None else node.full
        return Slice(Pages(given + full), prev, count, NOBODY, UNBOUND, Operation.INSERT)

    def insert(self, letters: str, prev: int = 0) -> list[AnyEvent]:
        """Insert pages with these contents; the events of it."""
        node = self.state.nodes[self.cache.peek(key(letters[:prev]), full_only=True).node]
        brought = self.slice(len(letters), prev, node)
        before = self.journal.count
        self.cache.insert(key(letters), b"", brought)
        return self.journal.events[before:]

    def node(self, letters: str) -> Node:
        return self.state.nodes[self.cache.peek(key(letters), full_only=True).node]

    def check(self) -> None:
        assert list(broken_laws(self.state)) == []


def key(letters: str) -> bytes:
    return b"".join(letter.encode() * PAGE * 4 for letter in letters)


def names(events: list[AnyEvent]) -> list[str]:
    return [type(event).__name__ for event in events]


# -- what the core knows -------------------------------------------------------------------------------------


def identifiers(path: Path) -> Iterator[str]:
    """Every name that a module's code uses, without its prose."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        for field in ("id", "attr", "name", "arg", "module"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                yield name


@pytest.mark.parametrize("name", CORE)
def test_the_core_refers_to_no_window(name: str) -> None:
    """R15: neither a window's size, nor its locks, its order of victims or its module."""
    told = set(identifiers(CACHE / name))
    assert [each for each in sorted(told) if "window" in each.lower()] == []
    assert told & {"tail_pages", "swa_locks", "swa_tick", "ceil_page", "page_size"} <= {"page_size"}


def test_this_reading_of_names_can_fail() -> None:
    assert {"window_pages", "tail_pages"} <= set(identifiers(CACHE / "components" / "window.py")) | {
        "window_pages"
    }
    assert "tail_pages" in set(identifiers(CACHE / "components" / "window.py"))


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_component_that_keeps_nothing_changes_nothing(shape: tuple[int, int, int, int], order: int) -> None:
    """R15, R68: beside SWA, before it or after it, the same commands give the same journal."""
    alone, together = Driven(3, shape), Driven(3, shape)
    window = components_of(alone.journal.opened)
    together.cache.state.components = (*window, Component())[::order]
    alone.run(250)
    together.run(250)
    assert alone.journal.events == together.journal.events


# -- match ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("grids", "hit"), [((1,), 8), ((2,), 8), ((3,), 6), ((5,), 5), ((2, 3), 6), ((3, 5), 0), ((3, 4, 2), 0)]
)
def test_a_match_ends_where_every_component_can_start(grids: tuple[int, ...], hit: int) -> None:
    """R71: a component's miss skips a place and ends nothing; FULL alone is contiguous from the root."""
    rank = Rank(*(Fake(every=every) for every in grids))
    rank.insert("abc")
    rank.insert("abcdefgh", prev=3)
    found = rank.cache.match(key("abcdefghx"))
    assert (found.tokens, found.full_tokens) == (hit * PAGE, 8 * PAGE)
    assert found.stop == (Stop.NO_CHILD if hit == 8 else Stop.FORCED_MISS)
    assert rank.state.nodes[found.node].end == hit
    assert is_boundary(rank.state, rank.state.nodes[found.node])
    rank.check()


def test_a_match_by_full_alone_asks_no_component() -> None:
    """R72."""
    rank = Rank(Fake(every=5))
    rank.insert("abcdefgh")
    assert rank.cache.match(key("abcdefg"), full_only=True).tokens == 7 * PAGE
    assert rank.cache.match(key("abcdefg")).tokens == 5 * PAGE


# -- insert --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prev", [0, 1, 2])
@pytest.mark.parametrize(
    ("consumed", "smallest"), [((None,), 4), ((2,), 2), ((4, 2), 2), ((None, 3), 3), ((4, 4), 4)]
)
def test_the_smallest_consumed_boundary_counts(
    prev: int, consumed: tuple[int | None, ...], smallest: int
) -> None:
    """R59-R61: the core frees [prev, boundary) once and leaves the rest to those who consumed it."""
    rank = Rank(*(Fake() for _ in consumed))
    rank.insert("abcd")
    if prev:
        rank.cache.match(key("abcd"[:prev]), full_only=True)
    fakes = [fake for fake in rank.state.components if isinstance(fake, Fake)]
    for fake, consumes in zip(fakes, consumed, strict=True):
        fake.consumes = consumes
    events = rank.insert("abcd", prev=prev)
    lots = [(label(each.cause), len(each.full) // 4) for each in events if isinstance(each, Freed)]
    takers = [fake for fake in fakes if fake.consumes not in (None, 4)]
    by_core = [("insert/duplicate", smallest - prev)] * (smallest > prev)
    assert lots == by_core + [("insert/composite", 4 - smallest)] * len(takers)
    assert [fake.calls[-2] for fake in takers] == [f"adopt [{smallest}, 4)"] * len(takers)
    assert any(isinstance(event, Split) for event in events) == (prev < smallest < 4)


@pytest.mark.parametrize("consumes", [-1, 0])
def test_nothing_is_consumed_that_the_tree_gave(consumes: int) -> None:
    """R59, A9: a boundary before the request's own pages, or before the node, stops the rank instead of a double owner."""
    fake = Fake()
    rank = Rank(fake)
    rank.insert("abcd")
    brought = rank.slice(4, 2, rank.node("ab"))
    brought = brought._replace(pages=Pages(rank.node("abcd").full[:8] + brought.pages[-8:]))
    fake.consumes = consumes
    with pytest.raises(AssertionError, match="A9"):
        rank.cache.insert(key("abcd"), b"", brought)
    with pytest.raises(RankPoisoned):
        rank.cache.evict(1, 0)


def test_a_veto_of_any_component_frees_the_leaf_and_a_cut_of_any_divides_it() -> None:
    """R93-R95: each is asked where it wants to cut; a leaf that is no use to one is not made."""
    one, other = Fake(), Fake()
    one.cut_at, other.cut_at = (2, 5), (3, 5, 9)
    rank = Rank(one, other)
    grown = [event for event in rank.insert("abcdefg") if isinstance(event, Transferred)]
    assert [len(event.full) // 4 for event in grown] == [2, 1, 2, 2]
    assert one.calls == other.calls == ["prepare [0, 7)", "node at 0 outgrown", "settled at 7"]
    other.veto = True
    events = rank.insert("abcdefghi", prev=0)
    assert [label(event.cause) for event in events if isinstance(event, Freed)][-1] == "insert/veto"
    assert not any(isinstance(event, Transferred) for event in events)
    assert one.calls[-1] == "settled at 7"
    rank.check()


# -- recovery ------------------------------------------------------------------------------------------------


def test_each_component_recovers_once_before_the_pages_count() -> None:
    """R64, R65, A11: every component once and in order, FULL not among them, then the pages are the node's."""
    one, other = Fake("one"), Fake("other")
    one.calls = other.calls
    rank = Rank(one, other)
    rank.insert("ab")
    trace, node = other.calls, rank.node("ab")
    trace.clear()
    brought = Slice(node.full, 0, 2, NOBODY, UNBOUND, Operation.INSERT)
    for event in unevict(rank.state, node, 0, brought):
        trace.append(f"{type(event).__name__} {node.id}")
    assert trace == [f"one recovers {node.id} at 0", f"other recovers {node.id} at 0", f"Adopted {node.id}"]


# -- locks ---------------------------------------------------------------------------------------------------


def test_a_lock_holds_what_each_component_says_and_each_is_told_of_its_end() -> None:
    """R112, R113: one receipt for all; a receipt that one of them does not hold is refused (R122)."""
    one, other = Fake(every=1), Fake(every=2)
    rank = Rank(one, other)
    rank.insert("ab")
    receipt = rank.cache.lock(rank.node("ab").id)
    locked = rank.journal.events[-1]
    assert isinstance(locked, Locked)
    assert (locked.boundary, locked.marked, locked.skipped) == (TO_ROOT, ROOT, b"\1" * 8 + b"\2" * 8)
    second = rank.cache.lock(rank.node("ab").id)
    rank.cache.unlock(second)
    rank.cache.unlock(receipt)
    assert isinstance(rank.journal.events[-1], Unlocked)
    assert one.calls[-2:] == ["unlocked at 2 with 1 left, unlock", "unlocked at 2 with 0 left, unlock"]
    assert other.calls[-2:] == one.calls[-2:]
    third = rank.cache.lock(rank.node("ab").id)
    other.veto = True
    with pytest.raises(Refusal, match="is not held"):
        rank.cache.unlock(third)


def test_the_mark_of_the_component_that_has_one_is_the_receipts() -> None:
    class Marking(Component):
        def segment(self, state: State, node: Node) -> Segment:
            return Segment(BoundaryId(7), NodeId(node.id), b"")

    for components in ((Marking(), Component()), (Component(), Marking())):
        rank = Rank(*components)
        rank.insert("ab")
        assert rank.cache.lock(rank.node("ab").id).boundary == 7
        assert rank.node("ab").boundary == 7


# -- eviction ------------------------------------------------------------------------------------------------


def test_a_component_names_its_victims_and_the_core_takes_what_goes_along() -> None:
    """R67, R100, R102, R106: victims by the component's own order; a leaf goes whole, FULL first and in one event."""
    fake = Fake()
    rank = Rank(fake)
    for letters in ("ab", "cd", "ef"):
        rank.insert(letters)
    oldest, _, youngest = (rank.node(letters).id for letters in ("ab", "cd", "ef"))
    leaf = oldest_leaf(rank.state)
    assert leaf is not None
    assert leaf.id == oldest
    fake.victims = [youngest]
    gain = rank.cache.evict(0, 1)
    removed, told = rank.journal.events[-2:]
    assert isinstance(removed, Removed)
    assert isinstance(told, Evicted)
    assert (removed.node, label(removed.cause), pages_of(removed.full).size) == (youngest, "evict/prefix", 2)
    assert tuple(gain) == (2, 1) == (told.gained_full, told.gained_swa)
    assert tuple(rank.cache.evict(0, 1)) == (0, 0)
    fake.victims, fake.keeps_leaf = [oldest, oldest], True
    assert tuple(rank.cache.evict(0, 2)) == (0, 2)
    assert names(rank.journal.events[-3:]) == ["Digested", "Digested", "Evicted"]
    assert oldest in rank.state.nodes
