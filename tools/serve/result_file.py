"""The file of results: begun with the first of them, so that a run which never served spoils no results of before.

Rule: each line is in the file before the next one is asked for.
"""

import os
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self


class ResultFile:
    """Lines for `path`, which is written anew from the first one on; a run that ends well without any leaves it empty.

    Raises OSError, before anything is served, where nothing could be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: BinaryIO | None = None
        if path.exists():
            path.open("ab").close()
        elif not os.access(path.parent, os.W_OK | os.X_OK):
            raise PermissionError(13, "no file can be made here", str(path.parent))

    def write(self, line: bytes) -> None:
        """Put one line down."""
        if self._file is None:
            self._file = self.path.open("wb")
        self._file.write(line)
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is None and error is None:
            self._file = self.path.open("wb")
        if self._file is not None:
            self._file.close()
