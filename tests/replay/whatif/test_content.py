"""Keys in pages of another size, and what stands in where nobody told."""

import numpy as np
import pytest
from msgspec.structs import replace

from radixledger.cache.keys import bigram_key, broken_pair, raw_key
from radixledger.journal.events import Config, Opened
from radixledger.journal.units import Rank, TokenCount
from radixledger.replay.whatif.content import NoFiner, content_for
from radixledger.replay.whatif.schedule import Job

PAGE = 8


def opened(*, redaction: str = "plain", key_mode: str = "raw", stride: int = 4 * PAGE) -> Opened:
    config = Config(PAGE, 40, 30, 20, key_mode=key_mode)
    return Opened("run", Rank(0), 1, 0, "unified", config, TokenCount(20), stride, redaction)


def job(key: bytes, *, prompt: int = 20, tokens: int = 30, given: int = 3) -> Job:
    return Job("a", b"", 0, prompt, tokens, key, given)


def tokens(count: int) -> np.ndarray:
    return np.arange(count, dtype=np.int32)


def test_token_ids_are_cut_into_pages_of_any_size() -> None:
    """J17: whole recorded pages are known, the tokens behind the last one are not."""
    content = content_for(opened(), 4)
    whole = content.whole(0, job(raw_key(tokens(24))))
    assert (content.stride, len(whole)) == (16, 30 * 4)
    assert whole[: 24 * 4] == raw_key(tokens(24))
    assert content.upto(whole, 20) == raw_key(tokens(20))
    assert content.unknown_pages(job(raw_key(tokens(24)))) == 0


def test_hashes_side_by_side_are_a_page_of_a_multiple_and_of_nothing_else() -> None:
    hashed = opened(redaction="hashed", stride=8)
    assert content_for(hashed, 24).stride == 24
    assert content_for(hashed, 24).upto(bytes(range(24)), 20) == bytes(range(16))
    for page_size in (4, 12, 20):
        with pytest.raises(NoFiner, match="--tokens plain"):
            content_for(hashed, page_size)


def test_pages_that_another_server_names_by_numbers_of_its_own_are_whole_pages() -> None:
    content = content_for(opened(stride=16), 16)
    assert (content.hashed, content.unit, content.stride) == (True, 16, 32)
    with pytest.raises(NoFiner):
        content_for(opened(stride=16), 4)


def test_a_page_of_two_tokens_has_a_stride_that_hashes_have_too() -> None:
    two = replace(opened(stride=8), config=Config(2, 40, 30, 20))
    assert not content_for(two, 2).hashed
    assert content_for(replace(two, redaction="hashed"), 2).hashed


def test_what_nobody_told_is_unlike_everything_and_always_the_same() -> None:
    """J17: it must not hit, and must not differ between two configurations."""
    content, short = content_for(opened(), PAGE), job(raw_key(tokens(8)))
    made = [content.whole(number, short)[32:] for number in (0, 1)]
    assert content.unknown_pages(short) == 2
    assert made[0] != made[1]
    assert made[0] == content_for(opened(), 4).whole(0, short)[32:]
    other_run = replace(opened(), run="other")
    assert made[0] != content_for(other_run, PAGE).whole(0, short)[32:]


def test_pairs_that_are_made_up_follow_from_those_before_them() -> None:
    """R257: a bigram key is known by its pairs."""
    content = content_for(opened(key_mode="bigram", stride=8 * PAGE), PAGE)
    for known in (bigram_key(tokens(9)), b""):
        whole = content.whole(0, job(known))
        assert len(whole) == 8 * 29
        assert whole.startswith(known)
        assert broken_pair(whole) == -1


def test_a_key_that_was_kept_back_is_kept_back_here() -> None:
    content, key = content_for(opened(), 4), raw_key(tokens(24))
    kept_back, all_of_it = job(key, given=1), job(key, given=3)
    assert content.given(content.whole(0, kept_back), kept_back) == raw_key(tokens(8))
    assert len(content.given(content.whole(0, all_of_it), all_of_it)) == 30 * 4
