"""What the tree had once, and what took it away: the data that `memory` keeps and `misses` asks.

A *stay* is one node's time in the tree, from the event that made it to the one that removed it. Meanwhile its FULL pages
may go to the host, its window be taken and healed, its state be given up: each of these is a history of *marks*. A *loss*
is an event that took something. Rule: data and look-ups only; times are sequence numbers, and `at` asks for what was
true behind the event with that number.
"""

from bisect import bisect_right
from collections.abc import Iterable
from operator import attrgetter
from typing import NamedTuple

from msgspec import Struct

_BEGUN = attrgetter("seq")


class Pressure(Struct, eq=False):
    """One eviction. asked, gained: pages of FULL and SWA, slots of states. takers: request ids that took room right after it.

    seq: its `Evicted`, 0 where none tells of it. took_seq: the event that handed the room out, 0 where none did before
    the next eviction.
    """

    seq: int = 0
    asked: tuple[int, int, int] = (0, 0, 0)
    gained: tuple[int, int, int] = (0, 0, 0)
    takers: list[str] = []
    taker_count: int = 0
    took_seq: int = 0


class Loss(Struct, eq=False):
    """An event that took something from the tree. evicted: FULL and SWA pages that evictions had taken before it."""

    seq: int
    time_ns: int
    step: int
    event: str
    cause: int
    node: int
    evicted: tuple[int, int]
    pressure: Pressure | None = None


class Mark(NamedTuple):
    """From event `seq` on something is there, or is not: because of `loss`, or, without one, it never was."""

    seq: int
    there: bool
    loss: Loss | None = None


def there_at(marks: list[Mark], at: int) -> bool:
    """Whether the last mark at or before event `at` says that it is there."""
    if marks and marks[-1].seq <= at:
        return marks[-1].there
    place = bisect_right(marks, at, key=_BEGUN)
    return place > 0 and marks[place - 1].there


class Stay(Struct, eq=False):
    """One node's time in the tree. stop: where it ends, in pages of its path; a split gives both parts one each.

    request, rid: who brought it; rid is empty for nobody in particular. full, window, state: histories; a window is
    kept by trees that have one, a state stands at `stop`. copy_dropped: what took its copy on the host, if it had one.
    given_back: by which its request had given windows back before it brought this. vetoed: by which what its request had
    computed behind it was freed and not kept (R93).
    """

    born: int
    request: int
    rid: str
    stop: int
    full: list[Mark]
    window: list[Mark]
    state: list[Mark]
    end: Loss | None = None
    copy_dropped: Loss | None = None
    given_back: Loss | None = None
    vetoed: Loss | None = None

    def covers(self, at: int) -> bool:
        """Whether it was in the tree behind event `at`."""
        return self.born <= at and (self.end is None or self.end.seq > at)

    def cut_off(self, stop: int) -> "Stay":
        """The stay of the upper part of its node, which ends at page `stop`: the same past, no state."""
        upper = Stay(self.born, self.request, self.rid, stop, [*self.full], [*self.window], [])
        upper.given_back = self.given_back
        return upper

    def losses(self) -> list[Loss]:
        """Every event that took something of it."""
        found = [mark.loss for marks in (self.full, self.window, self.state) for mark in marks if mark.loss]
        return [*found, self.end] if self.end else found


class Piece(NamedTuple):
    """Pages [start, stop) of a path that have one past: every stay that held them, older ones first."""

    start: int
    stop: int
    stays: tuple[Stay, ...]

    def stay_at(self, at: int) -> Stay | None:
        """The stay that held these pages behind event `at`."""
        for stay in reversed(self.stays):
            if stay.covers(at):
                return stay
        return None


class Needs(NamedTuple):
    """What a boundary needs beside FULL pages: a live window of so many pages, 0 for none; a state or not."""

    tail_pages: int
    states: bool


def reach(pieces: list[Piece], begin: int, at: int, needs: Needs) -> int:
    """How far a key with this path would have hit behind event `at`, in pages; `begin` if no further.

    The pieces begin a window before `begin`, or at the root, where the run of live pages is as long as any window (R75).
    """
    tail, best = needs.tail_pages, begin
    run = tail if pieces and pieces[0].start == 0 else 0
    for piece in pieces:
        stay = piece.stay_at(at)
        if stay is None or not there_at(stay.full, at):
            break
        if tail:
            run = run + piece.stop - piece.start if there_at(stay.window, at) else 0
        if (
            piece.stop > best
            and run >= tail
            and not (needs.states and (piece.stop != stay.stop or not there_at(stay.state, at)))
        ):
            best = piece.stop
    return best


def extend(out: list[Piece], more: Iterable[Piece]) -> None:
    """Pieces one behind the other; neighbours with one past become one."""
    for piece in more:
        if out and out[-1].stays == piece.stays and out[-1].stop == piece.start:
            out[-1] = Piece(out[-1].start, piece.stop, piece.stays)
        else:
            out.append(piece)
