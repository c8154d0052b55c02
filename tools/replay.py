"""`radixledger replay`: fold a journal again to verify it, to see any state that was, and to tell a page's story.

Rule: these commands only read. They need the journal and nothing else: no device, no model, no key.
"""

import shlex
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import click
from msgspec.structs import asdict

from radixledger.journal.accounts import Pool, describe
from radixledger.journal.errors import JournalError
from radixledger.journal.frame import Frame
from radixledger.journal.reader import JournalReader, ranks_in
from radixledger.journal.units import Rank, Seq
from radixledger.replay.blame import LifeStep, story
from radixledger.replay.seek import Watch, beginning_of, seq_at, state_at
from radixledger.replay.verdict import RankReport, Told
from radixledger.replay.verify import verify_rank
from radixledger.tools import state_text
from radixledger.tools.console import (
    FINDINGS,
    UNREADABLE,
    USAGE,
    CommandFailure,
    GivenPath,
    count_text,
    examples,
    exit_with,
    json_flag,
    print_facts,
    print_json,
    print_table,
    progress,
    remark,
    seconds_text,
)
from radixledger.tools.event_text import ranges, time_text

CAPACITIES = {"full": "full_pages", "swa": "swa_pages", "recurrent": "recurrent_slots", "host": "host_pages"}
"""The pools whose pages have a story, each with the field of a configuration that says how many there are."""

run_argument = click.argument("run", type=GivenPath(path_type=Path))
rank_option = click.option("--rank", type=int, help="The rank; needed where the run has several.")
salvage_flag = click.option(
    "--salvage", is_flag=True, help="Read around damage; a gap stands in for what is lost."
)


@click.group()
def command() -> None:
    """Rebuild what was true from a journal: verify it, show any state, tell a page's story.

    RUN is the folder that was given as --journal; it holds one rank-NNNN folder per rank.
    """


@command.command(
    short_help="Fold every event again, compare, check every law.",
    epilog=examples(
        "radixledger replay verify RUN", "radixledger replay verify RUN --rank 1 --from-snapshot --json"
    ),
)
@run_argument
@click.option("--rank", type=int, help="Only this rank.")
@click.option(
    "--from-snapshot", is_flag=True, help="Begin at the newest good snapshot: quicker, and says less."
)
@salvage_flag
@json_flag
def verify(run: Path, rank: int | None, from_snapshot: bool, salvage: bool, as_json: bool) -> None:
    """Fold every event again; compare every recorded digest and ledger; check every law.

    Exit code 0: clean. 1: a law was broken, a digest differs or events are missing. 3: it could not be read.
    """
    begun = time.monotonic()
    reports = [
        _verified(run, each, from_snapshot, salvage)
        for each in ([Rank(rank)] if rank is not None else ranks_in(run))
    ]
    if as_json:
        print_json({"clean": all(each.clean for each in reports), "ranks": reports})
    else:
        _print_reports(run, reports, time.monotonic() - begun)
    if any(each.unreadable for each in reports):
        exit_with(UNREADABLE)
    if not all(each.clean for each in reports):
        exit_with(FINDINGS)


def _verified(run: Path, rank: Rank, from_snapshot: bool, salvage: bool) -> RankReport:
    with _watched(run, rank) as watch:
        return verify_rank(run, rank, from_snapshot=from_snapshot, salvage=salvage, watch=watch)


@contextmanager
def _watched(run: Path, rank: Rank) -> Iterator[Watch]:
    """A progress bar over the frames of a rank."""
    try:
        total: int | None = JournalReader(run, rank).last_seq
    except JournalError:
        total = None
    with progress(f"rank {rank}", total) as advance:

        def watch(frames: Iterable[Frame]) -> Iterator[Frame]:
            for frame in frames:
                yield frame
                advance(len(frame.events))

        yield watch


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
    for each in reports:
        _print_report(run, each)
    events = sum(each.events for each in reports)
    rate = count_text(round(events / seconds)) if seconds else "?"
    click.echo(f"\n{count_text(events)} events in {seconds_text(seconds)}, {rate} a second")


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
    if report.refusals:
        lines.append(
            "commands refused: " + ", ".join(f"{why} {many}" for why, many in report.refusals.items())
        )
    if report.gaps:
        lost, unjudged = count_text(report.lost), count_text(report.unjudged)
        lines.append(f"{lost} events are lost in {report.gaps} gaps; {unjudged} behind them cannot be judged")
    lines += report.notices
    if report.unreadable:
        lines.append(f"unreadable from here on: {report.unreadable}")
    for line in lines:
        click.echo(f"rank {report.rank}: {line}")
    if report.findings:
        _print_findings(run, report)


def _print_findings(run: Path, report: RankReport) -> None:
    first = report.findings[0]
    click.echo(f"\nrank {report.rank}, first wrong event: {_finding_text(first)}")
    if report.first_frame is not None:
        click.echo(
            f"  it holds before event {report.first_frame[0]} and not after event {report.first_frame[1]}"
        )
    if report.story:
        page = f"{first.pool} page {first.pages[0]}"
        _print_story(report.story, f"what happened to {page} until then (the end of it)")
        where = f"--rank {report.rank} --pool {first.pool.lower()} --page {first.pages[0]}"
        click.echo(f"the whole story: radixledger replay blame {shlex.quote(str(run))} {where}")
    if len(report.findings) > 1:
        print_table(("law", "findings"), sorted(report.broken.items()), title="\nall findings, by law")
        for each in report.findings[1:]:
            click.echo(_finding_text(each))
        told = len(report.findings)
        more = sum(report.broken.values()) - told
        if more > 0:
            click.echo(f"... and {count_text(more)} more")


def _finding_text(told: Told) -> str:
    held = "" if told.lawful_at is None else f" (it held after event {told.lawful_at})"
    pages = (
        f", {told.pool} page {ranges(told.pages, 12)}" if told.pages and told.pool not in told.detail else ""
    )
    return f"event {told.seq}, {time_text(told.time_ns)}, step {told.step}: {told.law}: {told.detail}{pages}{held}"


@command.command(
    short_help="Show the state after an event or at a time.",
    epilog=examples(
        "radixledger replay state RUN --rank 0",
        "radixledger replay state RUN --rank 0 --at 41237",
        "radixledger replay state RUN --rank 0 --at 2026-01-31T12:00:00Z --json",
        "radixledger replay state RUN --rank 0 --at +1500ms",
    ),
)
@run_argument
@rank_option
@click.option(
    "--at",
    metavar="SEQ|TIME",
    help="An event, a time (ISO 8601), or +ms since the first event.  [default: the end]",
)
@salvage_flag
@json_flag
def state(run: Path, rank: int | None, at: str | None, salvage: bool, as_json: bool) -> None:
    """Show the state after an event, or as of a time: pools, accounts, requests, locks and the tree.

    It is folded from the nearest snapshot. Exit code 1 where what was folded broke a law.
    """
    reader = JournalReader(run, _the_rank(run, rank), salvage=salvage)
    seq = reader.last_seq if at is None else _seq_of(reader, at)
    with _watched(run, reader.rank) as watch:
        found = state_at(reader, seq, watch)
    frame = next(iter(reader.frames(seq)))
    place = {"event": seq, "time": time_text(frame.time_ns), "step": frame.step}
    if as_json:
        print_json(place | state_text.as_json(found))
    else:
        print_facts(place | state_text.summary(found))
        for title, columns, rows in state_text.tables(found):
            if rows:
                print_table(columns, rows, title=f"\n{title}")
            else:
                click.echo(f"\n{title}: none")
        click.echo("\ntree: positions in tokens, pages by number")
        for line in state_text.tree_lines(found):
            click.echo(line)
    for notice in reader.notices:
        remark(notice)
    if found.findings:
        first = found.findings[0]
        remark(
            f"{len(found.findings)} laws were broken on the way, first by event {first.seq}: {first.law}: {first.detail}"
        )
        exit_with(FINDINGS)


def _the_rank(run: Path, rank: int | None) -> Rank:
    """The rank that was asked for, or the only one."""
    ranks = ranks_in(run)
    if rank is None and len(ranks) > 1:
        raise CommandFailure(f"{run} has ranks {', '.join(map(str, ranks))}: say which with --rank", USAGE)
    return ranks[0] if rank is None else Rank(rank)


def _seq_of(reader: JournalReader, at: str) -> Seq:
    """The event that `--at` names: by number, or the last one that is not later than a time."""
    if at.isdecimal():
        return Seq(int(at))
    first = next(iter(reader.frames())).time_ns
    return seq_at(reader, _time_ns(at, first))


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


@command.command(
    short_help="Tell every life that a page had.",
    epilog=examples(
        "radixledger replay blame RUN --rank 0 --pool full --page 17",
        "radixledger replay blame RUN --rank 0 --pool swa --slot 2176 --json",
        "radixledger replay blame RUN --rank 0 --pool recurrent --slot 3",
    ),
)
@run_argument
@rank_option
@click.option(
    "--pool",
    type=click.Choice([*CAPACITIES]),
    required=True,
    help="The pool that the page is in; recurrent: the slots of states.",
)
@click.option("--page", type=int, help="The page, or the slot of a state.")
@click.option("--slot", type=int, help="A slot: the page that holds it; of a state itself.")
@click.option("--last", type=click.IntRange(min=1), help="Only so many steps, the latest.")
@salvage_flag
@json_flag
def blame(
    run: Path, rank: int | None, pool: str, page: int | None, slot: int | None, last: int | None, salvage: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Tell every life that a page had: who held it, who gave it up, why, and in which event.

    Exit code 1 where somebody gave up what the events before say it did not have.
    """
    reader = JournalReader(run, _the_rank(run, rank), salvage=salvage)
    number = _page_of(reader, pool, page, slot)
    begin = beginning_of(reader)
    with _watched(run, reader.rank) as watch:
        told = story(watch(reader.frames(begin.next_seq)), Pool[pool.upper()], number, begin.state)
        steps = list(deque(told, last))
    if as_json:
        print_json([_step_json(step) for step in steps])
    elif not steps:
        click.echo(f"nothing ever happened to {pool.upper()} page {number}")
    else:
        _print_story(steps, f"{pool.upper()} page {number}")
    for notice in reader.notices:
        remark(notice)
    if any(step.wrong for step in steps):
        exit_with(FINDINGS)


def _page_of(reader: JournalReader, pool: str, page: int | None, slot: int | None) -> int:
    config = reader.opened.config
    if (page is None) == (slot is None):
        raise CommandFailure("give either --page or --slot", USAGE)
    pages: int = getattr(config, CAPACITIES[pool])
    if not pages:
        raise CommandFailure(f"this run has no {pool.upper()} pool", USAGE)
    unit, size = ("slot", 1) if pool == "recurrent" else ("page", config.page_size)
    number = page if page is not None else (slot or 0) // size
    if not 0 < number <= pages:
        sizes = f" of {size} slots" if unit == "page" else ""
        raise CommandFailure(
            f"the {pool.upper()} pool has {unit}s 1 to {pages}{sizes}, not {unit} {number}"
            + (f": {unit} 0 is the padding sink, and nobody's" if number == 0 else ""),
            USAGE,
        )
    return number


def _print_story(steps: list[LifeStep], title: str) -> None:
    columns = ["life", "event", "time", "step", "what", "from", "to", "request id", "why", "mapped with"]
    rows = [_story_row(step) for step in steps]
    if any(step.wrong for step in steps):
        columns.append("wrong")
        rows = [[*row, step.wrong] for row, step in zip(rows, steps, strict=True)]
    print_table(columns, rows, title=title)


def _story_row(step: LifeStep) -> list[object]:
    life = str(step.life) if step.life else "before"
    taker = "stays" if step.taker == step.giver else describe(step.taker)
    return [
        life, str(step.seq), time_text(step.time_ns), str(step.step), step.event, describe(step.giver), taker,
        step.rid, step.cause, str(step.partner or ""),
    ]  # fmt: skip


def _step_json(step: LifeStep) -> dict[str, object]:
    return {
        **asdict(step),
        "from": describe(step.giver),
        "to": describe(step.taker),
        "time": time_text(step.time_ns),
    }
