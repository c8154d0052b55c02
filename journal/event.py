"""What all events share: their parent, the configuration that the first one carries, and the words they use.

Not an event itself. Rule: numbers are promises; enum members and fields are only ever added, at the end.
"""

from enum import IntEnum

from msgspec import Struct

from radixledger.journal.causes import Cause

NO_CAUSE = Cause(0)


class Config(Struct, frozen=True, array_like=True):
    """What one rank's cache was built with; written once, in `Opened` (J5).

    Sizes are usable pages: page 0 of each pool comes on top. `rows` is a power of two: a request's
    row is its id modulo `rows`.
    """

    page_size: int
    full_pages: int
    swa_pages: int
    window_tokens: int
    rows: int = 64
    context_pages: int = 8192
    formula: str = "rfc"
    """Frontier formula: `rfc` or `tight` (A26b)."""
    tombstone_leaf: str = "veto"
    """`veto` or `materialise` (A15)."""
    key_mode: str = "raw"
    swa_victims: str = "lru"


class Stop(IntEnum):
    """Why a match ended where it did."""

    END_OF_KEY = 0
    NO_CHILD = 1
    DIVERGED = 2
    """Inside a node, at the first page that differs."""
    WINDOW_DEAD = 3
    """FULL pages go further, the SWA window behind them does not (R73)."""
    FORCED_MISS = 4


class HealMode(IntEnum):
    """How a tombstone got live SWA again (A13)."""

    REPLACE = 0
    """The node takes the request's FULL pages; its old ones are freed (R87)."""
    TRANSFER = 1
    """The node keeps its FULL pages, which others may read; the mapping moves to them and the fresh ones
    are freed (R90)."""


class Phase(IntEnum):
    """Which end of a device step is told."""

    BEGAN = 0
    ENDED = 1


class Event(Struct, frozen=True, array_like=True, gc=False):
    """The parent of all events; never written itself."""
