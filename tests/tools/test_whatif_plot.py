"""The curve of a what-if: however many configurations there are, nothing that is written lies over something else."""

import re
from itertools import combinations
from types import SimpleNamespace
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import pytest

from radixledger.tools.whatif_plot import CHARACTER, LINE, WIDTH, Point, _curve

CENTRED = ("middle", "value")


class Box(NamedTuple):
    words: str
    left: float
    right: float
    bottom: float


def boxes(points: list[Point], recorded: float) -> list[Box]:
    """Where each text of the curve lies, by the width that the drawing itself reckons with."""
    found: Any = SimpleNamespace(recorded=SimpleNamespace(hit_rate=recorded))
    drawn = "".join(_curve(("swa_pages", points), found, 40))
    told = []
    for text in ET.fromstring(f"<svg>{drawn}</svg>").iter("text"):
        words = text.text or ""
        x, width = float(text.get("x", "")), CHARACTER * len(words)
        left = x - width / 2 if text.get("class") in CENTRED else x
        told.append(Box(words, left, left + width, float(text.get("y", ""))))
    return told


def overlap(one: Box, other: Box) -> bool:
    return one.left < other.right and other.left < one.right and abs(one.bottom - other.bottom) < LINE - 3


@pytest.mark.parametrize("many", [3, 5, 12, 40, 100])
@pytest.mark.parametrize(("hit_rate", "bound", "recorded"), [(0.37, 0.65, 0.42), (0.9, 0.9, 0.9), (0.0, 0.0, 0.0), (0.02, 1.0, 0.5)])  # fmt: skip
def test_no_label_of_a_curve_lies_over_another_one(
    many: int, hit_rate: float, bound: float, recorded: float
) -> None:
    points = [Point(1_000_000 + number, hit_rate, bound, "~") for number in range(many)]
    told = boxes(points, recorded)
    assert [(one.words, other.words) for one, other in combinations(told, 2) if overlap(one, other)] == []
    assert all(box.left >= 0 and box.right <= WIDTH for box in told)
    values = [box.words for box in told if re.fullmatch(r"1,000,\d\d\d", box.words)]
    assert values[0] == "1,000,000"
    assert len(values) >= min(many, 3)
    assert {"bound", "hit rate", f"recorded {recorded:.3f}"} <= {box.words for box in told}
