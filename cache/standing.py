"""What FULL pressure asks before recency: the order of its victims as data, `Config.eviction`.

`lru` asks nothing more. `slru` keeps what was used again and again: a path that was hit twice since it came is protected,
and goes after all that was not, so that a stream of prompts that nobody repeats passes through without taking the shared
ones along. `priority` lets the least important go first: a path is as important as the most important request that
used it. Among equals the oldest goes first, then the lowest node number.

Rule: a node's standing only ever grows while it lives, as its tick does, so that an entry of the order may lag behind.
"""

from radixledger.cache.state import PROTECTED_USES, Node, State
from radixledger.cache.weights import PRIORITY

POLICIES = ("lru", "slru", "priority")

_ABOVE_EVERY_TICK = 1 << 62


def age(state: State, node: Node) -> int:
    """By what FULL victims are compared, the smallest first: standing, then recency."""
    match state.config.eviction:
        case "slru":
            return node.tick + _ABOVE_EVERY_TICK * (node.hits >= PROTECTED_USES)
        case "priority":
            return node.tick + _ABOVE_EVERY_TICK * node.priority
        case _:
            return node.tick


def esteem(state: State, node: Node, priority: int) -> None:
    """A request of this priority uses the path to `node`; inner nodes inherit it when they become the end."""
    if priority > node.priority and node.parent is not None:
        state.tree_digest += node.weight * (PRIORITY * (priority - node.priority))
        node.priority = priority


def priority_of(state: State, request: int) -> int:
    """The priority of a live request where priorities count, 0 for nobody."""
    live = state.requests.get(request)
    return live.priority if live is not None and state.config.eviction == "priority" else 0
