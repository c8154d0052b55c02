"""The first command of a journal behind which something is so: a law broken, a predicate true, a line of a query there (J15).

What is asked of a state is asked at snapshots, and then between two of them: of n snapshots log n are looked at, and one
stretch is folded twice at most. No recorded digest is needed. Rule: bisection finds a place where the answer turns from no
to yes; that it is the first one follows only where the answer never turns back, so `every_command` looks at each.
"""

from collections.abc import Callable
from typing import NamedTuple

from radixledger.cache.state import State
from radixledger.journal.errors import ReaderError
from radixledger.journal.reader import JournalReader, SnapshotRef
from radixledger.replay.known import reached
from radixledger.replay.search.every_command import first_of_all
from radixledger.replay.search.found import Ask, Found, tell
from radixledger.replay.search.halving import frame_at, halved, seq_of, states_behind
from radixledger.replay.seek import Watch, load, state_at

FOLDED_AT_ONCE = 256
"""Events between a no and a yes from which on every command is looked at."""


def turned(reader: JournalReader, ask: Ask, watch: Watch = iter) -> Found:
    """Where the answer turned to yes, by snapshots; raises NoBaseline, Unfoldable and whatever reading raises.

    Where it is no at the end, the oldest snapshot counts at which it is yes. Where the place, or the end, lies behind missing events, a
    state says nothing: then every command is looked at behind which it is known.
    """
    found = _Search(reader, ask, watch).run()
    if reached(reader, reader.last_seq)[1] or (found.first and reached(reader, found.last)[1]):
        return first_of_all(reader, ask, watch)
    return found


def turned_at(reader: JournalReader, ask: Callable[[int], str]) -> Found:
    """As `turned`, for what is asked of all events up to a number: where it turned to yes, by halves."""
    first, last = reader.first_seq, reader.last_seq
    found = Found(looks=2, at_the_end=bool(ask(last)), no_at=last)
    if not found.at_the_end:
        return found
    low, high = first - 1, first - 1 if ask(first - 1) else last
    while low + 1 < high:
        middle = (low + high) // 2
        found.looks += 1
        if ask(middle):
            high = middle
        else:
            low = middle
    found.no_at = max(0, min(low, high - 1))
    _tell_event(found, reader, max(high, first), ask(high))
    return found


class _Point(NamedTuple):
    """A place where a state is to be had cheaply: the beginning, or a snapshot."""

    seq: int
    ref: SnapshotRef | None


class _Search:
    """One bisection: over snapshots first, then over the events between two of them."""

    def __init__(self, reader: JournalReader, ask: Ask, watch: Watch) -> None:
        self._reader, self._ask, self._watch = reader, ask, watch
        self._found = Found()
        self._last = reader.last_seq

    def run(self) -> Found:
        found, points = self._found, self._points()
        end = state_at(self._reader, self._last, self._watch)
        found.at_the_end = bool(self._asked(end))
        high = self._last if found.at_the_end else 0
        low = self._lowest(points) if found.at_the_end else self._oldest(points)
        if not (high or low + 1 < len(points)):
            found.no_at = self._last
            return found
        if low + 1 < len(points):
            high = points[low + 1].seq
        if low < 0:
            found.first = found.last = high
            return found
        self._between(self._state(points[low]), high)
        return found

    def _points(self) -> list[_Point]:
        """The beginning and every later snapshot, in order."""
        base = self._reader.baseline()
        refs = [ref for ref in self._reader.snapshots() if base is None or ref.seq > base.seq]
        begin = _Point(base.seq if base is not None else 0, base)
        return [begin, *(_Point(ref.seq, ref) for ref in refs if ref.seq < self._last)]

    def _lowest(self, points: list[_Point]) -> int:
        """The last point of those with no before those with yes, by halves; -1 where all are yes."""
        low, high = -1, len(points)
        while low + 1 < high:
            middle = (low + high) // 2
            answer = self._yes(points, middle)
            if answer is None:
                del points[middle]
                high -= 1
            elif answer:
                high = middle
            else:
                low = middle
        return low

    def _oldest(self, points: list[_Point]) -> int:
        """The point before the first with yes; the last point where there is none."""
        at = 0
        while at < len(points):
            answer = self._yes(points, at)
            if answer is None:
                del points[at]
            elif answer:
                return at - 1
            else:
                at += 1
        return len(points) - 1

    def _yes(self, points: list[_Point], at: int) -> bool | None:
        """The answer at a point; None for a snapshot that cannot be used, which is told."""
        try:
            state = self._state(points[at])
        except (ReaderError, FileNotFoundError) as error:
            if not at:
                raise
            self._found.notices.append(str(error))
            return None
        self._found.snapshots += state is not None
        return state is not None and bool(self._asked(state))

    def _state(self, point: _Point) -> State | None:
        return load(self._reader, point.ref) if point.ref is not None else None

    def _between(self, state: State | None, high: int) -> None:
        """Behind `state` the answer is no, behind event `high` it is yes."""
        found = self._found
        state, high = halved(
            self._reader, state, high, lambda tried: bool(self._asked(tried)), FOLDED_AT_ONCE
        )
        found.no_at = seq_of(state)
        for frame, behind in states_behind(self._reader, state):
            detail = self._asked(behind)
            if detail:
                tell(found, frame, detail)
                return
            found.no_at = behind.seq
            if behind.seq >= high:
                found.contradicted = high
                return

    def _asked(self, state: State) -> str:
        self._found.looks += 1
        return self._ask(state)


def _tell_event(found: Found, reader: JournalReader, seq: int, detail: str) -> None:
    tell(found, frame_at(reader, seq), detail)
    found.last = seq
