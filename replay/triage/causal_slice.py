"""The causal slice of an event: the few before it that made the things it is about what they were (J14, N4).

Events are read backwards, window by window. A thing is followed to where it, or its present life, began; what gave and
what took it is followed too, but only to its beginning and its end. Rules: memory holds one window; a look back ends
after `LOOK_BACK` events, and says so; a thing that changed often tells its latest changes and how many are left out.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from radixledger.journal.accounts import describe
from radixledger.journal.causes import label_of
from radixledger.journal.events import Aborted, Admitted, AnyEvent, Finished, Opened, Removed, Retracted
from radixledger.journal.frame import Frame
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Seq
from radixledger.replay.seek import Watch
from radixledger.replay.story.event_words import words
from radixledger.replay.triage.things import Thing, Touch, needle, pages_words, touches

LOOK_BACK = 1_000_000
LOOK_AHEAD = 100_000
WINDOW_FIRST, WINDOW_MAX = 512, 65_536
CHANGES = (6, 1)
"""How many changes of a thing are kept, between its beginning and its end: of what the event is about, and of the others."""
DEEPEST = 2
"""From the pages of the event to who held them, and on to whom those had them from."""

ENDS = (Finished, Retracted, Aborted, Removed)


class Moved(Struct, frozen=True):
    """A page that a followed event moved, in words, and the accounts that gave and took it."""

    page: str
    giver: int
    taker: int


class SliceEvent(Struct, frozen=True):
    """One event of a slice. `what`: what it did to the things that are followed; `wrong`: it is the one explained."""

    seq: int
    time_ns: int
    step: int
    event: str
    cause: str
    what: list[str]
    moved: list[Moved] = []
    wrong: bool = False


class CausalSlice(Struct):
    """The events that matter, in order. left_out: changes that are not told; by thing. unfinished: the look back ended first."""

    events: list[SliceEvent]
    left_out: dict[str, int]
    unfinished: bool
    rids: dict[int, str]
    """Names of requests that were admitted in one of the events."""
    ended: dict[int, str]
    """Requests that ended in one of them, and how."""


class _Followed(Struct):
    """How a thing is followed backwards. lives: beginnings still to come."""

    depth: int
    lives: int
    changes: int
    left_out: int = 0


class _Following:
    """Goes backwards through events and keeps those that touch what is followed."""

    def __init__(self, things: Iterable[Thing], giver: Thing | None) -> None:
        self._giver = giver
        self.open: dict[Thing, _Followed] = {}
        self.needles: Counter[bytes] = Counter()
        """Pages of pools may share a number, and so a needle."""
        self.slice = CausalSlice([], {}, False, {}, {})
        self._known: set[Thing] = set()
        for thing in things:
            self.follow(thing, 0, 2 if thing.is_page and giver is not None else 1)

    def follow(self, thing: Thing, depth: int, lives: int = 1) -> None:
        """Begin to follow a thing, once."""
        if thing not in self._known and depth <= DEEPEST:
            self._known.add(thing)
            self.open[thing] = _Followed(depth, lives, CHANGES[min(depth, 1)])
            if thing.is_page:
                self.needles[needle(thing)] += 1

    def look(self, seq: int, frame: Frame, event: AnyEvent) -> None:
        """Look at an event; later ones were looked at before."""
        found = [touch for touch in touches(event, self.open, self.needles) if self._matters(event, touch)]
        if found:
            self.slice.events.append(_told(seq, frame, event, found))
        if isinstance(event, Opened):
            self.open.clear()  # another life of the process: pages, nodes and requests of before are gone

    def _matters(self, event: AnyEvent, touch: Touch) -> bool:
        followed = self.open.get(touch.thing)
        if followed is None:
            return True  # the same event told the beginning of it
        ends = isinstance(event, ENDS)
        if self._giver in touch.holders:
            followed.lives = 1
        if touch.begins:
            followed.lives -= 1
            if not followed.lives:
                self._close(touch.thing)
        elif not ends:
            followed.changes -= 1
            if followed.changes < 0:
                followed.left_out += 1
                return False
        self._remember(event)
        for held in touch.holders:
            self.follow(held, followed.depth + 1)
        return True

    def _remember(self, event: AnyEvent) -> None:
        if isinstance(event, Admitted):
            self.slice.rids[event.request] = event.rid
        elif isinstance(event, Finished | Retracted | Aborted):
            self.slice.ended.setdefault(event.request, type(event).__name__.lower())

    def _close(self, thing: Thing) -> None:
        followed = self.open.pop(thing)
        if thing.is_page:
            self.needles -= Counter([needle(thing)])
        if followed.left_out:
            self.slice.left_out[str(thing)] = followed.left_out

    def finish(self) -> CausalSlice:
        """The slice, in the order of events."""
        for thing in list(self.open):
            self._close(thing)
        self.slice.events.reverse()
        return self.slice


def causal_slice(
    reader: JournalReader,
    seq: int,
    things: Iterable[Thing],
    *,
    giver: Thing | None = None,
    floor: int = 1,
    watch: Watch = iter,
) -> CausalSlice:
    """What led to the event `seq`, which is about `things`. Nothing before event `floor` is read.

    giver: who gives pages up that somebody else has; then the life of theirs before the present one is told too, unless
    the giver had them in this one.
    """
    following = _Following(things, giver)
    floor = max(floor, seq - LOOK_BACK)
    for frame in watch(backwards(reader, seq, floor)):
        for place in reversed(range(len(frame.events))):
            following.look(frame.seq_first + place, frame, frame.events[place])
        if not following.open:
            break
    following.slice.unfinished = floor > 1 and bool(following.open)
    return following.finish()


def backwards(reader: JournalReader, stop: int, floor: int) -> Iterator[Frame]:
    """The frames with events from `floor` up to and without `stop`, the latest first; cut to that."""
    size = WINDOW_FIRST
    while stop > floor:
        start = max(floor, stop - size)
        window = []
        for frame in reader.frames(Seq(start)):
            if frame.seq_first >= stop:
                break
            window.append(frame._replace(events=frame.events[: stop - frame.seq_first]))
        yield from reversed(window)
        stop, size = start, min(size * 2, WINDOW_MAX)


def handed_out_next(
    reader: JournalReader, seq: int, pages: Iterable[Thing], rids: dict[int, str], most: int = 2
) -> list[SliceEvent]:
    """Who was handed these pages after event `seq`: the events, `most` of them, in `LOOK_AHEAD` events.

    `rids` learns the names of requests that are admitted on the way.
    """
    wanted = {page: None for page in pages if page.is_page}
    needles = {needle(page) for page in wanted}
    out: list[SliceEvent] = []
    for frame in reader.frames(Seq(seq + 1)) if wanted else ():
        for at, event in enumerate(frame.events, frame.seq_first):
            if isinstance(event, Admitted):
                rids[event.request] = event.rid
            found = [touch for touch in touches(event, wanted, needles) if touch.begins]
            if found:
                out.append(_told(at, frame, event, found))
        if len(out) >= most or frame.seq_first > seq + LOOK_AHEAD:
            break
    return out[:most]


def the_event(seq: int, frame: Frame, event: AnyEvent, things: Iterable[Thing]) -> SliceEvent:
    """The event that a slice explains, told like the others."""
    wanted = dict.fromkeys(things)
    needles = {needle(thing) for thing in wanted if thing.is_page}
    return replace(_told(seq, frame, event, touches(event, wanted, needles)), wrong=True)


def _told(seq: int, frame: Frame, event: AnyEvent, found: list[Touch]) -> SliceEvent:
    cause = label_of(event)
    did = words(event) if any(touch.what and touch.taker == -1 for touch in found) or not found else ""
    moved = [Moved(str(each.thing), each.giver, each.taker) for each in found if each.taker != -1]
    return SliceEvent(seq, frame.time_ns, frame.step, type(event).__name__, cause, _words(found, did), moved)


def _words(found: list[Touch], did: str) -> list[str]:
    """What was done to each thing, pages that moved together told together. did: the event in its own words, if they add to it."""
    together: dict[tuple[str, int, int], list[int]] = {}
    for touch in found:
        if touch.taker != -1:
            together.setdefault((touch.thing.kind, touch.giver, touch.taker), []).append(touch.thing.number)
    moved = [
        f"{pages_words(kind, pages)}: {describe(giver)} → {describe(taker)}"
        for (kind, giver, taker), pages in together.items()
    ]
    rest = list(dict.fromkeys(touch.what for touch in found if touch.what and touch.taker == -1))
    if did and not any(each in did for each in rest):
        return [*moved, f"{', '.join(rest)}: {did}" if rest else did]
    return [*moved, *([did] if did else rest)]
