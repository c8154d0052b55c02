"""The tables of `docs/mutants.md`, made from what the detectors say; run it to bring the page up to date.

`python -m tests.mutants.page` writes the page; a test holds it against what is found.
"""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from difflib import ndiff
from pathlib import Path

from .caught import Caught, caught, spoiled
from .folded import Diverged, diverged
from .killed import kills
from .of_the_fold import FOLDS
from .seeded import Mutant
from .slip import Slip
from .slips import SLIPS
from .table import MUTANTS

PATH = Path(__file__).parents[2] / "docs" / "mutants.md"
MARK = "<!-- what follows is made by `python -m tests.mutants.page` -->\n"


def generated(found: Mapping[str, Caught], folds: Mapping[str, Diverged]) -> str:
    """What stands behind the mark."""
    return "\n".join([*_deciders(found), *_unasked(), *_folds(folds), *_slips()]) + "\n"


def _deciders(found: Mapping[str, Caught]) -> Iterator[str]:
    yield (
        "\n## Wrong deciders\n\n"
        "Distance: how many events behind the first wrong one the detector blames. Live, in `verify`, in SQL.\n"
    )
    yield "| mutant | what is wrong | first wrong event | law | check | live | verify | SQL | rows | corpus |"
    yield "|---|---|---|---|---|---:|---:|---:|---|---|"
    for name, mutant in MUTANTS.items():
        live, verify, sql = ("-" if each is None else str(each) for each in found[name].distances)
        check = f"`{mutant.check}`" if mutant.check else "not asked"
        yield (
            f"| {name} | {mutant.what} | {mutant.says} | `{mutant.law}` | {check} | {live} | {verify} | {sql}"
            f" | {', '.join(mutant.rows)} | {', '.join(mutant.bugs)} |"
        )


def _unasked() -> Iterator[str]:
    for name, mutant in MUTANTS.items():
        if mutant.unseen:
            yield f"\n`{name}` is not asked in SQL, and does not count: {mutant.unseen}."


def _folds(folds: Mapping[str, Diverged]) -> Iterator[str]:
    yield (
        "\n## Wrong folds\n\n"
        "Distance: how many events behind the one that was folded wrongly the live digest leaves that of the lawful fold.\n"
    )
    yield "| mutant | what is wrong | first wrong event | digest | rows |\n|---|---|---|---:|---|"
    for fold in FOLDS:
        told = folds[fold.name]
        distance = "-" if told.found is None or told.predicted is None else str(told.found - told.predicted)
        yield f"| {fold.name} | {fold.what} | {fold.says} | {distance} | {', '.join(fold.rows)} |"


def _slips() -> Iterator[str]:
    yield (
        "\n## Slips\n\n"
        "One place of the sources reads otherwise, and one test of the row notices. They do not count among the others.\n"
    )
    yield "| mutant | file | reads | instead of | rows | killed by (in `tests/`) |\n|---|---|---|---|---|---|"
    tests: dict[str, set[str]] = {name: set() for name in SLIPS}
    for pairs in kills().values():
        for test, mutant in pairs:
            if mutant in tests:
                tests[mutant].add(test.partition("::")[2])
    for slip in SLIPS.values():
        killers = ", ".join(f"`{test}`" for test in sorted(tests[slip.name]))
        reads, instead = (_coded(slip, sign) for sign in "+-")
        yield f"| {slip.name} | `{slip.file}` | {reads} | {instead} | {', '.join(slip.rows)} | {killers} |"


def _coded(slip: Slip, sign: str) -> str:
    """The lines that a slip puts or takes away."""
    changed = ndiff(slip.was.splitlines(), slip.becomes.splitlines())
    lines = [line[2:].strip() for line in changed if line.startswith(sign) and line[2:].strip()]
    return "<br>".join(f"`{line}`" for line in lines).replace("|", "\\|") or "nothing"


def all_caught(folder: Path) -> dict[str, Caught]:
    """What is found of every wrong decider."""
    return caught(folder, MUTANTS, spoiled)


def all_lawful(folder: Path) -> dict[str, Caught]:
    """What is found of the same schedules when nothing is wrong."""

    def left_alone(_: Mutant) -> nullcontext[None]:
        return nullcontext()

    return caught(folder, MUTANTS, left_alone)


def all_diverged() -> dict[str, Diverged]:
    """Where each wrong fold leaves the lawful one."""
    return {fold.name: diverged(fold) for fold in FOLDS}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        text = generated(all_caught(Path(folder)), all_diverged())
    PATH.write_text(PATH.read_text("utf-8").partition(MARK)[0] + MARK + text, "utf-8")
