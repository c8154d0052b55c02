"""Keys of pairs: how they are made, what they say, and that no path takes one kind of key for the other."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from msgspec.structs import replace

from radixledger.cache import keys
from radixledger.cache.config import checked
from radixledger.cache.keys import KEY_MODES, KeyMode, bigram_key, broken_pair, raw_key
from radixledger.cache.rank import RankCache
from radixledger.cache.refusals import Refusal
from radixledger.journal.events import Opened, Transferred
from radixledger.journal.redact import KEY_BYTES, Redactor
from radixledger.journal.sizes import BadConfig

from ..machine import opened
from ..model_tree import Shape
from ..witnesses import written
from .sliding import Sliding, roomy, text

PAGES = (1, 4, 16, 128)


def pairs(tokens: Sequence[int]) -> bytes:
    """The definition: each token with the one behind it."""
    return b"".join(
        number.to_bytes(4, "little", signed=True)
        for first, second in pairwise(tokens)
        for number in (first, second)
    )


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 64])
def test_a_key_of_pairs_says_each_token_with_the_one_behind_it(count: int) -> None:
    """R257: `max(L - 1, 0)` pairs, and none without a second token; lists and arrays of any width say the same."""
    tokens = [(-1) ** at * at * 77_777 for at in range(count)]
    assert bigram_key(tokens) == pairs(tokens)
    assert len(bigram_key(tokens)) == 8 * max(count - 1, 0)
    assert bigram_key(np.array(tokens, np.int32)) == bigram_key(np.array(tokens, np.int64)) == pairs(tokens)
    assert bigram_key(np.array(tokens, np.int32)[::-1]) == pairs(tokens[::-1])
    assert broken_pair(bigram_key(tokens)) == -1


def test_what_is_no_flat_row_of_int32_makes_no_key() -> None:
    for make in (raw_key, bigram_key):
        with pytest.raises(OverflowError, match="int32"):
            make([1, 1 << 31])
        with pytest.raises(ValueError, match="flat"):
            make(np.zeros((2, 2), np.int32))


@pytest.mark.parametrize("page", PAGES)
def test_a_page_of_pairs_is_known_by_its_tokens_and_by_the_one_behind_them(page: int) -> None:
    """R257: two sequences that part behind a page share all pages but the one before the parting."""
    shape = roomy(page, page, 8 * page, "bigram")
    case = Sliding(shape, 4 * page + 1)
    assert case.rank.cache_unfinished(case.request, case.key(4 * page + 1)) == 4 * page
    same, other = text(6 * page), text(6 * page)
    other[3 * page :] += 1_000_000
    assert case.rank.peek(case.rank.key_of(same)).full_tokens == 4 * page
    assert case.rank.peek(case.rank.key_of(other)).full_tokens == 2 * page
    other[3 * page] -= 1_000_000
    assert case.rank.peek(case.rank.key_of(other)).full_tokens == 3 * page


def test_no_way_in_takes_a_key_of_the_other_kind() -> None:
    """B65, R271: tokens are no pairs, and a key that is longer than what is computed is none either."""
    case = Sliding(roomy(4, 4, 40, "bigram"), 17)
    before, plain = case.rank.digest(), raw_key(text(17)[:16])
    for way in (
        lambda: case.rank.peek(plain),
        lambda: case.rank.match(plain),
        lambda: case.rank.admit("other", plain, 17),
        lambda: case.rank.reclaim_for(case.request, plain),
        lambda: case.rank.cache_unfinished(case.request, plain),
        lambda: case.rank.finish(case.request, plain),
    ):
        with pytest.raises(ValueError, match="pair 1 does not begin with the token that pair 0 ends with"):
            way()
    with pytest.raises(ValueError, match="no whole pairs"):
        case.rank.cache_unfinished(case.request, plain[:60])
    assert case.rank.digest() == before

    raw = Sliding(roomy(4, 4, 40), 17)
    with pytest.raises(Refusal, match="17 tokens make a raw key of 17 units"):
        raw.rank.cache_unfinished(raw.request, bigram_key(text(17)))
    with pytest.raises(Refusal, match="whose tokens make 17"):
        raw.rank.reclaim_for(raw.request, bigram_key(text(17)))


def test_a_key_says_no_more_than_what_is_computed() -> None:
    """R257, R271: a last pair whose second token has no KV yet is not cached, though its first has."""
    case = Sliding(roomy(4, 4, 40, "bigram"), 16)
    with pytest.raises(Refusal, match="16 tokens make a bigram key of 15 units"):
        case.rank.cache_unfinished(case.request, case.key(17))
    with pytest.raises(Refusal, match=r"a key of 16 units was given .* whose tokens make 15"):
        case.rank.reclaim_for(case.request, case.key(17))
    assert case.rank.cache_unfinished(case.request, case.key(40), 16) == 12
    assert case.rank.finish(case.request, case.key(16)) == 12


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("tokens", [0, 1])
def test_an_empty_key_is_looked_up_and_cached_without_a_trace(page: int, tokens: int) -> None:
    """R268: nothing is found, nothing is freed, no frontier moves and no event is written."""
    case = Sliding(roomy(page, page, 8 * page, "bigram"), tokens)
    key = case.key(tokens)
    assert key == b""
    before, told = case.rank.digest(), len(case.tape.events)
    assert case.rank.peek(key).tokens == 0
    assert case.rank.cache_unfinished(case.request, key) == 0
    assert case.rank.cache_unfinished(case.request, case.key(8 * page), tokens) == 0
    assert case.rank.reclaim_for(case.request, key) == 0
    assert (case.rank.digest(), len(case.tape.events)) == (before, told)
    assert case.rank.finish(case.request, key) == 0
    assert case.rank.state.full.available == case.rank.state.full.capacity


@pytest.mark.parametrize("mode", KEY_MODES)
def test_one_key_object_serves_the_reclaim_and_the_insert(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """R264: built before anything is given back, in whole pages or not, and reused as it is."""
    built: list[bytes] = []

    def counted(tokens: keys.Tokens) -> bytes:
        built.append(lawful.key_of(tokens))
        return built[-1]

    lawful = KEY_MODES[mode]
    case = Sliding(roomy(4, 5, 60, mode), 50)
    monkeypatch.setitem(KEY_MODES, mode, KeyMode(counted, lawful.unit_bytes, lawful.lookahead))
    key = case.key(50)
    cursor = case.rank.reclaim_for(case.request, key)
    assert case.rank.cache_unfinished(case.request, key) == 48
    assert (cursor, built) == ({"raw": 40, "bigram": 36}[mode], [key])
    new = [event for event in case.tape.events if isinstance(event, Transferred)]
    assert b"".join(event.key for event in new) == key[: 48 * lawful.unit_bytes]


@pytest.mark.parametrize("page", PAGES)
def test_pairs_leave_the_process_as_one_hash_a_page(page: int) -> None:
    """J10, R257: of all 8 bytes of each of a page's pairs; the first event says how keys were and how they are kept."""
    case = Sliding(roomy(page, page, 8 * page, "bigram"), 4 * page + 1)
    case.rank.cache_unfinished(case.request, case.key(4 * page + 1))
    redactor = Redactor(bytes(range(KEY_BYTES)), case.tape.opened.stride)
    first, *events = written([case.tape.opened, *case.tape.events], redactor)
    assert isinstance(first, Opened)
    assert (first.config.key_mode, first.stride, case.tape.opened.stride) == ("bigram", 8, 8 * page)
    hashed = b"".join(event.key for event in events if isinstance(event, Transferred))
    assert hashed == redactor.page_hashes(case.key(4 * page + 1))
    assert len(set(zip(*[iter(hashed)] * 8, strict=True))) == 4
    shifted = text(5 * page) + 1
    assert redactor.page_hashes(bigram_key(shifted)[: 8 * page]) != hashed[:8]


def test_a_stride_belongs_to_its_key_mode() -> None:
    """R271: 4 bytes a token, 8 a pair; a cache with another number would cut keys in the wrong places."""
    for ahead in (0, 1):
        lawful = opened(Shape(4, 4, 8, 8, ahead=ahead))
        assert checked(lawful) is lawful
        for stride in {8, 16, 32} - {lawful.stride}:
            with pytest.raises(BadConfig, match="stride"):
                RankCache(replace(lawful, stride=stride))
    unknown = replace(opened(Shape(4, 4, 8, 8)).config, key_mode="trigram")
    with pytest.raises(BadConfig, match="key_mode: 'trigram' is not one of raw, bigram"):
        RankCache(replace(opened(Shape(4, 4, 8, 8)), config=unknown))
