"""Events told by names instead of numbers, so that those of two runs can be compared; and back again.

Two runs of one schedule hand out other pages and count nodes otherwise when something was left out of one of them; told by
names, what is the same is equal. Rule: an event is told when its hand-outs are named and the state does not know it yet.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from radixledger.cache.state import State
from radixledger.journal import events as e
from radixledger.journal.accounts import Kind, Pool, describe
from radixledger.journal.events import AnyEvent
from radixledger.replay.schedule.free_places import books, free_places
from radixledger.replay.schedule.named_event import ACCOUNTS, FREE, NODES, NamedEvent, Path
from radixledger.replay.schedule.names import NameBook, Shelf, Unplayable
from radixledger.replay.schedule.paths import node_at, path_of

_OF_STATES = (e.StateTaken, e.StateCopied, e.StateTracked, e.StateReplaced, e.StateDonated, e.StateFreed)
_POOLS = {"swa": Pool.SWA, "host": Pool.HOST, "recurrent": Pool.RECURRENT}
_PAGES = {"full", "unmapped", "swa", "host", "recurrent", "fresh", "old", "row", "source", "target", "slots", "slot", "former", "pages"}  # fmt: skip
_TAKEN: dict[type, tuple[str, ...]] = {
    e.Allocated: ("full", "swa"),
    e.Extended: ("full", "swa"),
    e.StateTaken: ("slots",),
    e.StateReplaced: ("fresh",),
    e.BackupBegun: ("host",),
    e.LoadBegun: ("full",),
}
"""Pages that are handed out: told by their places among those that are free."""
_UNTOLD = {"digest": b"", "seq": 0, "since": 0, "detail": "", "expected": 0, "found": 0, "run": ""}
"""What is of one run alone."""


class Texts(NamedTuple):
    """How a run's keys, namespaces and request ids are said in letters and names, and how they are made of them."""

    spelled: Callable[[bytes], str]
    space: Callable[[bytes], str]
    rid: Callable[[str, str], str]
    """Of a request id and the name of whom it was given to now."""
    key: Callable[[str], bytes]


class Naming:
    """Tells the events of one run; `names` are those of its hand-outs, `state` is the one before each event."""

    def __init__(self, state: State, names: NameBook, texts: Texts) -> None:
        self.state = state
        self._names = names
        self._texts = texts
        self._shelves: dict[Pool, Shelf] = {
            Pool.FULL: names.full, Pool.SWA: names.swa, Pool.RECURRENT: names.states, Pool.HOST: names.host,
        }  # fmt: skip
        self._grown: dict[int, Path] = {}
        """Nodes that the events told since the last command have made."""
        self._made: dict[Path, int] = {}

    def tell(self, event: AnyEvent) -> NamedEvent:
        """The event by names."""
        self._grow(event)
        return NamedEvent(
            type(event), tuple((name, self._told(event, name)) for name in event.__struct_fields__)
        )

    def untell(self, told: NamedEvent) -> AnyEvent:
        """The event that is told so here. Raises Unplayable for names that mean nothing here."""
        event: AnyEvent = told.kind(**{name: self._untold(told, name, value) for name, value in told.fields})
        self._grow(event)
        return event

    def begin(self) -> None:
        """The state knows all that was told so far."""
        self._grown.clear()
        self._made.clear()

    # -- by field --------------------------------------------------------------------------------------------

    def _told(self, event: AnyEvent, name: str) -> Any:
        value = getattr(event, name)
        if name in _UNTOLD:
            return _UNTOLD[name]
        if name == "request":
            return self._names.requests.names.get(value, value)
        if name in ("requests", "takers"):
            return tuple(
                self._names.requests.names.get(each, each) for each in np.frombuffer(value, "<i8").tolist()
            )
        if name in NODES:
            return self._node(value)
        if name == "skipped":
            return tuple(self._node(each) for each in np.frombuffer(value, "<i8").tolist())
        if name in ACCOUNTS:
            return self._account(value)
        if name in _PAGES:
            pool = self._pool(event, name)
            free = free_places(books(self.state)[pool], value) if name in _TAKEN.get(type(event), ()) else {}
            names = self._shelves[pool].names
            numbers: list[int] = np.frombuffer(value, "<i4").tolist()
            if not free:
                return tuple(names.get(each, each) for each in numbers)
            return tuple((FREE, free[each]) if each in free else self._held(pool, each) for each in numbers)
        if name == "boundary":
            return self._depth(event, value)
        if name == "transfer":
            return self._names.copies.names.get(value, value)
        if name == "rid":
            named = self._names.requests.names.get(getattr(event, "request", 0), "")
            return self._texts.rid(value, named) if isinstance(event, e.Admitted) else ""
        text = {"key": self._texts.spelled, "namespace": self._texts.space}.get(name)
        return text(value) if text is not None else value

    def _untold(self, told: NamedEvent, name: str, value: Any) -> Any:
        if name == "request":
            new = told.kind is e.Admitted and value not in self._names.requests.numbers
            return self._next_request() if new else _number(self._names.requests, value)
        if name in ("requests", "takers"):
            return _packed([_number(self._names.requests, each) for each in value], "<i8")
        if name in NODES:
            return self._number_of_node(value)
        if name == "skipped":
            return _packed([self._number_of_node(each) for each in value], "<i8")
        if name in ACCOUNTS:
            return self._number_of_account(value)
        if name in _PAGES:
            pool = self._pool(told, name)
            return _packed([self._number_of_page(pool, each) for each in value], "<i4")
        if name == "boundary":
            return self._boundary(told, value)
        if name == "transfer":
            new = isinstance(value, str) and not self._names.copies.numbers.knows(value)
            return self.state.next_transfer if new else _number(self._names.copies, value)
        if name == "key":
            return self._texts.key(value)
        return value.encode() if name == "namespace" else value

    def _next_request(self) -> int:
        rows = self.state.rows
        if not rows.free:
            raise Unplayable("all rows have a request")
        return self.state.next_request * (rows.mask + 1) + rows.free[-1]

    def _pool(self, event: AnyEvent | NamedEvent, name: str) -> Pool:
        kind = event.kind if isinstance(event, NamedEvent) else type(event)
        if kind in _OF_STATES:
            return Pool.RECURRENT
        if name == "pages":
            pool = (
                dict(event.fields)["pool"]
                if isinstance(event, NamedEvent)
                else getattr(event, "pool", Pool.FULL)
            )
            return Pool(pool) if pool in self._shelves else Pool.FULL
        return _POOLS.get(name, Pool.FULL)

    def _held(self, pool: Pool, number: int) -> tuple[str, Any]:
        """A page that is handed out although it is not free: the kind of account that it is in, and its name."""
        accounts = books(self.state)[pool].account
        kind = describe(int(accounts[number])).partition("(")[0] if 0 <= number < len(accounts) else "nowhere"
        return kind, self._shelves[pool].names.get(number, number)

    def _number_of_page(self, pool: Pool, told: Any) -> int:
        if not isinstance(told, tuple):
            return _number(self._shelves[pool], told)
        free = np.frombuffer(bytes(books(self.state)[pool].free), "<i4")
        if told[0] != FREE:
            number = _number(self._shelves[pool], told[1])
            if self._held(pool, number)[0] != told[0]:
                raise Unplayable(f"{pool.name} page {told[1]!r} is in another kind of account here")
            return number
        if told[1] >= free.size:
            raise Unplayable(f"{pool.name} has {free.size} free pages here, and no more")
        return int(free[told[1]])

    # -- nodes and accounts ----------------------------------------------------------------------------------

    def _grow(self, event: AnyEvent) -> None:
        """Remember the path of a node that this event makes."""
        if isinstance(event, e.Transferred):
            parent = self._node(event.parent)
            base = parent if isinstance(parent, tuple) else (self._texts.space(event.namespace), "")
            self._put(
                event.node,
                (
                    base[0] if base[1] else self._texts.space(event.namespace),
                    base[1] + self._texts.spelled(event.key),
                ),
            )
        elif isinstance(event, e.Split):
            whole, parent = self._node(event.node), self._node(event.parent)
            if isinstance(whole, tuple):
                above = len(parent[1]) if isinstance(parent, tuple) else 0
                pages = len(event.full or event.host) // 4
                self._put(event.upper, (whole[0], whole[1][: above + pages]))

    def _put(self, node: int, path: Path) -> None:
        self._grown[node] = path
        self._made[path] = node

    def _node(self, node: int) -> Any:
        """A node by namespace and path, its number where there is none; the root is 0."""
        found = self.state.nodes.get(node)
        if node in self._grown or found is None:
            return self._grown.get(node, node)
        if found.parent is None:
            return 0
        return self._texts.space(found.namespace), self._texts.spelled(path_of(found))

    def _number_of_node(self, told: Any) -> int:
        if not isinstance(told, tuple):
            return int(told)
        if told in self._made:
            return self._made[told]
        found = node_at(self.state, self._texts.key(told[1]), told[0].encode())
        return found if found is not None else self.state.next_node + len(self._made)

    def _depth(self, event: Any, boundary: int) -> int:
        """A boundary mark is told by where it stands: how many pages down the path; 0 for none."""
        marked = getattr(event, "marked", 0)
        node = self.state.nodes.get(marked or event.node)
        while node is not None and boundary and not marked and node.boundary != boundary:
            node = node.parent
        return node.end if node is not None and boundary else 0

    def _boundary(self, told: NamedEvent, depth: int) -> int:
        """The mark that stands so deep in the path of the event, or the next one that is made."""
        fields = dict(told.fields)
        if not depth or fields.get("marked"):
            return self.state.next_boundary if depth else 0
        node = self.state.nodes.get(self._number_of_node(fields["node"]))
        while node is not None and (node.end > depth or not node.boundary):
            node = node.parent
        return node.boundary if node is not None else self.state.next_boundary

    def _account(self, code: int) -> Any:
        kind, holder = code & 7, code >> 3
        if kind == Kind.REQUEST and holder:
            return kind, self._names.requests.names.get(holder, holder)
        if kind == Kind.TREE:
            return kind, self._node(holder)
        return (kind, self._names.copies.names.get(holder, holder)) if kind == Kind.IN_FLIGHT else code

    def _number_of_account(self, told: Any) -> int:
        if not isinstance(told, tuple):
            return int(told)
        kind, holder = told
        if kind == Kind.TREE:
            number = self._number_of_node(holder)
        else:
            number = _number(self._names.requests if kind == Kind.REQUEST else self._names.copies, holder)
        return number << 3 | int(kind)


def _number(shelf: Shelf, told: Any) -> int:
    return shelf.numbers[told] if isinstance(told, str) else int(told)


def _packed(numbers: Iterable[int], code: str) -> bytes:
    return np.array([*numbers], code).tobytes()
