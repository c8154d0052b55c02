"""Page moves and mapping changes as rows: what `journal.moves` says event by event, for whole batches.

The two are held against each other by a test. One function per event type that moves pages; each
gives rows column by column, which are put end to end. In a row `place` is the place of the page among the
event's pages of that pool, and `partner` the page of the other pool that the event names beside it.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np

from radixledger.analytics.batch import NONE, Array, Batch, Columns, Group, Packed
from radixledger.analytics.tables import ARRAYS
from radixledger.journal.accounts import FREE, PENDING, Kind, Pool, request_account
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


class Lots(NamedTuple):
    """Pages that belong together, one lot after the other: `at` is the place of a lot's event in the batch.

    `after` is how many pages of that pool the event has named in earlier lots.
    """

    at: Array
    counts: Array
    after: Array


class Moved(NamedTuple):
    """Lots of pages that moved: giver and taker are one account code a lot, pages and partners one a page."""

    pool: Pool
    lots: Lots
    giver: Array
    taker: Array
    page: Array
    partner: Array


class Mapped(NamedTuple):
    """Lots of FULL pages that are mapped to `swa` from now on, or to nothing where that is NONE."""

    lots: Lots
    full: Array
    swa: Array


Rows: TypeAlias = Iterator[Moved | Mapped]
Account: TypeAlias = Array | int


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


def _of_request(request: Array) -> Array:
    """The account codes of requests."""
    return request << 3 | Kind.REQUEST


def _of_node(node: Array) -> Array:
    """The account codes of tree nodes."""
    return node << 3 | Kind.TREE


def _beside(mine: Packed, other: Packed) -> Array:
    """For each page of `mine` the page of `other` that it is mapped with: the last ones of both go together."""
    if np.array_equal(mine.counts, other.counts):
        return other.values
    place = mine.places() + mine.spread(other.counts - mine.counts)
    beside = np.full(len(mine.values), NONE, np.int32)
    paired = place >= 0
    firsts = mine.spread(np.cumsum(other.counts) - other.counts)
    beside[paired] = other.values[(firsts + place)[paired]]
    return beside


def _moved(
    group: Group, pool: Pool, pages: Packed, giver: Account, taker: Account, partner: Array | None = None
) -> Moved:
    """One lot an event."""
    return Moved(
        pool=pool,
        lots=_lot_each(group, pages),
        giver=_each(group, giver),
        taker=_each(group, taker),
        page=pages.values,
        partner=_nothing(pages) if partner is None else partner,
    )


def _lot_each(group: Group, pages: Packed, after: Array | None = None) -> Lots:
    return Lots(group.at, pages.counts, np.zeros_like(pages.counts) if after is None else after)


def _each(group: Group, account: Account) -> Array:
    return np.full(len(group.at), account, np.int64) if isinstance(account, int) else account


def _nothing(pages: Packed) -> Array:
    return np.full(len(pages.values), NONE, np.int32)


def _both(group: Group, full: Packed, swa: Packed, giver: Account, taker: Account) -> Rows:
    yield _moved(group, Pool.FULL, full, giver, taker, _beside(full, swa))
    yield _moved(group, Pool.SWA, swa, giver, taker, _beside(swa, full))


def _set(group: Group, full: Packed, swa: Packed, after: Array | None = None) -> Mapped:
    """The FULL pages are mapped to `swa`; more SWA than FULL pages is no mapping anybody can read."""
    group.demand(swa.counts <= full.counts, "it has more SWA pages than FULL pages to map to them")
    return Mapped(_lot_each(group, swa, after), _beside(swa, full), swa.values)


def _cleared(group: Group, full: Packed) -> Mapped:
    return Mapped(_lot_each(group, full), full.values, _nothing(full))


def _allocated(group: Group) -> Rows:
    full, swa = group.packed("full"), group.packed("swa")
    yield from _both(group, full, swa, FREE, _of_request(group.ints("request")))
    yield _set(group, full, swa)


def _extended(group: Group) -> Rows:
    full, swa = group.packed("full"), group.packed("swa")
    takers, counts = group.packed("takers", width=8), group.packed("counts")
    group.demand(takers.counts == counts.counts, "takers and counts differ in length")
    group.demand(counts.sums() == full.counts, "the counts do not add up to its FULL pages")
    group.demand((full.counts == swa.counts) | (swa.counts == 0), "SWA pages, not as many as FULL ones")
    group.demand(_all_positive(counts), "a count is negative")
    lots = Lots(takers.spread(group.at), counts.values.astype(np.int64), _taken_before(counts))
    giver, taker = np.full(len(takers.values), FREE, np.int64), _of_request(takers.values)
    yield Moved(Pool.FULL, lots, giver, taker, full.values, _beside(full, swa))
    lots = lots._replace(counts=lots.counts * takers.spread(swa.counts > 0))
    yield Moved(Pool.SWA, lots, giver, taker, swa.values, _beside(swa, full))
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
    unbound, request = request_account(UNBOUND), _of_request(group.ints("request"))
    return _both(group, group.packed("full"), group.packed("swa"), unbound, request)


def _transferred(group: Group) -> Rows:
    giver, node = group.ints("giver"), _of_node(group.ints("node"))
    return _both(group, group.packed("full"), group.packed("swa"), giver, node)


def _split(group: Group) -> Rows:
    node, upper = _of_node(group.ints("node")), _of_node(group.ints("upper"))
    return _both(group, group.packed("full"), group.packed("swa"), node, upper)


def _tombstoned(group: Group) -> Rows:
    return _window_given_up(group, _of_node(group.ints("node")))


def _reclaimed(group: Group) -> Rows:
    return _window_given_up(group, _of_request(group.ints("request")))


def _window_given_up(group: Group, giver: Array) -> Rows:
    full, swa = group.packed("full"), group.packed("swa")
    yield _moved(group, Pool.SWA, swa, giver, group.ints("to"), _beside(swa, full))
    yield _cleared(group, full)


def _healed(group: Group) -> Rows:
    transfer = group.ints("mode") == HealMode.TRANSFER
    if transfer.any():
        yield from _healed_by_transfer(group.where(transfer))
    if not transfer.all():
        yield from _healed_by_replacement(group.where(~transfer))


def _healed_by_transfer(group: Group) -> Rows:
    fresh, old, swa = group.packed("fresh"), group.packed("old"), group.packed("swa")
    giver, node = group.ints("giver"), _of_node(group.ints("node"))
    yield _moved(group, Pool.SWA, swa, giver, node, _beside(swa, old))
    yield _moved(group, Pool.FULL, fresh, giver, group.ints("to"))
    yield _cleared(group, fresh)
    yield _set(group, old, swa, after=fresh.counts)


def _healed_by_replacement(group: Group) -> Rows:
    fresh, old, swa = group.packed("fresh"), group.packed("old"), group.packed("swa")
    giver, node = group.ints("giver"), _of_node(group.ints("node"))
    yield _moved(group, Pool.SWA, swa, giver, node, _beside(swa, fresh))
    yield _moved(group, Pool.FULL, old, node, group.ints("to"))
    taken = _moved(group, Pool.FULL, fresh, giver, node, _beside(fresh, swa))
    yield taken._replace(lots=_lot_each(group, fresh, after=old.counts))


def _freed(group: Group) -> Rows:
    full, swa, unmapped = group.packed("full"), group.packed("swa"), group.packed("unmapped")
    giver, to = group.ints("giver"), group.ints("to")
    yield _moved(group, Pool.FULL, full, giver, to)
    yield _moved(group, Pool.SWA, swa, giver, to, _beside(swa, unmapped))
    yield _cleared(group, unmapped)


def _group_flushed(group: Group) -> Rows:
    yield _moved(group, Pool.FULL, group.packed("full"), PENDING, FREE)
    yield _moved(group, Pool.SWA, group.packed("swa"), PENDING, FREE)


def _removed(group: Group) -> Rows:
    full, swa = group.packed("full"), group.packed("swa")
    yield from _both(group, full, swa, _of_node(group.ints("node")), group.ints("to"))
    yield _cleared(group, Packed(full.values[full.spread(swa.counts > 0)], full.counts * (swa.counts > 0)))


def _remapped(group: Group) -> Rows:
    source, target, swa = group.packed("source"), group.packed("target"), group.packed("swa")
    yield _moved(group, Pool.SWA, swa, group.ints("giver"), group.ints("taker"), _beside(swa, target))
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
}
