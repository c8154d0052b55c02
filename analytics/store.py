"""Where loaded runs are kept: what every store offers, and the one that is a DuckDB database.

Rule: one batch is one commit, so a load that is cut short leaves whole batches and nothing else, and
the next one goes on behind the last of them. Not durable beyond the process: nothing is synced to
disk here, what is lost can be loaded again.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir
from typing import NamedTuple, Protocol

import duckdb

from radixledger.analytics.batch import Columns
from radixledger.analytics.beside import beside
from radixledger.analytics.queries import view_statements
from radixledger.analytics.reuse import Telling, collect, merge, told_until
from radixledger.analytics.tables import ARRAYS, LAYOUT, shown, vocabulary
from radixledger.journal.units import Rank, Seq

LOADS = (
    "SELECT $run AS run, $rank::INTEGER AS rank, epoch, min(seq) AS first_seq, max(seq) AS last_seq,"
    " count(*) AS events FROM batch GROUP BY epoch"
)
"""The query that sums a batch of `events` up for the table `loads`: one row for each epoch in it."""


class StoreError(Exception):
    """A place that runs cannot be loaded into, or asked from; the message says what to do about it."""


class Loaded(NamedTuple):
    """How far one rank of a run has been loaded: its last event, by which the journal is known again."""

    seq: Seq
    time_ns: int
    event: str


class Store(Protocol):
    """A place for runs."""

    def loaded(self, run: str, rank: Rank) -> Loaded | None:
        """The last event of a rank that is here; None when there is none."""

    def append(self, run: str, rank: Rank, tables: Mapping[str, Columns]) -> None:
        """Take one batch of one rank whole or not at all: what `columns` gave, behind what is here."""

    def label(self, run: str, labels: Mapping[str, str]) -> None:
        """Give a run labels; it keeps those of other names."""

    def reuse_until(self, run: str, rank: Rank) -> Seq:
        """The last event up to which the table `reuse` is told for a rank; 0 where it is not."""

    def tell_reuse(self, run: str, rank: Rank, telling: Telling) -> None:
        """Take where the hits of a rank went, whole or not at all; what was settled before stays as it was."""

    def close(self) -> None:
        """Let go of the files."""


class Database:
    """A DuckDB database with every table and view, in memory when no path is given.

    Raises StoreError for a file that is no DuckDB database, is in use, or is of another layout.
    """

    def __init__(self, path: Path | None = None) -> None:
        with _removed_if_not_made(path):
            self.connection = _connect(path, read_only=False)
            if not self.connection.execute("FROM duckdb_tables()").fetchall():
                _declare(self.connection)
        _demand_layout(self.connection, path)
        self.connection.execute("SET threads = 1")  # the other thread of a load reads the journal
        if path is None:  # there is no file to bring up to date, yet it would be done again and again
            self.connection.execute("SET checkpoint_threshold = '1TB'")
            self.connection.execute(
                "SET temp_directory = ?", [str(Path(gettempdir(), f"radixledger-{os.getpid()}"))]
            )

    def loaded(self, run: str, rank: Rank) -> Loaded | None:
        """The last event of a rank that is here; None when there is none."""
        return last_loaded(self.connection, run, rank)

    def append(self, run: str, rank: Rank, tables: Mapping[str, Columns]) -> None:
        """Take one batch in one transaction."""
        with _transaction(self.connection):
            book = self._book(run, rank)
            for name, arrays in tables.items():
                query = f"SELECT $book AS book, {', '.join(arrays)} FROM batch"
                self.connection.register("batch", arrays)
                self.connection.execute(f"INSERT INTO stored.{name} BY NAME {query}", {"book": book})
            self.connection.register("batch", tables["events"])
            self.connection.execute(f"INSERT INTO loads {LOADS}", {"run": run, "rank": rank})
        self.connection.unregister("batch")

    def questioned(self) -> duckdb.DuckDBPyConnection:
        """The connection, to be asked with every core of the machine."""
        self.connection.execute("RESET threads")
        return self.connection

    def label(self, run: str, labels: Mapping[str, str]) -> None:
        """Give a run labels, in one transaction."""
        with _transaction(self.connection):
            for key, value in labels.items():
                self.connection.execute("DELETE FROM labels WHERE run = ? AND key = ?", [run, key])
                self.connection.execute("INSERT INTO labels VALUES (?, ?, ?)", [run, key, value])

    def reuse_until(self, run: str, rank: Rank) -> Seq:
        """The last event up to which `reuse` is told for a rank; 0 where it is not."""
        return told_until(self.connection, run, rank)

    def tell_reuse(self, run: str, rank: Rank, telling: Telling) -> None:
        """Take where the hits of a rank went, in one transaction behind the telling."""
        collect(self.connection, run, rank, telling)
        with _transaction(self.connection):
            merge(self.connection, run, rank, telling.fold())

    def close(self) -> None:
        """Close the database; one in memory is gone then."""
        self.connection.close()

    def _book(self, run: str, rank: Rank) -> int:
        """The number by which the stored tables know a rank of a run."""
        known = self.connection.execute(
            "SELECT book FROM stored.books WHERE run = ? AND rank = ?", [run, rank]
        )
        if rows := known.fetchall():
            return int(rows[0][0])
        new = "INSERT INTO stored.books SELECT count(*), ?, ? FROM stored.books RETURNING book"
        return int(self.connection.execute(new, [run, rank]).fetchall()[0][0])


def open_database(path: Path) -> duckdb.DuckDBPyConnection:
    """A connection that reads a loaded database and cannot change it; raises StoreError as Database does."""
    connection = _connect(path, read_only=True)
    _demand_layout(connection, path)
    for statement in view_statements("TEMP VIEW"):
        connection.execute(statement)
    return connection


def last_loaded(connection: duckdb.DuckDBPyConnection, run: str, rank: Rank) -> Loaded | None:
    """The last loaded event of a rank, from the tables `loads` and `events` of a connection."""
    last = connection.execute(
        "SELECT seq, time_ns, event::VARCHAR FROM events WHERE run = $run AND rank = $rank"
        " AND seq = (SELECT max(last_seq) FROM loads WHERE run = $run AND rank = $rank)",
        {"run": run, "rank": rank},
    ).fetchall()
    return Loaded(*last[0]) if last else None


@contextmanager
def _transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    connection.begin()
    try:
        yield
    except BaseException:
        connection.rollback()
        raise
    connection.commit()


@contextmanager
def _removed_if_not_made(path: Path | None) -> Iterator[None]:
    """Half a new database, of a disk that was full, would be no store and stand in the way of the next load."""
    if path is None or path.exists():
        yield
        return
    try:
        yield
    except BaseException:
        for half in (path, path.with_name(path.name + ".wal")):
            half.unlink(missing_ok=True)
        raise


_FILE_BEHIND = "SELECT path FROM duckdb_databases() WHERE database_name = current_database()"
"""NULL for a database in memory, as DuckDB makes one to show a JSON or CSV file that it was given."""


def _connect(path: Path | None, *, read_only: bool) -> duckdb.DuckDBPyConnection:
    if path and _is_something_else(path):
        raise StoreError(
            f"{path} cannot be opened: it is no DuckDB database, as `radixledger load` makes them; and a journal is a folder"
        )
    try:
        # Whole, a path cannot be read as a place on the net or in memory: `md:x`, `:memory:x`.
        connection = duckdb.connect(str(path.absolute()) if path else ":memory:", read_only=read_only)
        if path and not connection.execute(_FILE_BEHIND).fetchall()[0][0]:
            raise duckdb.IOException("it is data of another kind, and nothing could be stored in it")
        # DuckDB would draw its bar on stdout, which belongs to answers.
        return connection.execute("SET enable_progress_bar = false")
    except duckdb.OutOfMemoryException:
        raise
    except duckdb.Error as error:
        raise StoreError(f"{path} cannot be opened as a DuckDB database: {error}") from error


def _is_something_else(path: Path) -> bool:
    """Whether there is a file that DuckDB did not begin; it would take JSON and CSV for tables, and open nothing of ours."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(len(_MAGIC) + _MAGIC_AT)
    return len(head) > 0 and head[_MAGIC_AT:] != _MAGIC


_MAGIC, _MAGIC_AT = b"DUCK", 8
"""What a DuckDB database has behind its checksum."""


def _declare(connection: duckdb.DuckDBPyConnection) -> None:
    with _transaction(connection):
        for statement in (*vocabulary(), *_tables(), *view_statements("VIEW")):
            connection.execute(statement)
        connection.execute("INSERT INTO stored.layout VALUES (?)", [LAYOUT])


def _tables() -> Iterator[str]:
    """The statements that make the stored tables, and the views that show them."""
    yield "CREATE SCHEMA stored"
    yield "CREATE TABLE stored.layout (fingerprint VARCHAR)"
    yield "CREATE TABLE stored.books (book INTEGER, run VARCHAR, rank INTEGER)"
    for name, arrays in ARRAYS.items():
        columns = ", ".join(f"{array} {stored}" for array, stored in arrays.items())
        yield f"CREATE TABLE stored.{name} (book INTEGER, {columns})"
        yield f"CREATE VIEW {name} AS SELECT run, rank, {shown(name)} FROM stored.{name} JOIN stored.books USING (book)"
    yield from beside()


def _demand_layout(connection: duckdb.DuckDBPyConnection, path: Path | None) -> None:
    try:
        found = connection.execute("FROM stored.layout").fetchall()
    except duckdb.CatalogException:
        found = []
    if found != [(LAYOUT,)]:
        connection.close()
        raise StoreError(
            f"{path} was not loaded by this version of radixledger (layout {LAYOUT} is needed):"
            " load the journals again into a new file"
        )
