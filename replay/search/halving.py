"""Between a state where an answer is no and an event behind which it is yes: by halves, as near as is asked for.

States are folded on from copies of the last one with no. Rules: it ends between commands; a lawless state has no copy, and
is not folded on by halves.
"""

from collections.abc import Callable, Iterator

from radixledger.cache.state import State
from radixledger.journal.frame import Frame
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Seq
from radixledger.replay.fold import fold
from radixledger.replay.seek import copied, opened_of


def halved(
    reader: JournalReader, state: State | None, high: int, is_so: Callable[[State], bool], down_to: int
) -> tuple[State | None, int]:
    """A later state with no (None: before the first event), and an earlier event with yes.

    They are `down_to` events apart or less, or a command, or what could not be halved. Raises what folding and reading raise.
    """
    while high - seq_of(state) > down_to:
        stop = frame_at(reader, (seq_of(state) + high) // 2).seq_last
        copy = None if state is None else copied(state)
        if stop >= high or (state is not None and copy is None):
            break
        tried = fold(frames_behind(reader, state), copy, until=stop, opened=opened_of(reader))
        if is_so(tried):
            high = stop
        else:
            state = tried
    return state, high


def states_behind(reader: JournalReader, state: State | None) -> Iterator[tuple[Frame, State]]:
    """Each command behind `state`, which is changed, and the state behind that command."""
    opened = opened_of(reader)
    for frame in frames_behind(reader, state):
        state = fold((frame,), state, opened=opened)
        yield frame, state


def frames_behind(reader: JournalReader, state: State | None) -> Iterator[Frame]:
    """The commands behind a state."""
    return reader.frames(Seq(seq_of(state) + 1))


def frame_at(reader: JournalReader, seq: int) -> Frame:
    """The command that event `seq` belongs to, from that event on."""
    return next(iter(reader.frames(Seq(seq))))


def seq_of(state: State | None) -> int:
    """The event behind which a state is; 0 for none."""
    return 0 if state is None else state.seq
