"""What a loss is said to mean: sentences with the journal's figures, and no advice that a route cannot take."""

from typing import Any

import pytest

from radixledger.journal.events import Evicted
from radixledger.replay.reuse.keeping import WHY, keeping_text, setting_to_try, stop_sentence, wanted_text
from radixledger.replay.reuse.misses import KINDS, Lost

from ..cache.driven import STATE_SHAPES, Driven
from .letters_served import PAGE, Letters, judged


def lost_again(server: Letters, text: str = "abcd") -> list[Lost]:
    """What a request that comes back with `text` has lost by now."""
    server.serve("again", text)
    return server.misses()["again"].lost


def test_every_kind_has_words() -> None:
    assert set(WHY) == set(KINDS)


def test_room_in_the_full_pool_is_counted_from_the_loss_to_the_request() -> None:
    """J17: it is called an estimate; a route that can have a host tier is told of it."""
    server = Letters(route="radix")
    server.serve("first", "abcd")
    server.rank.evict(4, 0)
    server.serve("other", "wxyz")
    server.rank.evict(3, 0)
    (lost,) = lost_again(server)
    assert lost.evicted_full == 8, "evictions take whole leaves: both were evicted"
    said = keeping_text(lost, server.journal.opened)
    assert said.startswith("About 8 more FULL pages (there are 30) would have kept it")
    assert "an estimate" in said
    assert setting_to_try(lost, server.journal.opened) == "full_pages=38"
    assert "Or a host tier" in said


@pytest.mark.parametrize(("route", "settings", "advised"), [
    ("unified", {}, True), ("unified", {"swa_victims": "use"}, False), ("legacy", {}, False),
])  # fmt: skip
def test_another_order_of_victims_is_advised_where_there_is_one(
    route: str, settings: dict[str, Any], advised: bool
) -> None:
    server = Letters(route=route, **settings)
    server.serve("first", "abcd")
    server.serve("second", "abcdef")
    server.rank.evict(0, 6)
    said = keeping_text(lost_again(server)[0], server.journal.opened)
    assert "more SWA page" in said
    assert ("--swa-victims use" in said) == advised


def test_with_so_much_more_room_it_is_kept() -> None:
    """The figure that is told is tried: the same schedule in a pool that is larger by it, told what its pool lacks."""

    def played(swa: int) -> tuple[int, list[Lost]]:
        server = Letters(swa=swa, full=60)
        hit = 0
        for rid, text in (("a", "abcd"), ("b", "abcdef"), ("c", "mnop"), ("d", "qrstu"), ("again", "abcd")):
            short = len(text) + 1 - server.rank.state.swa.available
            if short > 0:
                server.rank.evict(0, short)
            hit = server.serve(rid, text)
        return hit, server.misses()["again"].lost

    hit, lost = played(12)
    assert hit == 0
    assert {each.what for each in lost} == {"window"}
    assert played(12 + max(each.evicted_swa for each in lost)) == (4, [])


def test_a_flush_a_restart_and_an_outgrown_state_need_no_memory() -> None:
    server = Letters()
    server.serve("first", "abcd")
    server.rank.flush()
    (lost, *_) = lost_again(server)
    assert "on purpose" in keeping_text(lost, server.journal.opened)
    assert setting_to_try(lost, server.journal.opened) == ""
    assert wanted_text(lost) == ""


def test_states_are_told_of_as_states() -> None:
    """An admission takes a leaf for its state slot itself, and no `Evicted` tells of it; whoever was admitted wanted it."""
    drives = [Driven(seed, shape, route="radix").run(300) for shape in STATE_SHAPES for seed in (0, 4, 7)]
    lost: dict[str, Lost] = {}
    for driven in drives:
        for miss in judged(driven.journal.frames):
            lost |= {each.cause: each for each in miss.lost}
    opened = drives[0].journal.opened
    assert "A state stands at a leaf only" in keeping_text(lost["unfinished/outgrown"], opened)
    for cause in ("admit/state_leaf", "evict/state_leaf"):
        assert keeping_text(lost[cause], opened).startswith("More state slots (there are 9)")
        assert "took room next" in wanted_text(lost[cause])


def test_who_wanted_the_room_is_told_with_what_was_asked() -> None:
    server = Letters(route="radix")
    server.serve("first", "abcd")
    server.rank.evict(1, 0)
    evicted = server.last(Evicted)
    server.serve("other", "wxyz")
    (lost,) = lost_again(server)
    assert wanted_text(lost) == f"an eviction for 1 FULL page; other took room next (event {lost.wanted_seq})"
    assert lost.wanted_seq > evicted


def test_room_that_nobody_took_is_told_so() -> None:
    server = Letters(route="radix")
    server.serve("first", "abcd")
    server.rank.evict(1, 0)
    server.rank.evict(1, 0)
    (lost,) = lost_again(server)
    assert wanted_text(lost) == "an eviction for 1 FULL page; nobody took room before the next one"


@pytest.mark.parametrize(
    ("force", "says"), [(True, "told not to hit; the tree had 16"), (False, "it got all")]
)
def test_the_stop_of_a_match_is_said_in_words(force: bool, says: str) -> None:
    server = Letters()
    server.serve("first", "abcd")
    server.serve("second", "abcd", force_miss=force)
    miss = server.misses()["second"]
    assert says in stop_sentence(miss)
    assert miss.asked == 4 * PAGE
