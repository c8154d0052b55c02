"""How matches, strangers' inserts, locks and evictions are read off what was decided, see `reads`.

A match says how far the tree went and where it stopped; the rest of its key is made up so that nothing goes further.
Rule: what a path is called is read behind the command, when all of its nodes are there.
"""

from itertools import pairwise

from radixledger.cache.state import Node
from radixledger.journal import events as e
from radixledger.journal.accounts import request_account
from radixledger.journal.causes import Operation, Site
from radixledger.journal.moves import pages_of
from radixledger.journal.units import ROOT, UNBOUND, Pages
from radixledger.replay.reading.parting import operation_of, site_of
from radixledger.replay.reading.reads import Events, Reading, Reads, one
from radixledger.replay.schedule import commands as c

_NOBODY = request_account(UNBOUND)


def last_node(events: Events) -> int:
    """The node where an insert was last seen."""
    nodes = [
        event.upper if isinstance(event, e.Split) else event.node
        for event in events
        if isinstance(event, e.Split | e.Transferred | e.Healed | e.Adopted | e.StateDonated | e.Matched)
    ]
    return nodes[-1] if nodes else ROOT


def match(reader: Reads, events: Events) -> Reading:
    """A look-up of its own."""
    yield
    found = one(events, e.Matched)
    if found is None:
        return None
    rid = reader.rid(found.rid) if found.rid else ""
    key, space = reader.asked(found), reader.letters.space(found.namespace)
    return c.Match(key, space, rid, found.full_only, found.stop == e.Stop.FORCED_MISS)


def insert(reader: Reads, events: Events) -> Reading:
    """A stranger's slice: what was told of its pages, in the order of the path, are its last ones."""
    brought = Pages(b"".join([_brought(event) for event in events]))
    mapped = set(pages_of(reader.state.mapping.mapped(brought)[0]).tolist())
    yield
    node = _end_of_insert(reader, events)
    path = reader.path(node)
    vetoed = sum(len(event.full) // 4 for event in events if isinstance(event, e.Freed) and _is_veto(event))
    key = reader.padded(path, len(path) + vetoed)
    mine = pages_of(brought).tolist()
    prev = len(key) - len(mine)
    pages = ["@0"] * prev + [reader.page(page) for page in mine]
    stale = [place for place, page in enumerate(mine, prev) if page not in mapped]
    released = (
        max([_released(reader, events), *[place + 1 for place in stale]]) if reader.state.windowed else 0
    )
    states = tuple(reader.slot(slot) for event in events for slot in _slots(event))
    return c.Insert(key, pages, reader.space_of(node), prev, len(key) if vetoed else released, states)


def _is_veto(event: object) -> bool:
    return isinstance(event, e.Freed) and site_of(event) == Site.VETO


def _brought(event: object) -> bytes:
    """The pages of a stranger's slice that an event tells of."""
    if isinstance(event, e.Healed):
        return event.fresh
    return event.full if isinstance(event, e.Transferred | e.Adopted | e.Freed) else b""


def _released(reader: Reads, events: Events) -> int:
    """Up to which place the slice came without SWA, by the tombstones that grew and those that were cut to be healed."""
    released = 0
    for before, event in pairwise([None, *events]):
        node = reader.state.nodes.get(getattr(event, "node", ROOT))
        if isinstance(event, e.Transferred) and node is not None and not event.swa:
            released = max(released, node.end)
        cut = isinstance(before, e.Split) and site_of(before) == Site.HEAL
        if cut and node is not None and isinstance(before, e.Split):
            upper = reader.state.nodes.get(before.upper)
            released = max(released, upper.end if upper is not None else 0)
    return released


def _end_of_insert(reader: Reads, events: Events) -> int:
    """The node where an insert ended: behind the last one that was told, over as many as were freed after it.

    Where none was told, nothing but frees happened, and any path with nodes of these lengths will do.
    """
    last: int = ROOT
    lengths: list[int] = []
    cut = False
    for event in events:
        if isinstance(event, e.Freed) and event.full and site_of(event) == Site.DUPLICATE:
            lengths.append(len(event.full) // 4)
        elif node := last_node((event,)):
            last, lengths, cut = node, [], isinstance(event, e.Split)
    nodes = reader.state.nodes
    begins = [nodes[last]] if last in nodes else [*nodes.values()]
    for rest in (lengths[1:], lengths) if cut else (lengths,):
        for begin in begins:
            found = _down(reader, begin, rest)
            if found is not None:
                return found.id
    return last


def _down(reader: Reads, node: Node, lengths: list[int]) -> Node | None:
    """The end of a chain of nodes below one, with so many pages each, which an insert would have freed and not healed."""
    if not lengths:
        return node
    for child in (node.children or {}).values():
        if child.pages == lengths[0] and (child.swa or not reader.state.windowed):
            found = _down(reader, child, lengths[1:])
            if found is not None:
                return found
    return None


def _slots(event: object) -> list[int]:
    given = b""
    if isinstance(event, e.StateDonated):
        given = event.slot
    elif isinstance(event, e.StateFreed) and event.giver == _NOBODY:
        given = event.slots
    slots: list[int] = pages_of(given).tolist()
    return slots


def lock(reader: Reads, events: Events) -> Reading:
    """A path is locked for nobody in particular."""
    yield
    told = one(events, e.Locked)
    if told is None or not reader.titles:
        return None
    return c.Lock(reader.titles[0], reader.path(told.node), reader.space_of(told.node))


def unlock(reader: Reads, events: Events) -> Reading:
    """Its receipt is given back."""
    yield
    told = one(events, e.Unlocked)
    name = reader.lock_of(told) if told is not None else ""
    return c.Unlock(name) if name else None


def evict(_: Reads, events: Events) -> Reading:
    """What was asked for is told at the end; without one, it was what was given up."""
    yield
    told = one(events, e.Evicted)
    if told is None:
        gone = [event for event in events if isinstance(event, e.Removed | e.Demoted | e.Tombstoned)]
        full = [each for each in gone if site_of(each) in (Site.FULL_LEAF, Site.HOST_COPY)]
        swa = [each for each in gone if isinstance(each, e.Tombstoned | e.Removed) and each not in full]
        return c.Evict(sum(len(each.full) // 4 for each in full), sum(len(each.swa) // 4 for each in swa))
    if told.asked_recurrent:
        return c.EvictStates(told.asked_recurrent, told.asked_full)
    return c.Evict(told.asked_full, told.asked_swa)


def flush(_: Reads, events: Events) -> Reading:
    """The tree is emptied; or, of a rank without nodes, what was lent out is taken back."""
    yield
    emptied = any(isinstance(event, e.Flushed | e.Removed | e.HostDropped) for event in events)
    return c.Flush() if emptied else c.Clear()


def of_host(reader: Reads, events: Events) -> Reading:
    """Copies begin, after room was made for them; or room alone."""
    yield
    begun = [event for event in events if isinstance(event, e.BackupBegun)]
    if not begun:
        dropped = [event for event in events if isinstance(event, e.HostDropped)]
        return c.EvictCopies(sum(len(event.host) // 4 for event in dropped))
    last = begun[-1]
    if site_of(last) == Site.WRITE_BACK:
        return c.WriteBack(reader.titles[0])
    return c.WriteThrough(reader.path(last.node), list(reader.titles), reader.space_of(last.node))


def end_backup(reader: Reads, events: Events) -> Reading:
    """A backup has ended, node by node."""
    ended = [event for event in events if isinstance(event, e.BackupEnded)]
    yield
    return c.EndBackup(
        reader.names.copies.names.get(ended[0].transfer, "nobody"), any(event.landed for event in ended)
    )


def of_loads(reader: Reads, events: Events) -> Reading:
    """A load begins, or has ended."""
    yield
    begun, ended = one(events, e.LoadBegun), [event for event in events if isinstance(event, e.LoadEnded)]
    if begun is not None:
        return c.LoadBack(reader.titles[0], reader.path(begun.node), reader.space_of(begun.node))
    if not ended:
        return None
    landed = any(event.landed or operation_of(event) != Operation.LOAD_BACK for event in ended)
    overtaken = any(site_of(event) == Site.DUPLICATE for event in ended)
    return c.EndLoad(reader.names.copies.names.get(ended[0].transfer, "nobody"), landed or overtaken)
