"""Runs on disk and in memory, lawful and spoiled, for the tests of replay."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from radixledger.journal.events import AnyEvent
from radixledger.journal.frame import Frame
from radixledger.journal.units import Rank, Seq
from radixledger.journal.writer import JournalWriter, Policy
from radixledger.replay.audit import Audit
from radixledger.replay.verdict import RankReport

from ..cache.driven import SHAPES, STEP_NS, Driven, opened

KEY = bytes(range(32))
RANK = Rank(0)


class Clock:
    """A millisecond later at every look."""

    def __init__(self) -> None:
        self.now = -STEP_NS

    def __call__(self) -> int:
        self.now += STEP_NS
        return self.now


def written(
    run: Path,
    steps: int = 120,
    *,
    seed: int = 7,
    rank: int = 0,
    ranks: int = 1,
    snapshots: Iterable[int] = (),
    policy: Policy = Policy.OPERATION,
    redaction: str = "plain",
    resume: bool = False,
    rotate_bytes: int = 1 << 20,
    close: bool = True,
    shape: tuple[int, ...] = SHAPES[1],
    route: str | None = None,
) -> dict[int, bytes]:
    """Drive a cache into a journal under `run`, a snapshot before each of the numbered steps.

    Returns the digest of the live state behind the last event of each step, by its number.
    """
    writer = JournalWriter.open(
        run,
        opened(
            shape, rank=Rank(rank), ranks=ranks, redaction=redaction, **({"route": route} if route else {})
        ),
        policy=policy,
        key=KEY if redaction == "hashed" else None,
        clock=Clock(),
        resume=resume,
        rotate_bytes=rotate_bytes,
    )
    driven = Driven(seed, shape, recorder=writer, seq=writer.last_seq)
    live = {int(driven.cache.state.seq): driven.cache.digest()}
    for number in range(steps):
        if number in snapshots:
            driven.cache.snapshot()
        driven.step()
        live[driven.cache.state.seq] = driven.cache.digest()
    if close:
        driven.cache.close()
    else:
        writer.close()
    return live


def audited(frames: Iterable[Frame]) -> RankReport:
    """The verdict on frames from a first event on."""
    audit = Audit(RankReport(run="driven", rank=RANK))
    for frame in frames:
        audit.take(frame)
    audit.finish()
    return audit.report


def events_of(frames: Iterable[Frame]) -> list[AnyEvent]:
    """All events of some frames."""
    return [event for frame in frames for event in frame.events]


def framed(events: Iterable[AnyEvent], seq: int = 1) -> list[Frame]:
    """A frame for each event."""
    return [Frame(Seq(number), number * STEP_NS, 0, 0, [event]) for number, event in enumerate(events, seq)]


def with_changed(
    frames: Iterable[Frame], kind: type, change: Callable[[AnyEvent], AnyEvent], which: int = 0
) -> tuple[list[Frame], int]:
    """The frames with one event of a kind changed (`which`: counted from 0), and that event's number."""
    out, place, number = [], 0, 0
    for frame in frames:
        events = list(frame.events)
        for at, event in enumerate(events):
            if type(event) is kind:
                if place == which:
                    events[at], number = change(event), frame.seq_first + at
                place += 1
        out.append(frame._replace(events=events))
    assert number, f"there is no {kind.__name__} number {which}"
    return out, number


def with_inserted(frames: Sequence[Frame], seq: int, event: AnyEvent) -> tuple[list[Frame], int]:
    """The frames with one more frame of one event, at `seq` or where the next frame begins, and its number."""
    place = next(place for place, frame in enumerate(frames) if frame.seq_first >= seq)
    begun = frames[place]
    later = [frame._replace(seq_first=Seq(frame.seq_first + 1)) for frame in frames[place:]]
    return [*frames[:place], begun._replace(events=[event]), *later], begun.seq_first


def damage(run: Path) -> None:
    """One byte in the middle of the sealed segment in the middle is another one."""
    sealed = sorted((run / "rank-0000").glob("*.sealed"))
    segment = sealed[len(sealed) // 2]
    packed = bytearray(segment.read_bytes())
    packed[len(packed) // 2] ^= 0xFF
    segment.write_bytes(packed)
