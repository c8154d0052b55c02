"""The table of contracts: each row of the requirements that this code answers for, in our words, and the tests that show it.

`docs/contracts.md` holds the words; the tests are found by the rows that their docstrings name, and the wrong version that
they kill is the first one in `mutants/killed.json`, whose test comes first. To add a row, write a line
`| R1 | what holds | | |` anywhere in the table and run `python -m tests.contract_table`: it sorts the lines, names
tests that show them, and adds a line without words for every row that the code cites and the page lacks.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .mutants.killed import OPEN, kills
from .mutants.slips import SLIPS

ROOT = Path(__file__).parent.parent
PATH = ROOT / "docs" / "contracts.md"
CODE = ("journal", "cache", "replay", "analytics", "tools")
ROW = re.compile(r"\b([RJ])(\d+)(?:-\1?(\d+))?\b")
LINE = re.compile(r"^\| ([RJ]\d+) \| (.*?) \|([^|]*)\|(?:([^|]*)\|)?$", re.MULTILINE)
TEST = re.compile(r"`([^`]+?)::([^`]+?)`")
RULE = "|---|---|---|---|\n"
TESTS_PER_ROW = 3
WAITING = "Waiting: "
"""How the words of a row begin that something is needed for which does not exist yet; it has no tests."""


class Contract(NamedTuple):
    """A line of the page: the row, what holds, the tests, as `cache/test_match.py::test_...`, and what the first one kills."""

    row: str
    words: str
    tests: tuple[str, ...]
    mutant: str


def rows_in(text: str) -> set[str]:
    """The rows that a text names; `R34-R37` names four."""
    return {
        f"{kind}{number}"
        for kind, first, last in ROW.findall(text)
        for number in range(int(first), int(last or first) + 1)
    }


def contracts() -> list[Contract]:
    """What the page says now."""
    return [
        Contract(row, words.strip(), tuple("::".join(test) for test in TEST.findall(tests)), mutant.strip())
        for row, words, tests, mutant in LINE.findall(PATH.read_text("utf-8"))
    ]


def docstrings(path: Path) -> Iterator[tuple[str, str]]:
    """The name and the docstring of each test function of a file."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node.name, ast.get_docstring(node) or ""


def rows_of_tests() -> dict[str, set[str]]:
    """Each test, by its place, and the rows that its docstring names."""
    folder = ROOT / "tests"
    return {
        f"{path.relative_to(folder).as_posix()}::{name}": rows_in(text)
        for path in sorted(folder.rglob("test_*.py"))
        for name, text in docstrings(path)
    }


def rows_of_code() -> set[str]:
    """Every row that the packages cite."""
    return {
        row
        for folder in CODE
        for path in (ROOT / folder).rglob("*.py")
        for row in rows_in(path.read_text("utf-8"))
    }


def linked(mutant: str) -> str:
    """A mutant, and where it stands."""
    return f"[{mutant}](mutants.md#slips)" if mutant in SLIPS else f"[{mutant}](mutants.md)"


def page() -> str:
    """The page with its lines sorted and its tests found; words are kept, missing ones left empty."""
    said = {contract.row: contract.words for contract in contracts()}
    shown: dict[str, list[str]] = defaultdict(list)
    for test, rows in rows_of_tests().items():
        for row in rows:
            shown[row].append(test)
    kept = {contract.row: contract.tests for contract in contracts()}
    pairs, lines = kills(), []
    for row in sorted({*said, *rows_of_code()}, key=lambda row: (row[0] != "R", int(row[1:]))):
        killers = [test for test, _ in pairs.get(row, ())[:1]]
        chosen = [
            *killers,
            *(test for test in kept.get(row, ()) if test in shown[row] and test not in killers),
        ]
        others = sorted(shown[row], key=lambda test: not test.startswith("cache/"))
        chosen += [test for test in others if test not in chosen]
        if said.get(row, "").startswith(WAITING):
            chosen = []
        tests = "<br>".join(f"`{test}`" for test in chosen[:TESTS_PER_ROW])
        mutant = linked(pairs[row][0][1]) if row in pairs else OPEN.get(row, "")
        lines.append(f"| {row} | {said.get(row, '')} | {tests} | {mutant} |\n")
    return PATH.read_text("utf-8").partition(RULE)[0] + RULE + "".join(lines)


if __name__ == "__main__":
    PATH.write_text(page(), "utf-8")
