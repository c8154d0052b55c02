"""Incidents: journals that a wrong cache wrote with its live laws off, each with the number of its first wrong event.

The number was written down with the fault, as a prediction (`tests/mutants`), or is where one event of a lawful journal was
exchanged. No law and no detector was asked for it.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from radixledger.journal.events import AnyEvent, Opened
from radixledger.journal.frame import Frame
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Rank
from radixledger.journal.writer import JournalWriter, Sealing

from ..cache.test_host_laws import WRONG, told
from ..mutants.caught import spoiled, write
from ..mutants.table import MUTANTS


class Incident(NamedTuple):
    """A run, the first wrong event in it, and the law that this one breaks."""

    run: Path
    seq: int
    law: str


NAMES = (*MUTANTS, *(law.__name__ for law, _, _ in WRONG))


def journaled(folder: Path) -> dict[str, Incident]:
    """Every incident, by name, in a run of its own."""
    return of_mutants(folder) | of_the_host(folder)


def of_mutants(folder: Path) -> dict[str, Incident]:
    """The journals of wrong deciders."""
    out = {}
    for name, mutant in MUTANTS.items():
        with spoiled(mutant):
            seq = write(folder / name, mutant)
        assert seq is not None, f"the schedule of {name} does not show it"
        out[name] = Incident(folder / name, seq, mutant.law)
    return out


def of_the_host(folder: Path) -> dict[str, Incident]:
    """Journals of a host tier in which the first event of a kind is another one."""
    out = {}
    for law, kind, change in WRONG:
        events = told()
        at = next(place for place, event in enumerate(events) if type(event) is kind)
        events[at] = change(events[at])
        put_down(folder / law.__name__, [events])
        out[law.__name__] = Incident(folder / law.__name__, at + 1, law.__name__)
    return out


def put_down(run: Path, commands: Sequence[Sequence[AnyEvent]], *, rotate_bytes: int = 1 << 20, sealing: Sealing = Sealing.INLINE) -> None:  # fmt: skip
    """A journal of these commands, of which the first begins with `Opened`."""
    opened = commands[0][0]
    assert isinstance(opened, Opened)
    writer = JournalWriter.open(
        run, replace(opened, redaction="plain"), clock=lambda: 0, sealing=sealing, rotate_bytes=rotate_bytes
    )
    for events in ([*commands[0][1:]], *commands[1:]):
        for event in events:
            writer.append(event)
        if events:
            writer.end_command()
    writer.close()


def copied(run: Path, to: Path, rank: int = 0, *, rotate_bytes: int = 1 << 20, sealing: Sealing = Sealing.NEVER) -> Path:  # fmt: skip
    """The same frames, times and steps in a run of another shape: live segments, small ones."""
    reader = JournalReader(run, Rank(rank))
    now_ns = 0
    opened = replace(reader.opened, run=to.name, redaction="plain")
    with JournalWriter.open(
        to, opened, clock=lambda: now_ns, sealing=sealing, rotate_bytes=rotate_bytes
    ) as writer:
        for frame in reader.frames():
            now_ns = frame.time_ns
            writer.end_step(frame.step)
            for event in _but_the_first(frame):
                writer.append(event)
            writer.end_command()
    return to


def _but_the_first(frame: Frame) -> Iterable[AnyEvent]:
    """The writer itself writes `Opened`."""
    return frame.events[1:] if frame.seq_first == 1 else frame.events
