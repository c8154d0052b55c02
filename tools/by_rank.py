"""The ranks of a run, gone through several at a time where their journals are long, with a progress bar either way.

Not here: the processes (`radixledger.replay.by_rank`).
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import click

from radixledger.journal.errors import JournalError
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Rank
from radixledger.replay.by_rank import Gather, Place, Work, at_once
from radixledger.replay.crew import WorkerLost
from radixledger.tools.console import CommandFailure, progress
from radixledger.tools.leaving import leaving_when_told
from radixledger.tools.numbers import Whole
from radixledger.tools.watching import watched

T = TypeVar("T")

EVENTS_WORTH_A_PROCESS = 20_000
"""Events that take as long as a process takes to begin."""

processes_option = click.option(
    "--processes",
    type=Whole(1),
    help="So many ranks of long journals at a time.  [default: one per CPU]",
)
"""Of a command that goes through all ranks; it receives `processes: int | None`, for `gathering`."""


def gathering(processes: int | None) -> Gather:
    """How the ranks of a command are gone through."""
    most = processes or os.cpu_count() or 1

    def gather(work: Sequence[Work[T]], places: Sequence[Place], /) -> list[T]:
        events = sum(_events_of(run, each) for run, each in places)
        if most == 1 or len(work) == 1 or events < EVENTS_WORTH_A_PROCESS * len(work):
            return [each(watched) for each in work]
        try:
            with leaving_when_told(), progress(f"{len(work)} ranks", events) as advance:
                return at_once(most, work, advance)
        except WorkerLost as error:
            raise CommandFailure(str(error)) from error

    return gather


def _events_of(run: Path, rank: Rank) -> int:
    """How many events a journal has, as far as its last segment can tell."""
    try:
        return JournalReader(run, rank).last_seq
    except (JournalError, OSError):
        return 0
