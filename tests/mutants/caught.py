"""How a seeded fault is caught, three times: by the rank itself, by `verify`, and in SQL. Each names an event.

The journal that the last two see is written by the wrong version with every law off: nothing stops it, and it tells of
no violation. Rule: a detector never sees the prediction, and the prediction is asked of the state before an event.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest

from radixledger.analytics.load import load
from radixledger.analytics.queries import Answer, ask_checks
from radixledger.analytics.store import Database
from radixledger.cache.decide.pages import Decision
from radixledger.cache.rank import RankCache
from radixledger.cache.refusals import LawBroken
from radixledger.cache.state import State
from radixledger.cache.watch import Watched
from radixledger.journal.events import AnyEvent, Opened
from radixledger.journal.units import Rank, Seq
from radixledger.journal.writer import JournalWriter, Policy, Sealing
from radixledger.replay.verify import verify_rank

from .desk import Desk, opened
from .seeded import Mutant, Predicate

T = TypeVar("T")
BLAMED = "seq"
"""The column of a check that names the wrong event."""


class Verdict(NamedTuple):
    """Which event a detector blames first, and the law or check that says so."""

    seq: int
    by: tuple[str, ...]


class Caught(NamedTuple):
    """What was predicted of a fault, and what each detector said; None where it said nothing."""

    predicted: int | None
    live: Verdict | None
    verify: Verdict | None
    sql: Verdict | None

    @property
    def distances(self) -> tuple[int | None, ...]:
        """How many events behind the wrong one each detector blames; None where it is silent."""
        first = self.predicted or 0
        return tuple(each and each.seq - first for each in (self.live, self.verify, self.sql))


class Unheard(list[Any]):
    """Findings that nobody reads: the rank goes on, whatever `evolve` notices."""

    def __bool__(self) -> bool:
        return False

    def append(self, _: Any) -> None:
        """Not kept."""


class Probe:
    """Writes down the first event of which the prediction holds; looks, and lets everything pass."""

    def __init__(self, wrong: Predicate) -> None:
        self._wrong = wrong
        self.seq: int | None = None

    def __call__(self, state: State, decision: Decision[T]) -> Decision[T]:
        """The same decision."""
        while True:
            try:
                event = next(decision)
            except StopIteration as stop:
                result: T = stop.value
                return result
            if self.seq is None and self._wrong(state, event):
                self.seq = state.seq + 1
            yield event


class Kept:
    """A writer that keeps what was decided before a decider fell over, where others drop it."""

    def __init__(self, writer: JournalWriter) -> None:
        self.opened: Opened = writer.opened
        self._writer = writer
        self._open = 0

    def append(self, event: AnyEvent, /) -> None:
        """Take one event."""
        self._open += 1
        self._writer.append(event)

    def end_command(self) -> None:
        """One command's events are complete."""
        self._open = 0
        self._writer.end_command()

    def end_step(self, step: int) -> None:
        """What is recorded must be safe."""
        self._writer.end_step(step)

    def close(self) -> None:
        """Write what is left."""
        if self._open:
            self._writer.end_command()
        self._writer.close()


def write(run: Path, mutant: Mutant) -> int | None:
    """Let the mutant write its journal with all laws off; the number of the event that was predicted to be wrong."""
    writer = JournalWriter.open(
        run,
        opened(mutant.config, run.name, mutant.route),
        policy=Policy.OPERATION,
        clock=lambda: 0,
        sealing=Sealing.INLINE,
    )
    kept, probe = Kept(writer), Probe(mutant.wrong)
    cache = RankCache(writer.opened, kept, digest_every=1 << 30, seq=Seq(writer.last_seq))
    cache.state.findings = Unheard()
    cache._watch = probe  # type: ignore[assignment]
    _serve(cache, mutant)
    kept.close()
    return probe.seq


def _serve(cache: RankCache, mutant: Mutant) -> None:
    """Run the schedule as far as the wrong version comes with it."""
    try:
        mutant.script(Desk(cache))
    except Exception:  # noqa: BLE001  # a cache gone wrong falls over in any way it likes
        return


def live(mutant: Mutant) -> Verdict | None:
    """Run the schedule on a rank that watches itself."""
    cache = RankCache(opened(mutant.config, route=mutant.route), watched=Watched.STATE)
    try:
        mutant.script(Desk(cache))
    except LawBroken as broken:
        return Verdict(broken.seq, (broken.law,))
    except Exception:  # noqa: BLE001  # stopped, but by no law
        return None
    return None


def replayed(run: Path) -> Verdict | None:
    """What `verify` finds first in a journal; all that it finds at that event."""
    report = verify_rank(run, Rank(0))
    if not report.findings:
        return None
    first = min(told.seq for told in report.findings)
    return Verdict(first, tuple(dict.fromkeys(told.law for told in report.findings if told.seq == first)))


def questioned(answers: dict[str, Answer]) -> dict[str, Verdict]:
    """What SQL finds first in each run, and which checks."""
    found: dict[str, dict[str, int]] = {}
    for check, answer in answers.items():
        for row in answer.rows:
            told = dict(zip(answer.columns, row, strict=True))
            seqs = found.setdefault(told["run"], {})
            seqs[check] = min(seqs.get(check, told[BLAMED]), told[BLAMED])
    return {
        run: Verdict(first := min(seqs.values()), tuple(check for check, seq in seqs.items() if seq == first))
        for run, seqs in found.items()
    }


def caught(folder: Path, mutants: dict[str, Mutant], spoil: Callable[[Mutant], Any]) -> dict[str, Caught]:
    """What each detector says of each mutant. `spoil`: a context in which the cache is the mutant's."""
    predicted, watched = {}, {}
    database = Database()
    for name, mutant in mutants.items():
        with spoil(mutant):
            predicted[name] = write(folder / name, mutant)
            watched[name] = live(mutant)
        load(database, folder / name)
    asked = questioned(ask_checks(database.questioned()))
    database.close()
    return {
        name: Caught(predicted[name], watched[name], replayed(folder / name), asked.get(name))
        for name in mutants
    }


def spoiled(mutant: Mutant) -> Any:
    """A context in which the cache is the mutant's."""
    context = pytest.MonkeyPatch.context()

    class Spoiled:
        def __enter__(self) -> None:
            mutant.change(context.__enter__())

        def __exit__(self, *error: Any) -> None:
            context.__exit__(*error)

    return Spoiled()
