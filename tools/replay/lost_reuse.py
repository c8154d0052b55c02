"""`radixledger replay lost-reuse`: what misses cost, and the events that caused them.

Not here: the reading itself (`radixledger.replay.reuse.reuse`); this module parses and prints.
"""

import shlex
from pathlib import Path

import click
import msgspec

from radixledger.journal.reader import JournalReader
from radixledger.replay.reuse.keeping import WHY
from radixledger.replay.reuse.memory import PAGES_REMEMBERED
from radixledger.replay.reuse.misses import KINDS, Miss
from radixledger.replay.reuse.reuse import ByCause, Reading, Reuse, Worst
from radixledger.tools.console import (
    count_of,
    count_text,
    examples,
    json_flag,
    print_json,
    print_lines,
    remark,
)
from radixledger.tools.event_text import time_text
from radixledger.tools.numbers import Whole
from radixledger.tools.printable import say, say_lines
from radixledger.tools.ranks import ranks_option, the_ranks
from radixledger.tools.replay.arguments import salvage_flag
from radixledger.tools.reuse_text import blind, unknown
from radixledger.tools.run_argument import as_given, run_argument
from radixledger.tools.table import print_table
from radixledger.tools.unread import Unread
from radixledger.tools.watching import watched


@click.command(
    epilog=examples(
        "radixledger replay lost-reuse RUN",
        "radixledger replay lost-reuse RUN --rank 1 --worst 20",
        "radixledger replay lost-reuse RUN --each | sort -k6 | less -S",
        "radixledger replay lost-reuse RUN --each --json | jq 'select(.kinds.lost > 0)'",
    ),
)
@run_argument
@ranks_option
@click.option(
    "--worst",
    type=Whole(0),
    default=8,
    show_default=True,
    help="So many of the events that cost most.",
)
@click.option("--each", is_flag=True, help="Print every miss, one a line, and no totals.")
@click.option(
    "--remember",
    type=Whole(1),
    default=PAGES_REMEMBERED,
    show_default=True,
    help="Pages that are gone and remembered; about 150 bytes each.",
)
@salvage_flag
@json_flag
def command(
    run: Path, ranks: tuple[int, ...], worst: int, each: bool, remember: int, salvage: bool, as_json: bool
) -> None:
    """For each miss, name the event that destroyed the prefix or the window that it needed.

    Every admitted request is judged by its own prompt: a token was lost if the same prompt would have hit it before some
    event, and never again until it was admitted. Totals by cause, and the events that cost most. Behind missing events nothing but
    hits is known, until the state is. Exit code 1: events are missing. 3: none is, and a rank could not be read.
    """
    accounts = []
    unread = Unread(run, chosen := the_ranks(run, ranks))
    for number in chosen:
        with unread.around(number):
            reader = JournalReader(run, number, salvage=salvage)
            with watched(run, number) as watch:
                reading = Reading(reader, pages=remember, watch=watch)
                for miss in reading:
                    if each:
                        _print_miss(miss, as_json)
            accounts.append(reading.account)
            for notice in reader.notices:
                remark(f"rank {number}: {notice}")
            for text in (*unknown(reading.account), *blind(reading.account)):
                remark(f"rank {number}: {text}")
    if as_json and not each:
        print_json([*(_as_json(account, worst) for account in accounts), *unread.ranks])
    elif not each:
        for place, account in enumerate(accounts):
            if place:
                say()
            _print_account(run, account, worst)
    unread.leave(found=any(account.missing or account.not_known_from for account in accounts))


def _as_json(account: Reuse, worst: int) -> dict[str, object]:
    names = ("run", "rank", "route", "requests", "prompt_tokens", "kinds", "begins_at", "forgotten", "unnamed", "unlooked", "missing", "not_known_from")  # fmt: skip
    told: dict[str, object] = {name: getattr(account, name) for name in names}
    told["by_stop"] = list(account.by_stop.values())
    told["by_cause"] = account.causes()
    told["not_kept"] = account.reasons()
    told["worst"] = account.worst_events(worst)
    return told


def _print_miss(miss: Miss, as_json: bool) -> None:
    if as_json:
        say_lines(msgspec.json.encode(miss))
        return
    head = f"{miss.seq:>9}  {time_text(miss.time_ns)}  step {miss.step:<6}  hit {miss.hit} of {miss.prompt}  {miss.stop:<11}"
    told = [f"{kind} {miss.kinds[kind]}" for kind in KINDS[1:] if miss.kinds[kind]]
    by = [f"[{each.start}, {each.stop}) by event {each.seq} {each.event} {each.cause}" for each in miss.lost]
    prefix = f"rank {miss.rank}  "
    say("  ".join([prefix + head, miss.rid, ", ".join(told), *by]))


def _print_account(run: Path, account: Reuse, worst: int) -> None:
    many, prompt = count_of(account.requests, "request"), account.prompt_tokens
    print_lines(
        [f"rank {account.rank}, route {account.route}: {many}, {count_text(prompt)} prompt tokens", ""]
    )
    if not account.requests:
        return
    rows = [
        (kind, account.kinds[kind], f"{account.kinds[kind] / prompt:.1%}", WHY[kind])
        for kind in KINDS
        if account.kinds[kind] or kind in ("hit", "lost")
    ]
    lines = [f"  {kind}: {count_text(tokens)} ({share}), {why}" for kind, tokens, share, why in rows]
    print_table(("tokens that", "count", "share", "meaning"), rows, otherwise=["tokens that", *lines])
    if account.not_kept:
        _print_not_kept(account)
    causes = account.causes()
    if causes:
        _print_causes(account, causes)
    else:
        where = ", where that is known" if account.not_known_from else ""
        print_lines(["", f"nothing was lost{where}: no event took what a later request asked for"])
    if causes and worst:
        _print_worst(run, account, worst)


def _print_not_kept(account: Reuse) -> None:
    rows = [(each.cause, each.kind, each.requests, each.tokens) for each in account.reasons()]
    title = "\nnot kept in the first place, where it is known why (never_cached: perhaps)"
    print_table(("cause", "kind", "misses", "tokens"), rows, title=title)


def _print_causes(account: Reuse, causes: list[ByCause]) -> None:
    print_table(
        ("cause", "took", "misses", "tokens", "share", "steps before"),
        [
            (each.cause, each.what, each.requests, each.tokens, f"{each.tokens / account.kinds['lost']:.1%}",
             round(each.steps / max(1, each.losses)))
            for each in causes
        ],
        title="\nlost, by cause",
    )  # fmt: skip


def _print_worst(run: Path, account: Reuse, worst: int) -> None:
    events = account.worst_events(worst)
    columns = ("event", "cause", "took", "tokens", "misses", "one of", "for")
    print_table(columns, [_worst_row(each) for each in events], title="\nthe events that cost most")
    where = f"{shlex.quote(as_given(run))} {shlex.quote(events[0].rid)}"
    say(f"\nwhy the first one missed: radixledger replay why-miss {where}")


def _worst_row(each: Worst) -> tuple[object, ...]:
    lost = each.lost
    wanted = ", ".join(lost.wanted_by[:1]) + (" …" if lost.wanted_by_count > 1 else "")
    return (
        str(lost.seq), lost.cause, lost.what, each.tokens, each.requests, each.rid, wanted,
    )  # fmt: skip
