"""Who is turned away at the door: exactly those whom an empty rank could not serve."""

import pytest

from radixledger.cache.window import frontier, pages_for
from radixledger.tools.serve.capacity import Capacity, least_swa_pages, why_never

from .house import House, ask, prompt_of


def test_the_least_swa_pages_are_those_of_a_sequence_that_gives_back_all_it_may() -> None:
    """Brute force over the whole growth, with the frontier of R130."""
    for page_size in (1, 2, 4, 7, 16):
        for window in range(1, 40, 3):
            capacity = Capacity(page_size, 99, 99, window, 999)
            worst = 0
            for held in range(4 * (window + page_size)):
                released = frontier(0, held - 1, window_tokens=window, page_size=page_size)
                worst = max(worst, pages_for(held + 1, page_size) - released // page_size)
                assert least_swa_pages(held + 1, capacity) == worst, (page_size, window, held)
            assert worst == 2 + pages_for(window + 1, page_size)


@pytest.mark.parametrize(
    ("prompt", "count", "numbers"),
    [
        (100, 4, ("103 positions", "at most 64")),
        (40, 9, ("12 FULL pages", "has 11")),
        (1, 45, ("12 FULL pages", "has 11")),
    ],
)
def test_what_can_never_fit_is_refused_with_the_numbers_and_the_next_is_served(
    prompt: int, count: int, numbers: tuple[str, ...]
) -> None:
    """B116: a prompt larger than the pools, or one that would outgrow them, does not stop those behind it."""
    house = House(page_size=4, full_pages=11, swa_pages=11, window_tokens=4, context_pages=16)
    turned_away, served = house.serve(ask("big", prompt_of(1, prompt), count), ask("small", prompt_of(2, 4)))
    assert (turned_away.finish_reason, turned_away.output_ids) == ("refused", [])
    assert all(number in str(turned_away.error) for number in numbers)
    assert served.finish_reason == "length"


def test_the_last_request_that_fits_full_and_the_first_that_does_not() -> None:
    """B116, to the token: 44 positions are 11 pages of 4."""
    capacity = Capacity(page_size=4, full_pages=11, swa_pages=11, window_tokens=4, context_tokens=99)
    assert why_never(ask("a", prompt_of(1, 40), 5), capacity) is None
    assert why_never(ask("a", prompt_of(1, 40), 6), capacity) is not None


def test_a_prompt_far_larger_than_the_swa_pool_runs_in_chunks_that_fit() -> None:
    """B109: 20 tokens through 16 slots of SWA, with a chunk size of 16; the request behind it is served too."""
    house = House(page_size=4, full_pages=16, swa_pages=4, window_tokens=4, chunk_tokens=16)
    results = house.serve(ask("r1", prompt_of(1, 20)), ask("r2", prompt_of(2, 4)))
    assert [result.finish_reason for result in results] == ["length", "length"]
    house.check_idle()
    assert house.engine.steps < 30


def test_a_window_that_the_swa_pool_cannot_hold_is_refused_with_the_numbers() -> None:
    """B109: with one page less, no chunk is small enough."""
    house = House(page_size=4, full_pages=16, swa_pages=3, window_tokens=4, chunk_tokens=16)
    big, small = house.serve(ask("r1", prompt_of(1, 20)), ask("r2", prompt_of(2, 4)))
    assert big.finish_reason == "refused"
    assert "4 SWA pages" in str(big.error)
    assert "the rank has 3" in str(big.error)
    assert small.finish_reason == "length"
