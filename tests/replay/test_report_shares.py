"""A page that many ranks share stays small, and shows most of the rank that went wrong."""

import re

import pytest

from radixledger.journal.accounts import Pool
from radixledger.replay.report.cells import NUMBER_FIELDS, POOLS
from radixledger.replay.report.drawing import HEIGHT, WIDTH, chart
from radixledger.replay.report.occupancy import MARKS, Bucket
from radixledger.replay.report.shares import BUCKETS, DETAIL_EVENTS, LEAST_BUCKETS, shares


@pytest.mark.parametrize("found", [[True], [False] * 64, [True] * 7 + [False], [False] * 63 + [True]])
def test_the_shares_of_all_ranks_are_one_page_and_nobodys_is_larger_without_a_finding(
    found: list[bool],
) -> None:
    parts = shares(found)
    assert sum(each.detail_events for each in parts) <= DETAIL_EVENTS
    clean = max(
        (part.detail_events for part, wrong in zip(parts, found, strict=True) if not wrong), default=0
    )
    assert all(part.detail_events >= clean for part, wrong in zip(parts, found, strict=True) if wrong)


def test_the_one_rank_of_many_that_went_wrong_has_most_of_the_page() -> None:
    *clean, wrong = shares([False] * 63 + [True])
    assert wrong.detail_events == 0.75 * DETAIL_EVENTS
    assert wrong.buckets == BUCKETS
    assert {each.buckets for each in clean} == {LEAST_BUCKETS}
    assert shares([True]) == shares([False])


def test_a_chart_says_the_same_with_a_step_for_each_change_only() -> None:
    """Each area's upper edge, read off its path, is the level of every bucket; where nothing changes nothing is drawn."""
    free = [8, 8, 8, 5, 5, 2, 2, 2, 2, 8]
    buckets = [_bucket(10 * place + 9, each) for place, each in enumerate(free)]
    drawn = chart(Pool.FULL, buckets, 0)
    (edge,) = re.findall(r'class="a-request" d="(M[^"]+)Z"', drawn)
    levels = _levels(edge, len(free))
    assert levels == [round(HEIGHT - HEIGHT * (9 - each) / 9, 1) for each in free]
    assert edge.count("H") == 5, "three changes there, and the end of each way"


def _bucket(seq: int, free: int) -> Bucket:
    numbers = dict.fromkeys(NUMBER_FIELDS, 0)
    full = POOLS[Pool.FULL]
    numbers |= {f"{full}_capacity": 8, f"{full}_free": free, f"{full}_request": 8 - free}
    return Bucket(seq, 0, 0, tuple(numbers.values()), [free] * len(POOLS), [0] * len(MARKS))


def _levels(path: str, count: int) -> list[float]:
    """The level in the middle of each of so many equal stretches, of the line that a path draws to the right."""
    x, y = 0.0, float(path.split("H", maxsplit=1)[0].split("V", maxsplit=1)[0].split()[1])
    spans: list[tuple[float, float]] = []
    for kind, value in re.findall(r"([HV])([\d.]+)", path):
        if kind == "V":
            y = float(value)
        elif float(value) < x:
            break
        else:
            x = float(value)
            spans.append((x, y))
    middles = [WIDTH * (10 * place + 5) / (10 * count - 1) for place in range(count)]
    return [next(level for end, level in spans if middle <= end) for middle in middles]
