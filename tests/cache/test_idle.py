"""What a server checks when nobody is live, and the order in which it empties a cache."""

from collections.abc import Callable
from typing import Any

import pytest

from radixledger.cache.faces.idle import (
    DIAGNOSTICS,
    Changed,
    FlushOutcome,
    LedgerBroken,
    PoolSums,
    check_ledgers,
    flush_idle,
    ledger_findings,
    live_requests,
    looked_at,
    pool_findings,
)
from radixledger.journal.events import LedgerTaken

from .server import Request, Server, path, text

paged = pytest.mark.parametrize("page_size", [1, 16, 128, 256])


@paged
@pytest.mark.parametrize("dp_size", [1, 2])
def test_a_ledger_adds_up_while_requests_run_and_is_idle_when_they_are_done(
    page_size: int, dp_size: int
) -> None:
    """R156, R161, R167, R169: every rank has a row, in order, and each adds up at every moment."""
    server = Server(page_size, page_size, dp_size=dp_size)
    reqs = [server.admit(text("a", 0, 2 * page_size + 1), dp_rank=rank) for rank in range(dp_size)]
    for req in reqs:
        server.prefill(req)
        check_ledgers(server.cache.ledger())
    assert [row["dp_rank"] for row in server.cache.ledger()] == list(range(dp_size))
    with pytest.raises(LedgerBroken, match="rank 0, full pool: idle, and request_owned"):
        check_ledgers(server.cache.ledger(), require_idle=True)
    for req in reqs:
        server.end(req)
    check_ledgers(server.cache.ledger(), require_idle=True)


def test_a_leak_is_told_with_pool_rank_and_numbers() -> None:
    """R154, R156: what no row names is missing from the sum, on its rank and in its pool."""
    server = Server(4, 4, dp_size=2)
    server.slots(8, dp_rank=1)
    with pytest.raises(LedgerBroken) as broken:
        check_ledgers(server.cache.ledger())
    assert broken.value.findings == [
        "rank 1, full pool: capacity is 64, accounted for are 56 (available 56)",
        "rank 1, swa pool: capacity is 64, accounted for are 56 (available 56)",
        "rank 1, swa pool: 0 tokens have an owner, 8 are mapped",
    ]


@pytest.mark.parametrize("name", DIAGNOSTICS)
def test_each_diagnostic_that_is_not_zero_is_told(name: str) -> None:
    """R155."""
    (row,) = Server(4, 4).cache.ledger()
    assert ledger_findings(row) == []
    assert ledger_findings(row | {name: 4}) == [f"rank 0: {name} is 4, expected 0"]


def test_only_the_legacy_tree_may_have_pages_that_are_not_full() -> None:
    """A1."""
    (row,) = Server(4, 4).cache.ledger()
    row |= {"full_available": 62, "full_reserved_page_slack": 2}
    assert ledger_findings(row, require_idle=True) == [
        "rank 0, full pool: idle, and reserved_page_slack is 2, expected 0"
    ]
    assert ledger_findings(row | {"route": "legacy"}, require_idle=True) == []
    assert ledger_findings(row) == []


class Meddler:
    """A cache whose ledger does something."""

    def __init__(self, server: Server, meddling: Callable[[], object]) -> None:
        self.server, self.meddling = server, meddling

    def ledger(self) -> list[dict[str, Any]]:
        self.meddling()
        return self.server.cache.ledger()


def test_a_ledger_that_moves_a_page_or_leaves_a_key_behind_is_found_out() -> None:
    """R157: availability of both pools on every rank, and the keys of what is counted, before and after."""
    server = Server(4, 4, dp_size=2)
    counters: dict[str, int] = {}
    honest = Meddler(server, lambda: None)
    assert looked_at(server.allocator, 2, honest.ledger, [counters]) == server.cache.ledger()
    for meddling in (
        lambda: server.slots(4, 1),
        lambda: counters.setdefault("rank 1", 0),
        lambda: server.allocator.free_swa(server.slots(4)),
    ):
        with pytest.raises(Changed, match="mutated"):
            looked_at(server.allocator, 2, Meddler(server, meddling).ledger, [counters])


def test_a_request_is_live_once_in_however_many_queues_it_stands() -> None:
    """R168: two objects with one id are an error."""
    first, second = Request("a", [1]), Request("b", [1])
    assert live_requests([first], [second, first], [first]) == [first, second]
    with pytest.raises(LedgerBroken, match="'a'"):
        live_requests([first], [Request("a", [1])])


@pytest.mark.parametrize(
    ("sums", "told"),
    [
        (PoolSums("swa", 4, 62, 60, 2), "capacity is 62"),
        (PoolSums("swa", 4, 64, 62, 2), "available is 62"),
        (PoolSums("swa", 4, 64, 68, 0), "68 available, capacity is 64"),
        (PoolSums("swa", 4, 64, 56, 1), "found 1"),
        (PoolSums("swa", 4, 64, 56, 9), "found 9"),
    ],
)
def test_the_sums_of_a_pool_that_cannot_be_are_told(sums: PoolSums, told: str) -> None:
    """R175."""
    assert pool_findings(PoolSums("swa", 4, 64, 56, 2)) == pool_findings(PoolSums("swa", 4, 64, 56, 8)) == []
    (finding,) = pool_findings(sums)
    assert told in finding
    assert finding.startswith("swa pool")


def test_the_sums_of_an_idle_pool_are_counters_and_nothing_is_walked() -> None:
    """R174: sizes are asked for while the tree's nodes and the rows cannot be read."""
    server = Server(4, 4)
    path(server, "L LL")
    state = server.rank().state
    nodes, rows = state.nodes, state.rows
    del state.nodes, state.rows
    sizes = server.sizes()
    for pool in ("full", "swa"):
        owned = sizes[f"{pool}_evictable"] + sizes[f"{pool}_protected"]
        assert pool_findings(PoolSums(pool, 4, 64, sizes[f"{pool}_free"], owned)) == []
    state.nodes, state.rows = nodes, rows
    server.check()


class Told:
    """A cache, its rows and its allocator in one, that write down what they are asked."""

    def __init__(self, *, swa: bool = True, rows: list[dict[str, Any]] | None = None) -> None:
        self.asked: list[str] = []
        self.swa, self.rows = swa, rows

    def supports_swa(self) -> bool:
        return self.swa

    def ledger(self) -> list[dict[str, Any]]:
        assert self.swa, "a cache without SWA keeps no ledger"
        self.asked.append("ledger")
        return Server(4, 4).cache.ledger() if self.rows is None else self.rows

    def record_ledger(self, phase: str, /) -> None:
        self.asked.append(phase)

    def reset(self) -> None:
        self.asked.append("tree")

    def clear(self) -> None:
        self.asked.append("clear")


def test_a_flush_looks_empties_tree_rows_and_allocator_and_looks_again() -> None:
    """R176."""
    told = Told()
    assert flush_idle(told, told, told) == FlushOutcome("flushed")
    assert told.asked == ["ledger", "pre_flush", "tree", "clear", "clear", "ledger", "post_flush"]


def test_a_busy_server_is_asked_nothing() -> None:
    """R177."""
    told = Told()
    assert flush_idle(told, told, told, busy="2 requests run") == FlushOutcome("busy", "2 requests run")
    assert told.asked == []


def test_a_cache_without_swa_is_flushed_without_a_ledger() -> None:
    """R178."""
    told = Told(swa=False)
    assert flush_idle(told, told, told).outcome == "flushed"
    assert told.asked == ["tree", "clear", "clear"]


def test_a_ledger_that_does_not_add_up_stops_a_flush_before_it_clears() -> None:
    """R33, R161."""
    (row,) = Server(4, 4).cache.ledger()
    told = Told(rows=[row | {"full_available": 60}])
    with pytest.raises(LedgerBroken):
        flush_idle(told, told, told)
    assert told.asked == ["ledger"]


@paged
def test_after_a_flush_all_is_available_and_both_ledgers_stand_in_the_journal(page_size: int) -> None:
    """R163, R165, R166: pre and post, idle, with one capacity."""
    server = Server(page_size, page_size)
    path(server, "L LL")
    server.end(server.start(text("b", 0, 2 * page_size + 1)))
    assert flush_idle(server.cache, server.pool, server.allocator).outcome == "flushed"
    before, after = server.journal.of(LedgerTaken)
    assert (before.phase, after.phase) == ("pre_flush", "post_flush")
    assert before.full_capacity == after.full_capacity == after.full_available == 16 * page_size
    assert before.swa_capacity == after.swa_capacity == after.swa_available
    assert after.mapping_nonzero_count == 0
    server.check()


def test_a_flush_that_left_something_is_told() -> None:
    """R165, R166: by a cache whose tree stays as it is."""
    server = Server(4, 4)
    path(server, "LL")
    told = Told(rows=server.cache.ledger())
    with pytest.raises(LedgerBroken) as broken:
        flush_idle(told, told, told)
    assert broken.value.findings == [
        "rank 0, full pool: flushed, and 56 of 64 are available",
        "rank 0, swa pool: flushed, and 56 of 64 are available",
        "rank 0: flushed, and 8 tokens are mapped",
    ]
