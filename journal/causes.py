"""Why an event happened: which operation, at which kind of place in it.

A cause is one small integer in every event that moves pages or locks, so that "who freed this,
and why" is a column (J4). Rule: numbers are promises; new members go last in their enum.
"""

from enum import IntEnum
from typing import NewType

Cause = NewType("Cause", int)


class Operation(IntEnum):
    """The command that decided the event."""

    UNKNOWN = 0
    MATCH = 1
    ADMIT = 2
    EXTEND = 3
    UNFINISHED = 4
    FINISH = 5
    RETRACT = 6
    ABORT = 7
    RECLAIM = 8
    EVICT = 9
    INSERT = 10
    FREE = 11
    ALLOC = 12
    LOCK = 13
    UNLOCK = 14
    GROUP = 15
    FLUSH = 16
    STEP = 17
    BIND = 18
    DRILL = 19
    """A planted fault, written by a person on purpose."""
    BACK_UP = 25
    """FULL pages are copied to the host."""
    LOAD_BACK = 26
    """They are copied back."""
    EVICT_HOST = 27


class Site(IntEnum):
    """Where in that operation."""

    WHOLE = 0
    DUPLICATE = 1
    """The part of a request's slice that the tree had already (R61)."""
    VETO = 2
    """A leaf wholly below the released window, not materialised (R93)."""
    TAIL = 3
    """Pages behind the cached length: an unfinished page, or look-ahead (R148)."""
    HEAL = 4
    FULL_LEAF = 5
    """A leaf that FULL pressure removed."""
    SWA_LEAF = 6
    """A leaf that SWA pressure removed (R104)."""
    SWA_INTERNAL = 7
    """A node with children whose window pages SWA pressure took (R99)."""
    SWA_LOCKED_LEAF = 8
    """A childless node that FULL locks and SWA pressure tombstoned (R109, A24)."""
    DECODE = 9
    PREFILL = 10
    COMPOSITE = 11
    FULL_ONLY = 12
    SWA_ONLY = 13
    PREFIX = 14
    RELEASED = 15
    """FULL pages of a request whose window part had been reclaimed before."""
    STATE_LEAF = 16
    """A leaf that goes because state slots are short."""
    OUTGROWN = 17
    """The state of a node that has got children."""
    REJECTED = 18
    """A state that the tree does not take: its node has one, or is no leaf."""
    REPLACEMENT = 19
    """A track slot for one that is given away."""
    WINDOW = 26
    """A node cut where a window begins, so that a lock holds one window and no more."""
    CHILDLESS_TOMBSTONE = 29
    """A tombstone whose last child was removed, on the legacy route, where a leaf is never a tombstone."""
    WRITE_THROUGH = 21
    """A node that was used often enough is copied while it is on the device."""
    WRITE_BACK = 22
    """The next victim of FULL pressure is copied before it goes."""
    HOST_COPY = 23
    """A leaf whose FULL pages FULL pressure took; its copy on the host stays."""
    UNREACHABLE = 24
    """A copy behind a node that is neither on the device nor on the host."""
    ADOPTED = 25
    """A FULL tombstone over which a request brought pages (R64)."""


def cause(operation: Operation, site: Site = Site.WHOLE) -> Cause:
    """Operation and site as the one number that events carry."""
    return Cause(operation << 5 | site)


def sited(why: Cause, site: Site) -> Cause:
    """The cause of an event at a place of its own in the same operation."""
    return Cause(why & ~31 | site)


def label_of(event: object) -> str:
    """The cause of an event in words, as `label` has it; empty for events that carry none."""
    return label(event.cause) if hasattr(event, "cause") else ""


def label(code: int) -> str:
    """A cause in words, `finish/duplicate` or `match`; `unknown(CODE)` for numbers of the future."""
    try:
        operation, site = Operation(code >> 5), Site(code & 31)
    except ValueError:
        return f"unknown({code})"
    name = operation.name.lower()
    return name if site is Site.WHOLE else f"{name}/{site.name.lower()}"
