"""Which nodes of two trees are the same one, where nothing says which keys are the same.

Two runs that hashed with different keys cached the same prefixes under other bytes. A node is the same as one that ends at
the same token and hangs on the same node, cuts in between not counted: the one of its number first, because who does the
same counts the same, then others in the order of their making. Rule: it is a guess by structure, and a node has one other.
"""

from collections.abc import Iterator
from itertools import chain

from radixledger.cache.state import Node, State
from radixledger.journal.units import NodeId

Names = dict[NodeId, str]
Alike = tuple[dict[NodeId, Node], dict[NodeId, Node]]
"""Nodes of either side, by number, that could be each other."""


def paired(a: State, b: State) -> tuple[Names, Names]:
    """A name for every node of two states that hangs on its root; a node of both has one name in both."""
    above = ({a.root.id: "root"}, {b.root.id: "root"})
    """What a node is below, or is: the name of the nearest pair."""
    named: tuple[Names, Names] = ({a.root.id: "root"}, {b.root.id: "root"})
    for alike in _by_end(a, b):  # whatever a node hangs on ends before it
        under: dict[str, Alike] = {}
        for side in (0, 1):
            for node in alike[side].values():
                above[side][node.id] = above[side].get(node.parent.id, "") if node.parent else ""
                under.setdefault(above[side][node.id], ({}, {}))[side][node.id] = node
        for mine, theirs in chain.from_iterable(map(_pairs, under.values())):
            name = f"{mine} and {theirs}"
            above[0][mine] = above[1][theirs] = named[0][mine] = named[1][theirs] = name
        for side, word in enumerate("AB"):
            for number in alike[side]:
                named[side].setdefault(number, f"{number} of {word}")
    return named


def _pairs(alike: Alike) -> Iterator[tuple[NodeId, NodeId]]:
    """Those of one number, then the others one by one."""
    mine, theirs = alike
    yield from ((number, number) for number in mine if number in theirs)
    rest = (
        [number for number in one if number not in other] for one, other in ((mine, theirs), (theirs, mine))
    )
    yield from zip(*rest, strict=False)


def _by_end(a: State, b: State) -> Iterator[Alike]:
    """The nodes below both roots that end at the same token, from the nearest to the root to the farthest."""
    found: dict[int, Alike] = {}
    for side, state in enumerate((a, b)):
        for node in sorted(_below(state.root), key=lambda each: each.id):
            found.setdefault(node.end, ({}, {}))[side][node.id] = node
    return (found[end] for end in sorted(found))


def _below(root: Node) -> Iterator[Node]:
    """Every node of a tree but its root; in a tree that a lawless journal bent into a ring, each once."""
    seen, todo = {root.id}, [root]
    while todo:
        for child in (todo.pop().children or {}).values():
            if child.id not in seen:
                seen.add(child.id)
                todo.append(child)
                yield child
