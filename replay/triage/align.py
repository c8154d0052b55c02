"""Ranks beside each other, by step: steps are counted by the scheduler that all ranks share, clocks are not.

Rule: an event is found by bisection over its journal, one frame a look; a rank that restarted counts its steps anew, and is
looked at as it counts.
"""

from pathlib import Path

from msgspec import Struct

from radixledger.journal.errors import JournalError
from radixledger.journal.events import Gap
from radixledger.journal.frame import Frame
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Rank, Seq


class StepSpan(Struct, frozen=True):
    """The events of one rank that were written in one step; none where `seq_last` is below `seq_first`."""

    step: int
    seq_first: int
    seq_last: int


def span_of_step(run: Path, rank: Rank, step: int) -> StepSpan | None:
    """What a rank wrote in a step; None where its journal cannot be read that far."""
    try:
        reader = JournalReader(run, rank, salvage=True)
        end = reader.last_seq + 1
        first, stop = (_first_from(reader, each, end) for each in (step, step + 1))
        frame = _told(reader, first) if first < stop else None
        return StepSpan(step, first if frame is None else int(frame.seq_first), stop - 1)
    except (JournalError, OSError):
        return None


def _first_from(reader: JournalReader, step: int, end: int) -> int:
    """The first number from which on nothing earlier than this step is told; `end`, one behind the last, where there is none."""
    low, high = int(reader.first_seq), end
    while low < high:
        middle = (low + high) // 2
        frame = _told(reader, middle)
        if frame is None or frame.step >= step:
            high = middle
        else:
            low = frame.seq_last + 1
    return low


def _told(reader: JournalReader, seq: int) -> Frame | None:
    """The first frame from an event on that is no gap: a gap is of no step."""
    return next((frame for frame in reader.frames(Seq(seq)) if type(frame.events[0]) is not Gap), None)
