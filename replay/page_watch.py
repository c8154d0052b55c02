"""Who has each page, by what events say of it alone: the judgement that is left where a state cannot be believed.

Behind a gap nobody knows who has what, until a page moves; from then on the next event that moves it can be held against
that. So a page that is freed twice, or handed out while somebody has it, is found though half of the journal is gone. Rule: it is
asked about a stretch without holes, and forgets everything where one begins.
"""

from collections.abc import Iterator

import numpy as np

from radixledger.cache.state import Finding
from radixledger.journal.accounts import FREE, PENDING, describe
from radixledger.journal.events import AnyEvent
from radixledger.journal.moves import pages_of, whole_moves
from radixledger.journal.units import Pages, Seq

_Found = dict[int, list[int]]


class PageWatch:
    """Looks at events one after the other."""

    def __init__(self) -> None:
        self._held: dict[tuple[int, int], int] = {}

    def forget(self) -> None:
        """A hole begins here, or ends."""
        self._held.clear()

    def look(self, seq: Seq, event: AnyEvent) -> Iterator[Finding]:
        """What the event contradicts of what events before it said; its word is taken."""
        for move in whole_moves(event):
            astray: _Found = {}
            for page in pages_of(move.pages).tolist():
                place = int(move.pool), page
                found = self._held.get(place, move.giver)
                if found != move.giver:
                    astray.setdefault(found, []).append(page)
                self._held[place] = move.taker
            for found, pages in astray.items():
                yield _finding(seq, move.pool.name, int(move.pool), pages, move.giver, move.taker, found)


def _finding(seq: Seq, name: str, pool: int, pages: list[int], giver: int, taker: int, found: int) -> Finding:
    """Under the name that the fold has for it."""
    law = "a_page_is_given_by_its_owner"
    if found == FREE and taker in (FREE, PENDING):
        law = "a_page_is_freed_once"
    elif giver == FREE and taker != FREE:
        law = "only_free_pages_are_allocated"
    shown = ", ".join(map(str, pages[:8]))
    text = f"{name} page {shown}: expected {describe(giver)}, found {describe(found)}"
    return Finding(seq, law, text, pool, Pages(np.array(pages, "<i4").tobytes()), giver, found)
