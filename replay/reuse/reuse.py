"""Lost reuse of a journal: every miss with the event that destroyed what it needed, and the totals by cause (N14).

One pass, and memory that does not grow with the journal: misses are handed out one by one (`Reading`) or added up
(`Reuse`). Terms are those of SQL: causes as `evictions_by_cause` has them, stops and `lost_to_window` as
`hit_rate_by_stop` has them. Rule: what the journal does not tell is a kind of its own, and never guessed.
"""

from collections.abc import Iterator

from msgspec import Struct

from radixledger.journal.events import Gap, Opened
from radixledger.journal.reader import JournalReader
from radixledger.replay.fold import moments
from radixledger.replay.known import Known
from radixledger.replay.reuse.judge import Judge
from radixledger.replay.reuse.memory import PAGES_REMEMBERED, Memory
from radixledger.replay.reuse.misses import KINDS, Lost, Miss
from radixledger.replay.seek import Watch, beginning_of, standing_in

EVENTS_KEPT = 4096
"""Losing events that are added up one by one; when there are more, the half that cost least is forgotten."""


class ByStop(Struct):
    """Admissions whose match ended for one reason; `lost_to_window`: FULL had it, the window behind it was dead."""

    stop: str
    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    lost_to_window: int = 0


class ByCause(Struct):
    """What one cause took that somebody asked for later. losses: how often; steps: from there to the match, added up."""

    cause: str
    event: str
    what: str
    requests: int = 0
    losses: int = 0
    tokens: int = 0
    steps: int = 0


class NotKept(Struct):
    """Tokens of one kind that were not kept in the first place, by the cause of that: given back early, or vetoed."""

    cause: str
    event: str
    kind: str
    requests: int = 0
    tokens: int = 0


class Worst(Struct):
    """One event, and what it cost in all: tokens, requests, and one of these."""

    lost: Lost
    rid: str
    requests: int = 0
    tokens: int = 0


class Reuse(Struct):
    """The account of one rank. Lengths in tokens; `kinds` add up to `prompt_tokens` (see `misses`).

    begins_at: the snapshot that reading began behind, 0 for the first event: what was lost before is not known.
    forgotten: pages that were gone for so long that nothing is known of them either. unnamed: matches of nobody in
    particular; unlooked: admissions without a match. missing: events that gaps say are lost; not_known_from: the events behind
    which, for some time, nothing but hits is known.
    """

    run: str
    rank: int
    route: str
    requests: int = 0
    prompt_tokens: int = 0
    kinds: dict[str, int] = {}
    by_stop: dict[str, ByStop] = {}
    by_cause: dict[tuple[str, str, str], ByCause] = {}
    not_kept: dict[tuple[str, str, str], NotKept] = {}
    worst: dict[int, Worst] = {}
    begins_at: int = 0
    forgotten: int = 0
    unnamed: int = 0
    unlooked: int = 0
    missing: int = 0
    not_known_from: list[int] = []

    def add(self, miss: Miss) -> None:
        """Count one miss in."""
        self.requests += 1
        self.prompt_tokens += miss.prompt
        for kind in KINDS:
            self.kinds[kind] = self.kinds.get(kind, 0) + miss.kinds[kind]
        stop = self.by_stop.setdefault(miss.stop, ByStop(miss.stop))
        stop.requests += 1
        stop.prompt_tokens += miss.prompt
        stop.cached_tokens += miss.hit
        stop.lost_to_window += max(0, miss.full_hit - miss.hit)
        for cause in {(each.cause, each.event, each.what) for each in miss.lost}:
            self.by_cause.setdefault(cause, ByCause(*cause)).requests += 1
        for lost in miss.lost:
            self._add_lost(miss, lost)
        reasons = [(each.cause, each.event, each.kind) for each in miss.stretches if each.seq]
        for reason in set(reasons):
            self.not_kept.setdefault(reason, NotKept(*reason)).requests += 1
        for each in miss.stretches:
            if each.seq:
                self.not_kept[each.cause, each.event, each.kind].tokens += each.stop - each.start

    def _add_lost(self, miss: Miss, lost: Lost) -> None:
        total = self.by_cause[lost.cause, lost.event, lost.what]
        total.losses += 1
        total.tokens += lost.tokens
        total.steps += miss.step - lost.step
        worst = self.worst.setdefault(lost.seq, Worst(lost, miss.rid))
        worst.requests += 1
        worst.tokens += lost.tokens
        if len(self.worst) > EVENTS_KEPT:
            self.worst = {each.lost.seq: each for each in self.worst_events(EVENTS_KEPT // 2)}

    def worst_events(self, count: int) -> list[Worst]:
        """The events that cost most, first ones first among equals."""
        return sorted(self.worst.values(), key=lambda each: (-each.tokens, each.lost.seq))[:count]

    def causes(self) -> list[ByCause]:
        """The totals by cause, the dearest first."""
        return sorted(self.by_cause.values(), key=lambda each: (-each.tokens, each.cause, each.event))

    def reasons(self) -> list[NotKept]:
        """Why tokens were not kept in the first place, the most of them first."""
        return sorted(self.not_kept.values(), key=lambda each: (-each.tokens, each.cause, each.kind))


class Reading:
    """One pass over a journal: iterate to get the misses; what was missing or forgotten is counted meanwhile.

    pages: how many pages that are gone are remembered. Raises what reading and folding raise.
    """

    def __init__(self, reader: JournalReader, *, pages: int = PAGES_REMEMBERED, watch: Watch = iter) -> None:
        begin = beginning_of(reader)
        opened = reader.opened
        self._watch, self._reader, self._begin, self._opened = watch, reader, begin, opened
        self._known = Known(standing_in(reader))
        self.memory = Memory(begin.state, pages=pages)
        self.judge = Judge(self.memory, reader.rank)
        self.account = Reuse(opened.run, reader.rank, opened.route, begins_at=self.memory.begins_at)
        self.account.kinds = dict.fromkeys(KINDS, 0)

    def __iter__(self) -> Iterator[Miss]:
        memory, judge, account, known = self.memory, self.judge, self.account, self._known
        state, losses = self._begin.state, 0
        frames = known.frames(self._reader, self._watch(self._reader.frames(self._begin.next_seq)))
        for moment in moments(frames, state, self._opened, known.see):
            state, frame, seq, event = moment
            if losses != known.losses:
                losses = known.losses
                yield from self._counted(judge.lose(state))
                memory.lose(state, frame, seq)
            if known.found and type(event) is not Opened:
                memory.find(state)
            judge.blind = known.lost_at > 0
            memory.see(state, frame, seq, event)
            if type(event) is Gap:
                account.missing += event.lost
            yield from self._counted(judge.take(state, frame, seq, event))
        if state is not None:
            yield from self._counted(judge.finish(state))
        account.forgotten, account.unnamed, account.unlooked = (
            memory.gone.forgotten,
            judge.unnamed,
            judge.unlooked,
        )
        account.not_known_from = [each.lost_at for each in known.stretches]

    def _counted(self, judged: Iterator[Miss]) -> Iterator[Miss]:
        for miss in judged:
            self.account.add(miss)
            yield miss
