"""Appends events to one rank's journal, and promises what its commit policy says.

    policy      a frame is written             survives                       loses
    operation   at the end of every command    SIGKILL, OOM kill, crash       nothing acknowledged
    step        before a device dispatch       the same                       at most one step of host work
    sync        as operation, then fdatasync   power loss too                 nothing that was waited for
    off         never; nothing is encoded      -                              everything

Rule 1: the events of one command share a frame; a torn end never holds half a decision.

Rule 2: one writer per rank, one thread per writer. Only `wait_durable` may be called from other threads.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self

from msgspec.structs import replace

from radixledger.journal.codec import Encoder
from radixledger.journal.disk import Disk
from radixledger.journal.errors import JournalPoisoned, SnapshotFailed, WriterError
from radixledger.journal.events import SCHEMA_VERSION, AnyEvent, Opened
from radixledger.journal.folder import rank_folder, snapshot_path
from radixledger.journal.forked import left_in_children
from radixledger.journal.opening import Options, Parts, open_rank
from radixledger.journal.pen import Limits, OnFailure
from radixledger.journal.retention import NOTHING, Dropped, Retention
from radixledger.journal.snapshot import write_snapshot
from radixledger.journal.units import Seq
from radixledger.journal.upkeep import Sealing

__all__ = ["JournalWriter", "OnFailure", "Policy", "Retention", "Sealing"]

BUFFER_EVENTS_MAX = 1 << 16
"""Under policy `step` a frame is written at the end of a command that reaches this, whoever forgot the step."""


class Policy(StrEnum):
    """When a journal is written; see the head of this module."""

    OPERATION = "operation"
    STEP = "step"
    SYNC = "sync"
    OFF = "off"


_LIMITS, _DISK, _KEEP_ALL = Limits(), Disk(), Retention()


class JournalWriter:
    """The writer of one rank; made by `open`, ended by `close`, or a `with` block that does so.

    `opened` is the first event of this epoch, written already: run, epoch, schema and key id are filled in, and
    `stride` is the live one. (The copy in a hashed journal says 8 there, the bytes of a page's hash.)
    `redactor`, None for plain tokens, gives state images the same hashes. `notices` tells what was found
    and cleared away on resuming, and what upkeep could not do.
    """

    append: Callable[[AnyEvent], None]
    """Takes one event of the command under way; costs as much as appending to a list."""

    def __init__(
        self,
        opened: Opened,
        folder: Path,
        policy: Policy,
        clock: Callable[[], int],
        disk: Disk,
        parts: Parts | None,
    ) -> None:
        self.opened, self.folder, self.policy = opened, folder, policy
        self.redactor = parts.redactor if parts else None
        self.notices = parts.notices if parts else []
        self._clock, self._disk = clock, disk
        self._pen = parts.pen if parts else None
        self._encode = (parts.encoder if parts else Encoder()).encode
        self._upkeep = parts.upkeep if parts else None
        self._lock = parts.lock if parts else None
        self._buffer: list[AnyEvent] = []
        self.append = self._buffer.append
        self._ended = 0  # events in the buffer whose commands have ended: policy `step` only
        self._unwritten_next = 1  # policy `off` only
        self._step = 0
        self._closed = self._over = False
        self._end = "is closed"
        left_in_children(self)
        self._writes_commands = policy in (Policy.OPERATION, Policy.SYNC)

    @classmethod
    def open(
        cls,
        run: Path,
        opened: Opened,
        *,
        policy: Policy = Policy.OPERATION,
        key: bytes | Path | None = None,
        clock: Callable[[], int] = time.time_ns,
        resume: bool = False,
        rotate_bytes: int = _LIMITS.rotate_bytes,
        rotate_ns: int = _LIMITS.rotate_ns,
        retry_ns: int = _LIMITS.retry_ns,
        retention: Retention = _KEEP_ALL,
        sealing: Sealing = Sealing.BACKGROUND,
        on_failure: OnFailure = OnFailure.STOP,
        disk: Disk = _DISK,
    ) -> Self:
        """A writer for the journal of `opened.rank` under `run`, with `opened` written as its first event.

        An existing journal is refused with RunExists unless `resume`, which opens the next epoch behind it; where there
        is none, one is begun in either case. `key` is the redaction key, or the file that it lies in (default: one
        beside the run); that file is made on first use, once the journal is known to be begun. Policy `off` touches no file. Raises WriterBusy where another writer holds the rank,
        BadConfig for sizes that no state has, KeyFileRefused, Damaged or TooNew where the end of the old journal cannot be trusted, NotOurs where files of another run or rank lie in its folder, ValueError, OSError.
        """
        folder = rank_folder(run, opened.rank)
        if policy is Policy.OFF:
            opened = replace(opened, run=opened.run or run.absolute().name, epoch=1, schema=SCHEMA_VERSION)
            writer = cls(opened, folder, policy, clock, disk, None)
        else:
            limits, durable = Limits(rotate_bytes, rotate_ns, retry_ns), policy is Policy.SYNC
            options = Options(
                policy, durable, key, resume, limits, on_failure, retention, sealing, clock, disk
            )
            parts = open_rank(run, opened, options)
            writer = cls(parts.opened, folder, policy, clock, disk, parts)
        try:
            writer.append(writer.opened)
            writer._write()
        except BaseException:
            writer.close()
            raise
        return writer

    @property
    def next_seq(self) -> Seq:
        """The number that the next appended event gets."""
        written = self._pen.seq_next if self._pen else self._unwritten_next
        return Seq(written + len(self._buffer))

    @property
    def last_seq(self) -> Seq:
        """The number of the last appended event."""
        return Seq(self.next_seq - 1)

    @property
    def durable_seq(self) -> Seq:
        """The last event that survives what the policy is there to survive; 0 under `off`."""
        return Seq(self._pen.durable_next - 1 if self._pen else 0)

    @property
    def lost_events(self) -> int:
        """Events that were given up since the writer was opened (`on_failure` is `gap`)."""
        return self._pen.lost if self._pen else 0

    @property
    def failing(self) -> str | None:
        """Why events are being lost right now, in words of the disk; None while all is well."""
        return self._pen.failing if self._pen else None

    def end_command(self) -> None:
        """The command is over. `operation` and `sync` write its events as one frame, `step` keeps them.

        Raises JournalPoisoned, now and from then on, when the disk fails and `on_failure` is `stop`.
        """
        if self._writes_commands:
            self._write()
        else:
            self._ended = len(self._buffer)
            if self._pen is None or self._ended >= BUFFER_EVENTS_MAX:
                self._write()

    def end_step(self, step: int) -> None:
        """The host's part of device step `step` is over; later frames carry its number.

        Under `step` everything that was kept is written as one frame with that number: call it before the device is
        given its work and before any output leaves the process. Raises as `end_command`.
        """
        self._step = step
        if self.policy is Policy.STEP:
            self._write()

    def drop_command(self) -> None:
        """The command under way has failed: forget what it appended."""
        del self._buffer[self._ended :]

    def wait_durable(self, seq: Seq) -> None:
        """Policy `sync`: return when event `seq`, of a command that has ended, survives a loss of power.

        Under other policies at once. Raises JournalPoisoned where it never will; with `on_failure` `gap` it returns,
        and the gap tells. Raises ValueError for an event that was not written yet.
        """
        if self._pen is None:
            return
        if seq >= self._pen.seq_next:
            raise ValueError(f"event {seq} was not written yet; the last one is {self._pen.seq_next - 1}")
        self._pen.wait(seq)

    def write_snapshot(self, image: bytes, digest: bytes) -> Path:
        """Put down the state after the last appended event, between commands; where the file lies.

        Order: what is buffered is written and synced, then the file appears, durable. Only then does the caller append
        `Snapshotted(digest)`: a crash in between leaves a snapshot nobody speaks of, never the reverse.
        Raises SnapshotFailed (the journal goes on), JournalPoisoned, and WriterError under policy `off`.
        """
        self._check_open()
        if self._pen is None:
            raise WriterError("policy `off` writes nothing, and so no snapshots")
        self._write()
        seq = self.last_seq
        path = snapshot_path(self.folder, seq)
        time_ns = self._clock()
        if not self._pen.sync(time_ns):
            raise SnapshotFailed(path, seq=seq, cause=f"events are being lost: {self._pen.failing}")
        try:
            write_snapshot(
                path, image, self._disk, run=self.opened.run, rank=self.opened.rank, epoch=self.opened.epoch, seq=seq,
                chain=self._pen.chain, time_ns=time_ns, digest=digest,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            raise SnapshotFailed(path, seq=seq, cause=str(error)) from error
        return path

    def rotate(self) -> None:
        """Begin a new segment now, between commands; the old one is sealed as `sealing` says."""
        self._check_open()
        if self._pen is not None:
            self._pen.rotate(self._clock())

    def retain(self, retention: Retention) -> Dropped:
        """Drop what is too much or too old, behind a good snapshot only; what was dropped. Raises OSError."""
        self._check_open()
        return self._upkeep.retain(retention) if self._upkeep else NOTHING

    def close(self) -> None:
        """Write what is buffered, seal the last segment, let the next writer in. The caller appended `Closed`.

        Everything is given back even where this raises JournalPoisoned: when the last events could not be written.
        """
        if self._closed:
            return
        self._closed = True
        with ExitStack() as last:
            last.callback(setattr, self, "_over", True)
            last.callback(setattr, self, "append", self._refuse)
            if self._lock and self._upkeep and self._pen:
                last.callback(self._lock.release)
                last.callback(self._upkeep.close)
                last.callback(self._pen.finish, self._clock(), self._step)
            if self._pen is None or self._pen.poison is None:
                self._write()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.drop_command()
        self.close()

    def _write(self) -> None:
        """One frame of everything in the buffer."""
        events = self._buffer
        if not events:
            if self._pen is not None and self._pen.poison is not None:
                raise self._pen.poison
            return
        if self._over:
            self._refuse(events[0])
        count, self._ended = len(events), 0
        if self._pen is None:
            self._unwritten_next += count
            events.clear()
            return
        try:
            body = self._encode(events)
            events.clear()  # before the write: who is interrupted in it must not come with the same events again
            self._pen.write(body, count, self._clock(), self._step)
        except JournalPoisoned:
            self.append = self._refuse
            raise

    def _check_open(self) -> None:
        """Once closed, the rank is another writer's to open: nothing in its folder is touched any more."""
        if self._over:
            raise WriterError(f"the journal in {self.folder} {self._end}")

    def leave_to_parent(self) -> None:
        """In a forked child: it is not this process's to write; closing it does nothing here."""
        if not self._over:
            self._end = "belongs to the process that this one was forked from"
        self._closed = self._over = True
        self.append = self._refuse

    def _refuse(self, event: AnyEvent) -> NoReturn:
        poison = self._pen.poison if self._pen else None
        raise poison or WriterError(
            f"the journal in {self.folder} {self._end}; {type(event).__name__} came too late"
        )
