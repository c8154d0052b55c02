"""What no lawful writer wrote is read to its end by those who look at every event: reuse, locks, alarms (design: the fold is total)."""

import random

import pytest
from msgspec.structs import fields, replace

from radixledger.journal.events import AnyEvent, Opened
from radixledger.journal.frame import Frame
from radixledger.replay.fold import FINDINGS_KEPT, moments
from radixledger.replay.locks.lock_report import holding_of
from radixledger.replay.locks.locks import Locks
from radixledger.replay.reuse.judge import Judge
from radixledger.replay.reuse.memory import Memory
from radixledger.replay.reuse.misses import KINDS, Miss
from radixledger.replay.schedule.named_event import PAGES

from ..cache.driven import FULL_SHAPES, SHAPES, STATE_SHAPES, Driven
from .test_schedules import commands_of

DRIVES = [
    (SHAPES[1], "unified"),
    (SHAPES[2], "legacy"),
    (FULL_SHAPES[1], "radix"),
    (STATE_SHAPES[1], "radix"),
]


def garbled(chance: random.Random, event: AnyEvent) -> AnyEvent:
    """The event with one of its numbers or columns changed."""
    names = [field.name for field in fields(event) if type(getattr(event, field.name)) in (int, bytes)]
    if not names or isinstance(event, Opened):
        return event
    name = chance.choice(names)
    value = getattr(event, name)
    wrong: object
    if type(value) is int:
        wrong = chance.choice([0, -1, value + 1, 7 * value + 3, 1 << 40])
    else:
        wrong = chance.choice([b"", value[:-1], value + b"\x01", 2 * value, bytes(chance.randrange(40))])
    return replace(event, **{name: wrong})


def spoiled(seed: int, shape: tuple[int, ...], route: str) -> list[Frame]:
    """A run in which every tenth event is garbled, or another one of the run."""
    chance = random.Random(seed)
    driven = Driven(seed, shape, route=route).run(100)
    others = driven.journal.events[1:]
    out = []
    for frame in driven.journal.frames:
        events = [
            event if chance.random() > 0.1 else chance.choice([garbled(chance, event), chance.choice(others)])
            for event in frame.events
        ]
        out.append(frame._replace(events=events) if frame.seq_first > 1 else frame)
    return out


@pytest.mark.parametrize(("shape", "route"), DRIVES)
@pytest.mark.parametrize("seed", range(6))
def test_a_spoiled_journal_is_read_to_its_end(seed: int, shape: tuple[int, ...], route: str) -> None:
    frames = spoiled(seed, shape, route)
    memory, locks, state = Memory(), Locks(), None
    misses: list[Miss] = []
    judge = Judge(memory, 0)
    for moment in moments(frames):
        memory.see(*moment)
        misses += judge.take(*moment)
        locks.see(moment)
        state = moment.state
    assert state is not None
    misses += judge.finish(state)
    assert state.seq == frames[-1].seq_first + len(frames[-1].events) - 1
    assert 0 < len(state.findings) <= FINDINGS_KEPT + 8
    assert misses
    assert all(set(miss.kinds) == set(KINDS) and miss.lost_tokens >= 0 for miss in misses)
    assert all(lost.start < lost.stop for miss in misses for lost in miss.lost)
    assert len([holding_of(state, hold, locks, 0) for hold in locks.holds]) == len(locks.holds)


@pytest.mark.parametrize(("shape", "route"), DRIVES)
@pytest.mark.parametrize("seed", range(6))
def test_a_spoiled_journal_is_told_by_names_to_its_end(seed: int, shape: tuple[int, ...], route: str) -> None:
    """As `reduce` and `counterfactual` tell it; a column that is no whole number of numbers is told as it is."""
    recorded = commands_of(spoiled(seed, shape, route))
    told = [pair for each in recorded for pair in zip(each.events, each.told, strict=True)]
    assert len(told) > 100
    for event, named in told:
        for name, value in named.fields:
            if name in PAGES and len(getattr(event, name)) % 4:
                assert value == getattr(event, name)
