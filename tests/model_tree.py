"""The tree of the naive model: a dict from prefixes to the pages that end them.

No node, no child, no parent: a node is the run of prefixes up to one marked `ends`, found by walking; locks are
intervals of positions; recency is a stamp on every page of a path that was used.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

Prefix = tuple[object, ...]
"""A namespace, and the contents of each page from the start of the sequence."""


@dataclass(frozen=True)
class Shape:
    """What a rank is built with: tokens per page, pages per pool, window in tokens (0: FULL alone), rows and their pages.

    states: slots for states of a recurrent model; interval: tokens between two that are tracked (0: none are).
    """

    page: int
    window: int
    full: int
    swa: int
    rows: int = 4
    row_pages: int = 10
    formula: str = "rfc"
    leaf: str = "veto"
    victims: str = "lru"
    eviction: str = "lru"
    route: str = "unified"
    ahead: int = 0
    """Tokens behind a page that its content says too: 1 where keys are pairs."""
    frees: bool = True
    """Whether requests give back what lies below their windows."""
    states: int = 0
    interval: int = 0
    host: int = 0
    """Pages of the host tier; copies are written `through` after `threshold` uses, or `back`."""
    write: str = "through"
    threshold: int = 1

    @property
    def keeps(self) -> bool:
        """Whether there is a tree that keeps what requests compute."""
        return self.route not in ("chunk", "swa_chunk")

    @property
    def tail(self) -> int:
        """Pages in the smallest page-aligned suffix that covers the window (R77)."""
        return -(-self.window // self.page)

    def pages(self, tokens: int) -> int:
        """Pages that so many tokens need."""
        return -(-tokens // self.page)

    def units(self, tokens: int) -> int:
        """How long the key of so many tokens is."""
        return max(tokens - self.ahead, 0)

    def frontier(self, old: int, pre: int) -> int:
        """Below which position a request's window pages may go (R129-R132)."""
        page, window = self.page, self.window
        if not window:
            return old
        margin = window + page if self.formula == "rfc" else -(-max(window, page) // page) * page
        return max(old, (pre - margin) // page * page)


@dataclass
class Place:
    """One page of the tree. `ends`: a node ends here. Stamps: larger is younger."""

    full: int
    swa: int | None
    ends: bool
    used: int
    window_used: int
    hits: int = 0
    """How many look-ups came as far as this page."""
    priority: int = 0
    """The highest of the requests that used it."""


@dataclass(eq=False)
class Lock:
    """A receipt: FULL is held for the whole path, SWA from position `start` to its end (R111)."""

    end: Prefix
    start: int
    to_root: bool


@dataclass
class Tree:
    """Which pages stand for which prefix, and who holds them."""

    shape: Shape
    places: dict[Prefix, Place] = field(default_factory=dict)
    locks: list[Lock] = field(default_factory=list)
    prompts: dict[int, Prefix] = field(default_factory=dict)
    """Where the prompts of live requests end whose whole pages are here."""
    answers: dict[Prefix, Prefix] = field(default_factory=dict)
    """Where an answer ends behind which nobody has gone on, and where its prompt does."""
    now: int = 0

    def depth(self, path: Prefix) -> int:
        """How many pages of a path are there."""
        found = 0
        while found + 1 < len(path) and path[: found + 2] in self.places:
            found += 1
        return found

    def stored(self, path: Prefix) -> int:
        """How many pages of a path stand in the tree, wherever they are."""
        return self.depth(path)

    def hit(self, path: Prefix) -> int:
        """The deepest prefix whose last window is live, or that is live from the root (R73-R76)."""
        stop = self.depth(path)
        while stop and not self.valid(path[: stop + 1]):
            stop -= 1
        return stop

    def valid(self, path: Prefix) -> bool:
        """Whether a request may start behind this prefix."""
        stop = len(path) - 1
        return all(
            self.places[path[: at + 2]].swa is not None for at in range(max(0, stop - self.shape.tail), stop)
        )

    def ends(self) -> list[Prefix]:
        """The last prefix of every node."""
        return [prefix for prefix, place in self.places.items() if place.ends]

    def spans_of(self, path: Prefix) -> list[tuple[int, int]]:
        """The nodes along a path, as intervals of positions; the path ends where a node ends."""
        marks = [0] + [at for at in range(1, len(path)) if self.places[path[: at + 1]].ends]
        return list(pairwise(marks))

    def span(self, end: Prefix) -> list[Prefix]:
        """The prefixes of the node that ends here."""
        start, stop = self.spans_of(end)[-1]
        return [end[: at + 2] for at in range(start, stop)]

    def children(self, end: Prefix) -> bool:
        """Whether anything goes on behind this prefix."""
        return any(len(prefix) == len(end) + 1 and prefix[:-1] == end for prefix in self.places)

    def inside(self, path: Prefix) -> bool:
        """Whether a path ends within a node."""
        return len(path) > 1 and not self.places[path].ends

    def cut(self, path: Prefix) -> None:
        """A node ends here from now on; its marks, stamps and locks lie on pages and stay."""
        if len(path) > 1:
            self.places[path].ends = True

    def grow(
        self, path: Prefix, full: Sequence[int], swa: Sequence[int | None], start: int, live: int
    ) -> None:
        """New nodes for [start, end): tombstones below `live`, then live, the last window apart (R94, R95)."""
        end = len(path) - 1
        self.answers.pop(path[: start + 1], None)
        tail = max(live, end - self.shape.tail)
        for first, stop in ((start, live), (live, tail), (tail, end)):
            for at in range(first, stop):
                window = swa[at] if at >= live else None
                self.places[path[: at + 2]] = Place(full[at], window, at == stop - 1, 0, at + 1 - stop)
            if first < stop:
                self.touch(path[: stop + 1])

    def touch(self, path: Prefix) -> None:
        """A path was used: every page of it now, and the live nodes of its last window, older towards the root."""
        end = len(path) - 1
        if not end:
            return
        self.now += max(self.shape.tail, 1)
        for at in range(end):
            self.places[path[: at + 2]].used = self.now
        for start, stop in self.spans_of(path):
            if stop > end - self.shape.tail:
                for at in range(start, stop):
                    place = self.places[path[: at + 2]]
                    if place.swa is not None:
                        place.window_used = self.now - (end - 1 - at)

    # -- locks and victims -----------------------------------------------------------------------------------

    def lock(self, path: Prefix) -> Lock | None:
        """The root is not locked; a window that reaches it runs to it (R119)."""
        if len(path) == 1:
            return None
        end, to_root, start = len(path) - 1, True, 0
        begins = path[: max(0, end - self.shape.tail) + 1]
        if self.shape.victims == "use" and self.inside(begins) and self.places[begins].swa is not None:
            self.cut(begins)
        if not self.shape.tail:
            self.locks.append(Lock(path, end, to_root))
            return self.locks[-1]
        for start, _ in reversed(self.spans_of(path)):
            if end - start >= self.shape.tail:
                to_root = False
                break
        lock = Lock(path, start, to_root)
        self.locks.append(lock)
        return lock

    def ask(self, request: int, path: Prefix, prompt: int) -> None:
        """A request goes on behind `path`; if that is all of its prompt's whole pages, the prompt ends here."""
        self.prompts.pop(request, None)
        if self.shape.victims == "use" and len(path) - 1 == self.shape.units(prompt) // self.shape.page > 0:
            self.prompts[request] = path

    def answer(self, request: int, end: Prefix) -> None:
        """A request has ended, its answer ends here: its prompt waits on, unless somebody went on already."""
        prompt = self.prompts.pop(request, None)
        if prompt is not None and not self.children(end):
            self.answers[end] = prompt

    def lose(self, end: Prefix) -> list[Place]:
        """The node that ends here is gone; its answer ends where the rest of it does, if that is an end."""
        gone, prompt = self.span(end), self.answers.pop(end, None)
        places = [self.places.pop(prefix) for prefix in gone]
        rest = gone[0][:-1]
        if prompt is not None and not self.children(rest) and len(rest) >= len(prompt):
            self.answers.setdefault(rest, prompt)
        return places

    def unlock(self, lock: Lock | None) -> None:
        if lock is not None:
            self.locks.remove(lock)

    def holders(self, prefix: Prefix) -> int:
        """How many locks hold the FULL page of a prefix."""
        return sum(lock.end[: len(prefix)] == prefix for lock in self.locks)

    def window_holders(self, prefix: Prefix) -> int:
        """How many locks hold its SWA page."""
        return sum(lock.end[: len(prefix)] == prefix and lock.start < len(prefix) - 1 for lock in self.locks)

    def used_by(self, path: Prefix, priority: int, fresh: int) -> None:
        """A request of this priority uses a path, of which it brought the pages from `fresh` on."""
        for at in range(len(path) - 1):
            place = self.places[path[: at + 2]]
            place.priority = priority if at >= fresh else max(place.priority, priority)

    def rank(self, end: Prefix) -> tuple[int, int]:
        """Whose turn it is among the ends that FULL pressure may remove: the smallest first."""
        place = self.places[end]
        before = {"lru": 0, "slru": int(place.hits >= 2), "priority": place.priority}
        return before[self.shape.eviction], place.used

    def idle_leaves(self) -> dict[Prefix, tuple[int, int]]:
        """Nodes that FULL pressure may remove, each with what it is judged by (R102)."""
        return {
            end: self.rank(end) for end in self.ends() if not self.children(end) and not self.holders(end)
        }

    def idle_windows(self) -> dict[Prefix, tuple[int, int]]:
        """Nodes whose SWA pages may go, each with what it is judged by: its stamp (R69)."""
        return {
            end: (0, self.places[end].window_used)
            for end in self.ends()
            if self.places[end].swa is not None and not self.window_holders(end)
        }

    def judge_victim(self, pages: Sequence[int], candidates: Mapping[Prefix, tuple[int, int]]) -> Prefix:
        """The node that these FULL pages are; it must be a candidate, and none may be older."""
        found = [
            end
            for end in self.ends()
            if [self.places[prefix].full for prefix in self.span(end)] == list(pages)
        ]
        assert found, (
            f"more was asked for, candidates {sorted(candidates.values())} are there, and {pages} is no node"
        )
        assert found[0] in candidates, f"node {pages} must not go"
        oldest = min(candidates.values())
        assert candidates[found[0]] == oldest, (
            f"node {pages}, used at {candidates[found[0]]}, is not the oldest ({oldest})"
        )
        return found[0]
