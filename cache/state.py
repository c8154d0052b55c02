"""What is true on one rank: pools, mapping, tree, rows, locks. Data only; `evolve` is the only writer.

Everybody may read. Rule: whatever is derived (orders of victims, counts, `holds`) is kept by `evolve`
beside what it is derived from, and `invariants` recounts it.
"""

from typing import TYPE_CHECKING, NamedTuple

from radixledger.cache import window
from radixledger.cache.keys import KEY_MODES
from radixledger.cache.ledger import MappingBook, PoolBook
from radixledger.cache.rows import Rows
from radixledger.cache.running import Running
from radixledger.cache.traits import FOLDED, UNKNOWN
from radixledger.cache.weights import node_weight
from radixledger.journal.accounts import Kind, Pool
from radixledger.journal.events import Config, Opened
from radixledger.journal.units import (
    NO_PAGES,
    NO_TRANSFER,
    ROOT,
    TO_ROOT,
    BoundaryId,
    KeyLen,
    NodeId,
    Pages,
    RequestId,
    Seq,
    TokenCount,
    TransferId,
)

if TYPE_CHECKING:
    from radixledger.cache.components.component import Component

PROTECTED_USES = 3
"""Uses after which a path is protected under `slru`: it came, and was hit twice."""

IN_LEAF_ORDER = 1
IN_WINDOW_ORDER = 2
IN_SPARE_ORDER = 4
IN_STATE_ORDER = 16
IN_HOST_ORDER = 8

Order = list[tuple[int, int, "Node"]]
"""A heap of (tick, node id, node): candidates, oldest first. Ticks in it may lag behind; they only grow."""


class Node:
    """A node of the radix tree; it owns the pages of its edge, `[end - pages, end)` of its path.

    key: `stride` bytes per page. full: FULL pages. swa: as many SWA pages, or empty: a tombstone,
    or a node of a tree without windows.
    host: HOST pages that mirror the FULL ones, or empty. Without FULL pages, but with a copy, it is a FULL tombstone.
    backup: the transfer that still writes that copy, 0 once it landed. demoted: children that are FULL tombstones.
    hits: how often the path through here was used, up to the threshold of writing through.
    anchors: receipts on this very node. holds: anchors, and children that are held; FULL is locked while > 0.
    swa_locks: receipts whose window segment runs through here. tick, swa_tick: recency, larger is younger.
    recurrent: the slot with the state of a recurrent model after the node's last token, or empty; recurrent_tick.
    asked: prompts that end here and whose answers nobody has taken up yet. answers: the node at which the prompt
    ends whose answer this leaf ends, the root for none (`spare`). priority: the highest of those who used the path,
    where priorities count (`standing`). weight: its coefficient in the digest, 0 until that was asked for since it came;
    content: what the digest says of its pages, known while it has a weight.
    """

    __slots__ = ("anchors", "answers", "asked", "backup", "boundary", "children", "content", "demoted", "end", "full",
                 "hits", "holds", "host", "id", "key", "namespace", "pages", "parent", "priority", "queued",
                 "recurrent", "recurrent_tick", "swa", "swa_locks", "swa_tick", "tick", "weight")  # fmt: skip

    def __init__(
        self, id: NodeId, parent: "Node | None", key: bytes, full: Pages, swa: Pages, namespace: bytes,
        host: Pages = NO_PAGES,
    ) -> None:  # fmt: skip
        self.id = id
        self.parent = parent
        self.key = key
        self.full = full
        self.swa = swa
        self.namespace = namespace
        self.host = host
        self.backup: TransferId = NO_TRANSFER
        self.pages = len(full or host) >> 2
        self.end: int = self.pages + (parent.end if parent else 0)
        self.children: dict[bytes | tuple[bytes, bytes], Node] | None = None
        self.anchors = 0
        self.holds = 0
        self.swa_locks = 0
        self.boundary: BoundaryId = TO_ROOT
        self.tick = 0
        self.swa_tick = 0
        self.recurrent: Pages = NO_PAGES
        self.recurrent_tick = 0
        self.queued = 0
        self.demoted = 0
        self.hits = 0
        self.asked = 0
        self.answers: NodeId = ROOT
        self.priority = 0
        self.content = 0
        self.weight = 0


class Receipt(NamedTuple):
    """What one lock holds, and all that is needed to give back exactly that (R112, A22)."""

    node: NodeId
    boundary: BoundaryId
    skipped: tuple[NodeId, ...] = ()
    """Tombstones within the segment when it was locked: evidence, not instructions."""


class Request:
    """A live request: what does not change with every token. Lengths stand in its row.

    source: the state slot that is yet to be copied to its running slot; empty once its first step began.
    """

    __slots__ = ("id", "namespace", "node", "prefix", "priority", "prompt", "receipt", "rid", "row", "source")

    def __init__(
        self, id: RequestId, rid: str, row: int, prompt: int, prefix: int, node: NodeId, namespace: bytes,
        priority: int = 0,
    ) -> None:  # fmt: skip
        self.id = id
        self.rid = rid
        self.row = row
        self.prompt = prompt
        self.prefix = prefix
        self.node = node
        self.namespace = namespace
        self.priority = priority
        self.receipt: Receipt | None = None
        self.source: Pages = NO_PAGES


class Transfer:
    """A copy under way. `pages`: what it writes, HOST pages of a backup or FULL pages of a load, for the last
    positions of the path to `node`, in order. left: pages of which nobody has told yet how they ended.

    gathered: whether a backup has read its FULL pages. receipt: what shields the path of a load; None for a backup.
    """

    __slots__ = ("gathered", "id", "left", "node", "pages", "receipt")

    def __init__(self, id: TransferId, node: NodeId, pages: Pages, receipt: Receipt | None = None) -> None:
        self.id = id
        self.node = node
        self.pages = pages
        self.left = len(pages) >> 2
        self.gathered = False
        self.receipt = receipt

    @property
    def loads(self) -> bool:
        """Whether it writes FULL pages."""
        return self.receipt is not None


class Totals:
    """Run totals in pages; they survive a flush (R172)."""

    __slots__ = ("full_evicted", "swa_evicted", "tombstones", "healed")

    def __init__(self) -> None:
        self.full_evicted = 0
        self.swa_evicted = 0
        self.tombstones = 0
        self.healed = 0


class Finding(NamedTuple):
    """A law that the event with number `seq` broke; `pages` are those concerned, if any."""

    seq: Seq
    law: str
    detail: str
    pool: int = 0
    pages: Pages = NO_PAGES
    expected: int = 0
    found: int = 0


class State:
    """One rank's aggregate, as of the event `seq`."""

    components: "tuple[Component, ...]" = ()
    """Who decides about what nodes keep beside FULL: given by the shell that decides; a fold asks nobody."""

    def __init__(self, opened: Opened) -> None:
        config = opened.config
        self.opened = opened
        self.config = config
        self.traits = FOLDED.get(opened.route, UNKNOWN)
        self.page_size, self.stride = config.page_size, opened.stride
        self.lookahead = KEY_MODES[config.key_mode].lookahead
        self.hashed_keys = False
        """Whether keys are hashes of pages, as journals have them, so that no token can be read in them."""
        self.windowed = config.swa_pages > 0
        """Whether there is SWA beside FULL; without it no page is mapped and no node is a tombstone."""
        self._reclaim_margin = self._margin()
        self.tail_pages: int = window.window_pages(opened.window_need, config.page_size)
        """Pages of live SWA that a boundary needs, that a lock shields; 0 without SWA."""
        self.seq = Seq(0)
        self.full = PoolBook(Pool.FULL, config.full_pages)
        self.swa = PoolBook(Pool.SWA, config.swa_pages)
        self.recurrent = PoolBook(Pool.RECURRENT, config.recurrent_slots)
        self.states_each: int = (3 if config.track_interval else 1) if config.recurrent_slots else 0
        """State slots of a live request: one to run on, and two that track where states are tracked; 0 without states."""
        self.mapping = MappingBook(config.full_pages)
        self.root = Node(ROOT, None, b"", NO_PAGES, NO_PAGES, b"")
        self.root.weight = node_weight(ROOT)
        self.nodes: dict[int, Node] = {ROOT: self.root}
        self.rows = Rows(config)
        self.requests: dict[int, Request] = {}
        self.rids: dict[str, RequestId] = {}
        self.state_order: Order = []
        self.clock = 0
        self.next_node = 1
        self.next_boundary = 1
        self.next_request = 1
        """The next request's number divided by the row count."""
        self.full_protected = 0
        self.swa_protected = 0
        self.recurrent_protected = 0
        self.dangling = 0
        """FULL pages surrendered whose SWA part is still to be freed: no allocation until then (A4)."""
        self.group_open = False
        self.running: dict[int, Running] = {}
        self.totals = Totals()
        self.tree_digest = 0
        self.closed = False
        self.findings: list[Finding] = []
        self._open_orders(config)
        self._open_host_tier(config)

    def _open_orders(self, config: Config) -> None:
        self.leaf_order: Order = []
        self.window_order: Order = []
        self.graded = config.eviction != "lru"
        """Whether FULL pressure asks something before recency (`standing`)."""
        self.spare_order: Order | None = [] if config.swa_victims == "use" else None
        """Nodes with window pages that no boundary can need; None where victims are chosen by recency alone."""
        self.reach_pages = self.tail_pages + self.tail_pages // 2
        """Pages before it that the end of a prompt needs: its window, and half a window for who leaves early (`spare`)."""

    def _open_host_tier(self, config: Config) -> None:
        through = config.host_pages > 0 and config.host_write == "through"
        self.host = PoolBook(Pool.HOST, config.host_pages)
        self.host_order: Order = []
        self.transfers: dict[int, Transfer] = {}
        self.next_transfer = 1
        self.hits_counted: int = max(
            config.host_threshold if through else 0, PROTECTED_USES if config.eviction == "slru" else 0
        )
        """Up to how many uses of a node are counted: as many as anybody asks for."""
        self.host_bare = 0
        """HOST pages of FULL tombstones: copies that landed and stand alone."""
        self.host_protected = 0
        """Those of them that locks hold."""

    @property
    def books(self) -> tuple[PoolBook, PoolBook, PoolBook, PoolBook]:
        """The books of all pools in the order of `Pool`: `books[Pool.SWA]` is that of SWA."""
        return self.full, self.swa, self.recurrent, self.host

    def evictable(self, pool: Pool) -> int:
        """Pages of a pool that eviction could take: of the tree's those that no lock holds; on the host, of those that stand alone."""
        return (self.full_evictable, self.swa_evictable, self.recurrent_evictable, self.host_evictable)[pool]

    @property
    def full_evictable(self) -> int:
        """FULL pages of the tree that no lock holds."""
        return self.full.held[Kind.TREE] - self.full_protected

    @property
    def swa_evictable(self) -> int:
        """SWA pages of the tree that no lock holds."""
        return self.swa.held[Kind.TREE] - self.swa_protected

    def key_length(self, row: int) -> KeyLen:
        """The units of the key of all that a row has computed (R257)."""
        return window.key_length(TokenCount(int(self.rows.length[row])), self.lookahead)

    def reclaim_due(self, cursor: int) -> int:
        """The length at which a row whose SWA is given back below `cursor` has more to give."""
        return window.NEVER if self._reclaim_margin is None else cursor + self._reclaim_margin

    def _margin(self) -> int | None:
        """How far behind its cursor a row has more to give; None for never."""
        config = self.config
        if not (config.free_out_of_window and config.window_tokens):
            return None
        return window.next_reclaim(
            0, window_tokens=config.window_tokens, page_size=config.page_size, formula=config.formula
        )

    @property
    def recurrent_evictable(self) -> int:
        """State slots of the tree that no lock holds."""
        return self.recurrent.held[Kind.TREE] - self.recurrent_protected

    @property
    def host_evictable(self) -> int:
        """HOST pages of copies that stand alone and that no lock holds."""
        return self.host_bare - self.host_protected

    def row_of(self, request: int) -> int:
        """A request's row in the page tables."""
        return request & self.rows.mask


def in_words(error: Exception) -> str:
    """What an event or a state met that is not lawful: mostly a number that stands for nothing that is there."""
    if isinstance(error, KeyError):
        return f"{error} is named, and is not there"
    return f"{type(error).__name__} {error}"
