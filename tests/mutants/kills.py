"""Which test kills which mutant: looked for, written down in `killed.json`, and run again by `make mutants`.

A row of the requirements is proven by a test that names it in its docstring and that fails when the cache is spoiled in
a way that breaks the row. `python -m tests.mutants.kills` runs every pair that is written down and fails where a test
lives; names of mutants behind it run theirs alone. With `find` it looks for the rows that have none. The ordinary tests
only hold the file against tests and mutants.

Rule: a mutant is planted into a process of its own, before any test module is imported.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ..contract_table import rows_of_tests
from .killed import ASKED, PATH, WAITING, Kills, kills, write
from .of_the_fold import FOLDS
from .slip import plant
from .slips import SLIPS
from .table import MUTANTS

TESTS = Path(__file__).parents[1]
SLOW = ("tools/serve/", "test_machine", "test_differential", "mutants/")
"""Where tests are not looked for: plays and servers notice much, and say little of a row."""
TOO_LONG_S = 240

CHANGES: Mapping[str, Callable[[Any], None]] = {name: mutant.change for name, mutant in MUTANTS.items()} | {
    fold.name: fold.change for fold in FOLDS
}
ROWS: Mapping[str, tuple[str, ...]] = {
    **{name: mutant.rows for name, mutant in MUTANTS.items()},
    **{fold.name: fold.rows for fold in FOLDS},
    **{name: slip.rows for name, slip in SLIPS.items()},
}
"""Every mutant of any kind, and the rows that it breaks."""


class Failures:
    """A plugin that keeps the functions of tests that failed."""

    def __init__(self) -> None:
        self.failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Told of every phase of every test."""
        if report.failed:
            path, _, name = report.nodeid.partition("::")
            self.failed.add(f"{path.removeprefix('tests/')}::{name.partition('[')[0]}")


def killed_by(mutant: str, tests: Iterable[str]) -> set[str]:
    """Those of the tests that fail when the cache is the mutant's."""
    chosen = [f"{TESTS / test}" for test in sorted(tests)]
    if not chosen:
        return set()
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        _run_spoiled(mutant, chosen, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as told:
        answer = told.read()
    os.waitpid(child, 0)
    return set(json.loads(answer)) if answer else set()


def _run_spoiled(mutant: str, chosen: list[str], writer: int) -> None:
    """The child: plant the fault, run the tests, tell which failed, and be gone."""
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    signal.alarm(TOO_LONG_S)
    if mutant in SLIPS:
        plant(SLIPS[mutant])
    else:
        CHANGES[mutant](pytest.MonkeyPatch())
    failures = Failures()
    options = [
        "-q",
        "--tb=no",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-x" if len(chosen) == 1 else "-q",
    ]
    pytest.main([*options, *chosen], plugins=[failures])
    os.write(writer, json.dumps(sorted(failures.failed)).encode())
    os._exit(0)


def candidates() -> dict[str, set[str]]:
    """For each row the tests that name it."""
    named: dict[str, set[str]] = {row: set() for row in ASKED}
    for test, rows in rows_of_tests().items():
        if not test.startswith(SLOW):
            for row in rows & named.keys():
                named[row].add(test)
    return named


def find(found: Kills) -> Iterator[str]:
    """Look for a pair for each row that has none, among the mutants that break the row; tells what is found."""
    named = candidates()
    for mutant, broken in ROWS.items():
        missing = [row for row in broken if row not in found and row in named]
        dead = killed_by(mutant, {test for row in missing for test in named[row]})
        for row in missing:
            pairs = sorted((test, mutant) for test in named[row] & dead)[:2]
            if pairs:
                found[row] = pairs
                yield f"{row}: {pairs[0][0]} kills {mutant}"
        write(found)


def verify(found: Kills, mutants: Collection[str] = ()) -> list[str]:
    """Run every pair, or those of some mutants; what is wrong."""
    wrong, begun = [], time.monotonic()
    for mutant in sorted({mutant for pairs in found.values() for _, mutant in pairs}):
        if mutants and mutant not in mutants:
            continue
        tests = {test for pairs in found.values() for test, by in pairs if by == mutant}
        dead = killed_by(mutant, tests)
        wrong += [f"{test} lives with {mutant}" for test in sorted(tests - dead)]
        _tell(f"{mutant}: {len(dead)} tests of {len(tests)} kill it")
    _tell(f"{time.monotonic() - begun:.0f} s")
    return wrong


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1:] == ["find"]:
        known = kills() if PATH.exists() else {}
        for told in find(known):
            _tell(told)
        _tell(f"without a pair: {', '.join(row for row in ASKED if row not in known and row not in WAITING)}")
    elif lives := verify(kills(), sys.argv[1:]):
        raise SystemExit("\n".join(lives))
