"""Where free pages stand in their queue: how a page is told that nobody has.

Rule: reads only.
"""

import numpy as np

from radixledger.cache.ledger import PoolBook
from radixledger.cache.state import State
from radixledger.journal.accounts import Pool


def books(state: State) -> dict[Pool, PoolBook]:
    """The book of each pool."""
    return {
        Pool.FULL: state.full,
        Pool.SWA: state.swa,
        Pool.RECURRENT: state.recurrent,
        Pool.HOST: state.host,
    }


def free_places(book: PoolBook, wanted: bytes) -> dict[int, int]:
    """The places of pages among the free ones; it is looked where they lie mostly, and then everywhere."""
    free, numbers = bytes(book.free), np.frombuffer(wanted, "<i4").tolist()
    first = _places(free[: len(wanted)])
    return first if all(number in first for number in numbers) else _places(free)


def _places(packed: bytes) -> dict[int, int]:
    return {page: place for place, page in enumerate(np.frombuffer(packed, "<i4").tolist())}
