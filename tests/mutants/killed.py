"""Which test kills which mutant, row by row of the requirements, as it stands in `killed.json`; and what has no pair yet.

Rule: nothing here imports what is tested, so that pages can be made from it.
"""

import json
from pathlib import Path

PATH = Path(__file__).with_name("killed.json")

Kills = dict[str, list[tuple[str, str]]]
"""For each row the tests that kill, as `cache/test_match.py::test_...`, each with its mutant."""

SPANS = ((1, 179), (195, 215), (256, 274))
"""The rows that are answered for here, from and to; the others are of devices, their evidence and their gates."""
ASKED = tuple(f"R{number}" for first, last in SPANS for number in range(first, last + 1))

WAITING = ("R7", "R22", "R158", "R159", "R160")
"""Rows that need the HTTP server or the gate tools: nothing here can answer for them yet."""

OPEN: dict[str, str] = {}
"""Rows that have a test and no mutant that it kills, and what stands in the table for it: `open: ` and why."""


def kills() -> Kills:
    """What is written down."""
    return {
        row: [(test, mutant) for test, mutant in pairs]
        for row, pairs in json.loads(PATH.read_text("utf-8")).items()
    }


def write(found: Kills) -> None:
    """Write it down, in the order of the rows; the first pair of each is the one that its contract shows."""
    order = sorted(found, key=lambda row: int(row[1:]))
    lines = [f'  "{row}": {json.dumps(found[row])}' for row in order]
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
