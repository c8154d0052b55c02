"""Which events of a frame one command decided: a frame may hold the commands of a whole step.

A cause says the operation, and each operation ends with an event of its own. Rule: total; whatever a lawless writer put
there belongs to some command, and where an end is missing, a command ends where another operation begins.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from radixledger.journal import events as e
from radixledger.journal.causes import Operation, Site
from radixledger.journal.events import AnyEvent
from radixledger.journal.moves import ids_of
from radixledger.journal.units import UNBOUND, RequestId

_END: dict[Operation, type] = {
    Operation.MATCH: e.Matched,
    Operation.ADMIT: e.Admitted,
    Operation.UNFINISHED: e.Repointed,
    Operation.FINISH: e.Finished,
    Operation.RETRACT: e.Retracted,
    Operation.ABORT: e.Aborted,
    Operation.EVICT: e.Evicted,
    Operation.LOCK: e.Locked,
    Operation.FLUSH: e.Flushed,
}
"""The event that ends what an operation decides; what may follow it stands in `_FOLLOWS`."""

_ALONE = (
    e.Opened, e.Refused, e.LedgerTaken, e.Digested, e.Snapshotted, e.Closed, e.Gap, e.Stepped, e.Allocated, e.Remapped,
    e.GroupOpened, e.GroupFlushed, e.Reclaimed, e.Gathered,
)  # fmt: skip
_ROOM = (e.HostDropped, e.Removed, e.BackupBegun)
_OPERATIONS: dict[int, Operation] = {int(each): each for each in Operation}
_OF_HOST = (Operation.BACK_UP, Operation.EVICT_HOST)


def operation_of(event: AnyEvent) -> Operation:
    """The operation that an event's cause names; UNKNOWN for events without one and for numbers of the future."""
    code = getattr(event, "cause", 0) >> 5
    return _OPERATIONS.get(code, Operation.UNKNOWN)


def site_of(event: AnyEvent) -> int:
    """The site that an event's cause names."""
    code: int = getattr(event, "cause", 0) & 31
    return code


def parted(events: Sequence[AnyEvent]) -> Iterator[list[AnyEvent]]:
    """The events of each command of a frame, in order."""
    at = 0
    while at < len(events):
        stop = max(at + 1, _stop(events, at))
        yield list(events[at:stop])
        at = stop


def _stop(events: Sequence[AnyEvent], at: int) -> int:
    first = events[at]
    if isinstance(first, _ALONE):
        return at + 1
    if isinstance(first, e.Bound | e.Extended | e.StateTracked):
        stop = _run(events, at, lambda event: isinstance(event, e.Bound))
        written = {bound.request for bound in events[at:stop] if isinstance(bound, e.Bound)}
        stop = _run(events, stop, lambda event: _grows_only(event, written), e.Extended)
        return _run(events, stop, lambda event: isinstance(event, e.StateTracked))
    operation = next((each for event in events[at:] if (each := operation_of(event))), Operation.UNKNOWN)
    if operation is Operation.FREE:
        return _freed(events, at)
    if operation is Operation.ADMIT and isinstance(first, e.Locked) and first.request == UNBOUND:
        return _until(events, at, e.Unlocked)
    if operation in _OF_HOST or operation is Operation.LOAD_BACK:
        return _host(events, at)
    if operation is Operation.UNLOCK:
        return _run(events, at + 1, lambda event: isinstance(event, e.StateFreed) and _is(event, operation))
    if operation is Operation.INSERT:
        return _inserted(events, at)
    end = _END.get(operation)
    if end is None:
        return at + 1
    stop = _run(events, at, lambda event: _is(event, operation), end)
    return (
        _run(events, stop, lambda event: _follows(event, operation))
        if isinstance(events[stop - 1], end)
        else stop
    )


def _is(event: AnyEvent, operation: Operation) -> bool:
    return not isinstance(event, _ALONE) and operation_of(event) in (operation, Operation.UNKNOWN)


def _run(
    events: Sequence[AnyEvent], at: int, belongs: Callable[[AnyEvent], bool], end: type | None = None
) -> int:
    """The place behind the events from `at` on that belong together, `end` the last of them if it comes."""
    while at < len(events) and belongs(events[at]):
        at += 1
        if end is not None and isinstance(events[at - 1], end):
            break
    return at


def _until(events: Sequence[AnyEvent], at: int, end: type) -> int:
    return next(
        (place + 1 for place in range(at, len(events)) if isinstance(events[place], end)), len(events)
    )


def _follows(event: AnyEvent, operation: Operation) -> bool:
    """What an admission or a request that goes on still decides once it has told its main fact: locks and states."""
    if operation not in (Operation.ADMIT, Operation.UNFINISHED) or not _is(event, operation):
        return False
    if isinstance(event, e.Split):
        return site_of(event) == Site.WINDOW
    if isinstance(event, e.Locked):
        return event.request != UNBOUND
    return isinstance(event, e.Unlocked | e.StateFreed | e.StateTaken | e.StateCopied) or (
        isinstance(event, e.Removed) and site_of(event) == Site.STATE_LEAF
    )


def _inserted(events: Sequence[AnyEvent], at: int) -> int:
    """A stranger's insert: once it grew a leaf, only the leaf's own follow; a look-up of its path ends it."""
    leaf: e.Transferred | None = None
    while at < len(events) and _is(event := events[at], Operation.INSERT):
        settles = isinstance(event, e.StateDonated | e.StateFreed | e.Matched)
        if leaf is not None and not settles and getattr(event, "parent", None) != leaf.node:
            break
        leaf = event if isinstance(event, e.Transferred) else leaf
        at += 1
        if isinstance(event, e.Matched):
            break
    return at


def _grows_only(event: AnyEvent, written: set[RequestId]) -> bool:
    """A step's growth; behind rows that were written, only that of rows which took no page, and others."""
    if not isinstance(event, e.Extended):
        return False
    if not written:
        return True
    named = set(ids_of(event.requests).tolist())
    return site_of(event) == Site.DECODE and not event.takers and not written & named


def _freed(events: Sequence[AnyEvent], at: int) -> int:
    """One event, or all that a server gave up of rows, which end before it then."""
    stop = _run(
        events, at, lambda event: _is(event, Operation.FREE) and isinstance(event, e.Freed | e.Violated)
    )
    cut = _run(events, stop, lambda event: isinstance(event, e.Bound) and not event.full)
    return cut if cut > stop else at + 1


def _host(events: Sequence[AnyEvent], at: int) -> int:
    first: Any = events[at]
    if isinstance(first, e.BackupEnded):
        stop = _run(
            events, at, lambda event: isinstance(event, e.BackupEnded) and event.transfer == first.transfer
        )
        return _run(
            events,
            stop,
            lambda event: (
                operation_of(event) is Operation.BACK_UP and isinstance(event, e.Removed | e.HostDropped)
            ),
        )
    if operation_of(first) is Operation.LOAD_BACK:
        return _until(events, at, e.LoadBegun if isinstance(first, e.Locked) else e.Unlocked)
    stop = at
    while stop < len(events) and isinstance(events[stop], _ROOM) and operation_of(events[stop]) in _OF_HOST:
        stop += 1
        if isinstance(events[stop - 1], e.BackupBegun) and site_of(events[stop - 1]) == Site.WRITE_BACK:
            break
    return stop
