"""An incident performed again by the deciders of another revision: the violation goes away, or not, or others come (N20).

Recorded commands are what a server asked; another decider may answer otherwise, and from there on a server would have
asked otherwise, too. So what comes behind the first difference is an estimate, and is told as one. Rule: events are
compared by names, and judged by the laws of this revision, whoever decided them.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from radixledger.cache.evolve import evolve
from radixledger.journal.events import Opened, Refused
from radixledger.replay.reduce.incident import Incident
from radixledger.replay.schedule.commands import AnyCommand
from radixledger.replay.schedule.elsewhere import Elsewhere
from radixledger.replay.schedule.named_event import NamedEvent
from radixledger.replay.schedule.redriven import judged, sentence
from radixledger.replay.schedule.setting import keys_of, stage_for
from radixledger.replay.schedule.stage import Stage

Decide = Callable[[Opened, Sequence[AnyCommand]], list[Elsewhere]]
"""Performs commands on a rank that was opened so."""


class Difference(NamedTuple):
    """The first command that was decided otherwise, whose first event has number `seq`: what was, what would be."""

    seq: int
    command: str
    recorded: list[str]
    instead: list[str]


class Counterfactual(NamedTuple):
    """What another revision makes of an incident.

    gone: the law of the incident holds. others: laws that are broken now, by name. refused: commands that are turned
    down and were not. performed, asked: how many of the commands the rank came to, and how many there are.
    """

    law: str
    seq: int
    gone: bool
    others: dict[str, int]
    difference: Difference | None
    refused: int
    failed: str
    performed: int
    asked: int

    @property
    def mends(self) -> bool:
        """Whether the violation goes away without a new one."""
        return self.gone and not self.others and not self.failed


def counterfactual(incident: Incident, decide: Decide) -> Counterfactual:
    """Perform an incident's commands with other deciders."""
    recorded = [each for each in incident.recorded if each.command is not None]
    commands = [each.command for each in recorded if each.command is not None]
    stage = stage_for(incident.opened, commands, strict=incident.strict)
    for key in keys_of(commands):
        stage.alphabet.key_of(key)  # from here on its pages can be spelled
    answers = decide(stage.opened, commands)
    difference: Difference | None = None
    refused, failed = 0, ""
    for asked, command, answer in zip(recorded, commands, answers, strict=False):
        told = _told(stage, command, answer)
        refused += bool(answer.refused)
        failed = answer.failed
        if difference is None and told != asked.told:
            instead = [f"refused: {answer.refused}"] if answer.refused else list(map(sentence, told))
            difference = Difference(asked.seq, repr(command), list(map(sentence, asked.told)), instead)
    broken: dict[str, int] = {}
    for finding in judged(stage.opened, [answer.events for answer in answers]):
        broken[finding.law] = broken.get(finding.law, 0) + 1
    gone = broken.pop(incident.first.law, 0) == 0
    return Counterfactual(
        incident.first.law, incident.first.seq, gone, broken, difference, refused, failed, len(answers), len(commands)
    )  # fmt: skip


def _told(stage: Stage, command: AnyCommand, answer: Elsewhere) -> list[NamedEvent]:
    """The answer by names; `stage` follows it."""
    stage.begin(command)
    for event in answer.events:
        if not isinstance(event, Refused):
            stage.append(event)
        evolve(stage.rank.state, event)
    return stage.told
