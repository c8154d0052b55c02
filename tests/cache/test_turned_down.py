"""Calls that cannot be right: each is refused before anything changes, and the rank goes on."""

from collections.abc import Callable

import numpy as np
import pytest

from radixledger.cache.rank import RankCache
from radixledger.cache.refusals import Busy, Refusal
from radixledger.journal.accounts import request_account
from radixledger.journal.events import Refused
from radixledger.journal.moves import pages_of
from radixledger.journal.units import Pages, RequestId

from ..machine import opened, packed
from ..model_tree import Shape
from ..witnesses import Tape, image

SHAPE = Shape(page=4, window=6, full=20, swa=16)


class Case:
    """A rank with one live request of 13 tokens, and two pages that nobody has named."""

    def __init__(self) -> None:
        self.tape = Tape(opened(SHAPE))
        self.rank = RankCache(self.tape.opened, self.tape)
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
    assert case.rank.reclaim(case.request, 13) == 0
