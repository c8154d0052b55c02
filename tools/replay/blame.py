"""`radixledger replay blame`: the story of a page or slot, of a node of the tree, or of a request.

Not here: the stories themselves (`radixledger.replay.story`); this module parses and prints.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click

from radixledger.cache.state import State
from radixledger.journal.accounts import Pool
from radixledger.journal.events import Admitted, Matched, Opened
from radixledger.journal.frame import Frame
from radixledger.journal.reader import JournalReader
from radixledger.replay.known import Known, unknown_words
from radixledger.replay.seek import beginning_of, opened_of, standing_in
from radixledger.replay.story.blame import story
from radixledger.replay.story.node_story import node_story
from radixledger.replay.story.request_story import request_story
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
from radixledger.tools.near import near
from radixledger.tools.numbers import INT32_MAX, Whole
from radixledger.tools.printable import say
from radixledger.tools.ranks import rank_option, the_rank
from radixledger.tools.replay.arguments import salvage_flag
from radixledger.tools.replay.life_table import AnyStep, print_story, step_json
from radixledger.tools.run_argument import run_of_one_rank_argument
from radixledger.tools.watching import watched

CAPACITIES = {"full": "full_pages", "swa": "swa_pages", "recurrent": "recurrent_slots", "host": "host_pages"}
"""The pools whose pages have a story, each with the field of a configuration that says how many there are."""

NAMES_KEPT = 10_000
"""Request ids that a wrong one is compared with, the latest."""


@click.command(
    epilog=examples(
        "radixledger replay blame RUN --rank 0 --pool full --page 17",
        "radixledger replay blame RUN --rank 0 --pool swa --slot 2176 --json",
        "radixledger replay blame RUN --rank 0 --pool recurrent --slot 3",
        "radixledger replay blame RUN --rank 0 --node 12 --last 20",
        "radixledger replay blame RUN --rank 0 --request trace-3",
    ),
)
@run_of_one_rank_argument
@rank_option
@click.option(
    "--pool",
    type=click.Choice([*CAPACITIES]),
    help="The pool that the page or slot is in; recurrent: the slots of states.",
)
@click.option("--page", type=Whole(0, INT32_MAX), help="A page of --pool, or the slot of a state.")
@click.option(
    "--slot", type=Whole(0, INT32_MAX), help="A slot of --pool: the page that holds it; of a state itself."
)
@click.option("--node", type=Whole(1), help="A node of the radix tree.")
@click.option("--request", metavar="ID", help="A request: its request id, or its number.")
@click.option("--last", type=Whole(1), help="Only so many steps, the latest.")
@salvage_flag
@json_flag
def command(
    run: Path, rank: int | None, pool: str | None, page: int | None, slot: int | None, node: int | None,
    request: str | None, last: int | None, salvage: bool, as_json: bool,
) -> None:  # fmt: skip
    """Tell the story of a page, a node or a request: who held what, who gave it up, why, and in which event.

    Exit code 1 where a step of it contradicts the events before, or breaks a law; 2 for a request or node that never was.
    """
    if [page, slot, node, request].count(None) != 3:
        raise CommandFailure("give one of --page, --slot, --node and --request", USAGE)
    of_a_pool = page is not None or slot is not None
    if of_a_pool and pool is None:
        what = f"--page {page}" if page is not None else f"--slot {slot}"
        raise CommandFailure(
            f"each pool has its own numbers: give --pool {' or '.join(CAPACITIES)} with {what}", USAGE
        )
    if pool is not None and not of_a_pool:
        raise CommandFailure("--pool says where a --page or a --slot is, and goes with nothing else", USAGE)
    reader = JournalReader(run, the_rank(run, rank), salvage=salvage)
    number = _page_of(reader, pool, page, slot) if pool is not None else 0
    begin, known = beginning_of(reader), Known(standing_in(reader))
    names: deque[str] = deque(_names_at(begin.state), NAMES_KEPT)
    with watched(run, reader.rank) as watch:
        frames = _naming(known.frames(reader, watch(reader.frames(begin.next_seq))), names)
        steps: list[AnyStep] = list(
            deque(_story(frames, begin.state, opened_of(reader), known, pool, number, node, request), last)
        )
    what = f"{pool.upper()} page {number}" if pool else f"node {node}" if node else f"request {request}"
    was_there = bool(steps) or _was_there(begin.state, node, request, of_a_pool=of_a_pool)
    if was_there:
        _tell(steps, what, as_json=as_json)
    for notice in reader.notices:
        remark(notice)
    for each in known.stretches:
        remark(
            f"{unknown_words(each.lost_at)}; told there is what events say, on top of what was known before"
        )
    if not was_there:
        hint = near(request, names) if request is not None else ""
        hint += "; it may be among the events that are missing" if known.stretches else ""
        code = FINDINGS if known.stretches else USAGE
        raise CommandFailure(f"rank {reader.rank} tells of no {what}{hint}", code)
    if any(step.wrong for step in steps):
        exit_with(FINDINGS)


def _tell(steps: Sequence[AnyStep], what: str, *, as_json: bool) -> None:
    if as_json:
        print_json([step_json(step) for step in steps])
    elif not steps:
        say(f"nothing ever happened to {what}")
    else:
        print_story(steps, what)


def _names_at(base: State | None) -> list[str]:
    return [request.rid for request in base.requests.values()] if base is not None else []


def _naming(frames: Iterable[Frame], names: deque[str]) -> Iterator[Frame]:
    """The frames; on the way the request ids in them become `names`."""
    for frame in frames:
        names.extend(event.rid for event in frame.events if isinstance(event, Admitted | Matched))
        yield frame


def _was_there(base: State | None, node: int | None, request: str | None, *, of_a_pool: bool) -> bool:
    """Whether that to which nothing happened was there: pages always are, others where the journal begins with them."""
    if of_a_pool or base is None:
        return of_a_pool
    if node is not None:
        return node in base.nodes
    return any(request in (live.rid, str(live.id)) for live in base.requests.values())


def _story(
    frames: Iterable[Frame],
    base: State | None,
    opened: Opened | None,
    known: Known,
    pool: str | None,
    number: int,
    node: int | None,
    request: str | None,
) -> Iterator[AnyStep]:
    if pool is not None:
        yield from story(_looked_at(frames, known), Pool[pool.upper()], number, base)
    elif node is not None:
        yield from node_story(frames, node, base, opened, known)
    else:
        yield from request_story(frames, request or "", base, opened, known)


def _looked_at(frames: Iterable[Frame], known: Known) -> Iterator[Frame]:
    """The same frames; a page's story folds no state, and says itself where events are missing."""
    for frame in frames:
        for seq, event in enumerate(frame.events, frame.seq_first):
            known.look(seq, event)
        yield frame


def _page_of(reader: JournalReader, pool: str, page: int | None, slot: int | None) -> int:
    config = reader.opened.config
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
