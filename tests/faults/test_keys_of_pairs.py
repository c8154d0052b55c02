"""Faults that people met with keys of pairs, as EAGLE has them: lengths, kinds and costs."""

import tracemalloc

import numpy as np
import pytest

from radixledger.cache.keys import bigram_key, broken_pair
from radixledger.journal.events import Matched

from ..cache.server import Server, text
from ..cache.sliding import Sliding, roomy


@pytest.mark.parametrize("stop", range(10))
def test_a_key_shorter_than_a_page_of_pairs_is_looked_up_without_a_fuss(stop: int) -> None:
    """B63 (pairs): 4 tokens give 0, 5 give 4, and so on in a tree that holds 16; nothing is cut off a word."""
    server = Server(4, 4, full_pages=64, swa_pages=64, is_eagle=True)
    server.insert(text("a", 0, 17))
    assert server.hit(text("a", 0, stop)) == max(stop - 1, 0) // 4 * 4
    assert server.match(text("a", 0, stop)).device_indices.size == max(stop - 1, 0) // 4 * 4
    server.check()


def test_pages_of_pairs_are_found_by_every_path_alike() -> None:
    """B65, R257: peek, match and admission agree, whoever cached and in whichever way."""
    case = Sliding(roomy(4, 4, 80, "bigram"), 21)
    key = case.key(21)
    assert case.rank.cache_unfinished(case.request, case.key(60), 13) == 12
    assert case.rank.finish(case.request, key) == 20
    assert case.rank.peek(key).tokens == case.rank.match(key).tokens == 20
    assert case.rank.admit("again", key, 21).hit.tokens == 20
    asked = [event.asked for event in case.tape.events if isinstance(event, Matched)]
    assert asked[1:] == [20, 20]


def test_a_key_of_pairs_is_built_as_one_array() -> None:
    """B144: no object per pair: a long key takes its own size and no more, where an int alone is 28 bytes."""
    tokens = np.arange(200_000, dtype=np.int32)
    tracemalloc.start()
    try:
        key = bigram_key(tokens)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < len(key) + 10_000


def test_a_key_of_pairs_is_looked_through_once() -> None:
    """B144: whether a key is one of pairs is seen in one pass, without an object per pair."""
    key = bigram_key(np.arange(200_000, dtype=np.int32))
    tracemalloc.start()
    try:
        assert broken_pair(key) == -1
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < len(key) // 4
