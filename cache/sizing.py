"""How many SWA pages a workload needs: the rule that sizes the second pool, and the rule that splits one memory in two.

A running request needs its window and two pages at its ends, the batch one prefill chunk, and every prefix that
should stay reusable the window before its end. Pure functions; the server and the drivers say what they gave. What lies
in the SWA pool beyond that is of use to nobody, but only where victims are chosen by use is that much enough: by
recency alone, pages that nobody can need stand before pages that somebody does.
"""

from typing import NamedTuple

from radixledger.cache.window import pages_for, window_pages
from radixledger.journal.units import PageCount

PREFIX_TOKENS = 4096
"""How long a kept prefix is where nobody says: the FULL pages that go with one window."""


class Split(NamedTuple):
    """Pages of both pools."""

    full: PageCount
    swa: PageCount


def swa_pages_for(
    *, window_tokens: int, page_size: int, running: int, chunk_tokens: int, kept_prefixes: int
) -> PageCount:
    """`running x (W/P + 2) + chunk/P + kept x (W/P + 1)`, in pages."""
    window = window_pages(window_tokens, page_size)
    chunk = pages_for(chunk_tokens, page_size)
    return PageCount(running * (window + 2) + chunk + kept_prefixes * (window + 1))


def split_pages(
    total: int,
    *,
    window_tokens: int,
    page_size: int,
    running: int,
    chunk_tokens: int,
    prefix_tokens: int = PREFIX_TOKENS,
) -> Split:
    """`total` pages in two pools, so that each prefix that FULL can keep, `prefix_tokens` long, keeps its window too.

    What the running requests need of SWA comes first; of the rest each prefix takes `prefix/P` pages of FULL and
    `W/P + 1` of SWA. Raises ValueError where not one prefix fits.
    """
    sizes = {
        "window_tokens": window_tokens,
        "page_size": page_size,
        "running": running,
        "chunk_tokens": chunk_tokens,
    }
    each = pages_for(max(prefix_tokens, 1), page_size) + window_pages(window_tokens, page_size) + 1
    kept = (total - swa_pages_for(**sizes, kept_prefixes=0)) // each
    if kept < 1:
        raise ValueError(f"{total} pages hold no prefix of {prefix_tokens} tokens beside {running} requests")
    swa = swa_pages_for(**sizes, kept_prefixes=kept)
    return Split(PageCount(total - swa), swa)
