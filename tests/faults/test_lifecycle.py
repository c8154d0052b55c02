"""Faults of a request's life in the engine: it ends wherever it stands, comes back, and leaves nothing behind."""

from collections import Counter

import pytest

from radixledger.cache.keys import raw_key
from radixledger.journal.accounts import Kind
from radixledger.journal.events import Aborted, Admitted, Finished, Locked, Retracted, Unlocked
from radixledger.tools.serve.requests import Result

from ..tools.serve.fake_runner import dense_ids
from ..tools.serve.house import Desk, House, ask, prompt_of

A, X = prompt_of(1, 64), prompt_of(2, 64)
WINDOW = 4


def desk(*, full_pages: int = 8, swa_pages: int = 8, chunk_tokens: int = 8, running: int = 4) -> Desk:
    return Desk(
        page_size=4, full_pages=full_pages, swa_pages=swa_pages, window_tokens=WINDOW, chunk_tokens=chunk_tokens,
        running=running,
    )  # fmt: skip


def run_out(desk: Desk) -> None:
    """Serve whoever is left, and look whether anything stayed behind."""
    for _ in desk.house.engine.serve([]):
        pass
    desk.house.check_idle()


def receipts(desk: Desk) -> dict[str, int]:
    """How many receipts each request has and did not give back, by its id; those that have none are left out."""
    journal = desk.house.journals[0]
    names = {event.request: event.rid for event in journal.of(Admitted)}
    held = Counter(names[event.request] for event in journal.of(Locked))
    held.subtract(names[event.request] for event in journal.of(Unlocked))
    return {rid: count for rid, count in held.items() if count}


def locked(desk: Desk) -> int:
    """FULL pages of the tree that locks hold."""
    return desk.state.full_protected


@pytest.mark.parametrize("way", ["abort", "cancel", "retract"])
def test_an_end_between_chunks_frees_nothing_that_the_tree_owns_by_then(way: str) -> None:
    """B24: prompt 16, chunk 8; after the end the tree has a[0:8), 8 evictable and 24 free; the next one is right."""
    table = desk()
    job = table.submit("r", A[:16], 2)
    table.tick()
    assert table.accounts() == (6, 2, 0)
    if way == "abort":
        table.house.engine.abort("r")
    elif way == "cancel":
        table.house.engine.cancel("r")
        table.house.engine.step()
    else:
        table.scheduler._make_way()
        table.house.engine.abort("r")
    assert job.output_ids == []
    assert (table.accounts(), table.state.full_evictable) == ((6, 2, 0), 2)
    (warm,) = table.house.serve(ask("again", A[:16], 3))
    assert (warm.cached_tokens, warm.output_ids) == (8, dense_ids(A[:16], 3, WINDOW))
    table.house.check_idle()


PHASES = {
    # name: (arrival, abort at, outputs by then)
    "as it arrives": (0, 0, 0),
    "in the queue": (1, 2, 0),
    "between chunks": (0, 1, 0),
    "after its first token": (0, 3, 1),
    "while it decodes": (0, 5, 3),
    "when it has ended": (0, 30, 8),
}


@pytest.mark.parametrize("phase", PHASES)
def test_a_request_can_be_aborted_wherever_it_stands(phase: str) -> None:
    """B25, B31, R141: by a time in the request itself; what came out is told, the pages come back, others go on."""
    arrival, at, outputs = PHASES[phase]
    house = House(page_size=4, full_pages=32, swa_pages=32, window_tokens=WINDOW, chunk_tokens=4, running=1)
    before = [ask("busy", X[:4], 40)] if phase == "in the queue" else []
    told = [*before, ask("r", A[:12], 8, at=arrival, abort_at=at), ask("next", X[:9], 3, at=arrival)]
    results = {result.rid: result for result in house.serve(*told)}
    ended = results["r"]
    assert ended.finish_reason == ("length" if outputs == 8 else "abort")
    assert ended.output_ids == dense_ids(A[:12], outputs, WINDOW)
    assert results["next"].output_ids == dense_ids(X[:9], 3, WINDOW)
    house.check_idle()


def test_an_abort_that_comes_late_does_not_meet_the_next_request_of_that_name() -> None:
    """B31: the first X ended long before its time is up; the second X, live by then, is another request."""
    house = House(running=2)
    first, second = house.serve(ask("X", A[:5], 2, abort_at=9), ask("X", A[:5], 12, at=4))
    assert (first.finish_reason, second.finish_reason) == ("length", "length")
    assert second.output_ids == dense_ids(A[:5], 12, 8)


def test_a_waiting_request_that_was_retracted_holds_nothing_when_it_is_aborted() -> None:
    """B25: pool 16; held 0, protected 0, free + evictable = 16, and its row is free."""
    table = desk(full_pages=4, swa_pages=8)
    table.submit("elder", A[:4], 12)
    table.submit("r", X[:4], 8)
    while not (gone := table.house.journals[0].of(Retracted)):
        table.tick()
    rid = next(
        event.rid for event in table.house.journals[0].of(Admitted) if event.request == gone[0].request
    )
    assert [job.request.rid for job in table.scheduler.waiting] == [rid]
    table.house.engine.abort(rid)
    held = table.state.full.held
    assert held[Kind.FREE] + table.state.full_evictable + held[Kind.REQUEST] + table.state.full_protected == 4
    assert len(table.state.requests) == 1
    run_out(table)
    assert table.house.journals[0].of(Aborted) == [], "it had given everything back when it was retracted"


def test_between_chunks_a_request_counts_once_on_its_path_and_has_one_row() -> None:
    """B28: prompt 16 in chunks of 4 on a[0:8) of another: no tick leaves a lock or a row behind."""
    table = desk(full_pages=32, swa_pages=32, chunk_tokens=4)
    table.submit("other", [*A[:8], *X[:2]], 12)
    table.tick(4)
    table.submit("r", A[:20], 1)
    for computed in (12, 16):
        table.tick()
        assert receipts(table) == {"other": 1, "r": 1}
        assert (locked(table), len(table.state.requests)) == (computed // 4, 2)
    run_out(table)
    assert receipts(table) == {}


def test_a_request_that_was_retracted_starts_from_a_fresh_match_and_finishes() -> None:
    """B30: prompt 8, output 6, retracted at output 3: in the end the tree has 12 of 13 tokens, and nothing is held."""
    table = desk(full_pages=32, swa_pages=32, chunk_tokens=32)
    table.submit("elder", X[:3], 9)
    job = table.submit("r", A[:8], 6)
    table.tick(3)
    assert (job.outputs, receipts(table), locked(table)) == (3, {"r": 1}, 2)
    table.scheduler._make_way()
    assert (job.id, receipts(table), locked(table)) == (0, {}, 0)
    table.tick()
    again = table.house.journals[0].of(Admitted)[-1]
    assert (again.rid, again.prefix, receipts(table), locked(table)) == ("r", 8, {"r": 1}, 2)
    run_out(table)
    assert job.output_ids == dense_ids(A[:8], 6, WINDOW)
    assert table.house.caches[0].peek(raw_key(job.tokens[:13])).tokens == 12


def lives(house: House, rid: str) -> list[str]:
    """How each life of an id ended, in order."""
    journal = house.journals[0]
    ends = {event.request: "aborted" for event in journal.of(Aborted)}
    ends |= {event.request: "finished" for event in journal.of(Finished)}
    return [ends[event.request] for event in journal.of(Admitted) if event.rid == rid]


def test_an_id_is_free_as_soon_as_its_request_has_ended_however_it_did() -> None:
    """B31: aborted in the queue, while it runs, and finished, one after the other; and asked for twice, or of nobody."""
    house = House(running=1)
    engine = house.engine
    engine.submit(0, ask("busy", X[:5], 3))
    engine.submit(1, ask("X", A[:5], 4))
    results: list[Result] = [
        o.result for o in [engine.abort("X"), engine.abort("X"), engine.abort("nobody")] if o
    ]
    engine.submit(2, ask("X", A[:5], 4))
    for _ in range(5):
        results += [outcome.result for outcome in engine.step()]
    for rid in ("X", "X", "nobody"):
        engine.cancel(rid)
    assert engine.submit(3, ask("X", A[:5], 4)) is not None, (
        "to cancel is to ask: X is live until the next step"
    )
    results += [outcome.result for outcome in engine.step()]
    engine.submit(4, ask("X", A[:5], 4))
    results += [outcome.result for outcome in engine.serve([])]
    ended = [(result.rid, result.finish_reason, len(result.output_ids)) for result in results]
    assert ended == [("X", "abort", 0), ("busy", "length", 3), ("X", "abort", 2), ("X", "length", 4)]
    assert lives(house, "X") == ["aborted", "finished"], "the first never had a row"
    house.check_idle()


def test_between_chunks_the_accounts_are_whole_and_the_request_comes_through() -> None:
    """B69: prompt 12 in chunks of 4 and nobody else: held 4, then 8, and no law is broken in between."""
    table = desk(full_pages=8, chunk_tokens=4)
    job = table.submit("r", A[:12], 2)
    for computed in (4, 8, 12):
        table.tick()
        assert job.computed == computed
        assert sum(table.accounts()) == 8
        assert table.state.full_protected == computed // 4
        table.house.check()
        ledger = table.house.caches[0].ledger()
        assert not ledger.idle
        assert ledger.full_available + ledger.full_tree_protected + ledger.full_request_owned == 32
    run_out(table)
    assert job.output_ids == dense_ids(A[:12], 2, WINDOW)
