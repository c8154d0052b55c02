"""An incident performed again, whole or in part, by the installed decider: does the same law break in the same place?

A command that the recording decided as today is decided anew. One that deviates is first decided as today, which has to
come to the same as it did in the incident: so that whoever decided wrongly there meets the same situation here. Then
what was recorded is put in its place, by names. Rule: what cannot be performed, or turns out otherwise, is no proof.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from radixledger.cache.evolve import STRANGE
from radixledger.cache.refusals import LawBroken, RankPoisoned, Refusal
from radixledger.journal.events import Admitted, AnyEvent, Opened, Refused
from radixledger.replay.reading.recorded import Recorded
from radixledger.replay.reduce.incident import Deed, Incident
from radixledger.replay.reduce.participants import less, names_in
from radixledger.replay.reduce.victims import scene
from radixledger.replay.schedule import commands as c
from radixledger.replay.schedule.letters import Alphabet
from radixledger.replay.schedule.named_event import NamedEvent
from radixledger.replay.schedule.names import Unplayable
from radixledger.replay.schedule.redriven import judged
from radixledger.replay.schedule.setting import stage_for
from radixledger.replay.schedule.stage import Stage, titles_of
from radixledger.replay.verdict import Told

_FAILED = (Unplayable, RankPoisoned, *STRANGE)
"""What a command ends in that cannot be performed here: it names what there is not, or the cache gave up."""


class Enacted(NamedTuple):
    """What part of an incident came to: the events of each deed, and the first finding."""

    events: list[list[AnyEvent]]
    first: Told

    @property
    def size(self) -> int:
        """How many events there are."""
        return sum(map(len, self.events))


def decided(stage: Stage, deed_command: object) -> tuple[NamedEvent, ...] | None:
    """What the installed decider decides on a command; None where that cannot be told."""
    try:
        stage.perform(deed_command)  # type: ignore[arg-type]
    except (Refusal, LawBroken):
        pass
    except _FAILED:
        return None
    return tuple(stage.told)


def deeds_of(incident: Incident) -> list[Deed]:
    """The commands of an incident, each with what would be decided today where that is something else.

    What the writer did of its own accord is left out, and so are commands that were turned down.
    """
    named = [each for each in incident.recorded if not _is_the_writers(each)]
    if not incident.whole:
        return _taken_for_granted(incident, named)
    stage = stage_for(incident.opened, [each.command for each in named], strict=incident.strict)
    deeds: list[Deed] = []
    for each in named:
        before = stage.remembered() if _costs_little(stage, len(deeds)) else None
        told = decided(stage, each.command) if each.command is not None else ()
        if told == tuple(each.told) and not stage.rank.stopped:
            deeds.append(Deed(each.command, told))
            continue
        if told == tuple(each.told):
            deeds.append(Deed(each.command, told))
            break
        if before is None:
            stage = _up_to(incident, named, deeds)
        else:
            stage.go_back(before)
        deeds.append(Deed(each.command, tuple(each.told), told, scene(stage, [*each.told, *(told or ())])))
        try:
            stage.take(each.command, each.told)
        except Unplayable:
            break
        stage.rank.state.findings.clear()
    return deeds


def _costs_little(stage: Stage, done: int) -> bool:
    return len(stage.rank.state.nodes) + stage.rank.state.full.capacity < 2_000 and done < 2_000


def _up_to(incident: Incident, named: Sequence[Recorded], deeds: Sequence[Deed]) -> Stage:
    """A stage with these deeds done, as they were recorded."""
    stage = stage_for(incident.opened, [each.command for each in named], strict=incident.strict)
    for deed in deeds:
        if deed.decided is None and deed.command is not None:
            stage.perform(deed.command)
        else:
            stage.take(deed.command, deed.recorded)
            stage.rank.state.findings.clear()
    return stage


def _taken_for_granted(incident: Incident, named: Sequence[Recorded]) -> list[Deed]:
    """The last commands of a long incident, those that can be asked of an empty rank; only the last is taken to deviate."""
    *rest, last = named
    stage = stage_for(incident.opened, [each.command for each in named], strict=incident.strict)
    deeds: list[Deed] = []
    for each in rest:
        known = stage.names.requests.numbers
        strangers = {name for name in names_in(each.command) if name[0] == "r" and name not in known}
        command = less(each.command, strangers - set(titles_of(each.command)))
        try:
            if command is not None:
                stage.perform(command)
                deeds.append(Deed(command, tuple(stage.told)))
                missing = _prefix(each.told) - _prefix(stage.told)
                if missing > 0:  # what the tree gave it then, it computes itself
                    growth = c.Extend({titles_of(command)[0]: missing})
                    stage.perform(growth)
                    deeds.append(Deed(growth, tuple(stage.told)))
        except (Refusal, *_FAILED):
            continue
    return [*deeds, Deed(last.command, tuple(last.told), ())]


def _prefix(told: Iterable[NamedEvent]) -> int:
    """How many tokens a request was given by the tree when it was admitted."""
    return next((int(dict(each.fields)["prefix"]) for each in told if each.kind is Admitted), 0)


def _is_the_writers(each: Recorded) -> bool:
    return each.command is None and all(type(event).__name__ in _OWN for event in each.events)


_OWN = {"Refused", "Digested", "Snapshotted", "Closed", "Opened", "Gap"}


class Reenactment:
    """Performs parts of one incident."""

    def __init__(self, incident: Incident, deeds: Sequence[Deed]) -> None:
        self.opened: Opened = incident.opened
        self.strict = incident.strict
        self.law, self.is_the_first = incident.first.law, incident.is_the_first
        self.tried = 0
        self._alphabet: Alphabet = stage_for(
            incident.opened, [deed.command for deed in deeds], strict=incident.strict
        ).alphabet

    def stage(self) -> Stage:
        """A fresh one, with the letters of the whole incident."""
        stage = stage_for(self.opened, (), strict=self.strict)
        return Stage(stage.opened, self._alphabet, strict=self.strict)

    def enact(self, deeds: Sequence[Deed]) -> Enacted | None:
        """What these deeds come to; None unless the law of the incident breaks in the last of them, and not before."""
        self.tried += 1
        stage = self.stage()
        events: list[list[AnyEvent]] = []
        for deed in deeds:
            done = self._do(stage, deed)
            if done is None:
                return None
            events.append(done)
            if stage.rank.stopped:
                break
        found = judged(stage.opened, events)
        before_last = 1 + sum(map(len, events[:-1]))
        of_law = [each for each in found if each.law == self.law]
        if len(events) < len(deeds) or not of_law or of_law[0].seq <= before_last:
            return None
        return Enacted(events, of_law[0]) if of_law[0] is found[0] or not self.is_the_first else None

    def _do(self, stage: Stage, deed: Deed) -> list[AnyEvent] | None:
        try:
            if deed.decided is None:
                return self._again(stage, deed)
            before = stage.remembered()
            if deed.decided and not scene(stage, [*deed.recorded, *deed.decided]).is_like(deed.scene):
                return None
            if (
                deed.command is not None
                and decided(stage, deed.command) != deed.decided
                and deed.decided != ()
            ):
                return None
            stage.go_back(before)
            taken = stage.take(deed.command, deed.recorded)
            stage.rank.state.findings.clear()
            return list(taken)
        except _FAILED:
            return None

    def _again(self, stage: Stage, deed: Deed) -> list[AnyEvent] | None:
        assert deed.command is not None, "what nobody asked for deviates"
        try:
            stage.perform(deed.command)
        except LawBroken:
            return list(stage.events)
        except Refusal:
            return None
        return None if any(isinstance(event, Refused) for event in stage.events) else list(stage.events)
