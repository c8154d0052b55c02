"""What events are about: pages, nodes, requests, copies, device steps, free groups; and which of them an event touches.

It needs no state: an event names what it touches. Rule: a look for what is not wanted costs next to nothing, because a
slice of causes looks at many events to keep a few.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, get_args

from msgspec import Struct
from msgspec.structs import fields

from radixledger.journal.accounts import FREE, Kind, Pool, describe, holder_of
from radixledger.journal.events import (
    Admitted,
    AnyEvent,
    BackupBegun,
    Extended,
    GroupFlushed,
    GroupOpened,
    LoadBegun,
    Phase,
    Split,
    Stepped,
    Transferred,
)
from radixledger.journal.fields import PAGE_COLUMNS
from radixledger.journal.moves import Mapping as MappingChange
from radixledger.journal.moves import ids_of, mappings, pages_of, whole_moves
from radixledger.journal.units import NodeId, RequestId, TransferId

NODE, REQUEST, COPY, STEP, GROUP = "node", "request", "transfer", "step", "free group"
PAGES_SHOWN = 4


class Thing(NamedTuple):
    """A page (`kind` is the name of its pool), a node, a request, a copy under way, a device step, the free group (0)."""

    kind: str
    number: int

    @property
    def is_page(self) -> bool:
        """Whether it is a page of a pool."""
        return self.kind in Pool.__members__

    def __str__(self) -> str:
        if self.is_page:
            return pages_words(self.kind, [self.number])
        return f"{self.kind} {self.number}" if self.number else self.kind


def pages_words(pool: str, pages: Sequence[int], count: int = 0) -> str:
    """`FULL page 57`, `SWA pages 3, 4, 5, 6 and 12 more`, `RECURRENT slot 2`; count: how many, where `pages` are the first."""
    many = max(count, len(pages))
    shown = ", ".join(map(str, pages[:PAGES_SHOWN]))
    more = f" and {many - PAGES_SHOWN:,} more" if many > PAGES_SHOWN else ""
    unit = "slot" if pool == Pool.RECURRENT.name else "page"
    return f"{pool} {unit}{'s' if many > 1 else ''} {shown}{more}"


def account_words(account: int, rids: Mapping[int, str]) -> str:
    """An account as a person would name it, a request by its id too: `request 98 (trace-3)`, `node 3`, `free`."""
    kind, number = account & 7, holder_of(account)
    if kind == Kind.REQUEST and number:
        rid = rids.get(number, "")
        return f"request {number} ({rid})" if rid else f"request {number}"
    if kind == Kind.REQUEST:
        return "a caller without a request"
    return f"node {number}" if kind == Kind.TREE and number else describe(account)


class Touch(NamedTuple):
    """What one event did to one thing, in words; `begins`: the thing, or this life of it, begins here."""

    thing: Thing
    what: str
    begins: bool
    giver: int = -1
    taker: int = -1
    """The accounts that gave and took, where it is a page that moved."""

    @property
    def holders(self) -> list[Thing]:
        """Who gave and who took."""
        return [held for account in (self.giver, self.taker) if (held := holder(account))]


def holder(account: int) -> Thing | None:
    """The request, node or copy that an account is of; None for accounts without one, and for the unbound request."""
    kind = {Kind.REQUEST: REQUEST, Kind.TREE: NODE, Kind.IN_FLIGHT: COPY}.get(Kind(account & 7) if account & 7 < 6 else Kind.FREE)  # fmt: skip
    return Thing(kind, holder_of(account)) if kind and account > 0 and holder_of(account) else None


def named_by(event: AnyEvent) -> list[Thing]:
    """Nodes, requests and copies that an event names in fields of their own, or as giver or taker."""
    if isinstance(event, Extended):
        packed = event.takers or event.requests
        return [Thing(REQUEST, number) for number in ids_of(packed[: len(packed) & ~7]).tolist()]
    out = [Thing(kind, number) for kind, read in _FIELDS[type(event)] if (number := read(event))]
    for field in ("giver", "taker"):
        held = holder(getattr(event, field, FREE))
        if held is not None and held not in out:
            out.append(held)
    return out


def touches(event: AnyEvent, wanted: Mapping[Thing, object], needles: Collection[bytes]) -> list[Touch]:
    """What an event does to the things that are `wanted`; `needles` has the pages among them, packed."""
    out: list[Touch] = []
    columns = PAGE_COLUMNS.get(type(event))
    if columns and needles:
        packed = b"".join(column(event) for column in columns)
        if any(needle in packed for needle in needles):
            out += _page_touches(event, wanted)
    held = {each for touch in out for each in touch.holders}
    for kind, read in _FIELDS[type(event)]:
        number = read(event)
        if number and (thing := Thing(kind, number)) in wanted and all(each.thing != thing for each in out):
            out.append(Touch(thing, "" if thing in held else f"{thing}", _begins(event, thing)))
    if isinstance(event, Stepped) and (thing := Thing(STEP, event.step)) in wanted:
        out.append(Touch(thing, str(thing), event.phase == Phase.BEGAN))
    elif isinstance(event, GroupOpened | GroupFlushed) and (thing := Thing(GROUP, 0)) in wanted:
        out.append(Touch(thing, "the free group", isinstance(event, GroupOpened)))
    return out


def needle(thing: Thing) -> bytes:
    """A page as it stands in a packed column."""
    return thing.number.to_bytes(4, "little", signed=True)


def _page_touches(event: AnyEvent, wanted: Mapping[Thing, object]) -> Iterator[Touch]:
    moved = set()
    for move in whole_moves(event):
        name = move.pool.name
        for page in pages_of(move.pages).tolist():
            thing = Thing(name, page)
            if thing in wanted:
                moved.add(thing)
                what = f"{thing}: {describe(move.giver)} → {describe(move.taker)}"
                yield Touch(thing, what, move.giver == FREE, move.giver, move.taker)
    for change in mappings(event):
        yield from _mapping_touches(change, wanted, moved)


def _mapping_touches(
    change: MappingChange, wanted: Mapping[Thing, object], moved: set[Thing]
) -> Iterator[Touch]:
    full, swa = (pages_of(each[: len(each) & ~3]).tolist() for each in (change.full, change.swa))
    for at, page in enumerate(full):
        thing = Thing(Pool.FULL.name, page)
        if thing in wanted and thing not in moved:
            to = f"mapped to SWA page {swa[at]}" if at < len(swa) else "loses its mapping"
            yield Touch(thing, f"{thing} {to}", begins=False)


def _begins(event: AnyEvent, thing: Thing) -> bool:
    match event:
        case Admitted():
            return thing == Thing(REQUEST, event.request)
        case Transferred():
            return thing == Thing(NODE, event.node)
        case Split():
            return thing == Thing(NODE, event.upper)
        case BackupBegun() | LoadBegun():
            return thing == Thing(COPY, event.transfer)
        case _:
            return False


def _read(kind: type[Struct], unit: object) -> list[Callable[[Any], Any]]:
    return [attrgetter(field.name) for field in fields(kind) if field.type is unit]


_UNITS = ((NODE, NodeId), (REQUEST, RequestId), (COPY, TransferId))

_FIELDS: dict[type, list[tuple[str, Callable[[Any], int]]]] = {
    kind: [(name, read) for name, unit in _UNITS for read in _read(kind, unit)] for kind in get_args(AnyEvent)
}
"""By event: its fields that name a node, a request or a copy."""
