"""Both routes serve the same schedules; every hit that differs has the name of a rule (R2, R24)."""

import re
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from radixledger.journal.causes import Operation, cause
from radixledger.journal.events import Matched, Repointed

from .differential import STEPS, CacheSide, Difference, differences, hits, schedule
from .machine import opened
from .model_tree import Shape
from .witnesses import Tape

TIGHT = {
    "page 1, window 4": Shape(1, 4, 40, 20, row_pages=18),
    "page 4, window 3": Shape(4, 3, 30, 14, row_pages=16, formula="tight"),
    "page 4, window 6": Shape(4, 6, 30, 16, row_pages=16),
    "page 16, window 40": Shape(16, 40, 36, 22, row_pages=16),
}
"""Pools that hold a few conversations, so that both routes evict all the time: W below and above P."""

ROOMY = {
    "page 1, window 4": Shape(1, 4, 600, 600, row_pages=18),
    "page 4, window 6": Shape(4, 6, 600, 600, row_pages=16),
    "page 16, window 16": Shape(16, 16, 600, 600, row_pages=16),
    "page 128, window 200": Shape(128, 200, 600, 600, row_pages=16),
    "page 256, window 100": Shape(256, 100, 600, 600, row_pages=16),
}
SEEDS = range(8)
PAGE = Path(__file__).parents[1] / "docs" / "legacy-route.md"


@cache
def found(name: str) -> list[Difference]:
    """All differences under one shape."""
    return [each for seed in SEEDS for each in differences(schedule(seed, TIGHT[name]), TIGHT[name])]


@pytest.mark.parametrize("name", ROOMY)
def test_the_routes_hit_alike_where_nothing_is_evicted(name: str) -> None:
    """R24, R75: whatever prefixes are shared and wherever requests end."""
    shape = ROOMY[name]
    for seed in range(6):
        plan = schedule(seed, shape)
        unified, legacy = (hits(CacheSide(shape, route), plan) for route in ("unified", "legacy"))
        assert unified == legacy
        assert sum(unified) > 0


@pytest.mark.parametrize("name", TIGHT)
def test_every_hit_that_differs_has_the_name_of_a_rule(name: str) -> None:
    """R2: the models between both routes differ in one rule each; where a hit changes, that rule is the reason.

    The first model says what the unified route says, hit by hit, and the last one what the legacy route says.
    """
    assert found(name), "pools are so large that no rule is seen at work"
    assert [each for each in found(name) if not each.rules] == []


def counted() -> Counter[str]:
    """How many differences each rule had a part in."""
    return Counter(rule for name in TIGHT for each in found(name) for rule in each.rules)


def test_rules_that_cannot_change_a_hit_never_do() -> None:
    """A21, R72: a request locks the end of a live window, so no lock meets a gap; the others all are at work."""
    assert {name for name, _ in STEPS} - set(counted()) == {"lock over a tombstone A21"}


def test_a_request_finds_its_own_path_whole_by_either_rule() -> None:
    """R72, R149, R260: the legacy route asks the window again, and it is always there, so nothing depends on it."""
    shape = TIGHT["page 4, window 6"]
    asked = 0
    for seed in SEEDS:
        tape = Tape(opened(replace(shape, route="legacy")))
        hits(CacheSide(shape, "legacy", tape), schedule(seed, shape))
        for event, then in zip(tape.events, tape.events[1:], strict=False):
            if isinstance(event, Matched) and event.cause == cause(Operation.UNFINISHED):
                assert isinstance(then, Repointed)
                assert event.hit == event.full_hit == event.asked == then.protected
                asked += 1
    assert asked > 300


def table() -> list[tuple[str, str]]:
    """The rules of the page, and how often each had a part."""
    return [(name, str(counted()[name])) for name, _ in STEPS]


def test_the_page_tells_how_often_each_rule_makes_a_difference() -> None:
    """The numbers of the page are those of these schedules."""
    text = PAGE.read_text("utf-8")
    rows = re.findall(r"^\| ([^|]+?) \| (\d+) \|$", text, re.MULTILINE)
    assert rows == table(), "the table of docs/legacy-route.md is " + str(table())
    total = sum(len(found(name)) for name in TIGHT)
    requests = len(TIGHT) * len(SEEDS) * 40
    assert f"{total} of {requests} requests" in text
