"""Times as command lines name them: one grammar, whichever option takes them."""

import pytest

from radixledger.tools.event_text import time_text
from radixledger.tools.times import time_ns_of

NOON = 1_769_860_800 * 10**9
"""2026-01-31T12:00:00Z."""


@pytest.mark.parametrize("begun", [0, 5 * 10**9, NOON])
@pytest.mark.parametrize("text", ["+1500ms", "+1500", "+1.5s", "1.5s", "1500ms"])
def test_a_time_since_the_beginning_counts_from_there_and_in_virtual_time_from_0(
    text: str, begun: int
) -> None:
    """A run in virtual time began at 0, whatever its first event says."""
    assert time_ns_of(text, begun) == 1_500_000_000 + (begun if begun == NOON else 0)


@pytest.mark.parametrize("text", ["2026-01-31T12:00:00Z", "2026-01-31T12:00", "2026-01-31T13:00:00+01:00"])
def test_a_time_of_the_calendar_is_of_utc_if_it_does_not_say(text: str) -> None:
    assert time_ns_of(text, 0) == NOON


@pytest.mark.parametrize("time_ns", [0, 1_500_000_000, NOON, NOON + 123_456_000])
def test_what_a_table_shows_can_be_given_back(time_ns: int) -> None:
    assert time_ns_of(time_text(time_ns), 0) == time_ns


@pytest.mark.parametrize(
    "text", ["yesterday", "", "s", "+", "+s", "+1e400s", "nan s", "+nan", "+infs", "10000-01-01"]
)
def test_what_is_no_time_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="is no time; 2026-01-31"):
        time_ns_of(text, 0)
