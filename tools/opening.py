"""Open a rank's cache with its journal: the one way in which servers, drivers and benchmarks begin a run.

Rule: what a run was made with (configuration, code revision, commit policy, redaction) is decided here and written
in `Opened`; nothing is created before the configuration has been checked.
"""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from radixledger import __version__
from radixledger.cache.config import checked, key_stride
from radixledger.cache.faces.routing import RouteName
from radixledger.cache.opening import open_journal
from radixledger.cache.rank import RankCache
from radixledger.cache.watch import Watched
from radixledger.journal.events import Config, Opened
from radixledger.journal.redact import load_key, spelled_out
from radixledger.journal.retention import Retention
from radixledger.journal.sizes import BadConfig, check_memory
from radixledger.journal.units import Rank, TokenCount
from radixledger.journal.writer import JournalWriter, Policy

C = TypeVar("C", bound=RankCache)

MOST_RANKS = 1024
"""Ranks that one program opens: each is a folder, a writer and a state."""


class Recording(NamedTuple):
    """How a run is journaled. `run` None, or policy `off`: not at all.

    snapshot_every: events between snapshots, None for none; without them retention drops nothing. watched: how much of
    the law is asked before an event is recorded.
    """

    run: Path | None
    policy: Policy = Policy.OPERATION
    tokens: str = "hashed"
    key_file: Path | None = None
    resume: bool = False
    snapshot_every: int | None = None
    retention: Retention = Retention()
    watched: Watched = Watched.BOOKS


class Revision(NamedTuple):
    """The code that runs: a commit, or the package's version where there is no repository; dirty if changed since."""

    code: str
    dirty: bool


def revision() -> Revision:
    """The revision of this very package's files."""
    folder = Path(__file__).resolve().parent
    try:
        commit = _git(folder, "rev-parse", "HEAD")
        return Revision(commit, bool(_git(folder, "status", "--porcelain", "--untracked-files=no")))
    except (OSError, subprocess.SubprocessError):
        return Revision(f"radixledger {__version__}", dirty=False)


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *words]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=10, env=_quiet_environment()
    )
    return done.stdout.strip()


def _quiet_environment() -> dict[str, str]:
    """A `git` that takes no lock and asks nobody."""
    return {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}


def open_rank(
    kind: type[C],
    config: Config,
    recording: Recording,
    *,
    route: RouteName = "unified",
    rank: int = 0,
    ranks: int = 1,
    clock: Callable[[], int] = time.time_ns,
    labels: dict[str, str] | None = None,
) -> C:
    """The cache of one rank, with its journal if there is to be one.

    Raises BadConfig, for a folder without a name too, and what `JournalWriter.open` raises: RunExists, WriterBusy, KeyFileRefused.
    """
    code = revision()
    name = spelled_out(recording.run).name if recording.run is not None else ""
    if recording.run is not None and not name:
        raise BadConfig(
            "journal", f"{recording.run} has no name that a run could have; choose a folder in it"
        )
    opened = checked(
        Opened(
            run=name,
            rank=Rank(rank),
            ranks=ranks,
            epoch=0,
            route=route,
            config=config,
            window_need=TokenCount(config.window_tokens),
            stride=key_stride(config),
            redaction=recording.tokens,
            code=code.code,
            dirty=code.dirty,
            labels=labels or {},
        )
    )
    check_memory(opened)
    if recording.run is None or recording.policy is Policy.OFF:
        return kind(opened, watched=recording.watched)
    writer = _writer(recording.run, opened, recording, clock)
    seq, snapshot_every = writer.last_seq, recording.snapshot_every
    return kind(writer.opened, writer, seq=seq, snapshot_every=snapshot_every, watched=recording.watched)


def _writer(run: Path, opened: Opened, recording: Recording, clock: Callable[[], int]) -> JournalWriter:
    file = recording.key_file
    key = load_key(file) if file is not None and file.exists() else file
    return open_journal(
        run,
        opened,
        policy=recording.policy,
        key=key,
        clock=clock,
        resume=recording.resume,
        retention=recording.retention,
    )
