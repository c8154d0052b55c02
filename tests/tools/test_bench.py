"""The benchmark command measures, prints, and judges nothing."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from radixledger.journal.units import Seq
from radixledger.journal.writer import Policy
from radixledger.tools.bench import replays
from radixledger.tools.bench.bed import Bed, JournalNotClean
from radixledger.tools.bench.harness import Figure
from radixledger.tools.cli import run as radixledger


def test_a_figure_knows_whether_it_meets_its_bar_in_either_direction() -> None:
    assert Figure("t", "n", 3.0, "us", 5.0).meets
    assert not Figure("t", "n", 6.0, "us", 5.0).meets
    assert Figure("t", "n", 6.0, "/s", 5.0, more=True).meets
    assert Figure("t", "n", 6.0, "us").meets is None


def test_the_journal_part_measures_every_bar_of_journal_replay_and_load(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert radixledger(["bench", "journal", "--quick", "--json"]) == 0
    told = json.loads(capfd.readouterr().out)
    named = {figure["name"]: figure for figure in told["figures"]}
    assert {figure["bar"] for figure in named.values()} >= {1, 25, 200_000, 1_000_000, 4}
    assert all(figure["value"] > 0 for figure in named.values())
    assert told["machine"]["cores"] >= 1


def test_a_narrow_terminal_gets_records_instead_of_a_cut_table(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert radixledger(["bench", "system", "--quick"]) == 0
    printed = capfd.readouterr().out
    assert "prefix hit rate" in printed
    assert "\\n" not in printed


def test_a_figure_that_misses_its_bar_is_told_and_fails_nothing(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """R12: slow is not wrong."""
    monkeypatch.setattr(Figure, "meets", property(lambda _: False))
    assert radixledger(["bench", "system", "--quick"]) == 0
    printed = capfd.readouterr().out
    assert " no " in printed
    assert " yes " not in printed


def test_an_unknown_part_is_refused_with_the_parts_there_are(capfd: pytest.CaptureFixture[str]) -> None:
    assert radixledger(["bench", "nonsense"]) == 2
    assert "operations, operations-committed, journal, system" in capfd.readouterr().err


def test_a_bed_whose_journal_lost_an_event_is_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A benchmark that measured a journal which does not replay would mean nothing."""
    bed = Bed(tmp_path_factory.mktemp("bed"), Policy.STEP)
    cache = bed.rank(full_pages=16)
    cache.alloc(1)
    cache.state.seq = Seq(cache.state.seq + 1)
    with pytest.raises(JournalNotClean):
        bed.check(cache)


def test_replay_is_measured_at_each_size_that_is_asked_for(capfd: pytest.CaptureFixture[str]) -> None:
    """Each journal is a drive to a clean end, verified in a process of its own."""
    assert radixledger(["bench", "replay", "--events", "3000", "--events", "6000", "--json"]) == 0
    small, large = json.loads(capfd.readouterr().out)["replays"]
    assert 3000 <= small["events"] < 6000 <= large["events"]
    assert small["journal_bytes"] < large["journal_bytes"]
    for each in small, large:
        assert each["rate"] == pytest.approx(each["events"] / each["verify_seconds"])
        assert each["peak_bytes"] > 1 << 20


def test_a_journal_that_does_not_verify_has_no_figures(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A rate of folding something broken would mean nothing."""
    drive = replays._drive

    def spoilt(run: Path, events: int, advance: Callable[[int], None]) -> int:
        recorded = drive(run, events, advance)
        (segment,) = (run / "rank-0000").glob("*.sealed")
        data = bytearray(segment.read_bytes())
        data[len(data) // 2] ^= 255
        segment.write_bytes(data)
        return recorded

    monkeypatch.setattr(replays, "_drive", spoilt)
    with pytest.raises(JournalNotClean, match="fails its checksum"):
        list(replays.replays(tmp_path_factory.mktemp("spoilt"), (2000,), lambda _: None))


@pytest.mark.parametrize("option", [["--events", "9"], ["--trace", "README.md"]])
def test_an_option_of_another_part_is_refused(option: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert radixledger(["bench", "journal", *option]) == 2
    assert f"{option[0]} goes with the part" in capfd.readouterr().err
