"""One tree of one route, for tests that say what it does sentence by sentence. A letter of a text is a page and a token."""

from collections.abc import Sequence

import numpy as np

from radixledger.cache.decide.pages import Decision
from radixledger.cache.laws.invariants import broken_laws
from radixledger.cache.match import Hit
from radixledger.cache.rank import RankCache
from radixledger.cache.slices import Inserted, Slice
from radixledger.cache.state import Node
from radixledger.journal.accounts import request_account
from radixledger.journal.causes import Operation
from radixledger.journal.events import (
    AnyEvent,
    Tombstoned,
)
from radixledger.journal.units import UNBOUND, Pages

from ..machine import opened
from ..model_tree import Shape
from ..witnesses import Tape

WINDOW = 4
NOBODY = request_account(UNBOUND)


def key(text: str) -> bytes:
    """A letter is a token."""
    return np.array([ord(letter) for letter in text], "<i4").tobytes()


class Tree:
    """A rank of one route, and what it wrote last."""

    def __init__(self, route: str = "legacy", *, full: int = 64, swa: int = 64) -> None:
        self.tape = Tape(opened(Shape(1, WINDOW, full, swa, row_pages=40, route=route)))
        self.rank = RankCache(self.tape.opened, self.tape)
        self.begun = 0

    def last(self) -> list[AnyEvent]:
        """The events since this was asked for last; every law holds."""
        assert [*broken_laws(self.rank.state)] == []
        events = self.tape.events[self.begun :]
        self.begun += len(events)
        return events

    def insert(self, text: str, *, prev: int = 0, released: int = 0) -> Inserted:
        """Fresh pages behind the first `prev`; SWA is given back in [prev, released)."""
        given = path_pages(self, text[:prev])
        fresh, _ = self.rank.alloc(len(text) - prev) if len(text) > prev else (Pages(b""), b"")
        gone = Pages(fresh[: max(0, released - prev) * 4])
        if gone:
            self.rank.free_swa(gone)
        self.last()
        brought = Slice(Pages(given + fresh), prev, released, NOBODY, UNBOUND, Operation.INSERT)
        return self.rank.insert(key(text), b"", brought)

    def match(self, text: str) -> Hit:
        self.last()
        return self.rank.match(key(text))

    def node(self, text: str) -> Node:
        """The node that this path ends at."""
        for node in self.rank.state.nodes.values():
            if node.parent is not None and path_key(node) == key(text):
                return node
        raise AssertionError(f"no node ends at {text}")

    def nodes(self) -> dict[str, bool]:
        """Each node's path, and whether its SWA is live."""
        nodes = self.rank.state.nodes.values()
        return {spelled(node): bool(node.swa) for node in nodes if node.parent is not None}

    def tombstone(self, text: str) -> None:
        """Take the SWA of an inner node, as pressure would if it were the oldest."""
        node = self.node(text)
        assert node.children, "SWA pressure tombstones inner nodes"

        def decision() -> Decision[None]:
            yield Tombstoned(node.id, node.full, node.swa)

        self.rank._run(decision())
        self.last()

    def begin(self, text: str, computed: int | None = None) -> int:
        """Admit a request and compute its prompt, or the first `computed` tokens."""
        request = self.rank.admit(f"r{self.rank.state.seq}", key(text), len(text)).request
        length = int(self.rank.state.rows.length[self.rank.state.row_of(request)])
        grown = (len(text) if computed is None else computed) - length
        self.rank.extend(np.array([request]), np.array([grown], np.int32))
        self.last()
        return request


def path_key(node: Node) -> bytes:
    parts = b""
    while node.parent is not None:
        parts, node = node.key + parts, node.parent
    return parts


def spelled(node: Node) -> str:
    return "".join(map(chr, np.frombuffer(path_key(node), "<i4").tolist()))


def path_pages(tree: Tree, text: str) -> bytes:
    """The FULL pages of a path that ends at a node or within one."""
    node, pages = tree.rank.state.root, b""
    while len(pages) // 4 < len(text):
        here = text[: len(pages) // 4 + 1]
        node = next(each for each in (node.children or {}).values() if spelled(each).startswith(here))
        pages += node.full
    return pages[: 4 * len(text)]


def kinds(events: Sequence[AnyEvent]) -> list[str]:
    return [type(event).__name__ for event in events]


def of(events: Sequence[AnyEvent], kind: type) -> list[AnyEvent]:
    return [event for event in events if isinstance(event, kind)]
