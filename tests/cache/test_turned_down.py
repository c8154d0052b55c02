"""Calls that cannot be right: each is refused before anything changes, and the rank goes on."""

from collections.abc import Callable
from inspect import isgeneratorfunction

import numpy as np
import pytest

from radixledger.cache.decide import eviction as decide_eviction
from radixledger.cache.decide import faces as decide_faces
from radixledger.cache.decide import growth as decide_growth
from radixledger.cache.decide import locks as decide_locks
from radixledger.cache.decide import pages as decide_pages
from radixledger.cache.decide import requests as decide_requests
from radixledger.cache.decide import unified as decide_unified
from radixledger.cache.decide.faces import Written
from radixledger.cache.rank import RankCache
from radixledger.cache.refusals import Busy, Refusal, UnknownRequest, asked
from radixledger.cache.slices import Slice
from radixledger.cache.state import Receipt
from radixledger.journal.accounts import FREE, request_account, tree_account
from radixledger.journal.causes import Operation, label
from radixledger.journal.events import Refused
from radixledger.journal.moves import pages_of
from radixledger.journal.units import UNBOUND, BoundaryId, NodeId, Pages, RequestId

from ..machine import opened, packed
from ..model_tree import Shape
from ..witnesses import Tape, WatchedRank, image

SHAPE = Shape(page=4, window=6, full=20, swa=16)


class Case:
    """A rank with one live request of 13 tokens, and two pages that nobody has named."""

    def __init__(self) -> None:
        self.tape = Tape(opened(SHAPE))
        self.rank = WatchedRank(self.tape.opened, self.tape)
        self.request = self.admit("ada", b"a")
        self.grow(self.request, 13)
        self.row = Pages(self.rank.state.rows.full_table[self.rank.state.row_of(self.request), :4].tobytes())
        self.full, self.swa = self.rank.alloc(2)

    def admit(self, rid: str, letter: bytes, tokens: int = 13) -> RequestId:
        return self.rank.admit(rid, letter * 4 * tokens, tokens).request

    def grow(self, request: int, tokens: int) -> None:
        self.rank.extend(np.array([request], np.int64), np.array([tokens], np.int32))

    def refused(self, call: Callable[[], object], kind: type[Refusal] = Refusal) -> Refusal:
        """The refusal of a call; it told of itself with one event and changed nothing."""
        before, events = image(self.rank.state), len(self.tape.events)
        with pytest.raises(kind) as refusal:
            call()
        assert image(self.rank.state) == before
        assert [type(event) for event in self.tape.events[events:]] == [Refused]
        self.rank.evict(0, 0)
        return refusal.value


@pytest.fixture
def case() -> Case:
    return Case()


@pytest.mark.parametrize("named", [True, False])
def test_a_page_that_stands_in_a_live_row_is_freed_by_its_request_alone(case: Case, named: bool) -> None:
    """R4, B12: a second release path is refused at its first step, by whatever name it comes."""
    giver = request_account(case.request) if named else None
    for pages in (case.row, Pages(case.row[:4]), Pages(case.row[:4] + case.full)):
        for free in (case.rank.free, case.rank.free_full, case.rank.free_swa):
            if not named or pages != case.row[:4] + case.full:
                refusal = case.refused(lambda free=free, pages=pages: free(pages, giver), Busy)  # type: ignore[misc]
                assert refusal.request == case.request
    case.rank.finish(case.request, b"a" * 52)


def test_a_mapping_moves_between_pages_that_nobody_has_named(case: Case) -> None:
    """R91: not from or to a row, the tree or free pages, and no page twice."""
    first, second = Pages(case.full[:4]), Pages(case.full[4:])
    case.rank.free_swa(second)
    free_page = packed([pages_of(case.rank.state.full.next_free(1))[0]])
    case.refused(lambda: case.rank.remap(case.row, Pages(second * 4)))
    case.refused(lambda: case.rank.remap(Pages(case.row[:4]), second), Busy)
    case.refused(lambda: case.rank.remap(first, free_page))
    case.refused(lambda: case.rank.remap(Pages(first * 2), Pages(second + free_page)))
    case.refused(lambda: case.rank.remap(first, packed([0])))
    case.rank.remap(first, second)
    assert case.rank.translate(second) == Pages(case.swa[:4])


def test_a_window_cannot_end_behind_the_request(case: Case) -> None:
    """R131: what is reclaimed is below a position that the request has reached."""
    case.refused(lambda: case.rank.reclaim(case.request, 14))
    case.refused(lambda: case.rank.reclaim(case.request, 40))
    case.refused(lambda: case.rank.reclaim(case.request, 12, -1))
    case.refused(lambda: case.rank.reclaim_batch(np.array([case.request], np.int64), -40))
    assert case.rank.reclaim(case.request, 13) == 0


def test_a_batch_that_lived_in_the_last_step_lives_no_more_when_one_of_it_ended(case: Case) -> None:
    """Also where another request sits in the row of the one that went."""
    other = case.admit("bob", b"b")
    requests = np.array([case.request, other], np.int64)
    assert case.rank.decode(requests).size == 2
    case.rank.abort(other)
    case.refused(lambda: case.rank.decode(requests), UnknownRequest)
    again = case.admit("bob", b"b")
    assert case.rank.state.row_of(again) == case.rank.state.row_of(other)
    case.refused(lambda: case.rank.decode(requests), UnknownRequest)
    assert case.rank.decode(np.array([case.request, again], np.int64)).size == 2


@pytest.mark.parametrize("numbers", [[0], [-1], [1 << 40]])
def test_a_batch_names_live_requests(case: Case, numbers: list[int]) -> None:
    """A free row 0 shows request 0, and yet no request has that number."""
    other = case.admit("bob", b"b")
    case.rank.abort(case.request)
    assert case.rank.state.rows.request[0] == 0
    requests, ones = np.array([other, *numbers], np.int64), np.array([1, 1], np.int32)
    case.refused(lambda: case.rank.extend(requests, ones), UnknownRequest)
    case.refused(lambda: case.rank.decode(requests), UnknownRequest)
    if numbers != [0]:
        case.refused(lambda: case.rank.reclaim_batch(requests), UnknownRequest)
    case.refused(lambda: case.rank.step_began(1, requests, ones, ones), UnknownRequest)


def test_a_batch_names_a_request_once(case: Case) -> None:
    """Two pages for one position would leave one that nobody names."""
    twice, ones = np.array([case.request] * 2, np.int64), np.array([1, 1], np.int32)
    case.grow(case.request, 3)
    case.refused(lambda: case.rank.decode(twice))
    case.refused(lambda: case.rank.extend(twice, ones))
    case.refused(lambda: case.rank.extend(twice[:1], ones))
    case.refused(lambda: case.rank.step_began(1, twice, ones, ones))


def test_a_step_tells_where_each_of_its_requests_writes(case: Case) -> None:
    one, two = np.array([case.request], np.int64), np.array([13, 14], np.int32)
    case.refused(lambda: case.rank.step_began(1, one, two, two[:1]))
    case.refused(lambda: case.rank.step_began(1, one, two[:1], two))


def test_a_rank_with_a_step_in_flight_is_not_flushed() -> None:
    """R177: not even if the step has no request."""
    tape = Tape(opened(SHAPE))
    rank = RankCache(tape.opened, tape)
    none = np.zeros(0, np.int64)
    rank.step_began(1, none, none.astype(np.int32), none.astype(np.int32))
    with pytest.raises(Busy):
        rank.flush()
    rank.step_ended(1)
    assert rank.flush() == 0


def inserted(case: Case, pages: Pages, *, prev: int = 0, released: int = 0, giver: int | None = None) -> None:
    account = request_account(UNBOUND) if giver is None else giver
    brought = Slice(pages, prev, released, account, UNBOUND, Operation.INSERT)
    case.rank.insert(b"b" * 16 * (len(pages) // 4), b"", brought)


def test_the_tree_takes_pages_from_those_who_have_them(case: Case) -> None:
    """R89, R97: not from the free queue, from a node, or behind the back of a live request."""
    for giver in (int(FREE), int(tree_account(NodeId(1)))):
        case.refused(lambda giver=giver: inserted(case, case.full, giver=giver))  # type: ignore[misc]
    case.refused(lambda: inserted(case, case.row, giver=request_account(case.request)), Busy)
    free_pages = case.rank.state.full.next_free(2)
    case.refused(lambda: inserted(case, free_pages))


def test_the_tree_believes_no_prefix_that_it_never_gave(case: Case) -> None:
    """R61: pages below `prev_prefix_len` are not looked at, so they must be the tree's."""
    case.refused(lambda: inserted(case, case.full, prev=1))
    inserted(case, Pages(case.full[:4]))
    inserted(case, case.full, prev=1)
    assert case.rank.peek(b"b" * 32).tokens == 8


def test_a_live_request_is_locked_and_released_by_its_own_calls(case: Case) -> None:
    """R137, R140: its receipt in other hands would leave its path open to eviction."""
    case.rank.cache_unfinished(case.request, b"a" * 52)
    receipt = case.rank.state.requests[case.request].receipt
    assert receipt is not None
    case.refused(lambda: case.rank.unlock(receipt))
    ours = case.rank.lock(receipt.node)
    case.refused(lambda: case.rank.unlock(Receipt(ours.node, BoundaryId(99))))
    case.rank.unlock(ours)
    case.refused(lambda: case.rank.unlock(ours))
    case.rank.finish(case.request, b"a" * 52)


def test_a_path_without_a_window_is_not_cached_for_a_request_that_goes_on(case: Case) -> None:
    """R259: a key that ends too far below what was reclaimed."""
    case.grow(case.request, 15)
    assert case.rank.reclaim(case.request, 27) == 16
    for tokens in (16, 20):
        case.refused(lambda tokens=tokens: case.rank.cache_unfinished(case.request, b"a" * 4 * tokens))  # type: ignore[misc]
    assert case.rank.cache_unfinished(case.request, b"a" * 4 * 24) == 24


def test_what_is_written_into_a_row_has_its_pages(case: Case) -> None:
    """R28: every position that the tokens touch, no other, and none behind a hole."""
    request, two = case.request, case.full

    def write(start: int, stop: int, pages: Pages) -> None:
        case.rank.write([Written(request, start, stop, pages)])

    last = Pages(case.row[12:])
    for start, stop, pages in (
        (13, 20, Pages(last)),
        (13, 17, Pages(last + two)),
        (13, 12, last),
        (-4, 4, Pages(last + two)),
        (17, 20, Pages(two[:4])),
    ):
        case.refused(lambda start=start, stop=stop, pages=pages: write(start, stop, pages))  # type: ignore[misc]
    write(13, 24, Pages(last + two))
    assert case.rank.state.rows.length[case.rank.state.row_of(request)] == 24


def test_a_row_is_not_cut_under_a_running_step(case: Case) -> None:
    """R151, B135: the device writes there."""
    one, at = np.array([case.request], np.int64), np.array([13], np.int32)
    case.rank.step_began(1, one, at, at)
    case.refused(lambda: case.rank.give_up(Pages(case.row[12:])), Busy)
    case.rank.step_ended(1)
    case.rank.give_up(Pages(case.row[12:]))
    assert case.rank.state.rows.length[case.rank.state.row_of(case.request)] == 12


def test_nobody_sits_down_who_does_not_fit_his_row(case: Case) -> None:
    room = SHAPE.row_pages * SHAPE.page
    nowhere = Receipt(NodeId(0), BoundaryId(0))
    case.refused(lambda: case.rank.seat("bob", 1, room + 1, NodeId(0), b"", nowhere))
    case.rank.seat("bob", 1, room, NodeId(0), b"", nowhere)


def test_a_row_that_is_cut_keeps_a_whole_window() -> None:
    """R134, R259: what is left can still be cached, so W tokens before its end are live, not W - 1."""
    tape = Tape(opened(Shape(page=1, window=4, full=20, swa=20, row_pages=20)))
    rank = WatchedRank(tape.opened, tape)
    request = rank.admit("ada", b"a" * 80, 20).request
    rank.extend(np.array([request], np.int64), np.array([14], np.int32))
    assert rank.reclaim(request, 13) == 8
    row = Pages(rank.state.rows.full_table[0, :14].tobytes())
    with pytest.raises(Refusal):
        rank.give_up(Pages(row[4 * 11 :]))
    rank.give_up(Pages(row[4 * 12 :]))
    assert rank.cache_unfinished(request, b"a" * 48) == 12
    assert rank.peek(b"a" * 48).tokens == 12


def test_a_refusal_tells_what_was_asked_for() -> None:
    """J4: why something was turned down is a column, and so is what."""
    tape = Tape(opened(SHAPE))
    with pytest.raises(Refusal):
        RankCache(tape.opened, tape).alloc(10_000)
    refused = tape.events[-1]
    assert isinstance(refused, Refused)
    assert label(refused.cause) == "alloc"


def test_every_decider_has_a_name_that_a_refusal_can_tell() -> None:
    modules = (
        decide_eviction,
        decide_faces,
        decide_growth,
        decide_locks,
        decide_pages,
        decide_requests,
        decide_unified,
    )
    deciders = {
        name
        for module in modules
        for name, function in vars(module).items()
        if isgeneratorfunction(function)
        and not name.startswith("_")
        and function.__module__ == module.__name__
    }
    parts = {"go_on", "lock_path", "released", "unevict"}
    """Asked for by another decider only."""
    assert {name for name in deciders - parts if label(asked(name)) == "unknown"} == {"translate"}
