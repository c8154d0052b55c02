"""Write a report: verify each rank, fold it once more to collect, and put the page where it was asked for.

Rule: what cannot be read is told on the page and in the summary; what could be read before it is shown all the same.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from radixledger.journal.errors import JournalError
from radixledger.journal.reader import JournalReader, ranks_in
from radixledger.journal.units import Rank
from radixledger.replay.report.bundle import bundle
from radixledger.replay.report.page import page
from radixledger.replay.report.phrases import Sheet
from radixledger.replay.report.ranges import DETAIL_EVENTS, Range, detail_ranges
from radixledger.replay.report.track import Share, Tell, Track, follow
from radixledger.replay.seek import Watch
from radixledger.replay.verdict import RankReport
from radixledger.replay.verify import verify_rank

Verdicts = Mapping[tuple[Path, Rank], RankReport]


class RankSummary(Struct):
    """What a page holds of one rank; `detail` are its ranges of events at full detail, [first, last]."""

    run: str
    rank: int
    events: int
    detail: list[Range]
    summaries: int
    findings: int
    unreadable: str


class Told(NamedTuple):
    """How journals are read, and events told."""

    tell: Tell
    salvage: bool
    watch: Watch


class ReportSummary(Struct):
    """What was written."""

    path: str
    bytes: int
    events: int
    clean: bool
    ranks: list[RankSummary]

    @property
    def unreadable(self) -> bool:
        """Whether a rank could not be read to its end."""
        return any(each.unreadable for each in self.ranks)


def write_report(
    runs: Sequence[Path],
    path: Path,
    *,
    tell: Tell,
    verdicts: Verdicts | None = None,
    salvage: bool = False,
    made: str = "",
    watch: Watch = iter,
) -> ReportSummary:
    """Write one page for all ranks of `runs` to `path`, in place of what is there.

    tell: an event as a line of text. verdicts: what `verify_rank` said of ranks; who is not among them is verified here. made: how
    the page came about, for its last line. watch: passes the frames of all ranks on, of each rank twice where it
    has to be verified. Raises NoJournal for a run that is none, NoBaseline, and OSError where `path` cannot be written.
    """
    named = [(run, rank) for run in runs for rank in ranks_in(run)]
    share, told = Share.of(len(named)), Told(tell, salvage, watch)
    sheets, ranks = [], []
    for run, rank in named:
        report = (verdicts or {}).get((run, rank)) or verify_rank(run, rank, salvage=salvage, watch=watch)
        label = f"rank {rank}" if len(runs) == 1 else f"{run.absolute().name}, rank {rank}"
        sheet = _sheet(run, rank, label, report, share, DETAIL_EVENTS // len(named), told)
        sheets.append(sheet)
        ranks.append(_summary(sheet))
    title = ", ".join(dict.fromkeys(run.absolute().name for run in runs))
    written = page(title, sheets, made).encode()
    _replace(path, written)
    return ReportSummary(
        str(path),
        len(written),
        sum(each.events for each in ranks),
        all(sheet.report.clean for sheet in sheets),
        ranks,
    )


def _sheet(
    run: Path, rank: Rank, label: str, report: RankReport, share: Share, detail: int, told: Told
) -> Sheet:
    """One rank's part of the page; where not even its beginning can be read, what the verdict says of that."""
    track = Track()
    try:
        reader = JournalReader(run, rank, salvage=told.salvage)
        ranges = detail_ranges(report, reader.first_seq, reader.last_seq, detail)
        track = follow(reader, ranges, share, tell=told.tell, watch=told.watch)
    except JournalError as error:
        track.unreadable = str(error)
    if track.unreadable and not report.unreadable:
        report.unreadable = track.unreadable
    return Sheet(label, track, report, bundle(label, track, report) if track.packets else "")


def _summary(sheet: Sheet) -> RankSummary:
    track, report = sheet.track, sheet.report
    summaries = sum(1 for packet in track.packets if not packet.tag)
    return RankSummary(
        report.run,
        report.rank,
        track.events,
        track.detail,
        summaries,
        sum(report.broken.values()),
        report.unreadable,
    )


def _replace(path: Path, content: bytes) -> None:
    """Put a file where it belongs, whole or not at all."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(content)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
