"""The naive model of the legacy route: where its rules differ from those of the unified one, said once more by looking.

Written from the description of the route, sentence by sentence. Each rule in which the routes differ is a switch, so
that a difference between them can be traced to the rules that make it. Rule: as in `model`, it says what must be so and
never how, and shares no code with the cache.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .model import turn_if
from .model_faces import FacesModel
from .model_tree import Lock, Place, Prefix, Shape, Tree

INFINITE = 1 << 60


class Rules(NamedTuple):
    """The rules that the two routes do not share; as they stand here, those of the legacy one."""

    path_is_refreshed: bool = True
    """A use makes all of its path young; else only the last window of it (R77)."""
    walk_is_refreshed: bool = True
    """As far as the walk went; else as far as the prefix can be used."""
    leaf_is_whole: bool = True
    """A new leaf is one node however long; else its last window is a node of its own (R95)."""
    walk_is_cut: bool = True
    """A node is cut where the walk ends in it; else only where the usable prefix does."""
    tombstones_go_along: bool = True
    """Who removes a leaf removes the childless tombstones above it; else they become leaves."""
    locks_have_no_gap: bool = True
    """A lock over a tombstone is refused; else it is counted by position (A21)."""


LEGACY = Rules()
UNIFIED = Rules(*[False] * len(Rules._fields))


@dataclass
class LegacyTree(Tree):
    """Recency, leaves and locks by the rules."""

    rules: Rules = LEGACY

    def hit(self, path: Prefix) -> int:
        """Count live tokens node by node; a tombstone commits the node before it and resets the count."""
        count, committed, depth = INFINITE, 0, self.depth(path)
        for start, stop in self._nodes_of(path[: depth + 1]):
            if self.places[path[: stop + 1]].swa is None:
                committed = start if count >= self.shape.window else committed
                count = 0
            else:
                count += (stop - start) * self.shape.page
        return depth if count >= self.shape.window else committed

    def _nodes_of(self, path: Prefix) -> list[tuple[int, int]]:
        """The nodes along a path that may end within one: of that one the part on the path."""
        marks = [at for at in range(1, len(path)) if self.places[path[: at + 1]].ends or at == len(path) - 1]
        return list(zip([0, *marks], marks, strict=False))

    def grow(
        self, path: Prefix, full: Sequence[int], swa: Sequence[int | None], start: int, live: int
    ) -> None:
        """A tombstone below `live`, and one live leaf however long it is."""
        if not self.rules.leaf_is_whole:
            super().grow(path, full, swa, start, live)
            return
        end = len(path) - 1
        for at in range(start, end):
            window = swa[at] if at >= live else None
            self.places[path[: at + 2]] = Place(full[at], window, at in (live - 1, end - 1), 0, 0)
        self.touch(path)

    def touch(self, path: Prefix) -> None:
        """Both lists: every node of the path is the youngest, the leaf before its ancestors; tombstones are in one list."""
        if not self.rules.path_is_refreshed:
            super().touch(path)
            return
        end = len(path) - 1
        self.now += end
        for at in range(end):
            place = self.places[path[: at + 2]]
            place.used = self.now
            if place.swa is not None:
                place.window_used = self.now - (end - 1 - at)

    def lock(self, path: Prefix) -> Lock | None:
        """Live nodes upward until they hold a window, or to the root; refused if a tombstone comes first."""
        if not self.rules.locks_have_no_gap or len(path) == 1:
            return super().lock(path)
        end, start, to_root = len(path) - 1, 0, True
        for start, stop in reversed(self.spans_of(path)):
            turn_if(["refused"] * (self.places[path[: stop + 1]].swa is None))
            if (end - start) * self.shape.page >= self.shape.window:
                to_root = False
                break
        lock = Lock(path, start, to_root)
        self.locks.append(lock)
        return lock


class LegacyModel(FacesModel):
    """A whole rank under these rules."""

    def __init__(self, shape: Shape, strict: bool = True, rules: Rules = LEGACY) -> None:
        super().__init__(shape, strict)
        self.rules = rules
        self.tree: LegacyTree = LegacyTree(shape, rules=rules)

    def match(self, space: bytes, letters: Sequence[str], force_miss: bool = False) -> tuple[int, int]:
        """The walk cuts the node that it ends in, and refreshes all it walked, wherever the usable prefix ends."""
        path = (space, *letters)
        depth = self.tree.depth(path)
        if force_miss:
            return 0, depth
        hit = self.tree.hit(path)
        self.tree.cut(path[: (depth if self.rules.walk_is_cut else hit) + 1])
        refreshed = path[: (depth if self.rules.walk_is_refreshed else hit) + 1]
        self.tree.cut(refreshed[: hit + 1])
        self.tree.touch(refreshed)
        return hit, depth

    def insert(
        self, space: bytes, key: Sequence[str], pages: Sequence[int], prev: int, released: int, giver: int
    ) -> tuple[Prefix, int]:
        """A raw insert refreshes what it walked, also where it adds nothing."""
        end, had = super().insert(space, key, pages, prev, released, giver)
        self.tree.touch(end)
        return end, had

    def evict(self, full: int, swa: int, victims: Sequence[tuple[int, ...]]) -> tuple[int, int]:
        """A leaf goes with the childless tombstones above it; what goes along counts for both requests."""
        turn_if(["busy"] * self.group_open)
        chosen, gained = list(victims), [0, 0]
        while gained[0] < full and (leaves := self.tree.idle_leaves()):
            end = self.tree.judge_victim(chosen.pop(0) if chosen else (), leaves)
            self._delete(end, chosen, gained)
        while gained[1] < swa and (windows := self.tree.idle_windows()):
            end = self.tree.judge_victim(chosen.pop(0) if chosen else (), windows)
            if self.tree.children(end):
                gained[1] += self._tombstone(end)
            else:
                self._delete(end, chosen, gained)
        assert not chosen, f"{len(chosen)} victims more than were asked for"
        return gained[0], gained[1]

    def _delete(self, end: Prefix, chosen: list[tuple[int, ...]], gained: list[int]) -> None:
        tree, orphan = self.tree, True
        assert not tree.holders(end), "a locked leaf is never removed"
        while orphan:
            parent = end[: tree.spans_of(end)[-1][0] + 1]
            pages, windows = self._remove(end)
            gained[0], gained[1] = gained[0] + pages, gained[1] + windows
            orphan = (
                self.rules.tombstones_go_along
                and len(parent) > 1
                and tree.places[parent].swa is None
                and not tree.children(parent)
                and not tree.holders(parent)
            )
            if orphan:
                end = tree.judge_victim(chosen.pop(0) if chosen else (), {parent: (0, 0)})
