"""`radixledger replay why-miss`: one request, how far it hit and why no further.

Not here: the reading (`radixledger.replay.reuse.reuse`) and its sentences (`radixledger.replay.reuse.keeping`).
"""

import shlex
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap

import click

from radixledger.journal.events import Opened
from radixledger.journal.reader import JournalReader
from radixledger.replay.reuse.keeping import (
    WHY,
    because_text,
    keeping_text,
    setting_to_try,
    stop_sentence,
    wanted_text,
)
from radixledger.replay.reuse.misses import Lost, Miss, Stretch
from radixledger.replay.reuse.reuse import Reading
from radixledger.tools.console import (
    UNREADABLE,
    USAGE,
    CommandFailure,
    count_of,
    count_text,
    examples,
    json_flag,
    print_json,
    remark,
    stdout,
)
from radixledger.tools.event_text import time_text
from radixledger.tools.near import near
from radixledger.tools.printable import say
from radixledger.tools.ranks import ranks_option, the_ranks
from radixledger.tools.replay.arguments import salvage_flag
from radixledger.tools.reuse_text import blind
from radixledger.tools.run_argument import as_given, run_argument
from radixledger.tools.unread import Unread
from radixledger.tools.watching import watched

NOBODY = "nobody in particular"
NAME_WIDTH = 12

NAMES_KEPT = 10_000
"""Request ids that a wrong one is compared with, the latest."""


@click.command(
    epilog=examples(
        "radixledger replay why-miss RUN chat-17",
        "radixledger replay why-miss RUN chat-17 --rank 1 --json",
    ),
)
@run_argument
@click.argument("rid")
@ranks_option
@salvage_flag
@json_flag
def command(run: Path, rid: str, ranks: tuple[int, ...], salvage: bool, as_json: bool) -> None:
    """Tell why request RID missed: how far it hit, what was there, what took it, for whom, and how to keep it.

    RID is a request id, or the number of a request where none is called so. A request that was retracted and came back is
    told once for each admission. Exit code 3: a rank could not be read, and may know of it too.
    """
    called: list[tuple[Miss, Opened]] = []
    numbered: list[tuple[Miss, Opened]] = []
    names: deque[str] = deque(maxlen=NAMES_KEPT)
    unread = Unread(run, chosen := the_ranks(run, ranks))
    for number in chosen:
        with unread.around(number):
            reader = JournalReader(run, number, salvage=salvage)
            opened = reader.opened
            with watched(run, number) as watch:
                for miss in (reading := Reading(reader, watch=watch)):
                    names.append(miss.rid)
                    if miss.rid == rid:
                        called.append((miss, opened))
                    elif rid == str(miss.request):
                        numbered.append((miss, opened))
            for notice in (*reader.notices, *blind(reading.account)):
                remark(f"rank {number}: {notice}")
    found = called or numbered
    if not found:
        where, code = (", as far as could be read", UNREADABLE) if unread.ranks else ("", USAGE)
        raise CommandFailure(f"no request {rid!r} was admitted behind a match{where}{near(rid, names)}", code)
    if as_json:
        print_json([miss for miss, _ in found])
    else:
        _print_found(found, run)
    unread.leave(found=False)


def _print_found(found: list[tuple[Miss, Opened]], run: Path) -> None:
    for place, (miss, opened) in enumerate(found):
        if place:
            say()
        for line in _told(miss, opened, shlex.quote(as_given(run))):
            say(line)


def _told(miss: Miss, opened: Opened, run: str) -> Iterator[str]:
    asked = f"event {miss.seq} ({time_text(miss.time_ns)}, step {miss.step})"
    yield f"{miss.rid}: {count_text(miss.hit)} of {count_text(miss.prompt)} prompt tokens hit"
    yield from _fact(
        "request", f"{miss.request} on rank {miss.rank}{', ' + miss.ended if miss.ended else ''}"
    )
    yield from _fact("asked", f"for {count_text(miss.asked)} tokens, whole pages, in {asked}")
    yield from _fact("stopped", f"{miss.stop}: {stop_sentence(miss)}")
    spans: list[Lost | Stretch] = [*miss.lost, *miss.stretches]
    for each in sorted(spans, key=lambda span: span.start):
        yield ""
        span = f"tokens {each.start} to {each.stop - 1} ({count_text(each.stop - each.start)})"
        if isinstance(each, Lost):
            yield f"{span}: lost"
            yield from _of_loss(each, miss, opened, run)
        else:
            yield from wrap(f"{span}: {each.kind}, {WHY[each.kind]}", _width(), subsequent_indent="  ")
            if each.cached_seq:
                yield from _fact("there", f"left by {each.cached_by or NOBODY} in event {each.cached_seq}")
            if each.seq:
                yield from _fact("because", because_text(each))


def _of_loss(lost: Lost, miss: Miss, opened: Opened, run: str) -> Iterator[str]:
    yield from _fact("was there", f"since event {lost.cached_seq}, left by {lost.cached_by or NOBODY}")
    place = f"event {lost.seq} ({time_text(lost.time_ns)}, step {lost.step})"
    before = f"{count_of(miss.seq - lost.seq, 'event')}, {count_of(miss.step - lost.step, 'step')} before it was asked for"
    yield from _fact(
        "taken by", f"{place}: {lost.event} of node {lost.node}, {lost.cause}: the {lost.what}, {before}"
    )
    wanted = wanted_text(lost)
    if wanted:
        yield from _fact("room for", wanted)
    if lost.copy:
        yield from _fact("host copy", lost.copy)
    yield from _fact("to keep it", keeping_text(lost, opened))
    if setting := setting_to_try(lost, opened):
        yield from _fact("to try that", "")
        yield f"  radixledger whatif {run} --set {setting}"  # never wrapped: it is there to be copied


def _fact(name: str, text: str) -> list[str]:
    """A name and what is said of it, in lines that fit the terminal."""
    indent = " " * (NAME_WIDTH + 2)
    return wrap(
        f"{name:<{NAME_WIDTH}}{text}",
        _width(),
        initial_indent="  ",
        subsequent_indent=indent,
    )


def _width() -> int:
    return max(40, stdout().width - 1)
