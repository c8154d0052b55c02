"""What is asked for on the command line is what the journal names, or it is refused before anything exists."""

import json
from pathlib import Path
from typing import Any

import pytest

from radixledger.cache.faces.routing import RouteName
from radixledger.journal.events import Opened
from radixledger.journal.reader import JournalReader, ranks_in
from radixledger.replay.verify import verify_rank
from radixledger.tools.cli import run as radixledger
from radixledger.tools.console import CommandFailure
from radixledger.tools.route_options import NOT_BUILT_IN, Asked, route_for

SAMPLE = Path(__file__).parent.parent / "data" / "mooncake_sample.jsonl"

COMMAND_LINES: dict[str, tuple[list[str], RouteName]] = {
    "nothing": ([], "legacy"),
    "--no-unified": (["--no-unified"], "legacy"),
    "--unified": (["--unified"], "unified"),
    "as other servers call it": (["--enable-unified-radix-tree"], "unified"),
    "the last one counts": (["--unified", "--no-unified", "--unified"], "unified"),
    "no tree": (["--disable-radix-cache"], "swa_chunk"),
    "no tree, unified": (["--disable-radix-cache", "--unified"], "swa_chunk"),
    "no window": (["--window", "0"], "radix"),
    "no window, unified": (["--window", "0", "--unified"], "radix"),
    "no window, no tree": (["--window", "0", "--disable-radix-cache"], "chunk"),
    "no window, no tree, unified": (["--window", "0", "--disable-radix-cache", "--unified"], "chunk"),
}
"""The model is a hybrid one unless its window is 0."""

FLAGS: list[tuple[list[str], str, str]] = [
    (["--hierarchical-cache"], "--hierarchical-cache", "R8"),
    (["--hicache-storage-backend", "file"], "--hicache-storage-backend", "R8"),
    (["--disaggregation", "prefill"], "--disaggregation", "R9"),
    (["--disaggregation", "decode"], "--disaggregation", "R9"),
    (["--speculative", "eagle"], "--speculative", "R10"),
    (["--speculative", "EAGLE3"], "--speculative", "R10"),
    (["--speculative", "dspark"], "--speculative", "R10"),
    (["--speculative", "DFlash"], "--speculative", "R10"),
]
"""What is asked for, its option, the row that refuses it to the unified route."""


def drive(run: Path, *words: str) -> int:
    return radixledger(
        ["drive", str(SAMPLE), "--journal", str(run), "--limit", "6", "--page-size", "64", *words]
    )


@pytest.mark.parametrize("name", COMMAND_LINES)
def test_the_journal_names_the_route_that_the_options_mean(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """R195-R199, A43: in each rank's `Opened`, in the JSON, and in a run that verifies."""
    words, route = COMMAND_LINES[name]
    run = tmp_path / "run"
    assert drive(run, "--dp-size", "2", "--json", *words) == 0
    told = json.loads(capfd.readouterr().out)
    assert (told["route"], told["requests"], told["refused"]) == (route, 6, 0)
    for rank in ranks_in(run):
        first = next(iter(JournalReader(run, rank).frames())).events[0]
        assert isinstance(first, Opened)
        assert first.route == route
        assert verify_rank(run, rank).clean


@pytest.mark.parametrize("command", ["drive", "serve"])
@pytest.mark.parametrize(("words", "option", "row"), FLAGS)
def test_what_the_unified_route_does_not_serve_is_refused_with_its_option(
    command: str, words: list[str], option: str, row: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """R8-R10, R14, R204: exit 2, the option and the way back are named, no journal, no results, no key."""
    assert started(command, tmp_path, "--unified", *words) == 2
    told = capfd.readouterr()
    assert told.out == ""
    for part in (
        option,
        f", {row})",
        "--no-unified",
    ):
        assert part in told.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["requests.jsonl"]


@pytest.mark.parametrize("command", ["drive", "serve"])
@pytest.mark.parametrize(("words", "option", "row"), FLAGS)
@pytest.mark.parametrize(
    "others", [["--no-unified"], ["--disable-radix-cache", "--unified"]], ids=lambda x: x[0]
)
def test_on_another_route_it_is_not_the_route_that_refuses_it(
    command: str,
    words: list[str],
    option: str,
    row: str,
    others: list[str],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """R201: what these programs do not have is said to be theirs, and is not passed over in silence."""
    assert started(command, tmp_path, *others, *words) == 2
    told = capfd.readouterr().err
    assert f"leave {option} out" in told
    assert "(the route would be " in told
    assert row not in told
    assert sorted(path.name for path in tmp_path.iterdir()) == ["requests.jsonl"]


def started(command: str, folder: Path, *words: str) -> int:
    """Try to start a run of `folder`."""
    requests = folder / "requests.jsonl"
    requests.write_text('{"rid": "r", "input_ids": [1], "max_new_tokens": 1}\n')
    if command == "drive":
        return drive(folder / "run", *words)
    serve = ["serve", "--offline", str(requests), "--output", str(folder / "out"), "--model-path", "tiny"]
    return radixledger([*serve, "--journal", str(folder / "run"), *words])


def test_a_refused_command_line_loads_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R204: it fails while the weights are still on disk."""

    def loaded(*_: Any) -> None:
        raise AssertionError("a model was loaded")

    monkeypatch.setattr("radixledger.tools.serve.command.load_tiny", loaded)
    assert started("serve", tmp_path, "--unified", "--hierarchical-cache") == 2


@pytest.mark.parametrize(
    "words", [["--disaggregation", "both"], ["--speculative", "medusa"], ["--key-mode", "trigram"]]
)
@pytest.mark.parametrize("command", ["drive", "serve"])
def test_a_word_that_means_nothing_is_refused_with_those_that_do(
    command: str, words: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert started(command, tmp_path, *words) == 2
    told = capfd.readouterr().err
    assert words[1] in told
    assert {"both": "prefill", "medusa": "dspark", "trigram": "bigram"}[words[1]] in told


@pytest.mark.parametrize("command", ["drive", "serve"])
def test_keys_of_pairs_beside_windows_have_to_be_lifted_by_name(
    command: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """R10, R267: refused by the route alone, with the option that lifts it; nothing else is asked of such a run."""
    assert started(command, tmp_path, "--unified", "--key-mode", "bigram") == 2
    told = capfd.readouterr().err
    assert all(part in told for part in ("key_mode is bigram, R10", "--key-mode raw", "--lift-bigram"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["requests.jsonl"]
    assert started(command, tmp_path, "--unified", "--key-mode", "bigram", "--lift-bigram") == 0


@pytest.mark.parametrize(
    ("words", "lifted"),
    [
        (["--unified", "--lift-bigram"], True),
        (["--disable-radix-cache"], True),
        (["--window", "0"], False),
        (["--window", "0", "--disable-radix-cache"], False),
    ],
)
@pytest.mark.parametrize("windows", ["on", "off"])
def test_the_journal_names_the_key_mode_and_whether_windows_are_given_back(
    words: list[str], lifted: bool, windows: str, tmp_path: Path
) -> None:
    """R201, R267: other routes take pairs as they are; whose run is a lifted one can be read off its first event."""
    run = tmp_path / "run"
    assert drive(run, "--key-mode", "bigram", "--free-out-of-window", windows, *words) == 0
    first = next(JournalReader(run, ranks_in(run)[0]).frames()).events[0]
    assert isinstance(first, Opened)
    assert (first.config.key_mode, first.config.free_out_of_window) == ("bigram", windows == "on")
    assert first.config.lifted == lifted
    assert verify_rank(run, ranks_in(run)[0]).clean


def test_everything_that_a_server_can_be_asked_for_is_refused_or_done() -> None:
    """R14: no option is taken and forgotten."""
    deciding = {"unified", "disable_radix_cache", "key_mode", "lift_bigram"}
    assert {field for field, _, _ in NOT_BUILT_IN} | deciding == set(Asked._fields)
    asked = Asked(unified=True, hierarchical_cache=True, speculative="DFlash")
    with pytest.raises(CommandFailure, match=r"hierarchical_cache is True, R8.*speculative is DFlash, R10"):
        route_for(asked, hybrid_swa=True, page_size=16)


def test_a_drive_says_why_it_turned_requests_away(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """B116, B109: with the numbers of the pool that is too small, and the others are driven; the exit code is that of `serve`."""
    run = tmp_path / "run"
    assert drive(run, "--unified", "--full-pages", "60", "--swa-pages", "60", "--json") == 1
    told = capfd.readouterr()
    report = json.loads(told.out)
    assert 0 < report["refused"] < report["requests"]
    assert told.err.count("refused '") == report["refused"]
    assert "FULL pages of 64 tokens; the rank has 60" in told.err
    assert drive(tmp_path / "narrow", "--unified", "--swa-pages", "18", "--json") == 1
    assert "SWA pages at a time; the rank has 18" in capfd.readouterr().err
