"""`radixledger triage`: from the journals of a job that died to the first wrong event of each rank, in one command.

Not here: finding and explaining it (`radixledger.replay.triage.triage`); this module parses and prints.
"""

from itertools import chain, count
from pathlib import Path

import click
from msgspec import to_builtins

from radixledger.journal.absent import Absent
from radixledger.journal.redact import spelled_out
from radixledger.replay.by_rank import Gather
from radixledger.replay.triage.sentences import verdict
from radixledger.replay.triage.triage import (
    INCOMPLETE,
    KINDS,
    RankTriage,
    absent_of,
    triage,
)
from radixledger.tools.by_rank import gathering, processes_option
from radixledger.tools.console import (
    FINDINGS,
    UNREADABLE,
    CommandFailure,
    examples,
    exit_with,
    json_flag,
    print_json,
    remark,
)
from radixledger.tools.next_commands import next_commands
from radixledger.tools.places import check_outside_runs, check_place, new_file
from radixledger.tools.ranks import ranks_option
from radixledger.tools.report import write_page
from radixledger.tools.run_argument import in_given_words, runs_argument
from radixledger.tools.triage_text import print_triage


@click.command(
    epilog=examples(
        "radixledger triage RUN",
        "radixledger triage RUN --no-report",
        "radixledger triage RUN --report report.html",
        "radixledger triage collected/host-0 collected/host-1",
        "radixledger triage RUN/rank-0003 --json",
        "radixledger triage s3://incidents/monday --rank 3",
    ),
)
@runs_argument
@ranks_option
@click.option(
    "--report",
    "page",
    type=new_file,
    help="Where the page for the ticket goes.  [default: RUN-report.html here, if anything was found]",
)
@click.option("--no-report", is_flag=True, help="Write no page.")
@processes_option
@json_flag
def command(
    runs: tuple[Path, ...], ranks: tuple[int, ...], page: Path | None, no_report: bool, processes: int | None, as_json: bool
) -> None:  # fmt: skip
    """Find the first wrong event of each rank, what led to it, and whose pages it was about.

    RUNS are runs with their rank-NNNN folders, single ones of those folders, or folders that hold runs. Damage is read
    around, and said, and so is a rank that is not among them. What was found also becomes a page to attach to a ticket; with
    --json, only where --report says so. Exit code 0: clean. 1: something is wrong, lost, leaked or not here. 3: nothing was found, and not all could be read.
    """
    if page is not None:
        check_place(page, force=False)
    absent = absent_of(runs, ranks)
    gather = gathering(processes)
    told = triage(runs, gather, ranks=ranks)
    for each in told:
        _in_given_words(each)
    if as_json:
        print_json(
            {"verdict": overall(told, absent), "absent": absent, "ranks": [as_data(each) for each in told]}
        )
    else:
        print_triage(told, absent)
    found = bool(absent) or any(each.has_findings for each in told)
    if page is None and found and not as_json and not no_report:
        page = _place_here(runs[0])
    if page is not None and not no_report:
        _write(runs, page, gather, told, ranks)
    if found:
        exit_with(FINDINGS)
    if any(each.kind == "unreadable" for each in told):
        exit_with(UNREADABLE)


def _place_here(run: Path) -> Path | None:
    """Where the page goes if nobody said; None, and a word about it, in the folder of a run."""
    page = _free_name(run)
    try:
        check_outside_runs(page)
    except CommandFailure as failure:
        remark(f"no page is written: {failure.message} with --report")
        return None
    return page


def _free_name(run: Path) -> Path:
    """Where nothing lies yet: a page of another day is not written over."""
    name = spelled_out(run).name or "run"
    numbers = chain([""], (f"-{number}" for number in count(2)))
    return next(page for each in numbers if not (page := Path(f"{name}-report{each}.html")).exists())


def _write(
    runs: tuple[Path, ...], page: Path, gather: Gather, told: list[RankTriage], ranks: tuple[int, ...]
) -> None:
    """Write the page; the verdict stands, whether that can be done or not."""
    try:
        write_page(runs, page, gather, told, ranks)
    except OSError as error:
        remark(f"{page} could not be written: {error.strerror or error}; name another place with --report")
    else:
        remark(f"{page}: open it in a browser, attach it to the ticket")


def _in_given_words(told: RankTriage) -> None:
    """Paths of a copy become the words of who gave the URL."""
    report = told.report
    report.unreadable = in_given_words(report.unreadable)
    report.notices = [in_given_words(each) for each in report.notices]
    told.damage = [in_given_words(each) for each in told.damage]


def overall(told: list[RankTriage], absent: list[Absent]) -> str:
    """The worst that was found of any rank; where that is no finding, that some are not here."""
    kinds = {each.kind for each in told}
    if absent and not any(each.has_findings for each in told):
        return INCOMPLETE
    return next(kind for kind in KINDS if kind in kinds)


def as_data(told: RankTriage) -> dict[str, object]:
    """One rank as JSON has it: what was found, in sentences, and what to run next."""
    commands = [{"command": each, "answers": purpose} for each, purpose in next_commands(told)]
    return {"sentences": verdict(told), **to_builtins(told, str_keys=True), "next": commands}
