"""Loaded runs as a folder of Parquet files, partitioned by run and rank, for any number of events.

Rule: a batch is a folder of its own, `DIR/run=RUN/rank=RANK/FIRST-LAST/TABLE.parquet`, that is written
aside and moved into place by one rename. Whoever reads `run=*/rank=*/*/TABLE.parquet` sees whole
batches, of a load that is going on too. What is not told in batches, labels and `reuse`, is one file
for each run or rank, and replaced by one rename.
"""

import fcntl
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import mkdtemp
from typing import IO
from urllib.parse import quote

import duckdb

from radixledger.analytics.batch import Columns
from radixledger.analytics.beside import beside
from radixledger.analytics.queries import view_statements
from radixledger.analytics.reuse import Telling, collect, merge, told_until
from radixledger.analytics.store import LOADS, Loaded, StoreError, last_loaded
from radixledger.analytics.tables import LAYOUT, TABLES, shown, vocabulary
from radixledger.journal.disk import TEMPORARY, Disk, publish
from radixledger.journal.units import Rank, Seq

LAYOUT_FILE = "LAYOUT"
"""Names the layout of the tables; its presence says that a folder holds loaded runs."""

OF_A_RANK = ("reuse", "reuse_folds")
"""Tables with one file for each rank. The second says how far the first one goes, and is replaced behind it."""

_STAGING = "staging-"
_PARQUET = "(FORMAT parquet, COMPRESSION zstd)"


class Folder:
    """A folder of Parquet files that batches are added to, made when it is not there.

    Raises StoreError for a folder that holds something else, is of another layout, or is being loaded
    into by somebody else.
    """

    def __init__(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)
        if not any(each.name != LAYOUT_FILE + TEMPORARY for each in path.iterdir()):
            publish(Disk(), path / LAYOUT_FILE, [f"{LAYOUT}\n".encode()])
        _demand_layout(path)
        self._path = path
        self._lock = _lock(path / LAYOUT_FILE)
        for abandoned in path.glob(_STAGING + "*"):
            shutil.rmtree(abandoned)
        self._staging = Path(mkdtemp(prefix=_STAGING, dir=path))
        self._connection = duckdb.connect()
        for statement in (*vocabulary(), *_empty_tables()):
            self._connection.execute(statement)

    def loaded(self, run: str, rank: Rank) -> Loaded | None:
        """The last event of a rank that is here; None when there is none."""
        place = self._place(run, rank)
        if not place.is_dir() or not any(place.iterdir()):
            return None
        with duckdb.connect() as connection:
            for name in ("loads", "events"):
                connection.execute(f"CREATE VIEW {name} AS FROM {_scan(place / '*' / f'{name}.parquet')}")
            return last_loaded(connection, run, rank)

    def append(self, run: str, rank: Rank, tables: Mapping[str, Columns]) -> None:
        """Take one batch: every table has a file, so that a table without rows is one too."""
        seq = tables["events"]["seq"]
        part = self._staging / f"{seq[0]:020d}-{seq[-1]:020d}"
        part.mkdir()
        for name in TABLES:
            if name in tables:
                self._connection.register("batch", tables[name])
                query = f"SELECT {_quoted(run)} AS run, {rank}::INTEGER AS rank, {shown(name)} FROM batch"
                self._write(part / f"{name}.parquet", query)
            else:
                self._write(part / f"{name}.parquet", f"FROM {name}")
        self._connection.register("batch", tables["events"])
        self._connection.execute("TRUNCATE loads")
        self._connection.execute(f"INSERT INTO loads {LOADS}", {"run": run, "rank": rank})
        self._write(part / "loads.parquet", "FROM loads")
        place = self._place(run, rank)
        place.mkdir(parents=True, exist_ok=True)
        part.rename(place / part.name)

    def label(self, run: str, labels: Mapping[str, str]) -> None:
        """Give a run labels: its one file of labels is replaced by one rename."""
        file = self._run_place(run) / "labels.parquet"
        self._connection.execute("TRUNCATE labels")
        if file.exists():
            self._connection.execute(f"INSERT INTO labels FROM {_scan(file)}")
        for key, value in labels.items():
            self._connection.execute("DELETE FROM labels WHERE key = ?", [key])
            self._connection.execute("INSERT INTO labels VALUES (?, ?, ?)", [run, key, value])
        self._write(self._staging / file.name, "FROM labels")
        file.parent.mkdir(parents=True, exist_ok=True)
        (self._staging / file.name).replace(file)

    def reuse_until(self, run: str, rank: Rank) -> Seq:
        """The last event up to which `reuse` is told for a rank; 0 where it is not."""
        self._read_told(run, rank)
        return told_until(self._connection, run, rank)

    def tell_reuse(self, run: str, rank: Rank, telling: Telling) -> None:
        """Take where the hits of a rank went: its files are replaced, one rename each."""
        collect(self._connection, run, rank, telling)
        self._read_told(run, rank)
        merge(self._connection, run, rank, telling.fold())
        for name in OF_A_RANK:
            self._write(self._staging / f"{name}.parquet", f"FROM {name}")
            (self._staging / f"{name}.parquet").replace(self._place(run, rank) / f"{name}.parquet")

    def _read_told(self, run: str, rank: Rank) -> None:
        for name in OF_A_RANK:
            file = self._place(run, rank) / f"{name}.parquet"
            self._connection.execute(f"TRUNCATE {name}")
            if file.exists():
                self._connection.execute(f"INSERT INTO {name} FROM {_scan(file)}")

    def close(self) -> None:
        """Remove what is not whole, and let others load."""
        self._connection.close()
        shutil.rmtree(self._staging)
        self._lock.close()

    def _place(self, run: str, rank: Rank) -> Path:
        return self._run_place(run) / f"rank={rank}"

    def _run_place(self, run: str) -> Path:
        return self._path / f"run={quote(run, safe='')}"

    def _write(self, file: Path, query: str) -> None:
        self._connection.execute(f"COPY ({query}) TO {_quoted(str(file))} {_PARQUET}")


def is_folder(path: Path) -> bool:
    """Whether a path is a folder of loaded runs, of whatever layout."""
    return (path / LAYOUT_FILE).is_file()


def open_folder(path: Path) -> duckdb.DuckDBPyConnection:
    """A connection with the tables and views of a folder; raises StoreError as Folder does.

    The tables are read from the files as they are asked for; what is loaded meanwhile is seen.
    """
    _demand_layout(path)
    connection = duckdb.connect()
    for statement in (*vocabulary(), *_empty_tables(), *_views_of_files(path), *view_statements("VIEW")):
        connection.execute(statement)
    return connection


def _empty_tables() -> Iterator[str]:
    for name, columns in TABLES.items():
        body = ", ".join(f'"{column.name}" {column.type}' for column in columns)
        yield f"CREATE TABLE {name} (run VARCHAR, rank INTEGER, {body})"
    yield from beside()


def _views_of_files(path: Path) -> Iterator[str]:
    """The statements that put the files of a folder in the place of the empty tables; none before a load."""
    files = {name: f"run=*/rank=*/*/{name}.parquet" for name in (*TABLES, "loads")}
    files |= {name: f"run=*/rank=*/{name}.parquet" for name in OF_A_RANK}
    for name, pattern in (files | {"labels": "run=*/labels.parquet"}).items():
        if any(path.glob(pattern)):
            yield f'DROP TABLE "{name}"'
            yield f'CREATE VIEW "{name}" AS FROM {_scan(path / pattern)}'


def _scan(pattern: Path) -> str:
    """The files of a pattern as a relation; run and rank are columns in them, whatever their folders say."""
    return f"read_parquet({_quoted(str(pattern))}, hive_partitioning = false)"


def _quoted(text: str) -> str:
    """A text as SQL writes it, for statements that take no values."""
    return "'" + text.replace("'", "''") + "'"


def _demand_layout(path: Path) -> None:
    if not is_folder(path):
        raise StoreError(f"{path} holds other things than loaded runs: name a new or an empty folder")
    found = (path / LAYOUT_FILE).read_text().strip()
    if found != LAYOUT:
        raise StoreError(
            f"{path} was not loaded by this version of radixledger (layout {LAYOUT} is needed, {found} found):"
            " load the journals again into a new folder"
        )


def _lock(path: Path) -> IO[bytes]:
    file = path.open("rb")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise StoreError(
            f"{path.parent} is being loaded into by another process: wait for it to end"
        ) from None
    return file
