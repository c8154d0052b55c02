"""A rank that watches itself: the laws of events are asked before an event is recorded, those of the state behind it."""

import pytest

from radixledger.cache.components.window import WindowComponent
from radixledger.cache.keys import raw_key
from radixledger.cache.laws import of_events as laws_of_events
from radixledger.cache.rank import RankCache
from radixledger.cache.refusals import LawBroken, RankPoisoned
from radixledger.cache.slices import Slice
from radixledger.cache.watch import Watched
from radixledger.journal.accounts import request_account
from radixledger.journal.causes import Operation
from radixledger.journal.units import UNBOUND

from .driven import Driven, FrameList, opened


@pytest.mark.parametrize("route", ["unified", "legacy", "swa_chunk"])
def test_what_a_lawful_rank_does_is_the_same_however_much_is_asked_of_it(route: str) -> None:
    """J14: the laws of events and of states let every command of a long run pass, refusals too, and change nothing."""
    plain, watched = Driven(11, route=route), Driven(11, route=route)
    watched.cache = RankCache(watched.journal.opened, watched.journal, digest_every=50, watched=Watched.STATE)
    plain.run(250)
    watched.run(250)
    assert watched.cache.digest() == plain.cache.digest()
    assert watched.journal.events == plain.journal.events


@pytest.mark.parametrize("level", [Watched.EVENTS, Watched.STATE])
def test_a_watched_rank_stops_before_the_wrong_event_is_recorded(
    level: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R95: a leaf that is longer than a window is seen when the insert goes on without cutting it."""
    monkeypatch.setattr(WindowComponent, "cuts", lambda *_: ())
    journal = FrameList(opened())
    cache = RankCache(journal.opened, journal, watched=level)
    key = raw_key(list(range(32)))
    full, _ = cache.alloc(8)
    begun = journal.count
    brought = Slice(full, 0, 0, int(request_account(UNBOUND)), UNBOUND, Operation.INSERT)
    with pytest.raises(LawBroken, match="an_insert_ends_in_a_live_leaf_of_one_window") as broken:
        cache.insert(key, b"", brought)
    assert (broken.value.seq, broken.value.law) == (begun + 1, laws_of_events.LAST_LEAF)
    assert journal.count == begun, "nothing of the command is recorded"
    with pytest.raises(RankPoisoned):
        cache.flush()
