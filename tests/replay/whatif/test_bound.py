"""Belady's bound: never below what any order of victims finds."""

from itertools import product

import numpy as np

from radixledger.cache.keys import raw_key
from radixledger.replay.whatif.bound import Use, best_hits

STRIDE = 4


def uses(texts: list[str], namespace: bytes = b"") -> list[Use]:
    return [Use(raw_key([ord(letter) for letter in text]), len(text), True, namespace) for text in texts]


def best_by_hand(pages: list[str], capacity: int) -> int:
    """The most hits over every choice of a victim (or of not keeping the page at all)."""
    states: dict[frozenset[str], int] = {frozenset(): 0}
    for page in pages:
        after: dict[frozenset[str], int] = {}
        for kept, hits in states.items():
            choices = [kept] if page in kept else [kept | {page}] if len(kept) < capacity else [
                kept, *((kept - {out}) | {page} for out in kept)
            ]  # fmt: skip
            for choice in choices:
                after[choice] = max(after.get(choice, 0), hits + (page in kept))
        states = after
    return max(states.values())


def test_no_choice_of_victims_hits_more_and_one_hits_as_much() -> None:
    chance = np.random.Generator(np.random.PCG64(5))
    for capacity, _ in product((1, 2, 3), range(6)):
        pages = ["abcde"[letter] for letter in chance.integers(0, 5, 14)]
        assert best_hits(uses(pages), stride=STRIDE, capacity=capacity) == best_by_hand(pages, capacity)


def test_a_page_is_known_by_what_stands_before_it_and_by_its_namespace() -> None:
    assert best_hits(uses(["ab", "ab"]), stride=STRIDE, capacity=9) == 2
    assert best_hits(uses(["ab", "cb"]), stride=STRIDE, capacity=9) == 0
    assert best_hits([*uses(["ab"]), *uses(["ab"], b"other")], stride=STRIDE, capacity=9) == 0


def test_what_is_kept_at_the_end_is_asked_for_by_nobody() -> None:
    kept = [use._replace(is_prompt=False) for use in uses(["ab"])]
    assert best_hits([*kept, *kept], stride=STRIDE, capacity=9) == 0
    assert best_hits([*kept, *uses(["ab"])], stride=STRIDE, capacity=9) == 2
