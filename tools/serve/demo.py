"""`radixledger demo`: the whole path once: serve, verify, compare, ask in SQL, find a planted fault.

Conversations over one system prompt are served by the tiny model on two ranks whose pools are far too small for them.
Rule: the demo fails when something that it is there to show did not happen; every figure comes from the run.
"""

import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import duckdb

from radixledger.analytics.queries import Answer, ask, ask_sql, find, of_kind
from radixledger.analytics.store import Database
from radixledger.journal.accounts import describe
from radixledger.journal.reader import ranks_in
from radixledger.journal.units import Rank
from radixledger.replay.verdict import RankReport
from radixledger.replay.verify import verify_rank
from radixledger.tools.console import (
    USAGE,
    CommandFailure,
    GivenPath,
    count_text,
    examples,
    print_facts,
    seconds_text,
)
from radixledger.tools.drill import DoubleFree, plant_double_free
from radixledger.tools.load import load_all
from radixledger.tools.places import check_outside_runs
from radixledger.tools.printable import say
from radixledger.tools.serve.command import facts_of
from radixledger.tools.serve.conversations import Conversations, Talk
from radixledger.tools.serve.demo_routes import other_routes
from radixledger.tools.serve.demo_stage import cached, failed, serve, title, write_lines
from radixledger.tools.serve.loader import Checkpoint
from radixledger.tools.serve.offline import Setup
from radixledger.tools.serve.requests import Request, Result, encode_request, encode_result
from radixledger.tools.serve.tiny import load_tiny
from radixledger.tools.table import print_table
from radixledger.tools.unread import RanksOf

TALK = Talk(conversations=10, turns=4, ranks=2, system=96, question=24, answer=48, pause_ms=60, stagger_ms=2)
WARM = Setup(
    page_size=16, full_pages=59, swa_pages=30, ranks=2, chunk_tokens=64, running=4, context_tokens=512
)
COLD = WARM._replace(chunk_tokens=40, running=2, force_miss=True)
"""The same ranks, with nothing cached, and with other chunks and batches."""

HAPPENINGS = {
    "Removed": "evicted: a leaf left the tree with its pages",
    "Tombstoned": "tombstone: a node lost its SWA pages, and kept its FULL pages and its place",
    "Healed": "heal: a tombstone got SWA pages again, from a request that had computed them anew",
    "Retracted": "retraction: a request gave everything back to an older one, and went on later",
}
"""What has to happen when memory is short, by its event."""

REPORTS = (
    (
        "hit_rate",
        ("rank", "requests", "prompt_tokens", "cached_tokens", "hit_rate", "full_hit_rate"),
        "(admissions: a request that was retracted was admitted again; full_hit_rate: what FULL pages alone would have given)",
    ),
    ("evictions_by_cause", ("rank", "cause", "event", "nodes", "full_pages", "swa_pages"), ""),
)
"""Reports of `analytics`: the columns that are shown here, and what to know."""

SAME_PAGE = """
WITH held AS (
    SELECT p.rank, p.page, p.step, lead(p.step) OVER (PARTITION BY p.rank, p.page ORDER BY p.seq) AS until, r.rid
    FROM pages AS p
    LEFT JOIN requests AS r ON r.rank = p.rank AND r.request = p.to_holder AND p.to_kind = 'request'
    WHERE p.pool = 'full'
)
SELECT a.page, greatest(a.step, b.step) AS step, a.rid AS on_rank_0, b.rid AS on_rank_1
FROM held AS a JOIN held AS b ON a.page = b.page AND a.rank = 0 AND b.rank = 1
WHERE a.rid IS NOT NULL AND b.rid IS NOT NULL AND a.step < coalesce(b.until, 1e9) AND b.step < coalesce(a.until, 1e9)
ORDER BY step, page LIMIT 3
"""
"""FULL pages that two ranks had under one number at the same step, each for a request of its own."""


@click.command(epilog=examples("radixledger demo", "radixledger demo --to elsewhere"))
@click.option("--to", "folder", type=GivenPath(file_okay=False, path_type=Path), default=Path("demo-run"),
              show_default=True, help="Where the runs are left.")  # fmt: skip
@click.option("--force", is_flag=True, help="Replace what an earlier demo left there.")
def command(folder: Path, force: bool) -> None:
    """Serve, verify, compare, ask in SQL and find a planted fault, in half a minute of processor time."""
    begun = time.monotonic()
    check_outside_runs(folder)
    clear(folder, force=force)
    model = load_tiny()
    talk = Conversations(TALK)
    warm = serve_warm(folder, model, talk)
    verify(folder / "warm")
    compare(folder, model, talk.requests, warm)
    question(folder)
    other_routes(folder, model, talk.requests, warm, WARM)
    planted = drill(folder)
    close(folder, planted, time.monotonic() - begun)


def clear(folder: Path, *, force: bool) -> None:
    """Make room for the demo; what is there is removed only on demand, and only if a demo left it."""
    if not folder.exists() or not any(folder.iterdir()):
        return
    if not (folder / "requests.jsonl").exists() or not (folder / "warm").exists():
        raise CommandFailure(
            f"{folder} exists and is not what a demo leaves: choose another folder with --to", USAGE
        )
    if not force:
        raise CommandFailure(
            f"{folder} holds an earlier demo: --force replaces it, --to FOLDER leaves it", USAGE
        )
    shutil.rmtree(folder)


def serve_warm(folder: Path, model: Checkpoint, talk: Conversations) -> list[Result]:
    """Serve the conversations under pressure, into the journals of `folder/warm`."""
    shape = talk.talk
    title(
        f"1  Serve: {shape.conversations} conversations of {shape.turns} turns over one system prompt of {shape.system} tokens",
        f"{shape.ranks} ranks, each with {WARM.full_pages} FULL and {WARM.swa_pages} SWA pages of {WARM.page_size} tokens: "
        "too few for what they are asked to hold",
    )
    turns = shape.conversations * shape.turns
    report, results = serve(model, WARM, folder / "warm", talk.openings, turns, talk.then)
    write_lines(folder / "requests.jsonl", [encode_request(request) for request in talk.requests])
    write_lines(folder / "warm.jsonl", [encode_result(result) for result in results])
    print_facts(facts_of(report, WARM))
    return results


def verify(run: Path) -> None:
    """Fold the journals again; they have to come out as the server said it was."""
    title(
        "2  Verify: every event is folded again, from the journals alone",
        "recorded digests of the whole state are compared, and every law is asked",
    )
    reports = [verify_rank(run, rank) for rank in ranks_in(run)]
    columns = ("rank", "events", "digests compared", "ledgers compared", "findings", "verdict")
    print_table(
        columns,
        [
            (each.rank, each.events, each.digests, each.ledgers, sum(each.broken.values()), verdict(each))
            for each in reports
        ],
    )
    if not all(each.clean and each.digests for each in reports):
        raise failed(f"the journals of {run} do not verify")


def verdict(report: RankReport) -> str:
    """A verification in a word."""
    return "clean" if report.clean else "not clean"


def compare(folder: Path, model: Checkpoint, requests: Sequence[Request], warm: Sequence[Result]) -> None:
    """Serve the same requests with nothing cached, in other batches: the answers have to be the same, id by id."""
    title(
        "3  Compare: the same requests again, with --force-miss",
        f"nothing is cached, {COLD.running} run at once instead of {WARM.running}, prompts go in chunks of {COLD.chunk_tokens} "
        f"instead of {WARM.chunk_tokens}",
    )
    _, cold = serve(model, COLD, folder / "cold", requests, len(requests))
    write_lines(folder / "cold.jsonl", [encode_result(result) for result in cold])
    same = sum(a.output_ids == b.output_ids for a, b in zip(warm, cold, strict=True))
    ids = [token for result in warm for token in result.output_ids]
    print_facts({
        "answers that are the same": f"{same} of {len(warm)}",
        "token ids compared": f"{count_text(len(ids))}, {len(set(ids))} of them distinct",
        "prompt tokens from the cache": f"{count_text(cached(warm))} warm, {count_text(cached(cold))} cold",
    })  # fmt: skip
    if same != len(warm) or cached(cold) or not cached(warm):
        raise failed("the answers depend on the cache")


def question(folder: Path) -> None:
    """Ask the journal of the warm run in SQL: what happened, what it was worth, whether anything is wrong."""
    title("4  Ask: the same journals as tables", "radixledger sql RUN NAME, or -c with a query of your own")
    with loaded(folder / "warm") as connection:
        happened = dict(ask_sql(connection, "SELECT event, count(*) FROM events GROUP BY event").rows)
        print_table(
            ("times", "what happened"), [(happened.get(event, 0), what) for event, what in HAPPENINGS.items()]
        )
        for name, columns, remarked in REPORTS:
            show(ask(connection, find(name)), columns, f"\n{name}", remarked)
        shared = ask_sql(connection, SAME_PAGE)
        show(shared, shared.columns, "\nequal page numbers on two ranks, at the same step, are two pages")
        broken = [check.name for check in of_kind("check") if ask(connection, check).rows]
        say(
            f"\n{len(of_kind('check'))} checks in SQL, {'findings by ' + ', '.join(broken) if broken else 'no findings'}"
        )
    missing = [event for event in HAPPENINGS if not happened.get(event)]
    if missing:
        raise failed(f"{', '.join(missing)} did not happen: there was not enough pressure")
    if not shared.rows:
        raise failed("no two ranks used one page number at the same time")
    if broken:
        raise failed(f"{', '.join(broken)} found something in a healthy run")


@contextmanager
def loaded(run: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A run's journals as tables in memory."""
    database = Database()
    try:
        load_all(database, [RanksOf(run, ranks_in(run))], {}, salvage=False)
        yield database.questioned()
    finally:
        database.close()


def drill(folder: Path) -> DoubleFree:
    """Plant a double free in a copy of the run; replay and SQL, which share no code, have to name the same event."""
    title(
        "6  Drill: a page is freed twice, in a copy of the run",
        "as a server with a bug in its clean-up would have written it; the cache itself refuses such a free",
    )
    run = folder / "planted"
    planted = plant_double_free(folder / "warm", run, Rank(0))
    report = verify_rank(run, planted.rank)
    with loaded(run) as connection:
        answer = ask(connection, find("double_free"))
    rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    found = report.findings[0] if report.findings else None
    print_facts({
        "planted": f"rank {planted.rank}, FULL page {planted.page}: freed in event {planted.first}, again in event {planted.second}",
        "replay verify": "nothing" if found is None else f"event {found.seq}: {found.law}: {found.detail}",
        "sql double_free": "; ".join(map(double_free_text, rows)) or "nothing",
    })  # fmt: skip
    print_table(
        ("event", "step", "what", "from", "to", "request", "why"),
        [
            (
                str(each.seq),
                str(each.step),
                each.event,
                describe(each.giver),
                describe(each.taker),
                each.rid,
                each.cause,
            )
            for each in report.story
        ],
        title=f"\nthe story of FULL page {planted.page}, as replay tells it",
    )
    for each in report.story:
        if each.wrong:
            say(f"event {each.seq}: {each.wrong}")
    told = [(row["rank"], row["pool"], row["page"], row["first_seq"], row["second_seq"]) for row in rows]
    if (
        found is None
        or (found.seq, found.pages, sum(report.broken.values())) != (planted.second, [planted.page], 1)
        or told != [(planted.rank, "full", planted.page, planted.first, planted.second)]
    ):
        raise failed("replay and SQL do not name the planted event, and nothing else")
    return planted


def double_free_text(row: Mapping[str, Any]) -> str:
    """A row of the check, in a sentence."""
    return (
        f"event {row['second_seq']}: page {row['page']} was handed out in event {row['alloc_seq']}, freed in {row['first_seq']} "
        f"({row['first_cause']}), freed again in {row['second_seq']} ({row['second_cause']}), next owner in {row['next_seq']}"
    )


def close(folder: Path, planted: DoubleFree, seconds: float) -> None:
    """What was shown, and where to look next."""
    title(
        f"Done in {seconds_text(seconds)}",
        "The answers are the same with the cache and without it. The journals alone give back every state that was",
        "served from. Two programs that share no code name the one planted event, out of thousands.",
    )
    say(f"All of it lies in {folder}. Look next at (`radixledger --help` has a line for each command):\n")
    if shutil.which("radixledger") is None:
        say(f"first, to have radixledger on your path: . {activation()}\n")
    sizes = f"--page-size {WARM.page_size} --full-pages {WARM.full_pages} --swa-pages {WARM.swa_pages} --dp-size {WARM.ranks}"
    steps = f"--chunked-prefill-size {WARM.chunk_tokens} --max-running-requests {WARM.running}"
    print_facts({
        "the page's story": f"radixledger replay blame {folder}/planted --rank {planted.rank} --pool full --page {planted.page}",
        "any moment": f"radixledger replay state {folder}/warm --rank 0 --at {planted.first}",
        "the events": f"radixledger journal cat {folder}/warm --rank 0",
        "all questions": "radixledger sql --list",
        "your own": f"radixledger sql {folder}/warm -c 'FROM requests LIMIT 5'",
        "the same run again": f"radixledger serve --offline {folder}/requests.jsonl --output again.jsonl --model-path tiny "
        f"--journal again --key-file {folder}/redaction.key --enable-unified-radix-tree {sizes} {steps}",
    })  # fmt: skip


def activation() -> Path:
    """The script of our environment, as it is named from here."""
    script = Path(sys.prefix, "bin", "activate")
    return script.relative_to(Path.cwd()) if script.is_relative_to(Path.cwd()) else script


def show(answer: Answer, columns: Sequence[str], name: str, remarked: str = "") -> None:
    """Some columns of an answer under its name."""
    places = [answer.columns.index(column) for column in columns]
    rows = [[row[place] for place in places] for row in answer.rows]
    print_table(columns, rows, title=name)
    if remarked:
        say(remarked)
