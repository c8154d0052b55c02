"""Page moves and mapping changes as rows: what `journal.moves` says event by event, for whole batches.

The two are held against each other by a test. One function per event type that moves pages; each
gives rows column by column, which are put end to end. In a row `place` is the place of the page among the
event's pages of that pool, and `partner` the page of the other pool that the event names beside it.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np

from radixledger.analytics.batch import NONE, Array, Batch, Columns, Group, Packed
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


class Moved(NamedTuple):
    """Rows of `pages`: all arrays have one value a row but `pool`; giver and taker are account codes."""

    pool: Pool
    at: Array
    place: Array
    page: Array
    giver: Array
    taker: Array
    partner: Array


class Mapped(NamedTuple):
    """Rows of `mappings`: FULL page `full` is mapped to `swa` from now on, or to nothing where that is NONE."""

    at: Array
    place: Array
    full: Array
    swa: Array


Rows: TypeAlias = Iterator[Moved | Mapped]
Account: TypeAlias = Array | int


def page_columns(batch: Batch) -> dict[str, Columns]:
    """The rows of `pages` and `mappings`, each with `at`, the place of its event in the batch."""
    moved: list[Moved] = []
    mapped: list[Mapped] = []
    for kind, read in _READERS.items():
        group = batch.group(kind)
        for rows in read(group) if group else ():
            if isinstance(rows, Moved):
                moved.append(rows)
            else:
                mapped.append(rows)
    tables = {}
    if moved:
        tables["pages"] = _pages(moved)
    if mapped:
        tables["mappings"] = {
            "at": np.concatenate([rows.at for rows in mapped]),
            "place": np.concatenate([rows.place for rows in mapped]),
            "full_page": np.concatenate([rows.full for rows in mapped]),
            "swa_page": np.concatenate([rows.swa for rows in mapped]),
        }
    return tables


def _pages(moved: list[Moved]) -> Columns:
    giver = np.concatenate([rows.giver for rows in moved])
    taker = np.concatenate([rows.taker for rows in moved])
    return {
        "at": np.concatenate([rows.at for rows in moved]),
        "pool": np.concatenate([np.broadcast_to(np.uint8(rows.pool), rows.at.shape) for rows in moved]),
        "place": np.concatenate([rows.place for rows in moved]),
        "page": np.concatenate([rows.page for rows in moved]),
        "from_kind": (giver & 7).astype(np.uint8),
        "from_holder": giver >> 3,
        "to_kind": (taker & 7).astype(np.uint8),
        "to_holder": taker >> 3,
        "partner": np.concatenate([rows.partner for rows in moved]),
    }


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
    return Moved(
        pool=pool,
        at=pages.spread(group.at),
        place=pages.places(),
        page=pages.values,
        giver=_per_row(pages, giver),
        taker=_per_row(pages, taker),
        partner=_nothing(pages) if partner is None else partner,
    )


def _per_row(pages: Packed, account: Account) -> Array:
    if isinstance(account, int):
        return np.broadcast_to(np.int64(account), pages.values.shape)
    return pages.spread(account)


def _nothing(pages: Packed) -> Array:
    return np.broadcast_to(np.int32(NONE), pages.values.shape)


def _both(group: Group, full: Packed, swa: Packed, giver: Account, taker: Account) -> Rows:
    yield _moved(group, Pool.FULL, full, giver, taker, _beside(full, swa))
    yield _moved(group, Pool.SWA, swa, giver, taker, _beside(swa, full))


def _set(group: Group, full: Packed, swa: Packed, after: Array | int = 0) -> Mapped:
    """The FULL pages are mapped to `swa`; more SWA than FULL pages is no mapping anybody can read."""
    group.demand(swa.counts <= full.counts, "it has more SWA pages than FULL pages to map to them")
    return Mapped(swa.spread(group.at), swa.places() + after, _beside(swa, full), swa.values)


def _cleared(group: Group, full: Packed) -> Mapped:
    return Mapped(full.spread(group.at), full.places(), full.values, _nothing(full))


def _allocated(group: Group) -> Rows:
    full, swa = group.packed("full"), group.packed("swa")
    yield from _both(group, full, swa, FREE, _of_request(group.ints("request")))
    yield _set(group, full, swa)


def _extended(group: Group) -> Rows:
    full, swa = group.packed("full"), group.packed("swa")
    takers, counts = group.packed("takers", width=8), group.packed("counts")
    group.demand(takers.counts == counts.counts, "takers and counts differ in length")
    group.demand(counts.sums() == full.counts, "the counts do not add up to its FULL pages")
    group.demand(full.counts == swa.counts, "it has not as many SWA pages as FULL pages")
    group.demand(_all_positive(counts), "a count is negative")
    taker = _of_request(np.repeat(takers.values, counts.values))
    for pool, mine, other in ((Pool.FULL, full, swa), (Pool.SWA, swa, full)):
        yield _moved(group, pool, mine, FREE, FREE, other.values)._replace(taker=taker)
    yield _set(group, full, swa)


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
    yield _set(group, old, swa, after=swa.spread(fresh.counts).astype(np.int32))


def _healed_by_replacement(group: Group) -> Rows:
    fresh, old, swa = group.packed("fresh"), group.packed("old"), group.packed("swa")
    giver, node = group.ints("giver"), _of_node(group.ints("node"))
    yield _moved(group, Pool.SWA, swa, giver, node, _beside(swa, fresh))
    yield _moved(group, Pool.FULL, old, node, group.ints("to"))
    taken = _moved(group, Pool.FULL, fresh, giver, node, _beside(fresh, swa))
    yield taken._replace(place=taken.place + fresh.spread(old.counts).astype(np.int32))


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
    yield _set(group, target, swa, after=swa.spread(source.counts).astype(np.int32))


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
