"""How many SWA pages a workload needs: the rule that sizes the second pool.

A running request needs its window and two pages at its ends, the batch one prefill chunk, and every prefix that
should stay reusable the window before its end. A pure function; the server and the drivers say what it gave.
"""

from radixledger.cache.window import pages_for, window_pages
from radixledger.journal.units import PageCount


def swa_pages_for(
    *, window_tokens: int, page_size: int, running: int, chunk_tokens: int, kept_prefixes: int
) -> PageCount:
    """`running x (W/P + 2) + chunk/P + kept x (W/P + 1)`, in pages."""
    window = window_pages(window_tokens, page_size)
    chunk = pages_for(chunk_tokens, page_size)
    return PageCount(running * (window + 2) + chunk + kept_prefixes * (window + 1))
