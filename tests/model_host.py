"""The naive model of a rank with a host tier: who has which page of both tiers, and what every page holds.

Besides who owns a page it knows what the page holds: the prefix that was computed into it, or nothing that anybody may
read. So a page that was read too late, or given up too early, is found by what comes back. Rule: as in `model`, it
says what must be so and never how, and shares no code with the cache.
"""

from collections.abc import Sequence

from radixledger.journal.accounts import FREE, Kind

from .model import TREE, turn_if
from .model_faces import FacesModel
from .model_host_tree import Copy, HostTree, Trip
from .model_tree import Prefix


class HostModel(FacesModel):
    """A whole rank. `drops` are the HOST pages of each copy that a command dropped, in order, as the cache chose."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.tree: HostTree = HostTree(self.shape)
        self.host: dict[int, int] = dict.fromkeys(range(1, self.shape.host + 1), int(FREE))
        self.trips: dict[int, Trip] = {}
        self.device: dict[int, Prefix] = {}
        self.store: dict[int, Prefix | None] = {}
        self.host_hit = 0
        """Pages that the last match found on the host."""

    @property
    def threshold(self) -> int:
        """Up to how many uses are counted."""
        return self.shape.threshold if self.shape.write == "through" else 0

    # -- what holds what -------------------------------------------------------------------------------------

    def take(self, request: int, full: Sequence[int], swa: Sequence[int], count: int) -> None:
        super().take(request, full, swa, count)
        for page in full:
            self.device.pop(page, None)

    def contents_are_right(self) -> bool:
        """Every page of the tree holds its prefix, and so does every copy that can be read."""
        places, copies = self.tree.places.items(), self.tree.copies.items()
        return all(self.device.get(place.full) == prefix for prefix, place in places if place.full) and all(
            self.store.get(copy.page) == prefix for prefix, copy in copies if not copy.transfer
        )

    # -- the tree --------------------------------------------------------------------------------------------

    def match(self, space: bytes, letters: Sequence[str], force_miss: bool = False) -> tuple[int, int]:
        """Both parts are cut where they end, and become the youngest; the part on the device was used once more."""
        path = (space, *letters)
        depth = self.tree.depth(path)
        hit = 0 if force_miss else depth
        self.host_hit = 0 if force_miss else self.tree.beyond(path)
        end = path[: hit + 1]
        self.tree.cut(end)
        if self.host_hit:
            self.tree.cut(path[: hit + self.host_hit + 1])
        self.tree.touch(end)
        for at in range(hit):
            prefix = path[: at + 2]
            self.tree.places[prefix].hits += 1
            self.tree.uses[prefix] = min(self.threshold, self.tree.uses[prefix] + 1)
        if self.host_hit:
            self.tree.touch(path[: hit + self.host_hit + 1])
        return hit, depth

    def settle(
        self, path: Prefix, pages: Sequence[int], prev: int, released: int, *, keeps: bool = False
    ) -> tuple[Prefix, int]:
        """What is on the device is a duplicate, over a FULL tombstone the pages are adopted, the rest is new (R64)."""
        tree, had, stored = self.tree, self.tree.depth(path), self.tree.stored(path)
        for at in range(prev, len(pages)):
            self.device[pages[at]] = path[: at + 2]
        tree.cut(path[: stored + 1])
        if not keeps:
            self.give_up(pages[prev:had])
        for start, stop in tree.spans_of(path[: stored + 1]):
            if start >= had:
                for at in range(start, stop):
                    tree.places[path[: at + 2]].full = pages[at]
                    self.full[pages[at]] = TREE
                tree.touch(path[: stop + 1])
        if stored < len(pages):
            for at in range(stored, len(pages)):
                self.full[pages[at]] = TREE
                tree.uses[path[: at + 2]] = min(self.threshold, 1)
            tree.grow(path, pages, [None] * len(pages), stored, stored)
        return path, had

    def evict(self, full: int, swa: int, victims: Sequence[tuple[int, ...]]) -> tuple[int, int]:
        """A leaf that has a copy stays without its FULL pages; one that has none goes, with all behind it."""
        turn_if(["busy"] * self.group_open)
        chosen, gained = list(victims), 0
        while gained < full and (leaves := self.tree.idle_leaves()):
            end = self.tree.judge_victim(chosen.pop(0) if chosen else (), leaves)
            span = self.tree.span(end)
            self.give_up(self.tree.places[prefix].full for prefix in span)
            for prefix in span:
                self.tree.places[prefix].full = 0
            if end not in self.tree.copies:
                self.lose(span[0])
            gained += len(span)
        self.full_evicted += gained
        assert not chosen, f"{len(chosen)} victims more than were asked for"
        return gained, 0

    def lose(self, first: Prefix) -> None:
        """A prefix and all behind it leave; copies that can be read go free, others stay with their transfers."""
        for prefix in [each for each in self.tree.places if each[: len(first)] == first]:
            copy = self.tree.copies.pop(prefix, None)
            if copy is not None and not copy.transfer:
                self.host[copy.page] = int(FREE)
            del self.tree.places[prefix], self.tree.uses[prefix]

    def judge_flush(self) -> None:
        super().judge_flush()
        turn_if(["busy"] * bool(self.trips))

    def flush(self) -> int:
        self.judge_flush()
        count = len(self.tree.ends())
        self.give_up(place.full for place in self.tree.places.values() if place.full)
        for prefix in [each for each in self.tree.places if len(each) == 2]:
            self.lose(prefix)
        return count

    # -- copies ----------------------------------------------------------------------------------------------

    def _make_room(self, pages: int, drops: list[list[int]]) -> bool:
        """Whether so many HOST pages are free, or became so by dropping what stands alone."""
        while (free := self.count(self.host, FREE)) < pages:
            candidates = self.tree.idle_copies()
            if not candidates or free + self.tree.alone(held=False) < pages:
                return False
            self.lose(self.tree.span(self.tree.judge_copy(drops.pop(0) if drops else [], candidates))[0])
        return True

    def _begin(self, end: Prefix, transfer: int, full: Sequence[int], host: Sequence[int]) -> None:
        """in flight: whichever HOST pages, as long as they were free."""
        span = self.tree.span(end)
        assert [self.tree.places[prefix].full for prefix in span] == list(full), "what is mirrored"
        assert len(host) == len(set(host)) == len(span)
        for prefix, page in zip(span, host, strict=True):
            assert self.host[page] == FREE, f"HOST page {page} was handed out while held by {self.host[page]}"
            self.host[page] = in_flight(transfer)
            self.store[page] = None
            self.tree.copies[prefix] = Copy(page, transfer)
        self.trips[transfer] = Trip(span, list(host), list(full), None, loads=False)
        self.tree.unread.add(transfer)

    def write_through(
        self, path: Prefix | None, begun: list[tuple[int, list[int], list[int]]], drops: list[list[int]]
    ) -> None:
        """Every node of the path that is due, from the root on, up to the first that is not or for which there is no room."""
        turn_if(["refused"] * (self.shape.write != "through" or path is None))
        assert path is not None
        for _, stop in self.tree.spans_of(path):
            end = path[: stop + 1]
            if self.tree.uses[end] < self.threshold or not self.tree.places[end].full:
                break
            if end not in self.tree.copies:
                if not self._make_room(len(self.tree.span(end)), drops):
                    break
                assert begun, f"{end} is due, and there is room"
                self._begin(end, *begun.pop(0))
        assert not begun, "more was copied than was due"
        assert not drops, "more was dropped than room was needed"

    def write_back(self, begun: tuple[int, list[int], list[int]] | None, drops: list[list[int]]) -> None:
        """The next victim of FULL pressure, if it has no copy and there is room."""
        turn_if(["refused"] * (self.shape.write != "back"))
        leaves = self.tree.idle_leaves()
        end = min(leaves, key=lambda prefix: leaves[prefix], default=None)
        due = (
            end is not None
            and end not in self.tree.copies
            and self._make_room(len(self.tree.span(end)), drops)
        )
        assert due == (begun is not None), "the next victim is copied if there is room, and nothing else is"
        if begun is not None and end is not None:
            self._begin(end, *begun)
        assert not drops, "more was dropped than room was needed"

    def gathered(self, transfer: int) -> None:
        trip = self._trip(transfer, loads=False)
        turn_if(["refused"] * trip.gathered)
        trip.gathered = True
        trip.parcel = [self.device.get(page) for page in trip.reads]
        self.tree.unread.discard(transfer)

    def end_backup(self, transfer: int, landed: bool) -> None:
        """Copies whose prefix has left meanwhile are given back; what is nowhere any more leaves with all behind it."""
        trip = self._trip(transfer, loads=False)
        turn_if(["refused"] * (landed and not trip.gathered))
        for at, (prefix, page) in enumerate(zip(trip.prefixes, trip.pages, strict=True)):
            mine = self.tree.copies.get(prefix) == Copy(page, transfer)
            self.host[page] = TREE if landed and mine else int(FREE)
            if landed and mine:
                self.tree.copies[prefix].transfer = 0
                self.store[page] = trip.parcel[at]
            elif mine:
                del self.tree.copies[prefix]
        del self.trips[transfer]
        self.tree.unread.discard(transfer)
        lost = [
            each
            for each, place in self.tree.places.items()
            if not place.full and each not in self.tree.copies
        ]
        if lost:
            self.lose(min(lost, key=len))

    def evict_copies(self, pages: int, drops: list[list[int]]) -> int:
        gained = 0
        while gained < pages and (candidates := self.tree.idle_copies()):
            span = self.tree.span(self.tree.judge_copy(drops.pop(0) if drops else [], candidates))
            gained += len(span)
            self.lose(span[0])
        assert not drops, "more was dropped than was asked for"
        return gained

    def load_back(self, path: Prefix | None, begun: tuple[int, list[int], list[int]] | None) -> None:
        """All FULL tombstones up to the end of the path, or none; nothing is evicted for it."""
        turn_if(["refused"] * (path is None))
        assert path is not None
        start, stop = self.tree.depth(path), len(path) - 1
        chain = [path[: at + 2] for at in range(start, stop)]
        turn_if(["refused"] * (not chain))
        turn_if(["busy"] * any(not self.tree.can_read(prefix) for prefix in chain))
        turn_if(["pool_short"] * (len(chain) > self.count(self.full, FREE)))
        assert begun is not None, "there was room, and all copies could be read"
        transfer, full, host = begun
        assert [self.tree.copies[prefix].page for prefix in chain] == host, "what is read"
        assert len(full) == len(set(full)) == len(chain)
        for page in full:
            assert self.full[page] == FREE, f"FULL page {page} was handed out while held by {self.full[page]}"
            self.full[page] = in_flight(transfer)
            self.device.pop(page, None)
        self.trips[transfer] = Trip(chain, list(full), list(host), self.tree.lock(path), loads=True)

    def end_load(self, transfer: int, landed: bool) -> None:
        """Node by node from the root: where an insert was faster its pages stay, and those of the load are given back."""
        trip = self._trip(transfer, loads=True)
        turn_if(["busy"] * (landed and bool(self.steps)))
        path, first = trip.prefixes[-1], len(trip.prefixes[0]) - 2
        for start, stop in self.tree.spans_of(path):
            nodes = [path[: at + 2] for at in range(start, stop)] if start >= first else []
            taken = landed and bool(nodes) and not self.tree.places[nodes[0]].full
            for prefix in nodes:
                at = len(prefix) - 2 - first
                self.full[trip.pages[at]] = TREE if taken else self.freed_to
                if taken:
                    self.tree.places[prefix].full = trip.pages[at]
                    content = self.store.get(trip.reads[at])
                    assert content is not None, "a copy was read that nobody wrote"
                    self.device[trip.pages[at]] = content
            if taken:
                self.tree.touch(path[: stop + 1])
        self.tree.unlock(trip.lock)
        del self.trips[transfer]

    def _trip(self, transfer: int, *, loads: bool) -> Trip:
        trip = self.trips.get(transfer)
        turn_if(["refused"] * (trip is None or trip.loads != loads))
        assert trip is not None
        return trip

    # -- the ledger ------------------------------------------------------------------------------------------

    def ledger(self) -> dict[str, int | bool]:
        """With what copies hold and are writing."""
        page, row = self.shape.page, super().ledger()
        device = [prefix for prefix, place in self.tree.places.items() if place.full]
        locked = sum(self.tree.holders(prefix) > 0 for prefix in device)
        mirrored = sum(prefix in self.tree.copies and self.tree.can_read(prefix) for prefix in device)
        return row | {
            "idle": bool(row["idle"]) and not self.trips,
            "full_tree_evictable": (len(device) - locked) * page,
            "full_tree_protected": locked * page,
            "full_in_flight": sum(held & 7 == Kind.IN_FLIGHT for held in self.full.values()) * page,
            "host_capacity": len(self.host) * page,
            "host_available": self.count(self.host, FREE) * page,
            "host_tree_evictable": self.tree.alone(held=False) * page,
            "host_tree_protected": self.tree.alone(held=True) * page,
            "host_tree_mirrored": mirrored * page,
            "host_in_flight": sum(held & 7 == Kind.IN_FLIGHT for held in self.host.values()) * page,
        }


def in_flight(transfer: int) -> int:
    """The account of a copy under way."""
    return transfer << 3 | int(Kind.IN_FLIGHT)
