"""A device without a model: what it computes depends on every page it reads, so wrong pages give wrong ids.

The "K and V" of a token are one 64-bit number, made from the token, its position, the numbers of all tokens before it as
read back through the FULL table, and those of its window as read back through the SWA table. So a page freed too
early, handed out twice, or healed with somebody else's content changes the next id, as it would in a real model;
and, as rules E1 to E3 demand of one, nothing else does: not the batch, not the chunks, not a cache hit.

`dense_ids` is the same sequence computed with no pages at all.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from radixledger.tools.serve.batch import Span

Ints = NDArray[np.int32]
FreePages = Callable[[], tuple[NDArray[np.int64], NDArray[np.int64]]]

VOCAB = 512
_BITS = (1 << 64) - 1
_SWA_SALT = 0x5A5A_1234_9876_C3C3
_GARBAGE = 0xDEAD_BEEF_0BAD_F00D


def mixed(number: int, place: int) -> int:
    """A number and a place as one number that looks like neither."""
    value = (number ^ (place + 1) * 0x9E37_79B9_7F4A_7C15) * 0xBF58_476D_1CE4_E5B9 & _BITS
    return (value ^ value >> 29) * 0x94D0_49BB_1331_11EB & _BITS


def kept(token: int, place: int, before: int, window: int) -> int:
    """What is kept for a token, from the sums over all before it and over its window."""
    return mixed((token * 0x1000_0001 + 3 * before + 5 * window) & _BITS, place)


def next_id(number: int) -> int:
    """The greedy id after a token of which `number` is kept."""
    return (number >> 20) % VOCAB


def dense_ids(
    prompt: Sequence[int], count: int, window_tokens: int, eos_ids: frozenset[int] = frozenset()
) -> list[int]:
    """What comes out after `prompt`: the truth that no page table can spoil. `window_tokens` 0: a model without one."""
    tokens, numbers, made = list(prompt), list[int](), list[int]()
    before = window = 0
    while len(made) < count:
        place = len(numbers)
        number = kept(tokens[place], place, before, window)
        numbers.append(number)
        before += mixed(number, place)
        window += mixed(number ^ _SWA_SALT, place) if window_tokens else 0
        stale = place - window_tokens + 1
        if window_tokens and stale >= 0:
            window -= mixed(numbers[stale] ^ _SWA_SALT, stale)
        if len(numbers) == len(tokens):
            made.append(next_id(number))
            tokens.append(made[-1])
            if made[-1] in eos_ids:
                break
    return made


class FakeRunner:
    """Two paged pools of 64-bit numbers, read and written through the page tables of a step.

    free_pages: the pages of both pools that nobody holds; each step begins by spoiling them, so that a read of a freed
    page is found out at once and not when somebody else has written there.
    """

    def __init__(
        self,
        *,
        page_size: int,
        full_pages: int,
        swa_pages: int,
        window_tokens: int,
        free_pages: FreePages | None = None,
    ) -> None:
        self.page_size = page_size
        self.window_tokens = window_tokens
        self.free_pages = free_pages
        self.full = self._garbage(full_pages)
        self.swa = self._garbage(swa_pages)
        self.batches: list[list[tuple[int, int]]] = []
        """The (start, length) of every span of every step."""

    def step(self, spans: Sequence[Span], full_table: Ints, swa_table: Ints) -> Ints:
        """As `Runner.step`."""
        self._spoil()
        self.batches.append([(span.start, len(span.tokens)) for span in spans])
        rows = [span.row for span in spans]
        assert len(set(rows)) == len(rows), f"a row stands in a step once: {rows}"
        return np.array([self._span(span, full_table, swa_table) for span in spans], np.int32)

    def _span(self, span: Span, full_table: Ints, swa_table: Ints) -> int:
        start, stop = span.start, span.start + len(span.tokens)
        if not self.window_tokens:
            return self._span_of_one_pool(span, full_table)
        first = max(0, start - self.window_tokens + 1)
        full = self._slots(full_table[span.row], 0, stop, len(self.full))
        swa = self._slots(swa_table[span.row], first, stop, len(self.swa))
        numbers = self.full[full].tolist()
        windows = self.swa[swa].tolist()
        before = sum(mixed(number, place) for place, number in enumerate(numbers[:start]))
        window = sum(mixed(number, first + i) for i, number in enumerate(windows[: start - first]))
        number = 0
        for place, token in enumerate(span.tokens.tolist(), start):
            number = kept(token, place, before, window)
            numbers[place], windows[place - first] = number, number ^ _SWA_SALT
            before += mixed(number, place)
            window += mixed(windows[place - first], place)
            stale = place - self.window_tokens + 1
            if stale >= 0:
                window -= mixed(windows[stale - first], stale)
        self.full[full[start:]] = np.array(numbers[start:], np.uint64)
        self.swa[swa[start - first :]] = np.array(windows[start - first :], np.uint64)
        return next_id(number)

    def _span_of_one_pool(self, span: Span, full_table: Ints) -> int:
        full = self._slots(full_table[span.row], 0, span.start + len(span.tokens), len(self.full))
        numbers = self.full[full].tolist()
        before, number = sum(mixed(number, place) for place, number in enumerate(numbers[: span.start])), 0
        for place, token in enumerate(span.tokens.tolist(), span.start):
            number = numbers[place] = kept(token, place, before, 0)
            before += mixed(number, place)
        self.full[full[span.start :]] = np.array(numbers[span.start :], np.uint64)
        return next_id(number)

    def _slots(self, row: Ints, first: int, stop: int, limit: int) -> NDArray[np.int64]:
        """The slots of positions [first, stop); every page of them must be resident."""
        places = np.arange(first, stop)
        pages = row[places // self.page_size].astype(np.int64)
        assert (pages > 0).all(), f"positions {places[pages <= 0].tolist()} are not resident"
        slots: NDArray[np.int64] = pages * self.page_size + places % self.page_size
        assert slots.max() < limit, f"page {pages.max()} is beyond the pool"
        return slots

    def _garbage(self, pages: int) -> NDArray[np.uint64]:
        slots = np.arange((pages + 1) * self.page_size, dtype=np.uint64)
        return slots ^ np.uint64(_GARBAGE)

    def _spoil(self) -> None:
        if self.free_pages is None:
            return
        for pool, pages in zip((self.full, self.swa), self.free_pages(), strict=True):
            pool.reshape(-1, self.page_size)[pages] = _GARBAGE
