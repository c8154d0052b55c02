"""The first wrong event, explained: what it is about, what led to it, the scene just before it, what came of it.

Rule: what cannot be rebuilt is left out and never guessed; a journal that is damaged further back still gives what lies
between.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from radixledger.cache.state import State
from radixledger.journal.accounts import FREE, PENDING, Kind
from radixledger.journal.causes import label_of
from radixledger.journal.errors import JournalError
from radixledger.journal.events import AnyEvent
from radixledger.journal.moves import pages_of, whole_moves
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Seq
from radixledger.replay.fold import fold
from radixledger.replay.seek import Watch, beginning_before, opened_of
from radixledger.replay.triage.astray import Astray, astray
from radixledger.replay.triage.causal_slice import (
    CausalSlice,
    SliceEvent,
    causal_slice,
    handed_out_next,
    the_event,
)
from radixledger.replay.triage.scene import (
    HolderThen,
    PoolThen,
    RequestThen,
    StepThen,
    book_of,
    holders_then,
    pools_then,
    requests_then,
    steps_then,
)
from radixledger.replay.triage.things import GROUP, REQUEST, STEP, Thing, holder, named_by
from radixledger.replay.verdict import Told

PAGES_FOLLOWED = 3
THINGS_FOLLOWED = 12
OF_DIGESTS = ("a_recorded_digest_is_the_states", "a_snapshot_holds_the_state")
"""Laws whose breaking names no event: the writer's state left its own events somewhere before."""


class Explained(Struct):
    """The first wrong event and what belongs to it. `after`: who was handed its pages next.

    giver, taker: the accounts that the event names for the first page concerned, -1 where it moves none.
    """

    first: Told
    also: list[Told]
    """What else the event broke."""
    event: str
    cause: str
    about: list[str]
    giver: int
    taker: int
    slice: CausalSlice
    after: list[SliceEvent]
    astray: Astray
    """All its pages that somebody else had, and every request that got one next."""
    rids: dict[int, str]
    """Names of requests that are told of, whether or not they have a part in it."""
    holders: list[HolderThen]
    steps: list[StepThen]
    pools: list[PoolThen]
    requests: list[RequestThen]

    @property
    def located(self) -> bool:
        """Whether it is one event, and not a stretch that a digest does not agree behind."""
        return self.first.law not in OF_DIGESTS


def explain(
    reader: JournalReader,
    first: Told,
    also: Sequence[Told] = (),
    earlier: State | None = None,
    watch: Watch = iter,
) -> Explained:
    """Explain the finding `first`, beside which the same event broke what `also` says.

    earlier: a state from before it, which is folded on; raises what reading raises where the event itself cannot be read.
    """
    frame = next(iter(reader.frames(Seq(first.seq))))
    event = frame.events[0]
    before = None if first.by_pages else _before(reader, first.seq, earlier)
    things = list(_things([first, *also], event, before))
    giver, taker = _given(first, event)
    story = _story(reader, first, things, _former(before, things, giver), watch)
    story.events.append(the_event(first.seq, frame, event, things))
    rids: dict[int, str] = {each.id: each.rid for each in before.requests.values()} if before else {}
    rids |= story.rids
    after = _after(reader, first.seq, things, taker, rids)
    gone = astray(reader, [first, *also], event, before, rids)
    return Explained(
        first=first,
        also=list(also),
        event=type(event).__name__,
        cause=label_of(event),
        about=[str(thing) for thing in things],
        giver=giver,
        taker=taker,
        slice=story,
        after=after,
        astray=gone,
        rids={number: rids[number] for number in _told_of(story, after, things, gone) if number in rids},
        holders=holders_then(before, things) if before else [],
        steps=steps_then(before, things) if before else [],
        pools=pools_then(before) if before else [],
        requests=requests_then(before, things, story) if before else [],
    )


def _before(reader: JournalReader, seq: int, earlier: State | None) -> State | None:
    """The state just before event `seq`; None where there is none, or where damage lies in between."""
    if seq == 1:
        return None
    try:
        begin = earlier or beginning_before(reader, seq - 1).state
        if begin is not None and begin.seq == seq - 1:
            return begin
        frames = reader.frames(Seq(begin.seq + 1) if begin else None)
        return fold(frames, begin, until=seq - 1, opened=opened_of(reader))
    except JournalError:
        return None


def _things(found: Sequence[Told], event: AnyEvent, before: State | None) -> Iterator[Thing]:
    """What the first wrong event is about: the pages that laws name, what the event names, steps that run."""
    first = found[0]
    by_pool: dict[str, list[int]] = {}
    for each in found:
        by_pool.setdefault(each.pool, []).extend(each.pages)
    pages = [
        Thing(pool, page)
        for pool, told in by_pool.items()
        if pool
        for page in list(dict.fromkeys(told))[:PAGES_FOLLOWED]
    ]
    named = named_by(event)[:THINGS_FOLLOWED]
    if not pages and not named:
        moved = [
            (move.pool.name, page)
            for move in whole_moves(event)
            for page in pages_of(move.pages[:4]).tolist()
        ]
        pages = [Thing(*each) for each in moved[:PAGES_FOLLOWED]]
    yield from pages
    held = holder(first.found) if first.found > FREE and first.found & 7 >= Kind.REQUEST and pages else None
    yield from dict.fromkeys([*named, held] if held else named)
    if before is not None:
        yield from (Thing(STEP, step) for step in list(before.running)[:PAGES_FOLLOWED])
        if before.group_open or "group" in first.law:
            yield Thing(GROUP, 0)


def _given(first: Told, event: AnyEvent) -> tuple[int, int]:
    for move in whole_moves(event):
        if move.pool.name == first.pool and first.pages and first.pages[0] in pages_of(move.pages):
            return move.giver, move.taker
    return -1, -1


def _former(before: State | None, things: list[Thing], giver: int) -> Thing | None:
    """The giver, where somebody else has the pages by now."""
    if before is None or giver <= PENDING:
        return None
    held = next(holders_of(before, things), giver)
    return None if held in (giver, FREE) else holder(giver)


def holders_of(state: State, things: list[Thing]) -> Iterator[int]:
    """The account of each page among `things`."""
    for thing in things:
        book = book_of(state, thing)
        if book is not None:
            yield int(book.account[thing.number])


def _story(
    reader: JournalReader, first: Told, things: list[Thing], giver: Thing | None, watch: Watch
) -> CausalSlice:
    try:
        return causal_slice(reader, first.seq, things, giver=giver, floor=reader.first_seq, watch=watch)
    except JournalError:
        return CausalSlice([], {}, True, {}, {})


def _told_of(story: CausalSlice, after: list[SliceEvent], things: list[Thing], gone: Astray) -> Iterator[int]:
    """The requests that the slice, and what came after it, tell of."""
    yield from (each.request for each in gone.got)
    yield from (thing.number for thing in things if thing.kind == REQUEST)
    yield from story.rids
    for event in [*story.events, *after]:
        for moved in event.moved:
            yield from (account >> 3 for account in (moved.giver, moved.taker) if account & 7 == Kind.REQUEST)


def _after(
    reader: JournalReader, seq: int, things: list[Thing], taker: int, rids: dict[int, str]
) -> list[SliceEvent]:
    """Who was handed the pages next, where the event gave them up, or handed them out itself."""
    if taker == -1:
        return []
    try:
        return handed_out_next(reader, seq, things, rids)
    except JournalError:
        return []
