"""Small journals for tests, written by the real writer with a clock that ticks and a disk that can fail."""

import errno
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from radixledger.journal.disk import Disk
from radixledger.journal.events import AnyEvent
from radixledger.journal.folder import listing, rank_folder
from radixledger.journal.frame import Frame, RawFrame
from radixledger.journal.reader import JournalReader
from radixledger.journal.segment import Segment
from radixledger.journal.units import Rank
from radixledger.journal.writer import JournalWriter, Sealing

from .events_sample import commands, opened

RANK = Rank(0)
TICK_NS = 1_000


class Clock:
    """Virtual time: one tick further at every look."""

    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        self.now_ns += TICK_NS
        return self.now_ns


def some_commands(count: int, seed: int = 1) -> list[list[AnyEvent]]:
    """The events of `count` commands, one list each; none is empty."""
    return list(islice(filter(None, commands(seed)), count))


def new_writer(run: Path, **options: Any) -> JournalWriter:
    """A writer with plain tokens and virtual time that seals before its calls return."""
    defaults: dict[str, Any] = {"clock": Clock(), "sealing": Sealing.INLINE}
    return JournalWriter.open(run, opened(""), **(defaults | options))


def write(run: Path, frames: Iterable[Sequence[AnyEvent]], **options: Any) -> list[list[AnyEvent]]:
    """A closed journal of one frame per element; the frames that are in it, the one of `Opened` first."""
    with new_writer(run, **options) as writer:
        written: list[list[AnyEvent]] = [[writer.opened]]
        for events in frames:
            append(writer, events)
            written.append(list(events))
    return written


def append(writer: JournalWriter, events: Iterable[AnyEvent]) -> None:
    """One command."""
    for event in events:
        writer.append(event)
    writer.end_command()


def read(run: Path, *, salvage: bool = False) -> list[list[AnyEvent]]:
    """The events of every frame."""
    return [frame.events for frame in JournalReader(run, RANK, salvage=salvage).frames()]


def read_until_error(run: Path) -> tuple[list[Frame], Exception | None, list[str]]:
    """The frames before the first error, that error, and the notices."""
    frames: list[Frame] = []
    try:
        reader = JournalReader(run, RANK)
        frames.extend(reader.frames())
    except Exception as error:  # noqa: BLE001 — whatever a hostile file can raise is what the test is about
        return frames, error, []
    return frames, None, reader.notices


def segment_paths(run: Path) -> list[Path]:
    """The files of the segments, oldest first."""
    return [each.path for each in listing(rank_folder(run, RANK)).segments]


def only_segment(run: Path) -> Path:
    """The file of the one segment that there is."""
    (path,) = segment_paths(run)
    return path


def frames_in(segment: Segment) -> list[RawFrame]:
    """The frames from where a segment stands to its end."""
    return [raw for batch in iter(segment.read, []) for raw in batch]


class BrokenDisk(Disk):
    """A disk on which some calls fail while `broken` is set."""

    def __init__(self, *calls: str, code: int = errno.ENOSPC) -> None:
        self.broken = False
        self.failures = 0
        self._code = code
        for name in calls:
            setattr(self, name, self._failing(getattr(self, name)))

    def _failing(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def attempt(*arguments: Any, **options: Any) -> Any:
            if self.broken:
                self.failures += 1
                raise OSError(self._code, "the disk is broken")
            return call(*arguments, **options)

        return attempt
