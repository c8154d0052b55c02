"""What a law of the state is: a small function whose name says what holds, and which yields what does not.

A law reads a state between two commands and never writes. Rule: a law is total. On a state that was folded
from a lawless journal it may meet pages, nodes and requests that do not exist; then it says so and stops.
"""

from collections.abc import Callable, Iterator
from functools import wraps
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from radixledger.cache.state import Finding, State, in_words
from radixledger.journal.units import NO_PAGES, Pages

Law = Callable[[State], Iterator[Finding]]

FINDINGS_PER_LAW = 16
PAGES_SHOWN = 8


class Breach(NamedTuple):
    """One way in which a law does not hold."""

    detail: str
    pool: int = 0
    pages: Pages = NO_PAGES
    expected: int = 0
    found: int = 0


def law(check: Callable[[State], Iterator[Breach]]) -> Law:
    """Make a check a law: its breaches become findings under its name, `FINDINGS_PER_LAW` at most."""

    @wraps(check)
    def findings(state: State) -> Iterator[Finding]:
        try:
            for breach in islice(check(state), FINDINGS_PER_LAW):
                yield Finding(state.seq, check.__name__, *breach)
        except (KeyError, IndexError, AttributeError, ValueError, TypeError, OverflowError) as error:
            # Something names what does not exist, so that this law cannot even be asked.
            yield Finding(state.seq, check.__name__, f"cannot be asked: {in_words(error)}")

    return findings


def packed(pages: NDArray[np.integer]) -> Pages:
    """Page ids as they stand in a finding."""
    return Pages(pages.astype("<i4").tobytes())


def pages_are(pages: NDArray[np.integer], one: str, several: str) -> str:
    """`page 5 is`, `pages 5, 6 are`: the subject of a sentence, with the verb that its number wants."""
    return f"page {shown(pages)} {one}" if pages.size == 1 else f"pages {shown(pages)} {several}"


def shown(pages: NDArray[np.integer]) -> str:
    """The first pages of a list, and how many more there are."""
    more = f" and {pages.size - PAGES_SHOWN} more" if pages.size > PAGES_SHOWN else ""
    return ", ".join(map(str, pages[:PAGES_SHOWN].tolist())) + more
