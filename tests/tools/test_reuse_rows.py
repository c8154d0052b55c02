"""Where the hits went, in a store: the rows say what replay says, on every route, however often and from wherever they are loaded."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from radixledger.analytics.folder import Folder, is_folder, open_folder
from radixledger.analytics.load import load
from radixledger.analytics.queries import ask, ask_sql, find
from radixledger.analytics.store import Database, Store, open_database
from radixledger.journal.reader import JournalReader, ranks_in
from radixledger.journal.retention import Retention
from radixledger.journal.units import Seq
from radixledger.journal.writer import JournalWriter
from radixledger.replay.reuse.misses import KINDS
from radixledger.replay.reuse.reuse import Reading, Reuse
from radixledger.tools.reuse_rows import RankReuse, tell_reuse
from radixledger.tools.unread import RanksOf

from ..cache.driven import CHUNK_SHAPES, FULL_SHAPES, SHAPES, STATE_SHAPES, Driven, opened
from ..replay.runs import RANK, Clock, damage, written

Row = dict[str, Any]
PLACES: dict[str, Callable[[Path], Store]] = {"file": Database, "folder": Folder}
ROUTES: dict[str, dict[str, Any]] = {
    "unified": {"shape": SHAPES[1], "seed": 3},
    "unified, hashed keys": {"shape": SHAPES[3], "redaction": "hashed"},
    "legacy": {"shape": SHAPES[1], "route": "legacy"},
    "radix": {"shape": FULL_SHAPES[1], "route": "radix"},
    "radix with states": {"shape": STATE_SHAPES[0], "route": "radix"},
    "swa_chunk": {"shape": CHUNK_SHAPES["swa_chunk"], "route": "swa_chunk"},
    "chunk": {"shape": CHUNK_SHAPES["chunk"], "route": "chunk"},
}


def told(store: Store, run: Path, *, salvage: bool = False) -> int:
    """Load what is there and tell where its hits went; how many ranks that took a fold of."""
    load(store, run, salvage=salvage)
    return len(tell_reuse(store, [RanksOf(run, ranks_in(run))], salvage=salvage))


def asked(place: Path) -> duckdb.DuckDBPyConnection:
    """A store that is on disk."""
    return open_folder(place) if is_folder(place) else open_database(place)


def rows(connection: duckdb.DuckDBPyConnection, query: str) -> list[Row]:
    """What a query answers, by column."""
    return by_column(*ask_sql(connection, query))


def by_column(columns: tuple[str, ...], found: list[tuple[Any, ...]]) -> list[Row]:
    return [dict(zip(columns, row, strict=True)) for row in found]


def table(connection: duckdb.DuckDBPyConnection) -> list[tuple[Any, ...]]:
    """All of `reuse`, in an order that says nothing."""
    return sorted(connection.execute("FROM reuse").fetchall(), key=repr)


def account_of(run: Path, *, salvage: bool = False) -> Reuse:
    """What `replay lost-reuse` adds up."""
    reading = Reading(JournalReader(run, RANK, salvage=salvage))
    for _ in reading:
        pass
    return reading.account


def check_sums(connection: duckdb.DuckDBPyConnection, account: Reuse) -> None:
    """The rows of a run add up to its account: by kind, by cause of loss, and by cause of never having been kept."""
    kinds = rows(connection, "SELECT kind, sum(tokens)::BIGINT AS tokens FROM reuse GROUP BY kind")
    assert dict.fromkeys(KINDS, 0) | {row["kind"]: row["tokens"] for row in kinds} == account.kinds
    (hits,) = rows(connection, "SELECT count(*) AS requests FROM reuse WHERE kind = 'hit'")
    assert hits["requests"] == account.requests
    causes = by_column(*ask(connection, find("lost_reuse_by_cause")))
    assert {
        (row["cause"], row["event"], row["took"]): (row["misses"], row["losses"], row["tokens"])
        for row in causes
        if row["kind"] == "lost"
    } == {key: (each.requests, each.losses, each.tokens) for key, each in account.by_cause.items()}
    steps = rows(connection, "SELECT sum(step - by_step)::BIGINT AS steps FROM reuse WHERE kind = 'lost'")
    assert (steps[0]["steps"] or 0) == sum(each.steps for each in account.causes())
    assert {
        (row["cause"], row["event"], row["kind"]): (row["misses"], row["tokens"])
        for row in causes
        if row["kind"] != "lost"
    } == {key: (each.requests, each.tokens) for key, each in account.not_kept.items()}


@pytest.mark.parametrize("route", ROUTES)
def test_the_rows_add_up_to_what_replay_says(route: str, tmp_path: Path) -> None:
    """J23, N14."""
    written(tmp_path / "run", 300, **ROUTES[route])
    store = Database()
    assert told(store, tmp_path / "run") == 1
    account = account_of(tmp_path / "run")
    assert account.requests > 0
    assert (account.kinds["lost"] > 0) is ("chunk" not in route)
    check_sums(store.questioned(), account)


def test_a_damaged_run_is_told_as_far_as_it_can_be_read(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """J3: the rows of a salvaged run are those of replay, and what is missing is said."""
    written(tmp_path / "run", 300, rotate_bytes=4096)
    damage(tmp_path / "run")
    store = Database()
    told(store, tmp_path / "run", salvage=True)
    account = account_of(tmp_path / "run", salvage=True)
    assert account.missing > 0
    assert account.kinds["lost"] > 0
    check_sums(store.questioned(), account)
    assert f"driven, rank 0: {account.missing:,} events are missing: what they took is not named" in (
        capfd.readouterr().err
    )


@pytest.mark.parametrize("route", ROUTES)
def test_the_rows_of_an_admission_are_its_prompt_end_to_end(route: str, tmp_path: Path) -> None:
    """Each token stands in one row, the hit comes first, and the key is that of `admissions`."""
    written(tmp_path / "run", 200, **ROUTES[route])
    store = Database()
    told(store, tmp_path / "run")
    found = rows(
        store.questioned(),
        "SELECT prompt, prefix, list(reuse ORDER BY start, stop) AS fates"
        " FROM admissions LEFT JOIN reuse ON reuse.run = admissions.run AND reuse.rank = admissions.rank"
        " AND reuse.epoch = admissions.epoch AND admitted_seq = admissions.seq AND reuse.request = admissions.request"
        " AND reuse.rid = admissions.rid GROUP BY admissions.run, admissions.rank, admissions.seq, prompt, prefix",
    )
    assert found
    for row in found:
        fates, at = row["fates"], 0
        for fate in fates:
            assert (fate["start"], fate["stop"] - fate["start"]) == (at, fate["tokens"])
            at = fate["stop"]
        assert at == row["prompt"]
        assert (fates[0]["kind"], fates[0]["stop"]) == ("hit", row["prefix"])
        assert [fate["kind"] for fate in fates].count("hit") == 1


def test_a_loss_names_the_event_that_the_other_tables_know_by_its_number(tmp_path: Path) -> None:
    """What took tokens is an event of that type, cause, step and node, before the match."""
    written(tmp_path / "run", 400, seed=3)
    store = Database()
    told(store, tmp_path / "run")
    found = rows(
        store.questioned(),
        "SELECT reuse.seq > by_seq AS before, by_event = events.event AS event, reuse.cause = events.cause AS cause,"
        " by_step IS NULL OR by_step = events.step AS step, by_node IS NULL OR by_node = events.node AS node, count(*) AS n"
        " FROM reuse JOIN events ON events.run = reuse.run AND events.rank = reuse.rank AND events.seq = by_seq"
        " GROUP BY ALL",
    )
    assert [all(row.values()) for row in found] == [True]
    (many,) = rows(store.questioned(), "SELECT count(by_seq) AS n FROM reuse")
    assert many["n"] == found[0]["n"] > 10


class Growing:
    """A run that is recorded and read by turns."""

    def __init__(self, run: Path, *, rotate_bytes: int = 1 << 20) -> None:
        self.run, self.rotate_bytes = run, rotate_bytes
        self.writer = JournalWriter.open(
            run, opened(redaction="plain"), clock=Clock(), rotate_bytes=rotate_bytes
        )
        self.driven = Driven(7, recorder=self.writer, seq=self.writer.last_seq)

    def grow(self, steps: int) -> None:
        for _ in range(steps):
            self.driven.step()

    def forget(self) -> None:
        """A snapshot, and the journal begins there."""
        self.driven.cache.snapshot()
        self.grow(30)
        self.writer.retain(Retention(keep_bytes=1))


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[Growing]:
    grows = Growing(tmp_path / "run", rotate_bytes=4096)
    yield grows
    grows.writer.close()


@pytest.mark.parametrize("name", PLACES)
def test_a_second_telling_goes_on_where_the_first_ended(name: str, growing: Growing, tmp_path: Path) -> None:
    """J21: requests that were live are told again; in the end it is what one telling says."""
    place = tmp_path / "place"
    live, last = 0, list[tuple[Any, ...]]()
    for steps in (40, 3, 80, 120):
        growing.grow(steps)
        store = PLACES[name](place)
        assert (told(store, growing.run), told(store, growing.run)) == (1, 0), "nothing new takes no fold"
        store.close()
        with asked(place) as connection:
            check_sums(connection, account_of(growing.run))
            live += rows(connection, "SELECT count(*) AS n FROM reuse WHERE open")[0]["n"]
            last = table(connection)
    assert live > 0
    whole = Database()
    told(whole, growing.run)
    assert last == table(whole.questioned())


@pytest.mark.parametrize("name", PLACES)
def test_what_was_told_stays_when_the_journal_has_lost_its_beginning(
    name: str, growing: Growing, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Settled rows are not told again by a fold that knows less; no admission is told twice or left out."""
    place = tmp_path / "place"
    growing.grow(150)
    store = PLACES[name](place)
    told(store, growing.run)
    store.close()
    with asked(place) as connection:
        before = {row for row in table(connection) if row[-1] is False}
    assert before
    growing.forget()
    growing.grow(60)
    begins = JournalReader(growing.run, RANK).snapshots()[0].seq
    store = PLACES[name](place)
    assert told(store, growing.run) == 1
    store.close()
    assert f"what was lost before event {begins} is counted as never_cached" in capfd.readouterr().err
    with asked(place) as connection:
        assert before <= set(table(connection))
        (sums,) = rows(
            connection,
            "SELECT (SELECT sum(prompt) FROM admissions) = sum(tokens) AS whole,"
            " (SELECT count(*) FROM admissions) = count(*) FILTER (kind = 'hit') AS each FROM reuse",
        )
    assert all(sums.values())


def test_a_restarted_rank_is_told_over_its_epochs(tmp_path: Path) -> None:
    written(tmp_path / "run", 150, close=False)
    store = Database()
    told(store, tmp_path / "run")
    written(tmp_path / "run", 150, seed=7, resume=True)
    told(store, tmp_path / "run")
    account = account_of(tmp_path / "run")
    assert any(each.event == "Opened" and each.what == "everything" for each in account.causes())
    check_sums(store.questioned(), account)
    epochs = rows(store.questioned(), "SELECT epoch, count(*) AS n FROM reuse GROUP BY epoch ORDER BY epoch")
    assert [row["epoch"] for row in epochs] == [1, 2]


def test_nothing_is_told_of_events_that_are_not_loaded(growing: Growing) -> None:
    """A server that goes on writing is told as far as its tables go."""
    growing.grow(100)
    until = JournalReader(growing.run, RANK).last_seq
    short = list(RankReuse(JournalReader(growing.run, RANK), until))
    growing.grow(60)
    telling = RankReuse(JournalReader(growing.run, RANK), until)
    assert list(telling) == short
    assert telling.fold().last_seq == until
    assert len(list(RankReuse(JournalReader(growing.run, RANK), Seq(10**9)))) > len(short)


def test_every_rank_is_told_apart(tmp_path: Path) -> None:
    for rank in (0, 1):
        written(tmp_path / "run", 120, rank=rank, ranks=2, seed=rank)
    store = Database()
    load(store, tmp_path / "run")
    ranks = tell_reuse(store, [RanksOf(tmp_path / "run", ranks_in(tmp_path / "run"))], salvage=False)
    found = rows(
        store.questioned(),
        "SELECT rank, count(*) FILTER (kind = 'hit') AS requests, sum(tokens)::BIGINT AS prompt_tokens"
        " FROM reuse GROUP BY rank ORDER BY rank",
    )
    assert [(each.rank, each.requests, each.prompt_tokens) for each in ranks] == [
        (row["rank"], row["requests"], row["prompt_tokens"]) for row in found
    ]
    assert [each.rank for each in ranks] == [0, 1]
