"""Triage of journals that no cache wrote: any field of any event may say anything, and there is a verdict all the same."""

import random
import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from radixledger.cache.laws.invariants import broken_laws
from radixledger.journal import opening
from radixledger.journal.events import AnyEvent, Opened
from radixledger.replay.triage.sentences import verdict
from radixledger.replay.triage.triage import triage
from radixledger.tools.cli import run as radixledger

from ..cache.driven import FULL_SHAPES, SHAPES, STATE_SHAPES, Driven, FrameList, opened
from .journals import put_down

NUMBERS = (0, -1, 1, 7, 2**31 - 1, 2**31, -(2**31), 2**62, 2**63 - 1, -(2**63))
SPOILED = 0.03
"""The share of events of which one field says something else."""


def other(dice: random.Random, value: Any) -> Any:
    """Something of the same type."""
    match value:
        case bool():
            return not value
        case bytes():
            return dice.choice(
                (b"", value[:-1], value + b"\x01", value * 2, dice.randbytes(dice.choice((4, 8, 12, 64))))
            )
        case int():
            return dice.choice((*NUMBERS, value + 1, value - 1))
        case str():
            return dice.choice(("", "x" * 1_000, "\0", "a b"))
        case _:
            return value


def spoiled(dice: random.Random, event: AnyEvent) -> AnyEvent:
    """The event with one field changed."""
    named = fields(event)
    if not named or isinstance(event, Opened):
        return event
    name = dice.choice(named).name
    return replace(event, **{name: other(dice, getattr(event, name))})


def hostile(run: Path, seed: int, shape: tuple[int, ...]) -> None:
    """A journal with honest checksums in which now and then an event says something else."""
    dice = random.Random(seed)
    journal = FrameList(opened(shape, redaction="plain"))
    Driven(seed % 7, shape, recorder=journal).run(40)
    commands = [
        [spoiled(dice, event) if dice.random() < SPOILED else event for event in frame.events]
        for frame in journal.frames
    ]
    put_down(run, commands)


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32), shape=st.sampled_from([*SHAPES, *FULL_SHAPES, *STATE_SHAPES]))
def test_whatever_events_say_there_is_a_verdict(
    seed: int, shape: tuple[int, ...], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Untrusted journals cannot do more than fail: a sentence, and all of it as JSON, never a traceback."""
    run = tmp_path_factory.mktemp("hostile") / "run"
    hostile(run, seed, shape)
    (found,) = triage([run])
    assert verdict(found)
    assert msgspec.json.encode(msgspec.to_builtins(found, str_keys=True))


@pytest.mark.parametrize("seed", range(4))
def test_what_is_printed_of_hostile_events_is_printed_without_a_fuss(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile(tmp_path / "run", seed, SHAPES[seed])
    assert radixledger(["triage", str(tmp_path / "run"), "--no-report"]) in (0, 1)
    assert capsys.readouterr().out.startswith("rank 0: ")


EVERYTHING = (
    "whatif RUN --processes 1", "whatif RUN --processes 1 --set full_pages=50", "journal redact RUN --to RUN-hashed",
    "export kv-events RUN", "replay verify RUN", "replay lost-reuse RUN",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_every_question_about_hostile_events_ends_in_an_exit_code(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Columns that are no columns, keys of half a page, prompts of 2**62 tokens: answered or refused, never a bug of ours."""
    hostile(tmp_path / "run", seed, [*SHAPES, *FULL_SHAPES, *STATE_SHAPES][seed % 5])
    for command in EVERYTHING:
        words = command.replace("RUN", str(tmp_path / "run")).split()
        assert radixledger(words) in (0, 1, 3), command
        assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("second", [{"full_pages": 2**31 - 2}, {"rows": 2**30}, {"page_size": 0}])
def test_a_later_epoch_cannot_ask_for_more_memory_than_the_first(
    tmp_path: Path, second: dict[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    first = opened(SHAPES[1], redaction="plain")
    journal = FrameList(first)
    Driven(1, SHAPES[1], recorder=journal).run(20)
    again = replace(first, epoch=2, config=replace(first.config, **second))
    put_down(tmp_path / "run", [*(list(frame.events) for frame in journal.frames), [again]])
    for command in EVERYTHING:
        assert radixledger(command.replace("RUN", str(tmp_path / "run")).split()) in (0, 1, 3), command
        assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "lie", [{"stride": 0}, {"stride": -4}, {"stride": 2**40}, {"route": "nobody's"}, {"ranks": 0}]
)
def test_an_opening_that_opens_nothing_is_refused(
    tmp_path: Path,
    lie: dict[str, int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Our writer refuses such sizes; a foreign one may have put them down."""
    monkeypatch.setattr(opening, "check_sizes", lambda _: None)
    put_down(tmp_path / "run", [[replace(opened(SHAPES[1], redaction="plain"), **lie)]])
    for command in EVERYTHING:
        told = radixledger(command.replace("RUN", str(tmp_path / "run")).split())
        assert told == 3 or (told == 0 and "redact" in command), command
        assert "Traceback" not in capsys.readouterr().err


def test_a_row_that_says_it_is_endless_is_judged_in_little_memory(tmp_path: Path) -> None:
    """A length of 2**31 - 1 tokens in a row of 64 pages: no law lays the pages between out."""
    journal = FrameList(opened(SHAPES[1], redaction="plain"))
    driven = Driven(1, SHAPES[1], recorder=journal)
    driven.run(40)
    state = driven.cache.state
    state.rows.length[next(iter(state.requests.values())).row] = 2**31 - 1
    tracemalloc.start()
    told = [finding for finding in broken_laws(state) if "do not fit its row" in finding.detail]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert {each.law for each in told} >= {
        "lengths_of_a_row_line_up",
        "a_row_shows_the_window_that_is_mapped",
    }
    assert peak < 1 << 22
