"""What is known of a receipt that is out, as data: who has it, since when, what was short meanwhile, and what is wrong with it.

The words of a fault are those of the SQL check `unbalanced_lock`.
"""

from typing import NamedTuple

from msgspec import Struct

NOT_LOCKED = "unlocked without a lock"
ENDED = "still locked when its request ended"
KEPT = "the old one was kept"
AT_THE_END = "still locked at the end"

UNTOLD = -1
"""The boundary of a receipt that a snapshot counts and does not name."""


class Pressed(NamedTuple):
    """What was short so far: evictions, those that gained less than was asked, pages that they lacked, refusals for want of pages."""

    evictions: int = 0
    short: int = 0
    full_lacking: int = 0
    swa_lacking: int = 0
    refusals: int = 0

    def since(self, before: "Pressed") -> "Pressed":
        """What was short between two moments."""
        return Pressed(*(now - then for now, then in zip(self, before, strict=True)))


class Hold(Struct, eq=False):
    """A receipt that is out. seq, time_ns, step: of its `Locked`; seq 0 for one that a snapshot held already.

    fault: why it should not be out any more, and fault_seq since when; empty where nothing is wrong. passed_full,
    passed_swa: pages that evictions took meanwhile although they were used later than this path was locked.
    """

    node: int
    boundary: int
    request: int
    rid: str
    cause: str
    seq: int
    time_ns: int
    step: int
    skipped: list[int]
    pressed: Pressed
    clock: int
    fault: str = ""
    fault_seq: int = 0
    passed_full: int = 0
    passed_swa: int = 0


class LockFault(Struct, frozen=True):
    """A lock that was not given back, or one that was not held: as the rows of `unbalanced_lock`."""

    fault: str
    seq: int
    node: int
    boundary: int
    request: int
    rid: str
    cause: str
