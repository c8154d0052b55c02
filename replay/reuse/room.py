"""Who wanted the room that an eviction made: what it was asked for, and who was handed pages right after it.

An eviction is a command of its own and names no request; whoever takes pages next is whom it was made for. Rule: it
looks at events before they are folded, and changes nothing.
"""

from collections.abc import Callable
from typing import Any

from radixledger.cache.state import State
from radixledger.journal.events import Allocated, Bound, Evicted, Extended, Gap, LoadBegun, StateTaken
from radixledger.journal.moves import ids_of
from radixledger.journal.units import UNBOUND
from radixledger.replay.reuse.stays import Pressure

TAKERS_TOLD = 8
"""So many request ids are told of those that took room in one step."""


class Room:
    """The evictions of one rank, as they happen."""

    def __init__(self) -> None:
        self._pressure = Pressure()
        self._felt = False
        """Whether a victim has gone for it already."""
        self._untaken: Pressure | None = None
        self._seq = 0
        self._looks: dict[type, Callable[[State, Any], None]] = {
            Evicted: self._evicted,
            Allocated: self._took,
            StateTaken: self._took,
            Bound: self._took,
            Extended: self._grew,
            LoadBegun: self._load_begun,
            Gap: self._missing,
        }

    def look(self, state: State, seq: int, event: object) -> None:
        """Look at the event with number `seq`."""
        look = self._looks.get(type(event))
        if look is not None:
            self._seq = seq
            look(state, event)

    def victim(self) -> Pressure:
        """The eviction that a victim goes for now; what was asked and who took room is told later."""
        self._felt = True
        return self._pressure

    def _missing(self, _: State, __: Gap) -> None:
        """Who asked for room, and who took it, may stand among the events that are missing."""
        self._pressure, self._felt, self._untaken = Pressure(), False, None

    def _evicted(self, _: State, event: Evicted) -> None:
        pressure, self._pressure, self._felt = self._pressure, Pressure(), False
        pressure.seq = self._seq
        pressure.asked = (event.asked_full, event.asked_swa, event.asked_recurrent)
        pressure.gained = (event.gained_full, event.gained_swa, event.gained_recurrent)
        self._untaken = pressure

    def _took(self, state: State, event: Allocated | StateTaken | Bound) -> None:
        if event.request != UNBOUND:
            self._took_by(state, [event.request])

    def _grew(self, state: State, event: Extended) -> None:
        if event.takers and len(event.takers) % 8 == 0:
            self._took_by(state, ids_of(event.takers).tolist())

    def _load_begun(self, _: State, event: LoadBegun) -> None:
        self._told([f"load {event.transfer}"], 1)

    def _took_by(self, state: State, requests: list[int]) -> None:
        live = state.requests
        names = [live[each].rid if each in live else f"request {each}" for each in requests[:TAKERS_TOLD]]
        self._told(names, len(requests))

    def _told(self, names: list[str], count: int) -> None:
        pressure, self._untaken = self._untaken, None
        if self._felt:  # nobody told of the end of that eviction
            pressure, self._pressure, self._felt = self._pressure, Pressure(), False
        if pressure is not None:
            pressure.takers, pressure.taker_count, pressure.took_seq = names, count, self._seq
