"""What can go wrong with a journal, drawn as one tree.

    JournalError
    ├── WriterError                 the writer will not, or can no longer, do what was asked
    │   ├── RunExists               a journal is there and nobody said to go on with it
    │   ├── WriterBusy              another writer holds this rank
    │   ├── JournalPoisoned         a write or an fsync failed; nothing more is written
    │   ├── SnapshotFailed          the image could not be put down; the journal itself goes on
    │   └── KeyFileRefused          the redaction key is not safe to use as it lies there
    └── ReaderError                 the files do not say what was asked of them
        ├── NoJournal               nothing to read: no run, no rank, no first segment
        ├── NoSuchEvent             a sequence number outside of what the journal holds
        ├── NoBaseline              the beginning was dropped and no snapshot stands in for it
        ├── Overtaken               segments were dropped while somebody was about to read them
        ├── TooNew                  a format or vocabulary of a later version
        ├── NotOurs                 a file of another run or rank among those of this one
        └── Damaged                 bytes that a checksum, a length or the chain contradicts
            └── MissingEvents       the sequence numbers jump

Rule: a message says what was wrong, where, and what to do; its numbers are attributes. An
interrupted write at the very end of a journal is no error: readers report it as a notice.
"""

from pathlib import Path

from radixledger.journal.units import Rank, Seq


class JournalError(Exception):
    """Anything that this package raises about files and keys; arguments of ours raise ValueError."""


class WriterError(JournalError):
    """The writer will not, or can no longer, do what was asked."""


RESUME_OR_ANOTHER = "resume it, which opens its next epoch (`resume=True`, or --resume-run of serve), or choose another folder"


class RunExists(WriterError):
    """The rank has a journal already, and the caller did not ask to go on with it."""

    def __init__(
        self, folder: Path, *, rank: Rank, last_seq: Seq | None, instead: str = RESUME_OR_ANOTHER
    ) -> None:
        how_far = "" if last_seq is None else f", {last_seq} events so far"
        super().__init__(f"{folder} holds the journal of rank {rank} already{how_far}: {instead}")
        self.folder, self.rank, self.last_seq = folder, rank, last_seq


class WriterBusy(WriterError):
    """Another writer holds the lock of this rank; `pid` is 0 where it did not say who it is."""

    def __init__(self, path: Path, *, pid: int) -> None:
        who = f"process {pid}" if pid else "another process"
        super().__init__(f"{path} is held by {who}: one writer per rank; end it, or choose another folder")
        self.path, self.pid = path, pid


class JournalPoisoned(WriterError):
    """A write or an fsync failed: what came after `last_seq` is not in the journal, and nothing follows."""

    def __init__(self, path: Path, *, last_seq: Seq, cause: str) -> None:
        super().__init__(
            f"{path} takes no more events: {cause}. The journal ends at event {last_seq}; "
            "free the disk, then restart with resume, which opens the next epoch"
        )
        self.path, self.last_seq, self.cause = path, last_seq, cause


class SnapshotFailed(WriterError):
    """The image of event `seq` could not be put down; events go on being written."""

    def __init__(self, path: Path, *, seq: Seq, cause: str) -> None:
        super().__init__(f"{path}: the snapshot at event {seq} was not written: {cause}")
        self.path, self.seq, self.cause = path, seq, cause


class KeyFileRefused(WriterError):
    """The redaction key file is readable by others, or does not hold a key."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path


class ReaderError(JournalError):
    """The files do not say what was asked of them."""


class NoJournal(ReaderError):
    """There is nothing to read at this place."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path


class NoSuchEvent(ReaderError):
    """Event `seq` is before `first_seq`, where the journal begins by now, or behind `last_seq`, its end."""

    def __init__(self, folder: Path, *, seq: Seq, first_seq: Seq, last_seq: Seq | None) -> None:
        end = f"ends at event {last_seq}"
        if last_seq is None or seq < first_seq:
            end = f"begins at event {first_seq}" + " by now" * (last_seq is None)
        super().__init__(f"{folder} {end}; it does not hold event {seq}")
        self.folder, self.seq, self.first_seq, self.last_seq = folder, seq, first_seq, last_seq


class NoBaseline(ReaderError):
    """Events before `first_seq` were dropped and no usable snapshot reaches it."""

    def __init__(self, folder: Path, *, first_seq: Seq) -> None:
        super().__init__(
            f"{folder} begins at event {first_seq} and no snapshot at event {first_seq - 1} or later is "
            "readable: without one, every page that was taken before looks like a violation"
        )
        self.folder, self.first_seq = folder, first_seq


class Overtaken(ReaderError):
    """The reader was slower than the retention: events `missing` to `found` - 1 went while it read; nothing is damaged."""

    def __init__(self, folder: Path, *, missing: Seq, found: Seq) -> None:
        super().__init__(
            f"{folder}: events {missing} to {found - 1} were dropped by the writer's retention while they were read; "
            f"the journal begins at event {found} by now: read it again, or keep more"
        )
        self.folder, self.missing, self.found = folder, missing, found


class TooNew(ReaderError):
    """A later version of radixledger wrote this: `needs` is the version of `what` that reads it."""

    def __init__(self, path: Path, *, what: str, needs: int, have: int) -> None:
        super().__init__(
            f"{path} needs a radixledger that reads {what} version {needs}; this one reads up to {have}"
        )
        self.path, self.what, self.needs, self.have = path, what, needs, have


class NotOurs(ReaderError):
    """A file of another run or rank lies among those of the rank that is to be written: it is neither gone on from nor cleared away."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"{path}: {reason}; nothing was changed: move what does not belong here out of {path.parent}, then resume again"
        )
        self.path, self.reason = path, reason


class Damaged(ReaderError):
    """Bytes at `offset` of `path` contradict a checksum, a length or the chain, after event `after`."""

    def __init__(self, path: Path, *, offset: int, after: Seq | None, reason: str) -> None:
        behind = "" if after is None else f" (after event {after})"
        super().__init__(
            f"{path}, offset {offset}{behind}: {reason}; `radixledger journal doctor` says how far it goes, "
            "`radixledger journal recover` makes a copy without it"
        )
        self.path, self.offset, self.after, self.reason = path, offset, after, reason


class MissingEvents(Damaged):
    """Events `missing` to `found` - 1 are not there."""

    def __init__(self, path: Path, *, offset: int, missing: Seq, found: Seq) -> None:
        super().__init__(
            path, offset=offset, after=Seq(missing - 1), reason=f"missing {missing}, next is {found}"
        )
        self.missing, self.found = missing, found
