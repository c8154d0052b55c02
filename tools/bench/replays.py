"""`radixledger bench replay`: how fast a long journal is verified, and how much memory that takes.

The journal of each size is that of one drive of the multi-turn workload under SWA pressure, which goes on until so many
events are recorded; verified it is as `radixledger replay verify` does it, in a process of its own: this module, run as
a program. CPU seconds and peak memory are that process's, from its start. Rule: a journal that does not verify has no
figures.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from shutil import rmtree
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from radixledger.cache.rank import RankCache
from radixledger.journal.units import Rank
from radixledger.journal.writer import Policy
from radixledger.replay.crew import peak_bytes
from radixledger.replay.verify import verify_rank
from radixledger.tools.bench.bed import WORKLOAD, JournalNotClean
from radixledger.tools.console import bytes_text, count_text, print_json, progress, seconds_text
from radixledger.tools.driver import Driver, StepClock
from radixledger.tools.opening import Recording, open_rank
from radixledger.tools.streams import ConversationStream, Job, Shape
from radixledger.tools.table import print_table

EVENTS = 1_000_000
"""Events that are recorded where nobody says how many."""

EVENTS_BAR = 200_000
"""Events that should be verified in a second."""

_EVENTS_OF_A_CONVERSATION = 100
"""Fewer than a conversation of eight turns leaves, so that there are always enough of them."""


class Replay(NamedTuple):
    """One journal, written and verified. Seconds are CPU seconds; `peak_bytes` is the most that verifying held in memory."""

    events: int
    journal_bytes: int
    drive_seconds: float
    verify_seconds: float
    peak_bytes: int

    @property
    def rate(self) -> float:
        """Events verified in a second."""
        return self.events / self.verify_seconds


class _Until:
    """A stream of conversations that runs dry once the rank has recorded so many events."""

    def __init__(self, cache: RankCache, events: int, advance: Callable[[int], None]) -> None:
        shape = Shape(conversations=Shape().active + events // _EVENTS_OF_A_CONVERSATION)
        self._stream, self._cache, self._events, self._advance = (
            ConversationStream(shape),
            cache,
            events,
            advance,
        )
        self._told = 0

    def take(self) -> Job | None:
        """The next turn, while events are wanted."""
        seq = int(self._cache.state.seq)
        self._advance(min(seq, self._events) - self._told)
        self._told = min(seq, self._events)
        return self._stream.take() if seq < self._events else None

    def ended(self, job: Job, answer: NDArray[np.int32]) -> None:
        """Tell the conversations."""
        self._stream.ended(job, answer)


def replays(folder: Path, sizes: Sequence[int], advance: Callable[[int], None]) -> Iterator[Replay]:
    """Write and verify a journal of each size, one after the other; raises JournalNotClean."""
    for events in sizes:
        run = folder / f"run-{events}"
        begun = time.process_time()
        recorded = _drive(run, events, advance)
        drive_seconds = time.process_time() - begun
        size = sum(entry.stat().st_size for entry in run.rglob("*") if entry.is_file())
        verify_seconds, peak_bytes = _verify(run)
        rmtree(run)
        yield Replay(recorded, size, drive_seconds, verify_seconds, peak_bytes)


def _drive(run: Path, events: int, advance: Callable[[int], None]) -> int:
    """Record at least so many events, to a clean end; how many they are."""
    clock = StepClock()
    cache = open_rank(RankCache, WORKLOAD, Recording(run, Policy.STEP), clock=clock)
    driver = Driver(cache, _Until(cache, events, advance), chunk_tokens=2048, max_running=32, clock=clock)
    while driver.step():
        pass
    cache.close()
    return int(cache.state.seq)


def _verify(run: Path) -> tuple[float, int]:
    """CPU seconds and peak memory of a process that verifies the run."""
    verify = [sys.executable, "-m", "radixledger.tools.bench.replays", str(run)]
    told = json.loads(subprocess.run(verify, stdout=subprocess.PIPE, check=True).stdout)
    if not told["clean"]:
        raise JournalNotClean(f"{run}: {told['why']}")
    return told["seconds"], told["peak_bytes"]


def _verified(run: Path) -> dict[str, object]:
    """What this process has to tell of a run that it verified."""
    found = verify_rank(run, Rank(0))
    why = found.unreadable or str(found.broken)
    return {
        "clean": found.clean,
        "why": why,
        "seconds": time.process_time(),
        "peak_bytes": peak_bytes(),
    }


def report(folder: Path, sizes: Sequence[int], *, as_json: bool) -> None:
    """Measure all sizes and print them, a row for each."""
    with progress("recording events", sum(sizes)) as advance:
        found = list(replays(folder, sizes, advance))
    if as_json:
        print_json({"bar": EVENTS_BAR, "replays": [{**each._asdict(), "rate": each.rate} for each in found]})
        return
    print_table(COLUMNS, [_row(each) for each in found], title="replay verify, in a process of its own")


COLUMNS = ("events", "journal", "recorded in", "verified in", "a second", "bar", "peak memory")


def _row(each: Replay) -> list[object]:
    return [
        count_text(each.events),
        bytes_text(each.journal_bytes),
        seconds_text(each.drive_seconds),
        seconds_text(each.verify_seconds),
        count_text(round(each.rate)),
        f"≥ {count_text(EVENTS_BAR)}: {'yes' if each.rate >= EVENTS_BAR else 'no'}",
        bytes_text(each.peak_bytes),
    ]


if __name__ == "__main__":
    print_json(_verified(Path(sys.argv[1])))
