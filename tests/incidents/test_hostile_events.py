"""Triage of journals that no cache wrote: any field of any event may say anything, and there is a verdict all the same."""

import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import fields, replace

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
