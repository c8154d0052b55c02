"""Events of a journal, one a line, in words or as JSON; as they stand there, or as their writer adds them.

What `journal cat` and `replay tail` share. Rule: a line is the event's own; what somebody thinks of it is another line.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import sleep
from typing import get_args

import click
import msgspec

from radixledger.journal.events import AnyEvent, Closed
from radixledger.journal.frame import Frame
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Rank, Seq
from radixledger.tools.event_text import as_json, line, time_text
from radixledger.tools.printable import say, say_lines
from radixledger.tools.run_argument import as_given

TYPES: list[str] = sorted(kind.__name__ for kind in get_args(AnyEvent))
FOLLOW_EVERY_S = 0.2

Write = Callable[[Frame, int, AnyEvent], None]
"""Prints the event with a number, which stands in a frame."""


def line_writer(rank: Rank, *, several: bool = False) -> Write:
    """Prints number, time, step, name, and the fields that say something; of `several` ranks which one, too."""
    prefix = f"rank {rank}  " if several else ""
    width = max(map(len, TYPES))

    def write(frame: Frame, seq: int, event: AnyEvent) -> None:
        name = type(event).__name__
        head = f"{prefix}{seq:>9}  {time_text(frame.time_ns)}  step {frame.step:<6}  {name:<{width}}"
        say(f"{head}  {line(event)}".rstrip())

    return write


def json_writer(reader: JournalReader) -> Write:
    """Prints an object a line, with every field of the event."""
    encode = msgspec.json.Encoder().encode
    run = reader.run.absolute().name

    def write(frame: Frame, seq: int, event: AnyEvent) -> None:
        head = {"run": run, "rank": reader.rank, "seq": seq, "epoch": frame.epoch, "time_ns": frame.time_ns}
        told = head | {"step": frame.step, "type": type(event).__name__} | as_json(event)
        say_lines(encode(told))

    return write


def until_closed(reader: JournalReader, start: Seq | None) -> Iterator[Frame]:
    """The frames from `start` on, and those that the writer adds, until it has closed the journal."""
    return (frame for _, frame in all_until_closed([reader.polled(start)]))


def all_until_closed(polled: Sequence[Iterator[Frame | None]]) -> Iterator[tuple[int, Frame]]:
    """As `until_closed`, of several ranks: which one, and its frame; those that are there already rank by rank.

    A rank whose frames end, because they can be read no further, is followed no more.
    """
    live = dict(enumerate(polled))
    while live:
        for number, frames in list(live.items()):
            over = False
            for frame in frames:
                if frame is None:
                    break
                over = isinstance(frame.events[-1], Closed)
                yield number, frame
            else:
                over = True
            if over:
                del live[number]
        if live:
            sleep(FOLLOW_EVERY_S)


def refuse_to_follow_a_copy(run: Path, option: str) -> None:
    """A URL is fetched once, so that there is no writer to follow; raises UsageError."""
    if as_given(run) != str(run):
        raise click.UsageError(f"{option} follows a writer, and a URL is fetched once: name a folder")
