"""Where results go, and files that are read: the one look at a path before anything is read, computed or written for it.

Rule: nothing is written into the folder of a run, or over a file of a journal, by any command but those that write
journals: what lies there is evidence, and other programs read it.
"""

import os
from pathlib import Path
from typing import Any

import click

from radixledger.journal.errors import NoJournal
from radixledger.journal.folder import listing, rank_folder, ranks_in
from radixledger.tools.console import UNREADABLE, USAGE, CommandFailure, GivenPath

new_file = GivenPath(dir_okay=False, path_type=Path)
"""The type of an option that names a file to write; see `check_place`."""


class SourceFile(GivenPath):
    """A file to be read; a pipe or a device is one, too. One that is not there is unreadable, as a run is."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """The path as click makes it; raises CommandFailure where there is nothing to read."""
        file = Path(os.fsdecode(super().convert(value, param, ctx)))
        if file.is_dir():
            raise CommandFailure(f"{file}: this is a folder, and a file is to be read", UNREADABLE)
        if not file.exists():
            raise CommandFailure(f"{file}: there is no such file", UNREADABLE)
        return file


def check_place(output: Path, *, force: bool, to_be: Path | None = None, replaced: bool = True) -> None:
    """Refuse a place where no file can go, before anything is read; raises CommandFailure.

    to_be: the run that the command makes. replaced: the file takes the place of what is there, so a pipe or a device
    will not do; else it is written into.
    """
    if output.is_dir() or (replaced and output.exists() and not output.is_file()):
        raise CommandFailure(f"{output} is no file that could be replaced: name another one", USAGE)
    check_outside_runs(output, to_be)
    if output.is_file() and not force:
        raise CommandFailure(
            f"{output} is there already: name another file, or replace it with --force", USAGE
        )
    if not output.absolute().parent.is_dir():
        raise CommandFailure(
            f"{output.absolute().parent} is no folder: make it first, or name another file", USAGE
        )


def check_outside_runs(place: Path, *to_be: Path | None) -> None:
    """Refuse a place in the folder of a run, or in one that is `to_be` one; raises CommandFailure.

    A link counts as what it leads to.
    """
    real, planned = _real(place), [_real(run) for run in to_be if run is not None]
    for folder in (real, *real.parents):
        if folder in planned:
            raise CommandFailure(
                f"{place} is in {folder}, which is to hold the run's journal and nothing else: name a place outside it",
                USAGE,
            )
        _check_no_run(place, folder)


def check_run_place(run: Path | None) -> None:
    """Refuse to begin a run in the folder of another one; raises CommandFailure."""
    if run is not None:
        for folder in _real(run).parents:
            _check_no_run(run, folder)


def _check_no_run(place: Path, folder: Path) -> None:
    if holds_a_run(folder):
        raise CommandFailure(
            f"{place} {'is' if _real(place) == folder else 'is in'} {folder}, the folder of a journal, which is evidence and stays as"
            " it is: name a place outside it",
            USAGE,
        )


def _real(place: Path) -> Path:
    return Path(os.path.realpath(place))


def check_key_place(key_file: Path | None, run: Path | None) -> None:
    """Refuse to make a key in the folder of a run, from where it would go wherever that is copied to."""
    if key_file is not None and not key_file.exists():
        check_outside_runs(key_file, run)


def holds_a_run(folder: Path) -> bool:
    """Whether a folder is that of a run or of a rank, by the segments that lie there."""
    try:
        if listing(folder).segments:
            return True
        return any(listing(rank_folder(folder, rank)).segments for rank in ranks_in(folder))
    except (NoJournal, OSError):
        return False
