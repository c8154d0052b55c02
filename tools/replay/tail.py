"""`radixledger replay tail`: a journal as it is written, one line per event, and the laws asked meanwhile.

Not here: the laws and what an alarm says (`radixledger.replay.alarms`), following and lines (`radixledger.tools.event_lines`).
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import click
import msgspec
from msgspec.structs import asdict

from radixledger.journal.frame import Frame
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Seq
from radixledger.replay.alarms import Alarm, Alarms
from radixledger.replay.seek import Beginning, beginning_before
from radixledger.tools.console import FINDINGS, count_of, count_text, examples, exit_with, remark
from radixledger.tools.event_lines import (
    Write,
    json_writer,
    line_writer,
    refuse_to_follow_a_copy,
    until_closed,
)
from radixledger.tools.event_text import ranges, time_text
from radixledger.tools.numbers import Whole
from radixledger.tools.printable import in_a_line, say_lines
from radixledger.tools.ranks import rank_option, the_rank
from radixledger.tools.replay.arguments import salvage_flag
from radixledger.tools.run_argument import run_of_one_rank_argument

PAGES_TOLD = 12
MANY = 100_000
"""So many events that are folded before the first one is printed are worth a word."""


@click.command(
    epilog=examples(
        "radixledger replay tail RUN --laws",
        "radixledger replay tail RUN --rank 3 --laws --alarms --until-violation && echo still lawful",
        "radixledger replay tail RUN --laws --json | jq 'select(.type == \"ALARM\")'",
    ),
)
@run_of_one_rank_argument
@rank_option
@click.option(
    "--laws", is_flag=True, help="Ask every law as the events come, and raise an alarm at the violating one."
)
@click.option("--until-violation", is_flag=True, help="End at the first alarm; asks the laws.")
@click.option("--alarms", is_flag=True, help="Print alarms and no events; asks the laws.")
@click.option("--from", "from_seq", type=Whole(1), help="Print from this event on.")
@click.option(
    "--last",
    type=Whole(0),
    default=10,
    show_default=True,
    help="Print so many events that are there already.",
)
@click.option("--once", is_flag=True, help="End where the journal ends now, and wait for nothing.")
@salvage_flag
@click.option("--json", "as_lines", is_flag=True, help="One JSON object a line, for programs.")
def command(
    run: Path, rank: int | None, laws: bool, until_violation: bool, alarms: bool, from_seq: int | None, last: int,
    once: bool, salvage: bool, as_lines: bool,
) -> None:  # fmt: skip
    """Follow a journal while it is written, one line per event, and raise an alarm where a law is broken.

    It ends when the journal is closed, and with Ctrl-C. With --laws each event is folded and judged, from the newest
    snapshot on; an alarm names the event, the page and its slots, the owner, the request and the call site. Exit code 1
    where a law was broken.
    """
    if not once:
        refuse_to_follow_a_copy(run, "replay tail without --once")
    reader = JournalReader(run, the_rank(run, rank), salvage=salvage)
    first = from_seq if from_seq is not None else max(reader.first_seq, reader.last_seq + 1 - last)
    watch = Alarms(reader, _beginning(reader, first)) if laws or until_violation or alarms else None
    start = watch.next_seq if watch is not None else Seq(first)
    if first - start >= MANY:
        remark(f"{count_text(first - start)} events come first: what they left behind has to be known")
    write = None if alarms else json_writer(reader) if as_lines else line_writer(reader.rank)
    lines = _Lines(first, write, _print_as_json if as_lines else _print_alarm)
    between = True  # a frame that is half folded when Ctrl-C comes is no state to judge
    with suppress(KeyboardInterrupt):
        for frame in reader.frames(start) if once else until_closed(reader, start):
            between = False
            alarms_of_it = watch.take(frame) if watch is not None else []
            between = True
            lines.add(frame, alarms_of_it)
            if until_violation and lines.alarms:
                break
    if watch is not None and between:
        lines.alarm(watch.finish())
    for notice in reader.notices:
        remark(notice)
    remark(
        f"{count_of(lines.events, 'event')}, {count_of(lines.alarms, 'violation') if watch else 'no law asked'}"
    )
    if lines.alarms:
        exit_with(FINDINGS)


def _beginning(reader: JournalReader, first: int) -> Beginning:
    """Where the laws begin to be asked, so that all is known when event `first` is printed."""
    baseline = reader.baseline()
    return beginning_before(reader, max(first - 1, baseline.seq if baseline is not None else 0))


class _Lines:
    """What goes to the screen: events from `first` on, and every alarm right behind the event that raised it."""

    def __init__(self, first: int, write: Write | None, tell: Callable[[Alarm], None]) -> None:
        self._first, self._write, self._tell = first, write, tell
        self.events = self.alarms = 0

    def add(self, frame: Frame, alarms: list[Alarm]) -> None:
        """A frame, and what the laws said of it."""
        for seq, event in enumerate(frame.events, frame.seq_first):
            mine = [alarm for alarm in alarms if alarm.seq == seq]
            if self._write is not None and (seq >= self._first or mine):
                self._write(frame, seq, event)
            self.alarm(mine)
        self.alarm([alarm for alarm in alarms if not frame.seq_first <= alarm.seq <= frame.seq_last])
        self.events += len(frame.events)

    def alarm(self, alarms: list[Alarm]) -> None:
        """These laws were broken."""
        for alarm in alarms:
            self._tell(alarm)
            self.alarms += 1


def _print_as_json(alarm: Alarm) -> None:
    say_lines(msgspec.json.encode({"type": "ALARM"} | asdict(alarm)))


def _print_alarm(alarm: Alarm) -> None:
    """A loud line, then the page, whose it is, and where in the server that was."""
    head = f"!!! event {alarm.seq}, {time_text(alarm.time_ns)}, step {alarm.step}: {alarm.law}"
    click.echo(click.style(in_a_line(head), fg="red", bold=True))
    for name, text in _facts(alarm):
        click.echo(click.style(in_a_line(f"!!! {name:<10}{text}"), fg="red"))


def _facts(alarm: Alarm) -> Iterator[tuple[str, str]]:
    yield "said", alarm.detail
    if alarm.pages:
        first, last = alarm.slots
        more = " of the first one" if len(alarm.pages) > 1 else ""
        yield "page", f"{alarm.pool} {ranges(alarm.pages, PAGES_TOLD)}, slots {first} to {last}{more}"
        yield "owner", f"{alarm.owner}; found {alarm.found}"
    if alarm.event:
        yield "done by", f"{alarm.event}, {alarm.call_site}" if alarm.call_site else alarm.event
    if alarm.request:
        yield "request", f"{alarm.request} {alarm.rid}".rstrip()
    if alarm.lawful_at is not None:
        yield "since", f"it held after event {alarm.lawful_at}; `radixledger replay verify` narrows it down"
