"""Device steps in flight, as the state keeps them.

Rule: what a step writes was checked when it was told; here it is only read.
"""

from typing import NamedTuple

import numpy as np


class Writes(NamedTuple):
    """What a device step writes: of request i the tokens [starts[i], stops[i])."""

    requests: tuple[int, ...]
    starts: tuple[int, ...]
    stops: tuple[int, ...]


class Running:
    """A device step in flight. What it writes stays packed, as the event told it, until somebody asks: few steps are."""

    __slots__ = ("_packed", "_writes")

    def __init__(self, requests: bytes, starts: bytes, stops: bytes) -> None:
        self._packed = requests, starts, stops
        self._writes: Writes | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Running) and self.writes == other.writes

    __hash__ = None  # type: ignore[assignment]  # it is compared, and no key of anything

    @classmethod
    def of(cls, writes: Writes) -> "Running":
        """A step that is known by what it writes."""
        running = cls(b"", b"", b"")
        running._writes = writes
        return running

    @property
    def writes(self) -> Writes:
        """Requests and intervals, read once."""
        if self._writes is None:
            requests, starts, stops = self._packed
            self._writes = Writes(
                tuple(np.frombuffer(requests, "<i8").tolist()),
                tuple(np.frombuffer(starts, "<i4").tolist()),
                tuple(np.frombuffer(stops, "<i4").tolist()),
            )
        return self._writes

    @property
    def requests(self) -> tuple[int, ...]:
        """The requests that it reads and writes."""
        return self.writes.requests

    @property
    def starts(self) -> tuple[int, ...]:
        """The first token that it writes, of each request."""
        return self.writes.starts
