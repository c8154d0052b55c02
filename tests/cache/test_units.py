"""Units are types, and the arithmetic of an insert stop counts key units."""

import os
import re
from pathlib import Path
from typing import get_type_hints

import pytest
from mypy import api

from radixledger.cache import window
from radixledger.cache.decide.growth import key_units
from radixledger.cache.state import State
from radixledger.journal.units import KeyLen, PageCount, PageId, Slot, TokenCount


def test_lengths_of_keys_tokens_pages_and_slots_are_different_types() -> None:
    """R19, R256: what is handed where the other belongs is found by the type checker."""
    units = [KeyLen, TokenCount, PageCount, PageId, Slot]
    assert len({unit.__name__ for unit in units}) == len(units)
    hints = get_type_hints(window.insert_stop)
    assert (hints["key_len"], hints["return"]) == (KeyLen, KeyLen)
    assert get_type_hints(window.frontier)["return"] is TokenCount
    assert get_type_hints(window.key_length) == {
        "tokens": TokenCount,
        "lookahead": TokenCount,
        "return": KeyLen,
    }
    assert get_type_hints(key_units)["return"] is get_type_hints(State.key_length)["return"] is KeyLen
    assert get_type_hints(window.pages_for)["return"] is PageCount


MIXED = """
from radixledger.cache.window import insert_stop, key_length
from radixledger.journal.units import KeyLen, TokenCount

tokens, units = TokenCount(16), KeyLen(15)
insert_stop(units, 4)
insert_stop(key_length(tokens, TokenCount(1)), 4)
insert_stop(tokens, 4)
insert_stop(16, 4)
key_length(units, TokenCount(1))
key_length(tokens, KeyLen(1))
"""


def test_the_type_checker_tells_pairs_from_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R256, R271: a length of one unit where the other belongs is an error of types, each of the four below."""
    (tmp_path / "mixed.py").write_text(MIXED, "utf-8")
    monkeypatch.setenv("MYPYPATH", os.fspath(Path(__file__).parents[2] / "src"))
    monkeypatch.chdir(tmp_path)
    told, _, _ = api.run(["--strict", "--follow-imports=silent", "--cache-dir", "cache", "mixed.py"])
    assert [int(line) for line in re.findall(r"^mixed.py:(\d+): error: .*arg-type", told, re.MULTILINE)] == [
        8,
        9,
        10,
        11,
    ], told


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
