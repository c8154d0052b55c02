"""The numbers that a recorder gives to somebody else's nodes and requests.

Not a tree: of a node it is known where it hangs and which mark it carries. Rule: every name has a number. One that was
never told, or that is gone, gets the number it had, or one that stands for nothing, so that the event names what does
not exist and the fold can say so.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import TypeVar

from radixledger.journal.units import ROOT, TO_ROOT, BoundaryId, NodeId, RequestId, Seq

Name = TypeVar("Name", bound=Hashable)
Value = TypeVar("Value")

REMEMBERED = 1 << 16
"""So many nodes and requests that are gone keep their numbers: who uses them late is told by name."""


class Node:
    """A node of somebody else's tree: its number, its parent's, and the mark up to which windows are locked."""

    __slots__ = ("boundary", "id", "parent")

    def __init__(self, number: NodeId, parent: NodeId) -> None:
        self.id, self.parent, self.boundary = number, parent, TO_ROOT


class Names:
    """Numbers of the live and of the recently gone; those of an epoch begin at its first event's."""

    def __init__(self, first: Seq, rows: int) -> None:
        self.live: dict[str, RequestId] = {}
        self.open = True
        self._next = int(first)
        self._rows = rows
        self._turn = int(first) // rows + 1
        self._free_rows = list(range(rows))[::-1]
        self._nodes: dict[Hashable, Node] = {None: Node(ROOT, ROOT)}
        self._gone_nodes: OrderedDict[Hashable, Node] = OrderedDict()
        self._gone_requests: OrderedDict[str, RequestId] = OrderedDict()

    def coming(self, rid: str) -> RequestId:
        """The number that a new request would get; raises ValueError where all rows are taken."""
        if not self._free_rows:
            raise ValueError(
                f"{rid!r} is one more than {self._rows} live requests: open the recorder with more `rows`"
            )
        return RequestId(self._turn * self._rows + self._free_rows[-1])

    def begin(self, rid: str) -> None:
        """A new request lives, with the number that was coming."""
        self.live[rid] = self.coming(rid)
        self._free_rows.pop()
        self._turn += 1

    def request(self, rid: str) -> RequestId:
        """The number of a request, also of one that has ended."""
        number = self.live.get(rid)
        return number if number is not None else self._gone_requests.get(rid) or self._nobody(rid)

    def _nobody(self, rid: str) -> RequestId:
        """A number that no live request has, for one that was never admitted."""
        number = RequestId(self._turn * self._rows)
        self._turn += 1
        _remember(self._gone_requests, rid, number)
        return number

    def end(self, rid: str) -> None:
        """A request ends now, if it lives."""
        number = self.live.pop(rid, None)
        if number is not None:
            self._free_rows.append(number % self._rows)
            _remember(self._gone_requests, rid, number)

    def node(self, name: Hashable) -> Node:
        """A node by its name, also one that is gone."""
        node = self._nodes.get(name)
        if node is None:
            node = self._gone_nodes.get(name)
        if node is None:
            node = Node(NodeId(self._number()), ROOT)
            _remember(self._gone_nodes, name, node)
        return node

    @property
    def next(self) -> int:
        """The number that a node or mark gets next."""
        return self._next

    def made(self, name: Hashable, parent: NodeId) -> None:
        """A new node hangs under `parent`; a name that is used again is another node from now on."""
        self._nodes[name] = Node(NodeId(self._number()), parent)

    def put_above(self, name: Hashable, upper: Hashable) -> None:
        """A new node takes the place of another one, and its mark."""
        lower = self.node(name)
        self.made(upper, lower.parent)
        above = self._nodes[upper]
        above.boundary, lower.boundary = lower.boundary, TO_ROOT
        lower.parent = above.id

    def gone(self, name: Hashable) -> None:
        """A node leaves the tree now; the root stays, whatever is told."""
        node = self._nodes.pop(name, None) if name is not None else None
        if node is not None:
            _remember(self._gone_nodes, name, node)

    def mark(self, name: Hashable) -> None:
        """Windows are locked up to a node, which is marked from now on; the root needs none."""
        node = self.node(name)
        if node.id != ROOT and not node.boundary:
            node.boundary = BoundaryId(self._number())

    def _number(self) -> int:
        self._next += 1
        return self._next - 1


def _remember(gone: OrderedDict[Name, Value], name: Name, value: Value) -> None:
    gone[name] = value
    gone.move_to_end(name)
    if len(gone) > REMEMBERED:
        gone.popitem(last=False)
