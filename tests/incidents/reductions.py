"""What `reduce` makes of every incident, and the page `docs/reduced.md` that tells it.

`python -m tests.incidents.reductions` reduces all of them and writes the page (`make incidents`); the suite does so
too and compares. An incident is reduced from its journal alone, with the lawful cache installed;
its fixture then runs twice: on the wrong cache and on the lawful one.
"""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Rank
from radixledger.replay.reduce.fixture import NoSchedule, fixture
from radixledger.replay.reduce.incident import incident_of
from radixledger.replay.reduce.reduce import CannotReduce, reduced

from ..mutants.caught import spoiled, write
from ..mutants.seeded import Mutant
from ..mutants.table import MUTANTS

PATH = Path(__file__).parents[2] / "docs" / "reduced.md"
MARK = "<!-- what follows is made by `python -m tests.incidents.reductions` -->\n"
SECONDS = 60.0
FEW = 30
"""So many events, a fixture may have (J18)."""


class Reduction(NamedTuple):
    """One incident: its events before and after, 0 where it could not be reduced; what its fixture does on both caches."""

    name: str
    before: int
    after: int
    fails_on_the_mutant: bool
    passes_on_the_fixed: bool
    commands: int = 0

    @property
    def counts(self) -> bool:
        """Whether the fixture is small and does what it is for."""
        return 0 < self.after <= FEW and self.fails_on_the_mutant and self.passes_on_the_fixed


def reduction(folder: Path, mutant: Mutant) -> Reduction:
    """Journal a mutant, reduce what it wrote, and run the fixture on both caches."""
    with spoiled(mutant):
        write(folder / mutant.name, mutant)
    incident = incident_of(JournalReader(folder / mutant.name, Rank(0)))
    assert incident is not None, "an incident has a finding"
    try:
        least = reduced(incident, SECONDS)
        text = fixture(least)
    except (CannotReduce, NoSchedule):
        return Reduction(mutant.name, incident.events, 0, False, False)
    with spoiled(mutant):
        fails = incident.first.law in failure_of(text)
    passes = not failure_of(text)
    return Reduction(mutant.name, incident.events, least.enacted.size, fails, passes, len(least.deeds))


def failure_of(text: str) -> str:
    """What a fixture says is broken when it is run here; nothing where it passes."""
    module: dict[str, Any] = {"redriven": None}
    exec(compile(text, "test_incident.py", "exec"), module)  # a file that was just written
    said: list[str] = []
    perform = module["redriven"]

    def listened(*arguments: Any, **options: Any) -> Any:
        told = perform(*arguments, **options)
        said.extend([*told.broken, told.failed])
        return told

    module["redriven"] = listened
    (test,) = (each for name, each in module.items() if name.startswith("test_"))
    try:
        test()
    except AssertionError:
        return " ".join(["failed:", *said])
    return ""


def generated(all_of_them: Sequence[Reduction]) -> str:
    """What stands behind the mark."""
    return "\n".join(_lines(all_of_them)) + "\n"


def _lines(all_of_them: Sequence[Reduction]) -> Iterator[str]:
    good = sum(each.counts for each in all_of_them)
    yield (
        f"\n{good} of {len(all_of_them)} incidents are reduced to at most {FEW} events by a fixture that fails on the wrong cache, with "
        "the law of the incident, and passes on the lawful one.\n"
    )
    yield "| incident | events | events left | commands left | fails on the mutant | passes on the fixed cache |"
    yield "|---|---:|---:|---:|---|---|"
    yield from map(row, all_of_them)


def row(each: Reduction) -> str:
    """One line of the table."""
    fails, passes = ("yes" if told else "no" for told in (each.fails_on_the_mutant, each.passes_on_the_fixed))
    return (
        f"| {each.name} | {each.before} | {each.after or '-'} | {each.commands or '-'} | {fails} | {passes} |"
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as room:
        told = [reduction(Path(room), mutant) for mutant in MUTANTS.values()]
    PATH.write_text(PATH.read_text("utf-8").partition(MARK)[0] + MARK + generated(told), "utf-8")
