"""Journals of ranks with a host tier: verify and SQL are silent about what is right, and blame the same event else (J25)."""

from collections.abc import Iterable
from functools import cache

import pytest

from radixledger.analytics.load import load_frames
from radixledger.analytics.queries import ask, find, of_kind
from radixledger.analytics.store import Database
from radixledger.journal.events import AnyEvent, BackupBegun, Demoted, Gathered, HostDropped, LoadBegun
from radixledger.journal.frame import Frame
from radixledger.journal.units import FIRST, Rank
from radixledger.replay.audit import Audit
from radixledger.replay.verdict import RankReport

from ..cache.hosted import Hosted
from ..machine import HOST_SETTINGS
from ..test_machine import by_seed

RANK = Rank(0)
STRICT = [name for name, setting in HOST_SETTINGS.items() if setting.strict]


@cache
def journaled(name: str) -> tuple[tuple[Rank, tuple[AnyEvent, ...]], ...]:
    """What each rank of a play wrote down, but for its end: copies and callers are still there."""
    play = by_seed(HOST_SETTINGS[name], 2, 500)
    tapes = [player.sides.tape for player in play.players]
    return tuple((tape.opened.rank, (tape.opened, *tape.events[:-1])) for tape in tapes)


def verified(rank: Rank, events: tuple[AnyEvent, ...]) -> RankReport:
    """The verdict of replay."""
    audit = Audit(RankReport(run="played", rank=rank))
    audit.take(Frame(FIRST, 0, 0, 1, list(events)))
    audit.finish()
    return audit.report


def asked(ranks: Iterable[tuple[Rank, tuple[AnyEvent, ...]]]) -> dict[str, list[dict[str, object]]]:
    """The rows of every check that has any."""
    database = Database()
    for rank, events in ranks:
        load_frames(database, "played", rank, iter([Frame(FIRST, 0, 0, 1, list(events))]))
    connection = database.questioned()
    answers = {check.name: ask(connection, check) for check in of_kind("check")}
    found = {
        name: [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
        for name, answer in answers.items()
        if answer.rows
    }
    database.close()
    return found


@pytest.mark.parametrize("name", STRICT)
def test_a_journal_with_copies_is_clean_for_verify_and_for_every_check(name: str) -> None:
    """J14, J22, J25, R211: both ways to write; copies that failed, loads that were overtaken, nodes that were lost."""
    for rank, events in journaled(name):
        assert any(isinstance(event, Demoted) for event in events)
        report = verified(rank, events)
        assert [(told.law, told.detail) for told in report.findings] == []
    assert asked(journaled(name)) == {}


def test_pages_that_go_to_the_host_are_among_the_evicted() -> None:
    """J23, R211: a node that keeps nothing but its copy has left the device, for room there."""
    rank, events = journaled(STRICT[-1])[0]
    database = Database()
    load_frames(database, "played", rank, iter([Frame(FIRST, 0, 0, 1, list(events))]))
    demoted = [event for event in events if isinstance(event, Demoted)]
    for name in ("evictions_by_cause", "eviction_age"):
        answer = ask(database.questioned(), find(name))
        rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
        assert sum(row["nodes"] for row in rows if row["event"] == "Demoted") == len(demoted) > 0
    database.close()


def without(kind: type) -> tuple[Rank, tuple[AnyEvent, ...], int]:
    """A journal in which one event of a kind is missing, so that something of what follows is wrong."""
    rank, events = journaled(STRICT[-1])[0]
    place = next(
        at
        for at, event in enumerate(events)
        if type(event) is kind and (kind is not Gathered or _demoted_under_way(events, at))
    )
    return rank, (*events[:place], *events[place + 1 :]), place


def _demoted_under_way(events: tuple[AnyEvent, ...], at: int) -> bool:
    gathered = events[at]
    assert isinstance(gathered, Gathered)
    following = next((each for each in events[at + 1 :] if isinstance(each, Demoted)), None)
    return following is not None and following.node == gathered.node


@pytest.mark.parametrize(
    ("kind", "check", "law"),
    [
        (Gathered, "unread_page_given_up", "pages_are_read_before_they_are_given_up"),
        (BackupBegun, "copy_ended_wrong", "a_transfer_ends_once"),
        (LoadBegun, "copy_ended_wrong", "a_transfer_ends_once"),
    ],
)
def test_verify_and_sql_blame_what_was_left_out(kind: type, check: str, law: str) -> None:
    """J25, B19: the same event, and nothing that lies before the place."""
    rank, events, place = without(kind)
    report, found = verified(rank, events), asked([(rank, events)])
    blamed = {told.law: told.seq for told in reversed(report.findings)}
    assert [row["seq"] for row in found[check]] == [blamed[law]]
    assert min(told.seq for told in report.findings) > place


def test_a_copy_that_is_lost_with_its_node_is_a_leak_for_both() -> None:
    """J25, B19: the node leaves, and its HOST pages stay with it."""
    rank = Hosted()
    rank.insert("ab")
    rank.back_up("ab")
    rank.rank.evict(2, 0)
    rank.rank.evict_copies(2)
    rank.rank.flush()
    rank.rank.close()
    events = tuple(rank.journal.events)
    assert verified(RANK, events).clean
    assert asked([(RANK, events)]) == {}
    place = next(at for at, event in enumerate(events) if isinstance(event, HostDropped))
    spoiled = (*events[:place], *events[place + 1 :])
    laws = {told.law: told.seq for told in reversed(verified(RANK, spoiled).findings)}
    assert laws["a_copy_is_dropped_before_its_node"] == place + 1
    leaks = asked([(RANK, spoiled)])["leak_at_end"]
    assert [(row["pool"], row["page"], row["event"]) for row in leaks] == [
        ("host", 1, "BackupEnded"),
        ("host", 2, "BackupEnded"),
    ]
