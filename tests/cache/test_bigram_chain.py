"""The chain of failures that a frontier in the wrong unit began once, played by a wrong cache, and who sees which step (R263).

Step 1: the frontier is too high, so the path that an insert leaves ends in less than a window. Step 2: the request's
own look-up refuses that path. Step 3: its protected length stalls. Step 4: its next insert frees what the tree has.
It takes the wrong unit, the wrong formula and the wrong look-up together; each wrong thing is one patch.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from radixledger.analytics.load import load
from radixledger.analytics.queries import ask_checks
from radixledger.analytics.store import Database
from radixledger.cache import window
from radixledger.cache.decide import requests as decide_requests
from radixledger.cache.decide import unified as decide_unified
from radixledger.cache.decide.growth import live_request
from radixledger.cache.decide.locks import lock_path, released
from radixledger.cache.decide.pages import Decision
from radixledger.cache.match import walk
from radixledger.cache.rank import RankCache
from radixledger.cache.refusals import ForeignFree, Refusal
from radixledger.cache.state import State
from radixledger.journal.causes import Operation, cause
from radixledger.journal.events import AnyEvent, Freed, Reclaimed, Repointed, Transferred
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import NO_PAGES, Rank, Seq, TokenCount
from radixledger.journal.writer import JournalWriter, Sealing
from radixledger.replay.verify import verify_rank

from ..machine import opened
from ..model_tree import Shape
from .sliding import Sliding
from .test_window import published

Fault = Callable[[pytest.MonkeyPatch], None]

SHAPE = Shape(4, 7, 64, 64, row_pages=16, ahead=1)
"""The first published one (R261): 16 tokens in pairs, of which an insert takes 12."""


def in_tokens(patch: pytest.MonkeyPatch) -> None:
    """The unit: a frontier is told one less than the tokens, where it asks for one less than the pairs."""
    told: Callable[..., TokenCount] = window.frontier
    patch.setattr(window, "frontier", lambda old, pre, **sizes: told(old, pre + 1, **sizes))


def as_published(patch: pytest.MonkeyPatch) -> None:
    """The formula: `pre - max(W, P)`, cut to a page."""

    def frontier(old: int, pre: int, *, window_tokens: int, page_size: int, **_: Any) -> TokenCount:
        return TokenCount(published(old, pre, window_tokens, page_size))

    patch.setattr(window, "frontier", frontier)


def looking_up_windows(patch: pytest.MonkeyPatch) -> None:
    """The look-up: a request goes on from where its own path has a window, not from where its insert ended (R72)."""

    def cache_unfinished(
        state: State, request: int, key: bytes, _: int | None = None
    ) -> Decision[TokenCount]:
        live, page_size = live_request(state, request), state.page_size
        prev, count = int(state.rows.protected[live.row]) // page_size, len(key) // state.stride
        why = cause(Operation.UNFINISHED)
        brought = decide_requests._brought(state, live, count, Operation.UNFINISHED)
        yield from decide_unified.insert(state, key, live.namespace, brought)
        found = walk(state, key, live.namespace)
        node = found.node if found.hit >= prev else state.nodes[live.node]
        end = TokenCount(node.end * page_size)
        yield Repointed(live.id, TokenCount(prev * page_size), NO_PAGES, end, node.id, why)
        old = live.receipt
        if node.parent is not None and (old is None or old.node != node.id):
            yield from lock_path(state, node, live.id, why)
            if old is not None:
                yield from released(state, old, live.id, why)
        return end

    patch.setattr(decide_requests, "cache_unfinished", cache_unfinished)


def asking_nobody(patch: pytest.MonkeyPatch) -> None:
    """No insert is refused for pages that are not the giver's: what the chain needs to come to its end."""
    patch.setattr(decide_unified, "check_slice", lambda *_: None)


ALL: tuple[Fault, ...] = (as_published, in_tokens, looking_up_windows)


class Unheard(list[Any]):
    """Findings that nobody reads: a rank with its laws off."""

    def __bool__(self) -> bool:
        return False


def first_insert(rank: RankCache | None = None) -> Sliding:
    """16 tokens, given back and cached as a server does before it goes on."""
    case = Sliding(SHAPE, 16, rank=rank)
    key = case.key(16)
    case.rank.reclaim_for(case.request, key)
    case.rank.cache_unfinished(case.request, key)
    return case


def second_insert(case: Sliding) -> None:
    """4 tokens more, cached too."""
    case.extend(4)
    case.rank.cache_unfinished(case.request, case.key(20))


def protected(case: Sliding) -> int:
    return int(case.rank.state.rows.protected[case.rank.state.row_of(case.request)])


def played(run: Path) -> list[AnyEvent]:
    """The whole chain into a journal, nothing stopping it; its events, `Opened` among them."""
    writer = JournalWriter.open(run, opened(SHAPE), clock=lambda: 0, sealing=Sealing.INLINE)
    rank = RankCache(writer.opened, writer, digest_every=1 << 30, seq=Seq(writer.last_seq))
    rank.state.findings = Unheard()
    second_insert(first_insert(rank))
    writer.close()
    return [event for frame in JournalReader(run, Rank(0)).frames() for event in frame.events]


def number(events: list[AnyEvent], kind: type) -> int:
    """The number of the last event of a kind."""
    return max(at for at, event in enumerate(events, 1) if isinstance(event, kind))


def test_the_chain_is_seen_at_its_first_step_and_at_its_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R263, B1: by SQL and by `verify`, which share no code: the short path in step 1, the tree's pages freed in step 4."""
    for fault in (*ALL, asking_nobody):
        fault(monkeypatch)
    run = tmp_path / "run"
    events = played(run)
    leaves = [at for at, event in enumerate(events, 1) if isinstance(event, Transferred)]
    frees = [at for at, event in enumerate(events, 1) if isinstance(event, Freed)]
    gave_back, leaf, stolen = number(events, Reclaimed), leaves[1], frees[0]

    database = Database()
    load(database, run)
    found = {
        name: [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
        for name, answer in ask_checks(database.questioned()).items()
    }
    short = found["path_shorter_than_window"][0]
    assert (short["seq"], short["live_tokens"], short["window_need"]) == (leaf, 4, 7)
    foreign = found["foreign_free"][0]
    assert (foreign["seq"], foreign["giver_kind"], foreign["owner_kind"]) == (stolen, "request", "tree")

    blamed = [finding.seq for finding in verify_rank(run, Rank(0)).findings]
    assert gave_back in blamed
    assert stolen in blamed
    assert min(blamed) == gave_back < leaf < stolen


def test_a_cache_that_asks_whose_pages_are_brought_stops_before_the_last_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """R263: live, the second insert is refused, and names the page, who has it and who brought it."""
    for fault in ALL:
        fault(monkeypatch)
    case = first_insert()
    assert (case.cursor, protected(case)) == (8, 0)
    assert case.rank.peek(case.key(16)).tokens == 0
    assert case.rank.peek(case.key(16), full_only=True).tokens == 12
    with pytest.raises(ForeignFree, match="tree"):
        second_insert(case)


@pytest.mark.parametrize("left_out", [as_published, in_tokens])
def test_a_right_unit_or_a_right_formula_leaves_a_window(
    left_out: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R263: two of the three wrong things do not make the chain; another request starts where the first one went on."""
    for fault in ALL:
        if fault is not left_out:
            fault(monkeypatch)
    case = first_insert()
    assert protected(case) == case.rank.peek(case.key(16)).tokens == 12
    second_insert(case)
    assert protected(case) == case.rank.peek(case.key(20)).tokens == 16


def test_the_right_way_to_go_on_refuses_a_path_without_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """R263, R259: with the wrong unit and the wrong formula alone the chain ends before its first step."""
    for fault in (as_published, in_tokens):
        fault(monkeypatch)
    with pytest.raises(Refusal, match="a path that ends at 12 would have no window"):
        first_insert()
