"""A schedule performed by the deciders of another revision of radixledger, in a process of its own.

The process imports that revision, and of this one only what performs commands (this package); what was decided comes back
as the bytes of a journal. Rule 1: the other revision decides, and nothing else of it is believed: events are judged here.
Rule 2: what performs commands asks of the cache and the journal no more than revisions of before have; a test lists it.
"""

import base64
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import msgspec

from radixledger.cache.refusals import Refusal
from radixledger.journal.codec import Encoder, decoder_for
from radixledger.journal.events import SCHEMA_VERSION, AnyEvent, Opened
from radixledger.replay.schedule.commands import AnyCommand
from radixledger.replay.schedule.names import Unplayable
from radixledger.replay.schedule.setting import stage_for

HOUR_S = 3600
END = "end"
"""The last line of an answer that is whole: a process can leave with 0 and have said nothing."""

SCHEDULE = "radixledger.replay.schedule"
LOADER = f"""
import importlib.util, os, sys, threading, time
answers = os.fdopen(os.dup(1), "w", encoding="ascii")
os.dup2(2, 1)
asker = os.getppid()
def leave_with_the_asker():
    while os.getppid() == asker:
        time.sleep(1)
    os._exit(1)
threading.Thread(target=leave_with_the_asker, daemon=True).start()
import radixledger.replay
where, package = sys.argv[1:]
if not (os.path.isdir(package) and os.path.samefile(os.path.dirname(radixledger.__file__), package)):
    sys.exit("it has no package radixledger")
spec = importlib.util.spec_from_file_location({SCHEDULE!r}, where + "/__init__.py", submodule_search_locations=[where])
module = importlib.util.module_from_spec(spec)
sys.modules[{SCHEDULE!r}] = module
spec.loader.exec_module(module)
radixledger.replay.schedule = module
from {SCHEDULE}.elsewhere import answer
answer(answers)
"""
"""What the process does; whatever the other revision prints goes to stderr, and it ends when nobody waits for it any more."""


class Elsewhere(NamedTuple):
    """What was decided on each command: its events, and why it was turned down or failed, if it was."""

    events: list[AnyEvent]
    refused: str = ""
    failed: str = ""


class OtherRevisionFailed(Exception):
    """The process of the other revision ended without an answer."""


def performed_elsewhere(
    path: Path, opened: Opened, commands: Sequence[AnyCommand], *, strict: bool = True
) -> list[Elsewhere]:
    """What the revision under `path` (a folder that holds the package `radixledger`) decides; raises OtherRevisionFailed."""
    asked = {
        "opened": base64.b64encode(Encoder().encode([opened])).decode(),
        "commands": [msgspec.to_builtins(each) for each in commands],
        "strict": strict,
    }
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", LOADER, str(Path(__file__).parent), str(path / "radixledger")],
            input=json.dumps(asked),
            env={**os.environ, "PYTHONPATH": str(path), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=HOUR_S,
        )
    except subprocess.TimeoutExpired:
        raise OtherRevisionFailed(f"{path}: it gave no answer within {HOUR_S:,} s") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"it said nothing and left with {done.returncode}"])[-1]
        raise OtherRevisionFailed(f"{path}: {last}")
    try:
        *answers, end = done.stdout.splitlines() or [""]
        decided = list(map(_read, answers))
    except (ValueError, KeyError, TypeError, msgspec.ValidationError) as error:
        raise OtherRevisionFailed(f"{path}: its answer cannot be read: {error}") from None
    if end != END or not (len(decided) == len(commands) or (decided and decided[-1].failed)):
        raise OtherRevisionFailed(f"{path}: it left behind {len(decided)} of {len(commands)} commands")
    return decided


def _read(line: str) -> Elsewhere:
    told: dict[str, Any] = json.loads(line)
    body = base64.b64decode(told["events"])
    return Elsewhere(decoder_for(SCHEMA_VERSION).decode(body, told["count"]), told["refused"], told["failed"])


def answer(to: TextIO) -> None:
    """Perform what stdin asks for, a line for each command and `END`: called in the process of the other revision."""
    from_stdin: dict[str, Any] = json.loads(sys.stdin.read())
    (opened,) = decoder_for(SCHEMA_VERSION).decode(base64.b64decode(from_stdin["opened"]), 1)
    assert isinstance(opened, Opened), "this is how it is asked"
    commands = msgspec.convert(from_stdin["commands"], list[AnyCommand])
    encode = Encoder().encode
    for each in decided_here(opened, commands, strict=from_stdin["strict"]):
        told = {
            "events": base64.b64encode(encode(each.events)).decode(),
            "count": len(each.events),
            "refused": each.refused,
            "failed": each.failed,
        }
        to.write(json.dumps(told) + "\n")
    to.write(END + "\n")
    to.close()


def decided_here(opened: Opened, commands: Sequence[AnyCommand], *, strict: bool = True) -> list[Elsewhere]:
    """What the cache of this process decides on each command, as far as it comes."""
    stage = stage_for(opened, commands, strict=strict)
    out: list[Elsewhere] = []
    for command in commands:
        refused = failed = ""
        try:
            stage.perform(command)
        except (Refusal, Unplayable) as error:
            refused = str(error)
        except MemoryError:
            raise  # it is this machine that fell over
        except Exception as error:  # noqa: BLE001  # a cache gone wrong falls over in any way it likes
            failed = f"{type(error).__name__}: {error}"
        if stage.rank.stopped and not failed:
            failed = f"the rank stopped: {refused}"
        out.append(Elsewhere(list(stage.events), refused, failed))
        if failed:
            break
    return out
