"""`radixledger report`: a run as one page to attach to a ticket.

Not here: what is on the page (`radixledger.replay.report`); this module parses and prints.
"""

import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from radixledger import __version__
from radixledger.journal.errors import JournalError
from radixledger.journal.frame import Frame
from radixledger.journal.reader import JournalReader, ranks_in
from radixledger.replay.report.write import ReportSummary, write_report
from radixledger.tools.console import (
    FINDINGS,
    UNREADABLE,
    USAGE,
    CommandFailure,
    bytes_text,
    count_of,
    examples,
    exit_with,
    json_flag,
    print_json,
    print_table,
    progress,
    seconds_text,
)
from radixledger.tools.event_text import line
from radixledger.tools.replay.arguments import salvage_flag
from radixledger.tools.run_argument import as_given, runs_argument


@click.command(
    epilog=examples(
        "radixledger report RUN -o report.html",
        "radixledger report baseline unified -o both.html --force --json",
        "radixledger report s3://bucket/run -o report.html --salvage",
    ),
)
@runs_argument
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), default=Path("report.html"),
    show_default=True, help="Where the page goes.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@salvage_flag
@json_flag
def command(runs: tuple[Path, ...], output: Path, force: bool, salvage: bool, as_json: bool) -> None:
    """Write runs as one page to attach to a ticket: verdict, charts, findings, and every moment that was.

    The page is one file, needs no network, and shows pools, pages, the radix tree and requests at any event. Exit code 0: every rank is
    clean. 1: there are findings. 3: a rank could not be read to its end. The page is written in each case.
    """
    if output.exists() and not force:
        raise CommandFailure(
            f"{output} is there already: name another file with -o, or replace it with --force", USAGE
        )
    if not output.absolute().parent.is_dir():
        raise CommandFailure(
            f"{output.absolute().parent} is no folder: make it first, or name another file with -o", USAGE
        )
    begun = time.monotonic()
    names = ", ".join(as_given(run) for run in runs)
    with progress("reading", _work(runs)) as advance:

        def watch(frames: Iterable[Frame]) -> Iterator[Frame]:
            for frame in frames:
                yield frame
                advance(len(frame.events))

        made = f"Written by radixledger {__version__} from {names}."
        summary = write_report(runs, output, tell=line, salvage=salvage, made=made, watch=watch)
    if as_json:
        print_json(summary)
    else:
        _print(summary, time.monotonic() - begun)
    if summary.unreadable:
        exit_with(UNREADABLE)
    if not summary.clean:
        exit_with(FINDINGS)


def _work(runs: Iterable[Path]) -> int | None:
    """How many events will pass by: each is folded twice."""
    try:
        return 2 * sum(JournalReader(run, rank).last_seq for run in runs for rank in ranks_in(run))
    except JournalError:
        return None


def _print(summary: ReportSummary, seconds: float) -> None:
    rows = [
        (each.run, each.rank, each.events, sum(last - first + 1 for first, last in each.detail), each.summaries,
         each.findings, "unreadable" if each.unreadable else "not clean" if each.findings else "clean")
        for each in summary.ranks
    ]  # fmt: skip
    print_table(("run", "rank", "events", "at full detail", "summaries", "findings", "verdict"), rows)
    for each in summary.ranks:
        if each.unreadable:
            click.echo(f"rank {each.rank}: unreadable from here on: {each.unreadable}")
    size = bytes_text(summary.bytes)
    click.echo(
        f"{summary.path}: {size}, {count_of(summary.events, 'event')}, in {seconds_text(seconds)}; open it in a browser"
    )
