"""Units are types, and the arithmetic of an insert stop counts key units."""

from typing import get_type_hints

import pytest

from radixledger.cache import window
from radixledger.journal.units import KeyLen, PageCount, PageId, Slot, TokenCount


def test_lengths_of_keys_tokens_pages_and_slots_are_different_types() -> None:
    """R19, R256: what is handed where the other belongs is found by the type checker."""
    units = [KeyLen, TokenCount, PageCount, PageId, Slot]
    assert len({unit.__name__ for unit in units}) == len(units)
    hints = get_type_hints(window.insert_stop)
    assert (hints["key_len"], hints["return"]) == (KeyLen, KeyLen)
    assert get_type_hints(window.frontier)["return"] is TokenCount
    assert get_type_hints(window.pages_for)["return"] is PageCount


@pytest.mark.parametrize(
    ("page_size", "key_len", "stop"),
    [
        (4, -1, 0),
        (4, 0, 0),
        (4, 3, 0),
        (4, 4, 4),
        (4, 15, 12),
        (4, 16, 16),
        (1, 7, 7),
        (64, 1023, 960),
        (64, 1024, 1024),
    ],
)
def test_an_insert_stops_at_the_last_whole_page_of_its_key(page_size: int, key_len: int, stop: int) -> None:
    """R257: of the key, which a bigram key of 16 tokens makes 15 long."""
    assert window.insert_stop(KeyLen(key_len), page_size) == stop


@pytest.mark.parametrize(
    ("page_size", "window_tokens", "pre", "formula", "frontier"),
    [
        (4, 7, 14, "rfc", 0),
        (4, 7, 14, "tight", 4),
        (64, 127, 1022, "rfc", 768),
        (64, 127, 1022, "tight", 832),
        (64, 127, 1023, "rfc", 832),
        (1, 4, 16, "rfc", 11),
        (4, 4, -1, "rfc", 0),
    ],
)
def test_a_frontier_before_an_insert_is_told_the_key_length_less_one(
    page_size: int, window_tokens: int, pre: int, formula: str, frontier: int
) -> None:
    """R257, R258: the published shapes, raw and bigram; a negative length leaves the frontier where it is."""
    found = window.frontier(0, pre, window_tokens=window_tokens, page_size=page_size, formula=formula)
    assert found == frontier
    with pytest.raises(ValueError, match="formula"):
        window.frontier(0, pre, window_tokens=window_tokens, page_size=page_size, formula="published")
