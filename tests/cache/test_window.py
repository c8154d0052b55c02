"""The arithmetic of windows and frontiers, over every small page, window and length.

Nothing here is sampled: W and P up to a few pages, lengths past several windows, both formulas, both key modes.
"""

from collections.abc import Callable, Iterator

import pytest

from radixledger.cache import window
from radixledger.journal.events import Reclaimed
from radixledger.journal.units import KeyLen, TokenCount

from ..model_tree import Shape
from .sliding import Sliding

PAGES = range(1, 9)
WINDOWS = range(1, 26)
LENGTHS = range(90)

Formula = Callable[[int, int, int, int], int]
"""(old, pre, W, P) -> the frontier."""


def frontier(formula: str) -> Formula:
    return lambda old, pre, width, page: window.frontier(
        old, pre, window_tokens=width, page_size=page, formula=formula
    )


def published(old: int, pre: int, width: int, page: int) -> int:
    """The formula that was published and is not offered: `pre - max(W, P)`, cut to a page."""
    return max(old, (pre - max(width, page)) // page * page)


def key_length(tokens: int, mode: str) -> int:
    """Raw keys have an entry for a token, bigram keys one for a pair (R257)."""
    return tokens if mode == "raw" else max(tokens - 1, 0)


def test_a_key_of_pairs_is_one_shorter_than_its_tokens() -> None:
    """R257: and never shorter than nothing."""
    for tokens in LENGTHS:
        for ahead, mode in ((0, "raw"), (1, "bigram")):
            assert window.key_length(TokenCount(tokens), TokenCount(ahead)) == key_length(tokens, mode)


def insert_stop(tokens: int, mode: str, page: int) -> int:
    return window.insert_stop(KeyLen(key_length(tokens, mode)), page)


def cases() -> Iterator[tuple[int, int, int]]:
    return ((page, width, tokens) for page in PAGES for width in WINDOWS for tokens in LENGTHS)


# -- small pieces --------------------------------------------------------------------------------------------


def test_floors_and_ceilings_agree_with_counting() -> None:
    """R82, R136, R257: also below zero, where a frontier stays where it is."""
    for page in PAGES:
        for tokens in range(-40, 90):
            floor = window.floor_page(tokens, page)
            assert floor in (at for at in range(-48, 90, 1) if at % page == 0)
            assert floor <= tokens < floor + page
        for tokens in LENGTHS:
            assert window.pages_for(tokens, page) == len({at // page for at in range(tokens)})
            assert window.insert_stop(KeyLen(tokens), page) == max(
                at for at in range(tokens + 1) if at % page == 0
            )
        assert window.insert_stop(KeyLen(-1), page) == 0


def test_the_protected_suffix_is_the_smallest_that_covers_the_window() -> None:
    """R77, R78: whole pages, `ceilP(W)` tokens; one page where P > W."""
    for page in PAGES:
        for width in WINDOWS:
            pages = window.window_pages(width, page)
            assert (pages - 1) * page < width <= pages * page
    assert window.window_pages(128, 256) == 1


# -- the frontier --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("formula", window.FORMULAS)
def test_a_frontier_is_what_the_formula_says(formula: str) -> None:
    """R129, R130, A26b: written down a second time, token by token."""
    for page, width, tokens in cases():
        margin = width + page if formula == "rfc" else page * len(range(0, max(width, page), page))
        for old in range(0, tokens + page, page):
            reach = [at for at in range(0, tokens + 1, page) if at <= tokens - margin]
            assert frontier(formula)(old, tokens, width, page) == max([old, *reach])


@pytest.mark.parametrize("formula", window.FORMULAS)
def test_a_frontier_never_moves_backward(formula: str) -> None:
    """R132, R133, A25: nor for an `old` inside a page, nor as `pre` grows; what it moves to is a page boundary."""
    for page in PAGES:
        for width in WINDOWS:
            for old in range(30):
                before = old
                for pre in range(-3, 90):
                    new = frontier(formula)(old, pre, width, page)
                    assert new >= before
                    assert new == old or new % page == 0
                    before = new
    assert window.frontier(5, 0, window_tokens=1, page_size=4) == 5


@pytest.mark.parametrize("mode", ["raw", "bigram"])
@pytest.mark.parametrize("formula", window.FORMULAS)
def test_what_an_insert_leaves_behind_has_a_whole_window(formula: str, mode: str) -> None:
    """R134, R256-R259: `B - new >= W` or all is live, with `pre = K - 1`; raw keys leave some play beside it."""
    units = (-1, 0) if formula == "tight" else (-1, 0, 1)
    for page, width, tokens in cases():
        length, stop = key_length(tokens, mode), insert_stop(tokens, mode, page)
        for unit in units if mode == "raw" else (-1,):
            new = frontier(formula)(0, length + unit, width, page)
            assert new == 0 or stop - new >= width, (page, width, tokens, unit)


@pytest.mark.parametrize("formula", window.FORMULAS)
def test_what_decode_reads_next_is_never_given_back(formula: str) -> None:
    """R131, R134: the token at position L sees L - W + 1 ... L; decode reclaims with `pre = L - 1` before it."""
    for page, width, tokens in cases():
        new = frontier(formula)(0, tokens - 1, width, page)
        assert new <= max(0, tokens - width), (page, width, tokens)


def test_rfc_is_safe_in_every_unit_and_costs_a_page_at_most() -> None:
    """A26b: L - 1, K - 1 and L, raw and bigram; `tight` gives back one page more at most."""
    for page, width, tokens in cases():
        for mode in ("raw", "bigram"):
            for pre in {tokens - 1, key_length(tokens, mode) - 1, tokens}:
                new = frontier("rfc")(0, pre, width, page)
                assert new == 0 or insert_stop(tokens, mode, page) - new >= width
                assert 0 <= frontier("tight")(0, pre, width, page) - new <= page


@pytest.mark.parametrize("formula", window.FORMULAS)
def test_the_next_reclaim_is_the_first_that_gives_something(formula: str) -> None:
    """R130: decode compares lengths with this, so that a step in which nobody crosses costs one comparison."""
    for page in PAGES:
        for width in WINDOWS:
            for old in range(0, 40, page):
                due = window.next_reclaim(old, window_tokens=width, page_size=page, formula=formula)
                gains = [pre for pre in range(120) if frontier(formula)(old, pre, width, page) > old]
                assert due == min(gains)


def test_an_unknown_formula_is_refused() -> None:
    with pytest.raises(ValueError, match="published"):
        window.frontier(0, 10, window_tokens=4, page_size=1, formula="published")


# -- the formula that is not offered -------------------------------------------------------------------------


def test_the_published_formula_fails_where_the_window_is_no_multiple_of_the_page() -> None:
    """R274, A26b: for raw keys exactly where W > P and W mod P is neither 0 nor P - 1, and there it does fail."""
    broken = {
        (page, width)
        for page, width, tokens in cases()
        if published(0, tokens - 1, width, page) > 0
        and insert_stop(tokens, "raw", page) - published(0, tokens - 1, width, page) < width
    }
    assert broken == {
        (page, width)
        for page in PAGES
        for width in WINDOWS
        if width > page and width % page not in {0, page - 1}
    }
    assert published(0, 9, 5, 4) == 4
    assert insert_stop(10, "raw", 4) - 4 < 5


@pytest.mark.parametrize(
    ("page", "width", "tokens", "mode", "pre", "stop", "rfc", "tight", "wrong"),
    [
        (4, 7, 16, "bigram", 14, 12, 0, 4, 4),
        (4, 7, 16, "bigram", 15, 12, 4, 4, 8),
        (64, 127, 1024, "bigram", 1022, 960, 768, 832, 832),
        (64, 127, 1024, "bigram", 1023, 960, 832, 832, 896),
        (64, 127, 1024, "raw", 1023, 1024, 832, 832, 896),
    ],
)
def test_the_shapes_of_the_bigram_review(
    page: int, width: int, tokens: int, mode: str, pre: int, stop: int, rfc: int, tight: int, wrong: int
) -> None:
    """R258, R261, R262: what each formula gives; `published` with `pre` in tokens leaves less than a window."""
    assert insert_stop(tokens, mode, page) == stop
    assert [f(0, pre, width, page) for f in (frontier("rfc"), frontier("tight"), published)] == [
        rfc,
        tight,
        wrong,
    ]
    safe = stop - wrong >= width
    assert safe == (mode == "raw" or pre == key_length(tokens, mode) - 1)


def test_an_empty_bigram_key_leaves_the_frontier_where_it_is() -> None:
    """R257, R268: no tokens and one token have no pair; `pre` is negative then."""
    for formula in window.FORMULAS:
        for tokens in (0, 1):
            pre = key_length(tokens, "bigram") - 1
            assert pre == -1
            assert frontier(formula)(8, pre, 4, 4) == 8


# -- through a rank ------------------------------------------------------------------------------------------


def test_the_numeric_anchor_holds_exactly() -> None:
    """R135, R127, R131: P 1, W 4, protected 4, `pre` 16 → boundary 11; `row[4:11]` unmapped, the rest as it was."""
    case = Sliding(Shape(page=1, window=4, full=20, swa=20, row_pages=20), tokens=17, protected=4)
    row, available = case.row(4, 11), case.rank.state.swa.available
    swa = case.rank.translate(row)
    assert case.rank.reclaim(case.request, 16) == 11
    assert (case.mapped(0, 4), case.mapped(4, 11), case.mapped(11, 17)) == (
        [True] * 4,
        [False] * 7,
        [True] * 6,
    )
    assert case.rank.state.swa.available == available + 7
    told = case.tape.events[-1]
    assert isinstance(told, Reclaimed)
    assert (told.start, told.stop, told.full, told.swa) == (4, 11, row, swa)
    assert case.rank.reclaim(case.request, 16) == 11
    assert case.tape.events[-1] is told


def test_a_numeric_anchor_with_pages() -> None:
    """R130, R134: P 4, W 5, rfc: `pre` 26 reaches 17, cut to 16; the page of the window stays whole."""
    case = Sliding(Shape(page=4, window=5, full=20, swa=20), tokens=27, protected=8)
    assert case.rank.reclaim(case.request, 26) == 16
    assert case.mapped(0, 7) == [True, True, False, False, True, True, True]
