"""Where operations are measured: a rank with its journal on disk, at one commit policy.

Under policy `step`, 32 operations make a frame, as a busy step of a server would. Rule: a bed that was used is
checked: its journal is closed, replayed, and must be clean and whole.
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import mkdtemp

from radixledger.cache.rank import RankCache
from radixledger.journal.events import Config
from radixledger.journal.units import Rank
from radixledger.journal.writer import Policy
from radixledger.replay.verify import verify_rank
from radixledger.tools.opening import Recording, open_rank

OPERATIONS_PER_FRAME = 32

WORKLOAD = Config(128, 2048, 768, 1024, rows=64, context_pages=512)
"""The rank of the multi-turn workload under SWA pressure."""


class JournalNotClean(Exception):
    """The journal of a benchmark does not replay: its figures mean nothing."""


class Bed:
    """Makes ranks for one benchmark and checks them afterwards; `topic` heads its figures."""

    def __init__(self, folder: Path, policy: Policy, *, page_size: int = 128, window: int = 1024) -> None:
        self.folder = folder
        self.policy = policy
        self.topic = f"operations, policy {policy.value}"
        self._sizes = page_size, window
        self._runs: dict[int, Path] = {}
        self._steps = 0

    def rank(self, *, full_pages: int, context_pages: int = 64) -> RankCache:
        """A fresh rank whose SWA pool is as large as its FULL pool."""
        page_size, window = self._sizes
        run = Path(mkdtemp(dir=self.folder)) / "run"
        config = Config(page_size, full_pages, full_pages, window, rows=64, context_pages=context_pages)
        cache = open_rank(RankCache, config, Recording(run, self.policy))
        self._runs[id(cache)] = run
        return cache

    def tick(self, cache: RankCache, every: int = OPERATIONS_PER_FRAME) -> None:
        """One operation is over; every so many make a step."""
        self._steps += 1
        if cache.journal is not None and self._steps % every == 0:
            cache.journal.end_step(self._steps)

    def ticking(
        self, cache: RankCache, operations: Sequence[Callable[[], object]], every: int = OPERATIONS_PER_FRAME
    ) -> Iterator[Callable[[], object]]:
        """The operations one after the other; the step that a frame belongs to ends inside the last one of it."""
        for place, operation in enumerate(operations, 1):
            if place % every:
                yield operation
            else:
                yield _Last(operation, cache, place)

    def check(self, cache: RankCache) -> None:
        """Close the journal and replay it; raises JournalNotClean unless every event is there and lawful."""
        events = int(cache.state.seq) + 1
        cache.close()
        run = self._runs.pop(id(cache))
        report = verify_rank(run, Rank(0))
        if not report.clean or report.events != events:
            raise JournalNotClean(
                f"{run}: {report.events} of {events} events, {report.broken or report.unreadable}"
            )
        shutil.rmtree(run.parent)


class _Last:
    """An operation that also ends the step, so that the cost of its frame is counted."""

    def __init__(self, operation: Callable[[], object], cache: RankCache, step: int) -> None:
        self._operation, self._cache, self._step = operation, cache, step

    def __call__(self) -> None:
        self._operation()
        if self._cache.journal is not None:
            self._cache.journal.end_step(self._step)
