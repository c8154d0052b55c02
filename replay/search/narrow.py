"""Where what a finding is about began: the first command behind which a law no more holds that held before it.

A finding of the whole state, or of a digest, is seen long after its cause; and an event can break a law on its own account
when another one had been broken in silence. Both are narrowed by bisection, on copies of the last lawful state: twice the
folding of the stretch, and the logarithm of it in looks at the whole state. Rule: a law that healed and broke again is told
where it broke last.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from radixledger.cache.laws.invariants import LAWS
from radixledger.cache.laws.law import Law
from radixledger.cache.state import Finding, State
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Seq
from radixledger.replay.search.halving import halved, seq_of, states_behind
from radixledger.replay.seek import beginning_of, state_at
from radixledger.replay.verdict import Told, told


class Traced(NamedTuple):
    """What a finding was traced back to, None where to nothing; then the state behind the command before it, if that was folded."""

    told: Told | None
    before: State | None


def traced_back(reader: JournalReader, seen: Told, laws: Sequence[Law] = LAWS) -> Traced:
    """The command that broke one of `laws` of the whole state which did not hold any more where `seen` was found.

    Where `seen` is what an event broke by itself, asked is the state behind the command before.
    """
    low = seen.lawful_at
    high = seen.seq if low is not None else _stands_in(reader, seen.seq) - 1
    begin = beginning_of(reader)
    if high <= seq_of(begin.state):
        return Traced(None, None)
    state = state_at(reader, high)
    broken = [law for law in laws if any(law(state))]
    if broken:
        return Traced(first_broken(reader, low or seq_of(begin.state), high, broken), None)
    return Traced(None, state if low is None else None)


def first_broken(reader: JournalReader, low: int, high: int, laws: Sequence[Law]) -> Told | None:
    """The first command behind event `low` that breaks one of `laws`, all of which hold there and not behind `high`."""
    state = state_at(reader, low) if low else beginning_of(reader).state
    state, high = halved(reader, state, high, lambda tried: any(_broken(tried, laws)), 1)
    for frame, behind in states_behind(reader, state):
        found = next(_broken(behind, laws), None)
        if found is not None:
            return replace(told(found, frame, low), seq=frame.seq_first)
        if behind.seq >= high:
            break
    return None


def _broken(state: State, laws: Sequence[Law]) -> Iterator[Finding]:
    for law in laws:
        yield from law(state)


def _stands_in(reader: JournalReader, seq: int) -> int:
    """The first event of the command that event `seq` belongs to."""
    for _, raw in reader.raw_frames(Seq(seq)):
        return raw.seq_first
    return seq
