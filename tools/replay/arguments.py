"""What the subcommands of `replay` share: the options that they take, and how an event and a time are named.

Not here: folding (`radixledger.replay`) and how results look.
"""

import click

from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Seq
from radixledger.replay.seek import seq_at
from radixledger.tools.console import USAGE, CommandFailure, remark
from radixledger.tools.event_text import time_text
from radixledger.tools.times import FORMS, time_ns_of

salvage_flag = click.option(
    "--salvage", is_flag=True, help="Read around damage; a gap stands in for what is lost."
)


def seq_of(reader: JournalReader, at: str) -> Seq:
    """The event that `--at` names: by number, or the last one that is not later than a time."""
    if at.isdecimal():
        return Seq(int(at))
    try:
        asked = time_ns_of(at, next(iter(reader.frames())).time_ns)
    except ValueError:
        raise CommandFailure(
            f"--at {at!r} is no event number and no time; 41237, {FORMS} are", USAGE
        ) from None
    last = next(iter(reader.frames(reader.last_seq))).time_ns
    if asked > last:
        remark(
            f"--at {at} is later than the last event, {reader.last_seq}, of {time_text(last)}: that is the end"
        )
    return seq_at(reader, asked)
