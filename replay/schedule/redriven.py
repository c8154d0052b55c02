"""Performs a schedule on a fresh rank of the installed cache, and judges what that decided: what a fixture calls.

Nothing is recorded and nothing is compared with a recording: every law is asked of every event, and of the state at the end.
Rule: the rank goes as far as it comes; what stopped it is told beside what it had decided until then.
"""

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple

from radixledger.cache.config import key_stride
from radixledger.cache.refusals import LawBroken, Refusal
from radixledger.journal.causes import label
from radixledger.journal.events import AnyEvent, Config, Opened
from radixledger.journal.frame import Frame
from radixledger.journal.redact import PLAIN
from radixledger.journal.units import Rank, Seq, TokenCount
from radixledger.replay.audit import Audit
from radixledger.replay.schedule.commands import AnyCommand
from radixledger.replay.schedule.named_event import NamedEvent
from radixledger.replay.schedule.setting import stage_for
from radixledger.replay.verdict import RankReport, Told


class Redriven(NamedTuple):
    """What a schedule came to.

    broken: law and detail of each finding, in order. failed: what stopped the rank, if no law and no refusal did. refused:
    the commands that were turned down, by their places. told: the events of each command, by names, one sentence each.
    """

    broken: list[str]
    failed: str
    refused: list[int]
    told: list[list[str]]
    events: list[list[AnyEvent]]


def redriven(
    route: str, config: Config, schedule: Sequence[AnyCommand], *, window_need: int | None = None, strict: bool = True
) -> Redriven:  # fmt: skip
    """Perform a schedule on a rank of this route and configuration. Raises Unplayable where it means nothing."""
    opened = opened_for(route, config, window_need)
    stage = stage_for(opened, schedule, strict=strict)
    events: list[list[AnyEvent]] = []
    told: list[list[str]] = []
    refused: list[int] = []
    failed = ""
    for place, command in enumerate(schedule):
        try:
            stage.perform(command)
        except LawBroken:
            pass
        except Refusal:
            refused.append(place)
        except MemoryError:
            raise  # it is this machine that fell over
        except Exception as error:  # noqa: BLE001  # a cache gone wrong falls over in any way it likes
            failed = f"{type(error).__name__}: {error}"
        events.append(list(stage.events))
        told.append([sentence(each) for each in stage.told])
        if failed or stage.rank.stopped:
            break
    broken = [f"{each.law}: {each.detail}" for each in judged(stage.opened, events)]
    return Redriven(broken, failed, refused, told, events)


def opened_for(route: str, config: Config, window_need: int | None = None) -> Opened:
    """The first event of such a rank's journal."""
    need = TokenCount(config.window_tokens if window_need is None else window_need)
    return Opened("", Rank(0), 1, 0, route, config, need, key_stride(config), PLAIN)


def judged(opened: Opened, commands: Iterable[Sequence[AnyEvent]]) -> list[Told]:
    """What is wrong in a journal of these commands, in order."""
    audit = Audit(RankReport(run="", rank=0))
    seq = 1
    for events in ([opened], *commands):
        if events:
            audit.take(Frame(Seq(seq), 0, 0, 0, list(events)))
            seq += len(events)
    audit.finish()
    return audit.report.findings


def sentence(told: NamedEvent) -> str:
    """An event by names, as one line: what is of no account is left out."""
    said = ((name, label(value) if name == "cause" else value) for name, value in told.fields)
    fields = (
        f"{name}={int(value) if isinstance(value, IntEnum) else value!r}"
        for name, value in said
        if value or name in ("node", "to")
    )
    return f"{told.kind.__name__} {' '.join(fields)}"
