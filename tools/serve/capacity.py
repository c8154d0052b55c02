"""What one rank can hold at all, and who is turned away at the door because of it.

Rule: "never" is told from "not now" here and nowhere else (B109, B116): what passes can be served by a rank that
serves nobody else, whatever its tree holds; how, the scheduler knows.
"""

from typing import NamedTuple

from radixledger.cache.window import floor_page, pages_for
from radixledger.tools.serve.requests import Request


class Capacity(NamedTuple):
    """The sizes of one rank: pages of both pools, and how long a sequence may be. Without a window SWA is 0 of all."""

    page_size: int
    full_pages: int
    swa_pages: int
    window_tokens: int
    context_tokens: int
    free_out_of_window: bool = True


def least_swa_pages(tokens: int, capacity: Capacity) -> int:
    """SWA pages that a sequence needs in order to grow to `tokens`, one token at a time, with all the rest given back.

    Before the last token, [frontier(n - 1), n) is held, with the `rfc` margin of one page (R130), and one page more is
    taken. For a long sequence that is `2 + ceil((W + 1) / P)` pages.
    """
    page_size, window = capacity.page_size, capacity.window_tokens
    if not window:
        return 0
    if not capacity.free_out_of_window:
        return pages_for(tokens, page_size)
    # The margin repeats with every page, so the last whole page of growth has seen the worst of it.
    longest = 0
    for held in range(max(0, tokens - page_size - 1), tokens):
        released = max(0, floor_page(held - 1 - window - page_size, page_size))
        longest = max(longest, pages_for(held + 1, page_size) - released // page_size)
    return longest


def why_never(request: Request, capacity: Capacity) -> str | None:
    """Why this rank can never serve a request, with the numbers; None if it can."""
    tokens = request.kv_tokens
    if not request.input_ids or request.max_new_tokens < 1:
        asked = f"{len(request.input_ids)} prompt tokens and {request.max_new_tokens} to come"
        return f"{asked}: one of each is the least that can be served"
    whole = f"{len(request.input_ids)} prompt tokens and {request.max_new_tokens} to come"
    if tokens > capacity.context_tokens:
        return f"{whole} take {tokens} positions; a sequence has at most {capacity.context_tokens}"
    full = pages_for(tokens, capacity.page_size)
    if full > capacity.full_pages:
        return f"{whole} take {full} FULL pages of {capacity.page_size} tokens; the rank has {capacity.full_pages}"
    swa = least_swa_pages(tokens, capacity)
    if swa > capacity.swa_pages:
        return (
            f"{whole} take {swa} SWA pages of {capacity.page_size} tokens at a time, for a window of "
            f"{capacity.window_tokens}; the rank has {capacity.swa_pages}"
        )
    return None
