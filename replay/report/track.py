"""One rank's journal as a page shows it: folded once, told in packets.

What the ranges name is told event by event, anything else many events at a time: a number of stretches that is halved
whenever there is too much to tell. Rule: what is kept while folding is bounded, whatever the journal holds.
"""

from collections.abc import Callable

from msgspec import Struct, field
from msgspec.structs import replace

from radixledger.cache.evolve import evolve
from radixledger.cache.state import State
from radixledger.journal.errors import JournalError
from radixledger.journal.events import AnyEvent, Gap, Opened
from radixledger.journal.frame import Frame
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import SEQ_MAX
from radixledger.replay.fold import begun, check_opened, enter
from radixledger.replay.known import Known, Unknown
from radixledger.replay.report.lives import TEXT_MAX, Life, Lives
from radixledger.replay.report.look import Look
from radixledger.replay.report.occupancy import Bucket, Occupancy
from radixledger.replay.report.packet import Packet, merged
from radixledger.replay.report.ranges import Range
from radixledger.replay.report.shares import Share
from radixledger.replay.seek import Watch, beginning_of, standing_in

Tell = Callable[[AnyEvent], str]
"""An event as a line of text."""


class Track(Struct):
    """What was collected of one rank."""

    opened: Opened | None = None
    """None where not even that could be read."""
    first_seq: int = 1
    last_seq: int = 0
    missing: int = 0
    """Events that no event stands for: lost ones, but for the `Gap` that tells of them."""
    packets: list[Packet] = []
    texts: list[str] = []
    """Request ids, each once."""
    lines: list[str] = field(default_factory=lambda: [""])
    """Events in words; the first is none."""
    buckets: list[Bucket] = []
    unknown: list[Unknown] = []
    """Where the state is not known; what packets and buckets say there is folded all the same, and not to be shown as a fact."""
    lives: list[Life] = []
    lives_left_out: int = 0
    unreadable: str = ""

    @property
    def events(self) -> int:
        """How many events were folded."""
        return max(0, self.last_seq - self.first_seq + 1 - self.missing)

    @property
    def detail(self) -> list[Range]:
        """The ranges that are told event by event, as they came out."""
        ranges: list[Range] = []
        for packet in self.packets:
            if packet.tag and ranges and ranges[-1][1] == packet.seq - 1:
                ranges[-1] = (ranges[-1][0], packet.seq)
            elif packet.tag:
                ranges.append((packet.seq, packet.seq))
        return ranges


def follow(
    reader: JournalReader, ranges: list[Range], share: Share, *, tell: Tell, watch: Watch = iter
) -> Track:
    """Fold a rank's journal and collect; where it cannot be read or folded on, what was before stands, and why it ended."""
    begin = beginning_of(reader)
    first, last = begin.next_seq, max(reader.last_seq, begin.next_seq)
    known = Known(standing_in(reader))
    follower = _Follower(Track(reader.opened, first), ranges, share, tell, last, known)
    follower.begin(begin.state)
    try:
        for frame in known.frames(reader, watch(reader.frames(begin.next_seq))):
            follower.take(frame)
    except JournalError as error:
        follower.track.unreadable = str(error)
    follower.finish()
    return follower.track


class _Follower:
    """Folds frames and collects packets."""

    def __init__(
        self, track: Track, ranges: list[Range], share: Share, tell: Tell, last: int, known: Known
    ) -> None:
        self.track, self._known = track, known
        self._ranges = iter([*ranges, (SEQ_MAX, SEQ_MAX)])  # a live journal grows behind `last`
        self._range = next(self._ranges)
        self._share, self._tell = share, tell
        self._state: State | None = None
        self._frame: Frame | None = None
        self._places: dict[str, int] = {}
        self._look = Look(self._text)
        self._occupancy = Occupancy(track.first_seq, last, share.buckets)
        self._lives = Lives(share.lives)
        self._stretch = max(1, (last - track.first_seq + 1) // share.stretches)
        self._told = track.first_seq - 1
        self._summary_cells = self._detail_cells = 0
        self._lost = False

    def begin(self, state: State | None) -> None:
        """Go on from a snapshot's state, which is told whole; None: from the first event on."""
        self._state = state
        if state is not None:
            self._summarise(Packet(state.seq, 0, 0))
            self._lives.begin(state)

    def take(self, frame: Frame) -> None:
        """Fold one frame; raises Unfoldable."""
        state, events = self._enter(frame)
        self._cut(frame, state)
        while self._range[1] < frame.seq_first:
            self._range = next(self._ranges)
        detailed = self._range[0] <= frame.seq_last and self._detail_cells < self._share.detail_cells
        if detailed:
            self._summarise_last()
            state = self._fold_in_detail(frame, state, events)
        else:
            note = self._look.note
            for event in events:
                state = self._onto(state, event)
                evolve(state, event)
                note(event)
            state.findings.clear()
        self._lives.take(frame)
        self._lost = self._known.lost_at > 0
        self._occupancy.take(frame, frame.events, state, known=not self._lost)
        self._frame = frame
        if not detailed and state.seq - self._told >= self._stretch:
            self._summarise_frame(frame)

    def _onto(self, state: State, event: AnyEvent) -> State:
        """What an event is folded onto; where a snapshot stands in, another state, of which everything is told."""
        if type(event) is Opened:
            check_opened(event, state.seq + 1)
        onto = self._known.see(state, event)
        if onto is not state:
            self._state = onto
            self._look.anew()
        return onto

    def _cut(self, frame: Frame, state: State) -> None:
        """Where events are missing in front of a frame, the stretch that was known ends."""
        gap = frame.events[0]
        if isinstance(gap, Gap):
            self.track.missing += max(0, min(gap.lost, frame.seq_first - self.track.first_seq + 1) - 1)
        elif not self._known.lost_at:
            return
        if self._frame is not None and not self._lost:
            self._summarise_last()
            self._occupancy.cut(self._frame, state)
        self._lost = True

    def finish(self) -> None:
        """Tell what is left."""
        track, state = self.track, self._state
        if state is not None and self._frame is not None:
            self._summarise_last()
            self._occupancy.finish(self._frame, state)
            track.last_seq = state.seq
        track.unknown = [replace(each, until=each.until or track.last_seq) for each in self._known.stretches]
        track.texts = list(self._places)
        track.buckets = self._occupancy.buckets
        track.lives, track.lives_left_out = self._lives.kept, self._lives.left_out

    def _enter(self, frame: Frame) -> tuple[State, list[AnyEvent]]:
        """The state before the frame, and the events of it that are to be folded."""
        state, events = self._state, frame.events
        if state is not None:
            enter(state, frame)
            return state, events
        self._state, rest = begun(frame, self.track.opened)
        if len(rest) < len(events):
            packet = self._packet(frame, frame.seq_first, events[0])
            self._look.noted(self._state, packet)
            self._keep(packet)
        return self._state, rest

    def _fold_in_detail(self, frame: Frame, state: State, events: list[AnyEvent]) -> State:
        for event in events:
            state = self._onto(state, event)
            evolve(state, event)
            state.findings.clear()
            packet = self._packet(frame, state.seq, event)
            self._look.touched_by(state, event, packet)
            self._keep(packet)
        return state

    def _packet(self, frame: Frame, seq: int, event: AnyEvent) -> Packet:
        lines = self.track.lines
        lines.append(self._tell(event).replace("\n", " ")[:TEXT_MAX])
        return Packet(
            seq, frame.time_ns, frame.step, _tag_of(event), getattr(event, "cause", 0),
            getattr(event, "request", 0), len(lines) - 1, {}, None, {}, {}, (),
        )  # fmt: skip

    def _keep(self, packet: Packet) -> None:
        self.track.packets.append(packet)
        self._detail_cells += packet.cells
        self._told = packet.seq

    def _summarise_last(self) -> None:
        """Tell what is behind the last frame, where that is not told yet."""
        if self._frame is not None and self._told < self._frame.seq_last:
            self._summarise_frame(self._frame)

    def _summarise_frame(self, frame: Frame) -> None:
        self._summarise(Packet(frame.seq_last, frame.time_ns, frame.step))

    def _summarise(self, packet: Packet) -> None:
        """Tell everything that changed since the last packet; where that becomes too much, halve what was told so far."""
        assert self._state is not None, "there is a state once there is something to tell"
        packet.owners, packet.nodes, packet.requests = {}, {}, {}
        self._look.noted(self._state, packet)
        self.track.packets.append(packet)
        self._told = packet.seq
        self._summary_cells += packet.cells
        while self._summary_cells > self._share.summary_cells and self._halve():
            pass

    def _halve(self) -> bool:
        """Merge each two neighbours that are summaries; whether there were any."""
        kept: list[Packet] = []
        free = False
        for packet in self.track.packets:
            if not packet.tag and free and not kept[-1].tag:
                kept[-1], free = merged(kept[-1], packet), False
            else:
                kept.append(packet)
                free = not packet.tag
        fewer = len(kept) < len(self.track.packets)
        self.track.packets = kept
        self._stretch *= 2
        self._summary_cells = sum(packet.cells for packet in kept if not packet.tag)
        return fewer

    def _text(self, rid: str) -> int:
        return self._places.setdefault(rid[:TEXT_MAX], len(self._places))


def _tag_of(event: AnyEvent) -> int:
    tag = event.__struct_config__.tag
    assert isinstance(tag, int), "an event's tag is a number"
    return tag
