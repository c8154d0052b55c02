"""The digest: sums that are brought up to date when somebody asks, and say the same however seldom that is."""

import numpy as np
import pytest
from numpy.typing import NDArray

from radixledger.cache.digest import digest, recount
from radixledger.cache.evolve import begin, evolve
from radixledger.cache.kept_sum import KeptSum
from radixledger.cache.ledger import PoolBook
from radixledger.cache.weights import MASK, lane
from radixledger.journal.accounts import FREE, Pool, request_account
from radixledger.journal.events import Split, Transferred
from radixledger.journal.units import NO_PAGES, ROOT, NodeId, Pages, RequestId, TransferId

from .driven import FULL_SHAPES, SHAPES, STATE_SHAPES, Driven


@pytest.mark.parametrize("shape", [*SHAPES, FULL_SHAPES[1], STATE_SHAPES[0]], ids=str)
@pytest.mark.parametrize("often", [1, 7, 64, 1 << 20])
def test_a_digest_is_the_same_however_often_it_is_asked_for(shape: tuple[int, ...], often: int) -> None:
    """J10: who records one every few thousand events and who compares one have asked at different times."""
    drive = Driven(5, shape)
    for _ in range(150):
        drive.step()
    events = [event for frame in drive.journal.frames for event in frame.events][1:]
    assert len(events) > 150
    state = begin(drive.journal.opened)
    for at, event in enumerate(events, 1):
        evolve(state, event)
        if at % often == 0:
            assert digest(state) == recount(state)
    assert digest(state) == recount(state) == digest(drive.cache.state)


def test_a_node_under_a_number_that_was_used_up_counts_like_any_other() -> None:
    """A hostile journal may use ids again: between nodes whose weight nobody asked for yet."""
    drive = Driven(5)
    state = begin(drive.journal.opened)
    evolve(state, _leaf(7, 1))
    evolve(state, _leaf(8, 2))
    evolve(state, _leaf(3, 3))
    evolve(state, _leaf(9, 4))
    assert [finding.law for finding in state.findings] == []
    assert list(state.nodes) == [ROOT, 7, 8, 3, 9]
    assert digest(state) == recount(state)


def test_what_no_digest_could_be_made_of_stands_in_no_tree() -> None:
    """Columns of no whole page ids are found when they are folded, not when somebody asks for a digest later."""
    state = begin(Driven(5).journal.opened)
    for node, page in ((1, 1), (2, 2)):
        evolve(state, _leaf(node, page))
    torn = Pages(b"\1\0\0\0\1")
    evolve(state, Transferred(NodeId(3), ROOT, FREE, bytes(20), torn, NO_PAGES))
    evolve(
        state,
        Split(
            NodeId(1), NodeId(4), ROOT, Pages(b""), NO_PAGES, host=Pages(b"\1\0\0"), transfer=TransferId(9)
        ),
    )
    assert [finding.law for finding in state.findings] == ["an_event_names_what_exists"] * 2
    assert list(state.nodes) == [ROOT, 1, 2]
    assert digest(state) == recount(state)


def _leaf(node: int, page: int) -> Transferred:
    full = Pages(page.to_bytes(4, "little"))
    return Transferred(NodeId(node), ROOT, FREE, bytes([node] * 16), full, NO_PAGES)


def _sum_of(values: NDArray[np.int32], weights: NDArray[np.uint64]) -> int:
    return sum(int(value) * int(weight) for value, weight in zip(values, weights, strict=True)) & MASK


@pytest.mark.parametrize("writes", [3, 40, 300, 9000], ids=lambda writes: f"{writes} writes")
def test_a_sum_is_right_however_much_was_written_since(writes: int) -> None:
    """Fewer places than the array has, as many, and more writes than are kept."""
    values, weights, chance = np.zeros(200, np.int32), lane(2, 200), np.random.default_rng(writes)
    kept = KeptSum(values, 2)
    for _ in range(3):
        for place in chance.integers(0, 200, writes).tolist():
            values[place] = chance.integers(-(1 << 31), 1 << 31)
            kept.told.append(place.to_bytes(4, "little"))
        assert kept.total() == _sum_of(values, weights)


def test_places_that_no_array_has_are_passed_over() -> None:
    """What a hostile event names is told before anybody knows whether the pool has it."""
    values = np.zeros(50, np.int64)
    kept = KeptSum(values, 0)
    values[7] = 9
    kept.told.append(np.array([7, 50, -1, 1 << 30], "<i4").tobytes())
    assert kept.total() == 9 * int(lane(0, 50)[7]) & MASK


@pytest.mark.parametrize("count", [1, 5, 24, 25, 90])
def test_pages_that_come_back_leave_a_book_as_it_was(count: int) -> None:
    book = PoolBook(Pool.FULL, 100)
    pages, account = Pages(np.arange(1, count + 1, dtype="<i4").tobytes()), request_account(RequestId(3))
    assert book.digest == 0
    assert book.move(pages, FREE, account, 1) is None
    assert book.digest == int(account) * int(lane(0, 101)[1 : count + 1].sum(dtype=np.uint64)) & MASK
    assert book.move(pages, account, FREE, 2) is None
    assert book.digest == 0
