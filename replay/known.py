"""Whether a fold has the writer's state: not behind a gap or a broken chain, until something says that it has it again.

For commands that show or ask a state; `audit`, which judges everything, keeps its own account of the same. Rule: a digest that
agrees with the folded state, or a new epoch, ends what is not known; a snapshot to begin from comes before it is asked here.
"""

from collections.abc import Iterable, Iterator

from radixledger.cache.digest import digest
from radixledger.cache.state import Finding, State
from radixledger.journal.events import AnyEvent, Closed, Digested, Gap, LedgerTaken, Opened, Snapshotted
from radixledger.journal.frame import Frame
from radixledger.journal.reader import JournalReader
from radixledger.replay.fold import moments
from radixledger.replay.seek import Watch, beginning_before, check_known, opened_of, state_at


class Known:
    """Follows a fold. `lost_at` is the event behind which the state is not known, 0 while it is."""

    def __init__(self) -> None:
        self.lost_at = 0

    def frames(self, reader: JournalReader, frames: Iterable[Frame]) -> Iterator[Frame]:
        """The same frames; where the chain is broken in front of one, track is lost."""
        breaks = len(reader.breaks)
        for frame in frames:
            if len(reader.breaks) > breaks:
                breaks = len(reader.breaks)
                self.lost_at = self.lost_at or int(frame.seq_first)
            yield frame

    def see(self, state: State, event: AnyEvent) -> None:
        """Look at the next event, before it is folded onto `state`."""
        match event:
            case Gap():
                self.lost_at = self.lost_at or int(state.seq) + 1
            case Opened():
                self.lost_at = 0
            case Digested() | Closed() | LedgerTaken() | Snapshotted() if self.lost_at and event.digest:
                if digest(state) == event.digest:
                    self.lost_at = 0
            case _:
                pass


def unknown_words(lost_at: int) -> str:
    """What is to be said of a place behind `lost_at`."""
    return (
        f"events are missing at event {lost_at}: behind it the state is not known, until a recorded digest agrees, a snapshot stands in,"
        " or a new epoch begins"
    )


def reached(reader: JournalReader, seq: int, watch: Watch = iter) -> tuple[State, int]:
    """The state after event `seq` and, where that is not known to be the writer's, the event behind which it is not; else 0.

    What was found while it was not known is left out of its findings, which are cut as by `moments`. Raises as `seek.state_at`.
    """
    check_known(reader, seq)
    begin, known = beginning_before(reader, seq), Known()
    state, sound = begin.state, list[Finding]()
    if state is not None and state.seq == seq:
        return state, 0
    frames = _upto(known.frames(reader, watch(reader.frames(begin.next_seq))), seq)
    for moment in moments(frames, state, opened_of(reader)):
        state, before = moment.state, known.lost_at
        if not before:
            sound = list(state.findings)
        known.see(state, moment.event)
        if before and not known.lost_at:
            state.findings[:] = sound
    if state is None:  # nothing but the event that opens it
        return state_at(reader, seq), 0
    if known.lost_at:
        state.findings[:] = sound
    return state, known.lost_at


def _upto(frames: Iterable[Frame], seq: int) -> Iterator[Frame]:
    """The frames up to the one that holds event `seq`, and of that the events up to it."""
    for frame in frames:
        if frame.seq_first > seq:
            return
        yield frame._replace(events=frame.events[: seq - frame.seq_first + 1])
        if frame.seq_last >= seq:
            return
