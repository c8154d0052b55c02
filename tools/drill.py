"""A fault planted on purpose: a copy of a run in which one page is freed twice.

What a server with a bug in its clean-up would have written: a request gives a page back, and a little later
gives it back again, before anybody else was handed it. Rule: the run itself is never touched; the copy goes through the
writer like any journal, with the same events, times and steps, and the planted event says `drill` as its cause.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from radixledger.journal.accounts import FREE, Kind, Pool
from radixledger.journal.causes import Operation, cause
from radixledger.journal.events import AnyEvent, Freed
from radixledger.journal.moves import moves, pages_of
from radixledger.journal.reader import Frame, JournalReader, ranks_in
from radixledger.journal.units import NO_PAGES, Pages, Rank, Seq
from radixledger.journal.writer import JournalWriter


class NothingToPlant(Exception):
    """The journal has no page that a request freed and that was handed out again in a later frame."""


class DoubleFree(NamedTuple):
    """A page that a request freed in event `first` and frees again in event `second`; numbers are those of the copy."""

    rank: Rank
    page: int
    first: Seq
    second: Seq
    again: Freed


def plant_double_free(run: Path, to: Path, rank: Rank) -> DoubleFree:
    """Copy all ranks of `run` into the new run `to`, with one page of `rank` freed twice.

    Raises NothingToPlant before anything is written, and what reading `run` and writing `to` raise.
    """
    planted = find_page(JournalReader(run, rank))
    for each in ranks_in(run):
        _copy(JournalReader(run, each), to, planted if each == rank else None)
    return planted


def find_page(reader: JournalReader) -> DoubleFree:
    """The first FULL page that a request freed and that was handed out again at least one frame later."""
    freed: dict[int, DoubleFree] = {}
    for frame in reader.frames():
        for seq, event in enumerate(frame.events, frame.seq_first):
            for page in _handed_out(event):
                if page in freed and freed[page].second < frame.seq_first:
                    return freed[page]
                freed.pop(page, None)
            if isinstance(event, Freed) and event.giver & 7 == Kind.REQUEST and event.to == FREE:
                for page in pages_of(event.full).tolist():
                    freed[page] = _again(reader.rank, page, Seq(seq), frame, event)
    raise NothingToPlant(f"{reader.folder}: no page was freed by a request and handed out again later")


def _again(rank: Rank, page: int, seq: Seq, frame: Frame, event: Freed) -> DoubleFree:
    """The second free of one page of `event`, right behind the frame that holds it."""
    packed = Pages(page.to_bytes(4, "little"))
    again = Freed(event.giver, packed, NO_PAGES, NO_PAGES, FREE, event.request, cause(Operation.DRILL))
    return DoubleFree(rank, page, seq, Seq(frame.seq_last + 1), again)


def _handed_out(event: AnyEvent) -> Iterator[int]:
    for move in moves(event):
        if move.pool is Pool.FULL and move.giver == FREE:
            yield from pages_of(move.pages).tolist()


def _copy(reader: JournalReader, to: Path, planted: DoubleFree | None) -> None:
    """Write a journal anew, frame by frame; keys that were hashed stay as they are."""
    now_ns = 0
    opened = replace(reader.opened, run=to.name)
    with JournalWriter.open(to, opened, clock=lambda: now_ns) as writer:
        for frame in reader.frames():
            if planted is not None and frame.seq_first == planted.second:
                writer.append(planted.again)
                writer.end_command()
            now_ns = frame.time_ns
            writer.end_step(frame.step)
            for event in frame.events[1:] if frame.seq_first == 1 else frame.events:
                writer.append(event)
            writer.end_command()
