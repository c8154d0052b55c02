"""The arithmetic of windows, pages and frontiers: pure functions of integers.

It knows neither tree nor pool. Rule: a frontier is computed from a key length, never from a
token count (R256); positions are tokens from the start of the sequence, and everything that is
given back ends on a page boundary (R82, R136).
"""

from radixledger.journal.units import KeyLen, PageCount, TokenCount

FORMULAS = ("rfc", "tight")
"""`rfc`: pre - W - P. `tight`: pre - ceilP(max(W, P)). The published pre - max(W, P) is unsafe for raw keys
whenever W > P and W mod P is neither 0 nor P - 1 (A26b), so it is not offered."""


NEVER = 1 << 30
"""A length that int32 lengths do not reach, with room above for what is in flight."""


def floor_page(tokens: int, page_size: int) -> int:
    """The largest page boundary at or below `tokens`; works for negative positions too."""
    return tokens - tokens % page_size


def pages_for(tokens: int, page_size: int) -> PageCount:
    """How many pages `tokens` tokens need."""
    return PageCount(-(-tokens // page_size))


def window_pages(window_tokens: int, page_size: int) -> PageCount:
    """Pages in the smallest page-aligned suffix that covers the window, `ceilP(W) / P` (R77, R78)."""
    return pages_for(window_tokens, page_size)


def key_length(tokens: TokenCount, lookahead: TokenCount) -> KeyLen:
    """`K`: the units of a key over so many tokens; raw keys look no token ahead, bigram keys one (R257)."""
    return KeyLen(max(tokens - lookahead, 0))


def insert_stop(key_len: KeyLen, page_size: int) -> KeyLen:
    """`B = floorP(K)`: where an insert of a key of this length ends (R257)."""
    return KeyLen(floor_page(max(key_len, 0), page_size))


def frontier(old: int, pre: int, *, window_tokens: int, page_size: int, formula: str = "rfc") -> TokenCount:
    """The position below which a request's SWA may be given back (R129-R134, A25).

    old: the larger of the cursor and the protected length, a page boundary or, from a foreign caller, not (A25).
    pre: key length - 1 on the insert path (R258), sequence length - 1 on decode.
    Never less than `old`; a page boundary whenever it is more. Without a window (W = 0) nothing is ever out of it.
    """
    if not window_tokens:
        return TokenCount(old)
    if formula == "rfc":
        reach = pre - window_tokens - page_size
    elif formula == "tight":
        reach = pre - pages_for(max(window_tokens, page_size), page_size) * page_size
    else:
        raise ValueError(f"formula {formula!r} is not one of {', '.join(FORMULAS)}")
    return TokenCount(max(old, floor_page(max(old, reach), page_size)))


def next_reclaim(old: int, *, window_tokens: int, page_size: int, formula: str = "rfc") -> int:
    """The smallest `pre` at which `frontier` passes the page boundary `old`.

    Decode compares lengths with it, so that a step in which no request crosses costs one comparison. NEVER
    without a window.
    """
    if not window_tokens:
        return NEVER
    margin = page_size if formula == "rfc" else 0
    reach = (
        window_tokens if formula == "rfc" else pages_for(max(window_tokens, page_size), page_size) * page_size
    )
    return old + reach + margin + page_size
