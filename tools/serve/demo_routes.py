"""Part of the demo: the same requests over every other route; the answers have to be those of the model, id by id.

The routes with a window serve the demo's own model, those without one the same model with every layer full, which
answers otherwise: there, the route without a tree is what the one with a tree is compared with.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from radixledger.cache.faces.routing import RouteName
from radixledger.cache.traits import TRAITS
from radixledger.journal.reader import ranks_in
from radixledger.replay.verify import verify_rank
from radixledger.tools.console import count_text
from radixledger.tools.serve.demo_stage import cached, failed, serve, title
from radixledger.tools.serve.loader import Checkpoint
from radixledger.tools.serve.offline import Report, Setup
from radixledger.tools.serve.requests import Request, Result
from radixledger.tools.serve.tiny import Tiny, load_tiny
from radixledger.tools.table import print_table

WITH_A_WINDOW: tuple[RouteName, ...] = ("legacy", "swa_chunk")
WITHOUT: tuple[RouteName, ...] = ("chunk", "radix")


class Served(NamedTuple):
    """What one route did."""

    route: RouteName
    report: Report
    results: Sequence[Result]
    same: int
    clean: bool


def other_routes(
    folder: Path, model: Checkpoint, requests: Sequence[Request], warm: Sequence[Result], setup: Setup
) -> None:
    """Serve the demo's requests over every route but the unified one, and verify what each of them journaled."""
    title(
        "5  Routes: the same requests over every other route, each with a journal of its own",
        "legacy: the rollback route; swa_chunk, chunk: no tree; radix, chunk: the model without a window",
    )
    flat = load_tiny(Tiny(window_tokens=0))
    served = [*_served(folder, model, requests, warm, setup, WITH_A_WINDOW)]
    served += _served(folder, flat, requests, None, setup._replace(swa_pages=None), WITHOUT)
    print_table(
        ("route", "answers that are the same", "cached tokens", "evicted pages", "retractions", "journal"),
        [_row(each) for each in served],
    )
    for each in served:
        if each.same != len(requests):
            raise failed(f"the answers of route {each.route} are not those of the others")
        if not each.clean:
            raise failed(f"the journals of route {each.route} do not verify")
        if bool(cached(each.results)) != TRAITS[each.route].tree:
            raise failed(f"route {each.route} found {cached(each.results)} tokens in its tree")


def _served(
    folder: Path, model: Checkpoint, requests: Sequence[Request], expected: Sequence[Result] | None, setup: Setup,
    routes: Sequence[RouteName],
) -> Iterator[Served]:  # fmt: skip
    """One route after the other; the first one's answers are expected of the others where none are given."""
    for route in routes:
        run = folder / f"route-{route}"
        report, results = serve(model, setup._replace(route=route), run, requests, len(requests))
        expected = results if expected is None else expected
        same = sum(a.output_ids == b.output_ids for a, b in zip(expected, results, strict=True))
        clean = all(verify_rank(run, rank).clean for rank in ranks_in(run))
        yield Served(route, report, results, same, clean)


def _row(served: Served) -> tuple[str, ...]:
    report = served.report
    return (
        served.route,
        f"{served.same} of {len(served.results)}",
        count_text(cached(served.results)),
        count_text(report.full_pages_evicted),
        count_text(report.retractions),
        f"{count_text(report.journal_events)} events, {'clean' if served.clean else 'not clean'}",
    )
