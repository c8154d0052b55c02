"""`radixledger replay state`: what was true after an event or at a time, as tables or as JSON.

Not here: the folding (`radixledger.replay.seek`) and the text of a state (`radixledger.tools.state_text`).
"""

from pathlib import Path

import click

from radixledger.cache.state import State
from radixledger.journal.reader import JournalReader
from radixledger.replay.known import reached, unknown_words
from radixledger.replay.verdict import in_order
from radixledger.tools import state_text
from radixledger.tools.console import (
    FINDINGS,
    count_of,
    examples,
    exit_with,
    json_flag,
    print_facts,
    print_json,
    print_lines,
    remark,
)
from radixledger.tools.event_text import time_text
from radixledger.tools.printable import say
from radixledger.tools.ranks import rank_option, the_rank
from radixledger.tools.replay.arguments import salvage_flag, seq_of
from radixledger.tools.run_argument import run_of_one_rank_argument
from radixledger.tools.table import print_table
from radixledger.tools.watching import watched

PARTS = ("pools", "accounts", "requests", "locks", "copies", "tree")
"""What a state is shown as: the first words of the titles of its tables, and the tree."""

IN_JSON = {"copies": "transfers", "tree": "nodes"}
"""What JSON calls a part otherwise."""


@click.command(
    epilog=examples(
        "radixledger replay state RUN --rank 0",
        "radixledger replay state RUN --rank 0 --at 41237",
        "radixledger replay state RUN --rank 0 --at 2026-01-31T12:00:00Z --json",
        "radixledger replay state RUN --rank 0 --at +1500ms --show pools --show locks",
    ),
)
@run_of_one_rank_argument
@rank_option
@click.option(
    "--at",
    metavar="SEQ|TIME",
    help="An event, a time (ISO 8601), or +ms since the first event.  [default: the end]",
)
@click.option(
    "--show",
    "parts",
    type=click.Choice(PARTS),
    multiple=True,
    help="Only this part; may be given again.  [default: all]",
)
@salvage_flag
@json_flag
def command(
    run: Path, rank: int | None, at: str | None, parts: tuple[str, ...], salvage: bool, as_json: bool
) -> None:
    """Show the state after an event, or as of a time: pools, accounts, requests, locks and the tree.

    It is folded from the nearest snapshot. Exit code 1 where what was folded broke a law; behind missing
    events none is judged, and stderr says so.
    """
    reader = JournalReader(run, the_rank(run, rank), salvage=salvage)
    seq = reader.last_seq if at is None else seq_of(reader, at)
    with watched(run, reader.rank) as watch:
        found, lost_at = reached(reader, seq, watch)
    frame = next(iter(reader.frames(seq)))
    place: dict[str, object] = {"event": seq, "time": time_text(frame.time_ns), "step": frame.step}
    if lost_at:
        place["not known behind"] = lost_at
        remark(
            f"{unknown_words(lost_at)}; what is shown is what the events that are here give, and no state that was"
        )
    left_out = set(PARTS) - set(parts) if parts else set[str]()
    if as_json:
        hidden = {IN_JSON.get(part, part) for part in left_out}
        told = state_text.as_json(found)
        print_json(place | {name: value for name, value in told.items() if name not in hidden})
    else:
        print_facts(place | state_text.summary(found))
        _print_parts(found, left_out)
    for notice in reader.notices:
        remark(notice)
    if found.findings:
        first = in_order(found.findings)[0]
        remark(
            f"laws were broken on the way ({count_of(len(found.findings), 'finding')}), first by event {first.seq}: {first.law}: {first.detail}"
        )
        exit_with(FINDINGS)


def _print_parts(state: State, left_out: set[str]) -> None:
    for title, columns, rows in state_text.tables(state):
        if title.partition(" ")[0].rstrip(",") in left_out:
            continue
        if rows:
            print_table(columns, rows, title=f"\n{title}")
        else:
            say(f"\n{title}: none")
    if "tree" not in left_out:
        say("\ntree: positions in tokens, pages by number")
        print_lines([*state_text.tree_lines(state)])
