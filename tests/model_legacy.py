"""The naive model of the legacy route: where its rules differ from those of the unified one, said once more by looking.

Written from the description of the route, sentence by sentence. Rule: as in `model`, it says what must be so and never
how, and shares no code with the cache.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from .model import turn_if
from .model_faces import FacesModel
from .model_tree import Lock, Place, Prefix, Tree

INFINITE = 1 << 60


@dataclass
class LegacyTree(Tree):
    """Whole paths are refreshed, leaves are not cut at the window, locks pass no tombstone."""

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
        end = len(path) - 1
        for at in range(start, end):
            window = swa[at] if at >= live else None
            self.places[path[: at + 2]] = Place(full[at], window, at in (live - 1, end - 1), 0, 0)
        self.touch(path)

    def touch(self, path: Prefix) -> None:
        """Both lists: every node of the path is the youngest, the leaf before its ancestors; tombstones are in one list."""
        end = len(path) - 1
        self.now += end
        for at in range(end):
            place = self.places[path[: at + 2]]
            place.used = self.now
            if place.swa is not None:
                place.window_used = self.now - (end - 1 - at)

    def lock(self, path: Prefix) -> Lock | None:
        """Live nodes upward until they hold a window, or to the root; refused if a tombstone comes first."""
        if len(path) == 1:
            return None
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
    """A whole rank under the legacy rules."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.tree = LegacyTree(self.shape)

    def match(self, space: bytes, letters: Sequence[str], force_miss: bool = False) -> tuple[int, int]:
        """The walk cuts the node that it ends in, and refreshes all it walked, wherever the usable prefix ends."""
        path = (space, *letters)
        depth = self.tree.depth(path)
        if force_miss:
            return 0, depth
        walked = path[: depth + 1]
        self.tree.cut(walked)
        hit = self.tree.hit(walked)
        self.tree.touch(walked)
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
        tree = self.tree
        assert not tree.holders(end), "a locked leaf is never removed"
        while True:
            parent = end[: tree.spans_of(end)[-1][0] + 1]
            pages, windows = self._remove(end)
            gained[0], gained[1] = gained[0] + pages, gained[1] + windows
            orphan = len(parent) > 1 and tree.places[parent].swa is None and not tree.children(parent)
            if not orphan or tree.holders(parent):
                return
            expected = tuple(tree.places[prefix].full for prefix in tree.span(parent))
            victim = chosen.pop(0) if chosen else ()
            assert victim == expected, f"tombstone {expected} was left without children, {victim} went"
            end = parent

    def no_leaf_is_a_tombstone(self) -> bool:
        """A law of this route."""
        return all(
            self.tree.children(end) or self.tree.places[end].swa is not None for end in self.tree.ends()
        )
