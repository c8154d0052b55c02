"""Nodes by the keys of their paths.

Rule: reads only.
"""

from radixledger.cache.match import find_child
from radixledger.cache.state import Node, State


def path_of(node: Node) -> bytes:
    """The key of the path to a node."""
    parts: list[bytes] = []
    each: Node = node
    while each.parent is not None:
        parts.append(each.key)
        each = each.parent
    parts.reverse()
    return b"".join(parts)


def path_to(state: State, number: int) -> bytes:
    """The key of the path to a node, by its number; empty where there is none."""
    node = state.nodes.get(number)
    return path_of(node) if node is not None else b""


def node_at(state: State, key: bytes, namespace: bytes) -> int | None:
    """The node that ends the path of `key`."""
    node: Node | None = state.root
    stop = len(key) // state.stride
    while node is not None and node.end < stop:
        node = find_child(state, node, key, node.end * state.stride, namespace)
    return node.id if node is not None and node.end == stop and path_of(node) == key else None
