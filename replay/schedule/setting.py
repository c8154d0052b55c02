"""A stage set for a schedule: its keys made of the letters that its commands have, its rank opened plainly.

Rule: what a schedule is performed with follows from the recorded configuration and from nothing else of the run.
"""

from collections.abc import Iterable, Sequence

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


def respelled_commands(commands: Sequence[AnyCommand]) -> list[AnyCommand]:
    """The same commands in the first letters there are."""
    letters = str.maketrans(respelled(keys_of(commands)))
    return [_respelled(command, letters) for command in commands]


def _respelled(command: AnyCommand, letters: dict[int, str]) -> AnyCommand:
    texts = {name: getattr(command, name, None) for name in ("key", "node")}
    return replace(
        command, **{name: text.translate(letters) for name, text in texts.items() if isinstance(text, str)}
    )
