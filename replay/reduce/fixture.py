"""A reduced incident as a pytest file: the schedule as data, what happened in its first paragraph, one test.

The file stands alone: it needs pytest and an installed radixledger. It performs the schedule on a fresh rank and holds
every law; on a cache with the fault it fails as the incident did. Rule: nobody's tokens, request ids or paths are in it.
"""

import re
import textwrap
from collections.abc import Sequence

from msgspec.structs import fields

from radixledger.journal.events import Config
from radixledger.replay.reduce.reduce import Reduced
from radixledger.replay.schedule.commands import AnyCommand
from radixledger.replay.schedule.redriven import redriven, sentence
from radixledger.replay.schedule.setting import Spelling, spelling_of

WIDTH = 110


class NoSchedule(Exception):
    """Something of an incident cannot be asked for again, so it makes no fixture."""


def schedule_of(reduced: Reduced) -> list[AnyCommand]:
    """The commands that are left, in the first letters and names there are; raises NoSchedule."""
    return [_spelling(reduced).command(each) for each in _commands(reduced)]


def _commands(reduced: Reduced) -> list[AnyCommand]:
    commands = [deed.command for deed in reduced.deeds if deed.command is not None]
    if len(commands) < len(reduced.deeds):
        raise NoSchedule("nobody can tell who asked for one of the events that are left")
    return commands


def _spelling(reduced: Reduced) -> Spelling:
    return spelling_of(_commands(reduced))


def fixture(reduced: Reduced) -> str:
    """The text of a test file."""
    schedule = schedule_of(reduced)
    incident, config = reduced.incident, reduced.incident.opened.config
    kinds = sorted(
        {type(each).__name__ for each in schedule} | ({"Written"} if "Written(" in repr(schedule) else set())
    )
    wrong = wrong_events(reduced, schedule)
    more = (
        ""
        if incident.opened.window_need == config.window_tokens
        else f", window_need={incident.opened.window_need}"
    )
    more += "" if incident.strict else ", strict=False"
    lines = [
        f'"""{_paragraph(reduced)}"""',
        "",
        "from radixledger.journal.events import Config",
        *_import("radixledger.replay.schedule.commands", kinds),
        "from radixledger.replay.schedule.redriven import redriven",
        "",
        f'ROUTE = "{incident.opened.route}"',
        f"CONFIG = {_config(config)}",
        "SCHEDULE = [",
        *(f"    {each!r}," for each in schedule),
        "]",
        *_wrong(wrong),
        "",
        "",
        f"def test_{_name(incident.first.law)}() -> None:",
        f"    told = redriven(ROUTE, CONFIG, SCHEDULE{more})",
        "    assert told.broken == []",
        '    assert told.failed == ""',
        *(["    assert not set(WRONG) & set(told.told[-1])"] if wrong else []),
    ]
    return "\n".join(lines) + "\n"


def wrong_events(reduced: Reduced, schedule: Sequence[AnyCommand]) -> list[str]:
    """What the wrong command decided, by names, but for what it decides on the installed cache."""
    incident, last = reduced.incident, reduced.deeds[-1]
    if last.decided is None:
        return []
    config, need = incident.opened.config, incident.opened.window_need
    today = redriven(incident.opened.route, config, schedule, window_need=need, strict=incident.strict)
    spelling, lawful = _spelling(reduced), set(today.told[-1])
    return [text for each in last.recorded if (text := sentence(each.respelled(spelling))) not in lawful]


def _paragraph(reduced: Reduced) -> str:
    first, incident = reduced.incident.first, reduced.incident
    detail = re.sub(r"\s+", " ", first.detail).replace('"', "'").replace("\\", "/")
    text = (
        f"{first.law.replace('_', ' ').capitalize()}: broken by event {first.seq:,} of rank {incident.opened.rank} in "
        f"step {first.step}. {detail[:300].rstrip('.')}. Reduced from {incident.events:,} events to "
        f"{reduced.enacted.size}; {_which(reduced)}."
    )
    head, _, rest = text.partition(": ")
    body = textwrap.fill(rest[:1].upper() + rest[1:], WIDTH, break_long_words=False, break_on_hyphens=False)
    return f"{head}.\n\n{body}\n"


def _which(reduced: Reduced) -> str:
    """Which command was decided wrongly: an asked for law may break by the consequences of an earlier one."""
    last = len(reduced.deeds) - 1
    if reduced.wrong is None or reduced.deeds[last].decided is not None:
        return "the last command is the one that was decided wrongly"
    return (
        f"command {reduced.wrong + 1} of {last + 1} was decided wrongly, and the last one met what came of it"
    )


def _config(config: Config) -> str:
    told = [
        f"{field.name}={getattr(config, field.name)!r}"
        for field in fields(config)
        if field.required or getattr(config, field.name) != field.default
    ]
    return f"Config({', '.join(told)})"


def _import(module: str, names: Sequence[str]) -> list[str]:
    line = f"from {module} import {', '.join(names)}"
    return (
        [line]
        if len(line) <= WIDTH
        else [f"from {module} import (", *(f"    {name}," for name in names), ")"]
    )


def _wrong(wrong: Sequence[str]) -> list[str]:
    if not wrong:
        return []
    return ["WRONG = [", *(f"    {each!r}," for each in wrong), "]", '"""What was recorded in its place."""']


def _name(law: str) -> str:
    return re.sub(r"\W", "_", law)
