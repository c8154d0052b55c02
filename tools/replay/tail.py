"""`radixledger replay tail`: a journal as it is written, one line per event, and the laws asked meanwhile.

Not here: the laws and what an alarm says (`radixledger.replay.alarms`), following and lines (`radixledger.tools.event_lines`).
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

import click
import msgspec
from msgspec.structs import asdict

from radixledger.journal.frame import Frame
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Seq
from radixledger.replay.alarms import Alarm, Alarms
from radixledger.replay.known import unknown_words
from radixledger.replay.seek import Beginning, beginning_before
from radixledger.tools.console import (
    USAGE,
    CommandFailure,
    count_of,
    count_text,
    examples,
    remark,
)
from radixledger.tools.event_lines import (
    Write,
    all_until_closed,
    json_writer,
    line_writer,
    refuse_to_follow_a_copy,
)
from radixledger.tools.event_text import ranges, time_text
from radixledger.tools.numbers import Whole
from radixledger.tools.printable import in_a_line, say_lines
from radixledger.tools.ranks import ranks_option, the_ranks
from radixledger.tools.replay.arguments import salvage_flag
from radixledger.tools.run_argument import run_argument
from radixledger.tools.unread import Unread

Polled = TypeVar("Polled", Frame, Frame | None)
"""A frame, or nothing yet."""

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
@run_argument
@ranks_option
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
    run: Path, ranks: tuple[int, ...], laws: bool, until_violation: bool, alarms: bool, from_seq: int | None, last: int,
    once: bool, salvage: bool, as_lines: bool,
) -> None:  # fmt: skip
    """Follow a journal while it is written, one line per event, and raise an alarm where a law is broken.

    It ends when the journals of all ranks, or of those of --rank, are closed, and with Ctrl-C. With --laws each event is folded and judged, from the newest
    snapshot on; an alarm names the event, the page and its slots, the owner, the request and the call site. Exit code 1:
    a law was broken. 3: none was, and a rank could not be read.
    """
    if not once:
        refuse_to_follow_a_copy(run, "replay tail without --once")
    chosen = the_ranks(run, ranks)
    if from_seq is not None and len(chosen) > 1:
        raise CommandFailure(
            f"--from {from_seq} is an event, and each rank has numbers of its own: say whose with --rank, or how many with --last",
            USAGE,
        )
    judged = laws or until_violation or alarms
    look = _Look(events=not alarms, as_json=as_lines, several=len(chosen) > 1)
    unread, tails = Unread(run, chosen), list[_Tail]()
    for each in chosen:
        with unread.around(each):
            reader = JournalReader(run, each, salvage=salvage)
            tails.append(_Tail(reader, from_seq, last, judged=judged, look=look))
    with suppress(KeyboardInterrupt):
        for tail in _in_turn(tails, unread, once=once):
            if until_violation and tail.alarms:
                break
    for tail in tails:
        with unread.around(tail.reader.rank):
            tail.finish()
    told, events = sum(tail.alarms for tail in tails), sum(tail.events for tail in tails)
    of_ranks = f" of {count_of(len(tails), 'rank')}" if len(tails) > 1 else ""
    remark(
        f"{count_of(events, 'event')}{of_ranks}, {count_of(told, 'violation') if judged else 'no law asked'}"
    )
    unread.leave(found=told > 0)


def _in_turn(tails: Sequence["_Tail"], unread: Unread, *, once: bool) -> Iterator["_Tail"]:
    """Each rank that has told a frame, as they come; where none are waited for, rank by rank."""
    if once:
        for tail in tails:
            for _ in _told(tail, tail.reader.frames(tail.start), unread):
                yield tail
    else:
        polled = [_told(tail, tail.reader.polled(tail.start), unread) for tail in tails]
        yield from (tails[number] for number, _ in all_until_closed(polled))


def _told(tail: "_Tail", frames: Iterator[Polled], unread: Unread) -> Iterator[Polled]:
    """The same frames, each of them told; they end where the rank can be read no further."""
    with unread.around(tail.reader.rank):
        for frame in frames:
            if frame is not None:
                tail.add(frame)
            yield frame


def _beginning(reader: JournalReader, first: int) -> Beginning:
    """Where the laws begin to be asked, so that all is known when event `first` is printed."""
    baseline = reader.baseline()
    return beginning_before(reader, max(first - 1, baseline.seq if baseline is not None else 0))


class _Look(NamedTuple):
    """How lines look: with events or alarms alone, as JSON or in words, with the rank before them where there are several."""

    events: bool
    as_json: bool
    several: bool

    def writer(self, reader: JournalReader) -> Write | None:
        """Prints an event; None where none are printed."""
        if not self.events:
            return None
        return json_writer(reader) if self.as_json else line_writer(reader.rank, several=self.several)


class _Tail:
    """One rank as it is followed: events from `first` on, and every alarm right behind the event that raised it."""

    def __init__(
        self, reader: JournalReader, from_seq: int | None, last: int, *, judged: bool, look: _Look
    ) -> None:
        self.reader = reader
        self._first = from_seq if from_seq is not None else max(reader.first_seq, reader.last_seq + 1 - last)
        self._watch = Alarms(reader, _beginning(reader, self._first)) if judged else None
        self.start = self._watch.next_seq if self._watch is not None else Seq(self._first)
        if self._first - self.start >= MANY:
            remark(
                f"{count_text(self._first - self.start)} events come first: what they left behind has to be known"
            )
        self._look, self._write = look, look.writer(reader)
        self._between = True  # a frame that is half folded when Ctrl-C comes is no state to judge
        self.events = self.alarms = 0

    def add(self, frame: Frame) -> None:
        """A frame, and what the laws say of it."""
        self._between = False
        alarms = self._watch.take(frame) if self._watch is not None else []
        self._between = True
        for seq, event in enumerate(frame.events, frame.seq_first):
            mine = [alarm for alarm in alarms if alarm.seq == seq]
            if self._write is not None and (seq >= self._first or mine):
                self._write(frame, seq, event)
            self._alarm(mine)
        self._alarm([alarm for alarm in alarms if not frame.seq_first <= alarm.seq <= frame.seq_last])
        self.events += len(frame.events)

    def finish(self) -> None:
        """Nothing more comes: the state as a whole, and what the reader has to remark."""
        if self._watch is not None and self._between:
            self._alarm(self._watch.finish())
        lost = self._watch.known.stretches if self._watch is not None else []
        unasked = (
            f"{unknown_words(each.lost_at)}; of laws, what events say of one page was asked there"
            for each in lost
        )
        for notice in (*self.reader.notices, *unasked):
            remark(f"rank {self.reader.rank}: {notice}" if self._look.several else notice)

    def _alarm(self, alarms: list[Alarm]) -> None:
        for alarm in alarms:
            if self._look.as_json:
                _print_as_json(alarm, self.reader.rank)
            else:
                _print_alarm(alarm, f"rank {self.reader.rank}, " * self._look.several)
            self.alarms += 1


def _print_as_json(alarm: Alarm, rank: int) -> None:
    say_lines(msgspec.json.encode({"type": "ALARM", "rank": rank} | asdict(alarm)))


def _print_alarm(alarm: Alarm, whose: str) -> None:
    """A loud line, then the page, whose it is, and where in the server that was."""
    head = f"!!! {whose}event {alarm.seq}, {time_text(alarm.time_ns)}, step {alarm.step}: {alarm.law}"
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
