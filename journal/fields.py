"""What the fields of events name, read off their types: nodes, and pages of which pool.

Not here: what an event moves (`moves`). Rule: a column of pages that is of another pool than FULL has to be called so, or
stand in an event of states, which are all of RECURRENT.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final, get_args

from msgspec.structs import fields

from radixledger.journal import events as e
from radixledger.journal.accounts import Pool
from radixledger.journal.events import AnyEvent
from radixledger.journal.units import NodeId, Pages

_OF_STATES = (e.StateTaken, e.StateCopied, e.StateTracked, e.StateReplaced, e.StateDonated, e.StateFreed)
_OF_ANY_POOL = (e.Refused, e.Violated)
_POOL_BY_NAME = {"swa": Pool.SWA, "host": Pool.HOST, "recurrent": Pool.RECURRENT}


def _pool_of(kind: type, name: str) -> Pool | None:
    if kind in _OF_ANY_POOL:
        return None
    return Pool.RECURRENT if kind in _OF_STATES else _POOL_BY_NAME.get(name, Pool.FULL)


PAGES_IN: Final[dict[type, dict[str, Pool | None]]] = {
    kind: {field.name: _pool_of(kind, field.name) for field in fields(kind) if field.type is Pages}
    for kind in get_args(AnyEvent)
}
"""By type of event: its columns of pages, each with its pool; None where the event itself says which (`pool`)."""

PAGE_COLUMNS: Final[dict[type, tuple[Callable[[Any], bytes], ...]]] = {
    kind: tuple(map(attrgetter, columns))
    for kind, columns in PAGES_IN.items()
    if columns and kind not in _OF_ANY_POOL
}
"""By type of event: how its columns of pages are read. What was refused or not done did not happen to a page."""

PAGE_FIELDS: Final = frozenset(name for columns in PAGES_IN.values() for name in columns)
"""The names of all such columns."""

NODES_IN: Final[dict[type, tuple[str, ...]]] = {
    kind: tuple(field.name for field in fields(kind) if field.type is NodeId) for kind in get_args(AnyEvent)
}
"""By type of event: the fields that name a node."""
