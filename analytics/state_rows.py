"""Page moves of recurrent states as rows, like `page_rows`, which asks these readers too: a slot is a page of its pool."""

from collections.abc import Callable

import numpy as np

from radixledger.analytics.batch import Columns, Group
from radixledger.analytics.page_lots import Rows, lots_of, of_node, of_request
from radixledger.journal.accounts import FREE, Pool
from radixledger.journal.events import Event, StateDonated, StateFreed, StateReplaced, StateTaken


def _taken(group: Group) -> Rows:
    yield lots_of(group, Pool.RECURRENT, group.packed("slots"), FREE, of_request(group.ints("request")))


def _replaced(group: Group) -> Rows:
    yield lots_of(group, Pool.RECURRENT, group.packed("fresh"), FREE, of_request(group.ints("request")))


def _donated(group: Group) -> Rows:
    slot, giver = group.packed("slot"), group.ints("giver")
    yield lots_of(group, Pool.RECURRENT, slot, giver, of_node(group.ints("node")))


def _freed(group: Group) -> Rows:
    yield lots_of(group, Pool.RECURRENT, group.packed("slots"), group.ints("giver"), FREE)


def removed(group: Group) -> Rows:
    """The slots that went with leaves."""
    states = group.packed("recurrent")
    yield lots_of(group, Pool.RECURRENT, states, of_node(group.ints("node")), group.ints("to"))


def state_copies(group: Group) -> Columns:
    """One row an event: from which slot to which."""
    rows = {"at": group.at}
    for name in ("source", "target"):
        slots = group.packed(name)
        group.demand(slots.counts == 1, f"{name} is not one slot")
        rows[name] = slots.values
    return rows


def state_tracks(group: Group) -> Columns:
    """One row for each request that an event names."""
    requests, slots, ends = group.packed("requests", width=8), group.packed("slots"), group.packed("ends")
    same = (requests.counts == slots.counts) & (requests.counts == ends.counts)
    group.demand(same, "its columns differ in length")
    at = np.repeat(group.at, requests.counts)
    return {"at": at, "request": requests.values, "slot": slots.values, "end_token": ends.values}


READERS: dict[type[Event], Callable[[Group], Rows]] = {
    StateTaken: _taken,
    StateReplaced: _replaced,
    StateDonated: _donated,
    StateFreed: _freed,
}
