"""Numbers on the command line: whole numbers and seconds, each within bounds that mean something.

Rule: what is out of bounds, `nan` and the infinities among it, is wrong usage, and the bounds are said with it. Not here:
what a cache can be built with (`radixledger.cache.config`).
"""

import math
from typing import Any

import click

INT32_MAX = (1 << 31) - 1
"""Of tokens, slots and pages."""

INT64_MAX = (1 << 63) - 1
"""Of events and bytes."""

A_WEEK_S = 7 * 86_400.0

SHOWN = 40
"""So many characters are shown of what is no number."""


class Whole(click.IntRange):
    """A whole number of [least, most]; help shows `most` where it says something of the command."""

    def __init__(self, least: int = 0, most: int = INT64_MAX) -> None:
        super().__init__(least, None if most in (INT32_MAX, INT64_MAX) else most)
        self.least, self.most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number; anything else is wrong usage."""
        try:
            number = int(value)
        except ValueError:
            number = None
        if number is None or not self.least <= number <= self.most:
            limited = self.max is not None or (number is not None and number > self.most)
            bounds = f"from {self.least} to {self.most}" if limited else f"of at least {self.least}"
            self.fail(f"{_shown(value)} is not a whole number {bounds}", param, ctx)
        return number


class Seconds(click.FloatRange):
    """A length of time, as a float of [least, most] seconds."""

    def __init__(self, least: float, most: float = A_WEEK_S) -> None:
        super().__init__(least, most)
        self.least, self.most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number; anything else is wrong usage."""
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not self.least <= number <= self.most:  # nan is nowhere
            self.fail(
                f"{_shown(value)} is not a number of seconds from {self.least:g} to {self.most:g}", param, ctx
            )
        return number


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
