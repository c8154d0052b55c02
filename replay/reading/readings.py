"""Which reading a command's events have: by what they are, or by the operation that their cause names.

Rule: an event that is all there is to its command decides by its type; everything else goes by operation.
"""

from radixledger.journal import events as e
from radixledger.journal.causes import Operation
from radixledger.replay.reading import of_pages as pages
from radixledger.replay.reading import of_requests as requests
from radixledger.replay.reading import of_the_tree as tree
from radixledger.replay.reading.parting import operation_of
from radixledger.replay.reading.reads import Events, Reading, ReadingOf, Reads
from radixledger.replay.schedule import commands as c

_BY_EVENT: dict[type, ReadingOf] = {
    e.Stepped: requests.step,
    e.Extended: requests.grow,
    e.Bound: requests.grow,
    e.Reclaimed: requests.reclaim,
    e.Allocated: pages.allocate,
    e.Remapped: pages.remap,
    e.GroupOpened: pages.plain(c.OpenGroup()),
    e.GroupFlushed: pages.plain(c.FlushGroup()),
    e.LedgerTaken: pages.take_ledger,
    e.Gathered: pages.gathered,
    e.BackupEnded: tree.end_backup,
}

_BY_OPERATION: dict[Operation, ReadingOf] = {
    Operation.MATCH: tree.match,
    Operation.ADMIT: requests.admit,
    Operation.UNFINISHED: requests.keep,
    Operation.FINISH: requests.finish,
    Operation.RETRACT: requests.ends(c.Retract),
    Operation.ABORT: requests.ends(c.Abort),
    Operation.EVICT: tree.evict,
    Operation.INSERT: tree.insert,
    Operation.FREE: pages.free,
    Operation.DRILL: pages.free,
    Operation.ALLOC: pages.take_states,
    Operation.LOCK: tree.lock,
    Operation.UNLOCK: tree.unlock,
    Operation.FLUSH: tree.flush,
    Operation.BACK_UP: tree.of_host,
    Operation.EVICT_HOST: tree.of_host,
    Operation.LOAD_BACK: tree.of_loads,
}


def reading_of(reader: Reads, events: Events) -> Reading:
    """How the command is read that decided these events."""
    found = _BY_EVENT.get(type(events[0]))
    if found is None:
        operations = (operation_of(event) for event in events)
        operation = next((each for each in operations if each is not Operation.UNKNOWN), Operation.UNKNOWN)
        found = _BY_OPERATION.get(operation, pages.nobody)
    noted = isinstance(events[0], e.Violated) and operation_of(events[0]) is not Operation.FREE
    if noted or isinstance(events[0], e.Refused):
        found = pages.nobody
    return found(reader, events)
