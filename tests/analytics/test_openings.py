"""What a rank says that it was built with: the check of words and sizes, which analytics cannot ask the cache about."""

from typing import Any

import pytest

from radixledger.cache.config import STATES_LEAST
from radixledger.cache.keys import KEY_MODES
from radixledger.cache.standing import POLICIES
from radixledger.cache.traits import TRAITS
from radixledger.cache.window import FORMULAS

from .asked import answered, findings, loaded, only
from .story import Row, Story, first_request

OUT_OF_BOUNDS = {
    "key_mode": "trigram", "formula": "max", "tombstone_leaf": "", "swa_victims": "fifo", "eviction": "fifo",
    "recurrent_mode": "none", "host_write": "never", "track_interval": -1, "rows": 0, "context_pages": 1 << 31,
    "window_tokens": 0, "swa_pages": -1, "full_pages": 0, "host_pages": -1, "recurrent_slots": 1 << 31,
    "host_threshold": 0, "page_size": 0,
}  # fmt: skip
"""A value that no cache can have, by the field of the configuration."""

WORDS = {
    "key_mode": KEY_MODES, "formula": FORMULAS, "eviction": POLICIES, "swa_victims": ("lru", "use"),
    "tombstone_leaf": ("veto", "materialise"), "host_write": ("through", "back"), "recurrent_mode": STATES_LEAST,
}  # fmt: skip
"""The words that a cache can be built with, by the field of the configuration."""


def out_of_bounds(*stories: Story) -> list[Row]:
    return answered(loaded(*stories), "opening_out_of_bounds")


def opened(run: str, **changed: Any) -> Story:
    """A rank that is opened again with another configuration."""
    story = Story(run)
    story.open(**changed)
    return story


def test_each_word_and_size_of_an_opening_has_its_bounds() -> None:
    """R14."""
    found = out_of_bounds(*(opened(field, **{field: value}) for field, value in OUT_OF_BOUNDS.items()))
    assert sorted(only(found, "run", "field", "value")) == sorted(
        (field, field, str(value)) for field, value in OUT_OF_BOUNDS.items()
    )


def test_a_route_that_nobody_knows_is_out_of_bounds() -> None:
    found = out_of_bounds(Story("told", route="lru"))
    assert only(found, "seq", "field", "value") == [(1, "route", "lru")]


def test_pages_whose_slots_do_not_fit_are_out_of_bounds() -> None:
    """B141: page size and pages are possible, each by itself."""
    found = out_of_bounds(opened("told", page_size=1 << 16, full_pages=1 << 16, swa_pages=1 << 16))
    assert only(found, "field") == [("last FULL slot",), ("last SWA slot",)]


@pytest.mark.parametrize("size", [1 << 62, (1 << 63) - 1, -(1 << 63), (1 << 31) - 1])
def test_sizes_beyond_all_bounds_stop_no_other_check(size: int) -> None:
    """J22: what a check multiplies fits, whatever an opening says."""
    sizes = ("page_size", "full_pages", "swa_pages", "host_pages", "recurrent_slots", "window_tokens")
    story = opened("told", **dict.fromkeys(sizes, size))
    first_request(story)
    story.ledger("idle")
    assert "opening_out_of_bounds" in findings(story)


def test_every_route_and_word_that_there_is_can_be_opened() -> None:
    stories = [Story(route, route=route) for route in TRAITS]
    stories += [
        opened(f"{field} {word}", **{field: word}) for field, known in WORDS.items() for word in known
    ]
    assert out_of_bounds(*stories) == []
