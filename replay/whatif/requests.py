"""The recorded requests of a journal: its frames are folded once, and what they say of requests becomes a schedule.

What a journal tells of a request: when it was admitted and with how many prompt tokens; how far each step took it; which
pages of its key the tree took, node by node, or, at its end, which pages no tree took; when it left. What it does not
tell is the key behind the last page that was kept of a request that ended badly or not at all, and tokens behind the
last whole page. Rule: one pass, and memory grows with what is live, not with the journal.
"""

from collections.abc import Iterable

from radixledger.cache.evolve import STRANGE, evolve
from radixledger.cache.state import State
from radixledger.journal.events import (
    AnyEvent,
    Opened,
)
from radixledger.journal.frame import Frame
from radixledger.replay.fold import Unfoldable, begun, check_opened, enter, opened_state
from radixledger.replay.whatif.believable import believe
from radixledger.replay.whatif.meter import Meter
from radixledger.replay.whatif.schedule import (
    Schedule,
    ScheduleWriter,
)
from radixledger.replay.whatif.scribe import Scribe


def transcribed(
    frames: Iterable[Frame], state: State | None, opened: Opened, writer: ScheduleWriter, meter: Meter
) -> tuple[Schedule, State]:
    """The schedule that `frames`, folded onto `state` (None: from a first event on), tell of; and the state at their end.

    opened: what the rank was opened with, for a journal whose first events are lost. meter: counts the recorded run.
    Raises Unfoldable, and whatever reading raises.
    """
    scribe = Scribe(writer)
    if state is not None:
        scribe.begin_within(state)
    for frame in frames:
        events = frame.events
        if state is None:
            state, events = begun(frame, opened)
            if len(events) < len(frame.events) and frame.events[0] != opened:
                raise Unfoldable(frame.seq_first, "the heading of its file says otherwise")
        else:
            enter(state, frame)
        for event in events:
            _put_down(scribe, meter, state, event, writer)
            evolve(state, event)
        if state.findings:
            meter.figures.violations += len(state.findings)
            state.findings.clear()
    state = state if state is not None else opened_state(opened)
    return scribe.close(state, opened), state


def _put_down(scribe: Scribe, meter: Meter, state: State, event: AnyEvent, writer: ScheduleWriter) -> None:
    """What the event says of requests; one that no cache wrote says nothing."""
    if isinstance(event, Opened):
        check_opened(event, state.seq + 1)
    try:
        tell = scribe.tells.get(type(event))
        if tell is not None:
            believe(state, event)
            tell(state, event)
        meter.take(state, event)
    except STRANGE:
        writer.note("events say what cannot be, and are passed over")
