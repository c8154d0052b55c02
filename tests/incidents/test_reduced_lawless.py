"""Journals in which events were dropped, doubled or exchanged: reduced, or refused with a reason; never anything else."""

import random
from pathlib import Path

import pytest

from radixledger.journal.errors import JournalError
from radixledger.journal.events import AnyEvent
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Rank
from radixledger.replay.reduce.fixture import NoSchedule, fixture
from radixledger.replay.reduce.incident import incident_of
from radixledger.replay.reduce.reduce import CannotReduce, Reduced, reduced

from ..cache.driven import SHAPES, Driven
from .journals import put_down


def spoiled_at_random(seed: int) -> list[list[AnyEvent]]:
    """The commands of a driven rank, one event of which is gone, there twice, or another one of the same run."""
    chance = random.Random(seed)
    commands = [
        list(frame.events) for frame in Driven(seed, SHAPES[seed % len(SHAPES)]).run(60).journal.frames
    ]
    place = chance.randrange(5, len(commands))
    at = chance.randrange(len(commands[place]))
    instead = chance.choice(commands[chance.randrange(1, len(commands))])
    commands[place][at : at + 1] = chance.choice(([], [commands[place][at]] * 2, [instead]))
    return [events for events in commands if events]


def reduced_or_refused(run: Path) -> tuple[Reduced | None, str]:
    """What is left of the incident with its fixture, or nothing and why."""
    try:
        incident = incident_of(JournalReader(run, Rank(0)))
        least = reduced(incident, 5.0) if incident is not None else None
        return least, fixture(least) if least is not None else "no law is broken in this run"
    except (JournalError, CannotReduce, NoSchedule) as refused:
        return None, str(refused)


@pytest.mark.parametrize("seed", range(12))
def test_a_spoiled_journal_is_reduced_or_refused_with_a_reason(seed: int, tmp_path: Path) -> None:
    put_down(tmp_path / "run", spoiled_at_random(seed))
    least, text = reduced_or_refused(tmp_path / "run")
    assert len(text) > 20
    if least is not None:
        assert len(least.deeds) <= least.at_first
        assert f"def test_{least.incident.first.law}()" in text
