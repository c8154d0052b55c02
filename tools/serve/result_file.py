"""The file of results: begun with the first of them, so that a run which never served spoils no results of before.

Rule: each line is in the file before the next one is asked for.
"""

import os
from contextlib import suppress
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Self

from radixledger.journal.disk import Disk, naming, write_whole

_DISK = Disk()


class ResultFile:
    """Lines for `path`, which is written anew from the first one on; a run that ends well without any leaves it empty.

    Raises OSError, before anything is served, where nothing could be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: FileIO | None = None
        if path.exists():
            path.open("ab").close()
        elif not os.access(path.parent, os.W_OK | os.X_OK):
            raise PermissionError(13, "no file can be made here", str(path.parent))

    def write(self, line: bytes) -> None:
        """Put one line down, whole or not at all."""
        if self._file is None:
            self._file = self.path.open("wb", buffering=0)
        size = self._file.tell()
        try:
            with naming(self.path):
                write_whole(_DISK, self._file.fileno(), line)
        except OSError:
            with suppress(OSError):
                self._file.truncate(size)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is None and error is None:
            self._file = self.path.open("wb", buffering=0)
        if self._file is not None:
            self._file.close()
