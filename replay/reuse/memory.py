"""What the tree had and lost, page by page, beside a fold: so that a miss can be traced to the event that caused it.

A `Memory` looks at every event before it is folded. It knows prefixes by content: the chain of a page is a hash over the
chain of the page before it and the page's key bytes, plain or hashed, so that the same prefix is found again after it was
removed and brought back. Rules: memory is bounded, by the tree that stands and by `pages` that are gone, of which the
oldest are forgotten first and counted; nothing here changes a state.
"""

from collections.abc import Callable, Iterator
from typing import Any

from radixledger.cache.state import Node, State
from radixledger.journal.causes import Operation, Site
from radixledger.journal.events import (
    Adopted,
    AnyEvent,
    Demoted,
    Healed,
    HostDropped,
    LoadEnded,
    Opened,
    Removed,
    Split,
    StateDonated,
    StateFreed,
    Tombstoned,
    Transferred,
)
from radixledger.journal.frame import Frame
from radixledger.journal.units import ROOT
from radixledger.replay.reuse.gone import Gone
from radixledger.replay.reuse.room import Room
from radixledger.replay.reuse.stays import Loss, Mark, Piece, Stay, extend
from radixledger.replay.reuse.withheld import Withheld

PAGES_REMEMBERED = 1_000_000
"""Pages that left the tree and are remembered; about 150 bytes each."""

MISSING_EVENTS = "Gap"
"""What takes things where events are missing."""

STAYS_REMEMBERED = 4
"""Stays of one page, and marks of one stay; older ones are forgotten."""


_EVICTIONS = frozenset({int(Operation.EVICT), int(Operation.EVICT_HOST)})
_PRESSED = frozenset({int(Site.STATE_LEAF)})
"""Places of other operations where something goes because somebody wants its room."""


class Memory:
    """The past of one rank's tree; `base` is the state that the frames go on from."""

    def __init__(
        self, base: State | None = None, *, pages: int = PAGES_REMEMBERED, stays: int = STAYS_REMEMBERED
    ) -> None:
        self._stays_kept = stays
        self.stays: dict[int, Stay] = {}
        """By node: those that are in the tree."""
        self._chains: dict[int, int] = {}
        """By node: the chain of its last page."""
        self.gone = Gone(pages, stays)
        self.evicted = (0, 0)
        """FULL and SWA pages that evictions have taken so far."""
        self.begins_at = base.seq if base is not None else 0
        self._frame: Frame
        self._seq = self.begins_at
        self._room = Room()
        self._withheld = Withheld(self.stays)
        self._look: dict[type, Callable[[State, Any], None]] = {
            Transferred: self._transferred,
            Split: self._split,
            Tombstoned: self._tombstoned,
            Healed: self._healed,
            Removed: self._removed,
            Demoted: self._demoted,
            Adopted: self._brought_back,
            LoadEnded: self._brought_back,
            HostDropped: self._copy_dropped,
            StateDonated: self._state_donated,
            StateFreed: self._state_freed,
            Opened: self._reopened,
        }
        if base is not None:
            self._begin_with(base)

    def see(self, state: State, frame: Frame, seq: int, event: AnyEvent) -> None:
        """Look at the event with number `seq` before `state` is changed by it."""
        look = self._look.get(type(event))
        if look is not None:
            self._frame, self._seq = frame, seq
            look(state, event)
        self._room.look(state, seq, event)
        self._withheld.look(frame, seq, event)

    def lose(self, state: State, frame: Frame, seq: int) -> None:
        """Events are missing in front of event `seq`, which tells so: of nothing that was there before is known that it still is."""
        self._frame, self._seq = frame, seq
        loss = Loss(seq, frame.time_ns, frame.step, MISSING_EVENTS, 0, ROOT, self.evicted)
        for number in list(self.stays):
            self._bury(state, number, loss)
        self.stays.clear()

    def find(self, state: State) -> None:
        """The tree is known again, and is that of `state`."""
        self.stays.clear()
        self._chains.clear()
        self._begin_with(state)

    def pieces(self, state: State, node: Node, first: int, stop: int) -> list[Piece]:
        """The past of pages [first, stop) of the path to `node`."""
        path: list[Node] = []
        walk: Node | None = node
        while walk is not None and walk.parent is not None and walk.end > first:
            if walk.end - walk.pages < stop:
                path.append(walk)
            walk = walk.parent
        out: list[Piece] = []
        for each in reversed(path):
            extend(out, self._pieces_of(state, each, first, stop))
        return out

    def _pieces_of(self, state: State, node: Node, first: int, stop: int) -> Iterator[Piece]:
        live = self.stays.get(node.id)
        now = (live,) if live is not None else ()
        start = node.end - node.pages
        for at, chain in enumerate(self._chained(state, node), start):
            if first <= at < stop:
                yield Piece(at, at + 1, self.gone.of(chain) + now)

    def _chained(self, state: State, node: Node) -> Iterator[int]:
        """The chain of each page of a node."""
        parent = node.parent
        above = parent.id if parent is not None else ROOT
        return _chains(self._start(above, node.namespace), node.key, state.stride)

    def _start(self, parent: int, namespace: bytes) -> int:
        return hash(namespace) if parent == ROOT else self._chains.get(parent, ~parent)

    # -- what is there ---------------------------------------------------------------------------------------

    def _begin_with(self, state: State) -> None:
        """Nodes that a snapshot has are known from there on; how they came about is not."""
        stack = list((state.root.children or {}).values())
        while stack:
            node = stack.pop()
            self._settle(state, node, 0, "")
            stack.extend((node.children or {}).values())

    def _settle(self, state: State, node: Node, request: int, rid: str) -> None:
        seq, windowed = self._seq, state.windowed
        self.stays[node.id] = Stay(
            seq, request, rid, node.end,
            [Mark(seq, bool(node.full))],
            [Mark(seq, bool(node.swa))] if windowed else [],
            [Mark(seq, True)] if node.recurrent else [],
        )  # fmt: skip
        last = self._start(node.parent.id if node.parent else ROOT, node.namespace)
        for last in self._chained(state, node):  # noqa: B007  # the last one is kept
            pass
        self._chains[node.id] = last

    def _transferred(self, state: State, event: Transferred) -> None:
        parent = state.nodes.get(event.parent)
        if parent is None:
            return
        who = state.requests.get(event.request)
        node = Node(event.node, parent, event.key, event.full, event.swa, event.namespace)
        self._settle(state, node, event.request, who.rid if who is not None else "")
        if not event.swa:
            self.stays[event.node].given_back = self._withheld.given_back(event.request)

    def _split(self, state: State, event: Split) -> None:
        node, stay = state.nodes.get(event.node), self.stays.get(event.node)
        if node is None or stay is None:
            return
        pages = len(event.full or event.host) >> 2
        last = 0
        for at, chain in enumerate(self._chained(state, node)):
            if at == pages:
                break
            last = chain
        self._chains[event.upper] = last
        self.stays[event.upper] = stay.cut_off(node.end - node.pages + pages)

    def _mark(self, marks: list[Mark], there: bool, loss: Loss | None = None) -> None:
        marks.append(Mark(self._seq, there, loss))
        if len(marks) > self._stays_kept:
            del marks[0]

    # -- what goes -------------------------------------------------------------------------------------------

    def _loss(self, event: Any, node: int, full: int = 0, swa: int = 0) -> Loss:
        """The loss that an event is; what evictions have in common is told when they end."""
        frame, cause = self._frame, getattr(event, "cause", 0)
        evicts = cause >> 5 in _EVICTIONS or cause & 31 in _PRESSED
        loss = Loss(
            self._seq, frame.time_ns, frame.step, type(event).__name__, cause, node, self.evicted,
            self._room.victim() if evicts else None,
        )  # fmt: skip
        if evicts:
            self.evicted = (self.evicted[0] + full, self.evicted[1] + swa)
        return loss

    def _tombstoned(self, _: State, event: Tombstoned) -> None:
        stay = self.stays.get(event.node)
        if stay is not None:
            self._mark(stay.window, False, self._loss(event, event.node, 0, len(event.swa) >> 2))

    def _healed(self, _: State, event: Healed) -> None:
        stay = self.stays.get(event.node)
        if stay is not None:
            self._mark(stay.window, True)

    def _removed(self, state: State, event: Removed) -> None:
        loss = self._loss(event, event.node, len(event.full) >> 2, len(event.swa) >> 2)
        self._bury(state, event.node, loss)
        self._chains.pop(event.node, None)

    def _bury(self, state: State, number: int, loss: Loss) -> None:
        """A stay is over; its pages are remembered by what they hold."""
        stay, node = self.stays.pop(number, None), state.nodes.get(number)
        if stay is None or node is None:
            return
        stay.end = loss
        self.gone.add(self._chained(state, node), stay)

    def _demoted(self, _: State, event: Demoted) -> None:
        stay = self.stays.get(event.node)
        if stay is not None:
            self._mark(stay.full, False, self._loss(event, event.node, len(event.full) >> 2))

    def _brought_back(self, _: State, event: Adopted | LoadEnded) -> None:
        stay = self.stays.get(event.node)
        if stay is not None and (type(event) is Adopted or getattr(event, "landed", False)):
            self._mark(stay.full, True)

    def _copy_dropped(self, _: State, event: HostDropped) -> None:
        stay = self.stays.get(event.node)
        if stay is not None:
            stay.copy_dropped = self._loss(event, event.node)

    def _state_donated(self, _: State, event: StateDonated) -> None:
        stay = self.stays.get(event.node)
        if stay is not None:
            self._mark(stay.state, True)

    def _state_freed(self, _: State, event: StateFreed) -> None:
        stay = self.stays.get(event.node)
        if stay is not None:
            self._mark(stay.state, False, self._loss(event, event.node))

    def _reopened(self, state: State, event: Opened) -> None:
        """A new epoch: the pools are new, so all that the tree had is gone."""
        loss = self._loss(event, ROOT)
        for number in [number for number in self.stays if number in state.nodes]:
            self._bury(state, number, loss)
        self.stays.clear()
        self._chains.clear()


def _chains(chain: int, key: bytes, stride: int) -> Iterator[int]:
    for at in range(0, len(key), stride):
        chain = hash((chain, key[at : at + stride]))
        yield chain
