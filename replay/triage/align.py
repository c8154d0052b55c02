"""Ranks beside each other, by step: steps are counted by the scheduler that all ranks share, clocks are not.

Rule: an event is found by bisection over its journal, one frame a look; a rank that restarted counts its steps anew, and is
looked at as it counts.
"""

from pathlib import Path

from msgspec import Struct

from radixledger.journal.errors import JournalError
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
        first = _first_from(reader, step)
        return StepSpan(step, first, _first_from(reader, step + 1) - 1)
    except (JournalError, OSError):
        return None


def _first_from(reader: JournalReader, step: int) -> int:
    """The first event of this step or a later one; one behind the last where there is none."""
    low, high = int(reader.first_seq), reader.last_seq + 1
    while low < high:
        middle = (low + high) // 2
        frame = next(iter(reader.frames(Seq(middle))))
        if frame.step >= step:
            high = middle
        else:
            low = frame.seq_last + 1
    return low
