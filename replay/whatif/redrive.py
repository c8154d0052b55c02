"""A recorded schedule sent through a cache of another configuration.

A request follows its recorded steps as long as the pools allow: each step takes it to the position that it had reached
in the record, with less to compute where more was found, and in several steps where less was. Whoever cannot follow any more
goes on without the schedule, as `crowd` says. Rule: in the recorded configuration nobody has to, so the same commands are
given in the same order, and the cache ends in the same state.
"""

from array import array
from collections.abc import Callable, Sequence

from radixledger.cache.digest import digest
from radixledger.cache.laws.invariants import broken_laws
from radixledger.cache.refusals import LawBroken, RankPoisoned, Refusal
from radixledger.journal.events import Opened
from radixledger.journal.units import FIRST, Seq
from radixledger.replay.whatif.content import Content
from radixledger.replay.whatif.crowd import Crowd
from radixledger.replay.whatif.meter import Figures, Meter
from radixledger.replay.whatif.schedule import (
    Admit,
    Empty,
    End,
    Grow,
    Keep,
    Leave,
    Restart,
    Schedule,
    numbers_in,
)
from radixledger.replay.whatif.seats import Seated
from radixledger.replay.whatif.strayed import Strayed

Tick = Callable[[int], None]
"""Told how many steps were done since it was told last; may raise to stop."""


class Redrive:
    """One rank being sent again; `run` it once.

    opened: the configuration, its stride that of `content`. as_recorded: it is the recorded one, so every
    admission and retraction is as it was.
    """

    def __init__(
        self, schedule: Schedule, opened: Opened, content: Content, *, as_recorded: bool, tick: Tick
    ) -> None:
        self.strayed, self.figures = Strayed(), Figures()
        self.broken: list[str] = []
        """Laws that did not hold; the first one that a command broke ended the redrive."""
        self._schedule, self._opened, self._content = schedule, opened, content
        self._as_recorded, self._tick = as_recorded, tick
        self._meter = Meter(self.figures)
        self._crowd = self._emptied()
        self.asks = array("q")
        """Once it was run: the admissions and ends of all crowds, as `Seats.asks` has them."""
        self._begun = 0
        """Jobs below this number have been admitted, or turned away."""
        self._acts: dict[type, Callable[..., None]] = {
            Admit: self._admit, Grow: self._grow, Keep: self._keep, Leave: self._leave, Empty: self._empty,
            Restart: self._restart,
        }  # fmt: skip

    def _emptied(self, seq: Seq = FIRST) -> Crowd:
        return Crowd(self._schedule, self._opened, self._content, self._meter, self.strayed, seq)

    def run(self) -> bytes:
        """Send all of it; the digest of the state at the end."""
        try:
            for act in self._schedule.acts():
                try:
                    self._acts[type(act)](act)
                except Refusal:
                    self.strayed.turned_down += 1
                self._tick(act.times if isinstance(act, Grow) else 1)
            while self._crowd.late or self._crowd.live:
                self._crowd.let_in()
                if not self._crowd.decode((), ()):
                    break
                self._tick(0)
        except (LawBroken, RankPoisoned) as error:
            self.broken.append(str(error))
        state = self._crowd.cache.state
        self.broken += [f"{finding.law}: {finding.detail}" for finding in broken_laws(state)]
        self._dismissed()
        self._meter.finish(state)
        self.figures.violations += len(self.broken)
        return digest(state)

    def _admit(self, act: Admit) -> None:
        crowd = self._crowd
        crowd.let_in()
        if act.job < self._begun and act.job not in crowd.retracted:
            due = crowd.due.get(act.job)
            if due is None or (not self._as_recorded and crowd.has_a_page()):
                return  # it left the schedule, or it never came in, or it is going to be spared
            crowd.give_back(due)
        crowd.retracted.discard(act.job)
        self._begun = max(self._begun, act.job + 1)
        if not self._as_recorded and crowd.can_never_fit(act.job):
            self.strayed.refused += 1
            return
        may = self._as_recorded or (not crowd.late and (act.crowded or crowd.has_room_for(act.prompt)))
        live = crowd.seat(act.job, act.prompt, force_miss=act.force_miss) if may else None
        if live is None:
            crowd.late.append((act.job, act.prompt))
            self.strayed.waited += 1
        else:
            self.strayed.hit_otherwise += crowd.length(live) != act.hit

    def _grow(self, act: Grow) -> None:
        crowd = self._crowd
        jobs, to = numbers_in(act.jobs).tolist(), numbers_in(act.to).tolist()
        if act.decode:
            if behind := self._behind(jobs, [reached - 1 for reached in to]):
                crowd.compute_prompts(behind)
            for further in range(act.times):
                if crowd.late:
                    crowd.let_in()
                crowd.decode(jobs, to, further)
                if crowd.due:
                    crowd.settle_due(as_recorded=self._as_recorded)
            return
        crowd.let_in()
        crowd.compute_prompts(self._behind(jobs, to))
        crowd.settle_due(as_recorded=self._as_recorded)

    def _behind(self, jobs: Sequence[int], to: Sequence[int]) -> list[tuple[Seated, int]]:
        """Who of `jobs` has not reached his token of `to`."""
        crowd = self._crowd
        return [
            (live, reached)
            for number, reached in zip(jobs, to, strict=True)
            if (live := crowd.on_schedule(number)) is not None and crowd.length(live) < reached
        ]

    def _keep(self, act: Keep) -> None:
        live = self._crowd.on_schedule(act.job)
        if live is not None:
            self._crowd.keep(live, min(act.tokens, self._crowd.length(live)))

    def _leave(self, act: Leave) -> None:
        live = self._crowd.on_schedule(act.job)
        if act.how == End.ABORTED:
            self._crowd.abort(act.job)
        elif live is None:
            return
        elif act.how == End.RETRACTED:
            live.in_vain = act.in_vain
            self._crowd.due[live.number] = live
        else:
            self._crowd.compute_prompts(self._behind((act.job,), (live.job.tokens,)))
            if self._crowd.on_schedule(act.job) is live:
                self._crowd.finish(live)

    def _empty(self, _: Empty) -> None:
        try:
            self._crowd.cache.flush()
        except Refusal:
            return  # here somebody is live still

    def _restart(self, act: Restart) -> None:
        self._dismissed()
        self._crowd = self._emptied(Seq(act.seq))

    def _dismissed(self) -> None:
        self.strayed.unended += len(self._crowd.late)
        self.asks += self._crowd.asks
