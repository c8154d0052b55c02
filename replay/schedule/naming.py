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
from radixledger.replay.schedule.named_event import ACCOUNTS, FREE, NODES, PAGES, NamedEvent, column
from radixledger.replay.schedule.names import NameBook, Shelf, Unplayable
from radixledger.replay.schedule.node_names import NodeNames
from radixledger.replay.schedule.texts import Texts

# As `journal.fields` has it: this room is performed by other revisions too, which need not have that.
_OF_STATES = (e.StateTaken, e.StateCopied, e.StateTracked, e.StateReplaced, e.StateDonated, e.StateFreed)
_POOLS = {"swa": Pool.SWA, "host": Pool.HOST, "recurrent": Pool.RECURRENT}
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


class Naming:
    """Tells the events of one run; `names` are those of its hand-outs, `state` is the one before each event."""

    def __init__(self, state: State, names: NameBook, texts: Texts) -> None:
        self.state = state
        self.names = names
        self.texts = texts
        self.nodes = NodeNames(texts)
        self.shelves: dict[Pool, Shelf] = {
            Pool.FULL: names.full, Pool.SWA: names.swa, Pool.RECURRENT: names.states, Pool.HOST: names.host,
        }  # fmt: skip

    def tell(self, event: AnyEvent) -> NamedEvent:
        """The event by names."""
        self.nodes.grow(self.state, event)
        return NamedEvent(
            type(event),
            tuple(
                (name, _WORDS.get(column(name, getattr(event, name)), _AS_IT_IS).tell(self, event, name))
                for name in event.__struct_fields__
            ),
        )

    def untell(self, told: NamedEvent) -> AnyEvent:
        """The event that is told so here. Raises Unplayable for names that mean nothing here."""
        event: AnyEvent = told.kind(
            **{
                name: _WORDS.get(column(name, value), _AS_IT_IS).untell(self, told, value)
                for name, value in told.fields
            }
        )
        self.nodes.grow(self.state, event)
        return event

    def begin(self) -> None:
        """The state knows all that was told so far."""
        self.nodes.forget()


class _Words(NamedTuple):
    """How a field is told of an event and by its name, and what its told value means in an event that is told."""

    tell: Callable[[Naming, Any, str], Any]
    untell: Callable[[Naming, NamedEvent, Any], Any]


_AS_IT_IS = _Words(lambda _, event, name: getattr(event, name), lambda _, __, value: value)

# -- requests, copies, nodes ---------------------------------------------------------------------------------


def _tell_request(by: Naming, event: Any, name: str) -> Any:
    number = getattr(event, name)
    return by.names.requests.names.get(number, number)


def _untell_request(by: Naming, told: NamedEvent, value: Any) -> int:
    """Who is admitted gets the next free row."""
    if told.kind is not e.Admitted or value in by.names.requests.numbers:
        return _number(by.names.requests, value)
    rows = by.state.rows
    if not rows.free:
        raise Unplayable("all rows have a request")
    return by.state.next_request * (rows.mask + 1) + rows.free[-1]


def _tell_requests(by: Naming, event: Any, name: str) -> tuple[Any, ...]:
    known = by.names.requests.names
    return tuple(known.get(each, each) for each in np.frombuffer(getattr(event, name), "<i8").tolist())


def _untell_requests(by: Naming, _: NamedEvent, value: Any) -> bytes:
    return _packed([_number(by.names.requests, each) for each in value], "<i8")


def _tell_rid(by: Naming, event: Any, _: str) -> str:
    if not isinstance(event, e.Admitted):
        return ""
    return by.texts.rid(event.rid, by.names.requests.names.get(event.request, ""))


def _tell_copy(by: Naming, event: Any, name: str) -> Any:
    number = getattr(event, name)
    return by.names.copies.names.get(number, number)


def _untell_copy(by: Naming, _: NamedEvent, value: Any) -> int:
    new = isinstance(value, str) and not by.names.copies.numbers.knows(value)
    return by.state.next_transfer if new else _number(by.names.copies, value)


def _tell_nodes(by: Naming, event: Any, name: str) -> tuple[Any, ...]:
    return tuple(
        by.nodes.path(by.state, each) for each in np.frombuffer(getattr(event, name), "<i8").tolist()
    )


def _untell_nodes(by: Naming, _: NamedEvent, value: Any) -> bytes:
    return _packed([by.nodes.number(by.state, each) for each in value], "<i8")


def _tell_boundary(by: Naming, event: Any, name: str) -> int:
    """A boundary mark is told by where it stands: how many pages down the path; 0 for none."""
    boundary, marked = getattr(event, name), getattr(event, "marked", 0)
    node = by.state.nodes.get(marked or event.node)
    while node is not None and boundary and not marked and node.boundary != boundary:
        node = node.parent
    return node.end if node is not None and boundary else 0


def _untell_boundary(by: Naming, told: NamedEvent, depth: Any) -> int:
    """The mark that stands so deep in the path of the event, or the next one that is made."""
    fields = dict(told.fields)
    if not depth or fields.get("marked"):
        return by.state.next_boundary if depth else 0
    node = by.state.nodes.get(by.nodes.number(by.state, fields["node"]))
    while node is not None and (node.end > depth or not node.boundary):
        node = node.parent
    return node.boundary if node is not None else by.state.next_boundary


# -- pages and accounts --------------------------------------------------------------------------------------


def _tell_pages(by: Naming, event: Any, name: str) -> tuple[Any, ...]:
    value = getattr(event, name)
    pool = _pool(by, type(event), name, getattr(event, "pool", Pool.FULL))
    names = by.shelves[pool].names
    numbers: list[int] = np.frombuffer(value, "<i4").tolist()
    free = free_places(books(by.state)[pool], value) if name in _TAKEN.get(type(event), ()) else {}
    if not free:
        return tuple(names.get(each, each) for each in numbers)
    return tuple((FREE, free[each]) if each in free else _held(by, pool, each) for each in numbers)


def _untells_pages(name: str) -> Callable[[Naming, NamedEvent, Any], bytes]:
    def untell(by: Naming, told: NamedEvent, value: Any) -> bytes:
        pool = _pool(by, told.kind, name, dict(told.fields).get("pool", Pool.FULL))
        return _packed([_page(by, pool, each) for each in value], "<i4")

    return untell


def _pool(by: Naming, kind: type, name: str, told: int) -> Pool:
    """The pool of a column of pages; `told` is what an event says whose pages may be of any."""
    pool = pool_of(kind, name)
    if pool is None:
        return Pool(told) if told in by.shelves else Pool.FULL
    return pool


def pool_of(kind: type, name: str) -> Pool | None:
    """The pool of a column of pages, by the type of its event; None where the event says which."""
    if name == "pages":
        return None
    return Pool.RECURRENT if kind in _OF_STATES else _POOLS.get(name, Pool.FULL)


def _held(by: Naming, pool: Pool, number: int) -> tuple[str, Any]:
    """A page that is handed out although it is not free: the kind of account that it is in, and its name."""
    accounts = books(by.state)[pool].account
    kind = describe(int(accounts[number])).partition("(")[0] if 0 <= number < len(accounts) else "nowhere"
    return kind, by.shelves[pool].names.get(number, number)


def _page(by: Naming, pool: Pool, told: Any) -> int:
    if not isinstance(told, tuple):
        return _number(by.shelves[pool], told)
    kind, said = told
    if kind != FREE:
        number = _number(by.shelves[pool], said)
        if _held(by, pool, number)[0] != kind:
            raise Unplayable(f"{pool.name} page {said!r} is in another kind of account here")
        return number
    free = np.frombuffer(bytes(books(by.state)[pool].free), "<i4")
    if said >= free.size:
        raise Unplayable(f"{pool.name} has {free.size} free pages here, and no more")
    return int(free[said])


def _tell_account(by: Naming, event: Any, name: str) -> Any:
    code = getattr(event, name)
    kind, holder = code & 7, code >> 3
    if kind == Kind.REQUEST and holder:
        return kind, by.names.requests.names.get(holder, holder)
    if kind == Kind.TREE:
        return kind, by.nodes.path(by.state, holder)
    return (kind, by.names.copies.names.get(holder, holder)) if kind == Kind.IN_FLIGHT else code


def _untell_account(by: Naming, _: NamedEvent, value: Any) -> int:
    if not isinstance(value, tuple):
        return int(value)
    kind, holder = value
    if kind == Kind.TREE:
        number = by.nodes.number(by.state, holder)
    else:
        number = _number(by.names.requests if kind == Kind.REQUEST else by.names.copies, holder)
    return number << 3 | int(kind)


def _number(shelf: Shelf, told: Any) -> int:
    return shelf.numbers[told] if isinstance(told, str) else int(told)


def _packed(numbers: Iterable[int], code: str) -> bytes:
    return np.array([*numbers], code).tobytes()


_NODE = _Words(
    lambda by, event, name: by.nodes.path(by.state, getattr(event, name)),
    lambda by, _, value: by.nodes.number(by.state, value),
)
_WORDS: dict[str, _Words] = {
    **{name: _Words(lambda _, __, name: _UNTOLD[name], _AS_IT_IS.untell) for name in _UNTOLD},
    **{name: _Words(_tell_pages, _untells_pages(name)) for name in PAGES},
    **dict.fromkeys(NODES, _NODE),
    **dict.fromkeys(ACCOUNTS, _Words(_tell_account, _untell_account)),
    **dict.fromkeys(("requests", "takers"), _Words(_tell_requests, _untell_requests)),
    "request": _Words(_tell_request, _untell_request),
    "skipped": _Words(_tell_nodes, _untell_nodes),
    "boundary": _Words(_tell_boundary, _untell_boundary),
    "transfer": _Words(_tell_copy, _untell_copy),
    "rid": _Words(_tell_rid, _AS_IT_IS.untell),
    "key": _Words(lambda by, event, _: by.texts.spelled(event.key), lambda by, _, value: by.texts.key(value)),
    "namespace": _Words(
        lambda by, event, _: by.texts.space(event.namespace), lambda _, __, value: value.encode()
    ),
}
"""The fields that are told otherwise than as they are."""
