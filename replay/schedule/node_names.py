"""Nodes by namespace and path instead of numbers, those too that the command under way has made.

Rule: a node that the state does not know yet is known by the event that makes it, until the state knows all that was told.
"""

from typing import Any

from radixledger.cache.state import State
from radixledger.journal import events as e
from radixledger.journal.events import AnyEvent
from radixledger.replay.schedule.named_event import Path
from radixledger.replay.schedule.paths import node_at, path_of
from radixledger.replay.schedule.texts import Texts


class NodeNames:
    """The paths of one run's nodes; the state is the one before the event that is told."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._paths: dict[int, Path] = {}
        """Of nodes that the events told since the last command have made."""
        self._numbers: dict[Path, int] = {}

    def forget(self) -> None:
        """The state knows all that was told so far."""
        self._paths.clear()
        self._numbers.clear()

    def grow(self, state: State, event: AnyEvent) -> None:
        """Remember the path of a node that this event makes."""
        if isinstance(event, e.Transferred):
            parent = self.path(state, event.parent)
            space, above = parent if isinstance(parent, tuple) else ("", "")
            space = space if above else self._texts.space(event.namespace)
            self._put(event.node, (space, above + self._texts.spelled(event.key)))
        elif isinstance(event, e.Split):
            whole, parent = self.path(state, event.node), self.path(state, event.parent)
            if isinstance(whole, tuple):
                above_pages = len(parent[1]) if isinstance(parent, tuple) else 0
                pages = len(event.full or event.host) // 4
                self._put(event.upper, (whole[0], whole[1][: above_pages + pages]))

    def path(self, state: State, node: int) -> Any:
        """A node by namespace and path, its number where there is none; the root is 0."""
        found = state.nodes.get(node)
        if node in self._paths or found is None:
            return self._paths.get(node, node)
        if found.parent is None:
            return 0
        return self._texts.space(found.namespace), self._texts.spelled(path_of(found))

    def number(self, state: State, told: Any) -> int:
        """The node that is told so; where there is none, the number that the next one would get."""
        if not isinstance(told, tuple):
            return int(told)
        if told in self._numbers:
            return self._numbers[told]
        found = node_at(state, self._texts.key(told[1]), told[0].encode())
        return found if found is not None else state.next_node + len(self._numbers)

    def _put(self, node: int, path: Path) -> None:
        self._paths[node] = path
        self._numbers[path] = node
