"""An incident: the commands up to the first wrong event of a journal, and where they were not decided as they are today.

Each recorded command is performed again by the installed decider. Where that decides something else, the recording
deviates: what was recorded is kept beside what would have been decided, both by names. Rule: an incident says what
was asked and what was wrong; nothing of it depends on the numbers of the run.
"""

from typing import NamedTuple

from radixledger.cache.evolve import STRANGE
from radixledger.cache.laws.invariants import LAWS
from radixledger.cache.traits import RECORDED
from radixledger.journal.errors import ReaderError
from radixledger.journal.events import Gap, Opened, Violated
from radixledger.journal.reader import JournalReader
from radixledger.replay.audit import Audit
from radixledger.replay.fold import opened_state
from radixledger.replay.laws import OF_EVENTS, OF_STATES
from radixledger.replay.reading.recorded import Reader, Recorded
from radixledger.replay.reduce.victims import NO_SCENE, Scene
from radixledger.replay.schedule.commands import AnyCommand
from radixledger.replay.schedule.named_event import NamedEvent
from radixledger.replay.search.narrow import traced_back
from radixledger.replay.seek import Watch, beginning_of, frames_upto
from radixledger.replay.verdict import RankReport, Told

MOST_EVENTS = 200_000
"""So many events before the wrong one are read as commands; what lies before them is taken for granted."""


OF_THE_RECORD = (
    "a_recorded_digest_is_the_states", "a_snapshot_holds_the_state", "an_epoch_follows_the_one_before",
    "the_writer_saw_no_law_broken", "what_was_recorded_can_be_compared",
)  # fmt: skip
"""What the audit of a journal tells beside the laws of events and of states."""


class NoIncident(ReaderError):
    """Nothing of this journal can be reduced, and why."""


class NoSuchLaw(ValueError):
    """No law has this name."""

    def __init__(self, law: str) -> None:
        super().__init__(f"no law is called {law!r}")
        self.law, self.known = law, laws()


class Deed(NamedTuple):
    """One command of an incident. recorded: what was decided on it; decided: what would be today, None if the same;
    scene: among whom victims were chosen then.

    A deed without a command is what happened and nobody can tell who asked for it.
    """

    command: AnyCommand | None
    recorded: tuple[NamedEvent, ...]
    decided: tuple[NamedEvent, ...] | None = None
    scene: Scene = NO_SCENE


class Incident(NamedTuple):
    """The commands up to the first wrong event, which `first` tells of."""

    opened: Opened
    first: Told
    recorded: list[Recorded]
    strict: bool
    events: int
    """Of the journal, up to the wrong one and with it."""
    whole: bool
    """Whether the commands begin where the journal does."""
    is_the_first: bool
    """Whether nothing else was wrong before."""


def laws() -> list[str]:
    """The names of all laws that can be asked of a journal."""
    return sorted({*OF_STATES, *OF_EVENTS, *OF_THE_RECORD})


def incident_of(reader: JournalReader, law: str | None = None, watch: Watch = iter) -> Incident | None:
    """The first incident of a journal, or the first in which `law` is broken; None if there is none.

    Raises NoSuchLaw, NoIncident where another server decided, or the beginning of the epoch is not there, and whatever
    reading raises.
    """
    first = first_broken(reader, law, watch)
    if first is None:
        return None
    _demand_a_decider(reader, reader.opened, first)
    commands: list[Recorded] = []
    told: Reader | None = None
    opened, begun = reader.opened, 1
    strict = True
    keep = first.seq - MOST_EVENTS
    for frame in frames_upto(reader, first.seq):
        lead = frame.events[0]
        if isinstance(lead, Opened):
            _demand_a_decider(reader, lead, first)
            opened, begun, commands = lead, frame.seq_first, []
            told = Reader(opened_state(lead, frame.seq_first))
            frame = frame._replace(seq_first=type(frame.seq_first)(begun + 1), events=frame.events[1:])
        if told is None or isinstance(lead, Gap):
            raise _beginning_is_gone(reader, first)
        strict = strict and not any(isinstance(event, Violated) for event in frame.events)
        try:
            if frame.seq_first >= keep:
                commands += told.read(frame)
            else:
                told.follow(frame)
        except STRANGE as error:
            raise NoIncident(
                f"{reader.folder}: event {frame.seq_first} or one of the next names what there is not, so that nobody can tell "
                f"what was asked ({type(error).__name__}: {error})"
            ) from error
    assert told is not None, "a finding is of an event"
    upto = [each for each in told.completed(commands) if each.seq <= first.seq]
    events = upto[-1].seq + len(upto[-1].events) - begun - 1 if upto else 0
    return Incident(opened, first, upto, strict, events, keep <= begun, law is None)


def _beginning_is_gone(reader: JournalReader, first: Told) -> NoIncident:
    return NoIncident(
        f"{reader.folder}: what leads to event {first.seq} is not there from its beginning on, so nothing can be "
        "performed again: first events are gone after retention, or lost; take a copy that has them"
    )


def _demand_a_decider(reader: JournalReader, opened: Opened, first: Told) -> None:
    """Raise NoIncident for what another server decided: nothing here could decide it again."""
    if opened.route in RECORDED:
        raise NoIncident(
            f"{reader.folder}: event {first.seq} broke {first.law}, but this is a recording of another server (route "
            f"{opened.route!r}), and what that decided can be decided again by no cache of ours; "
            "`radixledger triage` shows what led to it"
        )


def first_broken(reader: JournalReader, law: str | None, watch: Watch) -> Told | None:
    """The first finding, or the first of one law; of the whole state, where it began."""
    if law is not None and law not in laws():
        raise NoSuchLaw(law)
    begin = beginning_of(reader)
    report = RankReport(run=reader.opened.run, rank=reader.rank)
    audit = Audit(report, begin.state, opened=reader.opened)
    found: Told | None = None
    for frame in watch(reader.frames(begin.next_seq)):
        audit.take(frame)
        found = _of(report, law)
        if found is not None:
            break
    else:
        audit.finish()
        found = _of(report, law)
    if found is None or (law is not None and found.lawful_at is None):
        return found
    asked = LAWS if law is None else [each for each in LAWS if each.__name__ == law]
    return traced_back(reader, found, asked).told or found


def _of(report: RankReport, law: str | None) -> Told | None:
    found = next((each for each in report.findings if law in (None, each.law)), None)
    report.findings.clear()
    return found
