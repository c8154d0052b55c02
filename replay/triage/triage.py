"""Triage: from the journals of N ranks, whole or not, to the first wrong event of each and what led to it (J14, N4).

Each rank is folded once, around whatever damage there is. Then the first wrong event is explained: its causal slice, the
scene just before it, who was handed its pages next. Rank by rank, because ranks share nothing; they are aligned by step.

Rules: damage is no violation, and nothing behind it is judged until something says that it can be. A first wrong event
is the earliest one known, whichever law told of it. Memory does not grow with a journal.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct

from radixledger.cache.state import State
from radixledger.journal.absent import Absent, absent_ranks
from radixledger.journal.errors import JournalError, NoJournal
from radixledger.journal.folder import listing, rank_folder, ranks_in
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Rank
from radixledger.replay.by_rank import Gather, Watcher, one_by_one, unwatched
from radixledger.replay.search.narrow import traced_back
from radixledger.replay.seek import Beginning, beginning_of
from radixledger.replay.triage.ending import Ending, Passing, left_behind
from radixledger.replay.triage.explained import Explained, explain
from radixledger.replay.verdict import MISSING, RankReport, Told
from radixledger.replay.verify import judge

KINDS = ("wrong", "turned down", "leak", "damaged", "unreadable", "clean")
"""What can be said of a rank, the worst first."""
INCOMPLETE = "incomplete"
"""What is said of a run that nothing worse is said of, but for ranks that are not here."""


class RankTriage(Struct):
    """What triage says of one rank; `kind` is one of `KINDS`."""

    folder: str
    run: str
    rank: int
    kind: str
    report: RankReport
    damage: list[str]
    ending: Ending
    explained: Explained | None = None
    denied: str = ""
    """The file or folder that may not be read; empty where that is not why."""

    @property
    def has_findings(self) -> bool:
        """Whether somebody should act on what its events say, or on what is missing of them."""
        return self.kind not in ("clean", "unreadable")

    @property
    def step(self) -> int:
        """The step of the first wrong event, or the last one told."""
        return self.explained.first.step if self.explained else self.ending.last_step


def triage(
    folders: Sequence[Path], gather: Gather = one_by_one, *, ranks: Sequence[int] = ()
) -> list[RankTriage]:
    """Every rank that `folders` hold, each a run, a rank of one, or a folder of runs; raises NoJournal for other folders.

    ranks: only those of these numbers; none: all. gather: how they are gone through.
    """
    places = places_of(folders, ranks)
    return _named(gather([partial(triage_rank, run, rank) for run, rank in places], places))


def _named(told: list[RankTriage]) -> list[RankTriage]:
    """A rank that cannot tell which run it is of is of the run that the others in its folder are of."""
    known = {each.folder: each.run for each in told if each.report.route}
    for each in told:
        if not each.report.route:
            each.run = each.report.run = known.get(each.folder, each.run)
    return told


def places_of(folders: Sequence[Path], ranks: Sequence[int] = ()) -> list[tuple[Path, Rank]]:
    """Run and rank of every journal in these folders, each once; raises NoJournal where there is none, or none of one of `ranks`."""
    places = [place for folder in folders for place in places_in(folder) if not ranks or place[1] in ranks]
    for rank in ranks:
        if all(rank != mine for _, mine in places):
            raise NoJournal(folders[0], f"there is no journal of rank {rank}")
    return list(dict.fromkeys(places))


def absent_of(folders: Sequence[Path], ranks: Sequence[int] = ()) -> list[Absent]:
    """Ranks of these runs that are in none of the folders; none where single ranks were asked for, by number or by folder."""
    if ranks or all(listing(folder).segments for folder in folders):
        return []
    return absent_ranks(places_of(folders))


def places_in(folder: Path) -> list[tuple[Path, Rank]]:
    """Run and rank of every journal in a folder: a run, one rank-NNNN folder of it, or a folder that holds runs."""
    if listing(folder).segments:
        return [_place_of(folder)]
    try:
        return [(folder, rank) for rank in ranks_in(folder)]
    except NoJournal:
        runs = sorted(each for each in folder.iterdir() if each.is_dir()) if folder.is_dir() else []
        found = [(run, rank) for run in runs for rank in _ranks_or_none(run)]
        if not found:
            raise
        return found


def _ranks_or_none(run: Path) -> list[Rank]:
    try:
        return ranks_in(run)
    except (NoJournal, OSError):
        return []


def _place_of(folder: Path) -> tuple[Path, Rank]:
    """Run and rank of a folder in which segments lie, `.` among them."""
    whole = folder.absolute()
    for rank in _ranks_or_none(whole.parent):
        if rank_folder(whole.parent, rank) == whole:
            return (folder.parent if folder.name else whole.parent), rank
    raise NoJournal(folder, "segments lie here, and the folder is not named after a rank: call it rank-0000, in a folder for the run")  # fmt: skip


def triage_rank(run: Path, rank: Rank, watcher: Watcher = unwatched) -> RankTriage:
    """What is wrong with one rank, first of all; whatever its files are, this returns."""
    report = RankReport(run=run.absolute().name, rank=rank)
    passing, state, explained, reader, denied = Passing(), None, None, None, ""
    try:
        reader = JournalReader(run, rank, salvage=True)
        begin = _beginning(reader, report)
        with watcher(run, rank, "reading") as watch:
            state = judge(reader, begin, report, lambda frames: passing.watch(watch(frames)))
    except (JournalError, OSError) as error:
        report.unreadable = str(error)
        denied = str(error.filename or "") if isinstance(error, PermissionError) else ""
    ending = passing.finish(state)
    if reader is not None:
        ending.sealed = reader.ends_sealed
        report.notices += reader.notices
        violation = first_violation(reader, report)
        if violation is not None:
            first, before = violation
            also = [each for each in report.findings if each.seq == first.seq and each != first]
            with watcher(run, rank, "explaining") as watch:
                explained = explain(reader, first, also, before, watch)
    return RankTriage(
        folder=str(run), run=report.run, rank=rank, kind=_kind(report, ending, explained), report=report,
        damage=_damage(report), ending=ending, explained=explained, denied=denied,
    )  # fmt: skip


def _beginning(reader: JournalReader, report: RankReport) -> Beginning:
    begin = beginning_of(reader)
    report.notices += begin.passed_over
    return begin


def _kind(report: RankReport, ending: Ending, explained: Explained | None) -> str:
    if explained is not None:
        return "wrong"
    if ending.turned_down:
        return "turned down"
    if ending.leaks or left_behind(ending):
        return "leak"
    if report.unreadable:
        return "unreadable"
    return "damaged" if report.gaps or _damage(report) else "clean"


def _damage(report: RankReport) -> list[str]:
    """What is damaged, a torn end not among it: that is how a process that was killed leaves a journal."""
    return [notice for notice in report.notices if not notice.startswith("torn tail")]


def first_violation(reader: JournalReader, report: RankReport) -> tuple[Told, State | None] | None:
    """The earliest finding that is about an event; what was seen later than it happened is traced back to where it did.

    With it a state from before it, where one was folded on the way.
    """
    first = next((each for each in report.findings if each.law != MISSING), None)
    if first is None:
        return None
    if first.lawful_at is None and (report.gaps or reader.breaks):
        return first, None  # what is missing may have broken a law of the whole state, and no event did
    try:
        traced = traced_back(reader, first)
    except JournalError:
        return first, None
    return traced.told or first, traced.before
