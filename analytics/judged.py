"""What the checks are asked of where events are missing: each epoch up to its gap, and nothing behind it.

Most laws need what came before: which SWA page a FULL page was mapped to, whose the locks are, whose node it is. Behind a gap
nobody knows, until the rank opens a new epoch; a table folds no state, so no digest can say that it is known again. A question
that says `check anywhere` needs no such past, or draws its own line at gaps, and is asked of everything.

Rule: this is the one place that knows; a check's SQL says nothing of gaps.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import duckdb

from radixledger.analytics.tables import TABLES
from radixledger.journal.units import Rank, Seq

_LOST = "lost_places"

_STRETCHES = """
SELECT books.run, books.rank, books.epoch, lost_seq, count(events.seq)
FROM books LEFT JOIN events
    ON events.run = books.run AND events.rank = books.rank AND events.epoch = books.epoch
    AND events.seq >= lost_seq AND events.event <> 'Gap'
WHERE lost_seq IS NOT NULL
GROUP BY ALL
ORDER BY ALL
"""


class Unjudged(NamedTuple):
    """The events of an epoch from `lost_seq` on: behind missing ones, and judged page by page alone."""

    run: str
    rank: Rank
    epoch: int
    lost_seq: Seq
    """The gap; where nothing tells of the missing ones, the first event behind them."""
    events: int
    """How many there are, gaps left out."""


def unjudged(connection: duckdb.DuckDBPyConnection) -> list[Unjudged]:
    """What the checks do not see whole of the runs on a connection; nothing where no event is missing."""
    if connection.execute("FROM books WHERE lost_seq IS NOT NULL LIMIT 1").fetchone() is None:
        return []
    rows = connection.execute(_STRETCHES).fetchall()
    return [Unjudged(run, Rank(rank), epoch, Seq(seq), events) for run, rank, epoch, seq, events in rows]


@contextmanager
def judged_alone(connection: duckdb.DuckDBPyConnection, views: tuple[str, ...]) -> Iterator[None]:
    """The tables of a connection, and the views made of them, end at each epoch's gap meanwhile.

    views: the statements that make the views as temporary ones. Where nothing is missing, nothing is done.
    """
    lost = connection.execute(
        "SELECT run, rank, epoch, lost_seq FROM books WHERE lost_seq IS NOT NULL"
    ).fetchall()
    if not lost:
        yield
        return
    _cut(connection, lost)
    try:
        for view in views:
            connection.execute(view)
        yield
    finally:
        for name in TABLES:
            connection.execute(f"DROP VIEW temp.{name}")
        for view in views:
            connection.execute(view)
        connection.execute(f"DROP TABLE temp.{_LOST}")


def _cut(connection: duckdb.DuckDBPyConnection, lost: list[tuple[object, ...]]) -> None:
    """Put before each table one of the same name without what lies behind these places."""
    whole = connection.execute("SELECT current_database()").fetchall()[0][0]
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE {_LOST} (run VARCHAR, rank INTEGER, epoch INTEGER, lost_seq BIGINT)"
    )
    connection.executemany(f"INSERT INTO {_LOST} VALUES (?, ?, ?, ?)", lost)
    for name in TABLES:
        connection.execute(
            f'CREATE OR REPLACE TEMP VIEW {name} AS SELECT told.* FROM "{whole}".main.{name} AS told ANTI JOIN {_LOST}'
            f" ON told.run = {_LOST}.run AND told.rank = {_LOST}.rank AND told.epoch = {_LOST}.epoch AND seq >= lost_seq"
        )
