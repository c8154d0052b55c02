"""An offline run and its command: files in, files out, journals that verify, and refusals that say what would do."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from jax.errors import JaxRuntimeError

from radixledger.journal.events import Closed, LedgerTaken, Opened
from radixledger.journal.reader import JournalReader, ranks_in
from radixledger.journal.units import Rank
from radixledger.journal.writer import Policy
from radixledger.replay.verify import verify_rank
from radixledger.tools.cli import run as run_command
from radixledger.tools.opening import Recording
from radixledger.tools.serve.engine import Outcome
from radixledger.tools.serve.loader import Checkpoint
from radixledger.tools.serve.offline import (
    Line,
    NotServable,
    Report,
    Setup,
    Sizes,
    in_order,
    make_runner,
    serve_lines,
    sizes_of,
)
from radixledger.tools.serve.requests import BadLine, Request, Result, refused
from radixledger.tools.serve.tiny import write_tiny

from .fake_runner import FakeRunner, dense_ids
from .house import ask, prompt_of

SETUP = Setup(page_size=4, full_pages=20, swa_pages=16, ranks=2, chunk_tokens=16, running=4)
A = prompt_of(5, 60)


def lines_of(count: int) -> list[Line]:
    return [
        ask(f"r{i}", [*A[: 5 * i % 31], *prompt_of(i, 3 + i % 9)], 2 + i % 7, at=2 * i) for i in range(count)
    ]


def sizes(tiny: Checkpoint, setup: Setup = SETUP, lines: Sequence[Line] = ()) -> Sizes:
    return sizes_of(setup, tiny.spec, lines)


def serve(
    tiny: Checkpoint, recording: Recording, lines: Sequence[Line], setup: Setup = SETUP
) -> tuple[Report, list[Result]]:
    """Serve with fake devices, over the sizes that the tiny model's window gives."""
    found, results = sizes(tiny, setup, lines), list[Result]()
    config = found.config
    runners = [
        FakeRunner(
            page_size=config.page_size,
            full_pages=config.full_pages,
            swa_pages=config.swa_pages,
            window_tokens=config.window_tokens,
        )
        for _ in range(setup.ranks)
    ]
    report = serve_lines(setup, found, (), recording, runners, lines, results.append)
    return report, results


def verified(run: Path) -> None:
    """Every journal of the run folds to every digest it recorded, and no law is broken."""
    for rank in ranks_in(run):
        report = verify_rank(run, rank)
        assert report.clean, report.findings
        assert report.digests > 0
        assert report.closed


def events(run: Path, rank: int = 0) -> list[Any]:
    return [event for frame in JournalReader(run, Rank(rank)).frames() for event in frame.events]


# -- a run --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [Policy.OPERATION, Policy.STEP, Policy.SYNC])
@pytest.mark.parametrize("tokens", ["hashed", "plain"])
def test_a_run_under_every_policy_verifies(
    tiny: Checkpoint, tmp_path: Path, policy: Policy, tokens: str
) -> None:
    lines = lines_of(30)
    report, results = serve(tiny, Recording(tmp_path / "run", policy, tokens), lines)
    for line, result in zip(lines, results, strict=True):
        assert isinstance(line, Request)
        assert result.rid == line.rid
        assert result.output_ids == dense_ids(line.input_ids, line.max_new_tokens, 32)
    assert report.requests == 30
    assert report.full_pages_evicted > 0
    verified(tmp_path / "run")


def test_a_report_is_what_the_journals_say(tiny: Checkpoint, tmp_path: Path) -> None:
    run = tmp_path / "run"
    report, results = serve(tiny, Recording(run), lines_of(30))
    told = [event for rank in range(2) for event in events(run, rank)]
    ledgers = [event for event in told if isinstance(event, LedgerTaken)]
    assert report.journal_events == len(told)
    assert report.journal_bytes == sum(path.stat().st_size for path in run.rglob("*.sealed"))
    assert report.tombstones == sum(ledger.tombstone_created_total for ledger in ledgers)
    assert report.full_pages_evicted * 4 == sum(ledger.full_evicted_total for ledger in ledgers)
    assert report.cached_tokens == sum(result.cached_tokens for result in results) > 0
    assert report.bytes_per_million_requests == round(report.journal_bytes / 30 * 1e6)


def test_a_run_ends_with_an_idle_ledger_and_a_clean_end(tiny: Checkpoint, tmp_path: Path) -> None:
    serve(tiny, Recording(tmp_path / "run"), lines_of(5))
    for rank in range(2):
        ledger, closed = events(tmp_path / "run", rank)[-2:]
        assert isinstance(ledger, LedgerTaken)
        assert (ledger.phase, ledger.idle) == ("end", True)
        assert isinstance(closed, Closed)


def test_time_in_the_journal_is_virtual_and_frames_carry_their_step(tiny: Checkpoint, tmp_path: Path) -> None:
    serve(
        tiny, Recording(tmp_path / "run"), [ask("a", A[:5], 3, rank=0), ask("b", A[:5], 3, at=5_000, rank=0)]
    )
    frames = list(JournalReader(tmp_path / "run", Rank(0)).frames())
    assert {frame.time_ns // 1_000_000 for frame in frames} == {0, 1, 2, 5_000, 5_001, 5_002, 5_003}
    assert max(frame.step for frame in frames) == 6


def test_without_a_journal_nothing_is_written(tiny: Checkpoint, tmp_path: Path) -> None:
    report, results = serve(tiny, Recording(tmp_path / "run", Policy.OFF), lines_of(12))
    assert list(tmp_path.iterdir()) == []
    assert (report.journal_events, report.journal_bytes, report.bytes_per_million_requests) == (0, 0, None)
    assert len(results) == 12


def test_a_resumed_run_goes_on_in_a_new_epoch_and_verifies(tiny: Checkpoint, tmp_path: Path) -> None:
    run = tmp_path / "run"
    first, _ = serve(tiny, Recording(run), lines_of(20))
    second, results = serve(tiny, Recording(run, resume=True), lines_of(20))
    assert results[0].cached_tokens == 0
    assert (second.journal_events, second.tombstones) == (first.journal_events, first.tombstones)
    assert second.journal_bytes < 2 * first.journal_bytes
    epochs = [event.epoch for event in events(run) if isinstance(event, Opened)]
    assert epochs == [1, 2]
    verified(run)


def test_a_run_that_breaks_off_leaves_a_journal_that_verifies_and_has_no_clean_end(
    tiny: Checkpoint, tmp_path: Path
) -> None:
    run, written = tmp_path / "run", 0

    def write(_result: Result) -> None:
        nonlocal written
        written += 1
        if written == 10:
            raise KeyboardInterrupt

    lines = lines_of(30)
    runners = [FakeRunner(page_size=4, full_pages=20, swa_pages=16, window_tokens=32) for _ in range(2)]
    with pytest.raises(KeyboardInterrupt):
        serve_lines(SETUP, sizes(tiny, lines=lines), (), Recording(run), runners, lines, write)
    for rank in ranks_in(run):
        report = verify_rank(run, rank)
        assert (report.clean, report.closed) == (True, False)
    serve(tiny, Recording(run, resume=True), lines_of(3))
    verified(run)


def test_bad_lines_have_results_in_their_places(tiny: Checkpoint, tmp_path: Path) -> None:
    lines: list[Line] = [
        BadLine(1, "rid", "missing"),
        ask("a", A[:5], 2),
        BadLine(3, "", "not a JSON object", rid="b"),
    ]
    _, results = serve(tiny, Recording(tmp_path / "run"), lines)
    assert [(result.rid, result.finish_reason) for result in results] == [
        (None, "refused"),
        ("a", "length"),
        ("b", "refused"),
    ]


def test_results_leave_as_soon_as_those_before_them_have() -> None:
    results = [refused(ask(str(place), [1], 1), "") for place in range(4)]
    left: list[str | None] = []
    seen: list[list[str | None]] = []

    def outcomes() -> Any:
        for place in (2, 0, 1, 3):
            yield Outcome(place, results[place], 0)
            seen.append(list(left))

    left += (result.rid for result in in_order(outcomes()))
    assert seen == [[], ["0"], ["0", "1", "2"], ["0", "1", "2", "3"]]


# -- sizes --------------------------------------------------------------------------------------------------------------


def test_page_tables_are_as_wide_as_what_can_be_served_needs(tiny: Checkpoint) -> None:
    lines = [ask("a", A[:40], 30), ask("never", [1] * 5_000, 1)]
    found = sizes(tiny, Setup(page_size=16, full_pages=64), lines)
    assert (found.config.context_pages, found.context_tokens) == (8, tiny.spec.context_tokens)


def test_a_context_length_is_kept_to_the_token(tiny: Checkpoint, tmp_path: Path) -> None:
    setup = SETUP._replace(context_tokens=30)
    _, results = serve(tiny, Recording(tmp_path / "run"), [ask("a", A[:20], 12), ask("b", A[:20], 11)], setup)
    assert [result.finish_reason for result in results] == ["refused", "length"]
    assert "at most 30" in str(results[0].error)


def test_pools_of_the_default_size_hold_more_windows_than_requests_run(tiny: Checkpoint) -> None:
    config = sizes(tiny, Setup()).config
    assert (config.full_pages, config.swa_pages) == (4_096, 32 * 4 + 16 + 128 * 3)


def test_a_page_that_attention_cannot_read_names_the_option(tiny: Checkpoint) -> None:
    """R14: before anything is compiled."""
    with pytest.raises(NotServable, match=r"page_size 5: it must divide 64 .* give another --page-size"):
        sizes(tiny, Setup(page_size=5))


def test_a_device_without_room_says_which_sizes_to_give(
    tiny: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_device(*_: object, **__: object) -> None:
        raise JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 8796093026304 bytes.")

    monkeypatch.setattr("radixledger.tools.serve.offline.Runner", full_device)
    with pytest.raises(NotServable, match=r"20 FULL and 16 SWA pages; fewer --full-pages"):
        make_runner(SETUP, sizes(tiny).config, tiny)


@pytest.mark.parametrize(("chunk", "tokens"), [(16, 20), (72, 76), (77, 80), (1 << 40, 80)])
def test_a_step_has_no_more_room_than_there_are_slots(
    tiny: Checkpoint, monkeypatch: pytest.MonkeyPatch, chunk: int, tokens: int
) -> None:
    """Each token of a step is written to a FULL slot of its own; a chunk beyond that would only take memory."""
    asked: list[Any] = []

    class Measured(FakeRunner):
        def __init__(self, *_: object, max_tokens: int, **__: object) -> None:
            asked.append(max_tokens)

        def compile(self) -> None:
            """Nothing to do."""

    monkeypatch.setattr("radixledger.tools.serve.offline.Runner", Measured)
    make_runner(SETUP._replace(chunk_tokens=chunk), sizes(tiny).config, tiny)
    assert asked == [tokens]


# -- the command -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file of requests, as the current one."""
    monkeypatch.chdir(tmp_path)
    rows = [
        {
            "rid": f"r{i}",
            "input_ids": [*A[:24], *prompt_of(i, 9)],
            "max_new_tokens": 6,
            "ignore_eos": True,
            "arrival_ms": 9 * i,
        }
        for i in range(4)
    ]
    (tmp_path / "requests.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


SERVE = ["serve", "--offline", "requests.jsonl", "--output", "results.jsonl", "--model-path", "tiny"]
UNIFIED = ["--enable-unified-radix-tree", "--max-running-requests", "4", "--chunked-prefill-size", "28"]


def results_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]


def test_the_command_serves_a_file_and_tells_what_it_did(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_command([*SERVE, *UNIFIED, "--journal", "run"]) == 0
    told = capfd.readouterr()
    assert "4 (4 length)" in told.out
    assert "per million such requests" in told.out
    assert "replay verify run" in told.err
    results = results_of(here)
    assert [result["rid"] for result in results] == ["r0", "r1", "r2", "r3"]
    assert [result["cached_tokens"] for result in results] == [0, 16, 16, 16]
    assert (here / "run.redaction.key").stat().st_mode & 0o777 == 0o600
    verified(here / "run")


def test_warm_ids_are_cold_ids_and_json_is_one_document(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    warm: list[list[int]] = []
    cold: list[list[int]] = []
    for misses, found in (([], warm), (["--force-miss"], cold)):
        assert run_command([*SERVE, "--force", *UNIFIED, *misses, "--commit-policy", "off", "--json"]) == 0
        report = json.loads(capfd.readouterr().out)
        assert (report["journal"], report["requests"]) == (None, 4)
        assert (report["cached_tokens"] > 0) is not bool(misses)
        found += [result["output_ids"] for result in results_of(here)]
    assert warm == cold
    assert len({token for ids in warm for token in ids}) >= 10, "a model that says one thing proves nothing"


def test_refusals_cost_the_others_nothing_and_leave_with_1(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with (here / "requests.jsonl").open("a") as file:
        file.write('{"rid": "bad", "input_ids": [1], "max_new_tokens": "x"}\n')
        file.write(json.dumps({"rid": "long", "input_ids": [1] * 500, "max_new_tokens": 1}) + "\n")
    assert run_command([*SERVE, *UNIFIED, "--journal", "run", "--full-pages", "16", "--tokens", "plain"]) == 1
    told = capfd.readouterr()
    assert "refused 'bad': line 5, max_new_tokens: Expected `int`, got `str`" in told.err
    assert "take 32 FULL pages of 16 tokens; the rank has 16" in told.err
    assert [result["finish_reason"] for result in results_of(here)] == ["length"] * 4 + ["refused"] * 2
    assert not (here / "run.redaction.key").exists()


def test_an_endless_request_id_is_shown_by_its_beginning(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (here / "requests.jsonl").write_text(
        json.dumps({"rid": "x" * 70_000, "input_ids": [1], "max_new_tokens": 1}) + "\n"
    )
    assert run_command([*SERVE, *UNIFIED, "--journal", "run"]) == 1
    assert "refused '" + "x" * 60 + "'...: line 1, rid: " in capfd.readouterr().err
    assert results_of(here)[0]["rid"] == "x" * 70_000


def test_an_existing_run_is_refused_unless_it_is_to_go_on(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = [*SERVE, *UNIFIED, "--journal", "run"]
    assert run_command(command) == 0
    first = (here / "results.jsonl").read_bytes()
    (here / "results.jsonl").write_bytes(b"mine\n")
    assert run_command(command) == 2
    assert "--resume-run" in capfd.readouterr().err
    assert (here / "results.jsonl").read_bytes() == b"mine\n", "a command that is refused writes nothing"
    assert run_command([*command, "--resume-run", "--force"]) == 0
    assert (here / "results.jsonl").read_bytes() == first
    verified(here / "run")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--enable-unified-radix-tree"], "--journal RUN"),
        ([*UNIFIED, "--journal", "run", "--output", "requests.jsonl"], "a file of their own"),
        ([*UNIFIED, "--journal", "run", "--page-size", "48"], "48"),
        ([*UNIFIED, "--journal", "run", "--full-pages", str(1 << 31)], "--full-pages"),
        ([*UNIFIED, "--journal", "run", "--model-path", ".", "--window", "8"], "--window"),
    ],
)
def test_what_cannot_be_run_is_refused_with_what_would_do(
    here: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert run_command([*SERVE, *arguments]) == 2
    assert said in capfd.readouterr().err
    assert not (here / "run").exists()


def test_without_a_file_of_requests_the_command_says_that_there_is_no_server_yet(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert run_command(["serve", "--output", "out", "--model-path", "tiny", "--commit-policy", "off"]) == 2
    assert "HTTP is not built yet" in capfd.readouterr().err


def test_a_checkpoint_on_disk_is_served_like_the_built_in_one(here: Path) -> None:
    write_tiny(here / "model")
    ids = []
    for model in ("tiny", "model"):
        serve_it = [*SERVE[:-1], model, "--force", *UNIFIED, "--commit-policy", "off"]
        assert run_command(serve_it) == 0
        ids.append([len(result["output_ids"]) for result in results_of(here)])
    assert ids[0] == ids[1] == [6] * 4
