"""`radixledger triage`: from the journals of a job that died to the first wrong event of each rank, in one command.

Not here: finding and explaining it (`radixledger.replay.triage`); this module parses and prints.
"""

from pathlib import Path

import click
from msgspec import to_builtins

from radixledger.replay.sentences import verdict
from radixledger.replay.triage import RankTriage, triage
from radixledger.tools.console import (
    FINDINGS,
    UNREADABLE,
    examples,
    exit_with,
    json_flag,
    print_json,
    remark,
)
from radixledger.tools.next_commands import next_commands
from radixledger.tools.report import check_place, write_page
from radixledger.tools.run_argument import in_given_words, runs_argument
from radixledger.tools.triage_text import print_triage
from radixledger.tools.watching import watched


@click.command(
    epilog=examples(
        "radixledger triage RUN",
        "radixledger triage RUN --report report.html",
        "radixledger triage collected/host-0 collected/host-1",
        "radixledger triage RUN/rank-0003 --json",
        "radixledger triage s3://incidents/monday --rank 3",
    ),
)
@runs_argument
@click.option("--rank", type=int, help="Only this rank.")
@click.option(
    "--report",
    "page",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the page for the ticket here too.",
)
@json_flag
def command(runs: tuple[Path, ...], rank: int | None, page: Path | None, as_json: bool) -> None:
    """Find the first wrong event of each rank, what led to it, and whose pages it was about.

    RUNS are runs with their rank-NNNN folders, single ones of those folders, or folders that hold runs. Damage is read
    around, and said. Exit code 0: clean. 1: something is wrong, lost or leaked. 3: nothing was found, and not all could
    be read.
    """
    if page is not None:
        check_place(page, force=False)
    told = [_as_given(each) for each in triage(list(runs), watched, rank=rank)]
    if as_json:
        print_json({"verdict": overall(told), "ranks": [as_data(each) for each in told]})
    else:
        print_triage(told)
    if page is not None:
        write_page(runs, page, told)
        remark(f"{page}: open it in a browser, attach it to the ticket")
    if any(each.has_findings for each in told):
        exit_with(FINDINGS)
    if any(each.kind == "unreadable" for each in told):
        exit_with(UNREADABLE)


def _as_given(told: RankTriage) -> RankTriage:
    """With paths of a copy in the words of who gave the URL."""
    report = told.report
    report.unreadable = in_given_words(report.unreadable)
    report.notices = [in_given_words(each) for each in report.notices]
    told.damage = [in_given_words(each) for each in told.damage]
    return told


def overall(told: list[RankTriage]) -> str:
    """The worst that was found of any rank."""
    kinds = {each.kind for each in told}
    return next(
        kind for kind in ("wrong", "turned down", "leak", "damaged", "unreadable", "clean") if kind in kinds
    )


def as_data(told: RankTriage) -> dict[str, object]:
    """One rank as JSON has it: what was found, in sentences, and what to run next."""
    commands = [{"command": each, "answers": purpose} for each, purpose in next_commands(told)]
    return {"sentences": verdict(told), **to_builtins(told, str_keys=True), "next": commands}
