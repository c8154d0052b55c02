"""Laws asked of a journal while it is written: each breach becomes an alarm that says what a person needs first (J29).

An alarm names the event, the page and its slots, who has it and who should, the request, and the call site. What an event
breaks is told with the frame that holds it; what only the whole state shows, by `audit`'s rule, no later than the first
recorded digest behind `audit.EVENTS_PER_NODE` events for each node. Rule: it is `verify`'s own audit, one frame at a time.
"""

from collections.abc import Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from radixledger.cache.state import Finding
from radixledger.journal.accounts import Kind, describe, holder_of
from radixledger.journal.causes import label
from radixledger.journal.events import Aborted, Admitted, AnyEvent, Finished, Opened, Retracted
from radixledger.journal.frame import Frame
from radixledger.journal.reader import JournalReader
from radixledger.replay.audit import Audit
from radixledger.replay.known import Known, SnapshotAt
from radixledger.replay.seek import Beginning, standing_in
from radixledger.replay.verdict import RankReport, Told, in_order, told


class Alarm(Struct, frozen=True):
    """A law that was broken by event `seq`, or seen to be broken there after it held at `lawful_at` (else None).

    call_site: operation and place, as the event has them; request, rid: whose event it is, 0 and empty for nobody's.
    pool, pages, slots: the first page's slots, first and last; empty where no page is concerned. owner, found: who should
    have the page and who has it, with the request id where that is a live request.
    """

    seq: int
    time_ns: int
    step: int
    law: str
    detail: str
    event: str
    call_site: str
    request: int
    rid: str
    pool: str
    pages: list[int]
    slots: list[int]
    owner: str
    found: str
    lawful_at: int | None


class Heard(RankReport):
    """A report that keeps everything it is told until it is asked."""

    fresh: list[Told] = field(default_factory=list)

    def tell(
        self, finding: Finding, frame: Frame, lawful_at: int | None = None, *, by_pages: bool = False
    ) -> None:
        """Add a finding, also where the report has enough."""
        super().tell(finding, frame, lawful_at, by_pages=by_pages)
        self.fresh.append(replace(told(finding, frame, lawful_at), by_pages=by_pages))


class Alarms:
    """The laws of one rank's journal, asked frame by frame from `begin` on."""

    def __init__(
        self,
        reader: JournalReader,
        begin: Beginning,
        snapshot_at: SnapshotAt | None = None,
    ) -> None:
        opened = reader.opened
        self.next_seq = begin.next_seq
        """The first event to give to `take`."""
        self.report = Heard(run=opened.run, rank=reader.rank)
        self._page_size = opened.config.page_size
        self._audit = Audit(self.report, begin.state, snapshot_at or standing_in(reader), opened)
        self._reader = reader
        self.known.start(reader)
        state = begin.state
        self._rids: dict[int, str] = (
            {number: request.rid for number, request in state.requests.items()} if state is not None else {}
        )

    @property
    def known(self) -> Known:
        """Where the state is known, so that laws are asked."""
        return self._audit.known

    @property
    def count(self) -> int:
        """How many breaches there were."""
        return sum(self.report.broken.values())

    def take(self, frame: Frame) -> list[Alarm]:
        """Fold one frame and ask its laws; what they said, in the order of events. Raises Unfoldable."""
        ended = self._names(frame.events)
        self.known.meet(self._reader, frame)
        self._audit.take(frame)
        alarms = self._alarms(frame)
        for request in ended:
            self._rids.pop(request, None)
        return alarms

    def finish(self) -> list[Alarm]:
        """Ask every law of the whole state once more, at the end."""
        self._audit.finish()
        return self._alarms(None)

    def _names(self, events: Sequence[AnyEvent]) -> list[int]:
        """Learn who the requests are; those that end in these events are known for as long as these are judged."""
        ended: list[int] = []
        for event in events:
            if type(event) is Admitted:
                self._rids[event.request] = event.rid
            elif isinstance(event, Finished | Retracted | Aborted):
                ended.append(event.request)
            elif type(event) is Opened:
                self._rids.clear()
        return ended

    def _alarms(self, frame: Frame | None) -> list[Alarm]:
        fresh = self.report.fresh
        alarms = [self._alarm(each, frame) for each in in_order(fresh)]
        fresh.clear()
        return alarms

    def _alarm(self, told: Told, frame: Frame | None) -> Alarm:
        place = told.seq - frame.seq_first if frame is not None else -1
        event = frame.events[place] if frame is not None and 0 <= place < len(frame.events) else None
        request = _request_of(event)
        first = told.pages[0] * self._page_size if told.pages else 0
        return Alarm(
            seq=told.seq, time_ns=told.time_ns, step=told.step, law=told.law, detail=told.detail,
            event=type(event).__name__ if event is not None else "",
            call_site=label(getattr(event, "cause", 0)) if getattr(event, "cause", 0) else "",
            request=request, rid=self._rids.get(request, ""), pool=told.pool, pages=told.pages,
            slots=[first, first + self._page_size - 1] if told.pages else [],
            owner=self._owner(told.expected) if told.pages else "",
            found=self._owner(told.found) if told.pages else "", lawful_at=told.lawful_at,
        )  # fmt: skip

    def _owner(self, account: int) -> str:
        rid = self._rids.get(holder_of(account), "") if account & 7 == Kind.REQUEST else ""
        return f"{describe(account)} {rid}".strip()


def _request_of(event: AnyEvent | None) -> int:
    """The request that an event is of; where it names none, the one that gives pages up."""
    request: int = getattr(event, "request", 0)
    giver: int = getattr(event, "giver", 0)
    return request or (holder_of(giver) if giver & 7 == Kind.REQUEST else 0)
