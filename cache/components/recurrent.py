"""The RECURRENT component: the whole state of a model after one token, one slot of it on each leaf.

A state cannot be cut back, so a request may start only where one stands (R71); inner nodes keep none. Two modes.
`base`, page size 1: a finished request donates the slot it ran on. `extra_buffer`: beside it a request owns two track
slots that take turns at every `track_interval` tokens; the last one that was filled holds the state of a page
boundary, and no more than that boundary is cached. Rule: who gives a slot away has its replacement first, and
whatever the tree does not take is freed in the same command.
"""

import numpy as np
from numpy.typing import NDArray

from radixledger.cache.components.component import Component, Events, Segment, leaf_removal
from radixledger.cache.eviction import oldest_state
from radixledger.cache.match import walk
from radixledger.cache.refusals import Refusal, StateShort
from radixledger.cache.slices import Slice
from radixledger.cache.state import Node, Request, State
from radixledger.journal.accounts import Pool, request_account, tree_account
from radixledger.journal.causes import Cause, Operation, Site, cause
from radixledger.journal.events import (
    StateCopied,
    StateDonated,
    StateFreed,
    StateReplaced,
    StateTaken,
    StateTracked,
    Stop,
)
from radixledger.journal.units import NO_PAGES, ROOT, NodeId, Pages, RequestId

TRACK_SLOTS = 2


def slot_of(number: int) -> Pages:
    """A slot number as it stands in events."""
    return Pages(number.to_bytes(4, "little"))


class RecurrentComponent(Component):
    """States of a recurrent model on a FULL-backed tree."""

    pool = Pool.RECURRENT
    miss = Stop.NO_STATE
    leaf_site = Site.STATE_LEAF

    def boundary(self, state: State, node: Node, pages: int) -> tuple[Node, int]:
        """The deepest node of the path that has a state, as a whole."""
        while node.parent is not None and not (node.recurrent and pages == node.pages):
            node = node.parent
            pages = node.pages
        return node, pages

    # -- insert ----------------------------------------------------------------------------------------------

    def outgrown(self, state: State, node: Node, brought: Slice) -> Events:
        """A state serves a leaf only; one that is locked stays until the last unlock."""
        if node.recurrent and not node.anchors:
            yield _freed_by(node, brought.request, brought.why(Site.OUTGROWN))

    def settled(self, state: State, node: Node, brought: Slice) -> Events:
        """The slice's state goes to the node that ends the path, if that is a leaf without one; else it is freed."""
        slot = brought.recurrent
        if not slot:
            return
        if node.recurrent or node.children or node.parent is None:
            yield StateFreed(brought.giver, slot, ROOT, brought.request, brought.why(Site.REJECTED))
        else:
            yield StateDonated(NodeId(node.id), brought.giver, slot, brought.request, brought.why(Site.WHOLE))

    def cap(self, state: State, request: Request, count: int, operation: Operation) -> int:
        """The last boundary that is tracked; 0 without one, or if a running request's slot could not be replaced (R150)."""
        if not state.config.track_interval:
            return count
        if operation is Operation.UNFINISHED and not _can_have(state, 1):
            return 0
        tracked = [end // state.page_size for end in state.rows.tracked[request.row].tolist()]
        return max((end for end in tracked if end <= count), default=0)

    def secure(self, state: State, request: Request, count: int) -> Events:
        """A running request gets another slot for the tracked one that it gives away."""
        place = _tracked_at(state, request, count)
        if place:
            yield from _make_room(state, 1, Operation.UNFINISHED)
            former = slot_of(int(state.rows.states[request.row, place]))
            why = cause(Operation.UNFINISHED, Site.REPLACEMENT)
            yield StateReplaced(request.id, former, state.recurrent.next_free(1), why)

    def carried(self, state: State, request: Request, count: int, operation: Operation) -> Pages:
        """The slot with the state after `count` pages: a tracked one, or at the end of all tokens the one it ran on."""
        states = state.rows.states[request.row]
        if state.config.track_interval:
            place = _tracked_at(state, request, count)
            return slot_of(int(states[place])) if place else NO_PAGES
        whole = count * state.page_size == int(state.rows.length[request.row])
        return slot_of(int(states[0])) if whole and operation is Operation.FINISH else NO_PAGES

    # -- requests --------------------------------------------------------------------------------------------

    def check_admission(self, state: State, key: bytes, namespace: bytes, force_miss: bool) -> None:
        """Refuse a request for which there are not slots enough, the state that it would go on from not counted."""
        needed = state.states_each
        if not _can_have(state, needed + 1):
            node = state.root if force_miss else walk(state, key, namespace).node
            _check_room(state, needed, node)

    def check_seat(self, state: State, node: Node) -> None:
        """The same for a request that starts at `node`."""
        _check_room(state, state.states_each, node)

    def admitted(self, state: State, request: RequestId, node: Node, why: Cause) -> Events:
        """Slots of its own; a hit's state is copied to the running one before use, and locked until then."""
        needed = state.states_each
        yield from _make_room(state, needed, Operation.ADMIT)
        slots = state.recurrent.next_free(needed)
        yield StateTaken(request, slots, why)
        if node.parent is not None:
            yield StateCopied(request, NodeId(node.id), node.recurrent, Pages(slots[:4]), why)

    def grown(
        self, state: State, requests: NDArray[np.int64], before: NDArray[np.int32], why: Cause
    ) -> Events:
        """Every boundary that a request grows over is tracked, in the track slot whose state is the older one."""
        interval = state.config.track_interval
        if not interval:
            return
        rows, at = state.rows, requests & state.rows.mask
        crossed = rows.length.take(at) // interval - before // interval
        numbers: list[int] = []
        slots: list[int] = []
        ends: list[int] = []
        for place in np.flatnonzero(crossed).tolist():
            row = int(at[place])
            last = int(rows.length[row]) // interval
            turn = int(rows.tracked[row].argmin())
            for each in range(last - min(TRACK_SLOTS, int(crossed[place])) + 1, last + 1):
                numbers.append(int(requests[place]))
                slots.append(int(rows.states[row, 1 + turn]))
                ends.append(each * interval)
                turn = 1 - turn
        if numbers:
            packed = np.array(numbers, "<i8").tobytes(), np.array(slots, "<i4").tobytes()
            yield StateTracked(packed[0], Pages(packed[1]), np.array(ends, "<i4").tobytes(), why)

    def check_cut(self, state: State, request: Request) -> None:
        """A state cannot be cut back to fewer tokens."""
        raise Refusal(
            f"{request.rid!r} runs on a state after all of its tokens, which cannot be cut back: its pages go when it ends",
            request=request.id,
        )

    def left(self, state: State, request: Request, operation: Operation) -> Events:
        """Whatever slots the request still has are freed."""
        slots = state.rows.states[request.row]
        kept = Pages(slots[slots != 0].astype("<i4").tobytes())
        if kept:
            yield StateFreed(request_account(request.id), kept, ROOT, request.id, cause(operation, Site.TAIL))

    # -- locks -----------------------------------------------------------------------------------------------

    def segment(self, state: State, node: Node) -> Segment:
        """The node itself and no other; without a state it is passed over."""
        return Segment() if node.recurrent else Segment(skipped=node.id.to_bytes(8, "little"))

    def unlocked(self, state: State, node: Node, request: RequestId, why: Cause) -> Events:
        """The last unlock of a node that has got children since drops its state."""
        if node.recurrent and node.children and not node.anchors:
            yield _freed_by(node, request, cause(Operation(why >> 5), Site.OUTGROWN))

    # -- eviction --------------------------------------------------------------------------------------------

    def oldest(self, state: State) -> Node | None:
        """The leaf whose state was used longest ago; it goes with its FULL pages."""
        return oldest_state(state)

    def held(self, node: Node) -> int:
        """One slot, or none."""
        return len(node.recurrent) >> 2


def _tracked_at(state: State, request: Request, count: int) -> int:
    """The place among a row's slots of the one that holds the state after `count` pages; 0 for none."""
    tracked = state.rows.tracked[request.row].tolist()
    end = count * state.page_size
    return 1 + tracked.index(end) if end and end in tracked else 0


def _can_have(state: State, count: int) -> bool:
    """Whether so many slots are free or can be made so; nothing is gained while a free group is open."""
    evictable = 0 if state.group_open else state.recurrent_evictable
    return state.recurrent.available + evictable >= count


def _check_room(state: State, needed: int, node: Node) -> None:
    """Refuse unless `needed` slots can be had while the state of `node` stays."""
    spared = int(bool(node.recurrent) and not node.anchors and not state.group_open)
    if not _can_have(state, needed + spared) and state.recurrent.available < needed:
        raise StateShort(
            needed=needed,
            available=state.recurrent.available,
            evictable=state.recurrent_evictable - spared,
        )


def _make_room(state: State, needed: int, operation: Operation) -> Events:
    """Remove the oldest leaves that have a state until `needed` slots are free."""
    why = cause(operation, Site.STATE_LEAF)
    while state.recurrent.available < needed:
        leaf = oldest_state(state)
        assert leaf is not None, "room was checked before the first event"
        yield leaf_removal(state, leaf, why)


def _freed_by(node: Node, request: RequestId, why: Cause) -> StateFreed:
    return StateFreed(tree_account(NodeId(node.id)), node.recurrent, NodeId(node.id), request, why)
