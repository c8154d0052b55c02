"""Loading: whole batches or nothing, on from where it ended, and the same tables in a database and in Parquet."""

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest

from radixledger.analytics.batch import Columns
from radixledger.analytics.folder import Folder, is_folder, open_folder
from radixledger.analytics.load import LoadedRank, LoadError, load
from radixledger.analytics.store import Database, Store, StoreError, open_database
from radixledger.analytics.tables import TABLES, TITLES
from radixledger.journal.errors import Damaged, NoJournal
from radixledger.journal.events import Closed
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Rank

from .journals import begin, one_epoch, tell, tell_the_rest, write
from .story import healthy

Rows = list[tuple[Any, ...]]
Place = Callable[[Path], Store]
PLACES: dict[str, Place] = {"memory": lambda _: Database(), "file": Database, "folder": Folder}
KEPT: dict[str, Place] = {name: place for name, place in PLACES.items() if name != "memory"}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A healthy run of two ranks."""
    return write(tmp_path / "run", one_epoch(), one_epoch(rank=1))


def connection_of(store: Store, place: Path) -> duckdb.DuckDBPyConnection:
    """What was stored, to be asked."""
    if isinstance(store, Database) and not place.exists():
        return store.questioned()
    store.close()
    return open_folder(place) if is_folder(place) else open_database(place)


def rows_of(connection: duckdb.DuckDBPyConnection) -> dict[str, Rows]:
    """Everything in the stored tables, in an order that says nothing, words as text."""
    return {name: sorted(connection.execute(f"SELECT * FROM {name}").fetchall(), key=repr) for name in TABLES}


def whole(run: Path) -> dict[str, Rows]:
    """The tables of a run that was loaded at once."""
    database = Database()
    load(database, run)
    return rows_of(database.questioned())


def events_in(run: Path, rank: int = 0) -> int:
    return sum(len(frame.events) for frame in JournalReader(run, Rank(rank)).frames())


def test_a_run_is_loaded_rank_by_rank(run: Path) -> None:
    """J21: keyed by run, rank and sequence number."""
    database = Database()
    loaded = load(database, run)
    assert [(each.run, each.rank, each.events) for each in loaded] == [("run", 0, 75), ("run", 1, 75)]
    assert [(each.first_seq, each.last_seq) for each in loaded] == [(1, 75), (1, 75)]
    keys = database.questioned().execute(
        "SELECT run, rank, count(DISTINCT seq), max(seq) FROM events GROUP BY ALL ORDER BY rank"
    )
    assert keys.fetchall() == [("run", 0, 75, 75), ("run", 1, 75, 75)]


def test_every_table_gets_rows_from_a_run_that_does_everything(run: Path) -> None:
    with begin(run, one_epoch()) as writer:
        tell_the_rest(writer)
    empty = {name for name, rows in whole(run).items() if not rows}
    assert empty == {"copies", "violations"}, "it has no host tier, and nothing went wrong"
    assert TITLES.keys() == TABLES.keys()


@pytest.mark.parametrize("name", PLACES)
def test_every_store_holds_the_same(name: str, run: Path, tmp_path: Path) -> None:
    """J21: words, numbers and NULLs are equal in a database and in Parquet files."""
    place = tmp_path / "place"
    store = PLACES[name](place)
    load(store, run)
    assert rows_of(connection_of(store, place)) == whole(run)


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("batch_events", [1, 7, 50])
def test_the_size_of_batches_does_not_show(name: str, batch_events: int, run: Path, tmp_path: Path) -> None:
    place = tmp_path / "place"
    store = PLACES[name](place)
    load(store, run, batch_events=batch_events)
    assert rows_of(connection_of(store, place)) == whole(run)


@pytest.mark.parametrize("name", KEPT)
def test_a_second_load_goes_on_behind_the_first(name: str, tmp_path: Path) -> None:
    """J21, resumable: of a live journal what is there; later the rest; then nothing."""
    run, place, story = tmp_path / "run", tmp_path / "place", one_epoch()
    writer = begin(run, story)
    cuts = [0, 5, 20, len(story.frames)]
    for first, end in itertools.pairwise(cuts):
        tell(writer, story.frames[first:end])
        store = KEPT[name](place)
        (loaded,) = load(store, run)
        store.close()
        assert loaded.last_seq == events_in(run)
    writer.close()
    store = KEPT[name](place)
    assert load(store, run) == [LoadedRank("run", Rank(0), 0, 0, 0, ())]  # type: ignore[arg-type]
    assert rows_of(connection_of(store, place)) == whole(run)


@pytest.mark.parametrize("name", KEPT)
def test_a_restarted_rank_goes_on_in_its_next_epoch(name: str, run: Path, tmp_path: Path) -> None:
    place = tmp_path / "place"
    store = KEPT[name](place)
    load(store, run)
    store.close()
    write(run, one_epoch())
    store = KEPT[name](place)
    load(store, run)
    connection = connection_of(store, place)
    assert rows_of(connection) == whole(run)
    epochs = connection.execute(
        "SELECT rank, epoch, events, opened_seq FROM runs ORDER BY rank, epoch"
    ).fetchall()
    assert epochs == [(0, 1, 75, 1), (0, 2, 75, 76), (1, 1, 75, 1)]


class Cut(Exception):
    """What stops a load in these tests."""


def cut_after(batches: int) -> Callable[[int], None]:
    """Something to call after each batch, which fails at the last one."""
    left = iter(range(batches))

    def count(_: int) -> None:
        if next(left, None) is None:
            raise Cut

    return count


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize("batches", [1, 3, 8])
def test_an_interrupted_load_leaves_whole_batches_and_is_gone_on_with(
    name: str, batches: int, run: Path, tmp_path: Path
) -> None:
    place = tmp_path / "place"
    store = KEPT[name](place)
    with pytest.raises(Cut):
        load(store, run, batch_events=10, advance=cut_after(batches))
    connection = connection_of(store, place)
    kept = {name: len(rows) for name, rows in rows_of(connection).items()}
    told = connection.execute("SELECT sum(events) FROM loads").fetchall()
    assert told == [(kept["events"],)]
    connection.close()
    store = KEPT[name](place)
    load(store, run, batch_events=10)
    assert rows_of(connection_of(store, place)) == whole(run)


class _HalfWritten(Database):
    """A database whose next batch fails after some of its tables."""

    def append(self, run: str, rank: Rank, tables: Mapping[str, Columns]) -> None:
        spoiled = dict(tables)
        spoiled["zz"] = {"seq": tables["events"]["seq"]}
        super().append(run, rank, spoiled)


def test_a_batch_that_fails_half_way_leaves_nothing_in_a_database(run: Path) -> None:
    database = _HalfWritten()
    with pytest.raises(duckdb.CatalogException):
        load(database, run)
    assert all(rows == [] for rows in rows_of(database.questioned()).values())
    assert database.loaded("run", Rank(0)) is None


def test_a_batch_that_fails_half_way_leaves_nothing_in_a_folder(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files lie aside, where nobody reads them, and the next load clears them away."""
    folder = Folder(tmp_path / "place")
    monkeypatch.setattr(Path, "rename", _refused)
    with pytest.raises(OSError, match="disk"):
        load(folder, run)
    monkeypatch.undo()
    (tmp_path / "place" / "staging-left").mkdir()
    assert all(rows == [] for rows in rows_of(connection_of(folder, tmp_path / "place")).values())
    store = Folder(tmp_path / "place")
    load(store, run)
    assert rows_of(connection_of(store, tmp_path / "place")) == whole(run)
    assert list((tmp_path / "place").glob("staging-*")) == []


def _refused(self: Path, target: Path) -> Path:
    raise OSError(28, "the disk is full")


@pytest.fixture
def damaged_run(tmp_path: Path) -> Path:
    """A run of two segments, a byte in the middle of the second one flipped."""
    story = one_epoch()
    with begin(tmp_path / "run", story) as writer:
        tell(writer, story.frames[:12])
        writer.rotate()
        tell(writer, story.frames[12:])
    last = max((tmp_path / "run" / "rank-0000").glob("0*"))
    content = bytearray(last.read_bytes())
    content[len(content) // 2] ^= 0xFF
    last.write_bytes(content)
    return tmp_path / "run"


def test_everything_before_a_damaged_place_is_loaded(damaged_run: Path) -> None:
    database = Database()
    with pytest.raises(Damaged):
        load(database, damaged_run)
    readable = 0
    with pytest.raises(Damaged):
        for frame in JournalReader(damaged_run, Rank(0)).frames():
            readable = frame.seq_first + len(frame.events) - 1
    last = database.loaded("run", Rank(0))
    assert last is not None
    assert last.seq == readable


def test_salvaging_loads_a_gap_in_place_of_the_damage(damaged_run: Path) -> None:
    database = Database()
    (loaded,) = load(database, damaged_run, salvage=True)
    assert loaded.notices
    lost = database.questioned().execute("SELECT sum(lost) FROM gaps").fetchall()
    assert lost == [(75 - loaded.events + 1,)]


@pytest.mark.parametrize("name", KEPT)
def test_another_run_of_the_same_name_is_refused(name: str, run: Path, tmp_path: Path) -> None:
    """A changed copy must not be taken for a continuation."""
    place = tmp_path / "place"
    store = KEPT[name](place)
    load(store, run)
    store.close()
    other = tmp_path / "elsewhere" / "run"
    story = one_epoch()
    with begin(other, story, begin_ns=77) as writer:
        tell(writer, story.frames)
    store = KEPT[name](place)
    with pytest.raises(LoadError, match="is not the one that was loaded"):
        load(store, other)
    store.close()


def test_a_shorter_copy_of_a_run_is_refused(run: Path, tmp_path: Path) -> None:
    database = Database()
    load(database, run)
    other, story = tmp_path / "elsewhere" / "run", one_epoch()
    with begin(other, story) as writer:
        tell(writer, story.frames[:9])
    with pytest.raises(LoadError, match="is loaded already, but not in it"):
        load(database, other)


@pytest.mark.parametrize("name", KEPT)
def test_labels_of_the_journal_and_of_the_load_are_told_together(
    name: str, run: Path, tmp_path: Path
) -> None:
    place = tmp_path / "place"
    store = KEPT[name](place)
    load(store, run, {"pair": "b", "who": "it's me"})
    load(store, run, {"who": "you"})
    told = connection_of(store, place).execute("SELECT DISTINCT labels FROM runs").fetchall()
    assert told == [({"model": "tiny", "pair": "b", "who": "you"},)]


def test_a_run_tells_what_it_was_built_with_and_whether_it_ended(run: Path) -> None:
    story = one_epoch(rank=1)
    with begin(run, story) as writer:
        writer.append(Closed(b""))
        writer.end_command()
    database = Database()
    load(database, run)
    rows = database.questioned().execute(
        "SELECT rank, epoch, closed, route, code, dirty, key_id, page_size, full_pages, window_need FROM runs ORDER BY ALL"
    )
    assert rows.fetchall() == [
        (0, 1, False, "unified", "abc", False, "", 4, 24, 8),
        (1, 1, False, "unified", "abc", False, "", 4, 24, 8),
        (1, 2, True, "unified", "abc", False, "", 4, 24, 8),
    ]


@pytest.mark.parametrize("name", KEPT)
def test_names_of_runs_may_have_any_character(name: str, tmp_path: Path) -> None:
    odd = tmp_path / "it's a=run *[1] ü"
    write(odd, one_epoch())
    place = tmp_path / "place"
    store = KEPT[name](place)
    load(store, odd)
    store.close()
    store = KEPT[name](place)
    assert load(store, odd)[0].events == 0
    told = connection_of(store, place).execute("SELECT DISTINCT run, rank FROM events").fetchall()
    assert told == [("it's a=run *[1] ü", 0)]


def test_a_folder_that_holds_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(StoreError, match="holds other things"):
        Folder(tmp_path)
    with pytest.raises(StoreError, match="holds other things"):
        open_folder(tmp_path)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear" * 5000)
    with pytest.raises(StoreError, match="cannot be opened"):
        Database(tmp_path / "letter.txt")


def test_a_name_that_duckdb_takes_for_a_place_elsewhere_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (":memory:.runs", "md:runs.duckdb"):
        Database(Path(name)).close()
        assert (tmp_path / name).is_file()


def test_a_database_of_somebody_else_is_refused(tmp_path: Path) -> None:
    duckdb.connect(str(tmp_path / "theirs.duckdb")).execute("CREATE TABLE pages (page INTEGER)").close()
    with pytest.raises(StoreError, match="was not loaded by this version"):
        Database(tmp_path / "theirs.duckdb")
    with pytest.raises(StoreError, match="was not loaded by this version"):
        open_database(tmp_path / "theirs.duckdb")


def test_loaded_runs_of_another_layout_are_refused(tmp_path: Path) -> None:
    Folder(tmp_path / "place").close()
    (tmp_path / "place" / "LAYOUT").write_text("00000000\n")
    with pytest.raises(StoreError, match="00000000 found"):
        Folder(tmp_path / "place")


def test_two_loads_into_one_folder_do_not_meet(tmp_path: Path) -> None:
    first = Folder(tmp_path / "place")
    with pytest.raises(StoreError, match="another process"):
        Folder(tmp_path / "place")
    first.close()
    Folder(tmp_path / "place").close()


def test_a_folder_before_its_first_load_has_every_table(tmp_path: Path) -> None:
    Folder(tmp_path / "place").close()
    assert all(rows == [] for rows in rows_of(open_folder(tmp_path / "place")).values())


def test_what_is_no_run_is_told_by_the_reader(tmp_path: Path) -> None:
    with pytest.raises(NoJournal):
        load(Database(), tmp_path / "nowhere")


def test_progress_is_told_by_the_batch(run: Path) -> None:
    told: list[int] = []
    load(Database(), run, advance=told.append, batch_events=50)
    assert sum(told) == 150
    assert len(told) == 4


def test_a_story_with_a_restart_is_loaded_as_it_was_told() -> None:
    from .asked import loaded, told

    story = healthy()
    rows = told(
        loaded(story, batch_events=20),
        "SELECT epoch, count(*) AS events FROM events GROUP BY ALL ORDER BY ALL",
    )
    counts = {frame.epoch: 0 for frame in story.frames}
    for frame in story.frames:
        counts[frame.epoch] += len(frame.events)
    assert rows == [{"epoch": epoch, "events": count} for epoch, count in counts.items()]


def test_a_long_query_draws_nothing_on_stdout() -> None:
    """Answers go to pipes; DuckDB's own bar would stand in the middle of them."""
    store = Database()
    assert store.connection.execute("SELECT current_setting('enable_progress_bar')").fetchall() == [(False,)]
    store.close()
