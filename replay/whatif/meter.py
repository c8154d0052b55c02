"""What is counted of a run, in the same way whether its events come from a journal or from a redrive.

Rule: everything is read off the events and the state before each of them, so that two runs whose events are the same
have the same figures.
"""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from radixledger.cache.state import State
from radixledger.journal.accounts import Kind
from radixledger.journal.causes import Operation
from radixledger.journal.events import (
    Aborted,
    Admitted,
    AnyEvent,
    Bound,
    Demoted,
    Extended,
    Finished,
    Healed,
    Opened,
    Removed,
    Retracted,
    Tombstoned,
    Violated,
)


class Figures(Struct):
    """One run of one rank or of several; lengths in tokens of the run's own pages.

    A request that was retracted counts again as often as it is admitted: as admission, as prompt, as hit. full_held and
    swa_held: the most that requests and locks kept from eviction at any time; full_used and swa_used: the most that was
    not free; ranks do not peak together, so theirs are added up.
    """

    admissions: int = 0
    finished: int = 0
    aborted: int = 0
    retractions: int = 0
    prompt_tokens: int = 0
    hit_tokens: int = 0
    computed_tokens: int = 0
    steps: int = 0
    full_evicted: int = 0
    swa_evicted: int = 0
    tombstones: int = 0
    heals: int = 0
    violations: int = 0
    full_capacity: int = 0
    full_held: int = 0
    full_used: int = 0
    swa_capacity: int = 0
    swa_held: int = 0
    swa_used: int = 0

    @property
    def hit_rate(self) -> float:
        """Cached part of the prompt tokens."""
        return self.hit_tokens / self.prompt_tokens if self.prompt_tokens else 0.0

    def add(self, other: "Figures") -> None:
        """Another rank's figures on top."""
        for field in self.__struct_fields__:
            setattr(self, field, getattr(self, field) + getattr(other, field))


class Meter:
    """Counts one rank; `take` each event before it changes the state."""

    def __init__(self, figures: Figures | None = None) -> None:
        self.figures = figures if figures is not None else Figures()
        self._held = self._used = self._swa_held = self._swa_used = 0
        self._page_size = 1
        self._steps = self._computed = 0
        self._of: dict[type, Callable[[Any], None]] = {
            Admitted: self._admitted,
            Finished: self._finished,
            Aborted: self._aborted,
            Retracted: self._retracted,
            Removed: self._removed,
            Demoted: self._removed,
            Tombstoned: self._tombstoned,
            Healed: self._healed,
            Violated: self._violated,
        }

    def take(self, state: State, event: AnyEvent) -> None:
        """Count `event`, and see how full the pools are right before it."""
        kind = type(event)
        if kind is Extended or (kind is Bound and _grows(state, event)):
            self._steps += 1
        else:
            count = self._of.get(kind)
            if count is not None:
                self._page_size = state.page_size
                count(event)
        self.look(state)

    def look(self, state: State) -> None:
        """See how full the pools are."""
        full, swa = state.full, state.swa
        used = full.capacity - full.held[Kind.FREE]
        self._used = max(self._used, used)
        used -= full.held[Kind.TREE] - state.full_protected
        self._held = max(self._held, used)
        if state.windowed:
            used = swa.capacity - swa.held[Kind.FREE]
            self._swa_used = max(self._swa_used, used)
            used -= swa.held[Kind.TREE] - state.swa_protected
            self._swa_held = max(self._swa_held, used)

    def finish(self, state: State) -> Figures:
        """The figures, once the run is through and `state` is its end."""
        self.look(state)
        figures, page_size = self.figures, state.page_size
        figures.computed_tokens += sum(int(state.rows.length[each.row]) for each in state.requests.values())
        figures.steps = self._steps
        figures.full_capacity, figures.swa_capacity = (
            state.full.capacity * page_size,
            state.swa.capacity * page_size,
        )
        figures.full_held, figures.full_used = self._held * page_size, self._used * page_size
        figures.swa_held, figures.swa_used = self._swa_held * page_size, self._swa_used * page_size
        return figures

    def _admitted(self, event: Admitted) -> None:
        self.figures.admissions += 1
        self.figures.prompt_tokens += event.prompt
        self.figures.hit_tokens += event.prefix
        self.figures.computed_tokens -= event.prefix

    def _finished(self, event: Finished) -> None:
        self.figures.finished += 1
        self.figures.computed_tokens += event.tokens

    def _aborted(self, event: Aborted) -> None:
        self.figures.aborted += 1
        self.figures.computed_tokens += event.tokens

    def _retracted(self, event: Retracted) -> None:
        self.figures.retractions += 1
        self.figures.computed_tokens += event.tokens

    def _removed(self, event: Removed | Demoted) -> None:
        if event.cause >> 5 == Operation.EVICT:
            self.figures.full_evicted += (len(event.full) >> 2) * self._page_size
            if isinstance(event, Removed):
                self.figures.swa_evicted += (len(event.swa) >> 2) * self._page_size

    def _tombstoned(self, event: Tombstoned) -> None:
        self.figures.tombstones += 1
        if event.cause >> 5 == Operation.EVICT:
            self.figures.swa_evicted += (len(event.swa) >> 2) * self._page_size

    def _healed(self, event: Healed) -> None:
        self.figures.heals += 1

    def _violated(self, event: Violated) -> None:
        self.figures.violations += 1


def _grows(state: State, event: Any) -> bool:
    """Whether a server wrote tokens into a row of its own: its steps, request by request."""
    return bool(event.length > state.rows.length[state.row_of(event.request)])


class Ear:
    """Stands in for a journal: hears what would be written, and has it counted."""

    def __init__(self, opened: Opened, meter: Meter) -> None:
        self.opened = opened
        self.state: State | None = None
        """The state that the events change, once there is one."""
        self._meter = meter

    def append(self, event: AnyEvent, /) -> None:
        """Count an event before it changes the state."""
        if self.state is not None:
            self._meter.take(self.state, event)

    def end_command(self) -> None:
        """Nothing is kept back here."""

    def end_step(self, step: int) -> None:
        """Nothing to make safe."""

    def close(self) -> None:
        """Nothing to let go."""
