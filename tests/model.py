"""The naive model of one rank: sets of pages and a dict of prefixes. The third witness of the machine.

It has no tree, no events, no kept counts and no code of the cache: what a page holds is known by the prefix that
ends in it, a node is a run of pages up to the next mark `ends`, and every question is answered by looking at
everything. Rule: it says what must be so, never how; which page is handed out and which of two equally old victims
goes is the cache's choice, and the model only judges whether it was a lawful one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from radixledger.journal.accounts import FREE, PENDING, Kind, request_account
from radixledger.journal.units import UNBOUND, RequestId

from .model_tree import Lock, Prefix, Shape, Tree
from .model_use import judge_part

TREE = int(Kind.TREE)
"""The account of every page that the tree holds; which node holds it is the business of the prefixes."""


class Turned(Exception):
    """The command must be refused, with one of these reasons, and nothing may change."""

    def __init__(self, *reasons: str) -> None:
        super().__init__(" or ".join(reasons))
        self.reasons = frozenset(reasons)


@dataclass
class Guest:
    """A live request. Row and lengths: pages of the row by position, tokens."""

    rid: str
    prompt: int
    path: Prefix
    lock: Lock | None
    row: list[int]
    length: int
    cursor: int
    protected: int
    priority: int = 0
    shown: list[int] = field(default_factory=list)
    """The SWA pages that its row shows for positions below `protected`."""


@dataclass
class Step:
    """A device step in flight: the first position that each of its requests writes, and what it reads.

    reads: the first page position, and the FULL and SWA pages from there on.
    """

    starts: dict[int, int]
    reads: dict[int, tuple[int, list[int], list[int | None]]]


def turn_if(reasons: Iterable[str]) -> None:
    """Refuse if there is any reason."""
    found = set(reasons)
    if found:
        raise Turned(*found)


@dataclass
class Model:
    """What must be true on one rank. Every command judges first and raises Turned before it writes."""

    shape: Shape
    strict: bool = True
    mapping: dict[int, int] = field(default_factory=dict)
    guests: dict[int, Guest] = field(default_factory=dict)
    steps: dict[int, Step] = field(default_factory=dict)
    group_open: bool = False
    full_evicted: int = 0
    swa_evicted: int = 0
    tombstones: int = 0
    healed: int = 0

    def __post_init__(self) -> None:
        self.tree = Tree(self.shape)
        self.full: dict[int, int] = dict.fromkeys(range(1, self.shape.full + 1), int(FREE))
        self.swa: dict[int, int] = dict.fromkeys(range(1, self.shape.swa + 1), int(FREE))

    # -- what is where ---------------------------------------------------------------------------------------

    @property
    def freed_to(self) -> int:
        """Where freed pages go (R29)."""
        return int(PENDING if self.group_open else FREE)

    def dangling(self) -> set[int]:
        """FULL pages that are nobody's and still mapped (A4)."""
        return {full for full in self.mapping if self.full[full] in (FREE, PENDING)}

    def count(self, book: dict[int, int], account: int) -> int:
        """How many pages an account holds."""
        return sum(held == account for held in book.values())

    def give_up(self, full: Iterable[int], *, keep_full: bool = False) -> None:
        """FULL pages with whatever SWA they are mapped to; or, `keep_full`, that SWA alone."""
        for page in full:
            if not keep_full:
                self.full[page] = self.freed_to
            if page in self.mapping:
                self.swa[self.mapping.pop(page)] = self.freed_to

    def unknown(self, full: Iterable[int]) -> bool:
        """Whether a page is named that the pool does not have (R51)."""
        return any(page not in self.full for page in full)

    def in_a_row(self, full: Iterable[int]) -> bool:
        """Whether a page stands in the own part of a live request's row."""
        own = {
            page for guest in self.guests.values() for page in guest.row[guest.protected // self.shape.page :]
        }
        return bool(own & set(full))

    # -- pages -----------------------------------------------------------------------------------------------

    def judge_taking(self, count: int) -> None:
        """Refuse what the pools cannot hand out (R45, R54)."""
        short = any(count > self.count(book, FREE) for book in (self.full, self.swa) if book)
        turn_if(["pool_short"] * short + ["refused"] * bool(self.dangling()))

    def take(self, request: int, full: Sequence[int], swa: Sequence[int], count: int) -> None:
        """free → request: whichever pages, as long as they were free and are mapped pairwise."""
        assert len(full) == count == len(set(full)), "as many pages as asked for"
        if not self.shape.window:
            assert not any(swa), "SWA where there is none"
            assert all(self.full[page] == FREE for page in full), "a page was handed out while held"
            self.full.update(dict.fromkeys(full, int(request_account(RequestId(request)))))
            return
        assert len(swa) == count == len(set(swa)), "as many pages as asked for"
        for page, window in zip(full, swa, strict=True):
            assert self.full[page] == FREE, f"FULL page {page} was handed out while held by {self.full[page]}"
            assert self.swa[window] == FREE, (
                f"SWA page {window} was handed out while held by {self.swa[window]}"
            )
            assert page not in self.mapping, f"FULL page {page} carries a mapping of a former life"
            self.full[page] = self.swa[window] = request_account(RequestId(request))
            self.mapping[page] = window

    def alloc(self, count: int, handed: tuple[Sequence[int], Sequence[int]] | None) -> None:
        turn_if(["refused"] * (count <= 0))
        self.judge_taking(count)
        assert handed is not None, "the pools had enough, and yet it was refused"
        self.take(UNBOUND, *handed, count)

    def _judge_givers(
        self, book: dict[int, int], pages: Iterable[int], giver: int | None
    ) -> tuple[list[int], set[str]]:
        """The pages that may go, and the reasons why others may not."""
        lawful, reasons = [], set()
        for page in dict.fromkeys(pages):
            held = book[page]
            if held == PENDING and self.group_open:
                continue
            if held & 7 == Kind.REQUEST and giver in (None, held):
                lawful.append(page)
            else:
                reasons.add("double_free" if held in (FREE, PENDING) else "foreign_free")
        return lawful, reasons

    def free(self, full: Sequence[int], giver: int | None) -> set[str]:
        """Returns the reasons of what go-on mode has to tell as violations."""
        turn_if(["refused"] * self.unknown(full))
        lawful, reasons = self._judge_givers(self.full, full, giver)
        turn_if([*(reasons if self.strict else ()), *["busy"] * self.in_a_row(lawful)])
        self.give_up(lawful)
        return reasons

    def free_full(self, full: Sequence[int], giver: int | None) -> set[str]:
        turn_if(["refused"] * self.unknown(full))
        lawful, reasons = self._judge_givers(self.full, full, giver)
        turn_if([*(reasons if self.strict else ()), *["busy"] * self.in_a_row(lawful)])
        self.full.update(dict.fromkeys(lawful, self.freed_to))
        return reasons

    def free_swa(self, full: Sequence[int], giver: int | None) -> set[str]:
        turn_if(["refused"] * self.unknown(full))
        mapped = [page for page in full if page in self.mapping]
        lawful, reasons = self._judge_givers(self.swa, [self.mapping[page] for page in mapped], giver)
        if giver is not None and any(self.full[page] not in (giver, FREE, PENDING) for page in full):
            reasons.add("foreign_free")
        own = [page for page in mapped if self.mapping[page] in lawful]
        turn_if([*(reasons if self.strict else ()), *["busy"] * self.in_a_row(own)])
        self.give_up(own, keep_full=True)
        return reasons

    def remap(self, source: Sequence[int], target: Sequence[int]) -> None:
        pages = [*source, *target]
        turn_if(
            ["refused"] * (len(source) != len(target) or len(set(pages)) < len(pages) or self.unknown(pages))
        )
        mapped = all(page in self.mapping for page in source) and not any(
            page in self.mapping for page in target
        )
        owners = [{self.full[page] for page in side} for side in (source, target)]
        lawful = all(len(side) <= 1 and all(owner & 7 == Kind.REQUEST for owner in side) for side in owners)
        turn_if(["refused"] * (not mapped or not lawful) + ["busy"] * self.in_a_row(pages))
        for old, new in zip(source, target, strict=True):
            self.mapping[new] = self.mapping.pop(old)
            self.swa[self.mapping[new]] = self.full[new]

    def open_group(self) -> None:
        self.group_open = True

    def flush_group(self) -> None:
        turn_if(["busy"] * (not self.group_open))
        self.group_open = False
        for book in (self.full, self.swa):
            book.update({page: int(FREE) for page, held in book.items() if held == PENDING})

    def translate(self, full: Sequence[int], require_mapped: bool) -> list[int]:
        turn_if(["refused"] * self.unknown(full))
        found = [self.mapping.get(page, 0) for page in full]
        turn_if(["unmapped"] * (require_mapped and 0 in found))
        return found

    # -- the tree --------------------------------------------------------------------------------------------

    def evict(self, full: int, swa: int, victims: Sequence[tuple[int, ...]]) -> tuple[int, int]:
        """`victims` are the FULL pages of each node that the cache chose, in order. Returns the gain."""
        turn_if(["busy"] * self.group_open)
        chosen = list(victims)
        gained_full = gained_swa = 0
        while gained_full < full and (leaves := self.tree.idle_leaves()):
            end = self.tree.judge_victim(chosen.pop(0) if chosen else (), leaves)
            pages, windows = self._remove(end)
            gained_full, gained_swa = gained_full + pages, gained_swa + windows
        while gained_swa < swa and (windows_left := self.tree.idle_windows()):
            victim = chosen.pop(0) if chosen else ()
            part = judge_part(self.tree, victim, windows_left)
            end = part or self.tree.judge_victim(victim, windows_left)
            if self.tree.children(end) or self.tree.holders(end):
                gained_swa += self._tombstone(end)
            else:
                pages, windows = self._remove(end)
                gained_full, gained_swa = gained_full + pages, gained_swa + windows
        assert not chosen, f"{len(chosen)} victims more than were asked for"
        return gained_full, gained_swa

    def _remove(self, end: Prefix) -> tuple[int, int]:
        pages = self.tree.lose(end)
        windows = sum(place.swa is not None for place in pages)
        self.give_up(place.full for place in pages)
        self.full_evicted, self.swa_evicted = self.full_evicted + len(pages), self.swa_evicted + windows
        return len(pages), windows

    def _tombstone(self, end: Prefix) -> int:
        pages = [self.tree.places[prefix] for prefix in self.tree.span(end)]
        self.give_up((place.full for place in pages), keep_full=True)
        for place in pages:
            place.swa = None
        self.tombstones += 1
        self.swa_evicted += len(pages)
        return len(pages)

    def judge_flush(self) -> None:
        """Refuse unless the tree alone holds pages, and nobody holds it (R33, R177)."""
        held = sum(account & 7 == Kind.REQUEST or account == PENDING
                   for book in (self.full, self.swa) for account in book.values())  # fmt: skip
        turn_if(["busy"] * bool(self.guests or self.group_open or self.tree.locks or held or self.steps))

    def flush(self) -> int:
        """Returns the number of nodes that go. A flush is no eviction: the totals stay."""
        self.judge_flush()
        count = len(self.tree.ends())
        self.give_up(place.full for place in self.tree.places.values())
        self.tree.places.clear()
        self.tree.answers.clear()
        return count

    def judge_slice(
        self, key: Sequence[str], pages: Sequence[int], prev: int, released: int, giver: int
    ) -> None:
        """Refuse an insert of what the giver does not hold, or has no SWA for (R89, R97, R271)."""
        own, live = pages[max(prev, 0) :], pages[max(prev, released, 0) :]
        windows = [self.mapping.get(page) for page in live] if self.shape.window else []
        turn_if(
            ["refused"] * (not self.shape.window and released > prev)
            + ["refused"] * (len(key) < len(pages) or prev < 0 or released < 0 or None in windows)
            + ["refused"] * (giver & 7 != Kind.REQUEST)
            + ["foreign_free"] * (len(set(own)) < len(own) or any(self.full.get(page) != giver for page in own))
            + ["foreign_free"] * any(self.swa[page] != giver for page in windows if page is not None)
        )  # fmt: skip

    def insert(
        self, space: bytes, key: Sequence[str], pages: Sequence[int], prev: int, released: int, giver: int
    ) -> tuple[Prefix, int]:
        """A raw insert. Returns where the path ends, and how many pages of it the tree had before."""
        turn_if(["refused"] * (not self.shape.keeps))
        self.judge_slice(key, pages, prev, released, giver)
        path = (space, *key[: len(pages)])
        given = self.tree.depth((space, *key[:prev]))
        turn_if(["busy"] * self.in_a_row(pages[prev:]) + ["refused"] * (prev > given))
        end, had = self.settle(path, pages, prev, released, keeps=not self.shape.window)
        if had < len(end) - 1:
            self.tree.used_by(end, 0, had)  # what strangers bring is worth that, and so is the way to it
        return end, had

    def settle(
        self, path: Prefix, pages: Sequence[int], prev: int, released: int, *, keeps: bool = False
    ) -> tuple[Prefix, int]:
        """What an insert frees, heals, leaves and creates (R61, R83-R95). `keeps`: the giver keeps what is there already."""
        tree, had = self.tree, self.tree.depth(path)
        tree.cut(path[: had + 1])
        for start, stop in tree.spans_of(path[: had + 1]):
            if stop <= prev:
                continue
            tombstone = self.shape.window and tree.places[path[: stop + 1]].swa is None
            boundary = max(released, prev, start) if tombstone else stop
            if not keeps:
                self.give_up(pages[max(start, prev) : min(boundary, stop)])
            if boundary < stop:
                tree.cut(path[: boundary + 1])
                self._heal(path, pages, boundary, stop)
        if had == len(pages):
            return path, had
        live = max(had, min(released, len(pages)))
        if live == len(pages) and self.shape.leaf == "veto":
            self.give_up(pages[had:])
            return path[: had + 1], had
        self.give_up(pages[had:live], keep_full=True)
        for page in pages[had:]:
            self.full[page] = TREE
        for page in pages[live:] if self.shape.window else ():
            self.swa[self.mapping[page]] = TREE
        tree.grow(path, pages, [self.mapping.get(page) for page in pages], had, live)
        return path, had

    def _heal(self, path: Prefix, pages: Sequence[int], start: int, stop: int) -> None:
        """A node is live again: with the fresh FULL pages, or, where a lock holds the old ones, with those (R90)."""
        self.healed += 1
        kept = bool(self.tree.holders(path[: stop + 1]))
        for at in range(start, stop):
            place, fresh = self.tree.places[path[: at + 2]], pages[at]
            place.swa = self.mapping[fresh]
            self.swa[place.swa] = TREE
            if kept:
                self.mapping[place.full] = self.mapping.pop(fresh)
                self.full[fresh] = self.freed_to
            else:
                self.full[place.full] = self.freed_to
                self.full[fresh] = TREE
                place.full = fresh
