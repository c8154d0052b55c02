"""Where the hits went, as rows: each prompt's tokens by what became of them, told by a fold and kept beside the tables.

Not worked out here: it takes a tree, and this package has none. Whoever folds (`radixledger load --reuse`) gives a `Telling`;
stores keep it. Rule 1: the tokens of one admission's rows add up to its prompt, and one of them is of kind `hit`.

Rule 2: a row is settled, or `open` while its request was live where the telling ended. Settled ones stay as they were first
told, also when the journal has lost its beginning since; open ones are told again.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple, Protocol

import duckdb
import numpy as np

from radixledger.analytics.batch import NONE, Columns, MalformedEvent
from radixledger.analytics.beside import BESIDE
from radixledger.journal.events import Admitted
from radixledger.journal.units import Rank, Seq

PART_ROWS = 1 << 15

_NAMED = re.compile(r"\breuse(_folds)?\b")
_KEY = "run = $run AND rank = $rank"


class Fate(NamedTuple):
    """What became of tokens [start, stop) of one prompt. -1 and "" stand for none; for the kinds see docs/reuse.md.

    seq, step, time_ns: of the match that the request was admitted on, `admitted_seq` that of its `Admitted`. by_*, cause: the
    event that took them or, where they were never kept, the one by which that is known. took: what that event took; pool: the one
    whose pages, or slots, a start there lacked. asked_*: what the eviction was asked for, in pages and slots; wanted_by, wanted_seq:
    who took room next. evicted_*: pages that evictions took from there to the match. cached_*: who had left them, and since when.
    """

    epoch: int
    seq: int
    step: int
    time_ns: int
    admitted_seq: int
    request: int
    rid: str
    kind: str
    start: int
    stop: int
    tokens: int
    by_seq: int = NONE
    by_step: int = NONE
    by_event: str = ""
    by_node: int = NONE
    cause: str = ""
    took: str = ""
    pool: str = ""
    asked_full: int = NONE
    asked_swa: int = NONE
    asked_recurrent: int = NONE
    wanted_by: str = ""
    wanted_seq: int = NONE
    evicted_full: int = NONE
    evicted_swa: int = NONE
    cached_by: str = ""
    cached_seq: int = NONE
    open: bool = False


class Fold(NamedTuple):
    """How far a rank was told, and what that cannot know: events that are missing, or stand before `begins_at`; pages that were
    forgotten; admissions without a match (judged by their whole pages), and matches of nobody in particular.
    """

    last_seq: int
    begins_at: int
    missing: int
    forgotten: int
    unlooked: int
    unnamed: int


class Telling(Protocol):
    """One rank, told from where its journal begins; `fold` is asked for when the rows have come to their end."""

    def __iter__(self) -> Iterator[Fate]:
        """The rows, those of one admission together."""

    def fold(self) -> Fold:
        """How far it went."""


class Told(NamedTuple):
    """How far one rank of a run is loaded, and told; `fold` is None where it is not."""

    run: str
    rank: int
    loaded: int
    fold: Fold | None


def asks_for_reuse(query: str) -> bool:
    """Whether SQL names one of these tables."""
    return _NAMED.search(query) is not None


def told_until(connection: duckdb.DuckDBPyConnection, run: str, rank: Rank) -> Seq:
    """The last event up to which a rank is told in the tables of a connection; 0 where it is not."""
    found = connection.execute(
        f"SELECT last_seq FROM reuse_folds WHERE {_KEY}", {"run": run, "rank": rank}
    ).fetchall()
    return Seq(found[0][0] if found else 0)


def tellings(connection: duckdb.DuckDBPyConnection) -> list[Told]:
    """How far each loaded rank is told, in the tables of a connection."""
    names = ", ".join(f"folds.{name}" for name in Fold._fields)
    rows = connection.execute(
        f"SELECT run, rank, loads.last_seq, {names}"
        " FROM (SELECT run, rank, max(last_seq) AS last_seq FROM loads GROUP BY ALL) AS loads"
        " LEFT JOIN reuse_folds AS folds USING (run, rank) ORDER BY run, rank"
    ).fetchall()
    return [
        Told(run, rank, loaded, Fold(*fold) if fold[0] is not None else None)
        for run, rank, loaded, *fold in rows
    ]


def collect(connection: duckdb.DuckDBPyConnection, run: str, rank: Rank, fates: Iterable[Fate]) -> None:
    """Put rows into the temporary table `told`, part by part; raises MalformedEvent for lengths that 64 bits cannot hold."""
    connection.execute("CREATE OR REPLACE TEMP TABLE told AS FROM reuse LIMIT 0")
    rows = iter(fates)
    while part := list(islice(rows, PART_ROWS)):
        connection.register("batch", _columns(part))
        query = f"SELECT $run AS run, $rank::INTEGER AS rank, {_SHOWN} FROM batch"
        connection.execute(f"INSERT INTO told BY NAME {query}", {"run": run, "rank": rank})
        connection.unregister("batch")


def merge(connection: duckdb.DuckDBPyConnection, run: str, rank: Rank, fold: Fold) -> None:
    """Put what was collected into `reuse` and `reuse_folds`; the caller makes a transaction of it."""
    key = {"run": run, "rank": rank}
    again = "admitted_seq IN (SELECT admitted_seq FROM told)"
    settled = f"admitted_seq IN (SELECT admitted_seq FROM reuse WHERE {_KEY})"
    connection.execute(f"DELETE FROM reuse WHERE {_KEY} AND open AND {again}", key)
    connection.execute(f"INSERT INTO reuse FROM told WHERE NOT {settled}", key)
    connection.execute(f"DELETE FROM reuse_folds WHERE {_KEY}", key)
    connection.execute("INSERT INTO reuse_folds VALUES (?, ?, ?, ?, ?, ?, ?, ?)", [run, rank, *fold])
    connection.execute("DROP TABLE told")


def _columns(rows: list[Fate]) -> Columns:
    types = {name: _ARRAY_OF.get(BESIDE["reuse"][name], np.object_) for name in Fate._fields}
    by_column = zip(*rows, strict=True)
    try:
        return {name: np.array(values, types[name]) for name, values in zip(types, by_column, strict=True)}
    except OverflowError:
        row = next(row for row in rows if not -(2**63) <= row.tokens < 2**63)
        raise MalformedEvent(
            row.admitted_seq, Admitted, f"{row.tokens} of its tokens are {row.kind}"
        ) from None


_ARRAY_OF = {"BIGINT": np.int64, "INTEGER": np.int32, "BOOLEAN": np.bool_}


def _shown() -> Iterator[str]:
    """The columns as they are kept: NULL for none behind the tokens, words that nobody knows as `unknown`."""
    for name in Fate._fields:
        kept = BESIDE["reuse"][name]
        if name not in Fate._field_defaults or kept == "BOOLEAN":
            yield name
        elif kept == "BIGINT":
            yield f"nullif({name}, {NONE}) AS {name}"
        elif name == "cause":
            yield f"CASE WHEN cause <> '' THEN coalesce(try_cast(cause AS {kept}), 'unknown') END AS cause"
        else:
            yield f"nullif({name}, '')::{kept} AS {name}"


_SHOWN = ", ".join(_shown())
