"""Write a report: triage each rank, fold it once more to collect, and put the page where it was asked for.

Rule: damage is read around and told, on the page and in the summary; what could be read is shown all the same.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct

from radixledger.journal.absent import Absent
from radixledger.journal.errors import JournalError
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Rank
from radixledger.replay.by_rank import Gather, Watcher, one_by_one
from radixledger.replay.report.bundle import bundle
from radixledger.replay.report.page import page
from radixledger.replay.report.phrases import Sheet
from radixledger.replay.report.ranges import Range, detail_ranges
from radixledger.replay.report.shares import Share, shares
from radixledger.replay.report.track import Tell, Track, follow
from radixledger.replay.triage.triage import RankTriage, absent_of, triage
from radixledger.replay.whole_file import whole_file


class RankSummary(Struct):
    """What a page holds of one rank; `detail` are its ranges of events at full detail, [first, last]. kind: as triage says."""

    run: str
    rank: int
    kind: str
    events: int
    detail: list[Range]
    summaries: int
    findings: int
    unreadable: str


class ReportSummary(Struct):
    """What was written."""

    path: str
    bytes: int
    events: int
    ranks: list[RankSummary]
    absent: list[Absent]
    """Ranks of the runs that were in none of the folders."""


def write_report(
    runs: Sequence[Path],
    path: Path,
    *,
    tell: Tell,
    told: Sequence[RankTriage] | None = None,
    ranks: Sequence[int] = (),
    made: str = "",
    named: Callable[[Path], str] = str,
    gather: Gather = one_by_one,
) -> ReportSummary:
    """Write one page for all ranks of `runs` to `path`, in place of what is there.

    tell: an event as a line of text. told: what `triage` said of these runs; None: it is asked here. ranks: those that were asked for; none: all. made: how the page came
    about, for its last line. named: a run as commands on the page name it. gather: how the ranks are gone through; `tell` has to be picklable if by several processes. Raises NoJournal for a folder that
    holds none, and OSError where `path` cannot be written.
    """
    triaged = triage(list(runs), gather, ranks=ranks) if told is None else told
    absent = absent_of(runs, ranks)
    parts = shares([each.kind != "clean" for each in triaged])
    work = [
        partial(_sheet, each, label, share, tell, named(Path(each.folder)))
        for each, label, share in zip(triaged, _labels(triaged), parts, strict=True)
    ]
    sheets = gather(work, [(Path(each.folder), Rank(each.rank)) for each in triaged])
    title = ", ".join(dict.fromkeys(run.absolute().name for run in runs))
    written = page(title, sheets, made, absent).encode()
    with whole_file(path) as file:
        file.write(written)
    summaries = [_summary(sheet) for sheet in sheets]
    return ReportSummary(str(path), len(written), sum(each.events for each in summaries), summaries, absent)


def _labels(ranks: Sequence[RankTriage]) -> list[str]:
    """What each rank is called on the page: with the name of its folder where there are several, with all of it if names are alike."""
    folders = dict.fromkeys(each.folder for each in ranks)
    names = {folder: Path(folder).absolute().name for folder in folders}
    alike = len(set(names.values())) < len(names)
    return [
        f"rank {each.rank}" if len(folders) == 1
        else f"{each.folder if alike else names[each.folder]}, rank {each.rank}"
        for each in ranks
    ]  # fmt: skip


def _sheet(told: RankTriage, label: str, share: Share, tell: Tell, name: str, watcher: Watcher) -> Sheet:
    """One rank's part of the page; where not even its beginning can be read, what triage says of that."""
    run, rank, track = Path(told.folder), Rank(told.rank), Track()
    try:
        reader = JournalReader(run, rank, salvage=True)
        ranges = detail_ranges(told, reader.first_seq, reader.last_seq, share.detail_events)
        with watcher(run, rank, "collecting") as watch:
            track = follow(reader, ranges, share, tell=tell, watch=watch)
    except JournalError as error:
        track.unreadable = str(error)
    return Sheet(label, track, told, bundle(label, track, told, name) if track.packets else "")


def _summary(sheet: Sheet) -> RankSummary:
    track, told = sheet.track, sheet.told
    summaries = sum(1 for packet in track.packets if not packet.tag)
    found = sum(told.report.broken.values())
    unreadable = told.report.unreadable or track.unreadable
    return RankSummary(
        told.run, told.rank, told.kind, track.events, track.detail, summaries, found, unreadable
    )
