"""The table of routes: who asks it, and what it refuses. What each route does is tested under its own name."""

import numpy as np
import pytest
from msgspec.structs import replace

from radixledger.cache.config import checked
from radixledger.cache.decide import eviction as decide_eviction
from radixledger.cache.decide import unified as decide_unified
from radixledger.cache.rank import RankCache
from radixledger.cache.routes import ROUTES, Route
from radixledger.cache.slices import Slice
from radixledger.cache.traits import TRAITS
from radixledger.journal.accounts import request_account
from radixledger.journal.causes import Operation
from radixledger.journal.sizes import BadConfig
from radixledger.journal.units import UNBOUND

from ..machine import opened
from ..model_tree import Shape
from ..witnesses import Tape

SHAPE = Shape(1, 2, 16, 16, row_pages=8)
KEY = b"a" * 16


def test_rules_and_traits_name_the_same_routes() -> None:
    """R200: what can be opened can be decided and folded."""
    assert list(ROUTES) == list(TRAITS)


def test_a_route_that_nobody_knows_is_refused_before_anything_is_built() -> None:
    """R14, R204: with the names that would do."""
    tape = Tape(replace(opened(SHAPE), route="hybrid"))
    for build in (checked, lambda first: RankCache(first, tape)):
        with pytest.raises(BadConfig, match="'hybrid' is not one of unified") as bad:
            build(tape.opened)
        assert bad.value.field == "route"
    assert tape.events == tape.open == []


def test_of_a_route_that_nobody_knows_no_pools_are_demanded() -> None:
    """R14: an edited `Opened` names its route as what is wrong, whichever sizes stand beside it."""
    first = opened(SHAPE)
    alone = replace(first.config, swa_pages=0, window_tokens=0, host_pages=4)
    for route in ("hybrid", ""):
        with pytest.raises(BadConfig, match=r"route: '.*' is not one of unified") as bad:
            checked(replace(first, route=route, config=alone, window_need=0))
        assert bad.value.field == "route"


class Asked:
    """Rules that write down what they are asked, and let the unified ones answer."""

    def __init__(self, rules: object) -> None:
        self.rules = rules
        self.asked = set[str]()

    def __getattr__(self, name: str) -> object:
        self.asked.add(name)
        return getattr(self.rules, name)


def test_a_rank_asks_its_route_for_everything_that_the_tree_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """R5: no command knows the rules of one route; a request's life is the same on all of them."""
    tree, eviction = Asked(decide_unified), Asked(decide_eviction)
    monkeypatch.setitem(ROUTES, "unified", Route(tree, eviction))  # type: ignore[arg-type]
    rank = RankCache(opened(SHAPE))
    rank.peek(KEY)
    assert tree.asked == {"look"}
    request = rank.admit("ada", KEY, 4).request
    assert tree.asked == {"look", "match"}
    rank.extend(np.array([request]), np.array([3], np.int32))
    rank.cache_unfinished(request, KEY[:12])
    assert tree.asked == {"look", "match", "insert", "go_on", "segment"}
    tree.asked.clear()
    rank.finish(request, KEY[:12])
    rank.insert(KEY, b"x", Slice(rank.alloc(4)[0], 0, 0, request_account(UNBOUND), UNBOUND, Operation.INSERT))
    rank.unlock(rank.lock(rank.match(KEY).node))
    assert tree.asked == {"insert", "match", "segment"}
    rank.evict(1, 1)
    rank.flush()
    assert eviction.asked == {"evict", "flush"}
