"""Journal → store: reads the ranks of runs and appends them, batch by batch, behind what is there.

Rule 1: memory does not grow with the journal; a batch is some hundred thousand events. While one batch is
stored, on another thread, the next one is read.

Rule 2: a run is known by its id and nothing else. Its last loaded event must still be the one in the
journal, or this is another run of the same name, and is refused.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from radixledger.analytics.batch import Columns
from radixledger.analytics.columns import columns, end_to_end
from radixledger.analytics.store import Loaded, Store
from radixledger.journal.errors import JournalError, NoSuchEvent
from radixledger.journal.frame import Frame
from radixledger.journal.reader import JournalReader, ranks_in
from radixledger.journal.units import Rank, Seq

BATCH_EVENTS = 1 << 18
PART_EVENTS = 1 << 13


class LoadError(Exception):
    """A journal that does not go on where the store ends; nothing of it was loaded by this call."""


class LoadedRank(NamedTuple):
    """What one call loaded of one rank: events `first_seq` to `last_seq`, both 0 when there was nothing new.

    `notices` are the reader's remarks, about a torn end for example.
    """

    run: str
    rank: Rank
    events: int
    first_seq: Seq
    last_seq: Seq
    notices: tuple[str, ...]


def load(
    store: Store,
    run: Path,
    labels: Mapping[str, str] | None = None,
    *,
    salvage: bool = False,
    advance: Callable[[int], None] = lambda _: None,
    batch_events: int = BATCH_EVENTS,
    ranks: Sequence[Rank] = (),
) -> list[LoadedRank]:
    """Load every rank of a run, or `ranks` alone, from where the store ends; calls `advance(events)` after each batch.

    Raises what JournalReader raises for a journal that cannot be read (batches before that place stay),
    MalformedEvent, LoadError and StoreError.
    """
    loaded = []
    for rank in ranks or ranks_in(run):
        reader = JournalReader(run, rank, salvage=salvage)
        name = reader.opened.run or run.name
        report = load_frames(
            store, name, rank, _behind(reader, store.loaded(name, rank)), advance, batch_events
        )
        loaded.append(report._replace(notices=tuple(reader.notices)))
    for name in {report.run for report in loaded}:
        store.label(name, labels or {})
    return loaded


def load_frames(
    store: Store,
    run: str,
    rank: Rank,
    frames: Iterator[Frame],
    advance: Callable[[int], None] = lambda _: None,
    batch_events: int = BATCH_EVENTS,
) -> LoadedRank:
    """Load frames of one rank that come behind what the store has of it."""
    events, first, last = 0, Seq(0), Seq(0)
    readable = _Readable(frames)
    with ThreadPoolExecutor(max_workers=1) as storing:
        stored: Future[None] | None = None
        for tables in _batches(readable, batch_events):
            if stored is not None:
                stored.result()
            stored = storing.submit(store.append, run, rank, tables)
            seq = tables["events"]["seq"]
            first, last = first or Seq(int(seq[0])), Seq(int(seq[-1]))
            events += len(seq)
            advance(len(seq))
        if stored is not None:
            stored.result()
    if readable.error is not None:
        raise readable.error
    return LoadedRank(run, rank, events, first, last, ())


class _Readable:
    """Frames up to where reading fails; what it failed with is kept, so that what came before is stored first."""

    def __init__(self, frames: Iterator[Frame]) -> None:
        self._frames = frames
        self.error: JournalError | None = None

    def __iter__(self) -> Iterator[Frame]:
        try:
            yield from self._frames
        except JournalError as error:
            self.error = error


def _batches(frames: Iterable[Frame], batch_events: int) -> Iterator[dict[str, Columns]]:
    """Columns by the batch, put together from parts: an event is read while it is still in the processor's cache."""
    parts: list[dict[str, Columns]] = []
    waiting = 0
    for part in _parts(frames, min(PART_EVENTS, batch_events)):
        parts.append(columns(part))
        waiting += len(parts[-1]["events"]["seq"])
        if waiting >= batch_events:
            yield end_to_end(parts)
            parts, waiting = [], 0
    if parts:
        yield end_to_end(parts)


def _parts(frames: Iterable[Frame], events: int) -> Iterator[list[Frame]]:
    """Some frames at a time, of so many events or more."""
    part: list[Frame] = []
    waiting = 0
    for frame in frames:
        part.append(frame)
        waiting += len(frame.events)
        if waiting >= events:
            yield part
            part, waiting = [], 0
    if waiting:
        yield part


def _behind(reader: JournalReader, loaded: Loaded | None) -> Iterator[Frame]:
    """The frames behind the last loaded event; raises LoadError where that event is not in the journal."""
    if loaded is None:
        return reader.frames()
    if reader.first_seq == loaded.seq + 1:
        return reader.frames(Seq(loaded.seq + 1))
    frames = reader.frames(loaded.seq)
    try:
        frame = next(frames, None)
    except NoSuchEvent as error:
        raise LoadError(
            f"event {loaded.seq} of {reader.folder} is loaded already, but not in it: {error}"
        ) from error
    if frame is None or (frame.time_ns, type(frame.events[0]).__name__) != (loaded.time_ns, loaded.event):
        raise LoadError(
            f"event {loaded.seq} of {reader.folder} is not the one that was loaded ({loaded.event}):"
            " this is another run of the same id, or a changed copy of it; load it into a place of its own"
        )
    rest = frame._replace(seq_first=Seq(frame.seq_first + 1), events=frame.events[1:])
    return chain([rest], frames) if rest.events else frames
