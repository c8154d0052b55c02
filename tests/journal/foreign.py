"""Another server, played by a cache of ours: it tells a recorder what it did, under names of its own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from radixledger.journal.accounts import Kind, holder_of
from radixledger.journal.causes import Operation
from radixledger.journal.events import (
    Aborted,
    Admitted,
    Allocated,
    AnyEvent,
    Bound,
    Extended,
    Finished,
    Flushed,
    Freed,
    GroupFlushed,
    GroupOpened,
    Healed,
    HealMode,
    Locked,
    Matched,
    Phase,
    Reclaimed,
    Refused,
    Remapped,
    Removed,
    Repointed,
    Retracted,
    Split,
    Stepped,
    Stop,
    Tombstoned,
    Transferred,
    Unlocked,
)
from radixledger.journal.moves import ids_of, pages_of
from radixledger.journal.recorder import ROOT, Held, Recorder

from ..cache.driven import Driven


def why(event: Any) -> Operation:
    """The operation in an event's cause."""
    return Operation(event.cause >> 5)


class Foreign:
    """Another server's bookkeeping: tells a recorder what a cache of ours did, by names of its own."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.nodes: dict[int, Any] = {0: ROOT}
        self.requests: dict[int, Any] = {0: None}
        self.held: dict[tuple[int, int, int], Held] = {}
        self.marks: dict[int, Any] = {0: ROOT}

    def giver(self, account: int) -> dict[str, Any]:
        """An account as a call names it."""
        kind, number = account & 7, holder_of(account)
        return {"node": self.nodes[number]} if kind == Kind.TREE else {"rid": self.requests[number]}

    def tell(self, event: AnyEvent) -> None:
        """One event by the call that stands for it; what a recorder has no call for is told by nobody."""
        told = _TOLD.get(type(event))
        if told is not None:
            told(self, event)

    def names(self, packed: bytes) -> list[Any]:
        return [self.requests[number] for number in ids_of(packed).tolist()]

    def admitted(self, event: Admitted) -> None:
        self.requests[event.request] = event.rid
        self.recorder.admitted(
            event.rid,
            event.prompt,
            prefix=event.prefix,
            node=self.nodes[event.node],
            namespace=event.namespace,
        )

    def extended(self, event: Extended) -> None:
        self.recorder.extended(
            self.names(event.requests), pages_of(event.grown).tolist(), takers=self.names(event.takers),
            counts=pages_of(event.counts).tolist(), full=pages_of(event.full), swa=pages_of(event.swa),
        )  # fmt: skip

    def transferred(self, event: Transferred) -> None:
        self.nodes[event.node] = f"node {event.node}"
        self.recorder.transferred(
            self.nodes[event.node], self.nodes[event.parent], event.key, pages_of(event.full), pages_of(event.swa),
            namespace=event.namespace, **self.giver(event.giver), why=why(event),
        )  # fmt: skip

    def split(self, event: Split) -> None:
        self.nodes[event.upper] = f"node {event.upper}"
        self.recorder.split(
            self.nodes[event.node], self.nodes[event.upper], pages_of(event.full), pages_of(event.swa)
        )
        if event.boundary:
            self.marks[event.boundary] = self.nodes[event.upper]

    def locked(self, event: Locked) -> None:
        if event.marked:
            self.marks[event.boundary] = self.nodes[event.marked]
        self.held[event.node, event.boundary, event.request] = self.recorder.locked(
            self.nodes[event.node], until=self.marks[event.boundary],
            skipped=[self.nodes[each] for each in ids_of(event.skipped).tolist()], rid=self.requests[event.request],
        )  # fmt: skip

    def unlocked(self, event: Unlocked) -> None:
        self.recorder.unlocked(self.held[event.node, event.boundary, event.request])

    def ended(self, event: Finished | Retracted | Aborted) -> None:
        rid = self.requests[event.request]
        if isinstance(event, Finished):
            self.recorder.finished(rid, event.tokens, cached=event.cached, node=self.nodes[event.node])
        elif isinstance(event, Retracted):
            self.recorder.retracted(rid, event.tokens)
        else:
            self.recorder.aborted(rid, event.tokens)

    def stepped(self, event: Stepped) -> None:
        if event.phase == Phase.ENDED:
            self.recorder.step_ended(event.step)
        else:
            self.recorder.step_began(
                event.step, self.names(event.requests), pages_of(event.starts).tolist(), pages_of(event.stops).tolist()
            )  # fmt: skip


_TOLD: dict[type, Callable[[Foreign, Any], None]] = {
    Admitted: Foreign.admitted,
    Extended: Foreign.extended,
    Transferred: Foreign.transferred,
    Split: Foreign.split,
    Locked: Foreign.locked,
    Unlocked: Foreign.unlocked,
    Finished: Foreign.ended,
    Retracted: Foreign.ended,
    Aborted: Foreign.ended,
    Stepped: Foreign.stepped,
    Allocated: lambda it, e: it.recorder.allocated(it.requests[e.request], pages_of(e.full), pages_of(e.swa)),
    Bound: lambda it, e: it.recorder.bound(
        it.requests[e.request], full=pages_of(e.full), swa=pages_of(e.swa), start=e.start, row=pages_of(e.row), length=e.length
    ),
    Reclaimed: lambda it, e: it.recorder.reclaimed(
        it.requests[e.request], e.start, e.stop, full=pages_of(e.full), swa=pages_of(e.swa), in_flight=e.in_flight, pre=e.pre
    ),
    Repointed: lambda it, e: it.recorder.repointed(
        it.requests[e.request], e.protected, it.nodes[e.node], start=e.start, full=pages_of(e.full)
    ),
    Freed: lambda it, e: it.recorder.freed(
        pages_of(e.full), pages_of(e.swa), unmapped=pages_of(e.unmapped), **it.giver(e.giver), why=why(e)
    ),
    Remapped: lambda it, e: it.recorder.remapped(
        pages_of(e.source), pages_of(e.target), pages_of(e.swa), giver=it.requests[holder_of(e.giver)],
        taker=it.requests[holder_of(e.taker)],
    ),
    GroupOpened: lambda it, _: it.recorder.group_opened(),
    GroupFlushed: lambda it, e: it.recorder.group_flushed(pages_of(e.full), pages_of(e.swa)),
    Refused: lambda it, e: it.recorder.refused(e.reason, e.detail, pages=pages_of(e.pages)),
    Matched: lambda it, e: it.recorder.matched(
        e.rid, e.asked, full_hit=e.full_hit, hit=e.hit, node=it.nodes[e.node], stop=Stop(e.stop), namespace=e.namespace,
        full_only=e.full_only,
    ),
    Tombstoned: lambda it, e: it.recorder.tombstoned(it.nodes[e.node], pages_of(e.full), pages_of(e.swa), why=why(e)),
    Healed: lambda it, e: it.recorder.healed(
        it.nodes[e.node], HealMode(e.mode), fresh=pages_of(e.fresh), old=pages_of(e.old), swa=pages_of(e.swa),
        **it.giver(e.giver), why=why(e),
    ),
    Removed: lambda it, e: it.recorder.removed(
        it.nodes[e.node], pages_of(e.full), pages_of(e.swa), why=why(e)
    ),
    Flushed: lambda it, e: it.recorder.flushed(e.removed),
}  # fmt: skip


def retold(driven: Driven, run: Path) -> None:
    """A run of our cache, as another server would have told it."""
    with Recorder.open(run, driven.journal.opened.config, redaction="plain") as recorder:
        foreign = Foreign(recorder)
        for frame in driven.journal.frames:
            with recorder.command():
                for event in frame.events:
                    foreign.tell(event)
