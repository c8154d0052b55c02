"""How commands of a request's life are read off what was decided, see `reads`.

What a request was cached under is what it asked for; how much of it a command gave the tree follows from what it freed
behind. Rule: pages are counted by the row before the command.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from radixledger.cache.window import pages_for
from radixledger.journal import events as e
from radixledger.journal.causes import Site
from radixledger.journal.moves import ids_of, pages_of
from radixledger.journal.units import UNBOUND
from radixledger.replay.reading.of_the_tree import last_node
from radixledger.replay.reading.parting import site_of
from radixledger.replay.reading.reads import Events, Reading, ReadingOf, Reads, one, request_of
from radixledger.replay.schedule import commands as c
from radixledger.replay.schedule.commands import AnyCommand


def admit(reader: Reads, events: Events) -> Reading:
    """Matched and admitted; or seated, by a server that matched before."""
    told, found = one(events, e.Admitted), one(events, e.Matched)
    gone = found is not None and one(events, e.Removed) is not None
    key = reader.asked(found, from_the_root=True) if gone and found is not None else ""
    yield
    if told is None:
        locked = one(events, e.Locked)
        return c.MakeRoom(reader.path(locked.node), reader.space_of(locked.node)) if locked else None
    name = reader.titles[0]
    rid, space = reader.rid(told.rid, name), reader.letters.space(told.namespace)
    rid = "" if rid == name else rid
    if found is not None:
        missed = found.stop == e.Stop.FORCED_MISS
        key = key or reader.asked(found, name)
        return c.Admit(name, key, told.prompt, space, rid, missed, told.priority)
    given = [event for event in events if isinstance(event, e.Unlocked) and event.request == UNBOUND]
    lock = reader.lock_of(given[0]) if given else ""
    row = told.request & reader.state.rows.mask
    return c.Seat(name, reader.path(told.node), told.prompt, row, lock, space, rid, told.priority)


def keep(reader: Reads, events: Events) -> Reading:
    """The path that the row names from then on is the key."""
    name = reader.names.request(request_of(events))
    yield
    told = one(events, e.Repointed)
    path = reader.path(told.node if told is not None else last_node(events))
    return c.Keep(name, reader.cached(name, path))


def finish(reader: Reads, events: Events) -> Reading:
    """All pages that were not freed as the tail were brought; what the tree did not take is told at the end."""
    state, number = reader.state, request_of(events)
    name, row = reader.names.request(number), state.row_of(number)
    held = pages_for(int(state.rows.length[row]), state.page_size)
    kept, units = int(state.rows.protected[row]) // state.page_size, state.key_length(row)
    tails = [event for event in events if isinstance(event, e.Freed) and site_of(event) == Site.TAIL]
    count = held - sum(len(event.full) // 4 for event in tails)
    rejected = any(site_of(event) == Site.REJECTED for event in events)
    brought = rejected or any(isinstance(event, e.StateDonated) for event in events)
    if count == kept and state.states_each and not brought:
        count = 0
    yield
    told = one(events, e.Finished)
    path = reader.path(told.node if told is not None else last_node(events))
    if told is not None and told.key:
        known = path[: told.cached // state.page_size] + reader.letters.spelled(told.key)
        return c.Finish(name, reader.cached(name, known))
    if one(events, e.Transferred) is not None:
        count = max(count, len(path))
    if not state.traits.tree or not max(kept, 0 if rejected else 1) <= count <= units // state.page_size:
        return c.Finish(name)
    return c.Finish(name, reader.padded(reader.cached(name, path[:count]), count))


def ends(kind: Callable[[str], AnyCommand]) -> ReadingOf:
    """A request ends, and nothing else has to be known."""

    def reading(reader: Reads, events: Events) -> Reading:
        name = reader.names.request(request_of(events))
        yield
        return kind(name)

    return reading


def reclaim(reader: Reads, events: Events) -> Reading:
    """One request's window; what a batch gave back is told request by request."""
    told = one(events, e.Reclaimed)
    assert told is not None, "this is how `Reclaimed` is read"
    name = reader.names.request(told.request)
    pre = int(reader.state.rows.length[reader.state.row_of(told.request)]) - 1
    yield
    return c.Reclaim(name, told.pre + told.in_flight if told.pre >= 0 else pre, told.in_flight)


def grow(reader: Reads, events: Events) -> Reading:
    """Tokens and pages for rows: asked for, or written by a server into rows of its own."""
    told = one(events, e.Extended)
    rows = [_written(reader, event) for event in events if isinstance(event, e.Bound)]
    grown: dict[str, int] = {}
    if told is not None:
        names = [reader.names.request(each) for each in ids_of(told.requests).tolist()]
        grown = dict(zip(names, pages_of(told.grown).tolist(), strict=True))
    more = [_rewritten(reader, name, count) for name, count in grown.items()] if told else []
    yield
    if told is not None and not rows:
        if site_of(told) != Site.DECODE:
            return c.Extend(grown)
        if {*grown.values()} == {1}:
            return c.Decode([*grown])
    return c.Write(rows + more)


def _written(reader: Reads, event: e.Bound) -> c.Written:
    """A row goes on in pages that were handed out before; its last page, if it is not full, is written again."""
    state, row = reader.state, reader.state.row_of(event.request)
    length = int(state.rows.length[row])
    named = state.rows.full_table[row, length // state.page_size : event.start // state.page_size].tolist()
    pages = [reader.page(page) for page in [*named, *pages_of(event.row or event.full).tolist()]]
    return c.Written(reader.names.request(event.request), length, max(length, event.length), pages)


def _rewritten(reader: Reads, name: str, count: int) -> c.Written:
    """A row grows within its last page."""
    state = reader.state
    row, size = state.row_of(reader.names.requests.numbers[name]), state.page_size
    length = int(state.rows.length[row])
    named = state.rows.full_table[row, length // size : pages_for(length + count, size)].tolist()
    return c.Written(name, length, length + count, [reader.page(page) for page in named])


def step(reader: Reads, events: Events) -> Reading:
    """A device step begins or ends."""
    told: Any = events[0]
    numbers = ids_of(told.requests)
    names = [reader.names.request(each) for each in numbers.tolist()]
    protected = reader.state.rows.protected.take(numbers & reader.state.rows.mask)
    yield
    if told.phase == e.Phase.ENDED:
        return c.EndStep(told.step)
    # Nobody can have asked for less than what is the tree's: that would have been turned down.
    starts = np.maximum(np.frombuffer(told.starts, "<i4"), protected).tolist()
    stops = np.frombuffer(told.stops, "<i4").tolist()
    return c.BeginStep(told.step, dict(zip(names, zip(starts, stops, strict=True), strict=True)))
