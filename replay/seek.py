"""The state as of any event or time: the nearest snapshot at or before it, and the events from there on (J12, J13).

Rule: a snapshot is believed only if the state it gives has the digest that was recorded with it; otherwise an
older one is taken, or the beginning.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from radixledger.cache.digest import digest
from radixledger.cache.evolve import STRANGE
from radixledger.cache.image import BadImage, image, restore
from radixledger.cache.state import State
from radixledger.journal.errors import Damaged, NoBaseline, NoSuchEvent, ReaderError
from radixledger.journal.events import Opened
from radixledger.journal.reader import Frame, JournalReader, SnapshotRef
from radixledger.journal.units import Seq
from radixledger.replay.fold import fold

Watch = Callable[[Iterable[Frame]], Iterable[Frame]]
"""Passes frames on while somebody looks, as a progress bar does."""


class BadSnapshot(ReaderError):
    """The snapshot after event `seq` gives no state, or one with another digest than was recorded."""

    def __init__(self, ref: SnapshotRef, reason: str) -> None:
        super().__init__(f"{ref.path}: {reason}")
        self.seq, self.reason = ref.seq, reason


class Beginning(NamedTuple):
    """Where a fold begins: the state of a snapshot, or nothing; and the snapshots that were passed over, with why."""

    state: State | None
    passed_over: list[str]

    @property
    def next_seq(self) -> Seq:
        """The first event to fold."""
        return Seq(1 if self.state is None else self.state.seq + 1)


def load(reader: JournalReader, ref: SnapshotRef) -> State:
    """The state that a snapshot holds; raises BadSnapshot, or what the reader raises."""
    packed, recorded = reader.read_snapshot(ref)
    try:
        state = restore(packed)
    except BadImage as error:
        raise BadSnapshot(ref, str(error)) from error
    if state.seq != ref.seq:
        raise BadSnapshot(ref, f"its image is that of event {state.seq}")
    if digest(state) != recorded:
        raise BadSnapshot(ref, f"its state has digest {digest(state).hex()}, recorded was {recorded.hex()}")
    return state


def standing_in(
    reader: JournalReader, note: Callable[[str], object] = lambda _: None
) -> Callable[[Seq], State | None]:
    """The state that a snapshot holds after an event, for `known.Known`; None where none is good, and why goes to `note`."""
    refs = {ref.seq: ref for ref in reader.snapshots()}

    def snapshot_at(seq: Seq) -> State | None:
        try:
            return load(reader, refs[seq]) if seq in refs else None
        except (ReaderError, FileNotFoundError) as error:
            note(str(error))
            return None

    return snapshot_at


def opened_of(reader: JournalReader) -> Opened | None:
    """What the journal was opened with; in salvage None where no heading can be read, and the first event has to say it."""
    try:
        return reader.opened
    except Damaged:
        if reader.salvage:
            return None
        raise


def beginning_before(reader: JournalReader, seq: int) -> Beginning:
    """The newest snapshot at or before event `seq` that is good; raises NoBaseline where there is none and has to be."""
    passed_over: list[str] = []
    for ref in reversed(reader.snapshots()):
        if ref.seq <= seq:
            try:
                return Beginning(load(reader, ref), passed_over)
            except (ReaderError, FileNotFoundError) as error:
                passed_over.append(str(error))
    if reader.first_seq != 1:
        raise NoBaseline(reader.folder, first_seq=reader.first_seq)
    return Beginning(None, passed_over)


def beginning_of(reader: JournalReader) -> Beginning:
    """Where the journal begins: its first event or, after retention, the snapshot that stands in for what is gone."""
    ref = reader.baseline()
    return Beginning(load(reader, ref) if ref else None, [])


def frames_upto(reader: JournalReader, seq: int) -> Iterator[Frame]:
    """The frames from the beginning on, the last of them the one that event `seq` is in; raises whatever reading raises."""
    for frame in reader.frames(beginning_of(reader).next_seq):
        if frame.seq_first > seq:
            return
        yield frame


def check_known(reader: JournalReader, seq: int) -> None:
    """Raise NoSuchEvent for an event behind which no state can be known: before the journal begins, or behind its end."""
    last, baseline = reader.last_seq, reader.baseline()
    first = baseline.seq if baseline is not None else Seq(1)
    if not first <= seq <= last:
        raise NoSuchEvent(reader.folder, seq=Seq(seq), first_seq=first, last_seq=last)


def state_at(reader: JournalReader, seq: int, watch: Watch = iter) -> State:
    """The state after event `seq`; raises NoSuchEvent, NoBaseline, Unfoldable and whatever reading raises."""
    check_known(reader, seq)
    begin = beginning_before(reader, seq)
    if begin.state is not None and begin.state.seq == seq:
        return begin.state
    return fold(watch(reader.frames(begin.next_seq)), begin.state, until=seq, opened=opened_of(reader))


def copied(state: State) -> State | None:
    """The same state once more, for who folds on from both; None for a lawless one, which no image tells whole."""
    try:
        copy = restore(image(state))
        return copy if digest(copy) == digest(state) else None
    except STRANGE:
        return None


def seq_at(reader: JournalReader, time_ns: int) -> Seq:
    """The last event before the first frame that is later than `time_ns`; raises NoSuchEvent where all are later."""
    later = reader.seq_at_time(time_ns + 1)
    seq = reader.last_seq if later is None else Seq(later - 1)
    if seq < 1:
        raise NoSuchEvent(reader.folder, seq=seq, first_seq=reader.first_seq, last_seq=reader.last_seq)
    return seq
