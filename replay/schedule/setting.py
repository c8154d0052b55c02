"""A stage set for a schedule: its keys made of the letters that its commands have, its rank opened plainly.

Rule: what a schedule is performed with follows from the recorded configuration and from nothing else of the run.
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from radixledger.cache.config import key_stride
from radixledger.journal.events import Opened
from radixledger.journal.redact import PLAIN
from radixledger.journal.units import Rank
from radixledger.replay.schedule.commands import AnyCommand, Command
from radixledger.replay.schedule.letters import Alphabet, respelled
from radixledger.replay.schedule.stage import Stage


def stage_for(opened: Opened, commands: Iterable[Command | None], *, strict: bool = True) -> Stage:
    """A stage for these commands, of a rank that was opened so: keys are plain and of its own making."""
    plain = replace(
        opened, run="", rank=Rank(0), ranks=1, epoch=0, redaction=PLAIN, key_id="", stride=key_stride(opened.config)
    )  # fmt: skip
    return Stage(plain, Alphabet(opened.config, keys_of(commands)), strict=strict)


def keys_of(commands: Iterable[Command | None]) -> list[str]:
    """The keys and paths that commands name."""
    texts = (getattr(command, name, None) for command in commands for name in ("key", "node"))
    return [text for text in texts if isinstance(text, str)]


class Spelling(NamedTuple):
    """Other letters for keys, and other names: what is left of a schedule begins at the first of both."""

    letters: dict[int, str]
    names: dict[str, str]

    def command(self, command: AnyCommand) -> AnyCommand:
        """A command in these."""
        told = msgspec.to_builtins(command)
        said = {name: self._said(name, value) for name, value in told.items()}
        respelled: AnyCommand = msgspec.convert(said, AnyCommand)
        return respelled

    def name(self, name: str) -> str:
        """A name, or one with a place behind it: `r12.3`."""
        holder, dot, place = name.partition(".")
        return self.names.get(holder, holder) + dot + place

    def _said(self, field: str, value: Any) -> Any:
        if field in ("key", "node") and isinstance(value, str):
            return value.translate(self.letters)
        return value if field in _TEXTS else self._renamed(value)

    def _renamed(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.name(value)
        if isinstance(value, list):
            return [self._renamed(each) for each in value]
        if isinstance(value, dict):
            return {self.name(key): self._renamed(each) for key, each in value.items()}
        return value


_TEXTS = {"type", "space", "phase"}
_NAME = re.compile(r"[alqrst][0-9]+")
"""How whatever was handed out is called: by its kind and a number."""


def spelling_of(commands: Iterable[AnyCommand]) -> Spelling:
    """The first letters there are, and the first numbers, in the order of first appearance."""
    commands = list(commands)
    letters = str.maketrans(respelled(keys_of(commands)))
    counts: dict[str, int] = {}
    names: dict[str, str] = {}
    for name in _NAME.findall(" ".join(map(_without_keys, commands))):
        if name not in names:
            counts[name[0]] = counts.get(name[0], 0) + 1
            names[name] = f"{name[0]}{counts[name[0]]}"
    return Spelling(letters, names)


def _without_keys(command: AnyCommand) -> str:
    told: dict[str, Any] = msgspec.to_builtins(command)
    return repr([value for field, value in told.items() if field not in ("key", "node", *_TEXTS)])
