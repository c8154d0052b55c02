"""The loop: virtual time, ranks that share nothing, ids that come back, and a journal that is always ahead."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from radixledger.journal.events import Admitted, Config, Finished, Phase, Stepped
from radixledger.tools.serve.batch import Span
from radixledger.tools.serve.engine import Outcome
from radixledger.tools.serve.requests import Request
from radixledger.tools.serve.served_rank import ServedRank

from .fake_runner import dense_ids
from .house import House, ListJournal, ask, fake_runner, prompt_of

Ints = NDArray[np.int32]

A = prompt_of(3, 40)
B = prompt_of(4, 40)


def served(house: House) -> list[int]:
    """The places of the requests in the order in which they ended."""
    return [outcome.place for outcome in house.engine.serve([])]


def test_a_step_takes_a_millisecond_and_an_idle_engine_jumps_to_the_next_arrival() -> None:
    house = House()
    house.serve(ask("a", A[:5], 3), ask("b", B[:5], 3, at=86_400_000))
    assert house.engine.steps == 6
    assert house.engine.clock.now_ms == 86_400_003
    assert house.engine.clock() == 86_400_003_000_000


def test_who_arrives_while_others_run_joins_the_next_step() -> None:
    house = House()
    ended: dict[int, int] = {}
    for outcome in house.engine.serve([(0, ask("a", A[:5], 6)), (1, ask("b", B[:5], 2, at=2))]):
        ended[outcome.place] = house.engine.clock.now_ms
    assert ended == {0: 6, 1: 4}


def test_arrivals_need_not_be_in_order() -> None:
    house = House(running=1)
    house.serve(ask("late", A[:5], 2, at=50), ask("early", B[:5], 2))
    admitted = [event.rid for event in house.journals[0].of(Admitted)]
    assert admitted == ["early", "late"]


def test_requests_without_a_rank_go_to_the_least_loaded_and_others_where_they_say() -> None:
    house = House(ranks=3)
    results = house.serve(
        ask("a", A[:30], 9), ask("b", B[:30], 9, rank=1), ask("c", A[:3], 1), ask("d", B[:3], 1)
    )
    assert [result.dp_rank for result in results] == [0, 1, 2, 2]
    assert [server.scheduler.load for server in house.engine.ranks] == [(0, 0)] * 3


def test_ranks_share_nothing_though_their_pages_have_the_same_numbers() -> None:
    """R27, A29: the same prompt on two ranks is computed twice, and each rank's pages are its own."""
    house = House(ranks=2)
    results = house.serve(*(ask(f"r{i}", A[:20], 8, rank=i % 2, at=20 * (i // 2)) for i in range(4)))
    assert [result.cached_tokens for result in results] == [0, 0, 16, 16]
    assert [result.output_ids for result in results] == [dense_ids(A[:20], 8, 8)] * 4
    one, other = (
        [type(event) for event in journal.events if not isinstance(event, Stepped)]
        for journal in house.journals
    )
    assert one == other


def test_steps_have_one_number_on_all_ranks() -> None:
    house = House(ranks=2)
    house.serve(ask("a", A[:5], 9, rank=0), ask("b", B[:5], 3, rank=1, at=4))
    began = [
        [event.step for event in journal.of(Stepped) if event.phase == Phase.BEGAN]
        for journal in house.journals
    ]
    assert began == [[1, 2, 3, 4, 5, 6, 7, 8, 9], [5, 6, 7]]


def test_an_id_may_come_back_when_its_request_has_ended_and_not_before() -> None:
    """B31: aborted in the queue, the id is free at once; two lives of it are two requests in the journal."""
    house = House(running=1)
    engine = house.engine
    assert engine.submit(0, ask("busy", A[:5], 4)) is None
    assert engine.submit(1, ask("x", B[:5], 4)) is None
    twice = engine.submit(2, ask("x", B[:5], 4))
    assert twice is not None
    assert "'x' is live already" in str(twice.result.error)
    engine.step()
    first = engine.abort("x")
    assert first is not None
    assert first.result.finish_reason == "abort"
    assert engine.abort("x") is None
    assert engine.abort("nobody") is None
    assert engine.submit(3, ask("x", B[:5], 4)) is None
    assert served(house) == [0, 3]
    assert engine.submit(4, ask("x", B[:5], 4)) is None
    assert served(house) == [4]
    lives = [event.request for event in house.journals[0].of(Admitted) if event.rid == "x"]
    assert len(set(lives)) == 2
    house.check_idle()


def test_the_journal_is_safe_before_the_device_is_asked_and_before_a_result_leaves() -> None:
    journals: list[ListJournal] = []
    unsafe: list[str] = []

    class Witness:
        def __init__(self, config: Config, cache: ServedRank) -> None:
            self.runner = fake_runner(config, cache)
            assert isinstance(cache.journal, ListJournal)
            self.journal = cache.journal
            journals.append(cache.journal)

        def step(self, spans: Sequence[Span], full_table: Ints, swa_table: Ints) -> Ints:
            if self.journal.safe != len(self.journal.events):
                unsafe.append("a step was dispatched")
            return self.runner.step(spans, full_table, swa_table)

    house = House(ranks=2, runner_of=Witness)
    requests = [ask(f"r{i}", prompt_of(i, 9), 4, abort_after=None if i % 3 else 2) for i in range(9)]
    for outcome in house.engine.serve(list(enumerate(requests))):
        rank = outcome.result.dp_rank
        assert rank is not None
        if journals[rank].safe != len(journals[rank].events):
            unsafe.append(f"{outcome.result.rid} left")
    assert unsafe == []
    assert sum(len(journal.of(Finished)) for journal in journals) == 6


def test_a_step_says_what_it_writes() -> None:
    house = House(chunk_tokens=8)
    house.serve(ask("a", A[:12], 2))
    began = [event for event in house.journals[0].of(Stepped) if event.phase == Phase.BEGAN]
    ranges = [
        (int.from_bytes(event.starts, "little"), int.from_bytes(event.stops, "little")) for event in began
    ]
    assert ranges == [(0, 8), (8, 12), (12, 13)]


def test_the_same_requests_make_the_same_journal() -> None:
    """Policy, page numbers and events depend on nothing but the requests."""
    runs = []
    for _ in range(2):
        house = House(ranks=2, full_pages=14, swa_pages=12)
        house.serve(*(ask(f"r{i}", [*A[: 4 * (i % 5)], *prompt_of(i, 9)], 9, at=i) for i in range(12)))
        runs.append([journal.events for journal in house.journals])
    assert runs[0] == runs[1]


def test_an_outcome_may_lead_to_the_next_turn() -> None:
    house = House()
    said: list[list[int]] = [A[:9]]

    def then(outcome: Outcome) -> list[tuple[int, Request]]:
        said.append([*said[-1], *outcome.result.output_ids, *B[:4]])
        if len(said) > 3:
            return []
        return [(outcome.place + 1, ask(f"turn-{len(said)}", said[-1], 5, at=outcome.at_ms + 2))]

    outcomes = list(house.engine.serve([(0, ask("turn-1", said[0], 5))], then))
    assert [outcome.place for outcome in outcomes] == [0, 1, 2]
    assert [outcome.result.output_ids for outcome in outcomes] == [dense_ids(said[i], 5, 8) for i in range(3)]
    assert [outcome.result.cached_tokens for outcome in outcomes] == [0, 12, 20]
    assert house.engine.clock.now_ms == 3 * 5 + 2 * 2


def test_nothing_but_refusals_takes_no_step() -> None:
    house = House(full_pages=4)
    (refused,) = house.serve(ask("a", A[:40], 3))
    assert (refused.finish_reason, house.engine.steps) == ("refused", 0)


def test_a_rank_that_was_idle_takes_up_the_step_number_of_the_others() -> None:
    house = House(ranks=2)
    steps: list[int] = []
    end_step = house.journals[1].end_step

    def noted(step: int) -> None:
        steps.append(step)
        end_step(step)

    house.journals[1].end_step = noted  # type: ignore[method-assign]
    house.serve(ask("a", A[:5], 9, rank=0), ask("b", B[:5], 2, rank=1, at=4))
    assert steps == [4, 5, 6, 6], (
        "the step before, then its own; the last once more, before its result leaves"
    )
