"""A recorded run beside what it would have been: read once, then sent through every configuration at once.

Each rank is read into a schedule and sent again alone, because ranks share nothing; each piece of work may have a process
of its own. Rule: all settings are checked before the first event is read.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from radixledger.journal.disk import naming
from radixledger.journal.errors import JournalError
from radixledger.journal.events import Opened
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import FIRST, Rank
from radixledger.replay.crew import Steps, done_by
from radixledger.replay.fold import check_opened
from radixledger.replay.whatif.meter import Figures
from radixledger.replay.whatif.outcome import Comparison, Outcome, why_estimated
from radixledger.replay.whatif.pieces import Sent, Transcript, send, transcribe
from radixledger.replay.whatif.settings import can_be_sent_again, configured, is_recorded
from radixledger.replay.whatif.strayed import Strayed

Progress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
"""Given a label and how many steps there will be: something that is told how many steps were done since."""


class Unsendable(JournalError):
    """A journal that gives no requests to send."""


class _Plan(NamedTuple):
    """A configuration, and what each rank is opened with."""

    name: str
    settings: Mapping[str, str]
    opened: list[Opened]


AS_RECORDED = "as recorded"


def _as_recorded(recorded: Sequence[Opened]) -> list[tuple[str, Mapping[str, str]]]:
    return [(AS_RECORDED, {})] if all(map(can_be_sent_again, recorded)) else []


def compare(
    run: Path,
    ranks: Sequence[Rank],
    configurations: Mapping[str, Mapping[str, str]],
    *,
    processes: int,
    salvage: bool,
    progress: Progress,
) -> Comparison:
    """Send the recorded requests of `ranks` through each configuration, by its name, and through the recorded one.

    Raises BadSetting before anything is read, Unsendable and other JournalErrors, WorkerLost, and OSError where there is
    no room for the schedules.
    """
    readers = [JournalReader(run, rank, salvage=salvage) for rank in ranks]
    recorded = [reader.opened for reader in readers]
    for opened in recorded:
        check_opened(opened, FIRST)
    plans = [
        _Plan(name, settings, [configured(opened, settings) for opened in recorded])
        for name, settings in (*_as_recorded(recorded), *configurations.items())
    ]
    with TemporaryDirectory(prefix="radixledger-whatif-") as folder, naming(Path(folder)):
        transcripts = _read(run, ranks, Path(folder), salvage, processes, progress, readers)
        return _sent_through(plans, transcripts, processes, progress)


def _read(
    run: Path, ranks: Sequence[Rank], folder: Path, salvage: bool, processes: int, progress: Progress,
    readers: Sequence[JournalReader],
) -> list[Transcript]:  # fmt: skip
    events = sum(map(_events_of, readers))
    work = []
    for rank in ranks:
        (folder / str(rank)).mkdir()
        work.append(partial(transcribe, run, rank, salvage, folder / str(rank)))
    with progress("reading", events) as advance:
        found = done_by(processes, work, advance)
    transcripts = []
    for each in found:
        if isinstance(each, str):
            raise Unsendable(each)
        transcripts.append(each)
    if not any(each.schedule.jobs for each in transcripts):
        raise Unsendable(f"{run}: no request is admitted in this journal, so there is nothing to send again")
    return transcripts


def _events_of(reader: JournalReader) -> int:
    """How many events there are, for who waits for them; damage is told when it is met."""
    try:
        return max(0, reader.last_seq - reader.first_seq + 1)
    except JournalError:
        return 0


def _sent_through(
    plans: Sequence[_Plan], transcripts: Sequence[Transcript], processes: int, progress: Progress
) -> Comparison:
    schedules = [each.schedule for each in transcripts]
    work: list[Callable[[Steps], Sent]] = [
        partial(send, schedule, opened)
        for plan in plans
        for schedule, opened in zip(schedules, plan.opened, strict=True)
    ]
    steps = sum(each.steps for each in schedules) * len(plans)
    with progress("sending", steps) as advance:
        sent = done_by(processes, work, advance)
    outcomes = [
        _outcome(plan, transcripts, sent[place * len(schedules) : (place + 1) * len(schedules)])
        for place, plan in enumerate(plans)
    ]
    figures = Figures()
    for transcript in transcripts:
        figures.add(transcript.figures)
    again = outcomes.pop(0) if plans and plans[0].name == AS_RECORDED else None
    return Comparison(
        schedules[0].opened.run, [int(each.opened.rank) for each in schedules], sum(each.jobs for each in schedules),
        figures, again, outcomes, [notice for each in transcripts for notice in each.notices],
    )  # fmt: skip


def _outcome(plan: _Plan, transcripts: Sequence[Transcript], sent: Sequence[Sent]) -> Outcome:
    outcome = Outcome(plan.name, dict(plan.settings), plan.opened[0], Figures(), Strayed(), [], [])
    odd: dict[str, None] = {}
    for each, transcript in zip(sent, transcripts, strict=True):
        outcome.figures.add(each.figures)
        outcome.strayed.add(each.strayed)
        outcome.broken += each.broken
        odd |= dict.fromkeys(transcript.schedule.odd)
        outcome.bound_tokens += each.bound.hit
        outcome.asked_tokens += each.bound.asked
        outcome.cpu_seconds += each.cpu_seconds
        outcome.peak_bytes = max(outcome.peak_bytes, each.peak_bytes)
    first = transcripts[0].schedule.opened
    if is_recorded(first, plan.opened[0]):
        outcome.same_state = all(
            each.digest == transcript.digest for each, transcript in zip(sent, transcripts, strict=True)
        )
    steps = sum(each.figures.steps for each in transcripts), outcome.figures.steps
    outcome.estimated = [*why_estimated(first, plan.opened[0], tuple(odd), outcome.strayed, steps)]
    return outcome
