"""Pages that went astray in one event, and the requests that got them: whose answers are to be looked at (J14).

Not here: who reads such a page from a node that goes on naming it. Rules: a page counts to the first who gets it behind the
event, since those after that got it from somebody who had it; all pages of the event count, whatever is told of a few.
"""

from collections.abc import Sequence

from msgspec import Struct, field

from radixledger.cache.state import State
from radixledger.journal.accounts import FREE, PENDING, Kind
from radixledger.journal.errors import JournalError
from radixledger.journal.events import Admitted, AnyEvent, Opened
from radixledger.journal.moves import pages_of, whole_moves
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Seq
from radixledger.replay.verdict import Told

LOOK_AHEAD = 100_000

Place = tuple[str, int]
"""A page, by the name of its pool and its number."""


class Handed(Struct):
    """The pages that one event handed a request, by pool."""

    seq: int
    step: int
    pages: dict[str, list[int]] = field(default_factory=dict)


class Got(Struct):
    """A request that such pages were handed to, in one event or in several."""

    request: int
    rid: str
    handed: list[Handed] = field(default_factory=list)
    """In the order of events."""

    def add(self, seq: int, step: int, place: Place) -> None:
        """It got this page in event `seq`, which is none before the last one."""
        if not self.handed or self.handed[-1].seq != seq:
            self.handed.append(Handed(seq, step))
        self.handed[-1].pages.setdefault(place[0], []).append(place[1])

    @property
    def count(self) -> int:
        """How many pages."""
        return sum(len(pages) for each in self.handed for pages in each.pages.values())


class Astray(Struct):
    """The pages that an event moved and its giver did not have, by pool; the accounts that had them; who got them.

    cut: the look ahead ended before the journal, or reading did.
    """

    pages: dict[str, list[int]] = field(default_factory=dict)
    owners: list[int] = field(default_factory=list)
    got: list[Got] = field(default_factory=list)
    cut: bool = False

    @property
    def handed_out(self) -> int:
        """How many of the pages a request got."""
        return sum(each.count for each in self.got)


def astray(
    reader: JournalReader, found: Sequence[Told], event: AnyEvent, before: State | None, rids: dict[int, str]
) -> Astray:
    """What went astray in `event`, which broke what `found` says; `rids` learns the names of requests on the way."""
    owners = _owners(found, event, before)
    out = Astray(owners=sorted({owner for owner in owners.values() if owner > PENDING}))
    for pool, page in owners:
        out.pages.setdefault(pool, []).append(page)
    seq, step = found[0].seq, found[0].step
    takers: dict[int, Got] = {}
    _hand_out(event, seq, step, owners, takers, rids, itself=True)
    held = _held_behind(event)
    waiting = {place: owner for place, owner in owners.items() if place not in held}
    try:
        for frame in reader.frames(Seq(seq + 1)) if waiting else ():
            out.cut = frame.seq_first > seq + LOOK_AHEAD
            if not waiting or out.cut:
                break
            for at, later in enumerate(frame.events, frame.seq_first):
                if isinstance(later, Opened):
                    waiting.clear()  # another life of the process: what these pages were is gone
                _hand_out(later, at, frame.step, waiting, takers, rids)
    except JournalError:
        out.cut = True
    out.cut = out.cut and bool(waiting)
    out.got = list(takers.values())
    for each in out.got:
        each.rid = rids.get(each.request, "")
    return out


def _owners(found: Sequence[Told], event: AnyEvent, before: State | None) -> dict[Place, int]:
    """Who had each page that somebody else gave: by the state before where it is known, else by what was found."""
    if before is None or not found[0].pages:
        return {(each.pool, page): each.found for each in found if each.pool for page in each.pages}
    out: dict[Place, int] = {}
    for move in whole_moves(event):
        book = before.books[move.pool]
        for page in pages_of(move.pages).tolist():
            if 0 <= page <= book.capacity and (owner := int(book.account[page])) != move.giver:
                out[move.pool.name, page] = owner
    return out


def _held_behind(event: AnyEvent) -> set[Place]:
    """The pages that the event gave to somebody, and not back."""
    return {
        (move.pool.name, page)
        for move in whole_moves(event)
        if move.taker not in (FREE, PENDING)
        for page in pages_of(move.pages).tolist()
    }


def _hand_out(
    event: AnyEvent, seq: int, step: int, waiting: dict[Place, int], takers: dict[int, Got], rids: dict[int, str], *, itself: bool = False,
) -> None:  # fmt: skip
    """Note the request that an event hands pages that are waited for, which then are no longer, unless it is the wrong one `itself`."""
    if isinstance(event, Admitted):
        rids[event.request] = event.rid
    for move in whole_moves(event):
        if move.taker & 7 != Kind.REQUEST or not (itself or move.giver == FREE):
            continue
        for page in pages_of(move.pages).tolist():
            place = move.pool.name, page
            if place in waiting:
                number = move.taker >> 3
                takers.setdefault(number, Got(number, "")).add(seq, step, place)
                if not itself:
                    del waiting[place]
