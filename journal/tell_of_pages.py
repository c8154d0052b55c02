"""What a recorder is told of pages that need no tree: allocation, frees, free groups, mapping that changes hands.

Part of `recorder`, with its rules.
"""

from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

from radixledger.journal.accounts import FREE, PENDING, request_account
from radixledger.journal.causes import Operation, cause
from radixledger.journal.events import (
    Allocated,
    Freed,
    GroupFlushed,
    GroupOpened,
    Refused,
    Remapped,
)
from radixledger.journal.telling import ROOT, PageIds, Telling, in_turn, packed, same_length


def pages_of_slots(slots: PageIds, page_size: int) -> NDArray[np.int32]:
    """The pages that token slots lie in, each once, in the order of their first slots; int32 [pages].

    For servers that count in slots: `page = slot // page_size`. Slots of page 0 (padding) are left out.
    """
    pages: NDArray[np.int64] = np.asarray(slots, np.int64) // page_size
    _, first = np.unique(pages, return_index=True)
    ordered = pages[np.sort(first)]
    named: NDArray[np.int32] = ordered[ordered != 0].astype(np.int32)
    return named


class PageVerbs(Telling):
    """The verbs."""

    @in_turn
    def allocated(
        self, rid: str | None, full: PageIds, swa: PageIds = (), *, why: Operation = Operation.ALLOC
    ) -> None:
        """free → request, or nobody yet (None): FULL pages, and SWA pages that the last of them are mapped to, in order.

        Raises ValueError for more SWA pages than FULL ones.
        """
        if len(swa) > len(full):
            raise ValueError(f"{len(swa)} SWA pages and {len(full)} FULL ones that they could be mapped from")
        self._tell(Allocated(self._request(rid), packed(full), packed(swa), cause(why)))

    @in_turn
    def freed(
        self, full: PageIds = (), swa: PageIds = (), *, unmapped: PageIds = (), rid: str | None = None,
        node: Hashable = ROOT, why: Operation = Operation.FREE,
    ) -> None:  # fmt: skip
        """Pages were given up, by request `rid`, by `node`, or by nobody in particular; pending while a group is open.

        `unmapped` are the FULL pages that `swa` were mapped from, one for each, whether or not they go too.
        """
        giver = self._account(rid, node)
        self._tell(
            Freed(giver, packed(full), packed(unmapped), packed(swa), self._to, self._request(rid), cause(why))
        )  # fmt: skip

    @in_turn
    def remapped(
        self, source: PageIds, target: PageIds, swa: PageIds, *, giver: str | None = None, taker: str | None = None,
        why: Operation = Operation.ALLOC,
    ) -> None:  # fmt: skip
        """SWA pages changed hands with their mapping, from FULL pages `source` to `target`, which stay where they are.

        Raises ValueError where `source`, `target` and `swa` differ in length.
        """
        same_length(source=source, target=target, swa=swa)
        left, came = (request_account(self._request(each)) for each in (giver, taker))
        self._tell(Remapped(left, came, packed(source), packed(target), packed(swa), cause(why)))

    @in_turn
    def group_opened(self) -> None:
        """A free group began: what is freed is pending until it is flushed."""
        self._to = PENDING
        self._tell(GroupOpened())

    @in_turn
    def group_flushed(self, full: PageIds = (), swa: PageIds = ()) -> None:
        """pending → free, both pools; the group is over."""
        self._to = FREE
        self._tell(GroupFlushed(packed(full), packed(swa)))

    @in_turn
    def refused(self, reason: str, detail: str = "", *, rid: str | None = None, pages: PageIds = ()) -> None:
        """The server turned something down: `pool_short`, `double_free`, or a word of its own."""
        self._tell(Refused(reason, detail, self._request(rid), 0, packed(pages)))
