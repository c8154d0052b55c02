"""Events of the radix tree: leaves, splits, tombstones, healing, matches, locks, eviction.

Part of the vocabulary, see `events` for its rules.
"""

from radixledger.journal.accounts import FREE
from radixledger.journal.causes import Cause
from radixledger.journal.event import NO_CAUSE, Event
from radixledger.journal.units import (
    NO_PAGES,
    NO_TRANSFER,
    ROOT,
    TO_ROOT,
    UNBOUND,
    BoundaryId,
    NodeId,
    Pages,
    RequestId,
    TokenCount,
    TransferId,
)


class Transferred(Event, frozen=True, array_like=True, gc=False, tag=11):
    """giver → tree: a new leaf. `swa` is as long as `full` (live) or empty (a tombstone from birth, R94, or no window).

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
    """`node` was cut: its first pages (`full`, `swa`, `host`) went to `upper`, a new node between parent and `node`.

    Window lock counts are copied to `upper`; the boundary mark moves up (R114, R115). HOST pages that a backup is still
    writing (`transfer`) are named by `upper` from now on and stay in the transfer's account.
    """

    node: NodeId
    upper: NodeId
    parent: NodeId
    full: Pages
    swa: Pages
    boundary: BoundaryId = TO_ROOT
    cause: Cause = NO_CAUSE
    host: Pages = NO_PAGES
    transfer: TransferId = NO_TRANSFER


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


class Removed(Event, frozen=True, array_like=True, gc=False, tag=19):
    """tree → free or pending: a leaf left the tree, FULL then SWA, one atomic cascade (R100, A4)."""

    node: NodeId
    parent: NodeId
    full: Pages
    swa: Pages
    to: int = FREE
    cause: Cause = NO_CAUSE
    recurrent: Pages = NO_PAGES
    """Its slot of the RECURRENT pool, if it had a state."""


class Matched(Event, frozen=True, array_like=True, gc=False, tag=21):
    """A key of `asked` tokens was looked up: FULL pages reach `full_hit` tokens, the usable prefix is `hit`
    tokens and ends at `node`; `stop` says why no further. Recency of that path moved. Behind it copies on the host
    reach up to `host_node`, `host_hit` tokens more.
    """

    rid: str
    request: RequestId
    asked: TokenCount
    full_hit: TokenCount
    hit: TokenCount
    node: NodeId
    stop: int
    namespace: bytes = b""
    cause: Cause = NO_CAUSE
    full_only: bool = False
    """SWA was not asked for: a request looked up a path of its own (R72)."""
    walked: NodeId = ROOT
    """Where the walk ended whose whole path became the youngest, if that was below `node` (legacy route); else 0."""
    host_hit: TokenCount = TokenCount(0)
    host_node: NodeId = ROOT


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


class Flushed(Event, frozen=True, array_like=True, gc=False, tag=26):
    """The tree was emptied on purpose; its leaves were `Removed` just before, one event each."""

    removed: int
    cause: Cause = NO_CAUSE


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
    asked_recurrent: int = 0
    gained_recurrent: int = 0
