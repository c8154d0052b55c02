"""The lines of a file that somebody hands over: requests, a trace.

Rule: no line is read to its end for as long as memory lasts; what has no line ends, such as a device, is refused.
"""

from collections.abc import Iterator
from pathlib import Path

LINE_BYTES_MAX = 1 << 28
"""A request of the longest prompt that ids of int32 allow a server to think of stays well below."""


class LineTooLong(ValueError):
    """A line is longer than any request; names the file and the line."""

    def __init__(self, path: Path, number: int, most: int) -> None:
        super().__init__(f"{path}, line {number}: it has more than {most} bytes; no request is so long")
        self.path, self.number = path, number


def lines_of(path: Path, most: int = LINE_BYTES_MAX) -> Iterator[bytes]:
    """Each line with its end, as it is needed; raises LineTooLong, OSError."""
    with path.open("rb") as file:
        number = 0
        while line := file.readline(most + 1):
            number += 1
            if len(line) > most:
                raise LineTooLong(path, number, most)
            yield line
