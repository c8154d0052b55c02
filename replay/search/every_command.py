"""Look behind every command, or at every event, of a journal: the first place where something is so, and each turn.

The exact answer, at the price of folding all of it; `bisect` finds a place by halves.
"""

from collections.abc import Callable, Iterable, Iterator

from radixledger.journal.frame import Frame
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Seq
from radixledger.replay.fold import enter, fold
from radixledger.replay.known import Known, unknown_words
from radixledger.replay.search.found import TURNS_KEPT, Ask, Found, Turn, tell
from radixledger.replay.seek import Watch, beginning_of, opened_of, standing_in
from radixledger.replay.walk import walk


def first_of_all(reader: JournalReader, ask: Ask, watch: Watch = iter) -> Found:
    """The first command behind which the answer is yes: every command is looked at, but for those behind which the state is not known.

    Raises as `turned` does.
    """
    begin, opened, known = beginning_of(reader), opened_of(reader), Known(standing_in(reader))
    state = begin.state

    def looked() -> Iterator[tuple[Frame, str]]:
        nonlocal state
        for frame in known.frames(reader, watch(reader.frames(begin.next_seq))):
            for at, event in enumerate(frame.events):
                alone = frame._replace(seq_first=Seq(frame.seq_first + at), events=[event])
                if state is not None:
                    enter(state, alone)
                    state = known.see(state, event)
                state = fold((alone,), state, opened=opened)
            assert state is not None, "a frame has an event"
            if not known.lost_at:
                yield frame, ask(state)

    found = Found(every_command=True, no_at=begin.next_seq - 1)
    if state is not None and ask(state):
        found.first, found.last, found.no_at = state.seq, state.seq, 0
    found = _all_turns(found, looked())
    return _not_asked(found, known)


def _not_asked(found: Found, known: Known) -> Found:
    """With what is to be said of the places where nothing was asked."""
    found.notices += [f"{unknown_words(each.lost_at)}; it was not asked there" for each in known.stretches]
    return found


def first_of_all_at(reader: JournalReader, ask: Callable[[int], str], watch: Watch = iter) -> Found:
    """As `first_of_all`, for what is asked of all events up to a number."""
    frames = watch(reader.frames())
    return _all_turns(Found(every_command=True), ((frame, ask(frame.seq_last)) for frame in frames))


def _all_turns(found: Found, looks: Iterable[tuple[Frame, str]]) -> Found:
    """Every change of the answer, and the first command with yes."""
    now = found.first > 0
    for frame, detail in looks:
        found.looks += 1
        if bool(detail) != now:
            now = bool(detail)
            if len(found.turns) < TURNS_KEPT:
                found.turns.append(Turn(frame.seq_last, now))
            if now and not found.first:
                tell(found, frame, detail)
        if not found.first:
            found.no_at = frame.seq_last
    found.at_the_end = now
    return found


def first_event_that_broke(reader: JournalReader, law: str, watch: Watch = iter) -> Found:
    """The first event that breaks a law of events, or one that folding notices, by itself. Raises as `turned` does."""
    begin, known = beginning_of(reader), Known(standing_in(reader))
    found = Found(every_command=True, no_at=begin.next_seq - 1)
    frames = known.frames(reader, watch(reader.frames(begin.next_seq)))
    for walked in walk(frames, begin.state, opened_of(reader), known):
        found.looks += not known.lost_at
        broken = [each for each in walked.broken if each.law == law]
        if broken:
            tell(found, walked.frame, f"{law}: {broken[0].detail}")
            found.first = found.last = broken[0].seq
            found.no_at, found.at_the_end = found.first - 1, True
            break
    else:
        found.no_at = reader.last_seq
    return _not_asked(found, known)
