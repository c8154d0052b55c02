"""Everything that can happen to the cache of one rank, as facts in the past tense.

Rule 1: an event says what was decided, never how to decide it. Pages, nodes, victims and marks
are written out, so that folding needs no clock, no chance and no policy.

Rule 2: events are only ever extended. New fields go last and have defaults; a field is never
renamed, reordered or given another meaning; a tag is never used again.

Rule 3: an event that moves pages, or changes which node or request holds them, lists the page
ids of both pools even where the state could tell, so that SQL needs no fold (`moves.py` reads
them off). Columns of pages are packed int32, columns of requests and nodes packed int64, both
little-endian; lengths and positions are tokens unless a name says pages.
"""

from enum import IntEnum

from msgspec import Struct

from radixledger.journal.accounts import FREE
from radixledger.journal.causes import Cause
from radixledger.journal.units import (
    NO_PAGES,
    ROOT,
    TO_ROOT,
    UNBOUND,
    BoundaryId,
    NodeId,
    Pages,
    Rank,
    RequestId,
    Seq,
    TokenCount,
)

SCHEMA_VERSION = 1
"""The version of this vocabulary; a reader refuses events of a newer one (J5)."""

NO_CAUSE = Cause(0)


class Config(Struct, frozen=True, array_like=True):
    """What one rank's cache was built with; written once, in `Opened` (J5).

    Sizes are usable pages: page 0 of each pool comes on top. `rows` is a power of two: a request's
    row is its id modulo `rows`.
    """

    page_size: int
    full_pages: int
    swa_pages: int
    window_tokens: int
    rows: int = 64
    context_pages: int = 8192
    formula: str = "rfc"
    """Frontier formula: `rfc` or `tight` (A26b)."""
    tombstone_leaf: str = "veto"
    """`veto` or `materialise` (A15)."""
    key_mode: str = "raw"
    swa_victims: str = "lru"


class Stop(IntEnum):
    """Why a match ended where it did."""

    END_OF_KEY = 0
    NO_CHILD = 1
    DIVERGED = 2
    """Inside a node, at the first page that differs."""
    WINDOW_DEAD = 3
    """FULL pages go further, the SWA window behind them does not (R73)."""
    FORCED_MISS = 4


class HealMode(IntEnum):
    """How a tombstone got live SWA again (A13)."""

    REPLACE = 0
    """The node takes the request's FULL pages; its old ones are freed (R87)."""
    TRANSFER = 1
    """The node keeps its FULL pages, which others may read; the mapping moves to them and the fresh ones
    are freed (R90)."""


class Phase(IntEnum):
    BEGAN = 0
    ENDED = 1


class Event(Struct, frozen=True, array_like=True, gc=False):
    """The parent of all events; never written itself."""


class Opened(Event, frozen=True, array_like=True, gc=False, tag=1):
    """A rank's journal begins, or goes on in a new epoch: pools are all free, the tree is empty."""

    run: str
    rank: Rank
    ranks: int
    epoch: int
    route: str
    config: Config
    window_need: TokenCount
    """Live SWA tokens that a match boundary needs behind it (A16)."""
    stride: int
    """Key bytes per page as they stand in this journal."""
    redaction: str
    """`hashed` or `plain`."""
    key_id: str = ""
    """Names the redaction key, so that runs which share one can be joined; never the key."""
    schema: int = SCHEMA_VERSION
    code: str = ""
    dirty: bool = False
    labels: dict[str, str] = {}
    seed: int = 0


class Admitted(Event, frozen=True, array_like=True, gc=False, tag=2):
    """A request got a row, which begins with the `prefix` tokens that the tree holds up to `node`."""

    request: RequestId
    rid: str
    prompt: TokenCount
    prefix: TokenCount
    node: NodeId
    namespace: bytes = b""
    cause: Cause = NO_CAUSE


class Finished(Event, frozen=True, array_like=True, gc=False, tag=3):
    """A request ended well; its row is empty, `cached` of its `tokens` are in the tree, which ends at `node`."""

    request: RequestId
    tokens: TokenCount
    cached: TokenCount
    node: NodeId
    cause: Cause = NO_CAUSE


class Retracted(Event, frozen=True, array_like=True, gc=False, tag=4):
    """A running request gave everything back, to be admitted again later under a new id."""

    request: RequestId
    tokens: TokenCount
    cause: Cause = NO_CAUSE


class Aborted(Event, frozen=True, array_like=True, gc=False, tag=5):
    """A request ended without being cached."""

    request: RequestId
    tokens: TokenCount
    cause: Cause = NO_CAUSE


class Allocated(Event, frozen=True, array_like=True, gc=False, tag=6):
    """free → request: FULL pages, and SWA pages that the last `len(swa)` of them are mapped to, in order."""

    request: RequestId
    full: Pages
    swa: Pages
    cause: Cause = NO_CAUSE


class Extended(Event, frozen=True, array_like=True, gc=False, tag=7):
    """One per step: request i grew by `grown[i]` tokens; the pages taken at page crossings.

    `takers[j]` took the next `counts[j]` pages of `full` and of `swa` (equal lengths, mapped in order)
    and appended them to its row. `takers` and `counts` are empty when no request crossed a page.
    """

    requests: bytes
    grown: bytes
    takers: bytes = b""
    counts: bytes = b""
    full: Pages = NO_PAGES
    swa: Pages = NO_PAGES
    cause: Cause = NO_CAUSE


class Bound(Event, frozen=True, array_like=True, gc=False, tag=8):
    """request(unbound) → request: the pages were written into this request's row.

    A server that keeps rows of its own tells them here (`length` >= 0): from token `start` on the row names the FULL
    pages `row` and nothing behind them, and it is `length` tokens long; `full` are those of them that nobody had named.
    """

    request: RequestId
    full: Pages
    swa: Pages
    start: TokenCount = TokenCount(0)
    row: Pages = NO_PAGES
    length: TokenCount = TokenCount(-1)


class Stepped(Event, frozen=True, array_like=True, gc=False, tag=9):
    """A device step began or ended; request i writes tokens [starts[i], stops[i]) and reads its window below.

    `requests` is packed int64, `starts` and `stops` packed int32; empty when the step ended.
    """

    step: int
    phase: int
    requests: bytes = b""
    starts: bytes = b""
    stops: bytes = b""


class Refused(Event, frozen=True, array_like=True, gc=False, tag=10):
    """A command that was turned down; nothing else changed.

    `reason` is a word (`pool_short`, `double_free`, `foreign_free`, `unmapped`, `busy`, ...); `since` is
    the event that made the pages what they are, where ownership was the reason.
    """

    reason: str
    detail: str
    request: RequestId = UNBOUND
    pool: int = 0
    pages: Pages = NO_PAGES
    expected: int = 0
    found: int = 0
    since: Seq = Seq(0)
    cause: Cause = NO_CAUSE


class Transferred(Event, frozen=True, array_like=True, gc=False, tag=11):
    """giver → tree: a new leaf. `swa` is as long as `full` (live) or empty (a tombstone from birth, R94).

    `key` has `stride` bytes per page. `namespace` matters under the root only.
    """

    node: NodeId
    parent: NodeId
    giver: int
    key: bytes
    full: Pages
    swa: Pages
    namespace: bytes = b""
    request: RequestId = UNBOUND
    cause: Cause = NO_CAUSE


class Split(Event, frozen=True, array_like=True, gc=False, tag=12):
    """`node` was cut: its first pages (`full`, `swa`) went to `upper`, a new node between parent and `node`.

    Window lock counts are copied to `upper`; the boundary mark moves up (R114, R115).
    """

    node: NodeId
    upper: NodeId
    parent: NodeId
    full: Pages
    swa: Pages
    boundary: BoundaryId = TO_ROOT
    cause: Cause = NO_CAUSE


class Tombstoned(Event, frozen=True, array_like=True, gc=False, tag=13):
    """tree → free or pending: the node's SWA pages; the node, its FULL pages and its place stay (R99)."""

    node: NodeId
    full: Pages
    """The node's FULL pages, whose mapping is cleared; they do not move."""
    swa: Pages
    to: int = FREE
    cause: Cause = NO_CAUSE


class Healed(Event, frozen=True, array_like=True, gc=False, tag=14):
    """giver → tree: a tombstone has live SWA again.

    replace: `fresh` FULL pages (with their mapping) become the node's, `old` ones of the node are freed.
    transfer: the node keeps `old`, to which the mapping moves; `fresh` ones are freed.
    """

    node: NodeId
    mode: int
    giver: int
    fresh: Pages
    old: Pages
    swa: Pages
    to: int = FREE
    request: RequestId = UNBOUND
    cause: Cause = NO_CAUSE


class Reclaimed(Event, frozen=True, array_like=True, gc=False, tag=15):
    """request → free or pending: SWA pages out of the window; the cursor moved `start` → `stop` tokens (R131, R132).

    `full` are the request's FULL pages whose mapping is cleared, one for each page of `swa`; they do not
    move. Both are empty when only the cursor moved (A27).
    """

    request: RequestId
    start: TokenCount
    stop: TokenCount
    full: Pages
    swa: Pages
    to: int = FREE
    in_flight: TokenCount = TokenCount(0)
    cause: Cause = NO_CAUSE


class Freed(Event, frozen=True, array_like=True, gc=False, tag=16):
    """giver → free or pending: `full` FULL pages and `swa` SWA pages; the mapping of `unmapped` is cleared.

    `unmapped` are the FULL pages that `swa` were mapped from, one for each, whether or not they move too: a
    composite free has them among `full`, `free_swa` has `full` empty, `free_full` has both others empty.
    """

    giver: int
    full: Pages
    unmapped: Pages
    swa: Pages
    to: int = FREE
    request: RequestId = UNBOUND
    cause: Cause = NO_CAUSE


class GroupOpened(Event, frozen=True, array_like=True, gc=False, tag=17):
    """A free group began: what is freed becomes pending until it is flushed (R29)."""


class GroupFlushed(Event, frozen=True, array_like=True, gc=False, tag=18):
    """pending → free, both pools; the group is over (R44)."""

    full: Pages
    swa: Pages


class Removed(Event, frozen=True, array_like=True, gc=False, tag=19):
    """tree → free or pending: a leaf left the tree, FULL then SWA, one atomic cascade (R100, A4)."""

    node: NodeId
    parent: NodeId
    full: Pages
    swa: Pages
    to: int = FREE
    cause: Cause = NO_CAUSE


class Repointed(Event, frozen=True, array_like=True, gc=False, tag=20):
    """A request's row names tree pages: `full` from token `start` on where they differ from its own before.

    Its protected length is `protected` tokens from now on, the path to `node` (R149).
    """

    request: RequestId
    start: TokenCount
    full: Pages
    protected: TokenCount
    node: NodeId
    cause: Cause = NO_CAUSE


class Matched(Event, frozen=True, array_like=True, gc=False, tag=21):
    """A key of `asked` tokens was looked up: FULL pages reach `full_hit` tokens, the usable prefix is `hit`
    tokens and ends at `node`; `stop` says why no further. Recency of that path moved."""

    rid: str
    request: RequestId
    asked: TokenCount
    full_hit: TokenCount
    hit: TokenCount
    node: NodeId
    stop: int
    namespace: bytes = b""
    cause: Cause = NO_CAUSE


class Locked(Event, frozen=True, array_like=True, gc=False, tag=22):
    """A receipt was handed out: FULL is held from `node` to the root, SWA from `node` up to the node that
    carries `boundary` (0: to the root). `skipped` are the tombstones in between, packed int64 (A22).

    `marked` is the node that `boundary` was set on by this lock, 0 if it was there already.
    """

    node: NodeId
    boundary: BoundaryId
    skipped: bytes = b""
    marked: NodeId = ROOT
    request: RequestId = UNBOUND
    cause: Cause = NO_CAUSE


class Unlocked(Event, frozen=True, array_like=True, gc=False, tag=23):
    """A receipt was given back: exactly what its `Locked` held (R113)."""

    node: NodeId
    boundary: BoundaryId
    request: RequestId = UNBOUND
    cause: Cause = NO_CAUSE


class LedgerTaken(Event, frozen=True, array_like=True, gc=False, tag=24):
    """The accounts of one rank as the gates read them, in tokens (R153); `phase` names the moment."""

    phase: str
    idle: bool
    full_capacity: int
    full_available: int
    full_tree_evictable: int
    full_tree_protected: int
    full_request_owned: int
    full_reserved_page_slack: int
    full_pending_free: int
    swa_capacity: int
    swa_available: int
    swa_tree_evictable: int
    swa_tree_protected: int
    swa_request_owned: int
    swa_reserved_page_slack: int
    swa_pending_free: int
    mapping_nonzero_count: int
    mapping_invalid_count: int
    mapping_duplicate_count: int
    full_duplicate_request_owner_count: int
    swa_duplicate_request_owner_count: int
    full_request_tree_overlap_count: int
    swa_request_tree_overlap_count: int
    full_evicted_total: int
    swa_evicted_total: int
    tombstone_created_total: int
    tombstone_healed_total: int
    digest: bytes = b""


class Snapshotted(Event, frozen=True, array_like=True, gc=False, tag=25):
    """The full state as of the event before this one stands in a snapshot file; `digest` is that state's."""

    digest: bytes


class Flushed(Event, frozen=True, array_like=True, gc=False, tag=26):
    """The tree was emptied on purpose; its leaves were `Removed` just before, one event each."""

    removed: int
    cause: Cause = NO_CAUSE


class Violated(Event, frozen=True, array_like=True, gc=False, tag=27):
    """A law was broken and the writer went on; the illegal pages were not moved."""

    law: str
    detail: str
    request: RequestId = UNBOUND
    pool: int = 0
    pages: Pages = NO_PAGES
    expected: int = 0
    found: int = 0
    since: Seq = Seq(0)
    cause: Cause = NO_CAUSE


class Gap(Event, frozen=True, array_like=True, gc=False, tag=28):
    """`lost` events are missing before this one, and why; a journal with a gap passes no gate (J11)."""

    lost: int
    reason: str


class Closed(Event, frozen=True, array_like=True, gc=False, tag=29):
    """The writer ended cleanly."""

    digest: bytes
    reason: str = ""


class Digested(Event, frozen=True, array_like=True, gc=False, tag=30):
    """The digest of the state as of the event before this one, so that a replay can compare."""

    digest: bytes


class Evicted(Event, frozen=True, array_like=True, gc=False, tag=31):
    """One eviction ended: what was asked of it and what the pools gained, in pages (R105).

    The `Removed` and `Tombstoned` events of it are the `events` ones right before this one.
    """

    asked_full: int
    asked_swa: int
    gained_full: int
    gained_swa: int
    events: int
    cause: Cause = NO_CAUSE


class Remapped(Event, frozen=True, array_like=True, gc=False, tag=32):
    """giver → taker: SWA pages changed hands with their mapping, from FULL pages `source` to `target` (R91).

    The FULL pages themselves do not move; every list is as long as the others.
    """

    giver: int
    taker: int
    source: Pages
    target: Pages
    swa: Pages
    cause: Cause = NO_CAUSE


AnyEvent = (
    Opened
    | Admitted
    | Finished
    | Retracted
    | Aborted
    | Allocated
    | Extended
    | Bound
    | Stepped
    | Refused
    | Transferred
    | Split
    | Tombstoned
    | Healed
    | Reclaimed
    | Freed
    | GroupOpened
    | GroupFlushed
    | Removed
    | Repointed
    | Matched
    | Locked
    | Unlocked
    | LedgerTaken
    | Snapshotted
    | Flushed
    | Violated
    | Gap
    | Closed
    | Digested
    | Evicted
    | Remapped
)
