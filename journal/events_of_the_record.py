"""Events of the record itself: beginnings and ends, refusals, ledgers, digests, violations, gaps.

Part of the vocabulary, see `events` for its rules.
"""

from msgspec import field

from radixledger.journal.causes import Cause
from radixledger.journal.event import NO_CAUSE, Config, Event
from radixledger.journal.units import NO_PAGES, UNBOUND, Pages, Rank, RequestId, Seq, TokenCount

SCHEMA_VERSION = 1
"""The version of the vocabulary; a reader refuses events of a newer one (J5)."""


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
    labels: dict[str, str] = field(default_factory=dict)
    seed: int = 0


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


class LedgerTaken(Event, frozen=True, array_like=True, gc=False, tag=24):
    """The accounts of one rank as checks read them, in tokens (R153); `phase` names the moment."""

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
    full_in_flight: int = 0
    """What loads from the host are writing."""
    host_capacity: int = 0
    host_available: int = 0
    host_tree_evictable: int = 0
    """Copies that stand alone: their FULL pages are gone."""
    host_tree_protected: int = 0
    """Those of them that locks hold."""
    host_tree_mirrored: int = 0
    """Copies of what is on the device too."""
    host_in_flight: int = 0
    """What backups are writing."""
    recurrent_capacity: int = 0
    """State slots, not tokens, like the five below it."""
    recurrent_available: int = 0
    recurrent_tree_evictable: int = 0
    recurrent_tree_protected: int = 0
    recurrent_request_running: int = 0
    recurrent_request_track: int = 0


class Snapshotted(Event, frozen=True, array_like=True, gc=False, tag=25):
    """The full state as of the event before this one stands in a snapshot file; `digest` is that state's."""

    digest: bytes


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


AT_LEAST = "one event at least is lost"
"""How the reason of a gap ends where nobody can say how many events are missing."""


class Gap(Event, frozen=True, array_like=True, gc=False, tag=28):
    """`lost` events are missing before this one, and why; a journal with a gap is never called clean (J11)."""

    lost: int
    reason: str

    @property
    def at_least(self) -> bool:
        """Whether there may have been more of them."""
        return self.reason.endswith(AT_LEAST)


class Closed(Event, frozen=True, array_like=True, gc=False, tag=29):
    """The writer ended cleanly."""

    digest: bytes
    reason: str = ""


class Digested(Event, frozen=True, array_like=True, gc=False, tag=30):
    """The digest of the state as of the event before this one, so that a replay can compare."""

    digest: bytes
