"""What a server may get wrong at the faces: each is refused by the name of the argument, and nothing has happened."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from radixledger.cache.keys import namespace, raw_key
from radixledger.cache.prefix_cache import (
    DecLockRefParams,
    EvictParams,
    InsertParams,
    MatchPrefixParams,
    RadixKey,
)
from radixledger.cache.refusals import Refusal
from radixledger.cache.traits import TRAITS

from .server import Request, Server

TOKENS = list(range(30))
Call = Callable[[Server, Request], object]

UNNAMED: dict[str, tuple[str, Call]] = {
    "match_prefix without parameters": ("params", lambda s, _: s.cache.match_prefix(_no())),
    "match_prefix without a key": ("key", lambda s, _: s.cache.match_prefix(MatchPrefixParams(_no()))),
    "match_prefix for what is no request": (
        "req",
        lambda s, _: s.cache.match_prefix(MatchPrefixParams(s.key(TOKENS), _no(7))),
    ),
    "peek without a key": ("key", lambda s, _: s.cache.peek(_no())),
    "tokens that are no sequence": ("token_ids", lambda s, _: s.cache.peek(RadixKey(_no(7)))),
    "tokens in an array without length": ("token_ids", lambda s, _: s.cache.peek(RadixKey(np.array(7)))),
    "tokens that are fractions": ("token ids", lambda s, _: s.match([1.5] * 8)),  # type: ignore[list-item]
    "tokens that are texts": ("token ids", lambda s, _: s.match(["1"] * 8)),  # type: ignore[list-item]
    "tokens in one text": ("token ids", lambda s, _: s.match(_no("12345678"))),
    "a namespace that is a number": ("extra_key", lambda s, _: s.cache.peek(s.key(TOKENS, extra_key=_no(7)))),
    "a rank that is a text": ("dp_rank", lambda s, _: s.match(TOKENS, _no("0"))),
    "evict without parameters": ("params", lambda s, _: s.cache.evict(_no())),
    "evict a fraction": ("num_tokens", lambda s, _: s.cache.evict(EvictParams(_no(1.5)))),
    "evict for ever": ("swa_num_tokens", lambda s, _: s.cache.evict(EvictParams(0, _no(float("inf"))))),
    "evict states by name": ("recurrent_num", lambda s, _: s.cache.evict(EvictParams(0, 0, _no("two")))),
    "inc_lock_ref without a node": ("node", lambda s, _: s.cache.inc_lock_ref(None)),
    "dec_lock_ref without a node": ("node", lambda s, _: s.cache.dec_lock_ref(None)),
    "dec_lock_ref with a number as receipt": ("params", lambda s, q: s.cache.dec_lock_ref(q.last_node, _no(7))),
    "dec_lock_ref with a text as boundary": (
        "swa_uuid_for_lock",
        lambda s, q: s.cache.dec_lock_ref(q.last_node, DecLockRefParams(_no("7"))),
    ),
    "cache_unfinished_req without a request": ("req", lambda s, _: s.cache.cache_unfinished_req(_no())),
    "cache_finished_req without a request": ("req", lambda s, _: s.cache.cache_finished_req(_no())),
    "evict_req_swa without a request": ("req", lambda s, _: s.cache.evict_req_swa(_no(), 4)),
    "evict_req_swa without a length": ("pre_len", lambda s, q: s.cache.evict_req_swa(q, _no())),
    "the sizes of a rank that is a text": ("dp_rank", lambda s, _: s.cache.full_evictable_size(_no("0"))),
    "alloc of a fraction": ("need_size", lambda s, _: s.allocator.alloc(8.0)),
    "alloc for what is no request": ("req", lambda s, _: s.allocator.alloc(8, owner=7)),
    "alloc_extend for one owner too few": ("owner", lambda s, _: s.allocator.alloc_extend([0], [8], [-1], 8, owner=7)),
    "free by what is no request": ("req", lambda s, _: s.allocator.free([s.page_size], giver=7)),
    "rows for nothing": ("reqs", lambda s, _: s.pool.alloc(_no())),
    "rows for numbers": ("reqs", lambda s, _: s.pool.alloc(_no([7]))),
    "a row back from nobody": ("req", lambda s, _: s.pool.free(_no())),
    "a row by its name": ("row", lambda s, _: s.pool.read(_no("0"), 4)),
    "a write to nowhere": ("indices", lambda s, _: s.pool.write(_no(), [4])),
    "a write to half a row": ("indices", lambda s, _: s.pool.write((0.5, slice(0, 4)), [4, 5, 6, 7])),
    "a write from half a token on": ("indices", lambda s, _: s.pool.write((0, slice(0.5, 4)), [4, 5, 6, 7])),
}  # fmt: skip


def _no(value: Any = None) -> Any:
    """What no type checker would let through."""
    return value


def serving(route: str) -> tuple[Server, Request]:
    """A server with one live request, whose first pages the tree has where there is one."""
    server = Server(route=route, rows=4, context=64)
    request = server.start(TOKENS, "live")
    server.cache_so_far(request)
    return server, request


@pytest.mark.parametrize("route", TRAITS)
@pytest.mark.parametrize("wrong", UNNAMED)
def test_what_is_no_argument_is_refused_by_its_name(wrong: str, route: str) -> None:
    server, request = serving(route)
    before, seq = server.rank().digest(), server.rank().state.seq
    name, call = UNNAMED[wrong]
    with pytest.raises((TypeError, NotImplementedError)) as caught:
        call(server, request)
    if caught.type is TypeError:
        assert name in str(caught.value)
    assert (server.rank().digest(), server.rank().state.seq) == (before, seq)
    server.end(request)
    server.check()


def test_slots_that_are_given_to_the_tree_are_named_too() -> None:
    server, _ = serving("unified")
    key = server.key([1, 2, 3, 4])
    for name, params in (
        ("params", None),
        ("key", InsertParams(_no(), [4, 5, 6, 7])),
        ("prev_prefix_len", InsertParams(key, [4, 5, 6, 7], _no("4"))),
        ("swa_evicted_seqlen", InsertParams(key, [4, 5, 6, 7], 0, _no(0.5))),
    ):
        with pytest.raises(TypeError, match=name):
            server.cache.insert(_no(params))


@pytest.mark.parametrize(("row", "count"), [(-1, 4), (4, 4), (0, -1), (0, 65), (1 << 40, 4)], ids=str)
def test_a_row_is_read_where_there_is_one(row: int, count: int) -> None:
    """-1 is no row: numpy would take it for the last one."""
    server, _ = serving("unified")
    with pytest.raises(ValueError, match=f"{count} slots of row {row}; there are 4 rows of 64"):
        server.pool.read(row, count)


@pytest.mark.parametrize("where", [slice(0, 10**12), slice(-4, None), slice(8, 4), slice(0, 8, 2)], ids=str)
def test_a_row_is_written_where_there_is_one(where: slice) -> None:
    """As many positions as nobody's memory could list are refused before they are listed."""
    server, _ = serving("unified")
    with pytest.raises(ValueError, match="a row of 64 is written in one run of positions"):
        server.pool.write((0, where), [4, 5, 6, 7])


def test_a_node_of_another_cache_is_not_locked_here() -> None:
    """Nodes are numbered in every cache from 1 on: a handle that outlived its cache would lock somebody else's path."""
    server, request = serving("unified")
    other, foreign = serving("unified")
    before = server.rank().digest()
    assert foreign.last_node == request.last_node  # by number
    for call in (
        lambda: server.cache.inc_lock_ref(foreign.last_node),
        lambda: server.cache.dec_lock_ref(foreign.last_node, foreign.cache_lock_params),
    ):
        with pytest.raises(Refusal, match="is of another cache's rank 0"):
            call()
    assert server.rank().digest() == before
    other.end(foreign)


def test_a_receipt_is_good_for_one_release() -> None:
    """R122."""
    server, request = serving("unified")
    receipt = server.cache.inc_lock_ref(request.last_node).to_dec_params()
    server.cache.dec_lock_ref(request.last_node, receipt)
    with pytest.raises(Refusal, match="is not held, but by"):
        server.cache.dec_lock_ref(request.last_node, receipt)
    server.end(request)
    server.check()


def test_tokens_are_integers_of_any_kind() -> None:
    """B141: whatever holds the same numbers makes the same key; what a key cannot hold is refused."""
    key = raw_key([1, 2, 3, 4])
    for same in (
        (1, 2, 3, 4),
        range(1, 5),
        np.array([1, 2, 3, 4], np.uint8),
        np.array([1, 2, 3, 4], ">i4"),
        np.arange(1, 9, dtype=np.int32)[:4],
        [np.int64(1), 2, 3, 4],
    ):
        assert raw_key(_no(same)) == key
    for beyond in ([1 << 31], [1 << 63, -1], [1 << 80], np.array([1 << 63], np.uint64)):
        with pytest.raises(OverflowError, match="a key holds int32"):
            raw_key(_no(beyond))
    for none in (
        [1.0],
        [float("nan")],
        ["1"],
        [None],
        "1",
        b"1",
        7,
        {1, 2},
        {1: 2},
        np.array([1.0]),
        np.array([True]),
    ):
        with pytest.raises(TypeError, match="token ids are"):
            raw_key(_no(none))


@pytest.mark.parametrize("name", ["extra_key", "lora_id", "cache_salt"])
def test_the_parts_of_a_namespace_are_texts(name: str) -> None:
    """B84."""
    with pytest.raises(TypeError, match=f"{name}: a string is needed, not int"):
        namespace(**{name: 7})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=f"{name}: .* is no text"):
        namespace(**{name: "\ud800"})
