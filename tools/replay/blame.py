"""`radixledger replay blame`: every life that a page had, from who took it to who gave it up.

Not here: the story itself (`radixledger.replay.blame`); this module parses and prints.
"""

from collections import deque
from pathlib import Path

import click

from radixledger.journal.accounts import Pool
from radixledger.journal.reader import JournalReader
from radixledger.replay.blame import story
from radixledger.replay.seek import beginning_of
from radixledger.tools.console import (
    FINDINGS,
    USAGE,
    CommandFailure,
    examples,
    exit_with,
    json_flag,
    print_json,
    remark,
)
from radixledger.tools.replay.arguments import rank_option, salvage_flag, the_rank, watched
from radixledger.tools.replay.life_table import print_story, step_json
from radixledger.tools.run_argument import run_of_one_rank_argument

CAPACITIES = {"full": "full_pages", "swa": "swa_pages", "recurrent": "recurrent_slots", "host": "host_pages"}
"""The pools whose pages have a story, each with the field of a configuration that says how many there are."""


@click.command(
    epilog=examples(
        "radixledger replay blame RUN --rank 0 --pool full --page 17",
        "radixledger replay blame RUN --rank 0 --pool swa --slot 2176 --json",
        "radixledger replay blame RUN --rank 0 --pool recurrent --slot 3",
    ),
)
@run_of_one_rank_argument
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
def command(
    run: Path, rank: int | None, pool: str, page: int | None, slot: int | None, last: int | None, salvage: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Tell every life that a page had: who held it, who gave it up, why, and in which event.

    Exit code 1 where somebody gave up what the events before say it did not have.
    """
    reader = JournalReader(run, the_rank(run, rank), salvage=salvage)
    number = _page_of(reader, pool, page, slot)
    begin = beginning_of(reader)
    with watched(run, reader.rank) as watch:
        told = story(watch(reader.frames(begin.next_seq)), Pool[pool.upper()], number, begin.state)
        steps = list(deque(told, last))
    if as_json:
        print_json([step_json(step) for step in steps])
    elif not steps:
        click.echo(f"nothing ever happened to {pool.upper()} page {number}")
    else:
        print_story(steps, f"{pool.upper()} page {number}")
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
