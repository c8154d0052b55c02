"""The tables of `docs/mutants.md`, made from what the detectors say; run it to bring the page up to date.

`python -m tests.mutants.page` writes the page; a test holds it against what is found.
"""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path

from .caught import Caught, caught, spoiled
from .folded import Diverged, diverged
from .of_the_fold import FOLDS
from .seeded import Mutant
from .table import MUTANTS

PATH = Path(__file__).parents[2] / "docs" / "mutants.md"
MARK = "<!-- what follows is made by `python -m tests.mutants.page` -->\n"


def generated(found: Mapping[str, Caught], folds: Mapping[str, Diverged]) -> str:
    """What stands behind the mark."""
    return "\n".join([*_deciders(found), *_unasked(), *_folds(folds)]) + "\n"


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
