"""What the subcommands of `replay` share: the options that they take, and how an event and a time are named.

Not here: folding (`radixledger.replay`) and how results look.
"""

from datetime import UTC, datetime
from decimal import Decimal

import click

from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Seq
from radixledger.replay.seek import seq_at
from radixledger.tools.console import USAGE, CommandFailure, remark
from radixledger.tools.event_text import time_text

salvage_flag = click.option(
    "--salvage", is_flag=True, help="Read around damage; a gap stands in for what is lost."
)


def seq_of(reader: JournalReader, at: str) -> Seq:
    """The event that `--at` names: by number, or the last one that is not later than a time."""
    if at.isdecimal():
        return Seq(int(at))
    first = next(iter(reader.frames())).time_ns
    asked = _time_ns(at, first)
    last = next(iter(reader.frames(reader.last_seq))).time_ns
    if asked > last:
        remark(
            f"--at {at} is later than the last event, {reader.last_seq}, of {time_text(last)}: that is the end"
        )
    return seq_at(reader, asked)


def _time_ns(text: str, begun_ns: int) -> int:
    """A time in nanoseconds: `+1500ms`, `+1.5s` or `+1500` (ms) since the run began, or ISO 8601 (UTC if it does not say).

    A run in virtual time began at 0, so that what a table shows can be given back.
    """
    try:
        if text.startswith("+"):
            base = 0 if time_text(begun_ns).startswith("+") else begun_ns
            number, unit = (
                (text[1:-1], 10**9)
                if text[-1] == "s" and text[-2] != "m"
                else (text[1:].removesuffix("ms"), 10**6)
            )
            return base + round(Decimal(number) * unit)
        stamp = datetime.fromisoformat(text)
    except (ValueError, ArithmeticError):
        raise CommandFailure(
            f"--at {text!r} is no event number and no time; 41237, 2026-01-31T12:00:00Z and +1500ms are",
            USAGE,
        ) from None
    since = (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)) - datetime.fromtimestamp(0, UTC)
    return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000
