"""Reduces an incident to few commands that still break the same law in the same way (J18, N8).

First whole requests are left out, all at once that share nothing with the wrong command, then fewer and fewer; then
commands, by halves (delta debugging); then what a request grew by in many steps is told as one. Rules: the wrong command
stays, and is the last; what is left out is left out only if the rest is still the same incident (`reenactment`); the
same journal gives the same schedule, unless time ran out.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from radixledger.replay.reduce.incident import Deed, Incident
from radixledger.replay.reduce.participants import less, names_in
from radixledger.replay.reduce.reenactment import Enacted, Reenactment, deeds_of
from radixledger.replay.schedule import commands as c

Advance = Callable[[int], None]
Deeds = list[Deed]


class Reduced(NamedTuple):
    """What is left of an incident. at_first: its commands before; tried: how many parts of it were performed."""

    incident: Incident
    deeds: Deeds
    enacted: Enacted
    at_first: int
    tried: int
    finished: bool
    """Whether nothing more can be left out, as far as it was looked for; else time ran out."""

    @property
    def wrong(self) -> int | None:
        """The place of the first deed that is not decided so today; None where all are."""
        return next((place for place, deed in enumerate(self.deeds) if deed.decided is not None), None)


class CannotReduce(Exception):
    """The commands of an incident, performed again, do not show it; and why."""


class _TimeIsUp(Exception):
    """Stop, with what there is."""


def reduced(incident: Incident, seconds: float = 60.0, advance: Advance = lambda _: None) -> Reduced:
    """The least that can be left of an incident; raises CannotReduce where already all of it does not show it."""
    deeds = deeds_of(incident)
    search = _Search(Reenactment(incident, deeds), seconds, advance)
    search.begin(deeds)
    try:
        for step in (_unconnected, _requests, _commands, _joined, _requests, _commands):
            step(search)
        finished = True
    except _TimeIsUp:
        finished = False
    assert search.enacted is not None, "a search begins with what holds"
    return Reduced(incident, search.deeds, search.enacted, len(deeds), search.stage.tried, finished)


class _Search:
    """The least known so far."""

    def __init__(self, stage: Reenactment, seconds: float, advance: Advance) -> None:
        self.stage = stage
        self.deeds: Deeds = []
        self.enacted: Enacted | None = None
        self._stop_at = time.monotonic() + seconds
        self._advance = advance

    def begin(self, deeds: Deeds) -> None:
        """Take all of them as the least known; raises CannotReduce."""
        self.enacted, self.deeds = self.stage.enact(deeds), deeds
        if self.enacted is None:
            raise CannotReduce(
                f"{len(deeds)} commands were performed again and do not show it: {self.stage.law} breaks elsewhere, or "
                "not at all; the journal may come from another writer, or the wrong event from a fault outside of its commands"
            )

    def keeps(self, deeds: Deeds) -> bool:
        """Whether fewer do; then they are the least known."""
        if _weight(deeds) >= _weight(self.deeds):
            return False
        if time.monotonic() > self._stop_at:
            raise _TimeIsUp
        found = self.stage.enact(deeds)
        self._advance(1)
        if found is not None:
            self.enacted, self.deeds = found, deeds
        return found is not None


def _weight(deeds: Deeds) -> tuple[int, int]:
    return len(deeds), sum(len(names_in(deed.command)) for deed in deeds)


# -- requests ------------------------------------------------------------------------------------------------


def without(deeds: Iterable[Deed], names: set[str]) -> Deeds:
    """The deeds without those of these requests, and without their part in what was done to several at once."""
    left: Deeds = []
    for deed in deeds:
        command = less(deed.command, names) if deed.decided is None else deed.command
        if command is not None and not (names_in(command) & names):
            left.append(deed if command is deed.command else Deed(command, deed.recorded))
        elif deed.decided is not None:
            left.append(deed)
    return left


def _all_names(deeds: Deeds) -> list[str]:
    return [*dict.fromkeys(name for deed in deeds for name in sorted(names_in(deed.command)))]


def _unconnected(search: _Search) -> None:
    """Leave out all that shares no page of a key, and nothing else, with the wrong command; then all that is not of it."""
    last = names_in(search.deeds[-1].command)
    for connected in (last, last | _sharing(search.deeds, last)):
        search.keeps(without(search.deeds, set(_all_names(search.deeds)) - connected))


def _sharing(deeds: Deeds, names: set[str]) -> set[str]:
    """The requests whose prompts begin like those of these, or like the path that the last command names."""
    firsts: dict[str, str] = {}
    for deed in deeds:
        for name in names_in(deed.command) if _key_of(deed) else ():
            firsts.setdefault(name, _key_of(deed)[0])
    wanted = {firsts[name] for name in names if name in firsts} | set(_key_of(deeds[-1])[:1])
    return {name for name, first in firsts.items() if first in wanted}


def _key_of(deed: Deed) -> str:
    return getattr(deed.command, "key", None) or getattr(deed.command, "node", None) or ""


def _requests(search: _Search) -> None:
    """Leave out requests: halves of them, then quarters, down to single ones."""
    _halving(search, lambda: _all_names(search.deeds), lambda part: without(search.deeds, set(part)))


def _commands(search: _Search) -> None:
    """Leave out commands: halves of them, then quarters, down to single ones; never the last."""
    _halving(
        search,
        lambda: list(range(len(search.deeds) - 1)),
        lambda part: [deed for place, deed in enumerate(search.deeds) if place not in set(part)],
    )


def _halving(
    search: _Search, things: Callable[[], list[Any]], left: Callable[[Sequence[Any]], Deeds]
) -> None:
    """Leave out ever smaller parts, from the end to the beginning, until no single thing can be left out."""
    size = max(1, len(things()) // 2)
    while True:
        at, shrunk = len(things()), False
        while at > 0:
            part = things()[max(0, at - size) : at]
            shrunk = search.keeps(left(part)) or shrunk
            at = min(at - size, len(things()))
        if size == 1 and not shrunk:
            return
        size = max(1, size // 2)


# -- growth --------------------------------------------------------------------------------------------------


def _joined(search: _Search) -> None:
    """Tell as one what requests grew by in steps that nothing else of theirs lies between."""
    at = len(search.deeds) - 2
    while at > 0:
        search.keeps(_merged(search.deeds, at - 1, at))
        at = min(at, len(search.deeds) - 1) - 1


def _merged(deeds: Deeds, first: int, second: int) -> Deeds:
    one, other = (_growth(deeds[place]) for place in (first, second))
    if one is None or other is None:
        return deeds
    grown = {name: one.get(name, 0) + other.get(name, 0) for name in [*one, *other]}
    return [*deeds[:first], Deed(c.Extend(grown), ()), *deeds[second + 1 :]]


def _growth(deed: Deed) -> dict[str, int] | None:
    if deed.decided is not None:
        return None
    if isinstance(deed.command, c.Extend):
        return deed.command.grown
    return dict.fromkeys(deed.command.names, 1) if isinstance(deed.command, c.Decode) else None
