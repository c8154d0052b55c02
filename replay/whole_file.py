"""A file that is there whole or not at all, for results that somebody waits for.

Not here: durability (`journal.disk`); after a loss of power a result can be made again.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from radixledger.journal.disk import naming


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of `path` when all is written, and goes where something fails; raises OSError."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with naming(path), beside.open("wb") as file:
            yield file
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
