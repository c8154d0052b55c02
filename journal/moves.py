"""What an event moves: pages from one account to another, and mapping that is set or cleared.

This is the one reading of the page columns of events; the ledger's conservation law, `blame`,
the SQL tables and the tests all use it. It needs no state: events say it all. Rule: the deltas
of one event sum to zero in each pool (J6), because every page listed leaves one account and
enters another.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from radixledger.journal.accounts import FREE, PENDING, Pool, request_account, transfer_account, tree_account
from radixledger.journal.events import (
    Adopted,
    Allocated,
    AnyEvent,
    BackupBegun,
    BackupEnded,
    Bound,
    Demoted,
    Extended,
    Freed,
    GroupFlushed,
    Healed,
    HealMode,
    HostDropped,
    LoadBegun,
    LoadEnded,
    Reclaimed,
    Remapped,
    Removed,
    Split,
    StateDonated,
    StateFreed,
    StateReplaced,
    StateTaken,
    Tombstoned,
    Transferred,
)
from radixledger.journal.units import NO_PAGES, UNBOUND, Pages, RequestId


class Move(NamedTuple):
    """`pages` of `pool` left account `giver` and entered account `taker`."""

    pool: Pool
    pages: Pages
    giver: int
    taker: int


class Mapping(NamedTuple):
    """FULL page i is mapped to SWA page i from now on, or to nothing where `swa` is empty."""

    full: Pages
    swa: Pages


_PAGES, _IDS = np.dtype("<i4"), np.dtype("<i8")
"""Made once: numpy takes longer to read a type's name than to make the view."""


def pages_of(packed: bytes) -> NDArray[np.int32]:
    """Packed page ids as an int32 array of shape [len/4], a view that cannot be written."""
    return np.frombuffer(packed, _PAGES)


def ids_of(packed: bytes) -> NDArray[np.int64]:
    """Packed request or node ids as an int64 array of shape [len/8], a view that cannot be written."""
    return np.frombuffer(packed, _IDS)


def takings(event: Extended, *, strict: bool = True) -> Iterator[tuple[RequestId, Pages, Pages]]:
    """Each taker of a step with the FULL and SWA pages that it took.

    Where columns are not of one length, those that stand in both are told, and then a ValueError is raised if `strict`.
    """
    at = 0
    for taker, count in zip(ids_of(event.takers).tolist(), pages_of(event.counts).tolist(), strict=strict):
        end = at + 4 * count
        # Naming the types would double the cost, and decoding comes this way.
        yield taker, event.full[at:end], event.swa[at:end]  # type: ignore[misc]
        at = end


def moves(event: AnyEvent) -> list[Move]:
    """The page moves of one event in the order in which they happen; empty for most events."""
    read = _MOVES.get(type(event))
    return [] if read is None else [move for move in read(event) if move.pages]


def mappings(event: AnyEvent) -> list[Mapping]:
    """The changes to the FULL→SWA mapping that one event makes, in order."""
    read = _MAPPINGS.get(type(event))
    return [] if read is None else [change for change in read(event) if change.full]


def whole_moves(event: AnyEvent) -> list[Move]:
    """As `moves`, of an event that anybody may have written: without those whose column is no column of page ids."""
    try:
        return [move for move in moves(event) if len(move.pages) % 4 == 0]
    except ValueError:
        return []


def whole_mappings(event: AnyEvent) -> list[Mapping]:
    """As `mappings`, of an event that anybody may have written: without those whose columns are not pairs of page ids."""
    try:
        return [
            each
            for each in mappings(event)
            if len(each.full) % 4 == 0 and len(each.swa) in (0, len(each.full))
        ]
    except ValueError:
        return []


def _both(full: Pages, swa: Pages, giver: int, taker: int) -> list[Move]:
    return [Move(Pool.FULL, full, giver, taker), Move(Pool.SWA, swa, giver, taker)]


def _allocated(event: Allocated) -> list[Move]:
    return _both(event.full, event.swa, FREE, request_account(event.request))


def _extended(event: Extended) -> list[Move]:
    return [
        move
        for taker, full, swa in takings(event, strict=False)
        for move in _both(full, swa, FREE, request_account(taker))
    ]


def _bound(event: Bound) -> list[Move]:
    return _both(event.full, event.swa, request_account(UNBOUND), request_account(event.request))


def _transferred(event: Transferred) -> list[Move]:
    return _both(event.full, event.swa, event.giver, tree_account(event.node))


def _split(event: Split) -> list[Move]:
    given, taken = tree_account(event.node), tree_account(event.upper)
    host = [] if event.transfer else [Move(Pool.HOST, event.host, given, taken)]
    return _both(event.full, event.swa, given, taken) + host


def _tombstoned(event: Tombstoned) -> list[Move]:
    return [Move(Pool.SWA, event.swa, tree_account(event.node), event.to)]


def _healed(event: Healed) -> list[Move]:
    node = tree_account(event.node)
    swa = Move(Pool.SWA, event.swa, event.giver, node)
    if event.mode == HealMode.TRANSFER:
        return [swa, Move(Pool.FULL, event.fresh, event.giver, event.to)]
    return [
        swa,
        Move(Pool.FULL, event.old, node, event.to),
        Move(Pool.FULL, event.fresh, event.giver, node),
    ]


def _reclaimed(event: Reclaimed) -> list[Move]:
    return [Move(Pool.SWA, event.swa, request_account(event.request), event.to)]


def _freed(event: Freed) -> list[Move]:
    return _both(event.full, event.swa, event.giver, event.to)


def _group_flushed(event: GroupFlushed) -> list[Move]:
    return _both(event.full, event.swa, PENDING, FREE)


def _removed(event: Removed) -> list[Move]:
    node = tree_account(event.node)
    return [
        *_both(event.full, event.swa, node, event.to),
        Move(Pool.RECURRENT, event.recurrent, node, event.to),
    ]


def _remapped(event: Remapped) -> list[Move]:
    return [Move(Pool.SWA, event.swa, event.giver, event.taker)]


def _backup_begun(event: BackupBegun) -> list[Move]:
    return [Move(Pool.HOST, event.host, FREE, transfer_account(event.transfer))]


def _backup_ended(event: BackupEnded) -> list[Move]:
    taker = tree_account(event.node) if event.landed else FREE
    return [Move(Pool.HOST, event.host, transfer_account(event.transfer), taker)]


def _demoted(event: Demoted) -> list[Move]:
    return [Move(Pool.FULL, event.full, tree_account(event.node), event.to)]


def _adopted(event: Adopted) -> list[Move]:
    return [Move(Pool.FULL, event.full, event.giver, tree_account(event.node))]


def _load_begun(event: LoadBegun) -> list[Move]:
    return [Move(Pool.FULL, event.full, FREE, transfer_account(event.transfer))]


def _load_ended(event: LoadEnded) -> list[Move]:
    taker = tree_account(event.node) if event.landed else event.to
    return [Move(Pool.FULL, event.full, transfer_account(event.transfer), taker)]


def _host_dropped(event: HostDropped) -> list[Move]:
    return [Move(Pool.HOST, event.host, tree_account(event.node), FREE)]


def _state_taken(event: StateTaken) -> list[Move]:
    return [Move(Pool.RECURRENT, event.slots, FREE, request_account(event.request))]


def _state_replaced(event: StateReplaced) -> list[Move]:
    return [Move(Pool.RECURRENT, event.fresh, FREE, request_account(event.request))]


def _state_donated(event: StateDonated) -> list[Move]:
    return [Move(Pool.RECURRENT, event.slot, event.giver, tree_account(event.node))]


def _state_freed(event: StateFreed) -> list[Move]:
    return [Move(Pool.RECURRENT, event.slots, event.giver, FREE)]


_MOVES: dict[type, Callable[[Any], list[Move]]] = {
    Allocated: _allocated,
    Extended: _extended,
    Bound: _bound,
    Transferred: _transferred,
    Split: _split,
    Tombstoned: _tombstoned,
    Healed: _healed,
    Reclaimed: _reclaimed,
    Freed: _freed,
    GroupFlushed: _group_flushed,
    Removed: _removed,
    Remapped: _remapped,
    BackupBegun: _backup_begun,
    BackupEnded: _backup_ended,
    Demoted: _demoted,
    Adopted: _adopted,
    LoadBegun: _load_begun,
    LoadEnded: _load_ended,
    HostDropped: _host_dropped,
    StateTaken: _state_taken,
    StateReplaced: _state_replaced,
    StateDonated: _state_donated,
    StateFreed: _state_freed,
}


def _set_last(full: Pages, swa: Pages) -> list[Mapping]:
    return [Mapping(Pages(full[len(full) - len(swa) :]), swa)]


def _heal_mapping(event: Healed) -> list[Mapping]:
    if event.mode == HealMode.TRANSFER:
        return [Mapping(event.fresh, NO_PAGES), Mapping(event.old, event.swa)]
    return []


_MAPPINGS: dict[type, Callable[[Any], list[Mapping]]] = {
    Allocated: lambda event: _set_last(event.full, event.swa),
    Extended: lambda event: _set_last(event.full, event.swa),
    Tombstoned: lambda event: [Mapping(event.full, NO_PAGES)],
    Healed: _heal_mapping,
    Reclaimed: lambda event: [Mapping(event.full, NO_PAGES)],
    Freed: lambda event: [Mapping(event.unmapped, NO_PAGES)],
    Removed: lambda event: [Mapping(event.full, NO_PAGES)] if event.swa else [],
    Remapped: lambda event: [Mapping(event.source, NO_PAGES), Mapping(event.target, event.swa)],
}
