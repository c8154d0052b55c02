"""Group commit: one thread makes what was written durable, many commands per fdatasync (policy `sync`).

Rule: an fsync that failed is never tried again on the same file; the kernel may have dropped what it could not
write, and a second success would be a lie. The failure stays, for the writer to act on.
"""

import threading
from typing import NamedTuple

from radixledger.journal.live import LiveWriter


class Mark(NamedTuple):
    """A place in a segment that is being written."""

    seq_next: int
    size: int
    chain: bytes


class GroupCommit:
    """Syncs the newest mark whenever there is one that is not durable yet.

    `durable` is the last mark that a sync has covered; `failure` the error of the sync that failed, after which
    nothing more becomes durable until `restart`.
    """

    def __init__(self, segment: LiveWriter) -> None:
        self._changed = threading.Condition()
        self._stopped = False
        self.restart(segment)
        self._thread = threading.Thread(target=self._run, name="journal-commit", daemon=True)
        self._thread.start()

    def restart(self, segment: LiveWriter) -> None:
        """Go on with a new segment, whose heading and everything before it are durable."""
        with self._changed:
            self._segment = segment
            self.durable = self._written = mark(segment)
            self.failure: OSError | None = None
            self._changed.notify_all()

    def written(self) -> None:
        """The segment at hand has grown."""
        with self._changed:
            self._written = mark(self._segment)
            self._changed.notify_all()

    def wait(self, seq: int) -> bool:
        """Until event `seq` is durable; False where a sync failed before that or the thread was stopped."""
        with self._changed:
            while self.durable.seq_next <= seq and self.failure is None and not self._stopped:
                self._changed.wait()
            return self.durable.seq_next > seq

    def drain(self) -> bool:
        """Until everything that was written is durable; False where a sync failed."""
        with self._changed:
            while self.durable != self._written and self.failure is None:
                self._changed.wait()
            return self.failure is None

    def stop(self) -> None:
        """End the thread, after a sync that is under way."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        self._thread.join()

    def _run(self) -> None:
        while (work := self._next()) is not None:
            segment, written = work
            try:
                segment.sync()
            except OSError as error:
                self._finish(segment, None, error)
            else:
                self._finish(segment, written, None)

    def _next(self) -> tuple[LiveWriter, Mark] | None:
        with self._changed:
            while (self.durable == self._written or self.failure is not None) and not self._stopped:
                self._changed.wait()
            return None if self._stopped else (self._segment, self._written)

    def _finish(self, segment: LiveWriter, durable: Mark | None, failure: OSError | None) -> None:
        with self._changed:
            if segment is self._segment:
                self.durable = durable or self.durable
                self.failure = failure
            self._changed.notify_all()


def mark(segment: LiveWriter) -> Mark:
    """The place behind the last frame of a segment."""
    return Mark(segment.seq_next, segment.size, segment.chain)
