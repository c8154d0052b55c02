"""Every law of the host tier fails on a state that was spoiled for it, and every law of its events on a wrong event."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from radixledger.cache.evolve import begin, evolve
from radixledger.cache.laws import of_host_events as event_laws
from radixledger.cache.laws import of_the_host as host
from radixledger.cache.laws.event_law import EventLaw
from radixledger.cache.laws.law import Law
from radixledger.cache.laws.of_events import EventLaws
from radixledger.cache.state import State
from radixledger.journal.accounts import PENDING, tree_account
from radixledger.journal.events import (
    Adopted,
    AnyEvent,
    BackupBegun,
    Demoted,
    HostDropped,
    LoadBegun,
    LoadEnded,
    Matched,
    Opened,
)
from radixledger.journal.units import NodeId, TokenCount

from .hosted import Hosted, hosted, pages
from .spoiled import Spoil, check_that_it_fails, name, set_of


def quiet_state() -> State:
    """Path "abcd" is node 1 "ab", on the device with a copy, above node 2 "cd", a FULL tombstone that a load brings back.

    Node 3, "xy", is on the device, and a backup of it is under way; node 4, "z", is a FULL tombstone alone.
    """
    rank = Hosted()
    rank.insert("ab")
    rank.insert("abcd")
    rank.insert("xy")
    rank.insert("z")
    rank.back_up("abcd")
    rank.back_up("z")
    for text in ("z", "abcd", "xy"):
        rank.match(text)
    rank.rank.evict(3, 0)
    (copy,) = rank.rank.write_through(NodeId(3))
    rank.rank.gathered(copy.transfer)
    rank.rank.load_back(NodeId(2))
    return rank.state


BACKUP, LOAD = 4, 5
"""The transfers that are under way."""

SPOILS: list[tuple[Law, Spoil]] = [
    (host.what_is_on_the_device_begins_at_the_root, set_of(1, "full", b"")),
    (host.what_is_on_the_device_begins_at_the_root, set_of(1, "demoted", 0)),
    (host.every_copy_lands_by_a_transfer, set_of(4, "backup", BACKUP)),
    (host.every_copy_lands_by_a_transfer, set_of(3, "host", pages(1, 2))),
    (host.nothing_holds_a_copy_that_has_not_landed, set_of(2, "backup", BACKUP)),
    (host.every_page_in_flight_is_written_by_its_transfer, lambda state: state.transfers.pop(BACKUP)),
    (
        host.every_page_in_flight_is_written_by_its_transfer,
        lambda state: setattr(state.transfers[LOAD], "receipt", None),
    ),
    (host.a_transfer_has_the_pages_that_are_left, lambda state: setattr(state.transfers[LOAD], "left", 1)),
    (host.a_transfer_has_the_pages_that_are_left, lambda state: setattr(state, "next_transfer", LOAD)),
    (host.a_load_ends_where_it_began, set_of(2, "host", b"")),
    (host.a_load_ends_where_it_began, set_of(2, "holds", 0)),
    (host.a_load_ends_where_it_began, lambda state: setattr(state.transfers[LOAD], "node", NodeId(77))),
    (host.copies_that_stand_alone_equal_a_recount, lambda state: setattr(state, "host_bare", 0)),
    (host.copies_that_stand_alone_equal_a_recount, lambda state: setattr(state, "host_protected", 0)),
    (host.uses_are_counted_up_to_the_threshold, set_of(4, "hits", 2)),
    (host.uses_are_counted_up_to_the_threshold, set_of(1, "hits", 0)),
]


@pytest.mark.parametrize(("broken", "spoil"), SPOILS, ids=name)
def test_a_law_of_the_host_tier_fails_on_a_state_that_was_spoiled_for_it(broken: Law, spoil: Spoil) -> None:
    """J28, B19: each law is shown able to fail."""
    check_that_it_fails(broken, spoil, quiet_state())


def test_every_law_of_the_host_tier_has_a_state_that_breaks_it() -> None:
    assert {law for law, _ in SPOILS} == set(host.LAWS)


def told() -> list[AnyEvent]:
    """The events of a rank whose copies were written through and back, adopted, loaded and dropped."""
    through = Hosted(hosted(host=4))
    through.insert("ab")
    through.back_up("ab")
    through.rank.evict(1, 0)
    through.match("ab")
    through.insert("a")
    through.bring_back(through.match("ab").host_node)
    through.insert("cd")
    through.rank.evict(2, 0)
    through.back_up("cd")
    through.rank.evict(9, 0)
    through.rank.evict_copies(1)
    return through.journal.events


def with_one_changed(kind: type, change: Callable[[AnyEvent], AnyEvent]) -> set[str]:
    """What the laws of events say when one event of a kind comes changed, in a journal that is right up to there."""
    opened, *events = told()
    assert isinstance(opened, Opened)
    state, laws = begin(opened), EventLaws()
    for event in events:
        if type(event) is kind:
            return {finding.law for finding in laws.broken_by(state, [change(event)], 0)}
        evolve(state, event)
    raise AssertionError(f"no {kind.__name__} was told")


WRONG: list[tuple[EventLaw, type, Callable[[AnyEvent], AnyEvent]]] = [
    (event_laws.a_copy_is_made_when_it_is_due, BackupBegun, lambda event: replace(event, node=NodeId(0))),
    (event_laws.what_is_demoted_is_the_oldest_leaf, Demoted, lambda event: replace(event, full=pages(1))),
    (
        event_laws.what_is_dropped_is_the_oldest_copy,
        HostDropped,
        lambda event: replace(event, node=NodeId(99)),
    ),
    (
        event_laws.a_full_tombstone_takes_what_a_request_brings,
        Adopted,
        lambda event: replace(event, giver=int(tree_account(NodeId(3)))),
    ),
    (event_laws.a_load_holds_its_path, LoadBegun, lambda event: replace(event, above=NodeId(1))),
    (
        event_laws.what_was_not_loaded_goes_where_the_group_says,
        LoadEnded,
        lambda event: replace(event, landed=False, to=int(PENDING)),
    ),
    (
        event_laws.a_match_reaches_copies_that_can_be_read,
        Matched,
        lambda event: replace(event, host_hit=TokenCount(99)),
    ),
]


@pytest.mark.parametrize(("broken", "kind", "change"), WRONG, ids=name)
def test_a_law_of_an_event_is_broken_by_a_wrong_one(
    broken: EventLaw, kind: type, change: Callable[[AnyEvent], AnyEvent]
) -> None:
    """J28: the event itself is blamed, before it is believed."""
    assert with_one_changed(kind, lambda event: event) == set()
    assert name(broken) in with_one_changed(kind, change)
