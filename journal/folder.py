"""What lies in the folder of a run and of a rank, by name.

    RUN/rank-0003/00000000000000000001.sealed     a finished segment, named after its first number
                  00000000000000004097.seg        the live one
                  00000000000000004096.snap       the state after event 4096
                  lock                            who writes

Rule: listing opens nothing and changes nothing; where a segment stands in both forms, the sealed one counts.
"""

from pathlib import Path
from typing import NamedTuple

from radixledger.journal.disk import TEMPORARY
from radixledger.journal.errors import NoJournal
from radixledger.journal.live import LiveSegment
from radixledger.journal.sealed import SealedSegment
from radixledger.journal.segment import (
    LIVE_SUFFIX,
    SEALED_SUFFIX,
    Form,
    Heading,
    Segment,
    SegmentFile,
    segment_name,
)
from radixledger.journal.units import SEQ_MAX, Rank, Seq

SNAPSHOT_SUFFIX = ".snap"
LOCK_NAME = "lock"

_RANK_PREFIX = "rank-"
_NUMBER_DIGITS = 20


class SnapshotRef(NamedTuple):
    """A snapshot in a listing: the state after event `seq`."""

    seq: Seq
    path: Path


class Listing(NamedTuple):
    """The files of one rank, each kind in the order of its numbers."""

    segments: list[SegmentFile]
    snapshots: list[SnapshotRef]
    superseded: list[SegmentFile]
    """Live files whose sealed form is there."""
    unfinished: list[Path]
    """Temporary files of segments and snapshots, of somebody at work or of somebody who died."""


def rank_folder(run: Path, rank: Rank) -> Path:
    """Where the journal of one rank lies."""
    return run / f"{_RANK_PREFIX}{rank:04d}"


def ranks_in(run: Path) -> list[Rank]:
    """The ranks that a run holds journals of, in order; raises NoJournal where there is none."""
    if not run.is_dir():
        raise NoJournal(
            run, "a run is a folder, and this is a file" if run.exists() else "there is no such folder"
        )
    names = (entry.name for entry in run.iterdir())
    numbers = (name.removeprefix(_RANK_PREFIX) for name in names if name.startswith(_RANK_PREFIX))
    ranks = sorted(
        Rank(int(number)) for number in numbers if number.isdecimal() and number == f"{int(number):04d}"
    )
    if not ranks:
        raise NoJournal(run, _no_run(run))
    return ranks


def _no_run(folder: Path) -> str:
    """Why a folder is no run; of one that a rank lies in, which run to name instead."""
    whole = folder.absolute()
    number = whole.name.removeprefix(_RANK_PREFIX)
    if (
        number.isdecimal()
        and whole == rank_folder(whole.parent, Rank(int(number)))
        and listing(folder).segments
    ):
        return f"this is the folder of a rank, and no run: name {folder.parent if folder.name else whole.parent}, with --rank {int(number)}"
    return "this folder holds no rank-NNNN folder, so it is no run"


def snapshot_path(folder: Path, seq: Seq) -> Path:
    """Where the snapshot after event `seq` lies."""
    return folder / f"{seq:0{_NUMBER_DIGITS}d}{SNAPSHOT_SUFFIX}"


def listing(folder: Path) -> Listing:
    """The files of one rank; all lists empty where there is no such folder."""
    live: dict[Seq, SegmentFile] = {}
    sealed: dict[Seq, SegmentFile] = {}
    snapshots, unfinished = [], []
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if path.suffix == TEMPORARY:
            unfinished += [path] if _is_ours(path.with_suffix("")) else []
        elif (number := _number(path)) is None:
            continue
        elif path.suffix == LIVE_SUFFIX:
            live[number] = SegmentFile(path, number, Form.LIVE)
        elif path.suffix == SEALED_SUFFIX:
            sealed[number] = SegmentFile(path, number, Form.SEALED)
        elif path.suffix == SNAPSHOT_SUFFIX:
            snapshots.append(SnapshotRef(number, path))
    segments = sorted((live | sealed).values(), key=lambda each: each.seq_first)
    superseded = [live[number] for number in sorted(live.keys() & sealed.keys())]
    return Listing(segments, snapshots, superseded, unfinished)


def open_segment(listed: SegmentFile, stand_in: Heading | None = None) -> Segment:
    """A segment open for reading, in its sealed form if it was sealed since it was listed.

    With a `stand_in` its own heading is taken for damaged: reading begins at the first whole frame.
    Raises FileNotFoundError, UnfinishedHeading, Damaged or TooNew.
    """
    if listed.form is Form.LIVE:
        try:
            return LiveSegment(listed, stand_in)
        except FileNotFoundError:
            sealed = listed.path.with_name(segment_name(listed.seq_first, Form.SEALED))
            listed = SegmentFile(sealed, listed.seq_first, Form.SEALED)
    return SealedSegment(listed, stand_in)


def _is_ours(path: Path) -> bool:
    """Whether this is the name of a file that is made under a temporary one."""
    return path.suffix in (SEALED_SUFFIX, SNAPSHOT_SUFFIX) and _number(path) is not None


def _number(path: Path) -> Seq | None:
    stem = path.stem
    if len(stem) != _NUMBER_DIGITS or not (stem.isascii() and stem.isdecimal()):
        return None
    number = Seq(int(stem))
    return number if number <= SEQ_MAX else None
