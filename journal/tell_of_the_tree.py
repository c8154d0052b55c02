"""What a recorder is told of the tree: matches, leaves, cuts, tombstones, heals, locks, eviction.

Part of `recorder`, with its rules.
"""

from collections.abc import Hashable, Iterable
from typing import NamedTuple

from radixledger.journal.accounts import request_account
from radixledger.journal.causes import Operation, cause
from radixledger.journal.event import HealMode, Stop
from radixledger.journal.events import (
    Flushed,
    Healed,
    Locked,
    Matched,
    Removed,
    Split,
    Tombstoned,
    Transferred,
    Unlocked,
)
from radixledger.journal.telling import ROOT, PageIds, Telling, ids, packed
from radixledger.journal.units import (
    UNBOUND,
    BoundaryId,
    NodeId,
    RequestId,
    TokenCount,
)


class Held(NamedTuple):
    """What a lock holds: give it back to `unlocked`."""

    node: NodeId
    boundary: BoundaryId
    request: RequestId


class TreeVerbs(Telling):
    """The verbs."""

    def matched(
        self, rid: str, asked: int, *, full_hit: int = 0, hit: int = 0, node: Hashable = ROOT, stop: Stop = Stop.NO_CHILD,
        namespace: bytes = b"", full_only: bool = False, why: Operation = Operation.MATCH,
    ) -> None:  # fmt: skip
        """A key of `asked` tokens was looked up: FULL reaches `full_hit`, `hit` tokens are usable and end at `node`.

        full_only: no live window was asked for, as where a request looks up a path of its own.
        """
        self._tell(
            Matched(rid, self._names.live.get(rid, UNBOUND), TokenCount(asked), TokenCount(full_hit), TokenCount(hit),
                    self._id(node), stop, namespace, cause(why), full_only)
        )  # fmt: skip

    def transferred(
        self, node: Hashable, parent: Hashable, key: bytes, full: PageIds, swa: PageIds = (), *, rid: str | None = None,
        namespace: bytes = b"", why: Operation = Operation.INSERT,
    ) -> None:  # fmt: skip
        """giver → tree: a new leaf with a key of `stride` bytes a page; `swa` as long as `full`, or empty (no window lives)."""
        above = self._id(parent)
        made = self._names.made(node, above)
        self._tell(
            Transferred(made, above, request_account(self._request(rid)), key, packed(full), packed(swa), namespace,
                        self._request(rid), cause(why))
        )  # fmt: skip

    def split(
        self,
        node: Hashable,
        upper: Hashable,
        full: PageIds,
        swa: PageIds = (),
        *,
        why: Operation = Operation.INSERT,
    ) -> None:
        """`node` was cut: its first pages went to `upper`, a new node between it and its parent; a mark moves up."""
        lower = self._names.node(node)
        parent, mark = lower.parent, lower.boundary
        above = self._names.put_above(node, upper)
        self._tell(
            Split(lower.id, above, parent, packed(full), packed(swa), mark, cause(why))
        )  # fmt: skip

    def tombstoned(
        self, node: Hashable, full: PageIds, swa: PageIds, *, why: Operation = Operation.EVICT
    ) -> None:
        """tree → free: the node's SWA pages; the node stays, and all its `full` pages lose their mapping."""
        self._tell(Tombstoned(self._id(node), packed(full), packed(swa), self._to, cause(why)))

    def healed(
        self, node: Hashable, mode: HealMode, *, fresh: PageIds, old: PageIds, swa: PageIds, rid: str | None = None,
        why: Operation = Operation.INSERT,
    ) -> None:  # fmt: skip
        """giver → tree: a tombstone has live SWA again; by `REPLACE` it takes `fresh` for `old`, by `TRANSFER` it keeps `old`."""
        giver = request_account(self._request(rid))
        self._tell(
            Healed(self._id(node), mode, giver, packed(fresh), packed(old), packed(swa), self._to, self._request(rid),
                   cause(why))
        )  # fmt: skip

    def removed(
        self, node: Hashable, full: PageIds, swa: PageIds = (), *, why: Operation = Operation.EVICT
    ) -> None:
        """tree → free: a leaf left the tree with all its pages."""
        gone = self._names.gone(node)
        self._tell(Removed(gone.id, gone.parent, packed(full), packed(swa), self._to, cause(why)))

    def flushed(self, removed: int) -> None:
        """The tree was emptied on purpose; its `removed` nodes were told just before, leaves first."""
        self._tell(Flushed(removed, cause(Operation.FLUSH)))

    def locked(
        self, node: Hashable, *, until: Hashable = ROOT, skipped: Iterable[Hashable] = (), rid: str | None = None,
        why: Operation = Operation.LOCK,
    ) -> Held:  # fmt: skip
        """FULL is held from `node` to the root, SWA from `node` up to `until` (ROOT: all the way); what to give back."""
        boundary, marked = self._names.marked(until)
        held = Held(self._id(node), boundary, self._request(rid))
        passed = ids(map(self._id, skipped))
        self._tell(Locked(held.node, boundary, passed, marked, held.request, cause(why)))
        return held

    def unlocked(self, held: Held, *, why: Operation = Operation.UNLOCK) -> None:
        """A lock was given back: exactly what `held` says."""
        self._tell(Unlocked(held.node, held.boundary, held.request, cause(why)))
