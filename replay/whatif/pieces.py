"""What one process does of a what-if: read a rank into a schedule, send it through a configuration, bound it.

Rule: what goes in and comes out passes between processes, so it is data; errors of journals come out as words.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from radixledger.cache.digest import digest
from radixledger.journal.errors import JournalError
from radixledger.journal.events import Opened
from radixledger.journal.frame import Frame
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Rank
from radixledger.replay.crew import Steps, peak_bytes
from radixledger.replay.seek import beginning_of
from radixledger.replay.whatif.bound import Use, best_hits
from radixledger.replay.whatif.content import content_for
from radixledger.replay.whatif.meter import Figures, Meter
from radixledger.replay.whatif.redrive import Redrive
from radixledger.replay.whatif.requests import transcribed
from radixledger.replay.whatif.schedule import Schedule, ScheduleWriter
from radixledger.replay.whatif.seats import ENDED
from radixledger.replay.whatif.settings import is_recorded
from radixledger.replay.whatif.strayed import Strayed


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
    cpu_seconds: float
    peak_bytes: int
    bound: "Bound"


class Bound(NamedTuple):
    """Belady's bound of one rank, in tokens, for the prompts that came in, as they came in."""

    hit: int
    asked: int


def transcribe(run: Path, rank: Rank, salvage: bool, folder: Path, steps: Steps) -> Transcript | str:
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


def send(schedule: Schedule, opened: Opened, steps: Steps) -> Sent:
    """Send one rank through a configuration."""
    begun = time.process_time()
    redrive = Redrive(
        schedule,
        opened,
        content_for(schedule.opened, opened.config.page_size),
        as_recorded=is_recorded(schedule.opened, opened),
        tick=steps.tick,
    )
    end = redrive.run()
    best = _best(schedule, opened, redrive.asks)
    return Sent(
        redrive.figures, redrive.strayed, redrive.broken, end, time.process_time() - begun, peak_bytes(), best
    )


def _best(schedule: Schedule, opened: Opened, asks: Sequence[int]) -> Bound:
    page_size, job_of, asked = opened.config.page_size, schedule.job_of(), 0
    content = content_for(schedule.opened, page_size)

    def uses() -> Iterator[Use]:
        nonlocal asked
        for at in range(0, len(asks), 2):
            number, prompt = asks[at], asks[at + 1]
            job = job_of(number)
            whole = content.whole(number, job)
            if prompt == ENDED:
                key = content.given(whole, job)
                yield Use(key, len(key) // content.stride, False, job.namespace)
            else:
                asked += prompt
                yield Use(content.upto(whole, prompt), (prompt - 1) // page_size, True, job.namespace)

    hits = best_hits(uses(), stride=content.stride, capacity=opened.config.full_pages)
    return Bound(hits * page_size, asked)
