"""A small server's journal, written event by event by hand: healthy, and told so that a fault can be put in anywhere.

The books that its ledgers are read from are kept by `journal.moves`, not by the cache. Pages have 4 tokens, the
window is 8 tokens, each pool has 24 pages.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from msgspec.structs import replace

from radixledger.journal.accounts import FREE, PENDING, RESERVED, Kind, Pool, request_account, tree_account
from radixledger.journal.causes import Operation, Site, cause
from radixledger.journal.events import (
    Admitted,
    Allocated,
    AnyEvent,
    Bound,
    Closed,
    Config,
    Digested,
    Evicted,
    Extended,
    Finished,
    Flushed,
    Freed,
    GroupFlushed,
    GroupOpened,
    Healed,
    HealMode,
    LedgerTaken,
    Locked,
    Matched,
    Opened,
    Reclaimed,
    Refused,
    Removed,
    Repointed,
    Retracted,
    Split,
    StateCopied,
    StateDonated,
    StateFreed,
    StateReplaced,
    StateTaken,
    StateTracked,
    Stepped,
    Stop,
    Tombstoned,
    Transferred,
    Unlocked,
)
from radixledger.journal.frame import Frame
from radixledger.journal.moves import mappings, moves, pages_of
from radixledger.journal.units import (
    BoundaryId,
    NodeId,
    PageId,
    Pages,
    Rank,
    RequestId,
    Seq,
    TokenCount,
)

PAGE = 4
WINDOW = 8
POOL = 24
STEP_NS = 1_000_000

Row: TypeAlias = dict[str, Any]
"""A row of an answer, by column."""

ADMIT, LOCK = cause(Operation.ADMIT), cause(Operation.LOCK)
FINISH, UNFINISHED = cause(Operation.FINISH), cause(Operation.UNFINISHED)
DUPLICATE, TAIL = cause(Operation.FINISH, Site.DUPLICATE), cause(Operation.FINISH, Site.TAIL)
PREFILL, DECODE = cause(Operation.EXTEND, Site.PREFILL), cause(Operation.EXTEND, Site.DECODE)
EVICT, SWA_INTERNAL = cause(Operation.EVICT), cause(Operation.EVICT, Site.SWA_INTERNAL)
SWA_LOCKED_LEAF = cause(Operation.EVICT, Site.SWA_LOCKED_LEAF)
FULL_LEAF, HEAL = cause(Operation.EVICT, Site.FULL_LEAF), cause(Operation.UNFINISHED, Site.HEAL)
RECLAIM, RETRACT = cause(Operation.RECLAIM), cause(Operation.RETRACT, Site.TAIL)
COMPOSITE = cause(Operation.FREE, Site.COMPOSITE)


def pages(*numbers: int) -> Pages:
    """Page numbers as events carry them."""
    return Pages(np.array(numbers, "<i4").tobytes())


def ids(*numbers: int) -> bytes:
    """Request or node numbers as events carry them."""
    return np.array(numbers, "<i8").tobytes()


def request(number: int) -> int:
    """The account of a request."""
    return int(request_account(RequestId(number)))


class Story:
    """One rank's journal in memory; `tell` adds a command's events as a frame."""

    def __init__(
        self, run: str = "told", rank: int = 0, *, route: str = "unified", capacity: int = POOL
    ) -> None:
        self.run, self.rank, self.route, self.capacity = run, Rank(rank), route, capacity
        self.frames: list[Frame] = []
        self.step = 0
        self.epoch = 0
        self.lengths: dict[int, int] = {}
        self.open()

    @property
    def last(self) -> Seq:
        """The number of the last event."""
        return Seq(sum(len(frame.events) for frame in self.frames))

    def open(self, *, ranks: int = 1, **changed: object) -> None:
        """Begin the next epoch: all pages are free. `changed` fields of the configuration are other than this story's."""
        self.epoch += 1
        self.holder = {pool: {PageId(0): int(RESERVED)} for pool in Pool}
        self.mapped: dict[int, int] = {}
        self.totals: Counter[str] = Counter()
        config = Config(PAGE, self.capacity, self.capacity, 2 * WINDOW, recurrent_slots=4, host_pages=8)
        config = replace(config, **changed)
        labels = {"model": "tiny", "pair": "a"}
        self.tell(
            Opened(
                self.run,
                self.rank,
                ranks,
                self.epoch,
                self.route,
                config,
                TokenCount(WINDOW),
                8,
                "hashed",
                key_id="k1",
                code="abc",
                labels=labels,
            )
        )

    def tell(self, *events: AnyEvent, step: int | None = None) -> Seq:
        """Add events as one frame and keep the books; the number of the last one."""
        self.step = self.step if step is None else step
        first = Seq(self.last + 1)
        self.frames.append(Frame(first, first * STEP_NS, self.step, self.epoch, list(events)))
        for event in events:
            self._keep(event)
        return self.last

    def ledger(self, phase: str, *, idle: bool = True, **changed: object) -> Seq:
        """Tell what the books say as a ledger, some fields of it changed."""
        held = {
            pool: Counter(account & 7 for account in holder.values()) for pool, holder in self.holder.items()
        }
        fields: dict[str, object] = {"phase": phase, "idle": idle}
        for pool in (Pool.FULL, Pool.SWA):
            name, count = pool.name.lower(), held[pool]
            used = sum(count[kind] for kind in (Kind.REQUEST, Kind.TREE, Kind.PENDING))
            fields |= {
                f"{name}_capacity": self.capacity * PAGE,
                f"{name}_available": (self.capacity - used) * PAGE,
                f"{name}_tree_evictable": count[Kind.TREE] * PAGE,
                f"{name}_tree_protected": 0,
                f"{name}_request_owned": count[Kind.REQUEST] * PAGE,
                f"{name}_reserved_page_slack": 0,
                f"{name}_pending_free": count[Kind.PENDING] * PAGE,
            }
        fields["mapping_nonzero_count"] = len(self.mapped) * PAGE
        fields["mapping_invalid_count"] = fields["mapping_duplicate_count"] = 0
        for name in ("full_duplicate_request_owner", "swa_duplicate_request_owner",
                     "full_request_tree_overlap", "swa_request_tree_overlap"):  # fmt: skip
            fields[f"{name}_count"] = 0
        for name in ("full_evicted", "swa_evicted", "tombstone_created", "tombstone_healed"):
            fields[f"{name}_total"] = self.totals[name]
        return self.tell(LedgerTaken(**(fields | changed)))  # type: ignore[arg-type]

    def _keep(self, event: AnyEvent) -> None:
        for move in moves(event):
            for page in pages_of(move.pages).tolist():
                self.holder[move.pool][PageId(page)] = move.taker
        for change in mappings(event):
            swa = pages_of(change.swa).tolist()
            for place, full in enumerate(pages_of(change.full).tolist()):
                if swa:
                    self.mapped[full] = swa[place]
                else:
                    self.mapped.pop(full, None)
        match event:
            case Tombstoned():
                self.totals["tombstone_created"] += 1
            case Healed():
                self.totals["tombstone_healed"] += 1
            case Evicted():
                self.totals["full_evicted"] += event.gained_full * PAGE
                self.totals["swa_evicted"] += event.gained_swa * PAGE
            case _:
                pass


def admit(
    story: Story, number: int, rid: str, prompt: int, hit: int = 0, node: int = 0, **matched: int
) -> None:
    """A request matches, is admitted, and locks what it found."""
    who, at, tokens = RequestId(number), NodeId(node), TokenCount
    stop = matched.get("stop", int(Stop.NO_CHILD))
    full_hit = matched.get("full_hit", hit)
    events: list[AnyEvent] = [
        Matched(rid, who, tokens(prompt), tokens(full_hit), tokens(hit), at, stop, cause=ADMIT),
        Admitted(who, rid, tokens(prompt), tokens(hit), at, cause=ADMIT),
    ]
    story.lengths[number] = hit
    if node:
        events.append(Locked(at, BoundaryId(node), request=who, cause=ADMIT))
    story.tell(*events, step=story.step + 1)


def extend(story: Story, number: int, grown: int, full: Sequence[int], swa: Sequence[int]) -> None:
    """A request grows, in a step of its own, with the pages that this takes."""
    step, who = story.step + 1, ids(number)
    takers, counts = (who, pages(len(full))) if full else (b"", b"")
    story.tell(
        Extended(who, pages(grown), takers, counts, pages(*full), pages(*swa), PREFILL),
        step=step,
    )
    start = story.lengths[number]
    story.lengths[number] += grown
    story.tell(Stepped(step, 0, who, pages(start), pages(start + grown)), Stepped(step, 1))


def insert(
    story: Story, number: int, node: int, parent: int, full: Sequence[int], swa: Sequence[int]
) -> Transferred:
    """The event by which a request gives the tree a new leaf."""
    key = b"k" * 8 * len(full)
    return Transferred(
        NodeId(node), NodeId(parent), request(number), key, pages(*full), pages(*swa),
        request=RequestId(number), cause=UNFINISHED,
    )  # fmt: skip


def first_request(story: Story) -> None:
    """r1: 18 prompt tokens, two decoded; its pages 1 to 4 become node 1, page 5 is freed as its tail."""
    admit(story, 1, "r1", 18)
    extend(story, 1, 18, [1, 2, 3, 4, 5], [1, 2, 3, 4, 5])
    who = RequestId(1)
    story.tell(
        insert(story, 1, 1, 0, [1, 2, 3, 4], [1, 2, 3, 4]),
        Repointed(who, TokenCount(0), pages(), TokenCount(16), NodeId(1), cause=UNFINISHED),
        Locked(NodeId(1), BoundaryId(1), request=who, cause=UNFINISHED),
    )
    extend(story, 1, 2, [], [])
    story.tell(
        Freed(request(1), pages(5), pages(5), pages(5), request=who, cause=TAIL),
        Unlocked(NodeId(1), BoundaryId(1), who, FINISH),
        Finished(who, TokenCount(20), TokenCount(16), NodeId(1), FINISH),
    )


def second_request(story: Story) -> None:
    """r2 shares two pages of node 1, which is cut for it (node 2 above); it is retracted and comes back as r2 again."""
    story.tell(Split(NodeId(1), NodeId(2), NodeId(0), pages(1, 2), pages(1, 2), BoundaryId(1)))
    admit(story, 2, "r2", 14, hit=8, node=2)
    extend(story, 2, 6, [6, 7], [6, 7])
    who = RequestId(2)
    story.tell(
        Freed(request(2), pages(6, 7), pages(6, 7), pages(6, 7), request=who, cause=RETRACT),
        Unlocked(NodeId(2), BoundaryId(2), who, FINISH),
        Retracted(who, TokenCount(14), cause(Operation.RETRACT)),
    )
    admit(story, 3, "r2", 14, hit=8, node=2)
    extend(story, 3, 6, [7, 8], [7, 6])
    who = RequestId(3)
    story.tell(
        insert(story, 3, 3, 2, [7], [7]),
        Freed(request(3), pages(8), pages(8), pages(6), request=who, cause=TAIL),
        Unlocked(NodeId(2), BoundaryId(2), who, FINISH),
        Finished(who, TokenCount(14), TokenCount(12), NodeId(3), FINISH),
    )


def pressure(story: Story) -> None:
    """SWA pressure tombstones node 2; r3 heals it by transfer, and its own window is reclaimed later on."""
    story.tell(
        Tombstoned(NodeId(2), pages(1, 2), pages(1, 2), cause=SWA_INTERNAL),
        Evicted(0, 2, 0, 2, 1, EVICT),
    )
    admit(story, 4, "r3", 22, stop=int(Stop.WINDOW_DEAD), full_hit=8)
    extend(story, 4, 22, [9, 10, 11, 12, 13, 14], [1, 2, 8, 9, 10, 11])
    who, giver = RequestId(4), request(4)
    story.tell(
        Healed(
            NodeId(2),
            HealMode.TRANSFER,
            giver,
            pages(9, 10),
            pages(1, 2),
            pages(1, 2),
            request=who,
            cause=HEAL,
        ),
        insert(story, 4, 4, 2, [11], [8]),
        insert(story, 4, 5, 4, [12, 13], [9, 10]),
        Repointed(who, TokenCount(0), pages(1, 2), TokenCount(20), NodeId(5), UNFINISHED),
        Locked(NodeId(5), BoundaryId(5), request=who, cause=UNFINISHED),
    )
    extend(story, 4, 10, [15, 16], [12, 13])
    story.tell(Reclaimed(who, TokenCount(0), TokenCount(24), pages(14), pages(11), cause=RECLAIM))
    story.tell(Reclaimed(who, TokenCount(24), TokenCount(24), pages(), pages(), cause=RECLAIM))
    story.tell(
        Freed(giver, pages(14, 15, 16), pages(15, 16), pages(12, 13), request=who, cause=TAIL),
        Unlocked(NodeId(5), BoundaryId(5), who, FINISH),
        Finished(who, TokenCount(32), TokenCount(20), NodeId(5), FINISH),
    )


def faces(story: Story) -> None:
    """A caller without a row: pages lent, bound, and given back in two ways, one of them through a free group."""
    story.tell(Allocated(RequestId(0), pages(17, 18), pages(17, 18), LOCK))
    story.tell(Bound(RequestId(9), pages(18), pages(18)))
    story.ledger("busy", idle=False, full_request_owned=0, swa_request_owned=0)
    story.tell(GroupOpened())
    story.tell(Freed(request(0), pages(17), pages(17), pages(17), PENDING, cause=COMPOSITE))
    story.tell(GroupFlushed(pages(17), pages(17)))
    story.tell(Freed(request(9), pages(18), pages(), pages(), FREE, cause=COMPOSITE))
    story.tell(Freed(request(9), pages(), pages(18), pages(18), FREE, cause=COMPOSITE))
    story.tell(Refused("pool_short", "40 pages are needed"))


def emptied(story: Story) -> None:
    """The last leaf goes to FULL pressure, the rest in a flush."""
    story.ledger("idle")
    story.tell(
        Removed(NodeId(1), NodeId(2), pages(3, 4), pages(3, 4), cause=FULL_LEAF),
        Evicted(1, 0, 2, 2, 1, EVICT),
    )
    story.ledger("pre_flush")
    why = cause(Operation.FLUSH)
    story.tell(
        Removed(NodeId(5), NodeId(4), pages(12, 13), pages(9, 10), cause=why),
        Removed(NodeId(4), NodeId(2), pages(11), pages(8), cause=why),
        Removed(NodeId(3), NodeId(2), pages(7), pages(7), cause=why),
        Removed(NodeId(2), NodeId(0), pages(1, 2), pages(1, 2), cause=why),
        Flushed(4, why),
    )
    story.ledger("post_flush")
    story.tell(Digested(b"\x01\x02"))


def states(story: Story) -> None:
    """State slots of a caller without a row: one goes to node 1, is copied from there, and all are given back."""
    who, node = RequestId(0), NodeId(1)
    story.tell(StateTaken(who, pages(1, 2, 3), LOCK))
    story.tell(StateDonated(node, request(0), pages(1), cause=LOCK))
    story.tell(StateCopied(who, node, pages(1), pages(2), LOCK))
    story.tell(StateTracked(ids(0), pages(3), pages(8), LOCK))
    story.tell(StateReplaced(who, pages(3), pages(4), LOCK))
    story.tell(StateFreed(request(0), pages(2, 3, 4), cause=LOCK))
    story.tell(StateFreed(int(tree_account(node)), pages(1), node, cause=LOCK))


def healthy(run: str = "told", rank: int = 0, **options: object) -> Story:
    """The whole story, and a restart with one more request behind it."""
    story = Story(run, rank, **options)  # type: ignore[arg-type]
    for chapter in (first_request, second_request, pressure, faces, states, emptied):
        chapter(story)
    story.tell(Closed(b"\x03"))
    story.open()
    first_request(story)
    story.tell(Closed(b"\x04"))
    return story
