"""The tree as a server sees it: opaque handles of nodes, and a drawing.

Rule: a handle reads the state when it is asked and holds nothing of it but the node's number; numbers are never used
twice, so a handle of a removed node says that the node is gone, and never shows another.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from radixledger.cache.face_rank import FaceRank, slots_of_pages
from radixledger.cache.fold.requests import path_pages
from radixledger.cache.prefix_cache import ComponentType, RadixKey, Slots
from radixledger.cache.state import Node
from radixledger.journal.moves import pages_of
from radixledger.journal.units import NodeId


class ComponentData(NamedTuple):
    """What a node has of one component: its slots, None for a tombstone or a node without state; how many receipts lock it."""

    value: Slots | None
    lock_ref: int


class TreeNode:
    """A handle of one node of one rank. Two handles of the same node are equal."""

    __slots__ = ("_rank", "id")

    def __init__(self, rank: FaceRank, node: int) -> None:
        self._rank = rank
        self.id = NodeId(node)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeNode) and other.id == self.id and other.dp_rank == self.dp_rank

    def __hash__(self) -> int:
        return hash((self.dp_rank, self.id))

    def __repr__(self) -> str:
        return f"TreeNode(dp_rank={self.dp_rank}, id={self.id})"

    @property
    def dp_rank(self) -> int:
        """The rank whose tree this is."""
        return self._rank.dp_rank

    @property
    def rank(self) -> FaceRank:
        """The rank itself, by which a handle of another cache is told apart."""
        return self._rank

    @property
    def parent(self) -> "TreeNode | None":
        """The node above; None for the root."""
        parent = self._node().parent
        return None if parent is None else TreeNode(self._rank, parent.id)

    @property
    def children(self) -> "list[TreeNode]":
        """The nodes below, in no particular order."""
        with self._rank.turn:
            return [TreeNode(self._rank, child.id) for child in (self._node().children or {}).values()]

    @property
    def key(self) -> RadixKey:
        """The tokens of this node's edge, of pairs the first ones; its namespace is the path's and not told."""
        tokens = np.frombuffer(self._node().key, "<i4")[:: 1 + self._rank.state.lookahead]
        return RadixKey(tokens.astype(np.int32), None, self.dp_rank)

    @property
    def path_slots(self) -> Slots:
        """The FULL slots from the root to this node, int32 [n]; of a FULL tombstone, of the part that is on the device."""
        with self._rank.turn:
            node = self._node()
            while not node.full and node.parent is not None:
                node = node.parent
            return slots_of_pages(path_pages(node), self._rank.state.page_size)

    @property
    def component_data(self) -> dict[ComponentType, ComponentData]:
        """What the node has of each component, copies; the root is locked for ever (R70)."""
        with self._rank.turn:
            return self._component_data()

    def _component_data(self) -> dict[ComponentType, ComponentData]:
        node, page_size = self._node(), self._rank.state.page_size
        root = int(node.parent is None)
        locks = root + sum(each.anchors for each in _below(node))
        full = slots_of_pages(node.full, page_size) if node.full or node.parent is None else None
        found = {ComponentType.FULL: ComponentData(full, locks)}
        if self._rank.state.windowed:
            swa = slots_of_pages(node.swa, page_size) if node.swa or node.parent is None else None
            found[ComponentType.SWA] = ComponentData(swa, root + node.swa_locks)
        if self._rank.state.states_each:
            slot = pages_of(node.recurrent).astype(np.int32) if node.recurrent else None
            found[ComponentType.RECURRENT] = ComponentData(slot, root + node.anchors * bool(node.recurrent))
        return found

    def _node(self) -> Node:
        node = self._rank.state.nodes.get(self.id)
        if node is None:
            raise LookupError(f"node {self.id} of rank {self.dp_rank} has left the tree")
        return node


def _below(node: Node) -> Iterator[Node]:
    """A node and all nodes under it; never recursive (B139)."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        if node.children:
            stack.extend(node.children.values())


def _beside(node: Node) -> str:
    """What a node has of a recurrent model and of a host tier."""
    words = "" if node.full else " FULL tombstone"
    if node.recurrent:
        words += f" state {pages_of(node.recurrent)[0]}"
    return words + (" copied to the host" if node.host else "")


def drawn(rank: FaceRank) -> str:
    """One rank's tree, a line per node, children under their parent."""
    with rank.turn:
        return "\n".join(_lines(rank))


def _lines(rank: FaceRank) -> list[str]:
    page_size = rank.state.page_size
    lines = [f"rank {rank.dp_rank}: {len(rank.state.nodes) - 1} nodes"]
    stack = [(rank.state.root, 0)]
    while stack:
        node, depth = stack.pop()
        if node.parent is not None:
            window = (" live" if node.swa else " tombstone") if rank.state.windowed else ""
            locks = ", FULL locked" if node.holds else ""
            if node.holds and rank.state.windowed:
                locks += f", {node.swa_locks} window locks"
            tokens = f"[{(node.end - node.pages) * page_size}, {node.end * page_size})"
            lines.append(f"{'  ' * min(depth, 40)}node {node.id} {tokens}{window}{_beside(node)}{locks}")
        children = (node.children or {}).values()
        stack.extend((child, depth + 1) for child in sorted(children, key=lambda each: -each.id))
    return lines
