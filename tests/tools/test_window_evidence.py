"""What giving back windows does to a run, as a table: each level of evidence can fail, and says so when nobody looked."""

import json
from pathlib import Path

import click
import pytest
from msgspec.structs import replace

from radixledger.cache import window
from radixledger.journal.events import Config
from radixledger.journal.reader import ranks_in
from radixledger.journal.retention import Retention
from radixledger.journal.units import Rank, TokenCount
from radixledger.journal.writer import Policy
from radixledger.tools.cli import run as radixledger
from radixledger.tools.drill import plant_double_free
from radixledger.tools.opening import Recording
from radixledger.tools.window_evidence import (
    Level,
    Variant,
    WindowRun,
    check_comparable,
    examined,
    short_paths,
    variants,
    weighed,
)

PAIRS = Config(4, 64, 64, 7, key_mode="bigram")
ON = WindowRun(
    name="on", config=PAIRS, cached_tokens=40, answers=[[1, 2], [3]], peak_swa_tokens=16, given_back_tokens=8, leaks=[]
)  # fmt: skip
OFF = replace(
    ON, name="off", config=replace(PAIRS, free_out_of_window=False), peak_swa_tokens=24, given_back_tokens=0
)
RAW = replace(ON, name="raw keys", config=replace(PAIRS, key_mode="raw"))


def levels(on: WindowRun = ON, off: WindowRun = OFF, raw: WindowRun = RAW) -> dict[str, Level]:
    return {each.claim.split(":")[0].split(",")[0]: each.level for each in weighed(on, off, [raw])}


def test_good_runs_hold_at_every_level_that_was_looked_at() -> None:
    """R273: unit, ids, cached tokens, peak, leaks; accuracy and devices are not claimed."""
    assert [*levels().values()] == [Level.HELD] * 5 + [Level.UNSEEN] * 2


def test_each_level_breaks_by_what_it_claims() -> None:
    """R273: and by nothing else; what cannot be seen in these runs is not called held."""
    held = levels()
    for broken, level, runs in (
        ("same ids", Level.BROKEN, {"off": replace(OFF, answers=[[1, 2], [4]])}),
        ("same ids", Level.BROKEN, {"raw": replace(RAW, answers=[[1], [3]])}),
        ("same ids", Level.UNSEEN, {"on": replace(ON, answers=None)}),
        ("cached tokens not lower", Level.BROKEN, {"off": replace(OFF, cached_tokens=41)}),
        ("peak SWA of requests lower", Level.BROKEN, {"off": replace(OFF, peak_swa_tokens=12)}),
        ("peak SWA of requests lower", Level.UNSEEN, {"off": replace(OFF, peak_swa_tokens=16)}),
        ("peak SWA of requests lower", Level.UNSEEN, {"on": replace(ON, given_back_tokens=0)}),
        ("no leak", Level.BROKEN, {"raw": replace(RAW, leaks=["rank 0: a law"])}),
    ):
        assert levels(**runs) == held | {broken: level}, broken


@pytest.mark.parametrize("mode", ["raw", "bigram"])
@pytest.mark.parametrize("formula", window.FORMULAS)
def test_no_length_is_short_of_a_window_and_the_published_formula_would_be(
    mode: str, formula: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R259, R273, R274: the level of units, for the sizes of the very run."""
    config = Config(4, 64, 64, 5, key_mode=mode, formula=formula)
    tried, short = short_paths(config)
    assert (tried > 40, short) == (True, 0)

    def published(old: int, pre: int, *, window_tokens: int, page_size: int, **_: str) -> TokenCount:
        return TokenCount(max(old, (pre - max(window_tokens, page_size)) // page_size * page_size))

    monkeypatch.setattr(window, "frontier", published)
    assert short_paths(config)[1] > 0


def test_runs_are_compared_with_giving_back_without_and_without_pairs() -> None:
    """R267, R273: plain keys are what came out before there were pairs."""
    assert variants("raw") == [Variant("on", "raw", True), Variant("off", "raw", False)]
    assert variants("bigram") == [
        Variant("on", "bigram", True),
        Variant("off", "bigram", False),
        Variant("raw keys", "raw", True),
    ]


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    good = Recording(tmp_path)
    check_comparable(good, windowed=True)
    for recording, windowed, why in (
        (good, False, "needs a model with windows"),
        (Recording(None), True, "give --journal"),
        (good._replace(policy=Policy.OFF), True, "give --journal"),
        (good._replace(resume=True), True, "--resume-run"),
        (good._replace(retention=Retention(9)), True, "--keep-bytes"),
    ):
        with pytest.raises(click.UsageError, match=why):
            check_comparable(recording, windowed=windowed)


def trace(path: Path) -> Path:
    """Three conversations with answers that outgrow a window of 100 tokens."""
    lines = [
        {"timestamp": at, "input_length": 512 + 40 * (at // 3), "output_length": 300, "hash_ids": [at % 3, *[100 + at][: at // 3]]}
        for at in range(6)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def drive(folder: Path) -> list[str]:
    """A command line, but for where the journal goes."""
    return ["drive", str(trace(folder / "trace.jsonl")), "--unified", "--page-size", "16", "--window", "100",
            "--max-running-requests", "2", "--chunked-prefill-size", "64"]  # fmt: skip


def test_drive_compares_without_a_model(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """R267, R273: in both key modes; ids are not claimed; the runs lie side by side and say how they were made."""
    for words, names in (
        ([], ["on", "off"]),
        (["--key-mode", "bigram", "--lift-bigram"], ["on", "off", "raw keys"]),
    ):
        run = tmp_path / f"run{len(names)}"
        common = [*drive(tmp_path), *words]
        assert radixledger([*common, "--journal", str(run), "--free-out-of-window", "compare", "--json"]) == 0
        told = json.loads(capfd.readouterr().out)
        assert [each["name"] for each in told["runs"]] == names
        found = [each["level"] for each in told["evidence"]]
        assert found == [
            "holds",
            "not looked at",
            "holds",
            "holds",
            "holds",
            "not looked at",
            "not looked at",
        ]
        assert told["lifted"] == bool(words)
        assert sorted(each.name for each in run.iterdir()) == sorted(name.replace(" ", "-") for name in names)
        shown = tmp_path / f"shown{len(names)}"
        assert radixledger([*common, "--journal", str(shown), "--free-out-of-window", "compare"]) == 0
        text = capfd.readouterr()
        assert "peak SWA of requests" in text.out
        assert ("no gate accepts" in text.err) == bool(words)


def test_a_request_that_was_refused_in_a_comparison_is_told_and_leaves_with_1(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = [*drive(tmp_path), "--full-pages", "53", "--journal", str(tmp_path / "run")]
    assert radixledger([*words, "--free-out-of-window", "compare", "--json"]) == 1
    told = capfd.readouterr()
    assert "broken" not in {each["level"] for each in json.loads(told.out)["evidence"]}
    assert "\non: 3 requests refused\n" in told.err
    assert "\noff: 3 requests refused\n" in told.err


def test_a_planted_fault_is_a_leak(tmp_path: Path) -> None:
    """R273: the level is not passed by a journal that does not verify."""
    run = tmp_path / "run"
    assert radixledger([*drive(tmp_path), "--full-pages", "110", "--journal", str(run)]) == 0
    config = Config(16, 110, 64, 100)
    assert examined(run, "on", config, 0, None).leaks == []
    plant_double_free(run, tmp_path / "planted", Rank(0))
    spoiled = examined(tmp_path / "planted", "on", config, 0, None)
    assert ranks_in(tmp_path / "planted") == [0]
    assert spoiled.leaks != []
    assert levels(on=replace(ON, leaks=spoiled.leaks))["no leak"] is Level.BROKEN
