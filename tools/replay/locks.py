"""`radixledger replay locks`: who holds which window, since when, and what it blocks.

Not here: following the receipts (`radixledger.replay.locks.locks`) and what they keep (`radixledger.replay.locks.lock_report`).
"""

from collections.abc import Iterator
from pathlib import Path

import click

from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Rank
from radixledger.replay.known import unknown_words
from radixledger.replay.locks.lock_report import Holding, LockReport, locks_at
from radixledger.tools.console import (
    USAGE,
    CommandFailure,
    count_of,
    count_text,
    examples,
    json_flag,
    print_json,
    print_lines,
    remark,
)
from radixledger.tools.event_text import time_text
from radixledger.tools.printable import say
from radixledger.tools.ranks import ranks_option, the_ranks
from radixledger.tools.replay.arguments import salvage_flag, seq_of
from radixledger.tools.run_argument import run_argument
from radixledger.tools.table import print_table
from radixledger.tools.unread import Unread
from radixledger.tools.watching import watched


@click.command(
    epilog=examples(
        "radixledger replay locks RUN",
        "radixledger replay locks RUN --rank 0 --at 41237",
        "radixledger replay locks RUN --at +1500ms --json | jq '.[].holds[] | select(.fault != \"\")'",
    ),
)
@run_argument
@ranks_option
@click.option(
    "--at",
    metavar="SEQ|TIME",
    help="An event, a time (ISO 8601), or +ms since the first event.  [default: the end]",
)
@salvage_flag
@json_flag
def command(run: Path, ranks: tuple[int, ...], at: str | None, salvage: bool, as_json: bool) -> None:
    """Show who holds which window, since when, for which request, and what that keeps from being evicted.

    Exit code 1: a lock outlived its request, was kept beside its successor, or was given back without being held.
    3: nothing of that, and a rank could not be read.
    """
    chosen = the_ranks(run, ranks)
    if at is not None and at.isdecimal() and len(chosen) > 1:
        raise CommandFailure(
            f"--at {at} is an event, and each rank has numbers of its own: say whose with --rank, or give a time",
            USAGE,
        )
    reports, unread = list[LockReport](), Unread(run, chosen)
    for rank in chosen:
        with unread.around(rank):
            reports.append(_told(run, rank, at, salvage=salvage))
    if as_json:
        print_json([*reports, *unread.ranks])
    else:
        for place, report in enumerate(reports):
            if place:
                say()
            _print_report(report)
    unread.leave(found=not all(report.clean for report in reports))


def _told(run: Path, rank: Rank, at: str | None, *, salvage: bool) -> LockReport:
    """The locks of one rank; what the reader has to remark goes to stderr."""
    reader = JournalReader(run, rank, salvage=salvage)
    seq = reader.last_seq if at is None else seq_of(reader, at)
    with watched(run, rank) as watch:
        report = locks_at(reader, seq, watch)
    if report.lost_at:
        remark(f"rank {rank}: {unknown_words(report.lost_at)}; these are the locks just before it")
    for notice in reader.notices:
        remark(f"rank {rank}: {notice}")
    return report


def _print_report(report: LockReport) -> None:
    where = f"rank {report.rank}, event {report.seq}, {time_text(report.time_ns)}, step {report.step}"
    print_lines([f"{where}: {count_of(len(report.holds), 'lock')}"])
    for pool, capacity, available, evictable, protected in (
        ("FULL", report.full_capacity, report.full_available, report.full_evictable, report.full_protected),
        ("SWA", report.swa_capacity, report.swa_available, report.swa_evictable, report.swa_protected),
    ):
        if capacity:
            counts = f"{count_text(available)} free, {count_text(evictable)} evictable, {count_text(protected)} locked"
            print_lines([f"{pool}, {count_text(capacity)} pages: {counts}"])
    if report.holds:
        columns = ("for", "node", "window", "since", "steps", "FULL", "SWA")
        title = "\nlocks, the oldest first: windows in tokens; pages that it alone keeps, of those it holds"
        print_table(columns, [_row(each) for each in report.holds], title=title)
        told = [f"{holder(each)}: {text}" for each in report.holds if (text := "; ".join(_meanwhile(each)))]
        if told:
            say("\nwhile they were held")
        print_lines(told)
    _print_faults(report)


def _row(hold: Holding) -> tuple[object, ...]:
    window = (
        f"[{hold.window_start}, {hold.path})" if hold.window_start < hold.path else f"none, [0, {hold.path})"
    )
    since = f"{hold.since_seq} {hold.cause}" if hold.since_seq else "before the journal"
    return (
        holder(hold), str(hold.node), window, since, str(hold.steps) if hold.since_seq else "?",
        f"{hold.full_alone} of {hold.full_pages}", f"{hold.swa_alone} of {hold.swa_pages}",
    )  # fmt: skip


def holder(hold: Holding) -> str:
    """Who a lock is for."""
    return hold.rid or (f"request {hold.request}" if hold.request else "nobody in particular")


def _meanwhile(hold: Holding) -> Iterator[str]:
    """What was short while a lock was held, and what is wrong with it."""
    if hold.fault:
        yield f"LEAKED: {hold.fault} (event {hold.fault_seq})"
    if hold.evictions_short:
        lacking = [
            f"{count} {pool}"
            for count, pool in ((hold.full_lacking, "FULL"), (hold.swa_lacking, "SWA"))
            if count
        ]
        yield f"{count_of(hold.evictions_short, 'eviction')} fell short by {' and '.join(lacking)} pages"
    if hold.refusals:
        yield f"{count_of(hold.refusals, 'refusal')} for want of pages"
    passed = [
        f"{count} {pool}" for count, pool in ((hold.passed_full, "FULL"), (hold.passed_swa, "SWA")) if count
    ]
    if passed:
        yield f"{' and '.join(passed)} pages evicted that were used later"


def _print_faults(report: LockReport) -> None:
    if not report.fault_count:
        return
    columns = ("event", "fault", "node", "boundary", "for", "cause")
    rows = [
        (
            str(each.seq),
            each.fault,
            str(each.node),
            str(each.boundary),
            each.rid or f"request {each.request}",
            each.cause,
        )
        for each in report.faults
    ]
    print_table(
        columns, rows, title=f"\n{count_of(report.fault_count, 'fault')}, in the words of unbalanced_lock"
    )
    if report.fault_count > len(rows):
        say(f"... and {count_text(report.fault_count - len(rows))} more")
