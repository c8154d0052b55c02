"""What the locks of a state keep: the path and the window of each, the pages that it alone holds, and what that blocked.

Not here: following receipts (`locks`). Rule: a page that two locks hold is nobody's alone; given back, a lock makes only
those evictable that it alone held.
"""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from radixledger.cache.state import Node, State
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import TO_ROOT
from radixledger.replay.fold import moments
from radixledger.replay.known import Known, upto
from radixledger.replay.locks.holds import UNTOLD, Hold, LockFault
from radixledger.replay.locks.locks import Locks
from radixledger.replay.seek import Watch, beginning_of, check_known, opened_of, standing_in, state_at


class Holding(Struct, frozen=True):
    """One receipt, and what it keeps. Lengths in tokens, pages of each pool.

    path: from the root to its node, [0, path). window_start: where its window begins; `path` where there is none.
    nodes: of the window, from its first node to the last. full_pages, swa_pages: what it holds; full_alone, swa_alone: what no other
    lock does. since_seq is 0 for one that was held before the journal begins. Behind that, what happened meanwhile: steps,
    evictions, those that fell short and by how many pages, refusals for want of pages, and pages that were evicted
    though they were used later than this path was locked. fault, fault_seq: as in `locks`.
    """

    request: int
    rid: str
    node: int
    boundary: int
    path: int
    window_start: int
    nodes: list[int]
    skipped: list[int]
    full_pages: int
    swa_pages: int
    full_alone: int
    swa_alone: int
    since_seq: int
    since_ns: int
    since_step: int
    cause: str
    steps: int
    evictions: int
    evictions_short: int
    full_lacking: int
    swa_lacking: int
    refusals: int
    passed_full: int
    passed_swa: int
    fault: str
    fault_seq: int


class LockReport(Struct, frozen=True):
    """The locks of one rank as of event `seq`, and the pools beside them, in pages. begins_at: as in `reuse`."""

    run: str
    rank: int
    seq: int
    time_ns: int
    step: int
    begins_at: int
    full_capacity: int
    full_available: int
    full_evictable: int
    full_protected: int
    swa_capacity: int
    swa_available: int
    swa_evictable: int
    swa_protected: int
    holds: list[Holding]
    faults: list[LockFault]
    fault_count: int
    lost_at: int = 0
    """Where events are missing, so that the locks behind are not known: then this is as of just before that. 0 where they are."""

    @property
    def clean(self) -> bool:
        """Whether every lock was given back by whom and when it should."""
        return not self.fault_count


def locks_at(reader: JournalReader, seq: int, watch: Watch = iter) -> LockReport:
    """Who holds what behind event `seq`; raises NoSuchEvent, and what reading and folding raise.

    The journal is read from its beginning, because a lock knows its own age and no snapshot does.
    """
    check_known(reader, seq)
    begin, known = beginning_of(reader), Known(standing_in(reader))
    locks, state, frame = Locks(begin.state), begin.state, None
    frames = upto(known.frames(reader, watch(reader.frames(begin.next_seq))), seq)
    for last in moments(frames, state, opened_of(reader), known.see):
        state, frame = last.state, last.frame
        if known.found:
            locks = _begun_again(locks, state)
        if not known.lost_at:
            locks.see(last)
    if known.lost_at > begin.next_seq:
        return replace(locks_at(reader, _told_before(reader, known.lost_at), watch), lost_at=known.lost_at)
    if state is None:  # nothing but the event that opens it
        state = state_at(reader, seq)
    step, time_ns = (frame.step, frame.time_ns) if frame is not None else (0, 0)
    return LockReport(
        run=reader.opened.run, rank=reader.rank, seq=seq, time_ns=time_ns, step=step,
        begins_at=int(begin.next_seq) - 1 if begin.state is not None else 0,
        full_capacity=state.full.capacity, full_available=state.full.available,
        full_evictable=state.full_evictable, full_protected=state.full_protected,
        swa_capacity=state.swa.capacity, swa_available=state.swa.available,
        swa_evictable=state.swa_evictable, swa_protected=state.swa_protected,
        holds=[holding_of(state, hold, locks, step) for hold in locks.holds],
        faults=locks.faults, fault_count=locks.fault_count, lost_at=known.lost_at,
    )  # fmt: skip


def _begun_again(locks: Locks, state: State) -> Locks:
    """The receipts of a state that is known again, with what was told of those before."""
    again = Locks(state)
    again.faults, again.fault_count, again.pressed = locks.faults, locks.fault_count, locks.pressed
    return again


def _told_before(reader: JournalReader, lost_at: int) -> int:
    """The last event that is told before what is missing at `lost_at`."""
    frames = (frame.seq_last for frame in reader.frames() if frame.seq_last < lost_at)
    return max(frames, default=int(reader.first_seq))


def holding_of(state: State, hold: Hold, locks: Locks, step: int) -> Holding:
    """A hold, and what it keeps in `state`; `step` is the one running."""
    node, page_size = state.nodes.get(hold.node), state.page_size
    path = list(_upwards(node))
    window = _window(state, hold, path)
    alone = _alone(path)
    meanwhile = locks.pressed.since(hold.pressed)
    end = node.end if node is not None else 0
    start = window[-1].end - window[-1].pages if window else end
    return Holding(
        request=hold.request, rid=hold.rid, node=hold.node, boundary=hold.boundary, path=end * page_size,
        window_start=start * page_size, nodes=[each.id for each in reversed(window)], skipped=hold.skipped,
        full_pages=sum(len(each.full) >> 2 for each in path),
        swa_pages=sum(len(each.swa) >> 2 for each in window),
        full_alone=sum(len(each.full) >> 2 for each in alone),
        swa_alone=sum(len(each.swa) >> 2 for each in window if each.swa_locks == 1),
        since_seq=hold.seq, since_ns=hold.time_ns, since_step=hold.step, cause=hold.cause,
        steps=step - hold.step if hold.seq else 0,
        evictions=meanwhile.evictions, evictions_short=meanwhile.short, full_lacking=meanwhile.full_lacking,
        swa_lacking=meanwhile.swa_lacking, refusals=meanwhile.refusals,
        passed_full=hold.passed_full, passed_swa=hold.passed_swa, fault=hold.fault, fault_seq=hold.fault_seq,
    )  # fmt: skip


def _upwards(node: Node | None) -> Iterator[Node]:
    while node is not None and node.parent is not None:
        yield node
        node = node.parent


def _window(state: State, hold: Hold, path: list[Node]) -> list[Node]:
    """The nodes whose SWA a receipt holds: up to the one that carries its boundary, or to the root (R111)."""
    if not state.tail_pages or hold.boundary == UNTOLD:
        return []
    window = []
    for node in path:
        window.append(node)
        if hold.boundary != TO_ROOT and node.boundary == hold.boundary:
            break
    return window


def _alone(path: list[Node]) -> list[Node]:
    """The nodes of a path that nothing else holds: no other receipt there, no other child that is held."""
    alone = []
    for node in path:
        if node.holds != 1:
            break
        alone.append(node)
    return alone
