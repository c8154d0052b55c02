"""`radixledger replay verify`: fold every event again, compare what was recorded, check every law; the first finding first.

Not here: the folding and the judging (`radixledger.replay.verify`); this module parses and prints.
"""

import shlex
import time
from collections import Counter
from functools import partial
from pathlib import Path

import click

from radixledger.journal.units import Rank
from radixledger.replay.by_rank import Watcher
from radixledger.replay.laws import OF_STATES
from radixledger.replay.verdict import RankReport, Told
from radixledger.replay.verify import verify_rank
from radixledger.tools.by_rank import gathering, processes_option
from radixledger.tools.console import (
    FINDINGS,
    UNREADABLE,
    count_of,
    count_text,
    examples,
    exit_with,
    json_flag,
    print_json,
    print_lines,
    seconds_text,
)
from radixledger.tools.event_text import ranges, time_text
from radixledger.tools.printable import say
from radixledger.tools.ranks import ranks_option, the_absent, the_ranks
from radixledger.tools.replay.arguments import salvage_flag
from radixledger.tools.replay.life_table import print_story
from radixledger.tools.run_argument import as_given, run_argument
from radixledger.tools.table import print_table

RANKS_NAMED = 8
"""So many ranks are told by number."""


@click.command(
    epilog=examples(
        "radixledger replay verify RUN", "radixledger replay verify RUN --rank 1 --from-snapshot --json"
    ),
)
@run_argument
@ranks_option
@click.option(
    "--from-snapshot", is_flag=True, help="Begin at the newest good snapshot: quicker, and says less."
)
@salvage_flag
@processes_option
@json_flag
def command(
    run: Path,
    ranks: tuple[int, ...],
    from_snapshot: bool,
    salvage: bool,
    processes: int | None,
    as_json: bool,
) -> None:
    """Fold every event again; compare every recorded digest and ledger; check every law.

    Exit code 0: clean. 1: a law was broken, a digest differs, events are missing, or a rank is. 3: nothing was found, and
    not all could be read.
    """
    begun, absent = time.monotonic(), the_absent(run, ranks)
    places = [(run, each) for each in the_ranks(run, ranks)]
    work = [partial(_verified, *each, from_snapshot=from_snapshot, salvage=salvage) for each in places]
    reports = gathering(processes)(work, places)
    clean = not absent and all(each.clean for each in reports)
    if as_json:
        print_json({"clean": clean, "absent": absent, "ranks": reports})
    else:
        print_lines([each.sentence() for each in absent])
        _print_reports(run, reports, time.monotonic() - begun)
    if absent or any(each.has_findings for each in reports):
        exit_with(FINDINGS)
    if not clean:
        exit_with(UNREADABLE)


def _verified(run: Path, rank: Rank, watcher: Watcher, *, from_snapshot: bool, salvage: bool) -> RankReport:
    with watcher(run, rank, "") as watch:
        return verify_rank(run, rank, from_snapshot=from_snapshot, salvage=salvage, watch=watch)


def _print_reports(run: Path, reports: list[RankReport], seconds: float) -> None:
    columns = (
        "rank",
        "events",
        "epochs",
        "digests",
        "ledgers",
        "snapshots",
        "whole checks",
        "findings",
        "verdict",
    )
    rows = [
        (each.rank, each.events, each.epochs, each.digests, each.ledgers, each.snapshots, each.whole_checks,
         sum(each.broken.values()), _verdict(each))
        for each in reports
    ]  # fmt: skip
    print_table(columns, rows)
    refused = sum((Counter(each.refusals) for each in reports), Counter[str]())
    if refused:
        where = _places(reports)
        counts = ", ".join(f"{why} {count_text(many)}" for why, many in refused.most_common())
        print_lines([f"{where}: commands refused: {counts}"])
    for each in reports:
        _print_report(run, each)
    events = sum(each.events for each in reports)
    rate = count_text(round(events / seconds)) if seconds else "?"
    say(f"\n{count_text(events)} events in {seconds_text(seconds)}, {rate} a second")


def _places(reports: list[RankReport]) -> str:
    """The ranks that turned commands down, by number; of many how many there are."""
    at = [each.rank for each in reports if each.refusals]
    if len(at) > RANKS_NAMED:
        return f"{len(at)} of {count_of(len(reports), 'rank')}"
    return f"rank{'s' if len(at) > 1 else ''} {', '.join(map(str, at))}"


def _verdict(report: RankReport) -> str:
    if report.unreadable:
        return "unreadable"
    if report.gaps:
        return "not clean: events are missing"
    return "clean" if report.clean else "not clean"


def _print_report(run: Path, report: RankReport) -> None:
    lines = (
        [f"began at the snapshot of event {report.from_snapshot}"] if report.from_snapshot is not None else []
    )
    if not report.closed and not report.unreadable:
        lines.append("the journal is not closed: its writer is at work, or ended without saying so")
    if report.gaps:
        lost, unjudged = report.lost_words, count_text(report.unjudged)
        lines.append(
            f"{lost} lost in {count_of(report.gaps, 'gap')}; {unjudged} behind them can be judged by their pages alone"
        )
    lines += report.notices
    if report.unreadable:
        lines.append(f"unreadable from here on: {report.unreadable}")
    print_lines([f"rank {report.rank}: {line}" for line in lines])
    if report.findings:
        _print_findings(run, report)


def _print_findings(run: Path, report: RankReport) -> None:
    first = report.findings[0]
    print_lines(["", f"rank {report.rank}, first wrong event: {_finding_text(first)}"])
    if report.first_frame is not None:
        print_lines(
            [f"  it holds before event {report.first_frame[0]} and not after event {report.first_frame[1]}"]
        )
    if report.story:
        page = f"{first.pool} page {first.pages[0]}"
        print_story(report.story, f"what happened to {page} until then (the end of it)")
        where = f"--rank {report.rank} --pool {first.pool.lower()} --page {first.pages[0]}"
        say(f"the whole story: radixledger replay blame {shlex.quote(as_given(run))} {where}")
    if len(report.findings) > 1:
        print_table(("law", "findings"), sorted(report.broken.items()), title="\nall findings, by law")
        print_lines([_finding_text(each) for each in report.findings[1:]])
        told = len(report.findings)
        more = sum(report.broken.values()) - told
        if more > 0:
            say(f"... and {count_text(more)} more")
    laws = _to_be_narrowed(report)
    if laws:
        only = "the first finding alone was narrowed down; " if report.first_frame else ""
        print_lines([f"{only}which command broke {' and '.join(laws)}:"])
    for law in laws:
        say(f"  radixledger replay bisect {shlex.quote(as_given(run))} --rank {report.rank} --law {law}")


def _to_be_narrowed(report: RankReport) -> list[str]:
    """Laws of the whole state that were seen broken some time after they were, but for the one that was narrowed down."""
    narrowed = {report.findings[0].law} if report.first_frame else set[str]()
    seen = [each.law for each in report.findings if each.lawful_at is not None and each.law in OF_STATES]
    return [law for law in dict.fromkeys(seen) if law not in narrowed]


def _finding_text(told: Told) -> str:
    held = "" if told.lawful_at is None else f" (one of events {told.lawful_at + 1} to {told.seq} broke it)"
    pages = (
        f", {told.pool} page {ranges(told.pages, 12)}" if told.pages and told.pool not in told.detail else ""
    )
    return f"event {told.seq}, {time_text(told.time_ns)}, step {told.step}: {told.law}: {told.detail}{pages}{held}"
