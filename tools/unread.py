"""Ranks that could not be read, of a command that goes through several: the others are told in full, and each of these is named.

Rule: a rank that is alone raises what reading it raises. The exit code is 3 only where nothing worse was found: findings win.
"""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from radixledger.journal.errors import NoSuchEvent, ReaderError
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Rank
from radixledger.tools.console import FINDINGS, UNREADABLE, exit_with, remark
from radixledger.tools.run_argument import as_given, in_given_words

DOCTOR = "radixledger journal doctor"


class UnreadRank(Struct, frozen=True):
    """A rank, and why it could not be read, or not to its end."""

    rank: Rank
    unreadable: str


class Unread:
    """Goes along with a command through the `chosen` ranks of `run`; `ranks` are those that could not be read."""

    def __init__(self, run: Path, chosen: Sequence[Rank]) -> None:
        self._run, self._alone = run, len(chosen) == 1
        self.ranks: list[UnreadRank] = []

    @contextmanager
    def around(self, rank: Rank) -> Iterator[None]:
        """Reading one rank: what it raises goes to stderr, with what to do, and the next rank's turn comes.

        What was asked wrongly is raised (NoSuchEvent), and so is everything where this rank is alone.
        """
        try:
            yield
        except NoSuchEvent:
            raise
        except ReaderError as error:
            if self._alone:
                raise
            reason = in_given_words(str(error))
            self.ranks.append(UnreadRank(rank, reason))
            look = f"; {DOCTOR} {shlex.quote(as_given(self._run))} --rank {rank} says which files"
            remark(f"rank {rank} cannot be read: {reason}{'' if DOCTOR in reason else look}")

    def readable(self, chosen: Sequence[Rank], *, salvage: bool) -> list[Rank]:
        """Those of these ranks whose first frame can be read; where none can, the command is left."""
        told = []
        for rank in chosen:
            with self.around(rank):
                next(JournalReader(self._run, rank, salvage=salvage).frames())
                told.append(rank)
        if not told:
            self.leave(found=False)
        return told

    def leave(self, *, found: bool) -> None:
        """Leave with 1 where something was found, else with 3 where not all could be read, else go on."""
        if found:
            exit_with(FINDINGS)
        if self.ranks:
            exit_with(UNREADABLE)


class _Chosen(NamedTuple):
    run: Path
    ranks: list[Rank]
    unread: Unread


class RanksOf(_Chosen):
    """The ranks of one of several runs that a command goes through, and which of them could not be read."""

    def __new__(cls, run: Path, ranks: list[Rank]) -> "RanksOf":
        """Of these ranks none is unread yet."""
        return super().__new__(cls, run, ranks, Unread(run, ranks))


def each_of(chosen: Sequence[RanksOf]) -> Iterator[tuple[Path, Rank, AbstractContextManager[None]]]:
    """Each rank with its run, and what to read it in; one that could not be read does not come again."""
    for run, ranks, unread in chosen:
        for rank in ranks:
            if rank not in {each.rank for each in unread.ranks}:
                yield run, rank, unread.around(rank)


def leave_unread(chosen: Sequence[RanksOf]) -> None:
    """Leave with 3 where not all could be read; who found something has left."""
    for each in chosen:
        each.unread.leave(found=False)
