"""What a choice of victims depends on beside what it decides: who was held, who was used last, by paths.

Another cache chooses other victims, by an order that nobody here knows. So where one was chosen wrongly, those that are
named have to be what they were, and none may be older that was not. Rule: reads only; nodes are told by their paths.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from radixledger.cache.state import Node
from radixledger.journal.events import Demoted, HostDropped, Removed, Tombstoned
from radixledger.replay.schedule.named_event import NamedEvent
from radixledger.replay.schedule.paths import node_at, path_of
from radixledger.replay.schedule.stage import Stage

_CHOSEN = (Removed, Tombstoned, Demoted, HostDropped)


class Scene(NamedTuple):
    """The victims as they were, and the paths of those that were used before any of them, in either order."""

    victims: tuple[Any, ...] = ()
    older: frozenset[str] = frozenset()
    older_windows: frozenset[str] = frozenset()

    def is_like(self, whole: "Scene") -> bool:
        """Whether a choice that was made in `whole` has to be the same here."""
        return (
            self.victims == whole.victims
            and self.older <= whole.older
            and self.older_windows <= whole.older_windows
        )


NO_SCENE = Scene()


def scene(stage: Stage, events: Iterable[NamedEvent]) -> Scene:
    """The scene in which these victims are chosen; the state is the one before."""
    state, spelled = stage.rank.state, stage.alphabet.spelled
    chosen = [dict(each.fields)["node"] for each in events if each.kind in _CHOSEN]
    found = {path: _node(stage, path) for path in chosen if isinstance(path, tuple)}
    nodes = [node for node in found.values() if node is not None]
    if not nodes:
        return NO_SCENE
    tick, swa_tick = max(node.tick for node in nodes), max(node.swa_tick for node in nodes)
    others = [node for node in state.nodes.values() if node.parent is not None]
    return Scene(
        tuple(None if node is None else _as_it_is(node) for node in found.values()),
        frozenset(spelled(path_of(node)) for node in others if node.tick < tick),
        frozenset(spelled(path_of(node)) for node in others if node.swa and node.swa_tick < swa_tick),
    )


def _node(stage: Stage, path: tuple[str, str]) -> Node | None:
    state = stage.rank.state
    number = node_at(state, stage.alphabet.key_of(path[1]), path[0].encode())
    return None if number is None else state.nodes[number]


def _as_it_is(node: Node) -> tuple[Any, ...]:
    held = (node.holds > 0, node.swa_locks > 0)
    return (*held, bool(node.swa), bool(node.full), bool(node.children), node.hits, node.asked, node.priority)
