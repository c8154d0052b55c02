"""Lock forensics: which receipts are out, since when, for whom, what they keep from being evicted, and which leaked (N15).

A lock of a path is told by `Locked` and given back by `Unlocked`; what is out in between is a *hold*. A hold whose request
has ended is a leak: its pages stay until the process ends. Faults are those of the SQL check `unbalanced_lock`, in its
words (`holds`). Rule: one pass, and memory bounded by what is locked at once.
"""

from collections import Counter, deque
from collections.abc import Callable
from typing import Any

from radixledger.cache.state import State
from radixledger.journal.causes import label
from radixledger.journal.events import (
    Aborted,
    Admitted,
    Closed,
    Evicted,
    Finished,
    Locked,
    Opened,
    Refused,
    Removed,
    Retracted,
    Tombstoned,
    Unlocked,
)
from radixledger.journal.frame import Frame
from radixledger.journal.packed import whole_ids
from radixledger.journal.units import UNBOUND
from radixledger.replay.fold import Moment
from radixledger.replay.locks.holds import (
    AT_THE_END,
    ENDED,
    KEPT,
    NOT_LOCKED,
    UNTOLD,
    Hold,
    LockFault,
    Pressed,
)

FAULTS_KEPT = 256
"""So many faults are told one by one, the first; all are counted."""


class Locks:
    """The receipts of one rank; `see` every event before it is folded, then `holds` and `faults` are as of it."""

    def __init__(self, base: State | None = None) -> None:
        self.faults: list[LockFault] = []
        self.fault_count = 0
        self.pressed = Pressed()
        self._holds: dict[tuple[int, int, int], deque[Hold]] = {}
        self._keys: dict[int, dict[tuple[int, int, int], None]] = {}
        """By request: the keys of its holds, in their order."""
        self._out: dict[tuple[int, int], int] = {}
        """Receipts of a node and boundary that are out, whoever has them; below 0, and told once."""
        self._rids: dict[int, str] = {}
        self._second: Hold | None = None
        """A second receipt of one request: the first one has to go back with the next event."""
        self._frame: Frame
        self._seq = 0
        self._sees: dict[type, Callable[[State, Any], None]] = {
            Locked: self._locked,
            Unlocked: self._unlocked,
            Admitted: self._admitted,
            Finished: self._ended,
            Retracted: self._ended,
            Aborted: self._ended,
            Evicted: self._evicted,
            Refused: self._refused,
            Removed: self._removed,
            Tombstoned: self._tombstoned,
            Opened: self._opened,
            Closed: self._closed,
        }
        if base is not None:
            self._begin_with(base)

    def see(self, moment: Moment) -> None:
        """Look at an event before it is folded."""
        state, self._frame, self._seq, event = moment
        see = self._sees.get(type(event))
        if see is not None:
            see(state, event)

    @property
    def holds(self) -> list[Hold]:
        """Every receipt that is out, the oldest first."""
        return sorted((hold for queue in self._holds.values() for hold in queue), key=lambda hold: hold.seq)

    def _begin_with(self, state: State) -> None:
        """A snapshot tells the receipts of its requests; of those that nobody's name is on only that there are some."""
        for request in state.requests.values():
            self._rids[request.id] = request.rid
            if request.receipt is not None:
                number, boundary, skipped = request.receipt
                self._hold(number, boundary, request.id, request.rid, "", 0, [*skipped], state.clock)
                self._out[number, boundary] = self._out.get((number, boundary), 0) + 1
        told: Counter[int] = Counter()
        for place, count in self._out.items():
            told[place[0]] += count
        for node in state.nodes.values():
            for _ in range(node.anchors - told[node.id]):
                self._hold(node.id, UNTOLD, UNBOUND, "", "", 0, [], state.clock)

    def _hold(
        self,
        node: int,
        boundary: int,
        request: int,
        rid: str,
        why: str,
        seq: int,
        skipped: list[int],
        clock: int,
    ) -> Hold:
        time_ns, step = (self._frame.time_ns, self._frame.step) if seq else (0, 0)
        hold = Hold(node, boundary, request, rid, why, seq, time_ns, step, skipped, self.pressed, clock)
        key = (node, boundary, request)
        self._holds.setdefault(key, deque()).append(hold)
        self._keys.setdefault(request, {})[key] = None
        return hold

    def _give_back(self, key: tuple[int, int, int]) -> None:
        """The oldest hold of a key is over."""
        self._holds[key].popleft()
        if not self._holds[key]:
            del self._holds[key], self._keys[key[2]][key]
            if not self._keys[key[2]]:
                del self._keys[key[2]]

    def _blame(self, hold: Hold, fault: str, seq: int) -> None:
        if not hold.fault:
            hold.fault, hold.fault_seq = fault, seq

    def _tell(self, hold: Hold, fault: str, seq: int) -> None:
        self._told(LockFault(fault, seq, hold.node, hold.boundary, hold.request, hold.rid, hold.cause))

    def _told(self, fault: LockFault) -> None:
        self.fault_count += 1
        if len(self.faults) < FAULTS_KEPT:
            self.faults.append(fault)

    # -- locks -----------------------------------------------------------------------------------------------

    def _locked(self, state: State, event: Locked) -> None:
        self._judge_second(None)
        skipped = whole_ids(event.skipped)
        rid = self._rids.get(event.request, "")
        earlier = event.request != UNBOUND and event.request in self._rids and event.request in self._keys
        hold = self._hold(
            event.node,
            event.boundary,
            event.request,
            rid,
            label(event.cause),
            self._seq,
            skipped,
            state.clock,
        )
        self._out[event.node, event.boundary] = self._out.get((event.node, event.boundary), 0) + 1
        if earlier:
            self._second = hold

    def _unlocked(self, _: State, event: Unlocked) -> None:
        self._judge_second(event)
        place = (event.node, event.boundary)
        out = self._out.get(place, 0) - 1
        self._out[place] = out
        key = (*place, event.request)
        found = next((each for each in (key, (event.node, UNTOLD, UNBOUND)) if each in self._holds), None)
        if found is not None:
            self._give_back(found)
        if not out or (out < 0 and found is not None):
            del self._out[place]
        elif out == -1:
            rid = self._rids.get(event.request, "")
            self._told(LockFault(NOT_LOCKED, self._seq, *place, event.request, rid, label(event.cause)))

    def _judge_second(self, event: Unlocked | None) -> None:
        """The event behind a second lock of a request gives the first one back, or the first one was kept (R139)."""
        second, self._second = self._second, None
        if second is None:
            return
        given_back = (
            event is not None
            and self._seq == second.seq + 1
            and event.request == second.request
            and event.node != second.node
        )
        if not given_back:
            self._tell(second, KEPT, second.seq)
            for hold in self.holds:
                if hold.request == second.request and hold is not second:
                    self._blame(hold, KEPT, second.seq)

    # -- lives -----------------------------------------------------------------------------------------------

    def _admitted(self, _: State, event: Admitted) -> None:
        self._rids[event.request] = event.rid

    def _ended(self, _: State, event: Finished | Retracted | Aborted) -> None:
        self._judge_second(None)
        for key in self._keys.get(event.request, ()):
            for hold in self._holds[key]:
                self._blame(hold, ENDED, self._seq)
            self._tell(self._holds[key][0], ENDED, self._seq)
        self._rids.pop(event.request, None)

    def _opened(self, _: State, __: Opened) -> None:
        """A new epoch: whatever was out is gone with the process."""
        self._holds.clear()
        self._keys.clear()
        self._out.clear()
        self._rids.clear()
        self._second = None

    def _closed(self, _: State, __: Closed) -> None:
        """What nobody in particular holds at a clean end was forgotten."""
        self._judge_second(None)
        forgotten: dict[tuple[int, int], Hold] = {}
        for hold in self.holds:
            if hold.request not in self._rids and not hold.fault:
                self._blame(hold, AT_THE_END, self._seq)
                forgotten[hold.node, hold.boundary] = hold
        for hold in forgotten.values():
            self._tell(hold, AT_THE_END, hold.seq)

    # -- pressure --------------------------------------------------------------------------------------------

    def _evicted(self, _: State, event: Evicted) -> None:
        now = self.pressed
        full, swa = max(0, event.asked_full - event.gained_full), max(0, event.asked_swa - event.gained_swa)
        self.pressed = Pressed(
            now.evictions + 1,
            now.short + (full + swa > 0),
            now.full_lacking + full,
            now.swa_lacking + swa,
            now.refusals,
        )

    def _refused(self, _: State, event: Refused) -> None:
        if event.reason == "pool_short":
            self.pressed = self.pressed._replace(refusals=self.pressed.refusals + 1)

    def _removed(self, state: State, event: Removed) -> None:
        node = state.nodes.get(event.node)
        if node is not None:
            self._pass(node.tick, len(event.full) >> 2, len(event.swa) >> 2)

    def _tombstoned(self, state: State, event: Tombstoned) -> None:
        node = state.nodes.get(event.node)
        if node is not None:
            self._pass(node.swa_tick, 0, len(event.swa) >> 2)

    def _pass(self, tick: int, full: int, swa: int) -> None:
        """Pages went although they were used at `tick`: whatever was locked before that stood in the way of older ones."""
        for queue in self._holds.values():
            for hold in queue:
                if hold.clock >= tick:
                    break
                hold.passed_full += full
                hold.passed_swa += swa
