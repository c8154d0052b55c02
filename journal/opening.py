"""What has to happen before a rank's journal takes its first event: lock, look back, name the epoch, begin.

Rule: the lock comes before the first look, and everything that was taken is given back when a later step fails.
"""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from radixledger.journal.belonging import Whose
from radixledger.journal.codec import Encoder, fingerprint
from radixledger.journal.disk import Disk
from radixledger.journal.errors import ReaderError, RunExists
from radixledger.journal.events import SCHEMA_VERSION, Opened
from radixledger.journal.folder import LOCK_NAME, listing, open_segment, rank_folder
from radixledger.journal.frame import chain_start
from radixledger.journal.lock import WriterLock
from radixledger.journal.pen import Limits, OnFailure, Pen
from radixledger.journal.redact import (
    HASH_BYTES,
    HASHED,
    PLAIN,
    Redactor,
    default_key_path,
    load_or_create_key,
    spelled_out,
)
from radixledger.journal.resume import Past, look_back
from radixledger.journal.retention import Retention
from radixledger.journal.segment import Heading, SegmentFile, UnfinishedHeading
from radixledger.journal.sizes import check_memory, check_sizes
from radixledger.journal.units import Rank, Seq
from radixledger.journal.upkeep import Sealing, Upkeep


class Parts(NamedTuple):
    """What a writer is made of; `opened` is not written yet."""

    opened: Opened
    redactor: Redactor | None
    encoder: Encoder
    pen: Pen
    upkeep: Upkeep
    lock: WriterLock
    notices: list[str]


class Options(NamedTuple):
    """How a journal is written; the defaults are those of `JournalWriter.open`."""

    policy: str
    durable: bool
    key: bytes | Path | None
    """The redaction key, or the file that has it or gets it; None for the file beside the run."""
    resume: bool
    limits: Limits
    on_failure: OnFailure
    retention: Retention
    sealing: Sealing
    clock: Callable[[], int]
    disk: Disk


def open_rank(run: Path, opened: Opened, options: Options) -> Parts:
    """Take the rank's lock and make everything ready; raises as `JournalWriter.open`."""
    check_sizes(opened)
    check_memory(opened)
    folder = rank_folder(run, opened.rank)
    options.disk.make_folder(folder)
    lock = WriterLock(folder / LOCK_NAME)
    try:
        notices: list[str] = []
        past = _past(folder, opened.rank, options, notices)
        opened, redactor = _named(run, opened, past, options.key)
        encoder = Encoder(redactor)
        upkeep = Upkeep(
            folder,
            options.disk,
            options.clock,
            sealing=options.sealing,
            retention=options.retention,
            whose=Whose(opened.run, opened.rank),
            remark=notices.append,
        )
        pen = Pen(
            folder,
            _heading(opened, encoder, past, options),
            options.disk,
            limits=options.limits,
            on_failure=options.on_failure,
            durable=options.durable,
            finished=upkeep.finished,
        )
    except BaseException:
        lock.release()
        raise
    for listed, until in past.unsealed if past else ():
        upkeep.finished(listed, until)
    return Parts(opened, redactor, encoder, pen, upkeep, lock, notices)


def _past(folder: Path, rank: Rank, options: Options, notices: list[str]) -> Past | None:
    segments = listing(folder).segments
    if not segments:
        return None
    if options.resume:
        return look_back(folder, rank, options.disk, notices)
    raise RunExists(folder, rank=rank, last_seq=_last_seq(segments[-1]))


def _last_seq(listed: SegmentFile) -> Seq | None:
    """The last event of a segment, if it can be told, for the message to whoever did not expect it."""
    try:
        with closing(open_segment(listed)) as segment:
            segment.seek(Seq(1 << 62))
            return Seq(segment.seq_next - 1)
    except (ReaderError, UnfinishedHeading):
        return None


def _named(
    run: Path, opened: Opened, past: Past | None, key: bytes | Path | None
) -> tuple[Opened, Redactor | None]:
    """`opened` with its run, epoch, schema and key id, and the redactor that the key makes.

    Who names a key already has its hashes, not its keys (a copy of a journal): they are written as they are.
    """
    name = past.run if past else opened.run or spelled_out(run).name
    if opened.run not in ("", name):
        raise ValueError(f"this journal is of run {name!r}; {opened.run!r} cannot go on with it")
    if not name.isascii() and any("\ud800" <= letter <= "\udfff" for letter in name):
        raise ValueError(f"a run is named by its folder, and {name!r} is no text in UTF-8")
    key_name = opened.key_id
    match opened.redaction:
        case "plain":
            redactor, key_name = None, ""
        case "hashed" if key_name and opened.stride == HASH_BYTES:
            redactor = None
        case "hashed":
            key = key or default_key_path(run)
            secret = load_or_create_key(key) if isinstance(key, Path) else key
            redactor = Redactor(secret, opened.stride)
            key_name = redactor.key_id
        case other:
            raise ValueError(f"redaction is `{HASHED}` or `{PLAIN}`, not {other!r}")
    epoch = past.epoch + 1 if past else 1
    return replace(opened, run=name, epoch=epoch, schema=SCHEMA_VERSION, key_id=key_name), redactor


def _heading(opened: Opened, encoder: Encoder, past: Past | None, options: Options) -> Heading:
    return Heading(
        run=opened.run,
        rank=opened.rank,
        epoch=opened.epoch,
        seq_first=past.seq_next if past else Seq(1),
        chain=past.chain if past else chain_start(opened.run, opened.rank),
        schema=SCHEMA_VERSION,
        fingerprint=fingerprint(),
        created_ns=options.clock(),
        policy=options.policy,
        opened=encoder.encode([opened]),
    )
