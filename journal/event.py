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
    """`raw`, or `bigram`: a key unit is a pair of neighbouring tokens (R257)."""
    swa_victims: str = "lru"
    """`lru`, or `use`: window pages that no boundary can need go first."""
    eviction: str = "lru"
    """Order of FULL victims: `lru`, `slru` or `priority`."""
    free_out_of_window: bool = True
    """Whether requests give back SWA below their frontier (R267)."""
    recurrent_slots: int = 0
    """State slots of the RECURRENT component; 0: there is none."""
    recurrent_mode: str = ""
    """`base` or `extra_buffer` where there are state slots."""
    track_interval: int = 0
    """Tokens between two tracked states (`extra_buffer`)."""
    host_pages: int = 0
    """Usable pages of the host tier for FULL pages; 0: there is none."""
    host_write: str = "through"
    """When FULL pages are copied to the host: `through` or `back`."""
    host_threshold: int = 1
    """Hits after which a node is written through."""

    @property
    def lifted(self) -> bool:
        """Keys of pairs beside windows: served to who asks for it by name, and never evidence for a gate (R10, R267)."""
        return self.key_mode != "raw" and self.swa_pages > 0


class Stop(IntEnum):
    """Why a match ended where it did."""

    END_OF_KEY = 0
    NO_CHILD = 1
    DIVERGED = 2
    """Inside a node, at the first page that differs."""
    WINDOW_DEAD = 3
    """FULL pages go further, the SWA window behind them does not (R73)."""
    FORCED_MISS = 4
    NO_STATE = 5
    """FULL pages go further, no state of the model stands there (R71)."""
    ON_HOST = 6
    """FULL pages go no further on the device; their copies on the host do."""


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
