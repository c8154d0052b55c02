"""Driving a cache without a model: the schedule of a server, and figures that the journal confirms."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from radixledger.cache.faces.routing import RouteName
from radixledger.cache.rank import RankCache
from radixledger.cache.refusals import Refusal
from radixledger.journal.events import Config
from radixledger.journal.reader import JournalReader, ranks_in
from radixledger.journal.redact import default_key_path
from radixledger.journal.retention import Retention
from radixledger.journal.units import Rank
from radixledger.journal.writer import JournalWriter, Policy
from radixledger.replay.verify import verify_rank
from radixledger.tools.cli import run as radixledger
from radixledger.tools.driver import Driver, StepClock
from radixledger.tools.opening import Recording, open_rank
from radixledger.tools.streams import ConversationStream, Shape

SAMPLE = Path(__file__).parent.parent / "data" / "mooncake_sample.jsonl"

SMALL = Shape(conversations=12, turns=3, system=40, user=30, answer=12, active=6)


def driven(full_pages: int, swa_pages: int, *, chunk: int = 64, running: int = 4) -> tuple[RankCache, Driver]:
    config = Config(8, full_pages, swa_pages, 20, rows=8, context_pages=64)
    cache = open_rank(RankCache, config, Recording(None))
    driver = Driver(cache, ConversationStream(SMALL), chunk_tokens=chunk, max_running=running)
    while driver.step():
        pass
    return cache, driver


def test_every_request_ends_and_an_idle_rank_holds_pages_in_the_tree_only() -> None:
    """R156: at idle, available + tree = capacity."""
    cache, driver = driven(200, 120)
    assert driver.counts.finished == 36
    ledger = cache.record_ledger("idle")
    assert ledger.idle
    assert ledger.full_available + ledger.full_tree_evictable == ledger.full_capacity
    assert ledger.swa_available + ledger.swa_tree_evictable == ledger.swa_capacity


def test_pressure_evicts_tombstones_and_retracts_and_all_requests_are_still_served() -> None:
    """B112: each pool is asked for what it lacks itself."""
    cache, driver = driven(44, 30, running=6)
    assert driver.counts.finished == 36
    assert driver.counts.retracted > 0
    assert driver.counts.output_tokens == 36 * SMALL.answer
    assert cache.state.totals.full_evicted > 0
    assert cache.state.totals.tombstones > 0
    assert cache.flush() >= 0
    assert cache.state.full.available == 44


LONG = Shape(conversations=6, turns=4, system=64, user=90, answer=10, active=3)


@pytest.mark.parametrize("running", [1, 3])
@pytest.mark.parametrize("victims", ["lru", "use"])
@pytest.mark.parametrize("swa_pages", range(14, 38, 3))
def test_whoever_fits_alone_is_served_however_his_own_prefix_stands_in_the_way(
    swa_pages: int, victims: str, running: int
) -> None:
    """B109, B116: a lock that holds more than a window, a dead window behind it, and nobody else who could yield."""
    config = Config(8, 90, swa_pages, 20, rows=8, context_pages=80, swa_victims=victims)
    cache = open_rank(RankCache, config, Recording(None))
    driver = Driver(cache, ConversationStream(LONG), chunk_tokens=64, max_running=running)
    assert any(not driver.step() for _ in range(5_000)), "it goes round in circles"
    assert driver.counts.finished + driver.counts.refused == 24
    assert driver.counts.refused == 0
    cache.flush()
    assert (cache.state.full.available, cache.state.swa.available) == (90, swa_pages)


@pytest.mark.parametrize(
    ("route", "window", "swa_pages"), [("swa_chunk", 20, 16), ("chunk", 0, 0), ("radix", 0, 0)]
)
def test_a_long_prompt_is_driven_where_no_tree_or_no_window_takes_its_pages(
    route: RouteName, window: int, swa_pages: int
) -> None:
    """R151, R211: prompts of up to 25 pages pass through 16 pages of window, given back between two chunks."""
    config = Config(8, 60, swa_pages, window, rows=8, context_pages=64)
    cache = open_rank(RankCache, config, Recording(None), route=route)
    driver = Driver(cache, ConversationStream(SMALL), chunk_tokens=64, max_running=4)
    assert any(not driver.step() for _ in range(20_000)), "it goes round in circles"
    assert (driver.counts.finished, driver.counts.refused) == (36, 0)
    assert (driver.counts.hit_tokens > 0) == (route == "radix")
    cache.flush()
    assert (cache.state.full.available, cache.state.swa.available) == (60, swa_pages)


def test_a_request_that_can_never_fit_is_refused_and_the_next_one_is_served() -> None:
    """B116: the queue does not stand behind a prompt that is larger than the pool."""
    _, driver = driven(15, 15, running=2)
    assert driver.counts.refused > 0
    assert driver.counts.finished > 0


def test_the_drive_command_prints_what_its_journal_says(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    words = [
        "drive",
        str(SAMPLE),
        "--journal",
        str(run),
        "--enable-unified-radix-tree",
        "--limit",
        "12",
        "--dp-size",
        "2",
    ]
    assert radixledger([*words, "--full-pages", "700", "--swa-pages", "300", "--json"]) == 0
    told = json.loads(capfd.readouterr().out)
    seen: Counter[str] = Counter()
    for rank in ranks_in(run):
        for frame in JournalReader(run, rank).frames():
            seen.update(type(event).__name__ for event in frame.events)
    assert told["requests"] == 12 == seen["Finished"]
    assert told["events"] == seen.total()
    assert told["tombstones"] == seen["Tombstoned"]
    assert told["heals"] == seen["Healed"]
    assert told["retractions"] == seen["Retracted"]


def test_the_same_drive_leaves_the_same_events_at_the_same_virtual_times(tmp_path: Path) -> None:
    def events(name: str) -> Sequence[object]:
        run = tmp_path / name
        words = ["drive", str(SAMPLE), "--journal", str(run), "--enable-unified-radix-tree", "--limit", "4"]
        assert radixledger([*words, "--commit-policy", "step", "--tokens", "plain"]) == 0
        frames = list(JournalReader(run, ranks_in(run)[0]).frames())
        return [(frame.time_ns, event) for frame in frames for event in frame.events][1:]

    assert events("one") == events("two")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--enable-unified-radix-tree"], "--journal"),
        (["--journal", "run", "--enable-unified-radix-tree", "--window", "-1"], "--window"),
        (["--journal", "run", "--enable-unified-radix-tree", "--page-size", "0"], "--page-size"),
        (["--journal", "run", "--enable-unified-radix-tree", "--dp-size", "0"], "--dp-size"),
        (["--journal", "run", "--enable-unified-radix-tree", "--dp-size", "99999999"], "--dp-size"),
    ],
)
def test_a_wrong_command_line_is_refused_before_a_journal_exists(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    """R14: nothing is built for a configuration that cannot be."""
    run = tmp_path / "run"
    assert radixledger(["drive", str(SAMPLE), *[str(run) if word == "run" else word for word in words]]) == 2
    assert says in capfd.readouterr().err
    assert not run.exists()


def test_a_run_is_never_driven_over(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = [
        "drive",
        str(SAMPLE),
        "--journal",
        str(tmp_path / "run"),
        "--enable-unified-radix-tree",
        "--limit",
        "1",
    ]
    assert radixledger(words) == 0
    kept = [path.read_bytes() for path in sorted(tmp_path.rglob("*.s*"))]
    assert radixledger(words) == 2
    assert "give --journal another folder" in capfd.readouterr().err
    assert [path.read_bytes() for path in sorted(tmp_path.rglob("*.s*"))] == kept != []


def test_a_resumed_run_never_uses_an_id_of_an_earlier_epoch_again(tmp_path: Path) -> None:
    config = Config(8, 60, 40, 20, rows=8, context_pages=64)
    ids: set[int] = set()
    for resume in (False, True, True):
        recording = Recording(tmp_path / "run", Policy.OPERATION, resume=resume)
        cache = open_rank(RankCache, config, recording, clock=StepClock())
        admitted = {cache.admit(f"r{at}", bytes(64), 16).request for at in range(3)}
        assert not admitted & ids
        ids |= admitted
        cache.close()


def test_a_request_waits_when_all_rows_are_taken() -> None:
    cache = open_rank(RankCache, Config(8, 60, 40, 20, rows=1, context_pages=64), Recording(None))
    cache.admit("a", bytes(64), 16)
    with pytest.raises(Refusal, match="all 1 rows"):
        cache.admit("b", bytes(64), 16)


def test_a_drive_that_keeps_little_leaves_a_journal_that_begins_at_a_snapshot(tmp_path: Path) -> None:
    """Retention never cuts the baseline: what is left folds, and is clean."""
    config = Config(8, 44, 30, 20, rows=8, context_pages=64)
    recording = Recording(
        tmp_path / "run", Policy.STEP, snapshot_every=300, retention=Retention(keep_bytes=4000)
    )
    clock = StepClock()
    cache = open_rank(RankCache, config, recording, clock=clock)
    driver = Driver(cache, ConversationStream(SMALL), chunk_tokens=64, max_running=6, clock=clock)
    writer = cache.journal
    assert isinstance(writer, JournalWriter)
    while driver.step():
        if clock.steps % 40 == 0:
            writer.rotate()
    cache.close()
    report = verify_rank(tmp_path / "run", Rank(0))
    assert report.clean
    assert report.from_snapshot
    assert report.seq_last == cache.state.seq


def test_a_request_that_wants_more_tokens_than_there_are_is_refused_without_making_them(
    tmp_path: Path,
) -> None:
    """R156: a length is compared with the pools before anything is allocated for it."""
    trace = tmp_path / "trace.jsonl"
    trace.write_text('{"input_length": 5, "output_length": 99999999999999, "hash_ids": [1]}\n')
    command = ["drive", str(trace), "--enable-unified-radix-tree", "--commit-policy", "off", "--json"]
    assert radixledger(command) == 1


def test_a_run_needs_a_folder_with_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    """J1: the root of a disk has none, and nothing is made in it."""
    assert radixledger(["drive", str(SAMPLE), "--enable-unified-radix-tree", "--journal", "/"]) == 2
    assert "/ has no name" in capsys.readouterr().err


def test_the_key_of_a_run_never_lies_in_it_however_its_folder_is_spelled() -> None:
    """J6: `..` is no name to put the key beside."""
    assert default_key_path(Path("/runs/monday/inner/..")) == Path("/runs/monday.redaction.key")


def test_a_drive_that_is_watched_tells_the_same(tmp_path: Path) -> None:
    """J14: every law of every event and of the state is asked on the way, and nothing else changes."""
    told = [
        radixledger([*f"drive {SAMPLE} --unified --full-pages 900 --swa-pages 300 --limit 12 --tokens plain --watch {level}".split(),
                     "--journal", str(tmp_path / level)])
        for level in ("books", "state")
    ]  # fmt: skip
    assert told == [0, 0]
    events = [
        [event for frame in JournalReader(tmp_path / level, Rank(0)).frames() for event in frame.events]
        for level in ("books", "state")
    ]
    assert events[0][1:] == events[1][1:]
    assert len(events[0]) > 200


def test_a_run_that_is_refused_leaves_no_key_behind(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "trace.jsonl"
    trace.write_text('{"timestamp": 0, "input_length": 600, "output_length": 4, "hash_ids": [1, 2]}\n')
    command = ["drive", str(trace), "--journal", str(tmp_path / "run"), "--unified"]
    assert radixledger(command) == 0
    key = tmp_path / "team.key"
    assert radixledger([*command, "--key-file", str(key)]) == 2
    assert "holds a journal already" in capfd.readouterr().err
    assert not key.exists()
    assert radixledger([*command[:3], str(tmp_path / "other"), "--unified", "--key-file", str(key)]) == 0
    assert key.stat().st_mode & 0o777 == 0o600
