"""A what-if as a drawing: one SVG of its own, or an HTML page around it, that needs nothing else to be looked at.

A row for each configuration, a panel for each question; where one number was varied, a curve of the hit rate over it comes
first. Rule: everything that is drawn is written beside it as text, and nothing is told by colour alone.
"""

import math
from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise
from typing import NamedTuple

from radixledger.replay.whatif.outcome import Comparison
from radixledger.tools.whatif_tables import Row, remarks, rows_of

WIDTH, ROW, HEAD, GAP = 960, 38, 46, 26
CURVE_HEIGHT = 190
LINE = 14
"""From one line of text to the next, in pixels."""
CHARACTER = 6.6
"""About the width of a character of the labels, in pixels."""
MOST_LABEL = 44
"""Characters of a name that is longer are wrapped."""

STYLE = """
svg{font:12px system-ui,sans-serif;background:#fff}
text{fill:#1b1f24}.dim{fill:#59636e}.title{font-size:15px;font-weight:600}.head{font-weight:600}
.first{fill:#0969da}.second{fill:#bc4c00}.tick{stroke:#1b1f24;stroke-width:2}.axis{stroke:#d1d9e0}
.line{fill:none;stroke:#0969da;stroke-width:2}.bound{fill:none;stroke:#1b1f24;stroke-width:1.5;stroke-dasharray:5 4}
.recorded{stroke:#59636e;stroke-dasharray:2 3}.middle,.value{text-anchor:middle}.middle{fill:#59636e}
.value{paint-order:stroke;stroke:#fff;stroke-width:3px}
@media(prefers-color-scheme:dark){svg{background:#0d1117}text{fill:#e6edf3}.dim{fill:#9198a1}.first{fill:#4493f8}
.second{fill:#f0883e}.tick{stroke:#e6edf3}.axis{stroke:#3d444d}.line{stroke:#4493f8}.bound{stroke:#e6edf3}.recorded{stroke:#9198a1}
.middle{fill:#9198a1}.value{stroke:#0d1117}}
@media print{svg{background:white}text{fill:black}.value{stroke:white}}
"""


class Bar(NamedTuple):
    """A bar: `value` of the panel's largest, with the words beside it; `tick` marks another value."""

    value: float
    words: str
    tick: float | None = None


class Panel(NamedTuple):
    """A question: for each row one bar, or two under each other; `legend` names them."""

    title: str
    legend: str
    bars: list[list[Bar]]


def plotted(found: Comparison, *, page: bool) -> str:
    """The drawing; `page`: in an HTML page, with the remarks as text below it."""
    drawing = _svg(found)
    if not page:
        return drawing
    said = "".join(
        f"<li{' class=reason' if line.startswith(' ') else ''}>{escape(line.strip())}</li>"
        for line in remarks(found)
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(_title(found))}</title><style>:root{{color-scheme:light dark}}body{{font:14px system-ui,sans-serif;margin:1rem auto;"
        f"max-width:{WIDTH}px;padding:0 1rem}}svg{{max-width:100%;height:auto}}li.reason{{margin-left:1.5rem}}</style></head><body>{drawing}<ul>{said}</ul></body></html>\n"
    )


def _title(found: Comparison) -> str:
    ranks = f"rank {found.ranks[0]}" if len(found.ranks) == 1 else f"{len(found.ranks)} ranks"
    return f"What if: {found.requests:,} requests of {found.run}, {ranks}"


def _svg(found: Comparison) -> str:
    rows, top = rows_of(found), 40
    parts: list[str] = [_text(16, 24, _title(found), "title")]
    points = _points(found)
    if points is not None:
        parts += _curve(points, found, top)
        top += CURVE_HEIGHT + GAP
    labels = [_wrapped(row.name) for row in rows]
    left = 42 + CHARACTER * max(len(line) for lines in labels for line in lines)
    heights = [max(ROW, 14 * len(lines) + 24) for lines in labels]
    tops = [top + HEAD]
    for height in heights:
        tops.append(tops[-1] + height)
    for at, lines in zip(tops, labels, strict=False):
        parts += [_text(16, at + 23 + 14 * number, line) for number, line in enumerate(lines)]
    parts += [f'<line class="axis" x1="16" x2="{WIDTH - 16}" y1="{at}" y2="{at}"/>' for at in tops[:-1]]
    panels = _panels(rows)
    each = (WIDTH - 16 - left) / len(panels)
    for number, panel in enumerate(panels):
        parts += _panel(panel, left + number * each, each - 16, top, tops)
    foot = tops[-1] + 22
    parts.append(
        _text(
            16,
            foot,
            "~ an estimate: the schedule itself would have changed.   | Belady's bound: no order of FULL victims hits more.",
            "dim",
        )
    )
    height = foot + 16
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" height="{height:.0f}" role="img">'
        f"<title>{escape(_title(found))}</title><style>{STYLE}</style>{''.join(parts)}</svg>\n"
    )


def _panels(rows: Sequence[Row]) -> list[Panel]:
    return [
        Panel("Hit rate", "of the prompt tokens", [
            [Bar(row.figures.hit_rate, f"{row.mark}{row.figures.hit_rate:.3f}", row.outcome.bound_rate if row.outcome else None)]
            for row in rows
        ]),
        Panel("Evicted", "FULL, SWA: tokens", [
            [Bar(row.figures.full_evicted, row.mark + _short(row.figures.full_evicted)),
             Bar(row.figures.swa_evicted, row.mark + _short(row.figures.swa_evicted))]
            for row in rows
        ]),
        Panel("Tombstones", "nodes", [[Bar(row.figures.tombstones, row.mark + _short(row.figures.tombstones))] for row in rows]),
        Panel("Retractions", "requests", [[Bar(row.figures.retractions, row.mark + _short(row.figures.retractions))] for row in rows]),
        Panel("Peak held", "FULL, SWA: of the pool", [
            [_share(row, row.figures.full_held, row.figures.full_capacity), _share(row, row.figures.swa_held, row.figures.swa_capacity)]
            for row in rows
        ]),
    ]  # fmt: skip


def _share(row: Row, held: int, capacity: int) -> Bar:
    return Bar(held / capacity, f"{row.mark}{held / capacity:.0%}") if capacity else Bar(0, "none")


def _panel(panel: Panel, left: float, width: float, top: float, tops: Sequence[float]) -> Iterator[str]:
    yield _text(left, top + 16, panel.title, "head")
    yield _text(left, top + 32, panel.legend, "dim")
    most = max(max(bar.value, bar.tick or 0) for bars in panel.bars for bar in bars) or 1
    room = width - 54
    for at, bars in zip(tops, panel.bars, strict=False):
        thick = 14 if len(bars) == 1 else 10
        for number, bar in enumerate(bars):
            y = at + (12 if len(bars) == 1 else 7 + number * 15)
            long = room * bar.value / most
            kind = "first" if number == 0 else "second"
            yield f'<rect class="{kind}" x="{left:.1f}" y="{y:.1f}" width="{long:.1f}" height="{thick}"/>'
            if bar.tick is not None:
                x = left + room * bar.tick / most
                yield f'<line class="tick" x1="{x:.1f}" x2="{x:.1f}" y1="{y - 2:.1f}" y2="{y + thick + 2:.1f}"/>'
                long = max(long, x - left)
            yield _text(left + long + 5, y + thick - (3 if thick > 10 else 1), bar.words)


class Point(NamedTuple):
    """A configuration of which one number was set."""

    value: int
    hit_rate: float
    bound: float
    mark: str


def _points(found: Comparison) -> tuple[str, list[Point]] | None:
    """What was varied, and the configurations in its order; None where it was not one number alone, or too seldom."""
    names = {tuple(each.settings) for each in found.outcomes}
    if len(names) != 1 or len(found.outcomes) < 3:
        return None
    (name, *more) = next(iter(names))
    if more or not all(each.settings[name].isdigit() for each in found.outcomes):
        return None
    points = [
        Point(int(each.settings[name]), each.figures.hit_rate, each.bound_rate, "~" if each.estimated else "")
        for each in found.outcomes
    ]
    return name, sorted(points)


def _curve(varied: tuple[str, list[Point]], found: Comparison, top: float) -> Iterator[str]:
    """The hit rate over what was varied, evenly spaced, with its bound and the recorded one."""
    name, points = varied
    left, right, bottom = 84.0, WIDTH - 142.0, top + CURVE_HEIGHT - 40
    most = max(max(point.hit_rate, point.bound) for point in points) or 1
    across = (right - left) / (len(points) - 1)

    def height(rate: float) -> float:
        return bottom - (bottom - top - 26) * min(rate, most) / most

    yield _text(16, top + 6, f"Hit rate over {name.replace('_', ' ')}", "head")
    for part in (0.0, 0.5, 1.0):
        y = height(most * part)
        yield f'<line class="axis" x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield _text(28, y + 4, f"{most * part:.2f}", "dim")
    recorded, last = found.recorded.hit_rate, points[-1]
    y = height(recorded)
    yield f'<line class="recorded" x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
    places = [left + number * across for number in range(len(points))]
    for kind, rates in (
        ("bound", [point.bound for point in points]),
        ("line", [point.hit_rate for point in points]),
    ):
        line = " ".join(f"{x:.1f},{height(rate):.1f}" for x, rate in zip(places, rates, strict=True))
        yield f'<polyline class="{kind}" points="{line}"/>'
    for x, point in zip(places, points, strict=True):
        yield f'<circle class="first" cx="{x:.1f}" cy="{height(point.hit_rate):.1f}" r="4"/>'
    told = [f"{point.mark}{point.hit_rate:.3f}" for point in points]
    for number in _apart(told, across):
        yield _text(places[number], height(points[number].hit_rate) + 18, told[number], "value")
    values = [f"{point.value:,}" for point in points]
    for number in _apart(values, across):
        yield _text(places[number], bottom + 34, values[number], "middle")
    beside = {"bound": last.bound, "hit rate": last.hit_rate, f"recorded {recorded:.3f}": recorded}
    for words, y in _spread({words: height(rate) for words, rate in beside.items()}):
        yield _text(right + 36, y + 4, words, "" if words in ("bound", "hit rate") else "dim")


def _apart(labels: Sequence[str], across: float) -> range:
    """Which of the labels of evenly spaced points are written, so that no two touch: each, or each second, ..."""
    widest = CHARACTER * (max(map(len, labels)) + 1)
    return range(0, len(labels), max(1, math.ceil(widest / across)))


def _spread(places: dict[str, float]) -> Iterator[tuple[str, float]]:
    """Words with their heights, those that would overlap moved down."""
    free = -math.inf
    for words, y in sorted(places.items(), key=lambda each: each[1]):
        free = max(y, free)
        yield words, free
        free += LINE


def _wrapped(name: str) -> list[str]:
    """A name in lines, cut behind commas."""
    lines = [""]
    for part, more in pairwise([*name.split(","), ""]):
        text = part + ("," if more else "")
        if lines[-1] and len(lines[-1]) + len(text) > MOST_LABEL // 2:
            lines.append("")
        lines[-1] += text
    return lines


def _text(x: float, y: float, words: str, kind: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}"{f" class={chr(34)}{kind}{chr(34)}" if kind else ""}>{escape(words)}</text>'


def _short(count: int) -> str:
    """12345 as `12.3k`."""
    number = float(count)
    for unit in ("", "k", "M"):
        if abs(number) < 1000:
            return f"{number:.3g}{unit}" if unit else f"{count}"
        number /= 1000
    return f"{number:.3g}G"
