"""Page moves and mapping changes as rows: what `journal.moves` says event by event, for whole batches.

The two are held against each other by a test. One function per event type that moves pages; each
gives rows column by column, which are put end to end. In a row `place` is the place of the page among the
event's pages of that pool, and `partner` the page of the other pool that the event names beside it.
"""

from collections.abc import Callable

import numpy as np

from radixledger.analytics import host_rows, state_rows
from radixledger.analytics.batch import Array, Batch, Columns, Group, Packed
from radixledger.analytics.page_lots import (
    Account,
    Lots,
    Mapped,
    Moved,
    Rows,
    beside,
    lot_each,
    lots_of,
    no_partners,
    of_node,
    of_request,
)
from radixledger.analytics.tables import ARRAYS
from radixledger.journal.accounts import FREE, PENDING, Pool, request_account
from radixledger.journal.events import (
    Allocated,
    Bound,
    Event,
    Extended,
    Freed,
    GroupFlushed,
    Healed,
    HealMode,
    Reclaimed,
    Remapped,
    Removed,
    Split,
    Tombstoned,
    Transferred,
)
from radixledger.journal.units import UNBOUND


def page_columns(batch: Batch) -> dict[str, Columns]:
    """The arrays of the tables `pages` and `mappings`, where the batch has rows for them."""
    moved: list[Moved] = []
    mapped: list[Mapped] = []
    for kind, read in _READERS.items():
        group = batch.group(kind)
        for rows in read(group) if group else ():
            if isinstance(rows, Moved):
                moved.append(rows)
            else:
                mapped.append(rows)
    tables = {"pages": _pages(batch, moved), "mappings": _mappings(batch, mapped)}
    return {name: rows for name, rows in tables.items() if len(rows["seq"])}


def _pages(batch: Batch, moved: list[Moved]) -> Columns:
    lots = _end_to_end([rows.lots for rows in moved])
    pools = [np.full(len(rows.giver), rows.pool, np.uint8) for rows in moved]
    giver, taker = _joined([rows.giver for rows in moved]), _joined([rows.taker for rows in moved])
    of_lots = {
        "pool": np.concatenate([np.zeros(0, np.uint8), *pools]),
        "from_kind": (giver & 7).astype(np.uint8),
        "from_holder": giver >> 3,
        "to_kind": (taker & 7).astype(np.uint8),
        "to_holder": taker >> 3,
    }
    return _told_by_their_events(batch, "pages", lots, of_lots) | {
        "page": _joined([rows.page for rows in moved], np.int32),
        "partner": _joined([rows.partner for rows in moved], np.int32),
    }


def _mappings(batch: Batch, mapped: list[Mapped]) -> Columns:
    lots = _end_to_end([rows.lots for rows in mapped])
    return _told_by_their_events(batch, "mappings", lots, {}) | {
        "full_page": _joined([rows.full for rows in mapped], np.int32),
        "swa_page": _joined([rows.swa for rows in mapped], np.int32),
    }


def _told_by_their_events(batch: Batch, table: str, lots: Lots, of_lots: Columns) -> Columns:
    """One row a page: what its event has, what its lot has, and its place in the event."""
    of_events = {name: getattr(batch, name)[lots.at] for name in ARRAYS[table] if name in Batch._fields}
    rows = {name: np.repeat(array, lots.counts) for name, array in (of_events | of_lots).items()}
    begin = np.cumsum(lots.counts) - lots.counts - lots.after
    rows["place"] = (np.arange(int(lots.counts.sum())) - np.repeat(begin, lots.counts)).astype(np.int32)
    return rows


def _end_to_end(parts: list[Lots]) -> Lots:
    return Lots(*(_joined([getattr(part, name) for part in parts]) for name in Lots._fields))


def _joined(arrays: list[Array], dtype: type = np.int64) -> Array:
    """Arrays under each other; none of them are an empty one."""
    return np.concatenate([np.zeros(0, dtype), *arrays])


def _both(group: Group, full: Packed, swa: Packed, giver: Account, taker: Account) -> Rows:
    yield lots_of(group, Pool.FULL, full, giver, taker, beside(full, swa))
    yield lots_of(group, Pool.SWA, swa, giver, taker, beside(swa, full))


def _set(group: Group, full: Packed, swa: Packed, after: Array | None = None) -> Mapped:
    """The FULL pages are mapped to `swa`; more SWA than FULL pages is no mapping anybody can read."""
    group.demand(swa.counts <= full.counts, "it has more SWA pages than FULL pages to map to them")
    return Mapped(lot_each(group, swa, after), beside(swa, full), swa.values)


def _cleared(group: Group, full: Packed) -> Mapped:
    return Mapped(lot_each(group, full), full.values, no_partners(full))


def _allocated(group: Group) -> Rows:
    full, swa = group.packed("full"), group.packed("swa")
    yield from _both(group, full, swa, FREE, of_request(group.ints("request")))
    yield _set(group, full, swa)


def _extended(group: Group) -> Rows:
    full, swa = group.packed("full"), group.packed("swa")
    takers, counts = group.packed("takers", width=8), group.packed("counts")
    group.demand(takers.counts == counts.counts, "takers and counts differ in length")
    group.demand(counts.sums() == full.counts, "the counts do not add up to its FULL pages")
    group.demand((full.counts == swa.counts) | (swa.counts == 0), "SWA pages, not as many as FULL ones")
    group.demand(_all_positive(counts), "a count is negative")
    lots = Lots(takers.spread(group.at), counts.values.astype(np.int64), _taken_before(counts))
    giver, taker = np.full(len(takers.values), FREE, np.int64), of_request(takers.values)
    yield Moved(Pool.FULL, lots, giver, taker, full.values, beside(full, swa))
    lots = lots._replace(counts=lots.counts * takers.spread(swa.counts > 0))
    yield Moved(Pool.SWA, lots, giver, taker, swa.values, beside(swa, full))
    yield _set(group, full, swa)


def _taken_before(counts: Packed) -> Array:
    """For each taker of a step how many pages the takers before it took."""
    taken = np.cumsum(counts.values, dtype=np.int64) - counts.values
    firsts = np.cumsum(counts.counts) - counts.counts
    before: Array = taken - counts.spread(np.append(taken, 0)[firsts])
    return before


def _all_positive(counts: Packed) -> Array:
    negative = Packed((counts.values < 0).astype(np.int64), counts.counts)
    positive: Array = negative.sums() == 0
    return positive


def _bound(group: Group) -> Rows:
    unbound, request = request_account(UNBOUND), of_request(group.ints("request"))
    return _both(group, group.packed("full"), group.packed("swa"), unbound, request)


def _transferred(group: Group) -> Rows:
    giver, node = group.ints("giver"), of_node(group.ints("node"))
    return _both(group, group.packed("full"), group.packed("swa"), giver, node)


def _split(group: Group) -> Rows:
    node, upper = of_node(group.ints("node")), of_node(group.ints("upper"))
    yield from _both(group, group.packed("full"), group.packed("swa"), node, upper)
    landed = group.ints("transfer") == 0
    if (group.lengths("host")[landed] > 0).any():
        rest = group.where(landed)
        host, full = rest.packed("host"), rest.packed("full")
        yield lots_of(rest, Pool.HOST, host, node[landed], upper[landed], beside(host, full))


def _tombstoned(group: Group) -> Rows:
    return _window_given_up(group, of_node(group.ints("node")))


def _reclaimed(group: Group) -> Rows:
    return _window_given_up(group, of_request(group.ints("request")))


def _window_given_up(group: Group, giver: Array) -> Rows:
    full, swa = group.packed("full"), group.packed("swa")
    yield lots_of(group, Pool.SWA, swa, giver, group.ints("to"), beside(swa, full))
    yield _cleared(group, full)


def _healed(group: Group) -> Rows:
    transfer = group.ints("mode") == HealMode.TRANSFER
    if transfer.any():
        yield from _healed_by_transfer(group.where(transfer))
    if not transfer.all():
        yield from _healed_by_replacement(group.where(~transfer))


def _healed_by_transfer(group: Group) -> Rows:
    fresh, old, swa = group.packed("fresh"), group.packed("old"), group.packed("swa")
    giver, node = group.ints("giver"), of_node(group.ints("node"))
    yield lots_of(group, Pool.SWA, swa, giver, node, beside(swa, old))
    yield lots_of(group, Pool.FULL, fresh, giver, group.ints("to"))
    yield _cleared(group, fresh)
    yield _set(group, old, swa, after=fresh.counts)


def _healed_by_replacement(group: Group) -> Rows:
    fresh, old, swa = group.packed("fresh"), group.packed("old"), group.packed("swa")
    giver, node = group.ints("giver"), of_node(group.ints("node"))
    yield lots_of(group, Pool.SWA, swa, giver, node, beside(swa, fresh))
    yield lots_of(group, Pool.FULL, old, node, group.ints("to"))
    taken = lots_of(group, Pool.FULL, fresh, giver, node, beside(fresh, swa))
    yield taken._replace(lots=lot_each(group, fresh, after=old.counts))


def _freed(group: Group) -> Rows:
    full, swa, unmapped = group.packed("full"), group.packed("swa"), group.packed("unmapped")
    giver, to = group.ints("giver"), group.ints("to")
    yield lots_of(group, Pool.FULL, full, giver, to)
    yield lots_of(group, Pool.SWA, swa, giver, to, beside(swa, unmapped))
    yield _cleared(group, unmapped)


def _group_flushed(group: Group) -> Rows:
    yield lots_of(group, Pool.FULL, group.packed("full"), PENDING, FREE)
    yield lots_of(group, Pool.SWA, group.packed("swa"), PENDING, FREE)


def _removed(group: Group) -> Rows:
    full, swa = group.packed("full"), group.packed("swa")
    yield from _both(group, full, swa, of_node(group.ints("node")), group.ints("to"))
    yield _cleared(group, Packed(full.values[full.spread(swa.counts > 0)], full.counts * (swa.counts > 0)))
    yield from state_rows.removed(group)


def _remapped(group: Group) -> Rows:
    source, target, swa = group.packed("source"), group.packed("target"), group.packed("swa")
    yield lots_of(group, Pool.SWA, swa, group.ints("giver"), group.ints("taker"), beside(swa, target))
    yield _cleared(group, source)
    yield _set(group, target, swa, after=source.counts)


_READERS: dict[type[Event], Callable[[Group], Rows]] = {
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
    **host_rows.READERS,
    **state_rows.READERS,
}
