"""The table `reuse` by itself: rows that somebody tells, kept as they were first settled, in words that SQL knows."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from radixledger.analytics.batch import MalformedEvent
from radixledger.analytics.beside import BESIDE
from radixledger.analytics.reuse import Fate, Fold, asks_for_reuse
from radixledger.analytics.store import Database
from radixledger.journal.units import Rank, Seq

RANK = Rank(0)
HIT = Fate(1, 10, 2, 500, 11, 7, "r7", "hit", 0, 64, 64)
LOST = HIT._replace(
    kind="lost", start=64, stop=96, tokens=32, by_seq=5, by_step=1, by_event="Removed", by_node=3, cause="evict/full_leaf"
)  # fmt: skip


class Saying:
    """A telling of these rows, up to event `last_seq`."""

    def __init__(self, rows: Sequence[Fate], last_seq: int = 20) -> None:
        self.rows, self.last_seq = rows, last_seq

    def __iter__(self) -> Iterator[Fate]:
        yield from self.rows

    def fold(self) -> Fold:
        return Fold(self.last_seq, 0, 0, 0, 0, 0)


def kept(database: Database, columns: str) -> list[tuple[Any, ...]]:
    """Some columns of all rows, in order."""
    return database.connection.execute(f"SELECT {columns} FROM reuse ORDER BY admitted_seq, start").fetchall()


def test_none_is_null_and_a_cause_of_the_future_is_unknown() -> None:
    database = Database()
    later = LOST._replace(start=96, stop=97, tokens=1, cause="unknown(9999)", by_event="Evaporated")
    with pytest.raises(Exception, match="Evaporated"):
        database.tell_reuse("run", RANK, Saying([later]))
    database.tell_reuse("run", RANK, Saying([HIT, LOST, later._replace(by_event="Removed")]))
    assert kept(database, "run, rank, kind, by_seq, by_event::VARCHAR, cause::VARCHAR, pool, open") == [
        ("run", 0, "hit", None, None, None, None, False),
        ("run", 0, "lost", 5, "Removed", "evict/full_leaf", None, False),
        ("run", 0, "lost", 5, "Removed", "unknown", None, False),
    ]
    assert tuple(BESIDE["reuse"]) == ("run", "rank", *Fate._fields)


def test_what_is_settled_stays_and_what_was_open_is_told_again() -> None:
    """By admission: all rows of one are kept, or all are told anew; those that a later telling cannot know stay."""
    database = Database()
    was_open = [
        HIT._replace(admitted_seq=12, open=True),
        LOST._replace(admitted_seq=12, kind="untold", open=True),
    ]
    unseen = HIT._replace(admitted_seq=13, open=True)
    database.tell_reuse("run", RANK, Saying([HIT, LOST, *was_open, unseen], 20))
    known = [HIT._replace(admitted_seq=12), LOST._replace(admitted_seq=12)]
    database.tell_reuse(
        "run", RANK, Saying([HIT._replace(tokens=1), *known, HIT._replace(admitted_seq=30)], 40)
    )
    assert kept(database, "admitted_seq, kind, tokens, open") == [
        (11, "hit", 64, False),
        (11, "lost", 32, False),
        (12, "hit", 64, False),
        (12, "lost", 32, False),
        (13, "hit", 64, True),
        (30, "hit", 64, False),
    ]
    assert database.reuse_until("run", RANK) == 40
    assert database.reuse_until("other", RANK) == Seq(0)


def test_a_telling_that_breaks_off_changes_nothing() -> None:
    """Also where a length is one that nobody can have: the event that says so is named."""
    database = Database()
    database.tell_reuse("run", RANK, Saying([HIT], 20))
    with pytest.raises(MalformedEvent, match=r"event 30 .Admitted.*are lost"):
        database.tell_reuse("run", RANK, Saying([LOST._replace(admitted_seq=30, tokens=2**63)], 40))
    assert kept(database, "admitted_seq") == [(11,)]
    assert database.reuse_until("run", RANK) == 20


@pytest.mark.parametrize(
    ("query", "asks"),
    [
        ("SELECT * FROM reuse", True),
        ("FROM reuse_folds", True),
        ("SELECT reused FROM nodes", False),
        ("FROM lost_reuse", False),
    ],
)
def test_a_query_asks_for_what_it_names(query: str, asks: bool) -> None:
    assert asks_for_reuse(query) is asks
