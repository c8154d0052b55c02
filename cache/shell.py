"""The shell around a state: decide, record, evolve.

It is the only place where a decision meets the journal: each event is appended and evolved before the decider is
asked for the next, and what one command decided is one unit in the journal. Which commands there are stands in `rank`.
Rules: a refused command leaves the state as it was, but for the number of the one `Refused` that tells of it; a
decision that fails after its first event, or a failed append or write, poisons the rank, and every later command is
refused with the cause; whatever reads the whole state or writes takes its turn, and nothing comes in between, neither
another thread nor a call from within. No clock is read here: the journal is given one.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import RLock
from typing import NoReturn, Protocol, runtime_checkable

from msgspec.structs import replace

from radixledger.cache.arguments import text
from radixledger.cache.components.table import components_of
from radixledger.cache.config import checked
from radixledger.cache.decide.pages import Decision, T
from radixledger.cache.digest import digest
from radixledger.cache.evolve import EVOLVE, begin
from radixledger.cache.image import image
from radixledger.cache.refusals import LawBroken, RankClosed, RankPoisoned, Reentered, Refusal, asked
from radixledger.cache.routes import route_of
from radixledger.cache.state import Finding, State
from radixledger.cache.taken_ledger import take_ledger
from radixledger.cache.watch import Watched, watch
from radixledger.journal.errors import JournalPoisoned, SnapshotFailed, WriterError
from radixledger.journal.events import AnyEvent, Closed, Digested, LedgerTaken, Opened, Snapshotted
from radixledger.journal.redact import Redactor
from radixledger.journal.units import FIRST, Seq

DIGEST_EVERY = 4096
"""Events between two recorded digests."""


class Journal(Protocol):
    """What the shell needs of a journal; `JournalWriter` is one."""

    opened: Opened

    def append(self, event: AnyEvent, /) -> None:
        """Take one event into the frame being built."""

    def end_command(self) -> None:
        """One command's events are complete."""

    def end_step(self, step: int) -> None:
        """What is recorded must be safe before a device step or an output."""

    def close(self) -> None:
        """Write what is left and let the journal go."""


@runtime_checkable
class SnapshotJournal(Journal, Protocol):
    """A journal that keeps snapshots too."""

    redactor: Redactor | None

    def write_snapshot(self, image: bytes, digest: bytes, /) -> object:
        """Keep the state as of the last appended event."""


class Shell:
    """One rank's state with its journal: runs deciders, and records what is not a decision.

    Arguments as `RankCache` has them. Raises what `RankCache` raises.
    """

    def __init__(
        self,
        opened: Opened,
        journal: Journal | None = None,
        *,
        strict: bool = True,
        digest_every: int = DIGEST_EVERY,
        snapshot_every: int | None = None,
        seq: Seq = FIRST,
        watched: Watched = Watched.BOOKS,
        hashed: bool = False,
    ) -> None:
        checked(opened, *(opened.stride,) * hashed)
        self.route = route_of(opened)
        self.state: State = begin(opened, seq)
        self.state.hashed_keys = hashed
        self.state.components = components_of(opened)
        self.journal = journal
        self.strict = strict
        self._append = journal.append if journal is not None else None
        self._poison: Exception | None = None
        self._entry = RLock()
        self._inside = False  # a command is under way, in whichever thread has `_entry`
        self._closed = False
        self._digest_every = digest_every
        self._digest_due = seq + digest_every
        self._snapshot_every = snapshot_every
        self._snapshot_due = seq + snapshot_every if snapshot_every else None
        self.notices: list[str] = []
        self._watch = watch(watched)

    @property
    def turn(self) -> AbstractContextManager[object]:
        """Hold this, and other threads wait: for several calls that belong together. Its own thread goes on."""
        return self._entry

    # -- evidence --------------------------------------------------------------------------------------------

    def digest(self) -> bytes:
        """The digest of the state as it is."""
        with self._entry:
            return digest(self.state)

    def ledger(self, phase: str = "") -> LedgerTaken:
        """The rank's accounts as the gates read them; nothing is written (R157)."""
        with self._entry:
            return take_ledger(self.state, text(phase, "phase"))

    def record_ledger(self, phase: str) -> LedgerTaken:
        """Take the ledger and write it down, with the digest."""
        with self._turn():
            taken = replace(take_ledger(self.state, text(phase, "phase")), digest=digest(self.state))
            return self._decided(_recorded(taken))

    def snapshot(self) -> Seq:
        """Put the whole state down beside the journal, for replay to begin at (J12); the event it is the state of.

        The journal is made safe, then the file, then `Snapshotted` tells of it. Raises WriterError where there is
        no journal, and SnapshotFailed where the disk has no room for it: the rank goes on.
        """
        with self._turn():
            return self._put_down()

    def close(self, reason: str = "") -> None:
        """Write the clean end and let the journal go; a poisoned rank only lets go. Closed twice is closed once.

        What is read stays; every later command raises RankClosed.
        """
        text(reason, "reason")
        with self._entry:
            if self._inside:
                self._turn_away()
            if self._closed:
                return
            try:
                if self._poison is None:
                    with self._turn():
                        self._decided(_recorded(Closed(digest(self.state), reason)))
            finally:
                self._closed = True
                self._poison = self._poison or RankClosed(f"rank {self.state.opened.rank} is closed")
                if self.journal is not None:
                    self.journal.close()

    # -- the one way in --------------------------------------------------------------------------------------

    def _run(self, decision: Decision[T]) -> T:
        """Drive a decider to its end; see the rules above. A second thread waits for the first one's command (B137)."""
        with self._entry:
            if self._poison is not None or self._inside:
                self._turn_away()
            self._inside = True
            try:
                return self._decided(decision)
            finally:
                self._inside = False

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """What a command is to others, for what is no single decision."""
        with self._entry:
            if self._poison is not None or self._inside:
                self._turn_away()
            self._inside = True
            try:
                yield
            finally:
                self._inside = False

    def _turn_away(self) -> NoReturn:
        rank = self.state.opened.rank
        if self._inside:
            raise Reentered(f"rank {rank} is in the middle of a command, and was called from within it")
        if isinstance(self._poison, RankClosed):
            raise RankClosed(str(self._poison))
        raise RankPoisoned(f"rank {rank} stopped: {self._poison}") from self._poison

    def _decided(self, decision: Decision[T]) -> T:
        if self._watch is not None:
            decision = self._watch(self.state, decision)
        state, append, advance = self.state, self._append, decision.__next__
        begun = state.seq
        try:
            while True:
                event = advance()
                if append is not None:
                    append(event)
                state.seq += 1  # type: ignore[assignment]  # a call to `Seq` per event would show
                EVOLVE[type(event)](state, event)
                if state.findings:
                    raise _broken(state.findings[0])
        except StopIteration as stop:
            if state.seq != begun:
                self._end_command()
            result: T = stop.value
            return result
        except Refusal as refusal:
            if state.seq != begun:
                self._stop(refusal)
            else:
                self._tell(refusal.event(asked(getattr(decision, "__name__", ""))))
            raise
        except BaseException as error:
            self._stop(error)
            raise

    def _record(self, event: AnyEvent) -> None:
        """Append and evolve one event of the shell's own."""
        state = self.state
        if self._append is not None:
            self._append(event)
        state.seq = Seq(state.seq + 1)
        EVOLVE[type(event)](state, event)

    def _tell(self, event: AnyEvent) -> None:
        try:
            self._record(event)
            self._end_command()
        except BaseException as error:
            self._stop(error)
            raise

    def _end_command(self) -> None:
        state, journal = self.state, self.journal
        if state.seq >= self._digest_due:
            self._digest_due = state.seq + self._digest_every
            self._record(Digested(digest(self.state)))
        if journal is not None:
            try:
                journal.end_command()
            except BaseException as error:
                self._stop(error)
                raise
        if self._snapshot_due is not None and self.state.seq >= self._snapshot_due:
            self._snapshot_due = None  # what the snapshot itself puts down makes none due
            try:
                self._put_down()
            except SnapshotFailed as error:
                self.notices.append(str(error))
            self._snapshot_due = self.state.seq + (self._snapshot_every or 0)

    def _put_down(self) -> Seq:
        if not isinstance(self.journal, SnapshotJournal):
            raise WriterError("a rank without a journal on disk has no place for snapshots")
        seq, now = self.state.seq, digest(self.state)
        whole = image(self.state, self.journal.redactor)
        with self._safe():
            self.journal.write_snapshot(whole, now)
        self._decided(_recorded(Snapshotted(now)))
        return seq

    @contextmanager
    def _safe(self) -> Iterator[None]:
        """Around what the journal is asked for behind a command: where it fails, the rank stops with it."""
        try:
            yield
        except BaseException as error:
            if isinstance(error, JournalPoisoned) or not isinstance(error, WriterError):
                self._stop(error)
            raise

    def _stop(self, error: BaseException) -> None:
        """Poison the rank: what it holds in memory may be ahead of the journal from now on."""
        if self._poison is None:
            self._poison = error if isinstance(error, Exception) else RuntimeError(repr(error))
            drop = getattr(self.journal, "drop_command", None)
            if drop is not None:
                drop()


def _broken(first: Finding) -> LawBroken:
    text = f"event {first.seq} broke a law: {first.law}: {first.detail}"
    return LawBroken(text, seq=first.seq, law=first.law)


def _recorded(event: T) -> Decision[T]:
    yield event  # type: ignore[misc]
    return event
