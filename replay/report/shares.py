"""What each rank may put into a page that several share, so that the page stays small however many there are.

Rule: who has something to show gets the larger part. Of a hundred ranks of which one went wrong, that one is looked at.
"""

from collections.abc import Sequence

from msgspec import Struct

STRETCHES = 512
"""Stretches that are told as one packet each, to begin with."""
SUMMARY_CELLS = 2_400_000
DETAIL_CELLS = 1_000_000
"""Cells over all ranks of a page, of summaries and at full detail: what keeps the file small."""
DETAIL_EVENTS = 40_000
"""Events at full detail, over all ranks of a page: about 30 bytes each in the file."""
LIVES = 20_000
"""Requests whose beginning and end are kept, over all ranks of a page: the latest."""
BUCKETS = 480
"""Steps of a chart, and of the time line below it."""
BUCKETS_IN_ALL = 8 * BUCKETS
"""The same over all ranks of a page: a rank has some seven charts and lanes, and a step of each is about ten bytes."""
LEAST_STRETCHES, LEAST_BUCKETS = 32, 96
"""What a rank has in any case."""
LARGER_PART = 0.75


class Share(Struct, frozen=True):
    """What one rank may put into a page."""

    detail_events: int
    stretches: int
    summary_cells: int
    detail_cells: int
    lives: int
    buckets: int = BUCKETS

    @classmethod
    def of(cls, part: float) -> "Share":
        """A part of the page, in (0, 1]."""
        return cls(
            int(DETAIL_EVENTS * part),
            max(LEAST_STRETCHES, int(STRETCHES * part)),
            int(SUMMARY_CELLS * part),
            int(DETAIL_CELLS * part),
            int(LIVES * part),
            min(BUCKETS, max(LEAST_BUCKETS, int(BUCKETS_IN_ALL * part))),
        )


def shares(found: Sequence[bool]) -> list[Share]:
    """The share of each rank, by whether something was found there."""
    many, few = found.count(True), found.count(False)
    if not many or not few:
        return [Share.of(1 / len(found))] * len(found)
    # One clean rank beside many others gets no more than each of them.
    larger, smaller = LARGER_PART / many, (1 - LARGER_PART) / few
    if smaller > larger:
        larger = smaller = 1 / len(found)
    return [Share.of(larger if each else smaller) for each in found]
