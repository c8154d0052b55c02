"""`radixledger load`: put journals into a DuckDB file or a folder of Parquet files, to be asked in SQL many times.

Rule: this command only reads journals. It can be repeated: what is loaded already is skipped, and a load
that was cut short is gone on with.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click
import duckdb
import msgspec

from radixledger.analytics.batch import MalformedEvent
from radixledger.analytics.folder import Folder, is_folder
from radixledger.analytics.load import LoadedRank, LoadError, load
from radixledger.analytics.queries import QuestionError
from radixledger.analytics.store import Database, Store, StoreError
from radixledger.journal.errors import Damaged, JournalError, ReaderError
from radixledger.journal.reader import JournalReader, ranks_in
from radixledger.journal.units import Rank
from radixledger.tools.console import (
    UNREADABLE,
    USAGE,
    CommandFailure,
    GivenPath,
    examples,
    json_flag,
    print_json,
    progress,
    remark,
)
from radixledger.tools.places import check_outside_runs
from radixledger.tools.ranks import ranks_option, the_ranks
from radixledger.tools.reuse_rows import ToldRank, tell_reuse
from radixledger.tools.run_argument import runs_argument
from radixledger.tools.table import print_table
from radixledger.tools.unread import RanksOf, each_of, leave_unread

INNER_MESSAGE = re.compile(r'"exception_message":("(?:[^"\\]|\\.)*")')

salvage_flag = click.option(
    "--salvage", is_flag=True, help="Read around damage; a gap stands in for what is lost."
)


@click.command(
    epilog=examples(
        "radixledger load runs/monday --to runs.duckdb",
        "radixledger load runs/* --to warehouse/ --label model=gemma --label pair=a",
        "radixledger sql runs.duckdb hit_rate",
        "radixledger load runs/* --to runs.duckdb --reuse",
        "radixledger sql runs.duckdb lost_reuse_by_cause",
    )
)
@runs_argument
@click.option(
    "--to",
    "place",
    required=True,
    type=GivenPath(path_type=str),
    help="A DuckDB file (a name with an ending), or a folder for Parquet files by run and rank.",
)
@click.option(
    "--label", "labels", multiple=True, metavar="NAME=VALUE", help="A label for these runs; may be repeated."
)
@click.option(
    "--reuse",
    is_flag=True,
    help="Also tell where the hits went, as `replay lost-reuse` does: fills the table `reuse`. Takes a fold of each rank.",
)
@ranks_option
@salvage_flag
@json_flag
def command(
    runs: tuple[Path, ...],
    place: str,
    labels: tuple[str, ...],
    reuse: bool,
    ranks: tuple[int, ...],
    salvage: bool,
    as_json: bool,
) -> None:
    """Put journals into a DuckDB file or Parquet files; a second load goes on where the first ended.

    A rank that cannot be read keeps the others from nothing. Exit code 3: there was one.
    """
    named = pairs(labels, "--label")
    check_outside_runs(Path(place))
    chosen = [RanksOf(run, the_ranks(run, ranks)) for run in runs]
    _check_readable(chosen, salvage=salvage)
    check_names(runs)
    with told_plainly():
        store = store_at(place)
        try:
            loaded = load_all(store, chosen, named, salvage=salvage)
            told = tell_reuse(store, chosen, salvage=salvage) if reuse else []
        finally:
            store.close()
    if as_json:
        document: dict[str, object] = {"to": place, "ranks": [each._asdict() for each in loaded]}
        if reuse:
            document["reuse"] = [each._asdict() for each in told]
        if unread := [gone for each in chosen for gone in each.unread.ranks]:
            document["unreadable"] = unread
        print_json(document)
    else:
        rows = [
            (each.run, each.rank, each.events, each.first_seq or None, each.last_seq or None)
            for each in loaded
        ]
        print_table(("run", "rank", "events loaded", "from", "to"), rows)
        if told:
            columns = [name.replace("_", " ") for name in ToldRank._fields]
            print_table(columns, told, title="\nwhere the hits went")
    leave_unread(chosen)


def load_all(
    store: Store, chosen: Sequence[RanksOf], labels: dict[str, str], *, salvage: bool
) -> list[LoadedRank]:
    """Load ranks one after the other, with a progress bar; what the reader has to remark goes to stderr."""
    loaded: list[LoadedRank] = []
    with progress("load", _events_in(chosen)) as advance:
        for run, rank, around in each_of(chosen):
            with around:
                loaded += load(store, run, labels, salvage=salvage, advance=advance, ranks=[rank])
    for each in loaded:
        for notice in each.notices:
            remark(f"{each.run}, rank {each.rank}: {notice}")
    return loaded


def store_at(place: str) -> Store:
    """The store that a path means: what is there decides, else whether its name has an ending; raises StoreError."""
    path = Path(place)
    if is_folder(path) or path.is_dir() or place.endswith("/") or not (path.suffix or path.exists()):
        return Folder(path)
    return Database(path)


def pairs(settings: Sequence[str], option: str) -> dict[str, str]:
    """`NAME=VALUE` words as a mapping; a word of another shape is wrong usage."""
    for word in settings:
        if "=" not in word or word.startswith("="):
            raise CommandFailure(f"{option} {word}: write NAME=VALUE", USAGE)
    return dict(word.split("=", 1) for word in settings)


@contextmanager
def told_plainly() -> Iterator[None]:
    """What analytics raise for callers, as one clear message and the exit code that it means; memory that ran out, as MemoryError."""
    try:
        yield
    except (StoreError, LoadError, QuestionError) as error:
        raise CommandFailure(str(error), USAGE) from error
    except MalformedEvent as error:
        raise CommandFailure(str(error), UNREADABLE) from error
    except duckdb.OutOfMemoryException as error:
        raise MemoryError(str(error)) from error
    except (duckdb.IOException, duckdb.TransactionException) as error:
        raise CommandFailure(f"DuckDB cannot go on: {_said_by(error)}", UNREADABLE) from error


def _said_by(error: duckdb.Error) -> str:
    """What went wrong; where DuckDB was writing on another thread, that is inside its message, as JSON."""
    inner = INNER_MESSAGE.search(str(error))
    return str(msgspec.json.decode(inner[1])) if inner else str(error)


def _check_readable(chosen: Sequence[RanksOf], *, salvage: bool) -> None:
    """Raise what reading a run's beginning raises of all its ranks, before a store is made that would be left empty.

    Salvage reads around it.
    """
    for run, ranks, _ in chosen:
        errors: list[ReaderError] = []
        for rank in ranks:
            try:
                JournalReader(run, rank).opened  # noqa: B018 — what it raises is what is asked for
            except ReaderError as error:
                if not (salvage and isinstance(error, Damaged)):
                    errors.append(error)
        if len(errors) == len(ranks):
            raise errors[0]


def check_names(runs: Sequence[Path]) -> None:
    """Refuse two folders that hold one rank of one name, before anything is loaded: they would be taken for one run."""
    known: dict[tuple[str, Rank], Path] = {}
    for run in dict.fromkeys(run.resolve() for run in runs) if len(runs) > 1 else ():
        for rank in ranks_in(run):
            try:
                name = JournalReader(run, rank).opened.run or run.name
            except ReaderError:  # whoever loads it says so
                continue
            if (other := known.setdefault((name, rank), run)) != run:
                raise CommandFailure(
                    f"{other} and {run} are both called {name}, as their journals say, and a run is known by its name"
                    " alone: load each into a place of its own, or record one again in a folder of another name",
                    USAGE,
                )


def _events_in(chosen: Sequence[RanksOf]) -> int | None:
    """How many events the journals have; None where one of them does not say."""
    try:
        readers = [JournalReader(run, rank) for run, ranks, _ in chosen for rank in ranks]
        return sum(reader.last_seq - reader.first_seq + 1 for reader in readers)
    except JournalError:
        return None
