"""One writer per rank: a lock file that the operating system lets go of when its holder dies.

Rule: writers only. Readers neither take the lock nor look at it; `holder` is for people who ask who writes.
"""

import fcntl
import os
from pathlib import Path

from radixledger.journal.disk import naming
from radixledger.journal.errors import WriterBusy

PID_DIGITS = 10


class WriterLock:
    """Held from construction to `release`, or to the end of the process; raises WriterBusy, naming the holder.

    The file stays when the lock is released: taking a lock file away invites two holders.
    """

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._fd, 0)
            with naming(path):
                os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError:
            os.close(self._fd)
            raise WriterBusy(path, pid=holder(path)) from None
        except OSError:  # a full disk: who tries again must not find itself in the way
            os.close(self._fd)
            raise

    def release(self) -> None:
        """Let the next writer in; releasing twice is harmless."""
        if self._fd >= 0:
            os.ftruncate(self._fd, 0)
            os.close(self._fd)
            self._fd = -1


def holder(path: Path) -> int:
    """The process id that stands in a lock file, 0 for none. It may be dead: only the lock itself knows."""
    try:
        text = path.read_text("ascii").strip()
    except (FileNotFoundError, ValueError):
        return 0
    return int(text) if text.isdecimal() and len(text) <= PID_DIGITS else 0
