"""Lots of pages: what the rows of the tables `pages` and `mappings` are put together from.

A lot is the pages that one event moves from one account to another, or maps. Rule: nothing here knows an event type.
"""

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np

from radixledger.analytics.batch import NONE, Array, Group, Packed
from radixledger.journal.accounts import Kind, Pool


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


def of_request(request: Array) -> Array:
    """The account codes of requests."""
    return request << 3 | Kind.REQUEST


def of_node(node: Array) -> Array:
    """The account codes of tree nodes."""
    return node << 3 | Kind.TREE


def of_transfer(transfer: Array) -> Array:
    """The account codes of copies under way."""
    return transfer << 3 | Kind.IN_FLIGHT


def beside(mine: Packed, other: Packed) -> Array:
    """For each page of `mine` the page of `other` that it is mapped with: the last ones of both go together."""
    if np.array_equal(mine.counts, other.counts):
        return other.values
    place = mine.places() + mine.spread(other.counts - mine.counts)
    beside = np.full(len(mine.values), NONE, np.int32)
    paired = place >= 0
    firsts = mine.spread(np.cumsum(other.counts) - other.counts)
    beside[paired] = other.values[(firsts + place)[paired]]
    return beside


def lots_of(
    group: Group, pool: Pool, pages: Packed, giver: Account, taker: Account, partner: Array | None = None
) -> Moved:
    """One lot an event."""
    return Moved(
        pool=pool,
        lots=lot_each(group, pages),
        giver=each_event(group, giver),
        taker=each_event(group, taker),
        page=pages.values,
        partner=no_partners(pages) if partner is None else partner,
    )


def lot_each(group: Group, pages: Packed, after: Array | None = None) -> Lots:
    """One lot an event; `after` as in `Lots`, none where it is not told."""
    return Lots(group.at, pages.counts, np.zeros_like(pages.counts) if after is None else after)


def each_event(group: Group, account: Account) -> Array:
    """The account of each event, where one is the account of all."""
    return np.full(len(group.at), account, np.int64) if isinstance(account, int) else account


def no_partners(pages: Packed) -> Array:
    """No partner for any page."""
    return np.full(len(pages.values), NONE, np.int32)
