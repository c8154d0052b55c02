"""How the story of a page, a node or a request is printed: one step a row, and a column for what was wrong where something was.

Not here: the steps themselves (`radixledger.replay.story`). Rule: JSON has every step; in
the table of a request, steps that only grew it stand together.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

from msgspec.structs import asdict

from radixledger.journal.accounts import describe
from radixledger.replay.story.blame import LifeStep
from radixledger.replay.story.node_story import NodeStep
from radixledger.replay.story.request_story import RequestStep
from radixledger.tools.event_text import ranges, time_text
from radixledger.tools.table import print_table

AnyStep = LifeStep | NodeStep | RequestStep

PAGE_COLUMNS = ["life", "event", "time", "step", "what", "from", "to", "request id", "why", "mapped with"]
NODE_COLUMNS = [
    "life", "event", "time", "step", "what", "changed", "tokens", "FULL", "SWA", "locks", "request id", "why",
]  # fmt: skip
REQUEST_COLUMNS = [
    "attempt", "event", "time", "step", "request", "what", "told", "took", "gave", "holds", "length", "in tree", "cursor",
    "node", "why",
]  # fmt: skip

Row = list[object]


def print_story(steps: Sequence[AnyStep], title: str) -> None:
    """A table of steps of one kind, or one record under the other where the terminal is narrow."""
    columns, rows = list(_columns(steps[0])), list(_rows(steps))
    if any(step.wrong for step in steps):
        columns.append("wrong")
    else:
        rows = [row[:-1] for row in rows]
    print_table(columns, rows, title=title)


def step_json(step: AnyStep) -> dict[str, object]:
    """A step for programs: its fields, and the accounts and the time in words."""
    accounts = (
        {"from": describe(step.giver), "to": describe(step.taker)} if isinstance(step, LifeStep) else {}
    )
    return {**asdict(step), **accounts, "time": time_text(step.time_ns)}


def _columns(step: AnyStep) -> list[str]:
    match step:
        case LifeStep():
            return PAGE_COLUMNS
        case NodeStep():
            return NODE_COLUMNS
        case RequestStep():
            return REQUEST_COLUMNS


def _rows(steps: Sequence[AnyStep]) -> Iterator[Row]:
    for _, group in groupby(steps, _grown):
        together = list(group)
        run = [step for step in together if isinstance(step, RequestStep)]
        if len(run) > 1 and _grown(run[0]):
            yield _run_row(run)
        else:
            yield from map(_row, together)


def _grown(step: AnyStep) -> int:
    """Whose step it is, if it only grew a request and moved no page; else 0."""
    if isinstance(step, RequestStep) and step.event in ("Extended", "Stepped"):
        return 0 if step.took or step.gave or step.wrong else step.request
    return 0


def _row(step: AnyStep) -> Row:
    match step:
        case LifeStep():
            return _page_row(step)
        case NodeStep():
            return _node_row(step)
        case RequestStep():
            return _request_row(step)


def _page_row(step: LifeStep) -> Row:
    life = str(step.life) if step.life else "before"
    taker = "stays" if step.taker == step.giver else describe(step.taker)
    if step.event == "Gap":
        taker = "not known"
    return [
        life, str(step.seq), time_text(step.time_ns), str(step.step), step.event, describe(step.giver), taker,
        step.rid, step.cause, str(step.partner or ""), step.wrong,
    ]  # fmt: skip


def _node_row(step: NodeStep) -> Row:
    locks = f"FULL {step.full_locks}, SWA {step.swa_locks}, receipts {step.receipts}"
    return [
        str(step.life) if step.life else "before", str(step.seq), time_text(step.time_ns), str(step.step), step.event,
        step.what, f"[{step.start}, {step.stop})", ranges(step.full, 6), ranges(step.swa, 6),
        locks if step.full_locks or step.swa_locks else "", step.rid or str(step.request or ""), step.cause, step.wrong,
    ]  # fmt: skip


def _request_row(step: RequestStep) -> Row:
    return [
        str(step.attempt or ""), str(step.seq), time_text(step.time_ns), str(step.step),
        str(step.request), step.event, step.detail, _pages(step.took), _pages(step.gave), _held(step.full, step.swa),
        step.length, step.protected, step.cursor, str(step.node), step.cause, step.wrong,
    ]  # fmt: skip


def _run_row(run: Sequence[RequestStep]) -> Row:
    """Steps that only grew a request, as one row: from the first to the last."""
    first, last = run[0], run[-1]
    row = _request_row(last)
    row[1], row[3] = f"{first.seq}-{last.seq}", f"{first.step}-{last.step}"
    row[5], row[6] = " ".join(sorted({step.event for step in run})), f"{len(run)} events"
    return row


def _held(full: int, swa: int) -> str:
    """What a request has, in pages."""
    return (
        " and ".join(f"{pages} {pool}" for pages, pool in ((full, "FULL"), (swa, "SWA")) if pages) or "none"
    )


def _pages(moved: dict[str, list[int]]) -> str:
    return ", ".join(f"{pool} {ranges(pages, 6)}" for pool, pages in moved.items())
