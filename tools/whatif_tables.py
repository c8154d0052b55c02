"""How a what-if reads on a terminal, and as JSON: hits with their bound, pressure, peaks, and why something is an estimate.

Rule: the recorded run comes first, and a figure that is an estimate has a ~ before it.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from radixledger.replay.whatif.meter import Figures
from radixledger.replay.whatif.outcome import Comparison, Outcome
from radixledger.tools.console import count_of, count_text, print_lines, stdout
from radixledger.tools.printable import say
from radixledger.tools.table import print_table

BAR_MOST, BAR_LEAST = 32, 8


NAMES = "run"
TABLES = (
    (
        ("evicted FULL", "evicted SWA", "tombstones", "heals"),
        ("full_evicted", "swa_evicted", "tombstones", "heals"),
    ),
    (("FULL held", "of", "SWA held", "of"), ("full_held", "full_capacity", "swa_held", "swa_capacity")),
    (
        ("admitted", "finished", "retracted", "broken laws"),
        ("admissions", "finished", "retractions", "violations"),
    ),
)
"""Columns, and the figures that they show, of the tables behind that of hits."""

CERTAIN = {"full_capacity", "swa_capacity", "violations"}
"""Figures that are never an estimate."""

WIDEST = 54
"""What the figures of a table take, of a large run."""


class Row(NamedTuple):
    """A line of each table."""

    name: str
    figures: Figures
    outcome: Outcome | None
    """None for the record itself."""

    @property
    def mark(self) -> str:
        """What stands before a figure that is an estimate."""
        return "~" if self.outcome is not None and self.outcome.estimated else ""


def rows_of(found: Comparison) -> list[Row]:
    """The record, and what was asked for."""
    return [
        Row("recorded", found.recorded, found.again and _bound_only(found.again)),
        *(Row(each.name, each.figures, each) for each in found.outcomes),
    ]


def _bound_only(again: Outcome) -> Outcome:
    """The record has the bound of its redrive, and is no estimate."""
    return msgspec.structs.replace(again, estimated=[])


def show(found: Comparison, run: str) -> None:
    """Everything, on stdout."""
    rows = rows_of(found)
    say(f"{count_of(found.requests, 'request')} of {run}, {_ranks(found)}\n")
    names = _names(rows)
    _show_hits(rows, names)
    for columns, fields in TABLES:
        say()
        lines = zip(names, rows, strict=True)
        _print_right(
            (NAMES, *columns),
            [
                [name, *(_told(row, field, getattr(row.figures, field)) for field in fields)]
                for name, row in lines
            ],
        )
    print_lines(
        ["", "In tokens. Bound: no order of FULL victims hits more (Belady). Held: not to be evicted."]
    )
    if names != [row.name for row in rows]:
        print_lines([f"{name}: {row.name}" for name, row in zip(names[1:], rows[1:], strict=True)])
    print_lines(list(remarks(found)))


def _names(rows: Sequence[Row]) -> list[str]:
    """What the lines of all tables are called: by their settings, or by numbers where those are too long."""
    names = [row.name for row in rows]
    if max(map(len, names)) <= max(len(NAMES), stdout().width - WIDEST):
        return names
    return [names[0], *(f"no. {number}" for number in range(1, len(names)))]


def _ranks(found: Comparison) -> str:
    return f"rank {found.ranks[0]}" if len(found.ranks) == 1 else f"{len(found.ranks)} ranks, each alone"


def _show_hits(rows: list[Row], names: list[str]) -> None:
    room = stdout().width - max(map(len, names)) - len("  hit rate    bound       hit tokens  ") - 4
    width = min(BAR_MOST, room)
    most = max([row.figures.hit_rate for row in rows] + [_bound(row) or 0.0 for row in rows]) or 1.0
    columns = [NAMES, "hit rate", "bound", "hit tokens", ""]
    lines: list[list[str]] = []
    for name, row in zip(names, rows, strict=True):
        bound, rate = _bound(row), row.figures.hit_rate
        hit = _told(row, "hit_tokens", row.figures.hit_tokens)
        bar = _bar(rate / most, (bound or 0.0) / most, max(1, width))
        lines.append([name, f"{row.mark}{rate:.3f}", "" if bound is None else f"{bound:.3f}", hit, bar])
    if width < BAR_LEAST or (width < BAR_MOST and too_coarse(lines)):
        columns, lines = columns[:-1], [line[:-1] for line in lines]
    _print_right(columns, lines)


def too_coarse(lines: Sequence[Sequence[str]]) -> bool:
    """Whether different rates have bars of one length."""
    rates = {(line[-1].count("█"), line[1].removeprefix("~")) for line in lines}
    return len({length for length, _ in rates}) < len(rates)


def _print_right(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table whose figures, behind the name and before a bar, stand to the right."""
    wide = [max(len(name), *(len(row[place]) for row in rows)) for place, name in enumerate(columns)]
    right = [place for place, name in enumerate(columns) if place and name]
    print_table(
        [name.rjust(wide[place]) if place in right else name for place, name in enumerate(columns)],
        [
            [cell.rjust(wide[place]) if place in right else cell for place, cell in enumerate(row)]
            for row in rows
        ],
    )


def _bound(row: Row) -> float | None:
    return row.outcome.bound_rate if row.outcome is not None else None


def _bar(part: float, bound: float, width: int) -> str:
    """A bar of `part` of the width, and a tick where the bound stands."""
    cells = ["█"] * round(part * width)
    cells += [" "] * (width - len(cells))
    tick = min(width - 1, round(bound * width))
    if bound > 0 and tick >= round(part * width):
        cells[tick] = "│"
    return "".join(cells).rstrip()


def _told(row: Row, field: str, count: int) -> str:
    return ("" if field in CERTAIN else row.mark) + count_text(count)


def remarks(found: Comparison) -> Iterator[str]:
    """What is to be known of the figures, a line each."""
    if found.again is None:
        yield "The record is another server's, which nobody here can run: it is not sent again as it was"
    else:
        yield _faithful(found.again, found.recorded)
    estimates: dict[tuple[str, ...], list[str]] = {}
    for each in found.outcomes:
        if each.estimated:
            estimates.setdefault(tuple(each.estimated), []).append(each.name)
    for reasons, names in estimates.items():
        yield f"~ {'; '.join(names)}: an estimate"
        yield from (f"    {reason}" for reason in reasons)
    for each in found.sent:
        yield from (f"{each.name}: broken: {law}" for law in each.broken)


def _faithful(again: Outcome, recorded: Figures) -> str:
    """Whether sending the run again as it was gives what was recorded."""
    differing = [
        f"{name.replace('_', ' ')} {count_text(getattr(again.figures, name))} instead of {count_text(getattr(recorded, name))}"
        for name in Figures.__struct_fields__
        if getattr(again.figures, name) != getattr(recorded, name)
    ]
    text = "Sent again as recorded: "
    if not differing:
        text += "every figure is the recorded one" + (
            ", and so is the state at the end" if again.same_state else ""
        )
        return text
    return text + "; ".join([*differing, *again.estimated])


def document(found: Comparison) -> dict[str, Any]:
    """Everything, for programs."""
    return {
        "run": found.run,
        "ranks": found.ranks,
        "requests": found.requests,
        "recorded": _figures(found.recorded),
        "as_recorded": found.again and _outcome(found.again),
        "configurations": [_outcome(each) for each in found.outcomes],
        "notices": found.notices,
    }


def _figures(figures: Figures) -> dict[str, Any]:
    return {**msgspec.structs.asdict(figures), "hit_rate": figures.hit_rate}


def _outcome(each: Outcome) -> dict[str, Any]:
    config = {"route": each.opened.route, **msgspec.structs.asdict(each.opened.config)}
    return {
        **{name: value for name, value in msgspec.structs.asdict(each).items() if name != "opened"},
        "configuration": config,
        "figures": _figures(each.figures),
        "estimate": bool(each.estimated),
        "bound_rate": each.bound_rate,
    }
