"""The fold that compares: every event on its own account, every recorded digest and ledger, the whole state now and then.

What an event broke is told by its laws, before it is folded, and by `evolve`, which folds it. What a writer recorded of its own state (`Digested`, `LedgerTaken`,
`Snapshotted`, `Closed`) is compared with the state as it is here just before that event. There, between two commands, the
laws of the whole state are asked too, as often as a share of the folding's cost allows, and at the end.
"""

from collections.abc import Callable, Sequence
from typing import Any

from radixledger.cache.digest import digest
from radixledger.cache.evolve import STRANGE, evolve
from radixledger.cache.laws.invariants import broken_laws
from radixledger.cache.laws.of_events import EventLaws
from radixledger.cache.state import Finding, State, in_words
from radixledger.journal.events import (
    AnyEvent,
    Closed,
    Digested,
    Gap,
    LedgerTaken,
    Opened,
    Refused,
    Snapshotted,
    Violated,
)
from radixledger.journal.frame import Frame
from radixledger.journal.units import Seq
from radixledger.replay.counted import counted
from radixledger.replay.fold import begun, check_opened, enter
from radixledger.replay.known import Known, SnapshotAt
from radixledger.replay.page_watch import PageWatch
from radixledger.replay.verdict import MISSING, RankReport

EVENTS_PER_NODE = 64
"""The whole state is looked at after so many events for each node it has, or 64 pages: a twentieth of the folding."""


class Audit:
    """Folds frames onto `state` (None: a journal from its first event on) and reports.

    Where the state is not known (`known`) it is not judged: nothing is told but the gap, and what events say of one page against each
    other. A caller that reads around damage passes the frames through `known.frames`.

    snapshot_at: the state that a snapshot of this journal holds after an event, None where there is none. opened: what
    the journal was opened with, for one whose first events are lost.
    """

    def __init__(
        self,
        report: RankReport,
        state: State | None = None,
        snapshot_at: SnapshotAt = lambda _: None,
        opened: Opened | None = None,
    ) -> None:
        self.report = report
        self.state = state
        self.lawful_at = state.seq if state is not None else Seq(0)
        """The last event after which the whole state was lawful."""
        self._agreed_at = self.lawful_at
        self._broken: set[str] = set()
        self._checked_at = self.lawful_at
        self.known = Known(snapshot_at)
        self._losses = 0
        self._snapshot_at = snapshot_at
        self._opened_with = opened
        self._laws = EventLaws()
        self._pages = PageWatch()
        self._frame: Frame
        self._look: dict[type, Callable[[State, Any], None]] = {
            Digested: self._digested,
            Closed: self._digested,
            Snapshotted: self._snapshotted,
            LedgerTaken: self._ledger_taken,
            Violated: self._violated,
            Gap: self._gap,
            Refused: self._refused,
            Opened: self._opened,
        }
        """What is looked at before an event changes the state."""

    def take(self, frame: Frame) -> None:
        """Fold one frame; raises Unfoldable."""
        self._frame, events, state = frame, frame.events, self.state
        self._forget_pages()
        if state is None:
            state, events = begun(frame, self._opened_with)
            self.state = state
            self.report.epochs += len(events) < len(frame.events)
        else:
            enter(state, frame)
        if self.known.lost_at or not self._look.keys().isdisjoint(map(type, events)):
            state = self._take_each(state, events)
        else:
            self._laws.follow(state, events)
        if not self.known.lost_at:
            owed = self._laws.at_the_end(state, events)
            if owed:
                state.findings += owed
        if state.findings:
            self._tell_all(state.findings)
            state.findings.clear()
        self._count(frame)

    def _take_each(self, state: State, events: Sequence[AnyEvent]) -> State:
        """Fold events of which some are looked at first, or behind a gap; the state, which may be another one by then."""
        for at, event in enumerate(events):
            look = self._look.get(type(event))
            if look is not None:
                state = self.state = self._looked_at(state, event, look)
            if self.known.lost_at:
                self._look_at_pages(state, event)
            else:
                state.findings += self._laws.broken_by(state, events, at)
            evolve(state, event)
        return state

    def _forget_pages(self) -> None:
        """Where track was lost, once more, what events said of pages before it holds no more."""
        if self._losses != self.known.losses:
            self._losses = self.known.losses
            self._pages.forget()

    def _look_at_pages(self, state: State, event: AnyEvent) -> None:
        for finding in self._pages.look(Seq(state.seq + 1), event):
            self.report.tell(finding, self._frame, by_pages=True)

    def _count(self, frame: Frame) -> None:
        report, (seq_first, time_ns, _, _, events) = self.report, frame
        count = len(events)
        if not report.frames:
            report.seq_first, report.time_first_ns = seq_first, time_ns
        report.events += count
        report.frames += 1
        if self.known.lost_at and type(events[0]) is not Gap:
            report.unjudged += count
        report.seq_last, report.time_last_ns = frame.seq_last, time_ns

    def finish(self) -> None:
        """Look at the state as a whole once more, at the end."""
        if self.state is not None and self.report.frames:
            if not self.known.lost_at:
                self._ask_all_laws(self.state)
            self.report.closed = self.state.closed

    def _tell_all(self, findings: list[Finding]) -> None:
        for finding in findings if not self.known.lost_at else ():
            self.report.tell(finding, self._frame)

    def _looked_at(self, state: State, event: AnyEvent, look: Callable[[State, Any], None]) -> State:
        """Look at an event before it is folded; what it is to be folded onto, which is another state where a snapshot stands in."""
        if type(event) is Opened:
            check_opened(event, state.seq + 1)
        onto = self.known.see(state, event)
        self._forget_pages()
        if onto is not state:
            return onto
        try:
            if self.known.found:
                self._judge_again(state, event)
            look(state, event)
        except STRANGE as error:
            # The state, folded from a lawless journal, names what does not exist.
            text = f"{type(event).__name__}: {in_words(error)}"
            self._judge("what_was_recorded_can_be_compared", text)
        return state

    def _judge_again(self, state: State, event: AnyEvent) -> None:
        """What the frame at hand broke so far follows from what was lost."""
        state.findings.clear()
        if (
            type(event) is not Opened
        ):  # what a digest does not cover, rows of nobody for one, still lacks what was lost: told by no law from here on
            self._broken |= {finding.law for finding in broken_laws(state)}

    def _judge(self, law: str, detail: str, lawful_at: int | None = None, **concerned: Any) -> None:
        """A finding of the event that comes next, unless nothing can be judged."""
        if not self.known.lost_at:
            self._tell(law, detail, lawful_at, **concerned)

    def _tell(self, law: str, detail: str, lawful_at: int | None = None, **concerned: Any) -> None:
        assert self.state is not None, "there is a state once there was an event"
        finding = Finding(Seq(self.state.seq + 1), law, detail, **concerned)
        self.report.tell(finding, self._frame, lawful_at)

    def _ask_all_laws(self, state: State) -> None:
        self.report.whole_checks += 1
        self._checked_at = state.seq
        broken = list(broken_laws(state))
        for finding in broken:
            if finding.law not in self._broken:
                self.report.tell(finding, self._frame, self.lawful_at)
        self._broken |= {finding.law for finding in broken}
        if not broken:
            self.lawful_at = state.seq

    def _between_commands(self, state: State) -> None:
        size = len(state.nodes) + (state.full.capacity + state.swa.capacity) // 64
        if not self.known.lost_at and state.seq - self._checked_at >= EVENTS_PER_NODE * size:
            self._ask_all_laws(state)

    def _compare_digest(self, state: State, recorded: bytes) -> None:
        if digest(state) == recorded:
            self._agreed_at = state.seq
        else:
            text = f"recorded {recorded.hex()[:32]}, folded {digest(state).hex()}"
            self._judge("a_recorded_digest_is_the_states", text, self._agreed_at)
        self.report.digests += not self.known.lost_at

    def _digested(self, state: State, event: Digested | Closed) -> None:
        if event.digest:  # a recorder has no state, and closes without one
            self._compare_digest(state, event.digest)
        self._between_commands(state)

    def _snapshotted(self, state: State, event: Snapshotted) -> None:
        self._compare_digest(state, event.digest)
        kept = self._snapshot_at(state.seq)
        if kept is not None and not self.known.lost_at:
            self.report.snapshots += 1
            if digest(kept) != digest(state):
                text = f"its digest is {digest(kept).hex()}, folded {digest(state).hex()}"
                self._judge("a_snapshot_holds_the_state", text, self._agreed_at)
        self._between_commands(state)

    def _ledger_taken(self, state: State, event: LedgerTaken) -> None:
        if event.digest:
            self._compare_digest(state, event.digest)
        if self.known.lost_at:
            return
        self.report.ledgers += 1
        self._between_commands(state)

    def _violated(self, state: State, event: Violated) -> None:
        self._tell("the_writer_saw_no_law_broken", f"{event.law}: {event.detail}", pool=event.pool, pages=event.pages,
                   expected=event.expected, found=event.found)  # fmt: skip

    def _gap(self, state: State, event: Gap) -> None:
        if not self.report.gaps:
            self.report.whole_until = state.seq + 1 - event.lost
        self.report.gaps += 1
        self.report.lost += event.lost
        self.report.lost_at_least |= event.at_least
        self._tell(MISSING, f"{counted(event.lost, 'event')} lost: {event.reason}")

    def _refused(self, state: State, event: Refused) -> None:
        refusals = self.report.refusals
        reason = event.reason if event.reason in refusals or len(refusals) < 64 else "other"
        refusals[reason[:64]] = refusals.get(reason[:64], 0) + 1

    def _opened(self, state: State, event: Opened) -> None:
        self.report.epochs += 1
        before = state.opened
        if (event.run, event.rank) != (before.run, before.rank) or event.epoch <= before.epoch:
            text = f"epoch {event.epoch} of run {event.run}, rank {event.rank}, follows epoch {before.epoch} of run "
            self._tell("an_epoch_follows_the_one_before", f"{text}{before.run}, rank {before.rank}")
