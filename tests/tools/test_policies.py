"""Policies from the command line to the first event of a journal, and what whole workloads make of them."""

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import asdict

from radixledger.cache.sizing import split_pages, swa_pages_for
from radixledger.journal.events import Admitted, Config
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Rank
from radixledger.replay.verify import verify_rank
from radixledger.tools.bench.bound import best_hit_rate
from radixledger.tools.bench.workload import BY_USE, drawn
from radixledger.tools.cli import run as radixledger
from radixledger.tools.policy_options import Policies

SIZES = {"window_tokens": 1024, "page_size": 128, "running": 32, "chunk_tokens": 2048}


def trace(folder: Path, lines: list[dict[str, object]]) -> Path:
    path = folder / "trace.jsonl"
    path.write_text("".join(json.dumps({"timestamp": 0, "output_length": 4} | line) + "\n" for line in lines))
    return path


def test_what_is_asked_for_stands_in_the_first_event_and_the_journal_is_lawful(tmp_path: Path) -> None:
    """J5: a replay knows by which order victims were chosen, and judges them by it."""
    lines = [{"input_length": 1500, "hash_ids": [1, each, each + 50]} for each in range(2, 20)]
    words = [
        "--swa-victims",
        "use",
        "--eviction",
        "slru",
        "--tombstone-leaf",
        "materialise",
        "--formula",
        "tight",
    ]
    sizes = ["--page-size", "64", "--window", "256", "--full-pages", "60", "--swa-pages", "40"]
    command = ["drive", str(trace(tmp_path, lines)), "--journal", str(tmp_path / "run"), "--unified"]
    assert radixledger([*command, *sizes, "--max-running-requests", "2", *words]) == 0
    config = JournalReader(tmp_path / "run", Rank(0)).opened.config
    asked = Policies("use", "slru", "materialise", "tight")
    assert {name: getattr(config, name) for name in Policies._fields} == asked._asdict()
    assert verify_rank(tmp_path / "run", Rank(0)).clean


def test_a_policy_goes_into_a_configuration_and_changes_nothing_else() -> None:
    before = Config(4, 10, 10, 8)
    after = Policies(eviction="priority").put_into(before)
    assert {name for name, value in asdict(before).items() if getattr(after, name) != value} == {"eviction"}


@pytest.mark.parametrize("words", [["--swa-victims", "use"], ["--eviction", "slru"]])
def test_an_order_that_the_route_does_not_know_is_refused_before_a_journal_is_begun(
    words: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """R14, R204: by the option's value and the route's name."""
    path = trace(tmp_path, [{"input_length": 512, "hash_ids": [1]}])
    assert radixledger(["drive", str(path), "--journal", str(tmp_path / "run"), *words]) == 2
    assert "legacy" in capfd.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_line_of_a_trace_may_say_its_priority(tmp_path: Path) -> None:
    """Under `--eviction priority` the important prefix outlives the others; its priority stands in its admission."""
    lines: list[dict[str, object]] = [{"input_length": 512, "hash_ids": [1], "priority": 3}]
    lines += [{"input_length": 512, "hash_ids": [each]} for each in range(2, 8)]
    path = trace(tmp_path, [*lines, {"input_length": 600, "hash_ids": [1, 9]}])
    sizes = ["--page-size", "64", "--window", "128", "--full-pages", "24", "--swa-pages", "24"]
    hits = {}
    for policy in ("lru", "priority"):
        run = tmp_path / policy
        words = ["--journal", str(run), "--unified", "--max-running-requests", "1", "--eviction", policy]
        assert radixledger(["drive", str(path), *sizes, *words]) == 0
        admitted = [event for event in events(run) if isinstance(event, Admitted)]
        assert [event.priority for event in admitted] == [3, 0, 0, 0, 0, 0, 0, 0]
        hits[policy] = admitted[-1].prefix
    assert hits == {"lru": 0, "priority": 512}


def events(run: Path) -> list[object]:
    return [event for frame in JournalReader(run, Rank(0)).frames() for event in frame.events]


def test_a_priority_that_fits_no_int32_is_refused_with_its_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = trace(tmp_path, [{"input_length": 512, "hash_ids": [1], "priority": 1 << 40}])
    assert radixledger(["drive", str(path), "--journal", str(tmp_path / "run"), "--unified"]) == 3
    assert "line 1" in capfd.readouterr().err


# -- sizes ---------------------------------------------------------------------------------------------------


def test_the_rule_adds_what_runs_what_is_computed_and_what_is_kept() -> None:
    """Windows of 8 pages: 32 x 10, 16 for a chunk, 9 for each prefix."""
    assert swa_pages_for(**SIZES, kept_prefixes=0) == 336
    assert swa_pages_for(**SIZES, kept_prefixes=60) == 336 + 540


def test_one_memory_is_split_so_that_each_prefix_keeps_its_window() -> None:
    """All of it is given away, and SWA is as large as the rule says for the prefixes that FULL can keep."""
    split = split_pages(4096, **SIZES)
    assert tuple(split) == (2941, 1155)
    assert sum(split) == 4096
    assert split.swa == swa_pages_for(**SIZES, kept_prefixes=split.full // 32)
    longer = split_pages(4096, **SIZES, prefix_tokens=16384)
    assert longer.full > split.full
    with pytest.raises(ValueError, match="no prefix of 4096 tokens beside 32 requests"):
        split_pages(370, **SIZES)


# -- the bench -----------------------------------------------------------------------------------------------


def prompts(*texts: str) -> list[tuple[np.ndarray[tuple[int], np.dtype[np.int32]], bool]]:
    return [(np.frombuffer(text.encode("utf-32-le"), np.int32), True) for text in texts]


def test_the_bound_is_what_the_best_choice_of_pages_gives() -> None:
    """Pages of one token, the last of each prompt is computed: by hand, and by trying every choice for a small case."""
    asked = prompts("ax", "bx", "ax", "bx", "cx", "ax")
    assert best_hit_rate(asked, page_size=1, capacity=2) == 3 / 12
    assert best_hit_rate(asked, page_size=1, capacity=1) == 2 / 12
    assert best_hit_rate(asked, page_size=2, capacity=9) == 0
    letters = "abcabdacbd"
    asked = prompts(*(letter + "x" for letter in letters))
    for capacity in (1, 2, 3):
        assert best_hit_rate(asked, page_size=1, capacity=capacity) == tried(letters, capacity) / 20


def tried(letters: str, capacity: int) -> int:
    """The most hits that any sequence of kept sets can give."""
    best = {frozenset[str](): 0}
    for letter in letters:
        found: dict[frozenset[str], int] = {}
        for kept, hits in best.items():
            reachable = kept | {letter}
            for size in range(min(capacity, len(reachable)) + 1):
                for chosen in combinations(sorted(reachable), size):
                    now = frozenset(chosen)
                    found[now] = max(found.get(now, 0), hits + (letter in kept))
        best = found
    return max(best.values())


def test_the_workload_is_told_for_each_memory_route_and_order(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Every order of victims is below the bound, and by use no workload is served worse than by recency."""
    path = trace(tmp_path, [{"input_length": 900, "hash_ids": [1, each % 5]} for each in range(2, 30)])
    assert radixledger(["bench", "workload", "--quick", "--trace", str(path), "--json"]) == 0
    runs = json.loads(capfd.readouterr().out)["runs"]
    base = [run for run in runs if run["load"] == "8 turns of 500"]
    assert {(run["memory"], run["cache"]) for run in base} == {
        (memory, cache)
        for memory in ("FULL-bound", "SWA-bound", "split by rule")
        for cache in ("unified, lru", "unified, use", "legacy", "swa_chunk")
    }
    assert {run["load"] for run in runs} >= {"trace.jsonl", "uneven turns, seed 0", "3 turns of 2,000"}
    for run in runs:
        assert 0 <= run["hit_rate"] <= run["full_hit_rate"] <= run["best"] <= 1
        assert min(run["events"], run["journal_bytes"], run["host_seconds"]) > 0
    rates = {(run["load"], run["memory"], run["cache"]): run["hit_rate"] for run in runs}
    for (load, memory, cache), rate in rates.items():
        if cache == BY_USE.name:
            assert rate >= rates[load, memory, "unified, lru"]


def test_a_rate_is_drawn_up_to_the_best_that_could_be() -> None:
    assert drawn(0.5, 0.75, 8) == "████··▏"
    assert drawn(0.0, 0.0, 8) == "▏"


def test_a_trace_goes_with_the_workload_alone(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = trace(tmp_path, [{"input_length": 512, "hash_ids": [1]}])
    assert radixledger(["bench", "system", "--trace", str(path)]) == 2
    assert radixledger(["bench", "workload", "system"]) == 2
    assert "workload" in capfd.readouterr().err
