"""A recorded run beside what it would have been: read once, then sent through every configuration at once.

Each rank is read into a schedule and sent again alone, because ranks share nothing; each piece of work may have a process
of its own. Rule: all settings are checked before the first event is read.
"""

import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from radixledger.cache.digest import digest
from radixledger.journal.errors import JournalError
from radixledger.journal.events import Opened
from radixledger.journal.frame import Frame
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Rank
from radixledger.replay.seek import beginning_of
from radixledger.replay.whatif.bound import Use, best_hits
from radixledger.replay.whatif.content import content_for
from radixledger.replay.whatif.crew import Steps, done_by
from radixledger.replay.whatif.meter import Figures, Meter
from radixledger.replay.whatif.outcome import Comparison, Outcome, why_estimated
from radixledger.replay.whatif.redrive import Redrive
from radixledger.replay.whatif.requests import transcribed
from radixledger.replay.whatif.room import can_never_fit
from radixledger.replay.whatif.schedule import Admit, End, Leave, Schedule, ScheduleWriter
from radixledger.replay.whatif.settings import can_be_sent_again, configured, is_recorded
from radixledger.replay.whatif.strayed import Strayed

Progress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
"""Given a label and how many steps there will be: something that is told how many steps were done since."""


Pool = tuple[int, int, int, int, int, int]
"""What a bound depends on: the rank's place, and the sizes."""


class Unsendable(JournalError):
    """A journal that gives no requests to send."""


class Transcript(NamedTuple):
    """One rank as it was recorded."""

    schedule: Schedule
    figures: Figures
    digest: bytes
    notices: list[str]


class Sent(NamedTuple):
    """One rank as it would have been."""

    figures: Figures
    strayed: Strayed
    broken: list[str]
    digest: bytes
    seconds: float
    peak_bytes: int


class Bound(NamedTuple):
    """Belady's bound of one rank, in tokens."""

    hit: int
    asked: int


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
    plans = [
        _Plan(name, settings, [configured(opened, settings) for opened in recorded])
        for name, settings in (*_as_recorded(recorded), *configurations.items())
    ]
    with TemporaryDirectory(prefix="radixledger-whatif-") as folder:
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
        work.append(partial(_transcribe, run, rank, salvage, folder / str(rank)))
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


def _transcribe(run: Path, rank: Rank, salvage: bool, folder: Path, steps: Steps) -> Transcript | str:
    """One rank's schedule; what cannot be read, in words, because errors of all kinds do not travel."""
    writer, meter = ScheduleWriter(folder), Meter()
    try:
        reader = JournalReader(run, rank, salvage=salvage)
        begin = beginning_of(reader)
        frames = _counted(reader.frames(begin.next_seq), steps)
        schedule, state = transcribed(frames, begin.state, reader.opened, writer, meter)
        return Transcript(schedule, meter.finish(state), digest(state), [*begin.passed_over, *reader.notices])
    except JournalError as error:
        return str(error)
    finally:
        writer.abandon()


def _counted(frames: Iterator[Frame], steps: Steps) -> Iterator[Frame]:
    for frame in frames:
        yield frame
        steps.tick(len(frame.events))


def _sent_through(
    plans: Sequence[_Plan], transcripts: Sequence[Transcript], processes: int, progress: Progress
) -> Comparison:
    schedules = [each.schedule for each in transcripts]
    pools = {_pool(place, opened): opened for plan in plans for place, opened in enumerate(plan.opened)}
    work: list[Callable[[Steps], Sent | Bound]] = [
        partial(_send, schedule, opened)
        for plan in plans
        for schedule, opened in zip(schedules, plan.opened, strict=True)
    ]
    work += [partial(_bound, schedules[pool[0]], opened) for pool, opened in pools.items()]
    steps = sum(each.steps for each in schedules) * len(plans)
    steps += sum(schedules[place].jobs for place, *_ in pools)
    with progress("sending", steps) as advance:
        done = done_by(processes, work, advance)
    sent = [each for each in done if isinstance(each, Sent)]
    bounds = dict(zip(pools, (each for each in done if isinstance(each, Bound)), strict=True))
    outcomes = [
        _outcome(plan, transcripts, sent[place * len(schedules) : (place + 1) * len(schedules)], bounds)
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


def _pool(place: int, opened: Opened) -> Pool:
    config = opened.config
    return (
        place,
        config.page_size,
        config.full_pages,
        config.context_pages,
        config.swa_pages,
        opened.window_need,
    )


def _send(schedule: Schedule, opened: Opened, steps: Steps) -> Sent:
    begun = time.monotonic()
    redrive = Redrive(
        schedule,
        opened,
        content_for(schedule.opened, opened.config.page_size),
        as_recorded=is_recorded(schedule.opened, opened),
        tick=steps.tick,
    )
    end = redrive.run()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Sent(redrive.figures, redrive.strayed, redrive.broken, end, time.monotonic() - begun, peak)


def _bound(schedule: Schedule, opened: Opened, steps: Steps) -> Bound:
    page_size, job_of, asked = opened.config.page_size, schedule.job_of(), 0
    content = content_for(schedule.opened, page_size)

    def uses() -> Iterator[Use]:
        nonlocal asked
        for act in schedule.acts():
            if not isinstance(act, Admit | Leave):
                continue
            job = job_of(act.job)
            if can_never_fit(opened, job, schedule.chunk_tokens):
                continue
            if isinstance(act, Admit):
                key = content.upto(content.whole(act.job, job), act.prompt)
                asked += act.prompt
                yield Use(key, (act.prompt - 1) // page_size, True, job.namespace)
                steps.tick(1)
            elif act.how == End.FINISHED:
                key = content.given(content.whole(act.job, job), job)
                yield Use(key, len(key) // content.stride, False, job.namespace)

    hits = best_hits(uses(), stride=content.stride, capacity=opened.config.full_pages)
    return Bound(hits * page_size, asked)


def _outcome(
    plan: _Plan,
    transcripts: Sequence[Transcript],
    sent: Sequence[Sent],
    bounds: Mapping[Pool, Bound],
) -> Outcome:
    outcome = Outcome(plan.name, dict(plan.settings), plan.opened[0], Figures(), Strayed(), [], [])
    odd: dict[str, None] = {}
    for place, (each, transcript, opened) in enumerate(zip(sent, transcripts, plan.opened, strict=True)):
        outcome.figures.add(each.figures)
        outcome.strayed.add(each.strayed)
        outcome.broken += each.broken
        odd |= dict.fromkeys(transcript.schedule.odd)
        bound = bounds[_pool(place, opened)]
        outcome.bound_tokens += bound.hit
        outcome.asked_tokens += bound.asked
        outcome.seconds = max(outcome.seconds, each.seconds)
        outcome.peak_bytes = max(outcome.peak_bytes, each.peak_bytes)
    first = transcripts[0].schedule.opened
    if is_recorded(first, plan.opened[0]):
        outcome.same_state = all(
            each.digest == transcript.digest for each, transcript in zip(sent, transcripts, strict=True)
        )
    steps = sum(each.figures.steps for each in transcripts), outcome.figures.steps
    outcome.estimated = [*why_estimated(first, plan.opened[0], tuple(odd), outcome.strayed, steps)]
    return outcome
