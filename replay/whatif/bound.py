"""What the best order of FULL victims could have reached: Belady's bound for a list of keys, page by page.

Belady's rule evicts the page whose next use lies furthest ahead, which nobody can know who serves. It is a bound, not a
goal, and it assumes more than that: all of FULL is there for prefixes, and nothing is taken by what runs; a page may be
reused as soon as it was asked for, though it is computed later; pages count one by one, though a prefix without its
beginning is of no use; and requests come in the order that it is given. SWA is not asked: every window is there.
"""

from array import array
from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

TOGETHER = 4096
"""Uses that are looked at as Python numbers at once."""

_BITS = 40
_PAGE = (1 << _BITS) - 1
"""In an entry of the heap, when a page is asked for again stands above the page's number."""


class Use(NamedTuple):
    """A key that was asked for: its first `pages` pages; of a prompt they count as hits, at a request's end not."""

    key: bytes
    pages: int
    is_prompt: bool
    namespace: bytes = b""


def best_hits(uses: Iterable[Use], *, stride: int, capacity: int) -> int:
    """Pages of prompts that Belady's rule would have found in `capacity` pages. stride: bytes of key per page.

    Memory: about 50 bytes for each page that is asked for, and what is kept.
    """
    pages, prompts = _numbered(uses, stride)
    ahead = _next_uses(pages)
    hits, kept, furthest = 0, dict[int, int](), list[int]()
    for start in range(0, len(pages), TOGETHER):
        stop = start + TOGETHER
        part = zip(pages[start:stop].tolist(), prompts[start:stop], ahead[start:stop].tolist(), strict=True)
        for page, is_prompt, again in part:
            hits += page in kept and is_prompt
            if page not in kept and len(kept) >= capacity:
                while kept.get(-furthest[0] & _PAGE) != -furthest[0] >> _BITS:
                    heappop(furthest)
                if -furthest[0] >> _BITS <= again:
                    continue  # whoever is asked for later than all that is kept is not worth keeping
                del kept[-heappop(furthest) & _PAGE]
            kept[page] = again
            heappush(furthest, -(again << _BITS | page))
        if len(furthest) > 2 * len(kept):  # entries of uses that are past are never the furthest
            furthest = [-(again << _BITS | page) for page, again in kept.items()]
            heapify(furthest)
    return hits


def _numbered(uses: Iterable[Use], stride: int) -> tuple[NDArray[np.int64], bytearray]:
    """Every page that is asked for, in order, as the number of its prefix; and whether a prompt asked."""
    prefixes, prompts = array("q"), bytearray()
    for use in uses:
        prefix = hash((0, use.namespace))
        for at in range(0, use.pages * stride, stride):
            prefix = hash((prefix, use.key[at : at + stride]))
            prefixes.append(prefix)
        prompts += bytes((use.is_prompt,)) * use.pages
    _, numbers = np.unique(np.frombuffer(prefixes, np.int64), return_inverse=True)
    return numbers.astype(np.int64), prompts


def _next_uses(pages: NDArray[np.int64]) -> NDArray[np.int64]:
    """When each page is asked for again; behind all uses: never."""
    order = np.argsort(pages, kind="stable")
    ahead = np.full(len(pages), len(pages), np.int64)
    same = pages[order[:-1]] == pages[order[1:]]
    ahead[order[:-1][same]] = order[1:][same]
    return ahead
