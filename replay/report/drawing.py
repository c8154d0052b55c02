"""Charts as SVG text: how full each pool was, and what happened when. Drawn here, so that they print and need no script.

A chart is 1000 units wide and is stretched to its place; x is the number of the event. Rule: no text of a journal gets
in here, and no style: colours are classes.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from radixledger.journal.accounts import Pool
from radixledger.replay.known import Unknown
from radixledger.replay.report.cells import NUMBER_FIELDS, POOLS
from radixledger.replay.report.occupancy import MARKS, Bucket
from radixledger.replay.report.packet import Record

WIDTH, HEIGHT = 1000, 140
LANE = 12

ACCOUNTS = (
    ("reserved", "reserved", "page 0, the padding that nobody owns"),
    ("protected", "tree, protected", "cached, and locked by somebody who uses it: cannot be evicted"),
    ("request", "request", "held by a running request alone"),
    ("in_flight", "in flight", "being written by a copy between device and host"),
    ("pending", "pending", "surrendered inside an open free group, not yet free"),
    ("evictable", "tree, evictable", "cached and unlocked: taken back when pages are short"),
    ("free", "free", "can be handed out now"),
)
"""From the bottom of a chart to its top: class, name, meaning. What is below `evictable` cannot be had by waiting."""

SHOWN_MARKS = ("tombstones", "heals", "evictions", "refusals", "retractions", "epochs", "gaps")
"""Lanes of the time line, beside the findings."""

_PLACE = {name: place for place, name in enumerate(NUMBER_FIELDS)}
_PROTECTED = {Pool.FULL: "full_protected", Pool.SWA: "swa_protected", Pool.RECURRENT: "recurrent_protected"}


def accounts_of(pool: Pool, numbers: Record) -> list[int]:
    """Pages of a pool by account, in the order of ACCOUNTS; none below zero, whatever a broken state counts."""
    held = {
        name: numbers[_PLACE[f"{POOLS[pool]}_{name}"]]
        for name in ("reserved", "request", "in_flight", "pending", "tree", "free")
    }
    if pool is Pool.HOST:
        evictable = numbers[_PLACE["host_bare"]] - numbers[_PLACE["host_protected"]]
        protected = held["tree"] - evictable
    else:
        protected = numbers[_PLACE[_PROTECTED[pool]]]
        evictable = held["tree"] - protected
    values = (
        held["reserved"] + 1, protected, held["request"], held["in_flight"], held["pending"], evictable, held["free"],
    )  # fmt: skip
    return [max(0, value) for value in values]


def capacity_of(pool: Pool, numbers: Record) -> int:
    """Usable pages of a pool."""
    return numbers[_PLACE[f"{POOLS[pool]}_capacity"]]


def chart(pool: Pool, buckets: Sequence[Bucket], first: int, unknown: Sequence[Unknown] = ()) -> str:
    """The stacked areas of one pool over all events; where it is not known there is none, and it is shaded."""
    top = max((capacity_of(pool, each.numbers) for each in buckets), default=0) + 1
    stacks = [_stacked(accounts_of(pool, each.numbers)) for each in buckets]
    runs = list(_runs(buckets, _xs(buckets, first)))
    areas = []
    for place, (name, _, _) in enumerate(ACCOUNTS):
        if any(stack[place + 1] > stack[place] for stack in stacks):
            below = _levels([stack[place] for stack in stacks], top)
            above = _levels([stack[place + 1] for stack in stacks], top)
            areas.append(
                f'<path class="a-{name}" d="{"".join(f"{run.line(above)}{run.back(below)}Z" for run in runs)}"/>'
            )
    levels = _levels([top - min(top, each.least_free[pool]) for each in buckets], top)
    least = "".join(run.line(levels) for run in runs)
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" aria-hidden="true">'
        f'{"".join(areas)}<path class="least" d="{least}"/>{_shades(buckets, first, unknown)}</svg>'
    )


def _shades(buckets: Sequence[Bucket], first: int, unknown: Sequence[Unknown]) -> str:
    """What lies between the last event that is known and the last one of a stretch that is not."""
    scale = WIDTH / max(1, buckets[-1].seq - first) if buckets else 0
    spans = [(max(0, each.since - 1 - first) * scale, (each.until - first) * scale) for each in unknown]
    return "".join(
        f'<rect class="unknown" x="{_at(begin)}" y="0" width="{_at(max(2, end - begin))}" height="{HEIGHT}"/>'
        for begin, end in spans
    )


def lanes(buckets: Sequence[Bucket], first: int) -> list[tuple[str, int, str]]:
    """The time line: of each kind of mark that occurs, its name, how many there are, and a lane of bars.

    One epoch is what every run has.
    """
    found = []
    xs = _xs(buckets, first)
    for name in SHOWN_MARKS:
        counts = [each.marks[MARKS.index(name)] for each in buckets]
        if sum(counts) > (name == "epochs"):
            found.append((name, sum(counts), _lane(name, xs, counts)))
    return found


def _lane(name: str, xs: Sequence[float], counts: Sequence[int]) -> str:
    most, bars, before = max(counts), [], 0.0
    for x, count in zip(xs, counts, strict=True):
        if count:
            high = 3 + (LANE - 3) * count / most
            wide = max(1.5, x - before)
            bars.append(f"M{_at(before)} {LANE}v{_at(-high)}h{_at(wide)}v{_at(high)}z")
        before = x
    return (
        f'<svg class="lane" viewBox="0 0 {WIDTH} {LANE}" preserveAspectRatio="none" aria-hidden="true">'
        f'<path class="m-{name}" d="{"".join(bars)}"/></svg>'
    )


def _stacked(values: Sequence[int]) -> list[int]:
    sums = [0]
    for value in values:
        sums.append(sums[-1] + value)
    return sums


def _xs(buckets: Sequence[Bucket], first: int) -> list[float]:
    last = buckets[-1].seq if buckets else first
    return [WIDTH * (each.seq - first) / max(1, last - first) for each in buckets]


def _levels(values: Sequence[int], top: int) -> list[str]:
    return [_at(HEIGHT - HEIGHT * min(value, top) / top) for value in values]


class _Run(NamedTuple):
    """Buckets that are known, one behind the other: where the first begins, where each ends, and which they are."""

    begin: float
    xs: Sequence[float]
    places: slice

    def line(self, levels: Sequence[str]) -> str:
        """A line from left to right that keeps the level of each stretch up to its end."""
        levels = levels[self.places]
        line, before, reached = f"M{_at(self.begin)} {levels[0]}", levels[0], self.begin
        for x, level in zip(self.xs, levels, strict=True):
            if level != before:
                line, before = f"{line}H{_at(reached)}V{level}", level
            reached = x
        return f"{line}H{_at(reached)}"

    def back(self, levels: Sequence[str]) -> str:
        """The same from right to left, going on from where another line ended."""
        levels = levels[self.places]
        before = levels[-1]
        line = f"V{before}"
        for x, level in zip(reversed(self.xs[:-1]), reversed(levels[:-1]), strict=True):
            if level != before:
                line, before = f"{line}H{_at(x)}V{level}", level
        return f"{line}H{_at(self.begin)}"


def _runs(buckets: Sequence[Bucket], xs: Sequence[float]) -> Iterator[_Run]:
    for known, places in groupby(range(len(buckets)), key=lambda place: buckets[place].known):
        if known:
            first, *rest = places
            last = rest[-1] if rest else first
            yield _Run(xs[first - 1] if first else 0, xs[first : last + 1], slice(first, last + 1))


def _at(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
