"""Page moves of the host tier as rows: copies begun and ended, FULL tombstones made and filled again.

Part of `page_rows`, with its columns: the partner of a HOST page is the FULL page that it mirrors, where the event says.
"""

from collections.abc import Callable

import numpy as np

from radixledger.analytics.batch import Group
from radixledger.analytics.page_lots import Rows, beside, lots_of, of_node, of_transfer
from radixledger.journal.accounts import FREE, Pool
from radixledger.journal.events import (
    Adopted,
    BackupBegun,
    BackupEnded,
    Demoted,
    Event,
    HostDropped,
    LoadBegun,
    LoadEnded,
)


def _backup_begun(group: Group) -> Rows:
    host, full = group.packed("host"), group.packed("full")
    yield lots_of(group, Pool.HOST, host, FREE, of_transfer(group.ints("transfer")), beside(host, full))


def _transfer_ended(pool: Pool, column: str) -> Callable[[Group], Rows]:
    """A part of a copy under way ended: in its node, or where pages are given back to."""

    def read(group: Group) -> Rows:
        back = group.ints("to") if "to" in group.kind.__struct_fields__ else np.full(len(group.at), FREE)
        taker = np.where(group.ints("landed") != 0, of_node(group.ints("node")), back)
        yield lots_of(group, pool, group.packed(column), of_transfer(group.ints("transfer")), taker)

    return read


def _demoted(group: Group) -> Rows:
    full, host = group.packed("full"), group.packed("host")
    yield lots_of(group, Pool.FULL, full, of_node(group.ints("node")), group.ints("to"), beside(full, host))


def _adopted(group: Group) -> Rows:
    full, host = group.packed("full"), group.packed("host")
    yield lots_of(
        group, Pool.FULL, full, group.ints("giver"), of_node(group.ints("node")), beside(full, host)
    )


def _load_begun(group: Group) -> Rows:
    full, host = group.packed("full"), group.packed("host")
    yield lots_of(group, Pool.FULL, full, FREE, of_transfer(group.ints("transfer")), beside(full, host))


def _host_dropped(group: Group) -> Rows:
    yield lots_of(group, Pool.HOST, group.packed("host"), of_node(group.ints("node")), FREE)


READERS: dict[type[Event], Callable[[Group], Rows]] = {
    BackupBegun: _backup_begun,
    BackupEnded: _transfer_ended(Pool.HOST, "host"),
    Demoted: _demoted,
    Adopted: _adopted,
    LoadBegun: _load_begun,
    LoadEnded: _transfer_ended(Pool.FULL, "full"),
    HostDropped: _host_dropped,
}
