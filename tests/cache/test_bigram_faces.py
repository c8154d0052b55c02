"""A server of sglang-jax with EAGLE: the same calls over keys of pairs (R10 lifted)."""

from collections.abc import Callable

import numpy as np
import pytest

from radixledger.cache.keys import KEY_MODES, KeyMode, Tokens
from radixledger.cache.prefix_cache import Ended, InsertParams
from radixledger.journal.events import Reclaimed, Transferred

from .server import Server, every_page_is_named_once, shape, text

paged = pytest.mark.parametrize("page_size", [1, 4, 16, 128])


def eagle(page_size: int = 4, window: int = 4, **more: int) -> Server:
    return Server(page_size, window, full_pages=64, swa_pages=64, is_eagle=True, **more)  # type: ignore[arg-type]


@paged
def test_a_life_of_pairs_is_told_in_the_tokens_of_its_row(page_size: int) -> None:
    """R257, R259, R260: chunks, decode, reclaims, an end; each cached length is one page lower where L fills a page."""
    server, page = eagle(page_size, page_size), page_size
    req = server.admit(text("a", 0, 6 * page))
    server.prefill(req, 4 * page)
    server.cache_so_far(req)
    stop = (4 * page - 1) // page * page
    assert (req.cache_protected_len, req.prefix_indices.size) == (stop, 4 * page)
    server.prefill(req)
    server.cache_so_far(req)
    assert req.cache_protected_len == (6 * page - 1) // page * page
    for _ in range(2 * page + 1):
        server.reclaim(req)
        server.decode(req)
    server.check()
    said = [*req.origin_input_ids, *req.output_ids]
    server.end(req)
    assert server.hit([*said, *text("b", 0, page)]) == 8 * page
    assert server.hit(said[: 8 * page]) == (8 * page - 1) // page * page
    assert every_page_is_named_once(server.rank())
    server.check()


@paged
def test_the_next_turn_starts_behind_what_the_last_one_said(page_size: int) -> None:
    """R259, R260: by match and admission, gated by the window, after the answer was reclaimed as it grew."""
    server, page = eagle(page_size, page_size), page_size
    req = server.start(text("a", 0, 3 * page + 1))
    for _ in range(6 * page):
        server.reclaim(req)
        server.decode(req)
    said = [*req.origin_input_ids, *req.output_ids]
    server.end(req)
    turn = server.admit([*said, *text("b", 0, 2 * page)])
    assert turn.cache_protected_len == turn.prefix_indices.size == 9 * page
    server.prefill(turn)
    server.end(turn)
    server.check()


@pytest.mark.parametrize("insert", [False, True])
def test_a_retracted_request_comes_back_to_what_it_left(insert: bool) -> None:
    """R147, R259: with insert or without; nothing is lost and nothing is held twice."""
    server = eagle()
    req = server.start(text("a", 0, 16))
    for _ in range(9):
        server.reclaim(req)
        server.decode(req)
    server.end(req, insert=insert, ended=Ended.RETRACTED)
    server.check()
    server.readmit(req)
    assert req.cache_protected_len == (20 if insert else 0)
    server.prefill(req)
    server.end(req)
    assert every_page_is_named_once(server.rank())
    server.check()


def test_a_reclaim_counts_what_is_committed_and_no_token_more() -> None:
    """R259: pairs of committed tokens end one before them, whatever a server calls the length."""
    server = eagle(4, 4)
    req = server.start(text("a", 0, 28))
    server.reclaim(req, 999)
    assert req.swa_evicted_seqlen == 16
    ahead = server.start(text("b", 0, 28))
    ahead.kv_committed_len = 20
    server.reclaim(ahead, 28)
    assert ahead.swa_evicted_seqlen == 8
    server.end(ahead)
    assert server.hit(text("b", 0, 28)) == 16
    assert [event.stop for event in server.journal.of(Reclaimed)] == [16, 8]
    server.check()


@pytest.mark.parametrize("mode", ["raw", "bigram"])
def test_a_server_builds_one_key_for_each_insert(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """R264: of the tokens once, whatever is done with it."""
    built: list[int] = []

    def counted(make: Callable[[Tokens], bytes]) -> Callable[[Tokens], bytes]:
        def count(tokens: Tokens) -> bytes:
            built.append(len(tokens))
            return make(tokens)

        return count

    lawful = KEY_MODES[mode]
    server = Server(4, 4, full_pages=64, swa_pages=64, is_eagle=mode == "bigram")
    req = server.start(text("a", 0, 16))
    monkeypatch.setitem(KEY_MODES, mode, KeyMode(counted(lawful.key_of), lawful.unit_bytes, lawful.lookahead))
    server.cache_so_far(req)
    server.decode(req)
    server.reclaim(req)
    server.end(req)
    assert built == [16, 17]


def test_a_node_shows_the_tokens_of_its_edge_and_a_drawing_their_positions() -> None:
    """R25: of pairs the first ones; the one behind the edge is the child's."""
    server = eagle()
    server.insert(text("a", 0, 17))
    node = server.match(text("a", 0, 9)).last_device_node
    assert np.array_equal(node.key.token_ids, text("a", 0, 8))
    assert "[8, 12)" in server.cache.pretty_print()


def test_a_slice_is_as_long_as_its_key_in_pairs() -> None:
    """R97, R257: slots of the last, unfinished page stay the caller's; fewer than the pairs are refused."""
    server = eagle()
    slots = server.slots(16)
    result = server.cache.insert(InsertParams(server.key(text("a", 0, 16)), slots))
    assert result.prefix_len == 0
    assert [len(event.full) // 4 for event in server.journal.of(Transferred)] == [2, 1]
    with pytest.raises(ValueError, match="12 slots were given for 16 tokens"):
        server.cache.insert(InsertParams(server.key(text("b", 0, 17)), server.slots(12)))


def test_a_tombstone_of_pairs_is_no_boundary_either() -> None:
    """R266, R73, R74: nothing was loosened to hide a short window; a fresh request heals it."""
    server = eagle(4, 7)
    server.insert(text("a", 0, 25))
    assert shape(server, text("a", 0, 25)) == "LLLL LL"
    server.evict(swa=16)
    assert shape(server, text("a", 0, 25)) == "dddd LL"
    assert server.hit(text("a", 0, 25)) == 24
    server.evict(swa=8)
    assert (server.hit(text("a", 0, 25)), server.rank().state.full.available) == (0, 60)
    req = server.start(text("a", 0, 25))
    server.end(req)
    assert shape(server, text("a", 0, 25)) == "LLLL LL"
    assert server.hit(text("a", 0, 25)) == 24
    server.check()
