"""A rank with a host tier and callers without rows: paths of letters, a letter a page, for the tests of copies."""

import numpy as np

from radixledger.cache.decide.host import Copy
from radixledger.cache.keys import raw_key
from radixledger.cache.match import Hit
from radixledger.cache.rank import RankCache
from radixledger.cache.slices import Inserted, Slice
from radixledger.cache.state import Node
from radixledger.cache.watch import Watched
from radixledger.journal.accounts import request_account
from radixledger.journal.causes import Operation
from radixledger.journal.events import AnyEvent, Config, Opened
from radixledger.journal.moves import pages_of
from radixledger.journal.units import UNBOUND, NodeId, Pages, Rank, TokenCount

from .driven import FrameList

NOBODY = int(request_account(UNBOUND))


def hosted(
    *,
    page: int = 4,
    full: int = 16,
    host: int = 12,
    write: str = "through",
    threshold: int = 1,
    **changes: object,
) -> Opened:
    """The first event of a rank with a host tier."""
    config = Config(
        page,
        full,
        0,
        0,
        rows=4,
        context_pages=16,
        host_pages=host,
        host_write=write,
        host_threshold=threshold,
    )
    fields: dict[str, object] = {
        "run": "hosted", "rank": Rank(0), "ranks": 1, "epoch": 0, "route": "radix", "config": config,
        "window_need": TokenCount(0), "stride": 4 * page, "redaction": "plain",
    }  # fmt: skip
    return Opened(**(fields | changes))  # type: ignore[arg-type]


class Hosted:
    """Every event and every state is judged on the way."""

    def __init__(self, opened: Opened | None = None) -> None:
        self.journal = FrameList(opened or hosted())
        self.rank = RankCache(self.journal.opened, self.journal, watched=Watched.STATE)
        self.state = self.rank.state
        self.page = self.state.page_size

    def key(self, text: str) -> bytes:
        """The key of these letters."""
        return raw_key(np.repeat(np.frombuffer(text.encode(), np.uint8).astype(np.int32), self.page))

    def insert(self, text: str) -> Inserted:
        """Fresh pages for every letter; what the tree had already is given back, as a stranger must."""
        full, _ = self.rank.alloc(len(text))
        return self.give(text, full)

    def give(self, text: str, full: Pages) -> Inserted:
        """These pages for the letters of a path."""
        found = self.rank.insert(self.key(text), b"", Slice(full, 0, 0, NOBODY, UNBOUND, Operation.INSERT))
        if found.prefix:
            self.rank.free(Pages(full[: found.prefix * 4]))
        return found

    def peek(self, text: str) -> Hit:
        """What a match would give."""
        return self.rank.peek(self.key(text))

    def match(self, text: str) -> Hit:
        """Look a path up."""
        return self.rank.match(self.key(text))

    def node(self, text: str) -> Node:
        """The node that ends this path, wherever its pages are."""
        hit = self.peek(text)
        return self.state.nodes[hit.host_node or hit.node]

    def land(self, *copies: Copy) -> None:
        """These backups are gathered and end well."""
        for copy in copies:
            self.rank.gathered(copy.transfer)
            self.rank.end_backup(copy.transfer, True)

    def back_up(self, text: str) -> None:
        """All of a path has copies that have landed."""
        self.land(*self.rank.write_through(self.node(text).id))

    def bring_back(self, node: NodeId) -> None:
        """A path is loaded, and lands."""
        self.rank.end_load(self.rank.load_back(node).transfer, True)

    def since(self, seq: int) -> list[AnyEvent]:
        """The events behind number `seq`."""
        return self.journal.events[seq:]


def pages(*numbers: int) -> Pages:
    """Page ids as they travel."""
    return Pages(np.array(numbers, "<i4").tobytes())


def numbers(packed: bytes) -> list[int]:
    """And back."""
    return [int(page) for page in pages_of(packed)]


def demoted_chain(**changes: int) -> Hosted:
    """Path "ab" is on the device; "cd" and "ef" behind it are FULL tombstones."""
    rank = Hosted(hosted(**changes))  # type: ignore[arg-type]
    for text in ("ab", "abcd", "abcdef"):
        rank.insert(text)
    rank.back_up("abcdef")
    rank.match("ab")
    rank.rank.evict(4, 0)
    return rank


def all_of_it() -> Hosted:
    """A rank that told every kind of event of its copies: backed up, demoted, brought back, adopted, dropped."""
    rank = demoted_chain(host=8)
    rank.bring_back(rank.node("abcd").id)
    rank.insert("abcdef")
    rank.rank.evict(16, 0)
    rank.rank.evict_copies(8)
    return rank
