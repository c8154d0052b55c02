"""Writes our events for another server, from its own allocator and tree calls: one method per verb, and no cache.

The server goes on deciding by its own rules and tells what it did, in the order in which it did it; nodes and requests
are named as it names them. What comes out is a journal that every tool of the house reads. Rule 1: the recorder judges nothing: a
free of a free page and a lock on a node that is gone are written down as told, because these are what a triage
looks for. Rule 2: what was told is written, also when the block that told it fails.
"""

import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from radixledger.journal.event import Config
from radixledger.journal.events import (
    Closed,
    Opened,
)
from radixledger.journal.recordable import recordable
from radixledger.journal.tell_of_pages import PageVerbs, pages_of_slots
from radixledger.journal.tell_of_requests import RequestVerbs
from radixledger.journal.tell_of_the_tree import Held, TreeVerbs
from radixledger.journal.telling import ROOT, PageIds, as_read_back, in_turn
from radixledger.journal.units import (
    Rank,
    Seq,
    TokenCount,
)
from radixledger.journal.writer import JournalWriter, Policy

REASON_MAX = 4096
"""So much of an error's text is told as the reason of an end."""

__all__ = ["ROOT", "Held", "PageIds", "Recorder", "pages_of_slots"]


class Recorder(RequestVerbs, PageVerbs, TreeVerbs):
    """The journal of one rank of somebody else's server; made by `open`, ended by `close` or a `with` block.

    Lengths and positions are tokens, pages are numbers of pages. A node is named by any hashable thing that the
    server has for it (its id, or the object), the root by `ROOT`; a request by its text id. Every call is one command
    with one write, as the policy says; `command` makes several one. Raises what the writer raises (JournalPoisoned
    when the disk fails), and ValueError or TypeError for what no reader could read back: numbers that are none, columns
    that do not fit each other. Nothing is told then, and the recorder goes on. A server that must not be stopped by a
    full disk opens its recorder with `on_failure=OnFailure.GAP`.
    """

    @classmethod
    def open(
        cls,
        run: Path,
        config: Config,
        *,
        rank: int = 0,
        ranks: int = 1,
        window_need: int | None = None,
        key_bytes: int | None = None,
        redaction: str = "hashed",
        policy: Policy = Policy.OPERATION,
        code: str = "",
        labels: dict[str, str] | None = None,
        clock: Callable[[], int] = time.time_ns,
        **how: object,
    ) -> Self:
        """A recorder for `rank` under `run`, with its `Opened` written.

        config: sizes of the pools, without page 0; `swa_pages` 0 for a model without windows. `rows` (a power of two)
        bounds how many requests are live at once. window_need: SWA tokens that a hit needs behind it (default: the
        window). key_bytes: bytes of key per page (default: 4 a token); keys are hashed page by page unless redaction
        is `plain`. how: what `JournalWriter.open` takes besides (`resume`, `retention`, `on_failure`, ...). Raises as it does,
        and ValueError for sizes that no state could be built of.
        """
        windowed = config.swa_pages > 0
        opened = Opened(
            run="",
            rank=Rank(rank),
            ranks=ranks,
            epoch=0,
            route="recorded" if windowed else "recorded_full",
            config=config,
            window_need=TokenCount(config.window_tokens if window_need is None else window_need),
            stride=key_bytes or 4 * config.page_size,
            redaction=redaction,
            code=code,
            labels=labels or {},
        )
        opened = recordable(as_read_back(opened))
        return cls(JournalWriter.open(run, opened, policy=Policy(policy), clock=clock, **how))  # type: ignore[arg-type]

    @property
    def last_seq(self) -> Seq:
        """The number of the event that was told last."""
        return self.writer.last_seq

    @in_turn
    def close(self, reason: str = "") -> None:
        """The server ended; the journal is whole. A second close does nothing."""
        if not self._names.open:
            return
        closed = as_read_back(Closed(b"", reason))
        self._names.open = False
        try:
            self.writer.append(closed)
            self.writer.end_command()
        finally:
            self.writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close("" if error is None else _printable(f"{type(error).__name__}: {error}"))


def _printable(text: str) -> str:
    """The beginning of a text that may have anything in it, as UTF-8 can tell it."""
    return text[:REASON_MAX].encode("utf-8", "backslashreplace").decode()
