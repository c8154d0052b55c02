"""The naive model of a host tier, the tree's part: copies by prefix, and copies under way.

No node: a copy is a page for a prefix, and the number of the transfer that is still writing it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from .model import turn_if
from .model_tree import Lock, Prefix, Tree


@dataclass
class Copy:
    """A HOST page that mirrors the FULL page of a prefix; `transfer` is 0 once it can be read."""

    page: int
    transfer: int


@dataclass
class Trip:
    """A copy under way: the prefixes whose pages it writes, and where to. `reads`: the pages on the other side."""

    prefixes: list[Prefix]
    pages: list[int]
    reads: list[int]
    lock: Lock | None
    loads: bool
    gathered: bool = False
    parcel: list[Prefix | None] = field(default_factory=list)


@dataclass
class HostTree(Tree):
    """Places without a FULL page (0) are FULL tombstones: they have copies."""

    copies: dict[Prefix, Copy] = field(default_factory=dict)
    uses: dict[Prefix, int] = field(default_factory=dict)
    unread: set[int] = field(default_factory=set)
    """Backups that have still to read the device."""

    def depth(self, path: Prefix) -> int:
        """How many pages of a path are on the device; they are its first ones."""
        found = 0
        while (
            found + 1 < len(path) and path[: found + 2] in self.places and self.places[path[: found + 2]].full
        ):
            found += 1
        return found

    def stored(self, path: Prefix) -> int:
        """How many are there at all."""
        return super().depth(path)

    def beyond(self, path: Prefix) -> int:
        """How many pages behind those on the device have copies that can be read."""
        start = stop = self.depth(path)
        while stop < self.stored(path) and self.can_read(path[: stop + 2]):
            stop += 1
        return stop - start

    def can_read(self, prefix: Prefix) -> bool:
        """Whether there is a copy that has landed."""
        return prefix in self.copies and not self.copies[prefix].transfer

    def valid(self, path: Prefix) -> bool:
        """A request starts behind what is on the device."""
        return self.depth(path) == len(path) - 1

    def idle_leaves(self) -> dict[Prefix, tuple[int, int]]:
        """What FULL pressure may take: on the device, nothing of the device below, unlocked, not waiting to be read."""
        below = {prefix[:-1] for prefix, place in self.places.items() if place.full}
        return {
            end: self.rank(end)
            for end in self.ends()
            if self.places[end].full
            and end not in below
            and not self.holders(end)
            and not (end in self.copies and self.copies[end].transfer in self.unread)
        }

    def idle_copies(self) -> dict[Prefix, int]:
        """What host pressure may take: copies that can be read and stand alone, with nothing below, unlocked."""
        return {
            end: self.places[end].used
            for end in self.ends()
            if not self.places[end].full
            and self.can_read(end)
            and not self.children(end)
            and not self.holders(end)
        }

    def alone(self, *, held: bool) -> int:
        """How many copies stand alone, those that locks hold or the others."""
        return sum(
            not place.full and self.can_read(prefix) and (self.holders(prefix) > 0) == held
            for prefix, place in self.places.items()
        )

    def lock(self, path: Prefix) -> Lock | None:
        """A copy that is still being written cannot be held."""
        ends = range(self.depth(path), len(path) - 1)
        turn_if(["busy"] * any(not self.can_read(path[: at + 2]) for at in ends))
        return super().lock(path)

    def judge_copy(self, pages: Sequence[int], candidates: dict[Prefix, int]) -> Prefix:
        """The node that has these HOST pages; it must be a candidate, and none may be older."""
        found = [
            end for end in candidates if [self.copies[each].page for each in self.span(end)] == list(pages)
        ]
        assert found, f"the copy {pages} must not go"
        assert candidates[found[0]] == min(candidates.values()), f"the copy {pages} is not the oldest"
        return found[0]
