"""A journal as a trace for Perfetto (ui.perfetto.dev, chrome://tracing): rows, device steps and pools on one time line.

One process per rank. A row of the cache has one request at a time, so each row is a track whose slices are requests; steps
are slices of tracks beside them, as many as overlap; pools are counters, in pages by account; what the tree lost and what
broke a law are marks. Where events are missing, requests end and pools are an account `not known`, until they are known again. Format: the Trace Event Format, JSON, times in microseconds since the run began. Rule: one pass,
and memory grows with what is live, not with the journal.
"""

from collections.abc import Iterator
from itertools import groupby

from radixledger.cache.state import State
from radixledger.journal.accounts import Kind, Pool
from radixledger.journal.causes import label
from radixledger.journal.events import (
    Aborted,
    Admitted,
    AnyEvent,
    Demoted,
    Finished,
    Healed,
    Matched,
    Phase,
    Refused,
    Removed,
    Retracted,
    Stepped,
    Stop,
    Tombstoned,
)
from radixledger.journal.moves import pages_of
from radixledger.journal.reader import JournalReader
from radixledger.replay.audit import Audit
from radixledger.replay.export.trace_pen import (
    LAWS,
    ROWS,
    SOME_ROW,
    STEPS,
    TREE,
    UNKNOWN,
    Entry,
    TracePen,
)
from radixledger.replay.seek import Watch, beginning_of, standing_in
from radixledger.replay.verdict import KEPT, RankReport

_ENDS: dict[type, str] = {Finished: "finished", Retracted: "retracted", Aborted: "aborted"}


class Trace:
    """The entries of one rank's journal; `report` is what the fold finds on the way."""

    def __init__(self, reader: JournalReader, begun_ns: int) -> None:
        self.report = RankReport(run=reader.opened.run, rank=reader.rank)
        self._begin = beginning_of(reader)
        self._reader = reader
        self._audit = Audit(self.report, self._begin.state, standing_in(reader), reader.opened)
        self.known = self._audit.known
        self._pid = int(reader.rank) + 1
        self._begun_ns = begun_ns
        self._pen = TracePen(self._pid)
        self.turned_back = 0
        """Frames that are stamped before one that they follow: somebody set the clock."""
        self._hit: Matched | None = None
        self._live: dict[int, tuple[float, int, Entry]] = {}
        """Live requests: since when, in which track, and what is told of them."""
        self._steps: dict[int, tuple[float, int, Entry]] = {}
        self._lanes: list[int] = []
        """Tracks of steps that were taken, and are free."""
        self._lanes_made = 0
        self._rows: set[int] = set()
        self._some_rows: list[int] = []
        """Tracks of rows that are not known, and are free."""
        self._losses = 0
        self._lost_since: float | None = None
        self._told = 0
        self._counted: dict[Pool, Entry] = {}

    def entries(self, watch: Watch = iter) -> Iterator[Entry]:
        """Everything, in the order of the journal; what is live at the end ends there. Raises what reading and folding raise."""
        yield self._pen.named("process_name", 0, f"rank {self.report.rank} of {self.report.run}, process")
        yield {
            "ph": "M",
            "name": "process_sort_index",
            "pid": self._pid,
            "tid": 0,
            "args": {"sort_index": self._pid},
        }
        for track, name in ((TREE, "tree"), (LAWS, "broken laws")):
            yield self._pen.named("thread_name", track, name)
        frames = self._reader.frames(self._begin.next_seq)
        for frame in self.known.frames(self._reader, watch(frames)):
            now = (frame.time_ns - self._begun_ns) / 1000
            if (
                now < self._pen.now
            ):  # slices have to nest and counters to go on: such a frame stands at the time before it
                self.turned_back += 1
                now = self._pen.now
            if now != self._pen.now:
                yield from self._counters()
            self._pen.now = now
            self._audit.take(frame)
            yield from self._not_known()
            for seq, event in enumerate(frame.events, frame.seq_first):
                yield from self._entries_of(seq, event)
            yield from self._broken()
        self._audit.finish()
        yield from self._counters()
        yield from self._broken()
        yield from self._end_all("not before the journal")
        if self._lost_since is not None:
            yield self._unknown_stretch(self._lost_since)

    def _end_all(self, why: str) -> Iterator[Entry]:
        for since, track, told in (*self._live.values(), *self._steps.values()):
            yield self._pen.slice(since, track, told | {"ended": why})

    def _not_known(self) -> Iterator[Entry]:
        """Where track was lost with the frame at hand, or found again: what was under way, and for how long nothing is known."""
        known = self.known
        if self._losses != known.losses:
            if not self._losses:
                yield self._pen.named("thread_name", UNKNOWN, "not known")
            if self._lost_since is None:
                self._lost_since = self._pen.now
            self._losses = known.losses
            yield from self._end_all("not known: events are missing")
            self._lanes += [lane for _, lane, _ in self._steps.values()]
            self._some_rows += [row for _, row, _ in self._live.values() if row >= SOME_ROW]
            self._live.clear()
            self._steps.clear()
            self._hit = None
        if self._lost_since is not None and not known.lost_at:
            yield self._unknown_stretch(self._lost_since)

    def _unknown_stretch(self, since: float) -> Entry:
        stretch, self._lost_since = self.known.stretches[-1], None
        told = {"name": f"not known behind the gap of event {stretch.lost_at}", "event": stretch.lost_at}
        return self._pen.slice(since, UNKNOWN, told | {"missing from": stretch.since})

    def _entries_of(self, seq: int, event: AnyEvent) -> Iterator[Entry]:
        match event:
            case Admitted():
                yield from self._admitted(seq, event)
            case Finished() | Retracted() | Aborted():
                yield from self._ended(seq, event)
            case Matched():
                self._hit = event
            case Stepped(phase=Phase.BEGAN):
                yield from self._step_began(seq, event)
            case Stepped():
                began = self._steps.pop(event.step, None)
                if began is not None:
                    self._lanes.append(began[1])
                    yield self._pen.slice(*began)
            case Tombstoned() | Healed() | Removed() | Demoted():
                told = {"event": seq, "node": event.node, "why": label(event.cause)}
                pages = len(event.swa if isinstance(event, Tombstoned | Healed) else event.full) >> 2
                yield self._pen.mark(TREE, type(event).__name__.lower(), told | {"pages": pages})
            case Refused():
                yield self._pen.mark(
                    TREE, f"refused: {event.reason[:64]}", {"event": seq, "detail": event.detail[:400]}
                )
            case _:
                pass

    def _admitted(self, seq: int, event: Admitted) -> Iterator[Entry]:
        track = self._row_of(event.request)
        if track not in self._rows:
            self._rows.add(track)
            name = f"row {track - ROWS}" if track < SOME_ROW else f"some row ({track - SOME_ROW + 1})"
            yield self._pen.named("thread_name", track, name)
        told: Entry = {
            "name": event.rid[:200], "event": seq, "request": event.request, "prompt tokens": event.prompt,
            "cached tokens": event.prefix,
        }  # fmt: skip
        hit = self._hit
        if hit is not None and hit.rid == event.rid and 0 <= hit.stop < len(Stop):
            told["stopped at"] = Stop(hit.stop).name.lower()
        self._live[event.request] = (self._pen.now, track, told)

    def _row_of(self, request: int) -> int:
        """The track of a request's row; where the state is not known, one of those that stand for some row."""
        if self.known.lost_at:
            made = sum(track >= SOME_ROW for track in self._rows)
            return self._some_rows.pop() if self._some_rows else SOME_ROW + made
        return ROWS + (self._state.row_of(request) if self._state is not None else 0)

    def _ended(self, seq: int, event: Finished | Retracted | Aborted) -> Iterator[Entry]:
        began = self._live.pop(event.request, None)
        if began is None:
            return
        since, track, told = began
        if track >= SOME_ROW:
            self._some_rows.append(track)
        told |= {"ended": _ENDS[type(event)], "tokens": event.tokens, "last event": seq}
        if isinstance(event, Finished):
            told["tokens in the tree"] = event.cached
        yield self._pen.slice(since, track, told)

    def _step_began(self, seq: int, event: Stepped) -> Iterator[Entry]:
        if not self._lanes:
            lane = STEPS if not self._lanes_made else LAWS + self._lanes_made
            self._lanes_made += 1
            self._lanes.append(lane)
            name = "device steps" if lane == STEPS else f"device steps ({self._lanes_made})"
            yield self._pen.named("thread_name", lane, name)
        told: Entry = {"name": f"step {event.step}", "event": seq}
        if not (len(event.starts) | len(event.stops)) & 3:
            told["requests"] = len(event.requests) >> 3
            told["tokens"] = int(pages_of(event.stops).sum() - pages_of(event.starts).sum())
        self._steps[event.step] = (self._pen.now, self._lanes.pop(), told)

    def _counters(self) -> Iterator[Entry]:
        """The pools as they are, where they are not as they were told last."""
        state = self._state
        if state is None:
            return
        for book, protected in ((state.full, state.full_protected), (state.swa, state.swa_protected)):
            if not book.capacity:
                continue
            held = book.held
            tree = held[Kind.TREE]
            pages = {
                "request": held[Kind.REQUEST], "tree, locked": protected, "tree, evictable": tree - protected,
                "pending": held[Kind.PENDING], "in flight": held[Kind.IN_FLIGHT], "free": held[Kind.FREE],
            }  # fmt: skip
            if self.known.stretches:
                lost = self.known.lost_at > 0
                pages = {name: 0 if lost else held for name, held in pages.items()} | {
                    "not known": book.capacity * lost
                }
            if self._counted.get(book.pool) != pages:
                self._counted[book.pool] = pages
                yield self._pen.counter(f"{book.pool.name} pages", pages)

    def _broken(self) -> Iterator[Entry]:
        """Marks for what was found since the last call, one for each law that an event broke; a report keeps the first `KEPT`."""
        found = self.report.findings[self._told : KEPT]
        for (seq, law), told in groupby(found, key=lambda each: (each.seq, each.law)):
            details = [each.detail for each in told]
            many = {"findings": len(details)} if len(details) > 1 else {}
            yield self._pen.mark(LAWS, law, {"event": seq, "detail": "; ".join(details)[:400]} | many)
        self._told = len(self.report.findings)

    @property
    def _state(self) -> State | None:
        return self._audit.state
