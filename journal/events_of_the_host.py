"""Events of the host tier: copies of FULL pages, backed up, kept behind an eviction, loaded back, dropped.

Part of the vocabulary, see `events` for its rules. A transfer is a copy under way between device and host. Pages that
it writes are in no node's account but in its own, `in_flight(transfer)`, until it has ended: so nobody can free,
evict or read what is only half there (B19).
"""

from radixledger.journal.accounts import FREE
from radixledger.journal.causes import Cause
from radixledger.journal.event import NO_CAUSE, Event
from radixledger.journal.units import UNBOUND, BoundaryId, NodeId, Pages, RequestId, TransferId


class BackupBegun(Event, frozen=True, array_like=True, gc=False, tag=40):
    """free → in flight: HOST pages that will mirror the node's FULL pages, one for each; those do not move."""

    transfer: TransferId
    node: NodeId
    full: Pages
    host: Pages
    cause: Cause = NO_CAUSE


class Gathered(Event, frozen=True, array_like=True, gc=False, tag=41):
    """A backup has read its FULL pages on the device: from here on they may be given up and written over."""

    transfer: TransferId
    node: NodeId
    cause: Cause = NO_CAUSE


class BackupEnded(Event, frozen=True, array_like=True, gc=False, tag=42):
    """in flight → tree: the HOST pages of one node of a backup hold what they mirror; or, not `landed`, in flight → free.

    A node that was cut under way has one event for each part; pages of nodes that left have one that names the root.
    """

    transfer: TransferId
    node: NodeId
    host: Pages
    landed: bool
    cause: Cause = NO_CAUSE


class Demoted(Event, frozen=True, array_like=True, gc=False, tag=43):
    """tree → free or pending: the node's FULL pages; the node, its place and its copy `host` stay: a FULL tombstone."""

    node: NodeId
    full: Pages
    host: Pages
    to: int = FREE
    cause: Cause = NO_CAUSE


class Adopted(Event, frozen=True, array_like=True, gc=False, tag=44):
    """giver → tree: FULL pages that a request computed anew are a FULL tombstone's from now on; `host` stays (R64)."""

    node: NodeId
    giver: int
    full: Pages
    host: Pages
    request: RequestId = UNBOUND
    cause: Cause = NO_CAUSE


class LoadBegun(Event, frozen=True, array_like=True, gc=False, tag=45):
    """free → in flight: FULL pages into which the HOST pages of the FULL tombstones that end at `node` are loaded.

    `above` is the node that ends the part which is on the device. The path was locked just before; the receipt has
    `boundary`.
    """

    transfer: TransferId
    node: NodeId
    above: NodeId
    full: Pages
    host: Pages
    boundary: BoundaryId
    cause: Cause = NO_CAUSE


class LoadEnded(Event, frozen=True, array_like=True, gc=False, tag=46):
    """in flight → tree: one FULL tombstone of a load is on the device again; or, not `landed`, in flight → free or pending.

    A load that failed has one event for all of its pages, one that was overtaken by an insert one for those of the node
    that has FULL pages already.
    """

    transfer: TransferId
    node: NodeId
    full: Pages
    landed: bool
    to: int = FREE
    cause: Cause = NO_CAUSE


class HostDropped(Event, frozen=True, array_like=True, gc=False, tag=47):
    """tree → free: the HOST pages of a node, which has no copy any more; a FULL tombstone is removed right after."""

    node: NodeId
    host: Pages
    cause: Cause = NO_CAUSE
