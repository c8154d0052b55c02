"""How commands about pages, state slots and the record are read off what was decided, see `reads`.

Rule: pages are called by what they were handed out as, before the command.
"""

from typing import Any

import numpy as np

from radixledger.journal import events as e
from radixledger.journal.accounts import Kind, Pool
from radixledger.journal.causes import Site
from radixledger.journal.moves import pages_of
from radixledger.journal.units import UNBOUND
from radixledger.replay.reading.parting import site_of
from radixledger.replay.reading.reads import Events, Reading, ReadingOf, Reads, one
from radixledger.replay.schedule import commands as c
from radixledger.replay.schedule.commands import AnyCommand

_FREES: dict[int, type[c.Free | c.FreeFull | c.FreeSwa]] = {
    Site.FULL_ONLY: c.FreeFull,
    Site.SWA_ONLY: c.FreeSwa,
}


def allocate(reader: Reads, events: Events) -> Reading:
    """Pages for nobody in particular."""
    told: Any = events[0]
    yield
    return c.Allocate(reader.titles[0], len(told.full) // 4)


def free(reader: Reads, events: Events) -> Reading:
    """Pages are given back, or that was turned down by a writer that goes on; rows may end before them then."""
    stated = one(events, e.StateFreed)
    if stated is not None:
        slots = [reader.slot(slot) for slot in pages_of(stated.slots).tolist()]
        yield
        return c.FreeStates(slots)
    pages = [reader.page(page) for event in events for page in _freed(reader, event)]
    first: Any = events[0]
    giver = "" if pages else _giver(reader, first.giver)
    if isinstance(first, e.Violated) and first.found & 7 == Kind.REQUEST:
        giver = _giver(reader, first.expected) or f"@{first.expected}"
    yield
    if any(isinstance(event, e.Bound) for event in events):
        return c.GiveUp(pages, giver)
    return _FREES.get(site_of(first), c.Free)(pages, giver)


def _freed(reader: Reads, event: Any) -> list[int]:
    numbers = pages_of(b"")
    if isinstance(event, e.Freed):
        numbers = pages_of(event.unmapped if site_of(event) == Site.SWA_ONLY else event.full)
    elif isinstance(event, e.Violated):
        numbers = pages_of(event.pages)
        if event.pool == Pool.SWA:
            numbers = np.flatnonzero(np.isin(reader.state.mapping.swa_of, numbers)).astype(np.int32)
    pages: list[int] = numbers.tolist()
    return pages


def _giver(reader: Reads, account: int) -> str:
    if account & 7 != Kind.REQUEST or account >> 3 == UNBOUND:
        return ""
    return reader.names.requests.names.get(account >> 3, f"@{account}")


def remap(reader: Reads, events: Events) -> Reading:
    """A mapping moves."""
    told: Any = events[0]
    mapped = np.flatnonzero(np.isin(reader.state.mapping.swa_of, pages_of(told.swa)))
    source = told.source or mapped.astype("<i4").tobytes()
    names = [[reader.page(page) for page in pages_of(each).tolist()] for each in (source, told.target)]
    yield
    return c.Remap(*names)


def take_states(reader: Reads, events: Events) -> Reading:
    """State slots for nobody in particular."""
    told: Any = events[0]
    yield
    return c.TakeStates(reader.titles[0], len(told.slots) // 4) if reader.titles else None


def take_ledger(_: Reads, events: Events) -> Reading:
    """The accounts were taken."""
    told: Any = events[0]
    yield
    return c.TakeLedger(told.phase)


def gathered(reader: Reads, events: Events) -> Reading:
    """A copy has been read."""
    told: Any = events[0]
    yield
    return c.Gather(reader.names.copies.names.get(told.transfer, "nobody"))


def plain(command: AnyCommand) -> ReadingOf:
    """There is nothing more to know."""

    def reading(_: Reads, __: Events) -> Reading:
        yield
        return command

    return reading


def nobody(_: Reads, __: Events) -> Reading:
    """The writer did it of its own accord, or nobody can tell what was asked."""
    yield
    return None
