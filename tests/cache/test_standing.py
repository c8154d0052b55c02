"""What FULL pressure asks before recency: nothing, whether a path was hit again and again, or how important it is."""

import pytest
from msgspec.structs import replace

from radixledger.cache.decide import eviction as decide_eviction
from radixledger.cache.digest import digest
from radixledger.cache.eviction import oldest_leaf
from radixledger.cache.image import image, restore
from radixledger.cache.keys import raw_key
from radixledger.cache.rank import RankCache
from radixledger.cache.refusals import LawBroken
from radixledger.cache.state import Node, State
from radixledger.cache.watch import Watched
from radixledger.journal.events import Admitted
from radixledger.journal.sizes import BadConfig

from ..machine import opened
from ..model_tree import Shape
from .driven import SHAPES, Driven, FrameList
from .driven import opened as small
from .test_recency import key, path, put
from .test_use import Served


def served(eviction: str, watched: Watched = Watched.BOOKS) -> Served:
    return Served(Shape(page=1, window=2, full=60, swa=60, row_pages=30, eviction=eviction), watched)


def kept(house: Served, *texts: str) -> list[str]:
    return [text for text in texts if house.rank.peek(key(text), full_only=True).full_tokens == len(text)]


@pytest.mark.parametrize(("eviction", "survivors"), [("lru", []), ("slru", ["shared"])])
def test_prompts_that_nobody_repeats_do_not_take_the_shared_ones_along(
    eviction: str, survivors: list[str]
) -> None:
    """R102: a path that was hit twice goes after all that was not, however old it is."""
    house = served(eviction)
    put(house.rank, "shared")
    put(house.rank, "once..")
    for _ in range(2):
        house.rank.match(key("shared"))
    house.rank.match(key("once.."))
    for letter in "ABCDEF":
        put(house.rank, letter * 6)
    house.rank.evict(12, 0)
    assert kept(house, "shared", "once..") == survivors
    house.rank.evict(99, 0)
    assert len(house.rank.state.nodes) == 1, "what is protected goes too, once there is nothing else"


def test_a_path_is_protected_as_far_as_it_was_hit() -> None:
    """A cut keeps what both parts were, and what comes later begins anew."""
    house = served("slru")
    put(house.rank, "abcdef")
    for _ in range(2):
        house.rank.match(key("abc"))
    put(house.rank, "abcxyz")
    put(house.rank, "later.")
    house.rank.evict(6, 0)
    assert kept(house, "abc", "abcdef", "abcxyz", "later.") == ["abc", "later."]
    house.rank.evict(6, 0)
    assert kept(house, "abc", "later.") == ["abc"]


def turn(house: Served, text: str, priority: int) -> None:
    house.count += 1
    request = house.rank.admit(f"r{house.count}", key(text), len(text), priority=priority).request
    house.compute(request, text)
    house.rank.finish(request, key(text))


def test_the_least_important_goes_first_and_the_oldest_of_its_equals() -> None:
    """R102: by priority, then by age; the request's priority stands in its admission."""
    house = served("priority")
    for text, priority in (("aaaaaa", 5), ("bbbbbb", 0), ("cccccc", -3), ("dddddd", 0)):
        turn(house, text, priority)
    texts = ("aaaaaa", "bbbbbb", "cccccc", "dddddd")
    for survivors in (["aaaaaa", "bbbbbb", "dddddd"], ["aaaaaa", "dddddd"], ["aaaaaa"], []):
        house.rank.evict(6, 0)
        assert kept(house, *texts) == survivors
    told = [event.priority for event in house.tape.events if isinstance(event, Admitted)]
    assert told == [5, 0, -3, 0]


def test_a_path_is_as_important_as_the_most_important_request_that_used_it() -> None:
    """It does not lose that when its end goes, and a less important request takes nothing from it."""
    house = served("priority")
    turn(house, "abcdef", 0)
    turn(house, "abcdefghi", 7)
    turn(house, "abcdef", -1)
    turn(house, "zzzzzz", 1)
    assert [node.priority for node in path(house.rank, "abcdefghi")][-1] == 7
    house.rank.evict(1, 0)
    assert kept(house, "zzzzzz", "abcdefghi") == ["abcdefghi"]
    house.rank.evict(1, 0)
    end = path(house.rank, "abcdefghi")[-1]
    assert (end.children, end.priority) == (None, 7), "what is left of the path is as important as what went"


def test_what_a_stranger_brings_is_worth_nobodys_priority_and_so_is_the_way_to_it() -> None:
    """R102: an insert of nobody's counts 0, and a path below that inherits it when its end goes."""
    house = served("priority")
    turn(house, "shared", -1)
    put(house.rank, "shared..")
    turn(house, "nobody", -1)
    assert [node.priority for node in house.rank.state.nodes.values() if not node.children] == [0, -1]
    house.rank.evict(6, 0)
    assert kept(house, "shared..", "nobody") == ["shared.."]
    house.rank.evict(2, 0)
    assert [node.priority for node in house.rank.state.nodes.values() if not node.children] == [0]
    assert kept(house, "shared") == ["shared"]


def test_without_the_policy_a_priority_is_written_down_and_changes_nothing() -> None:
    """R68, R102: recency alone chooses."""
    house = served("lru")
    turn(house, "aaaaaa", 9)
    turn(house, "bbbbbb", -9)
    house.rank.evict(6, 0)
    assert kept(house, "aaaaaa", "bbbbbb") == ["bbbbbb"]
    assert {node.priority for node in house.rank.state.nodes.values()} == {0}


def by(eviction: str, seed: int, shape: tuple[int, int, int, int]) -> Driven:
    first = small(shape)
    config = replace(first.config, eviction=eviction)
    return Driven(seed, shape, recorder=FrameList(replace(first, config=config)))


def standing(state: State, node: Node) -> tuple[int, int, int]:
    before = {"slru": int(node.hits > 2), "priority": node.priority}
    return before[state.config.eviction], node.tick, node.id


@pytest.mark.parametrize("eviction", ["slru", "priority"])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_next_full_victim_is_the_one_that_a_scan_would_choose(
    eviction: str, shape: tuple[int, int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """R102, R70: among the childless nodes that nothing holds; a state restored from its image chooses the same."""
    driven, seen = by(eviction, 3, shape), set()
    cache, plain = driven.cache, driven.cache.admit
    monkeypatch.setattr(
        cache, "admit", lambda *given, **more: plain(*given, **more, priority=driven.count % 4 - 1)
    )
    for step in driven.steps(250):
        cache.match(raw_key(driven.texts[0]))
        leaves = {
            standing(cache.state, node): node
            for node in cache.state.nodes.values()
            if node.parent and not node.children and not node.holds
        }
        expected = leaves[min(leaves)] if leaves else None
        assert oldest_leaf(cache.state) is expected
        seen |= {before for before, _, _ in leaves}
        if step % 50 == 49:
            again = restore(image(cache.state))
            assert digest(again) == digest(cache.state)
            other = oldest_leaf(again)
            assert (other and other.id) == (expected and expected.id)
    assert len(seen) == {"slru": 2, "priority": 4}[eviction]


def test_who_watches_sees_a_victim_out_of_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """J14, R102: the laws of events judge by the order that the rank was opened with."""
    house = served("priority", Watched.EVENTS)
    turn(house, "aaaaaa", 5)
    turn(house, "bbbbbb", 0)
    monkeypatch.setattr(decide_eviction, "oldest_leaf", lambda _: path(house.rank, "aaaaaa")[-1])
    with pytest.raises(LawBroken) as found:
        house.rank.evict(1, 0)
    assert found.value.law == "the_victim_is_the_oldest_candidate"


def test_a_policy_that_nobody_knows_is_refused_and_one_that_a_route_cannot_follow() -> None:
    """R14: before anything is built."""
    first = small()
    with pytest.raises(BadConfig, match="lru, slru, priority"):
        RankCache(replace(first, config=replace(first.config, eviction="lfu")))
    chunk = opened(Shape(page=1, window=0, full=20, swa=0, route="chunk"))
    with pytest.raises(BadConfig, match="give lru"):
        RankCache(replace(chunk, config=replace(chunk.config, eviction="slru")))
