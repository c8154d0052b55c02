"""Events of pages that need no tree: allocation, binding, frees, free groups, mapping that changes hands.

Part of the vocabulary, see `events` for its rules.
"""

from radixledger.journal.accounts import FREE
from radixledger.journal.causes import Cause
from radixledger.journal.event import NO_CAUSE, Event
from radixledger.journal.units import NO_PAGES, UNBOUND, Pages, RequestId, TokenCount


class Allocated(Event, frozen=True, array_like=True, gc=False, tag=6):
    """free → request: FULL pages, and SWA pages that the last `len(swa)` of them are mapped to, in order."""

    request: RequestId
    full: Pages
    swa: Pages
    cause: Cause = NO_CAUSE


class Bound(Event, frozen=True, array_like=True, gc=False, tag=8):
    """request(unbound) → request: the pages were written into this request's row.

    A server that keeps rows of its own tells them here (`length` >= 0): from token `start` on the row names the FULL
    pages `row` and nothing behind them, and it is `length` tokens long; `full` are those of them that nobody had named.
    """

    request: RequestId
    full: Pages
    swa: Pages
    start: TokenCount = TokenCount(0)
    row: Pages = NO_PAGES
    length: TokenCount = TokenCount(-1)


class Freed(Event, frozen=True, array_like=True, gc=False, tag=16):
    """giver → free or pending: `full` FULL pages and `swa` SWA pages; the mapping of `unmapped` is cleared.

    `unmapped` are the FULL pages that `swa` were mapped from, one for each, whether or not they move too: a
    composite free has them among `full`, `free_swa` has `full` empty, `free_full` has both others empty.
    """

    giver: int
    full: Pages
    unmapped: Pages
    swa: Pages
    to: int = FREE
    request: RequestId = UNBOUND
    cause: Cause = NO_CAUSE


class GroupOpened(Event, frozen=True, array_like=True, gc=False, tag=17):
    """A free group began: what is freed becomes pending until it is flushed (R29)."""


class GroupFlushed(Event, frozen=True, array_like=True, gc=False, tag=18):
    """pending → free, both pools; the group is over (R44)."""

    full: Pages
    swa: Pages


class Remapped(Event, frozen=True, array_like=True, gc=False, tag=32):
    """giver → taker: SWA pages changed hands with their mapping, from FULL pages `source` to `target` (R91).

    The FULL pages themselves do not move; every list is as long as the others.
    """

    giver: int
    taker: int
    source: Pages
    target: Pages
    swa: Pages
    cause: Cause = NO_CAUSE
