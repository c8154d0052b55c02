"""What the host packs, and what it refuses before the device sees it."""

import numpy as np
import pytest

from radixledger.tools.serve.batch import (
    Batch,
    Geometry,
    PageNotResident,
    Span,
    StepRefused,
    StepTooLarge,
)
from radixledger.tools.serve.packing import pack

from .desk import Ints, ids_of

SIZES = Geometry(
    page_size=16, full_pages=40, swa_pages=30, context_pages=10, max_spans=4, window_tokens=32, vocab_size=512
)
FULL = np.arange(1, 41, dtype=np.int32).reshape(4, 10)
SWA = np.arange(30, 0, -1, dtype=np.int32).reshape(3, 10)


def span(row: int, start: int, count: int) -> Span:
    return Span(row, start, ids_of(count, count))


def packed(*spans: Span, full: Ints = FULL, swa: Ints = SWA, sizes: Geometry = SIZES) -> Batch:
    return pack(spans, full, swa, sizes, 64)


def test_a_token_lies_in_the_slot_that_its_page_table_names() -> None:
    batch = packed(span(2, 30, 5), span(0, 0, 3))
    assert batch.positions[:8].tolist() == [30, 31, 32, 33, 34, 0, 1, 2]
    full = [FULL[2, 1] * 16 + 14, FULL[2, 1] * 16 + 15, *(FULL[2, 2] * 16 + i for i in range(3))]
    assert np.asarray(batch.full.slots)[:8].tolist() == [*full, *(FULL[0, 0] * 16 + i for i in range(3))]
    assert np.asarray(batch.swa.slots)[0] == SWA[2, 1] * 16 + 14
    assert np.asarray(batch.last_tokens)[:2].tolist() == [4, 7]


def test_padding_is_written_past_the_pool() -> None:
    batch = packed(span(0, 0, 3))
    assert set(np.asarray(batch.full.slots)[3:].tolist()) == {41 * 16}
    assert set(np.asarray(batch.swa.slots)[3:].tolist()) == {31 * 16}


def test_every_token_has_one_row_in_the_query_tiles_of_its_own_span() -> None:
    batch = packed(span(0, 5, 33), span(1, 40, 1), span(2, 0, 20))
    queries = batch.queries
    rows = np.asarray(queries.row_of)[:54]
    assert len(set(rows.tolist())) == 54
    assert np.asarray(queries.tokens).ravel()[rows].tolist() == list(range(54))
    assert np.asarray(queries.positions).ravel()[rows].tolist() == batch.positions[:54].tolist()
    assert np.asarray(queries.spans)[:6].tolist() == [0, 0, 0, 1, 2, 2]
    assert (np.asarray(queries.positions) >= 0).sum() == 54
    assert int(queries.groups) == 2
    assert [int(x) for x in batch.live] == [4, 1]


@pytest.mark.parametrize("window_tokens", [1, 20, 32, 63, 64, 65, None])
@pytest.mark.parametrize("page_size", [1, 16, 128])
def test_a_group_reads_every_strip_that_one_of_its_queries_sees(
    page_size: int, window_tokens: int | None
) -> None:
    """By brute force over starts and lengths: no key that a query sees lies outside the strips."""
    sizes = Geometry(page_size, 600, 600, 640 // page_size, 4, window_tokens, 512)
    table = np.arange(1, 601, dtype=np.int32)[None, : 640 // page_size]
    table = np.ones((1, 640 // page_size), np.int32) if table.shape[1] < 640 // page_size else table
    for start in range(0, 300, 7):
        for count in (1, 15, 64):
            batch = pack([span(0, start, count)], table, table, sizes, 64)
            low, high = np.asarray(batch.swa.strips)[0]
            oldest = 0 if window_tokens is None else max(0, start - window_tokens + 1)
            assert low * sizes.strip_tokens <= oldest
            assert high * sizes.strip_tokens >= start + count
            assert low == oldest // sizes.strip_tokens


@pytest.mark.parametrize("window_tokens", [1, 15, 16, 17, 20, 33])
def test_exactly_the_pages_of_the_window_must_be_resident(window_tokens: int) -> None:
    """E10: with the pages of [n - W + 1, end) the step runs; short of any one it is refused, and says which."""
    sizes = Geometry(16, 40, 40, 10, 4, window_tokens, 512)
    for start, count in ((0, 1), (15, 1), (16, 1), (47, 2), (48, 1), (63, 40), (100, 7)):
        needed = {p // 16 for p in range(max(0, start - window_tokens + 1), start + count)}
        table = np.zeros((1, 10), np.int32)
        table[0, list(needed)] = 7
        pack([span(0, start, count)], FULL, table, sizes, 64)
        for page in needed:
            short = table.copy()
            short[0, page] = 0
            with pytest.raises(PageNotResident) as refused:
                pack([span(0, start, count)], FULL, short, sizes, 64)
            assert (refused.value.pool, refused.value.row, refused.value.index) == ("swa", 0, page)


def test_every_full_page_up_to_the_end_must_be_resident() -> None:
    short = FULL.copy()
    short[1, 0] = 0
    with pytest.raises(PageNotResident) as refused:
        packed(span(0, 0, 3), span(1, 70, 2), full=short)
    assert (refused.value.pool, refused.value.row, refused.value.index, refused.value.page) == (
        "full",
        1,
        0,
        0,
    )


@pytest.mark.parametrize("page", [-1, 31, 40])
def test_a_page_beyond_its_pool_is_not_resident(page: int) -> None:
    wrong = SWA.copy()
    wrong[0, 0] = page
    with pytest.raises(PageNotResident) as refused:
        packed(span(0, 0, 3), swa=wrong)
    assert (refused.value.page, refused.value.pages) == (page, 30)


def test_a_table_narrower_than_the_sequence_is_not_resident() -> None:
    with pytest.raises(PageNotResident) as refused:
        packed(span(0, 40, 3), full=FULL[:, :2])
    assert (refused.value.pool, refused.value.index) == ("full", 2)


def test_what_does_not_fit_is_refused_with_the_numbers() -> None:
    cases = {
        "spans": [Span(row, 0, ids_of(row, 1)) for row in range(5)],
        "tokens": [span(0, 0, 40), span(1, 0, 25)],
        "positions": [span(0, 158, 3)],
    }
    numbers = {"spans": (5, 4), "tokens": (65, 64), "positions": (161, 160)}
    for what, spans in cases.items():
        with pytest.raises(StepTooLarge) as refused:
            packed(*spans)
        assert (refused.value.what, refused.value.asked, refused.value.limit) == (what, *numbers[what])


@pytest.mark.parametrize(
    "spans",
    [
        [span(0, 0, 0)],
        [span(0, -1, 2)],
        [span(1, 0, 2), span(1, 2, 2)],
        [span(3, 0, 2)],
        [span(-1, 0, 2)],
        [Span(0, 0, np.array([512], np.int32))],
        [Span(0, 0, np.array([-1], np.int32))],
    ],
    ids=["empty", "before 0", "one row twice", "no such row", "row -1", "id past the vocabulary", "id -1"],
)
def test_a_span_that_means_nothing_is_refused(spans: list[Span]) -> None:
    with pytest.raises(StepRefused):
        packed(*spans)


@pytest.mark.parametrize("page_size", [0, 48, 3, 65])
def test_a_page_lies_in_one_strip_or_there_is_no_runner(page_size: int) -> None:
    sizes = {"full_pages": 4, "swa_pages": 4, "context_pages": 4, "max_spans": 4, "window_tokens": 32}
    if page_size == 65:
        assert Geometry(page_size, **sizes, vocab_size=512).strip_tokens == 65
        return
    with pytest.raises(ValueError, match=f"page_size {page_size}"):
        Geometry(page_size, **sizes, vocab_size=512)


@pytest.mark.parametrize("field", ["context_pages", "max_spans"])
def test_a_size_below_one_is_refused(field: str) -> None:
    sizes = {"full_pages": 4, "swa_pages": 4, "context_pages": 4, "max_spans": 4} | {field: 0}
    with pytest.raises(ValueError, match=f"{field} 0"):
        Geometry(16, **sizes, window_tokens=32, vocab_size=512)
