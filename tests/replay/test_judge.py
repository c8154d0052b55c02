"""Misses are traced to the event that took what they needed: schedules made by hand, and a probe that measures it."""

from collections.abc import Collection

import numpy as np
import pytest
from msgspec.structs import replace

from radixledger.cache.rank import RankCache
from radixledger.journal.causes import label
from radixledger.journal.events import (
    Evicted,
    Extended,
    Flushed,
    Freed,
    GroupOpened,
    Healed,
    Matched,
    Opened,
    Reclaimed,
    Removed,
    Tombstoned,
)
from radixledger.journal.units import NodeId, Seq
from radixledger.replay.fold import moments
from radixledger.replay.reuse.keeping import because_text
from radixledger.replay.reuse.memory import Memory
from radixledger.replay.reuse.misses import KINDS

from ..cache.driven import CHUNK_SHAPES, FULL_SHAPES, SHAPES, STATE_SHAPES, Driven
from ..cache.server import Server
from .letters_served import PAGE, Letters, judged, kinds
from .runs import framed


def test_a_window_that_pressure_took_is_named_with_who_wanted_its_room() -> None:
    """N14: the tombstone of the inner node, not the match that met it."""
    server = Letters()
    server.serve("first", "abcd")
    server.serve("second", "abcdef")
    server.rank.evict(0, 4)  # the tail of "abcd" has children: its window goes, its FULL pages stay
    pressed = server.last(Tombstoned)
    server.serve("third", "xyz")
    assert server.serve("fourth", "abcd") == 0
    miss = server.misses()["fourth"]
    (lost,) = miss.lost
    assert kinds(miss) == {"lost": 4}
    assert (miss.stop, miss.full_hit, lost.what, lost.cause) == (
        "window_dead",
        16,
        "window",
        "evict/swa_internal",
    )
    events = server.journal.events
    assert type(events[lost.seq - 1]) is Tombstoned
    assert lost.seq <= pressed
    assert (lost.cached_by, lost.asked_full, lost.asked_swa) == ("first", 0, 4)
    assert lost.wanted_by == ["third"]
    assert type(events[lost.wanted_seq - 1]) is Extended


def test_a_leaf_that_full_pressure_removed_is_named() -> None:
    server = Letters()
    server.serve("first", "abcd")
    server.serve("other", "xyz")
    server.rank.evict(4, 0)
    removed = [seq for seq, event in enumerate(server.journal.events, 1) if type(event) is Removed]
    assert server.serve("again", "abcd") == 0
    miss = server.misses()["again"]
    assert kinds(miss) == {"lost": 4}
    assert miss.stop == "no_child"
    assert {lost.seq for lost in miss.lost} <= set(removed)
    assert {lost.cause for lost in miss.lost} == {"evict/full_leaf"}
    assert sum(lost.tokens for lost in miss.lost) == 16
    assert {lost.cached_by for lost in miss.lost} == {"first"}


def test_what_was_healed_is_not_lost_and_what_dies_again_is_lost_to_the_second_event() -> None:
    """R87: a heal makes good what the first event took."""
    server = Letters()
    server.serve("first", "abcd")
    server.serve("second", "abcdef")
    server.rank.evict(0, 4)
    former = server.last(Tombstoned)
    server.serve("third", "abcd")
    assert server.last(Healed) > former
    assert server.serve("fourth", "abcd") == 4
    server.serve("fifth", "abcdef")
    server.rank.evict(0, 20)
    latter = server.last(Tombstoned)
    server.serve("sixth", "abcd")
    misses = server.misses()
    assert kinds(misses["fourth"]) == {"hit": 4}
    assert misses["sixth"].lost_tokens == 16
    assert {former < lost.seq <= latter for lost in misses["sixth"].lost} == {True}


def test_what_two_events_took_is_shared_between_them() -> None:
    """The leaf of the second turn went first, that of the first turn later: each cost what it took."""
    server = Letters(route="radix")
    server.serve("first", "ab")
    server.serve("second", "abcd")
    server.rank.evict(2, 0)
    deep = server.last(Removed)
    server.rank.evict(2, 0)
    shallow = server.last(Removed)
    server.serve("third", "abcd")
    lost = server.misses()["third"].lost
    assert [(each.seq, each.start // PAGE, each.stop // PAGE) for each in lost] == [
        (shallow, 0, 2),
        (deep, 2, 4),
    ]


def test_a_window_whose_full_pages_went_later_says_so() -> None:
    server = Letters()
    server.serve("first", "abcd")
    server.serve("second", "abcdef")
    server.rank.evict(0, 6)
    dead = server.last(Tombstoned)
    server.rank.evict(20, 0)
    server.serve("third", "abcd")
    (lost, *_) = server.misses()["third"].lost
    assert lost.seq <= dead < lost.also_seq
    assert lost.also_cause == "evict/full_leaf"


def test_never_cached_and_computed_meanwhile_are_told_apart() -> None:
    """Two requests for one prompt at once compute it twice; neither lost anything."""
    server = Letters()
    one, two = server.admit("one", "abcd"), server.admit("two", "abcdef")
    server.compute(one, "abcd")
    server.compute(two, "abcdef")
    misses = server.misses()
    assert kinds(misses["one"]) == {"never_cached": 4}
    assert kinds(misses["two"]) == {"concurrent": 4, "never_cached": 2}
    assert misses["two"].stretches[0].cached_by == "one"


def test_pages_that_never_had_a_window_behind_them_are_not_lost() -> None:
    """R94, R132: a request that gave its window back leaves FULL pages without one."""
    server = Letters(full=60)
    request = server.admit("long", "abcdefghijkl")
    server.rank.extend(np.array([request], np.int64), np.array([12 * PAGE + 1], np.int32))
    server.rank.reclaim(request, 12 * PAGE)
    server.rank.finish(request, server.key("abcdefghijkl"))
    assert server.serve("short", "abcd") == 0
    miss = server.misses()["short"]
    assert kinds(miss) == {"not_usable": 4}
    assert miss.full_hit == 16
    why = miss.stretches[0]
    assert (why.kind, why.cached_by, why.seq) == ("not_usable", "long", server.last(Reclaimed))
    assert (why.event, why.cause) == ("Reclaimed", "reclaim")


def test_a_leaf_that_was_vetoed_is_named_as_a_guess() -> None:
    """R93, N14: the text of what was not kept is told to nobody; that something was, and where, is."""
    server = Letters(full=60, swa=40)
    server.serve("first", "ab")
    request = server.admit("long", "abcdefghijkl")
    server.rank.extend(np.array([request], np.int64), np.array([10 * PAGE + 1], np.int32))
    server.rank.reclaim(request, 12 * PAGE)
    server.rank.finish(request, server.key("abcd"))
    vetoed = next(
        seq
        for seq, event in enumerate(server.journal.events, 1)
        if type(event) is Freed and label(event.cause) == "finish/veto"
    )
    assert server.serve("again", "abcd") == 2
    miss = server.misses()["again"]
    assert kinds(miss) == {"hit": 2, "never_cached": 2}
    (why, _) = miss.stretches
    assert (why.kind, why.seq, why.event, why.cause) == ("never_cached", vetoed, "Freed", "finish/veto")
    assert "perhaps" in because_text(why)
    assert server.serve("other", "abxy") == 2


def test_a_request_that_was_told_not_to_hit_lost_nothing() -> None:
    server = Letters()
    server.serve("first", "abcd")
    server.serve("second", "abcdef", force_miss=True)
    assert kinds(server.misses()["second"]) == {"forced": 4, "never_cached": 2}


def test_a_key_that_was_never_told_is_not_guessed() -> None:
    server = Letters()
    server.serve("first", "abcd")
    server.rank.evict(20, 0)
    server.rank.abort(server.admit("gone", "abcd"))
    assert kinds(server.misses()["gone"]) == {"untold": 4}


def test_a_flush_and_a_restart_are_causes_too() -> None:
    server = Letters()
    server.serve("first", "abcd")
    server.rank.flush()
    server.serve("second", "abcd")
    assert {lost.cause for lost in server.misses()["second"].lost} == {"flush"}
    assert server.last(Flushed) > server.misses()["second"].lost[0].seq
    again = replace(server.journal.opened, epoch=1)
    server.journal.append(again)
    server.journal.end_command()
    restart = server.last(Opened)
    server.rank = RankCache(again, server.journal, seq=Seq(restart))
    server.serve("third", "abcd")
    (lost,) = server.misses()["third"].lost
    assert (lost.seq, lost.event, lost.what) == (restart, "Opened", "everything")


def test_what_went_to_the_host_was_lost_on_the_device() -> None:
    server = Letters(route="radix", host_pages=10, host_threshold=1)
    server.serve("first", "abcd")
    for copy in server.rank.write_through(NodeId(max(server.rank.state.nodes))):
        server.rank.gathered(copy.transfer)
        server.rank.end_backup(copy.transfer, True)
    server.rank.evict(4, 0)
    server.serve("second", "abcd")
    miss = server.misses()["second"]
    assert (miss.stop, miss.host_hit) == ("on_host", 16)
    assert [(lost.event, lost.what, lost.cause) for lost in miss.lost] == [
        ("Demoted", "prefix on the device", "evict/host_copy")
    ]


def test_memory_is_bounded_and_says_what_it_forgot() -> None:
    """A page that was forgotten counts as never cached, and how many there are is told."""
    server = Letters(route="radix")
    server.serve("first", "abcd")
    server.rank.evict(4, 0)
    server.serve("other", "wxyz")
    server.rank.evict(4, 0)
    server.serve("again", "abcd")
    assert kinds(server.misses(pages=8)["again"]) == {"lost": 4}
    assert kinds(server.misses(pages=4)["again"]) == {"never_cached": 4}


def test_memory_holds_the_tree_that_stands_and_what_it_was_told_to_remember() -> None:
    """Whatever the journal does, nothing else grows: stays are those of live nodes, gone pages are counted and cut."""
    frames, memory, state = Driven(5, SHAPES[1]).run(600).journal.frames, Memory(pages=20), None
    for moment in moments(frames):
        memory.see(*moment)
        state = moment.state
        assert len(memory.stays) <= len(state.nodes)
        assert len(memory.gone) <= 20
    assert state is not None
    assert set(memory.stays) == set(state.nodes) - {0}
    assert memory.gone.forgotten > 100


@pytest.mark.parametrize("route", ["chunk", "swa_chunk"])
def test_a_route_without_a_tree_loses_nothing(route: str) -> None:
    server = Letters(route=route)
    request = server.admit("first", "abcd")
    server.rank.extend(np.array([request], np.int64), np.array([17], np.int32))
    server.rank.finish(request, None)
    assert server.misses()["first"].kinds == dict.fromkeys(KINDS, 0) | {"untold": 17}


@pytest.mark.parametrize("route", ["unified", "legacy", "radix"])
def test_a_server_that_keeps_its_own_rows_is_followed_by_its_request_ids(route: str) -> None:
    """R144: it matches first and takes a row later; a match is joined to the admission by the request id."""
    server = Server(4, 4, route=route)
    prompt = [*range(16), 99]
    for rid in ("first", "second"):
        req = server.start(prompt, rid)
        server.cache_so_far(req)
        server.end(req)
        if rid == "first":
            server.evict(full=64)
    first, second = judged(framed([server.journal.opened, *server.journal.events]))
    assert (first.rid, kinds(first)) == ("first", {"never_cached": 4})
    assert (second.rid, kinds(second)) == ("second", {"lost": 4})
    assert {lost.cause for lost in second.lost} == {"evict/full_leaf"}


def test_an_admission_without_a_match_is_judged_by_its_whole_pages() -> None:
    """A recorder of another server may tell no matches: what was cached once and is computed again is lost all the same."""
    server = Letters(route="radix")
    server.serve("first", "abcd")
    server.rank.evict(4, 0)
    server.serve("second", "abcd")
    frames = [
        frame._replace(events=[GroupOpened() if type(event) is Matched else event for event in frame.events])
        for frame in server.journal.frames
    ]
    _, second = judged(frames)
    assert (second.stop, second.asked, kinds(second)) == ("not_told", 16, {"lost": 4})


# -- measured ------------------------------------------------------------------------------------------------

Question = tuple[bytes, bytes]
"""A key, whole pages that may hit, and its namespace."""

DRIVES = [
    *((shape, "unified") for shape in SHAPES),
    *((shape, "legacy") for shape in SHAPES),
    *((shape, "radix") for shape in (*FULL_SHAPES, *STATE_SHAPES)),
    *((shape, route) for route, shape in CHUNK_SHAPES.items()),
]


def probed(
    shape: tuple[int, ...], route: str, questions: Collection[Question]
) -> tuple[Driven, dict[str, Question], list[tuple[int, dict[Question, int]]]]:
    """A drive, what each request asked, and after every command how far each of some keys would have hit."""
    driven, stride = Driven(3, shape, route=route), 4 * shape[0]
    asked: dict[str, Question] = {}
    admit = driven.cache.admit

    def heard(rid: str, key: bytes, prompt: int, space: bytes = b"", **how: bool) -> object:
        asked[rid] = (key[: (prompt - 1) // shape[0] * stride], space)
        return admit(rid, key, prompt, space, **how)

    driven.cache.admit = heard  # type: ignore[method-assign,assignment]
    history = []
    for _ in driven.steps(160):
        hits = {(key, space): int(driven.cache.peek(key, space).tokens) for key, space in questions}
        history.append((int(driven.cache.state.seq), hits))
    return driven, asked, history


@pytest.mark.parametrize(("shape", "route"), DRIVES)
def test_what_was_lost_is_what_a_probe_of_the_same_prompt_measured(
    shape: tuple[int, ...], route: str
) -> None:
    """N14 on every route: the same prompt was looked up, without a trace, after every command of the run.

    What it would have hit at best, up to what the journal tells of its key, less what it did hit, was lost or refused by
    force; and each event that is named is one at which the probe fell by so much, and behind which it never came back.
    """
    driven, asked, _ = probed(shape, route, ())
    misses, stride = judged(driven.journal.frames, stays=10_000), 4 * shape[0]
    known = {
        miss.rid: (asked[miss.rid][0][: max(miss.known, miss.hit) // shape[0] * stride], asked[miss.rid][1])
        for miss in misses
    }
    _, _, history = probed(shape, route, set(known.values()))
    assert misses
    assert any(type(event) is Evicted for event in driven.journal.events) or route.endswith("chunk")
    for miss in misses:
        hits = [(seq, hits[known[miss.rid]]) for seq, hits in history if seq < miss.seq]
        best = max((hit for _, hit in hits), default=0)
        assert sum(miss.kinds.values()) == miss.prompt
        assert miss.lost_tokens + miss.kinds["forced"] == max(0, best - miss.hit), miss
        for lost in miss.lost:
            before = [hit for seq, hit in hits if seq < lost.seq]
            behind = [hit for seq, hit in hits if seq >= lost.seq]
            assert before[-1] >= lost.stop
            assert max(behind, default=0) < lost.stop
