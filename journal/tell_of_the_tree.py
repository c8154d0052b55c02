"""What a recorder is told of the tree: matches, leaves, cuts, tombstones, heals, locks, eviction.

Part of `recorder`, with its rules.
"""

from collections.abc import Hashable, Iterable
from functools import partial
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
from radixledger.journal.telling import ROOT, PageIds, Telling, ids, in_turn, packed
from radixledger.journal.units import (
    ROOT as ROOT_NODE,
)
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


def _check_new(node: Hashable, *others: Hashable) -> None:
    """A new node can be neither the root nor the node that it is put above."""
    if node is ROOT or node in others:
        raise ValueError(
            f"a new node cannot be {'the root' if node is ROOT else f'{node!r}, which it is put above'}"
        )


class TreeVerbs(Telling):
    """The verbs."""

    @in_turn
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

    @in_turn
    def transferred(
        self, node: Hashable, parent: Hashable, key: bytes, full: PageIds, swa: PageIds = (), *, rid: str | None = None,
        namespace: bytes = b"", why: Operation = Operation.INSERT,
    ) -> None:  # fmt: skip
        """giver → tree: a new leaf with a key of `stride` bytes a page; `swa` as long as `full`, or empty (no window lives).

        Raises ValueError where key and pages do not fit each other, and for the root, which is there from the beginning.
        """
        _check_new(node)
        if len(swa) not in (0, len(full)):
            raise ValueError(
                f"{len(swa)} SWA pages beside {len(full)} FULL ones: a window lives in all of them or in none"
            )
        stride = self.writer.opened.stride
        content = memoryview(key).tobytes()
        if len(content) != stride * len(full):
            raise ValueError(
                f"a key of {len(content)} bytes; {len(full)} pages of {stride} bytes have {stride * len(full)}"
            )
        above, giver = self._id(parent), self._request(rid)
        self._tell(
            Transferred(NodeId(self._names.next), above, request_account(giver), content, packed(full), packed(swa),
                        namespace, giver, cause(why)),
            partial(self._names.made, node, above),
        )  # fmt: skip

    @in_turn
    def split(
        self,
        node: Hashable,
        upper: Hashable,
        full: PageIds,
        swa: PageIds = (),
        *,
        why: Operation = Operation.INSERT,
    ) -> None:
        """`node` was cut: its first pages went to `upper`, a new node between it and its parent; a mark moves up.

        Raises ValueError where `upper` is the root or `node` itself.
        """
        _check_new(upper, node)
        lower = self._names.node(node)
        self._tell(
            Split(lower.id, NodeId(self._names.next), lower.parent, packed(full), packed(swa), lower.boundary, cause(why)),
            partial(self._names.put_above, node, upper),
        )  # fmt: skip

    @in_turn
    def tombstoned(
        self, node: Hashable, full: PageIds, swa: PageIds, *, why: Operation = Operation.EVICT
    ) -> None:
        """tree → free: the node's SWA pages; the node stays, and all its `full` pages lose their mapping."""
        self._tell(Tombstoned(self._id(node), packed(full), packed(swa), self._to, cause(why)))

    @in_turn
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

    @in_turn
    def removed(
        self, node: Hashable, full: PageIds, swa: PageIds = (), *, why: Operation = Operation.EVICT
    ) -> None:
        """tree → free: a leaf left the tree with all its pages."""
        gone = self._names.node(node)
        self._tell(
            Removed(gone.id, gone.parent, packed(full), packed(swa), self._to, cause(why)),
            partial(self._names.gone, node),
        )

    @in_turn
    def flushed(self, removed: int) -> None:
        """The tree was emptied on purpose; its `removed` nodes were told just before, leaves first."""
        self._tell(Flushed(removed, cause(Operation.FLUSH)))

    @in_turn
    def locked(
        self, node: Hashable, *, until: Hashable = ROOT, skipped: Iterable[Hashable] = (), rid: str | None = None,
        why: Operation = Operation.LOCK,
    ) -> Held:  # fmt: skip
        """FULL is held from `node` to the root, SWA from `node` up to `until` (ROOT: all the way); what to give back."""
        last, number, passed = self._names.node(until), self._id(node), ids(map(self._id, skipped))
        new = last.id != ROOT_NODE and not last.boundary
        held = Held(number, BoundaryId(self._names.next) if new else last.boundary, self._request(rid))
        marked = last.id if new else ROOT_NODE
        self._tell(
            Locked(number, held.boundary, passed, marked, held.request, cause(why)), partial(self._names.mark, until)
        )  # fmt: skip
        return held

    @in_turn
    def unlocked(self, held: Held, *, why: Operation = Operation.UNLOCK) -> None:
        """A lock was given back: exactly what `held` says; raises TypeError for what `locked` did not return."""
        if not isinstance(held, Held):
            raise TypeError(f"{held!r} is not what `locked` has returned")
        self._tell(Unlocked(held.node, held.boundary, held.request, cause(why)))
