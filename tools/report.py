"""`radixledger report`: a run as one page to attach to a ticket.

Not here: what is on the page (`radixledger.replay.report`); this module parses and prints.
"""

import time
from collections.abc import Sequence
from pathlib import Path

import click

from radixledger import __version__
from radixledger.replay.by_rank import Gather
from radixledger.replay.report.write import ReportSummary, write_report
from radixledger.replay.triage.triage import RankTriage
from radixledger.tools.by_rank import gathering, processes_option
from radixledger.tools.console import (
    FINDINGS,
    UNREADABLE,
    bytes_text,
    count_of,
    examples,
    exit_with,
    json_flag,
    print_json,
    print_lines,
    seconds_text,
)
from radixledger.tools.event_text import line
from radixledger.tools.places import check_place, new_file
from radixledger.tools.printable import say
from radixledger.tools.ranks import ranks_option
from radixledger.tools.run_argument import as_given, in_given_words, runs_argument
from radixledger.tools.table import print_table


@click.command(
    epilog=examples(
        "radixledger report RUN -o report.html",
        "radixledger report RUN --rank 3 -o rank3.html",
        "radixledger report baseline unified -o both.html --force --json",
        "radixledger report s3://incidents/monday -o monday.html",
    ),
)
@runs_argument
@click.option(
    "-o", "--output", type=new_file, default=Path("report.html"),
    show_default=True, help="Where the page goes.",
)  # fmt: skip
@ranks_option
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@processes_option
@json_flag
def command(
    runs: tuple[Path, ...],
    output: Path,
    ranks: tuple[int, ...],
    force: bool,
    processes: int | None,
    as_json: bool,
) -> None:
    """Write runs as one page to attach to a ticket: verdict, charts, findings, and every moment that was.

    RUNS are what `triage` takes, and the page begins with its verdict. It is one file, needs no network, and shows pools, pages,
    the radix tree and requests at any event. Damage is read around, and said. Exit code 0: clean. 1: something is
    wrong, lost, leaked or not here. 3: nothing was found, and not all could be read. The page is written in each case.
    """
    check_place(output, force=force)
    begun = time.monotonic()
    summary = write_page(runs, output, gathering(processes), ranks=ranks)
    if as_json:
        print_json(summary)
    else:
        _print(summary, time.monotonic() - begun)
    kinds = {each.kind for each in summary.ranks}
    if summary.absent or kinds - {"clean", "unreadable"}:
        exit_with(FINDINGS)
    if "unreadable" in kinds:
        exit_with(UNREADABLE)


def write_page(
    runs: tuple[Path, ...],
    output: Path,
    gather: Gather,
    told: list[RankTriage] | None = None,
    ranks: Sequence[int] = (),
) -> ReportSummary:
    """Write the page of `runs`, of these ranks or of all, with what triage `told` of them if it was asked already."""
    made = f"Written by radixledger {__version__} from {', '.join(as_given(run) for run in runs)}."
    return write_report(
        runs, output, tell=line, told=told, ranks=ranks, made=made, named=as_given, gather=gather
    )


def _print(summary: ReportSummary, seconds: float) -> None:
    print_lines([each.sentence() for each in summary.absent])
    rows = [
        (each.run, each.rank, each.events, sum(last - first + 1 for first, last in each.detail), each.summaries,
         each.findings, each.kind)
        for each in summary.ranks
    ]  # fmt: skip
    print_table(("run", "rank", "events", "at full detail", "summaries", "findings", "verdict"), rows)
    for each in summary.ranks:
        if each.unreadable:
            print_lines([f"rank {each.rank}: unreadable from here on: {in_given_words(each.unreadable)}"])
    size = bytes_text(summary.bytes)
    say(
        f"{summary.path}: {size}, {count_of(summary.events, 'event')}, in {seconds_text(seconds)}; open it in a browser"
    )
