"""`docs/faults.md`: the faults that people met in public projects, and the tests that play them here.

    python -m tests.fault_table

The numbers B01 to B157 are those of the project's list of such faults (two digits at least); the corpus of its requirements has others,
B1 to B26, which stand in tests of contracts and mutants. What a test says of a fault is its docstring. Rule: a fault
that does not apply says why; one that does has a test under `tests/faults/` that names it.
"""

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent
PATH = ROOT / "docs" / "faults.md"
NAMED = re.compile(r"\bB(\d{2,3})\b")

NUMBERS = (
    1, 4, 5, 7, 9, 12, 14, 16, 18, 21, 23, 24, 25, 28, 30, 31, 34, 36, 38, 41, 43, 45, 48, 49, 51, 54, 55, 57, 59, 60, 63, 65,
    67, 69, 72, 73, 75, 77, 78, 80, 82, 84, 86, 89, 91, 94, 95, 98, 99, 101, 102, 104, 107, 109, 112, 114, 116, 117, 120, 122,
    125, 127, 128, 130, 131, 133, 135, 137, 139, 141, 144, 146, 148, 150, 152, 155, 157,
)  # fmt: skip
"""The faults of the list."""

ELSEWHERE = {
    48: "A cache has one window size, and so has every model that is served.",
    72: "No engine here computes recurrent states: where a state was captured is its caller's word, kept as it is given.",
    152: "A tree with windows has no host tier here; asking for both is refused (R8).",
}
"""Faults that cannot happen here, and why."""

HEAD = """\
# Faults of the field

Faults that people reported in public projects, each played here in a small scenario of our own. The list is made from the tests by
`python -m tests.fault_table`; a test names its faults and says what has to come out.

| fault | what has to come out | played by (in `tests/`) |
|---|---|---|
"""


def plays() -> dict[int, list[tuple[str, str]]]:
    """For each fault the tests that name it, as place and docstring; those under `faults/` come first."""
    found: dict[int, list[tuple[str, str]]] = defaultdict(list)
    folder = ROOT / "tests"
    paths = sorted(folder.rglob("test_*.py"), key=lambda path: (path.parent.name != "faults", path))
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                said = ast.get_docstring(node) or ""
                for number in dict.fromkeys(int(each) for each in NAMED.findall(said)):
                    found[number].append((f"{path.relative_to(folder).as_posix()}::{node.name}", said))
    return found


def line(number: int, tests: list[tuple[str, str]]) -> str:
    """A fault's line of the table."""
    if number in ELSEWHERE:
        return f"| B{number:02} | Does not apply. {ELSEWHERE[number]} | |\n"
    shown = [test for test, _ in tests if test.startswith("faults/")] or [test for test, _ in tests]
    said = next(said for test, said in tests if test == shown[0]).partition("\n\n")[0]
    words = re.sub(r"^[BRJA][\w\-, ]*?: ", "", re.sub(r"\s+", " ", said)).rstrip()
    told = words if ":" in said else f"{shown[0].partition('::test_')[2].replace('_', ' ')}."
    return (
        f"| B{number:02} | {told[0].upper()}{told[1:]} | {'<br>'.join(f'`{test}`' for test in shown[:3])} |\n"
    )


def page() -> str:
    """The whole page."""
    played = plays()
    return HEAD + "".join(
        line(number, played[number]) for number in NUMBERS if number in ELSEWHERE or played[number]
    )


if __name__ == "__main__":
    PATH.write_text(page(), "utf-8")
