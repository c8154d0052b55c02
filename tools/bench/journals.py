"""The journal and what is made of it: cost on the caller, bytes on disk, replay, load, one question over many pages.

The events are those of the multi-turn workload, driven once with the journal on. Rule: a rate is of one process and
counts everything between the files and the answer.
"""

import time
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from radixledger.analytics.load import load
from radixledger.analytics.queries import ask, find
from radixledger.analytics.store import Database
from radixledger.cache.rank import RankCache
from radixledger.journal.events import Transferred
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Rank
from radixledger.journal.writer import JournalWriter, Policy
from radixledger.replay.verify import verify_rank
from radixledger.tools.bench.bed import WORKLOAD
from radixledger.tools.bench.harness import Figure
from radixledger.tools.driver import Driver, StepClock
from radixledger.tools.opening import Recording, open_rank
from radixledger.tools.streams import ConversationStream, Shape

TOPIC = "journal, replay, analytics"


def workload_run(
    folder: Path, conversations: int, policy: Policy = Policy.STEP
) -> tuple[Path, float, RankCache]:
    """Drive the multi-turn workload under SWA pressure; the run, its CPU seconds, and the rank as it ended."""
    run = folder / f"workload-{policy.value}-{conversations}"
    clock = StepClock()
    cache = open_rank(
        RankCache, WORKLOAD, Recording(run if policy is not Policy.OFF else None, policy), clock=clock
    )
    stream = ConversationStream(Shape(conversations=conversations))
    driver = Driver(cache, stream, chunk_tokens=2048, max_running=32, clock=clock)
    begun = time.process_time()
    while driver.step():
        pass
    taken = time.process_time() - begun
    cache.close()
    return run, taken, cache


def journal_figures(folder: Path, quick: bool) -> Iterator[Figure]:
    """What a journal costs its writer, its disk and its readers."""
    conversations = 40 if quick else 250
    run, on, cache = workload_run(folder, conversations)
    events = int(cache.state.seq)
    off = min(workload_run(folder, conversations, Policy.OFF)[1] for _ in range(2))
    yield Figure(
        TOPIC, "whole drive, journal on against off", on / off, "x", note=f"{on:.2f} s against {off:.2f} s"
    )
    yield Figure(
        TOPIC, "journal, cost per event on the caller, policy step", _append_us(folder, run, events), "us", 1
    )
    yield Figure(TOPIC, "journal, bytes per event on disk, with key hashes", _sealed_bytes(run) / events, "B")
    bare = _size_without_keys(folder, run) / events
    yield Figure(TOPIC, "journal, bytes per event on disk, without key hashes", bare, "B", 25)
    begun = time.process_time()
    report = verify_rank(run, Rank(0))
    rate = report.events / (time.process_time() - begun)
    assert report.clean, report.broken
    yield Figure(TOPIC, "replay verify, events per second", rate, "/s", 200_000, more=True)
    yield Figure(
        TOPIC, "load into DuckDB, events per second and core", _load_rate(run), "/s", 1_000_000, more=True
    )
    page_events = 1_000_000 if quick else 10_000_000
    seconds = _double_free_seconds(run, page_events)
    yield Figure(TOPIC, f"double-free question over {page_events:,} page events", seconds, "s", 4)


def _replayed(folder: Path, run: Path, redaction: str, keys: bool) -> Iterator[float]:
    """Append a run's events again, a frame as it was; yields seconds of each frame, then closes and seals."""
    reader = JournalReader(run, Rank(0))
    opened = replace(reader.opened, run="", redaction=redaction)
    writer = JournalWriter.open(folder, opened, policy=Policy.STEP, clock=StepClock())
    first = True
    for frame in reader.frames():
        events = frame.events[1:] if first else frame.events
        first = False
        if not keys:
            events = [
                replace(event, key=b"") if isinstance(event, Transferred) else event for event in events
            ]
        begun = time.perf_counter()
        for event in events:
            writer.append(event)
        writer.end_command()
        writer.end_step(frame.step)
        yield time.perf_counter() - begun
    writer.close()


def _append_us(folder: Path, run: Path, events: int) -> float:
    """Microseconds per event for append, encoding, checksum and the write of each frame, nothing being decided."""
    return sum(_replayed(folder / "appended", run, "plain", keys=True)) / events * 1e6


def _size_without_keys(folder: Path, run: Path) -> int:
    """Bytes of the sealed journal with every node key left out."""
    bare = folder / "bare"
    for _ in _replayed(bare, run, "plain", keys=False):
        pass
    return _sealed_bytes(bare)


def _sealed_bytes(run: Path) -> int:
    return sum(path.stat().st_size for path in (run / "rank-0000").glob("*.sealed"))


def _load_rate(run: Path) -> float:
    """Events per CPU second from the journal's files to the tables of a database in memory."""
    store = Database()
    try:
        begun = time.process_time()
        loaded = load(store, run)
        taken = time.process_time() - begun
        return sum(rank.events for rank in loaded) / taken
    finally:
        store.close()


def _double_free_seconds(run: Path, page_events: int) -> float:
    """The double-free question over so many page events: a loaded run, its rows repeated under other run names."""
    store = Database()
    try:
        load(store, run)
        rows = int(store.connection.execute("SELECT count(*) FROM stored.pages").fetchall()[0][0])
        copies = max(1, -(-page_events // rows))
        _repeat(store, copies)
        counted = store.connection.execute("SELECT count(*) FROM pages").fetchall()[0][0]
        assert counted == rows * copies, "every copy is seen by the question"
        begun = time.perf_counter()
        answer = ask(store.questioned(), find("double_free"))
        assert not answer.rows, "a healthy run has no double free"
        return time.perf_counter() - begun
    finally:
        store.close()


def _repeat(store: Database, copies: int) -> None:
    """Let every row of `pages` stand for `copies` runs, each loaded like the one there is."""
    connection = store.connection
    connection.execute(
        "INSERT INTO stored.books SELECT range AS book, 'copy-' || range AS run, 0 FROM range(1, ?)", [copies]
    )
    others = [row[0] for row in connection.execute("DESCRIBE loads").fetchall() if row[0] != "run"]
    connection.execute(
        f"INSERT INTO loads BY NAME SELECT 'copy-' || range AS run, {', '.join(others)} FROM loads, range(1, ?)",
        [copies],
    )
    columns = [row[0] for row in connection.execute("DESCRIBE stored.pages").fetchall() if row[0] != "book"]
    connection.execute(
        f"INSERT INTO stored.pages BY NAME SELECT range AS book, {', '.join(columns)} "
        "FROM stored.pages, range(1, ?) WHERE book = 0",
        [copies],
    )
