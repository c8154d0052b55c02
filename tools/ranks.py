"""`--rank`: which ranks of a run a command is about.

Rule: a command that can be about all ranks is, unless told otherwise, and `--rank` may be given again; one that is about a
single rank needs it named where the run has several.
"""

from collections.abc import Sequence
from pathlib import Path

import click

from radixledger.journal.absent import Absent, absent_ranks
from radixledger.journal.reader import ranks_in
from radixledger.journal.units import Rank
from radixledger.tools.numbers import INT32_MAX, Whole
from radixledger.tools.run_argument import as_given, only_rank

_NUMBER = Whole(0, INT32_MAX)

rank_option = click.option("--rank", type=_NUMBER, help="The rank; needed where the run has several.")
"""Of a command about one rank; it receives `rank: int | None`, for `the_rank`."""

ranks_option = click.option(
    "--rank", "ranks", type=_NUMBER, multiple=True, help="Only this rank; may be given again.  [default: all]"
)
"""Of a command about all ranks; it receives `ranks: tuple[int, ...]`, for `the_ranks`."""


def the_rank(run: Path, rank: int | None) -> Rank:
    """The rank that was asked for, or the only one."""
    return Rank(rank) if rank is not None else only_rank(ranks_in(run), as_given(run))


def the_ranks(run: Path, ranks: Sequence[int]) -> list[Rank]:
    """The ranks that were asked for, each once, or all that the run has."""
    return [Rank(rank) for rank in dict.fromkeys(ranks)] or ranks_in(run)


def the_absent(run: Path, ranks: Sequence[int]) -> list[Absent]:
    """What the run lacks, as those of its ranks that are here say; nothing where ranks were asked for by number."""
    return [] if ranks else absent_ranks((run, each) for each in ranks_in(run))
