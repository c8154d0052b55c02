"""Fold a journal event by event, and look at the state behind each, with what the event broke on its own account.

For questions that are put to every event; whoever wants one state asks `seek`. Rule: behind a gap nothing can be
judged, so nothing is told, until a recorded digest agrees or a new epoch begins.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from radixledger.cache.evolve import evolve
from radixledger.cache.laws.of_events import EventLaws
from radixledger.cache.state import Finding, State
from radixledger.journal.events import AnyEvent, Gap, Opened
from radixledger.journal.frame import Frame
from radixledger.journal.units import Seq
from radixledger.replay.counted import counted
from radixledger.replay.fold import begun, check_opened, enter
from radixledger.replay.known import Known


class Walked(NamedTuple):
    """An event and the state right behind it, which changes with the next one; `broken` is what the event broke.

    What only the end of a command shows is told with its last event.
    """

    frame: Frame
    seq: Seq
    event: AnyEvent
    state: State
    broken: list[Finding]


def walk(
    frames: Iterable[Frame],
    state: State | None = None,
    opened: Opened | None = None,
    known: Known | None = None,
) -> Iterator[Walked]:
    """Every event of `frames`, folded onto `state`, which is changed; opened: as in `fold.begun`.

    known: for who wants snapshots to stand in, or chains that are broken to count. Raises Unfoldable and whatever reading raises.
    """
    laws, known = EventLaws(), known or Known()
    for frame in frames:
        events, first = frame.events, 0
        if state is None:
            state, rest = begun(frame, opened)
            first = len(events) - len(rest)
            if first:
                yield Walked(frame, state.seq, events[0], state, [])
        else:
            enter(state, frame)
        for at in range(first, len(events)):
            event = events[at]
            if type(event) is Opened:
                check_opened(event, state.seq + 1)
            state = known.see(state, event)
            found = [*laws.broken_by(state, events, at)]
            evolve(state, event)
            found += state.findings
            state.findings.clear()
            if at == len(events) - 1:
                found += laws.at_the_end(state, events)
            yield Walked(frame, state.seq, event, state, [] if known.lost_at else found)


def lost_here(event: AnyEvent) -> str:
    """How many events are missing where one tells of that; empty for others."""
    return f"{counted(event.lost, 'event')} missing here" if isinstance(event, Gap) else ""


def told_wrong(broken: Iterable[Finding]) -> str:
    """What an event broke, in a line; empty for nothing."""
    return "; ".join(f"{each.law}: {each.detail}" for each in broken)[:400]
