"""Where a finding of the whole state began: the first command behind which a law no more holds that held before it.

By bisection over the events between the two, on copies of the last lawful state: twice the folding of that stretch, and
the logarithm of it in looks at the whole state. Rule: a law that healed and broke again is told where it broke last.
"""

from msgspec.structs import replace

from radixledger.cache.image import image, restore
from radixledger.cache.invariants import LAWS
from radixledger.cache.state import State
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Seq
from radixledger.replay.fold import fold
from radixledger.replay.seek import beginning_of, state_at
from radixledger.replay.verdict import Told, told

BY_NAME = {law.__name__: law for law in LAWS}


def first_broken_frame(reader: JournalReader, seen: Told) -> Told | None:
    """The finding as of the command that broke the law; None where `seen` is of an event, or of something recorded."""
    law = BY_NAME.get(seen.law)
    if law is None or seen.lawful_at is None:
        return None
    state = state_at(reader, seen.lawful_at) if seen.lawful_at else beginning_of(reader).state
    low, high = _at(state) + 1, seen.seq
    while low < high:
        stop = _end_of(reader, (low + high) // 2)
        if stop >= high:
            break
        tried = fold(reader.frames(Seq(_at(state) + 1)), _copy(state), until=stop)
        if any(law(tried)):
            high = stop
        else:
            state, low = tried, stop + 1
    for frame in reader.frames(Seq(_at(state) + 1)):
        state = fold((frame,), state)
        found = next(law(state), None)
        if found is not None:
            return replace(told(found, frame, seen.lawful_at), seq=frame.seq_first)
        if state.seq >= seen.seq:
            break
    return None


def _at(state: State | None) -> int:
    return 0 if state is None else state.seq


def _end_of(reader: JournalReader, seq: int) -> int:
    """The last event of the command that event `seq` belongs to."""
    frame = next(iter(reader.frames(Seq(seq))))
    return frame.seq_first + len(frame.events) - 1


def _copy(state: State | None) -> State | None:
    return None if state is None else restore(image(state))
