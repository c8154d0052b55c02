"""A journal that also keeps its events in memory, for a server that follows them itself.

Rule: only what a whole command decided is handed on, and only once, whichever thread takes it.
"""

from threading import Lock

from radixledger.cache.prefix_cache import TakenEvent
from radixledger.cache.shell import Journal, SnapshotJournal
from radixledger.journal.errors import WriterError
from radixledger.journal.events import AnyEvent, Opened
from radixledger.journal.redact import Redactor
from radixledger.journal.units import FIRST, Seq


class KeptEvents:
    """A `Journal` over another one, or over none."""

    def __init__(self, opened: Opened, journal: Journal | None) -> None:
        self.opened = opened
        self._journal = journal
        self._seq: int = getattr(journal, "last_seq", FIRST)
        self._whole: list[AnyEvent] = [opened]
        self._command: list[AnyEvent] = []
        self._entry = Lock()  # around `_seq` and `_whole`: a follower takes them while the rank goes on

    @property
    def redactor(self) -> Redactor | None:
        """What the other journal hides keys with."""
        return getattr(self._journal, "redactor", None)

    @property
    def last_seq(self) -> Seq:
        """The number of the last event that is a fact."""
        with self._entry:
            return Seq(self._seq + len(self._whole) - 1)

    def append(self, event: AnyEvent, /) -> None:
        """Take one event into the command being decided."""
        if self._journal is not None:
            self._journal.append(event)
        self._command.append(event)

    def end_command(self) -> None:
        """Its events are facts from now on."""
        if self._journal is not None:
            self._journal.end_command()
        with self._entry:
            self._whole += self._command
        self._command = []

    def end_step(self, step: int) -> None:
        """What is recorded must be safe before a device step."""
        if self._journal is not None:
            self._journal.end_step(step)

    def write_snapshot(self, image: bytes, digest: bytes, /) -> object:
        """Keep a state beside the other journal; WriterError where that has no place for it."""
        if not isinstance(self._journal, SnapshotJournal):
            raise WriterError("a rank without a journal on disk has no place for snapshots")
        return self._journal.write_snapshot(image, digest)

    def drop_command(self) -> None:
        """A command failed half-way: none of it happened."""
        self._command = []
        drop = getattr(self._journal, "drop_command", None)
        if drop is not None:
            drop()

    def close(self) -> None:
        """Let the other journal go."""
        if self._journal is not None:
            self._journal.close()

    def take(self) -> list[TakenEvent]:
        """What happened since the last call, with its sequence numbers."""
        with self._entry:
            first, events = self._seq, self._whole
            self._seq, self._whole = first + len(events), []
        return [TakenEvent(self.opened.rank, Seq(first + at), event) for at, event in enumerate(events)]
