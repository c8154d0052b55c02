"""The window before an insert stop, in both key modes: what is cached can be started from, whoever gave back what before.

The arithmetic alone is in `test_window`; here a rank does it. Sizes are not sampled.
"""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from radixledger.cache import window
from radixledger.cache.config import checked
from radixledger.cache.keys import KEY_MODES
from radixledger.cache.laws.of_requests import live_run
from radixledger.cache.rank import RankCache
from radixledger.cache.refusals import Refusal
from radixledger.cache.slices import Slice
from radixledger.journal.accounts import request_account
from radixledger.journal.causes import Operation
from radixledger.journal.events import Config, Opened, Reclaimed
from radixledger.journal.moves import pages_of
from radixledger.journal.sizes import BadConfig
from radixledger.journal.units import UNBOUND

from ..machine import opened
from ..model_tree import Shape
from .sliding import Sliding, roomy, text
from .test_window import frontier, insert_stop, key_length, published

Way = Callable[[Sliding, int], None]
"""How a request comes to have so many tokens."""

modes = pytest.mark.parametrize("mode", KEY_MODES)
formulas = pytest.mark.parametrize("formula", window.FORMULAS)


def in_one_chunk(case: Sliding, tokens: int) -> None:
    case.extend(tokens - case.length)


def by_decoding(case: Sliding, tokens: int) -> None:
    case.decode(tokens - case.length)


def by_decoding_eagerly(case: Sliding, tokens: int) -> None:
    """With the largest `pre` that a server may name, after every token."""
    case.decode(tokens - case.length, eager=True)
    case.rank.reclaim(case.request, case.length)


def sizes() -> Iterator[tuple[int, int, int]]:
    """P, W, and L from nothing to past the first page that can be given back, every residue of it."""
    for page, width in product((1, 2, 3, 4, 5), range(1, 13)):
        for tokens in range(1, width + 4 * page + 2):
            yield page, width, tokens


@pytest.mark.parametrize("way", [in_one_chunk, by_decoding, by_decoding_eagerly])
@modes
@formulas
def test_a_cached_path_ends_in_a_window_that_another_request_can_start_from(
    formula: str, mode: str, way: Way
) -> None:
    """R259, R260, R269, R274: all P (1 too), W, L; the protected length is the insert stop, and a second request hits it.

    The second request's match is gated by the window; nobody is given what FULL alone would give (R266).
    """
    for page, width, tokens in sizes():
        case = Sliding(roomy(page, width, tokens, mode, formula), 1)
        way(case, tokens)
        key, stop = case.key(tokens), insert_stop(tokens, mode, page)
        case.rank.reclaim_for(case.request, key)
        told = (page, width, tokens)
        assert case.rank.cache_unfinished(case.request, key) == stop, told
        state = case.rank.state
        protected = int(state.rows.protected[state.row_of(case.request)])
        run = live_run(state.nodes[state.requests[case.request].node])
        assert (protected, run * page >= width) == (stop, True), told
        hit = case.rank.peek(case.key(tokens + page + 1))
        assert (hit.tokens, hit.full_tokens) == (stop, stop), told


@pytest.mark.parametrize("end", ["finish", "cache and retract"])
@modes
@formulas
def test_the_end_of_a_request_leaves_such_a_path_too(formula: str, mode: str, end: str) -> None:
    """R259, R260: finished, and retracted with insert, after decode reclaims."""
    for page, width in product((1, 2, 4), (1, 3, 5, 7, 8, 11)):
        for tokens in range(1, width + 4 * page + 2):
            case = Sliding(roomy(page, width, tokens, mode, formula), 1)
            by_decoding_eagerly(case, tokens)
            if end == "finish":
                case.rank.finish(case.request, case.key(tokens))
            else:
                case.rank.cache_unfinished(case.request, case.key(tokens))
                case.rank.retract(case.request)
            stop = insert_stop(tokens, mode, page)
            hit = case.rank.peek(case.key(tokens + page + 1))
            assert (hit.tokens, hit.full_tokens) == (stop, stop), (page, width, tokens)


@modes
@formulas
def test_a_request_that_is_cached_again_and_again_never_loses_its_window(formula: str, mode: str) -> None:
    """R257, R259: chunks of any size, with decode between them; the laws hold at each of them."""
    for page, width, chunk in product((1, 4), (3, 5, 7), (1, 3, 4, 9)):
        case = Sliding(roomy(page, width, 60, mode, formula), chunk)
        while case.length + chunk < 60:
            key = case.key(case.length)
            case.rank.reclaim_for(case.request, key)
            stop = insert_stop(case.length, mode, page)
            assert case.rank.cache_unfinished(case.request, key) == stop
            case.check()
            case.extend(chunk)
            case.decode(2, eager=True)


# -- the published shapes ------------------------------------------------------------------------------------


@formulas
def test_the_first_published_shape(formula: str) -> None:
    """R261: P 4, W 7, 16 tokens in pairs, kv 256, ctx 64: K 15, B 12; then the lock is given back and all adds up."""
    shape = Shape(4, 7, 64, 64, row_pages=16, formula=formula, ahead=1)
    case = Sliding(shape, 16)
    key = case.key(16)
    assert len(key) // 8 == 15
    assert case.rank.reclaim_for(case.request, key) == {"rfc": 0, "tight": 4}[formula]
    assert case.rank.cache_unfinished(case.request, key) == 12
    receipt = case.rank.state.requests[case.request].receipt
    assert receipt is not None
    second = case.rank.admit("second", case.key(40), 40)
    assert second.hit.tokens == 12
    for request in (second.request, case.request):
        case.rank.abort(request)
        case.check()
    state = case.rank.state
    assert not any(node.swa_locks or node.anchors for node in state.nodes.values())
    assert (state.full.available + state.full_evictable, state.full_protected) == (64, 0)


@pytest.mark.parametrize(
    ("mode", "formula", "cursor", "stop"),
    [
        ("bigram", "rfc", 768, 960),
        ("bigram", "tight", 832, 960),
        ("raw", "rfc", 832, 1024),
        ("raw", "tight", 832, 1024),
    ],
)
def test_the_second_published_shape(mode: str, formula: str, cursor: int, stop: int) -> None:
    """R262, A47: P 64, W 127, 1,024 tokens: the boundary moves from 1,024 to 960, the frontier with it."""
    case = Sliding(roomy(64, 127, 1024, mode, formula), 1024)
    key = case.key(1024)
    assert case.rank.reclaim_for(case.request, key) == cursor
    assert case.rank.cache_unfinished(case.request, key) == stop
    assert case.rank.peek(key).tokens == stop


def test_the_published_formula_and_the_wrong_unit_fall_short() -> None:
    """R261, R262, R274: 8 of 12 leave 4 < 7, 896 of 960 leave 64 < 127; 4 of 8 leave 4 < 5, in raw keys alone."""
    assert insert_stop(16, "bigram", 4) - published(0, 15, 7, 4) == 4
    assert insert_stop(1024, "bigram", 64) - published(0, 1023, 127, 64) == 64
    assert insert_stop(10, "raw", 4) - published(0, 9, 5, 4) == 4
    assert insert_stop(16, "bigram", 4) - published(0, 14, 7, 4) == 8
    assert insert_stop(1024, "raw", 64) - published(0, 1023, 127, 64) == 128


@pytest.mark.parametrize(
    ("mode", "cursor", "stop"), [("raw", {"rfc": 0, "tight": 0}, 8), ("bigram", {"rfc": 0, "tight": 0}, 8)]
)
@formulas
def test_a_window_of_another_residue(mode: str, cursor: dict[str, int], stop: int, formula: str) -> None:
    """R274, A26b: P 4, W 5, 10 tokens: `published` gives back up to 4 and leaves 4 < 5; neither of ours does."""
    case = Sliding(roomy(4, 5, 10, mode, formula), 10)
    key = case.key(10)
    assert published(0, key_length(10, mode) - 1, 5, 4) == {"raw": 4, "bigram": 0}[mode]
    assert case.rank.reclaim_for(case.request, key) == cursor[formula]
    assert case.rank.cache_unfinished(case.request, key) == stop == case.rank.peek(key).tokens


@pytest.mark.parametrize("mode", KEY_MODES)
def test_a_page_that_is_larger_than_the_window_stays_live_at_the_end(mode: str) -> None:
    """B34: P 8, W 4, 36 tokens cached while it runs: the insert stops at 32, [0, 24) is dead, [24, 32) is live."""
    case = Sliding(Shape(8, 4, 8, 8, ahead=int(mode == "bigram"), formula="tight"), 36)
    key = case.key(36)
    assert case.rank.reclaim_for(case.request, key) == 24
    assert case.rank.cache_unfinished(case.request, key) == 32
    assert case.mapped(0, 5) == [False, False, False, True, True]
    assert (case.rank.state.swa.available, case.rank.state.full.available) == (6, 3)
    assert case.rank.peek(key).tokens == 32


# -- units ---------------------------------------------------------------------------------------------------


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Every `pre` that a frontier is computed from."""
    pres: list[int] = []

    def spied(old: int, pre: int, **sizes: Any) -> int:
        pres.append(pre)
        return lawful(old, pre, **sizes)

    lawful = window.frontier
    monkeypatch.setattr(window, "frontier", spied)
    return pres


@modes
def test_a_frontier_before_an_insert_is_computed_from_the_length_of_the_key(
    mode: str, told: list[int]
) -> None:
    """R256, R258, R263: K - 1, which for pairs is two less than the tokens; with ours the wrong unit would not show."""
    for tokens in (2, 9, 16, 17):
        case = Sliding(roomy(4, 7, 40, mode), tokens)
        case.rank.reclaim_for(case.request, case.key(tokens))
        case.rank.reclaim_for(case.request, case.key(tokens - 1))
        length = key_length(tokens, mode)
        assert told == [length - 1, length - 2]
        told.clear()


def test_decode_names_no_token_that_no_key_could_end_before(told: list[int]) -> None:
    """R259: whatever is asked for, pairs reclaim at committed - 1 at most; raw keys at the length, as they did."""
    for mode, most in (("raw", 16), ("bigram", 15)):
        case = Sliding(roomy(4, 7, 40, mode), 16)
        case.rank.reclaim(case.request, 16)
        case.rank.reclaim_batch(np.array([case.request], np.int64))
        case.decode(20)
        assert told[0] == most
        assert all(pre < 36 for pre in told)
        with pytest.raises(Refusal, match="its window ends at 37"):
            case.rank.reclaim(case.request, 37)
        told.clear()


def test_in_no_window_does_a_wrong_unit_alone_break_anything() -> None:
    """R263: brute force: with `rfc` and `tight` a frontier of L - 1 leaves a window in pairs too; `published` does not."""
    short = dict.fromkeys(("rfc", "tight", "published"), 0)
    for page, width in product(range(1, 9), range(1, 26)):
        for tokens in range(2, 90):
            stop = insert_stop(tokens, "bigram", page)
            for name, formula in (
                ("rfc", frontier("rfc")),
                ("tight", frontier("tight")),
                ("published", published),
            ):
                new = formula(0, tokens - 1, width, page)
                short[name] += new > 0 and stop - new < width
    assert (short["rfc"], short["tight"], short["published"] > 0) == (0, 0, True)


@pytest.mark.parametrize(("prev", "released"), [(-1, 0), (0, -16), (0, -64)])
def test_a_position_below_zero_is_refused_in_pairs_too(prev: int, released: int) -> None:
    """R271, B2: `swa_evicted_seqlen - prefix_len` of two units was -64 once."""
    rank = RankCache(opened(Shape(4, 4, 8, 8, ahead=1)))
    full, _ = rank.alloc(2)
    brought = Slice(full, prev, released, request_account(UNBOUND), UNBOUND, Operation.INSERT)
    with pytest.raises(Refusal, match="cannot be negative"):
        rank.insert(rank.key_of(text(9)), b"", brought)


@modes
def test_pages_are_taken_whole_and_mapped_pairwise(mode: str) -> None:
    """R272: as these tests do it and as a server does: position i of a row stands in page i // P of both pools."""
    case = Sliding(roomy(4, 4, 40, mode), 9)
    full = pages_of(case.row(0, 3)).tolist()
    swa = pages_of(case.rank.translate(case.row(0, 3))).tolist()
    assert len({*full}) == len({*swa}) == 3
    slots = case.rank.decode(np.array([case.request], np.int64))
    assert slots.tolist() == [full[2] * 4 + 1]


# -- raw keys are as they were -------------------------------------------------------------------------------


@formulas
def test_raw_keys_give_back_and_cache_what_they_did(formula: str) -> None:
    """R265: for raw keys the length of the key is that of the tokens: both ways to say it write the same events."""
    for page, width, tokens in sizes():
        ways = [Sliding(roomy(page, width, tokens, "raw", formula), tokens) for _ in range(2)]
        for case, say in zip(ways, ("tokens", "key"), strict=True):
            key = case.key(tokens)
            if say == "tokens":
                case.rank.reclaim(case.request, tokens - 1)
                case.rank.cache_unfinished(case.request, case.key(tokens + page), tokens)
            else:
                case.rank.reclaim_for(case.request, key)
                case.rank.cache_unfinished(case.request, key)
            case.rank.finish(case.request, key)
        assert ways[0].tape.events == ways[1].tape.events
        assert ways[0].rank.digest() == ways[1].rank.digest()


# -- what may be configured ----------------------------------------------------------------------------------


@modes
def test_no_key_mode_keeps_windows_unless_told_to(mode: str) -> None:
    """R267: giving back is on in every mode; turned off, nothing is given back, and nothing else differs."""
    assert Config(1, 1, 1, 1, key_mode=mode).free_out_of_window
    on, off = (Sliding(shape, 1) for shape in _on_and_off(mode))
    for case in (on, off):
        by_decoding(case, 60)
        case.rank.reclaim(case.request, 50)
        case.rank.cache_unfinished(case.request, case.key(60))
        case.check()
    assert not [event for event in off.tape.events if isinstance(event, Reclaimed)]
    assert (on.cursor > 40, off.mapped(0, 15)) == (True, [True] * 15)
    for case in (on, off):
        assert case.rank.peek(case.key(60)).tokens == insert_stop(60, mode, 4)
        case.rank.finish(case.request, case.key(60))
    assert on.rank.state.swa.available > off.rank.state.swa.available


def _on_and_off(mode: str) -> tuple[Shape, Shape]:
    shape = roomy(4, 7, 60, mode)
    return shape, Shape(
        4, 7, shape.full, shape.swa, row_pages=shape.row_pages, ahead=shape.ahead, frees=False
    )


@modes
def test_a_pool_of_windows_alone_is_refused(mode: str) -> None:
    """R270: FULL is what a tree is made of, in either key mode; what may stand beside it, the face says."""
    lawful = opened(Shape(4, 4, 8, 8, ahead=int(mode == "bigram")))
    assert checked(lawful) is lawful
    for field in ("full_pages", "page_size", "window_tokens"):
        alone = {field: 0}
        with pytest.raises(BadConfig, match=field):
            RankCache(_changed(lawful, **alone))


def _changed(event: Opened, **fields: int) -> Opened:
    return replace(event, config=replace(event.config, **fields))
