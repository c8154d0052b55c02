"""The calls that change a disk, gathered so that a test can hand in a disk that fails or dies.

Rule: whatever the writer, the sealer, snapshots and retention change on a disk goes through a
`Disk`. Readers do not: they open files for reading and change nothing.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

TEMPORARY = ".tmp"
"""The suffix of files that are being made; readers pass over them, the next writer removes them."""

_sync_data = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync


class Disk:
    """The real disk. Every method raises OSError as the call it stands for does."""

    def make_folder(self, path: Path) -> None:
        """Create a folder and its parents, where they are missing."""
        path.mkdir(parents=True, exist_ok=True)

    def create(self, path: Path, mode: int = 0o644) -> int:
        """A new file for appending; raises FileExistsError where the name is taken."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        return os.open(path, flags, mode)

    def write(self, fd: int, data: bytes) -> int:
        """Append; the number of bytes that were taken, which may be fewer than given."""
        return os.write(fd, data)

    def cut(self, fd: int, size: int) -> None:
        """Make the file `size` bytes long."""
        os.ftruncate(fd, size)

    def sync(self, fd: int) -> None:
        """Return when the file's data would survive a loss of power."""
        _sync_data(fd)

    def sync_folder(self, path: Path) -> None:
        """Return when names made, moved and removed in a folder would survive a loss of power."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def rename(self, source: Path, target: Path) -> None:
        """Give a file its name, atomically, in place of what had it."""
        source.replace(target)

    def remove(self, path: Path) -> None:
        """Take a file's name away; raises FileNotFoundError where there is none."""
        path.unlink()

    def close(self, fd: int) -> None:
        """Give the descriptor back."""
        os.close(fd)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """An OSError that names no file, as a write to a full disk raises it, comes out with `path` in it."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def write_whole(disk: Disk, fd: int, data: bytes) -> None:
    """Append all of `data`, going on after short writes; raises OSError when the disk takes no more."""
    written = disk.write(fd, data)
    while written < len(data):
        data = data[written:]
        written = disk.write(fd, data)


def publish(disk: Disk, path: Path, chunks: Iterable[bytes]) -> None:
    """Make `path` hold `chunks`, all or nothing, durably: temporary file, fsync, rename, folder fsync.

    A temporary file that an earlier attempt left is replaced. Raises OSError; `path` is then as it was.
    """
    temporary = path.with_name(path.name + TEMPORARY)
    if temporary.exists():
        disk.remove(temporary)
    fd = disk.create(temporary)
    try:
        with naming(path):
            for chunk in chunks:
                write_whole(disk, fd, chunk)
            disk.sync(fd)
    except BaseException:
        disk.close(fd)
        disk.remove(temporary)
        raise
    disk.close(fd)
    disk.rename(temporary, path)
    disk.sync_folder(path.parent)
