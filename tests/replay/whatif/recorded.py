"""Runs that were recorded, taken out of their journals and sent again: material for the tests of what-if."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from radixledger.cache.digest import digest
from radixledger.cache.rank import RankCache
from radixledger.journal.events import AnyEvent, Config, Opened
from radixledger.journal.frame import Frame
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Rank
from radixledger.replay.seek import beginning_of
from radixledger.replay.whatif.content import content_for
from radixledger.replay.whatif.meter import Figures, Meter
from radixledger.replay.whatif.redrive import Redrive
from radixledger.replay.whatif.requests import transcribed
from radixledger.replay.whatif.schedule import Act, Job, Schedule, ScheduleWriter
from radixledger.replay.whatif.settings import configured, is_recorded
from radixledger.tools.driver import Driver
from radixledger.tools.opening import Recording, open_rank
from radixledger.tools.streams import ConversationStream, Shape, Stream
from radixledger.tools.streams import Job as Asked

from ..runs import framed

TALK = Shape(conversations=10, turns=3, system=40, user=30, answer=12, active=6)
PAGE, ROWS, CONTEXT, CHUNK, RUNNING = 8, 8, 64, 64, 6


class Sequenced:
    """A stream of the jobs that a test names."""

    def __init__(self, jobs: Sequence[Asked]) -> None:
        self._jobs = list(jobs)

    def take(self) -> Asked | None:
        return self._jobs.pop(0) if self._jobs else None

    def ended(self, job: Asked, answer: object) -> None:
        """Nothing waits."""


def drive(
    run: Path,
    *,
    route: str = "unified",
    full: int = 44,
    swa: int = 30,
    window: int = 20,
    tokens: str = "hashed",
    stream: Stream | None = None,
    steps: int | None = None,
    recording: Recording | None = None,
    page: int = PAGE,
    running: int = RUNNING,
    **config: Any,
) -> Driver:
    """Drive a small rank into a journal; steps: stop after so many, with everybody still there."""
    config = {"rows": ROWS, "context_pages": CONTEXT * PAGE // page, **config}
    recording = recording or Recording(run, tokens=tokens)
    cache = open_rank(RankCache, Config(page, full, swa, window, **config), recording, route=route)  # type: ignore[arg-type]
    driver = Driver(cache, stream or ConversationStream(TALK), chunk_tokens=CHUNK, max_running=running)
    while driver.step() and (steps is None or driver.clock.steps < steps):
        pass
    cache.close()
    return driver


class Taken(NamedTuple):
    """What a journal says of requests."""

    schedule: Schedule
    figures: Figures
    digest: bytes

    @property
    def acts(self) -> list[Act]:
        return list(self.schedule.acts())

    @property
    def jobs(self) -> list[Job]:
        return [*map(self.schedule.job_of(), range(self.schedule.jobs))]


def taken(run: Path, room: Path, *, salvage: bool = False) -> Taken:
    """The schedule of rank 0 of a run, kept in `room`."""
    reader = JournalReader(run, Rank(0), salvage=salvage)
    begin = beginning_of(reader)
    return _taken(reader.frames(begin.next_seq), reader.opened, room, begin.state)


def taken_of(events: Sequence[AnyEvent], room: Path) -> Taken:
    """The schedule of events that begin with `Opened`."""
    (opened,) = [event for event in events[:1] if isinstance(event, Opened)]
    return _taken(framed(events), opened, room)


def _taken(frames: Iterable[Frame], opened: Opened, room: Path, state: Any = None) -> Taken:
    room.mkdir()
    writer, meter = ScheduleWriter(room), Meter()
    try:
        schedule, end = transcribed(frames, state, opened, writer, meter)
    finally:
        writer.abandon()
    return Taken(schedule, meter.finish(end), digest(end))


def sent(record: Taken, **settings: str) -> tuple[Redrive, bytes]:
    """A record sent through other settings, and the digest of the state at the end."""
    recorded = record.schedule.opened
    opened = configured(recorded, settings)
    redrive = Redrive(
        record.schedule,
        opened,
        content_for(recorded, opened.config.page_size),
        as_recorded=is_recorded(recorded, opened),
        tick=lambda _: None,
    )
    return redrive, redrive.run()


def without(record: Taken, *, acts: Sequence[Act], room: Path) -> Taken:
    """The same record with other acts."""
    room.mkdir()
    writer = ScheduleWriter(room)
    for job in record.jobs:
        writer.end_job(writer.new_job(), job)
    for act in acts:
        writer.tell(act)
    return record._replace(
        schedule=writer.close(replace(record.schedule.opened), record.schedule.chunk_tokens)
    )
