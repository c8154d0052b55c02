"""Upkeep: finished segments are sealed and old ones dropped, beside the writer and out of its way.

Rule: upkeep may fail without harm. A segment that cannot be sealed stays live and readable, and the next
writer tries again; a remark tells of it.
"""

import queue
import threading
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

from radixledger.journal.belonging import Whose
from radixledger.journal.disk import Disk
from radixledger.journal.errors import ReaderError
from radixledger.journal.retention import Dropped, Retention, retain
from radixledger.journal.seal import seal
from radixledger.journal.segment import SegmentFile, UnfinishedHeading
from radixledger.journal.units import Seq


class Sealing(StrEnum):
    """When a finished segment is sealed."""

    BACKGROUND = "background"
    """On a thread of its own, which leaves the interpreter to others while it compresses and writes: it has it for
    the frames of one block at a time."""
    INLINE = "inline"
    """Before the call that finished it returns."""
    NEVER = "never"


class Upkeep:
    """Seals what it is handed and then applies the standing `retention`; `remark` receives what went wrong."""

    def __init__(
        self,
        folder: Path,
        disk: Disk,
        clock: Callable[[], int],
        *,
        sealing: Sealing,
        retention: Retention,
        whose: Whose,
        remark: Callable[[str], None],
    ) -> None:
        self._folder, self._disk, self._clock, self._remark = folder, disk, clock, remark
        self._sealing, self._retention, self._whose = sealing, retention, whose
        self._one_at_a_time = threading.Lock()
        self._jobs: queue.Queue[tuple[SegmentFile, Seq | None] | None] = queue.Queue()
        self._thread: threading.Thread | None = None

    def finished(self, listed: SegmentFile, until: Seq | None) -> None:
        """A live segment will not grow any more; numbers from `until` on are told by a later one."""
        match self._sealing:
            case Sealing.INLINE:
                self._seal(listed, until)
            case Sealing.BACKGROUND:
                self._start()
                self._jobs.put((listed, until))
            case Sealing.NEVER:
                pass

    def retain(self, retention: Retention) -> Dropped:
        """Apply a retention now, after what is being sealed; raises OSError."""
        self.drain()
        with self._one_at_a_time:
            return retain(self._folder, self._whose, retention, self._clock(), self._disk)

    def drain(self) -> None:
        """Until everything that was handed over is sealed, or was given up with a remark."""
        if self._thread is not None:
            self._jobs.join()

    def close(self) -> None:
        """Finish what was handed over and end the thread."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="journal-upkeep", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                self._seal(*job)
            except Exception as error:  # noqa: BLE001 — whatever it is, the jobs behind it are waited for
                self._remark(f"{job[0].path.name} stays as it is: {error!r}")
            finally:
                self._jobs.task_done()
        self._jobs.task_done()

    def _seal(self, listed: SegmentFile, until: Seq | None) -> None:
        with self._one_at_a_time:
            try:
                seal(listed, self._disk, until=until)
                if self._retention != Retention():
                    retain(self._folder, self._whose, self._retention, self._clock(), self._disk)
            except (ReaderError, UnfinishedHeading, OSError) as error:
                self._remark(f"{listed.path.name} stays as it is: {error}")
