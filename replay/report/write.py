"""Write a report: verify each rank, fold it once more to collect, and put the page where it was asked for.

Rule: what cannot be read is told on the page and in the summary; what could be read before it is shown all the same.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from radixledger.journal.errors import JournalError
from radixledger.journal.events import AnyEvent
from radixledger.journal.reader import JournalReader, ranks_in
from radixledger.journal.units import Rank
from radixledger.replay.report.bundle import bundle
from radixledger.replay.report.page import Sheet, page
from radixledger.replay.report.ranges import DETAIL_EVENTS, Range, detail_ranges
from radixledger.replay.report.track import Share, follow
from radixledger.replay.seek import Watch
from radixledger.replay.verdict import RankReport
from radixledger.replay.verify import verify_rank

Verdicts = Mapping[tuple[Path, Rank], RankReport]


class RankSummary(Struct):
    """What a page holds of one rank."""

    run: str
    rank: int
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
    tell: Callable[[AnyEvent], str],
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
    share = Share.of(len(named))
    sheets, ranks = [], []
    for run, rank in named:
        report = (verdicts or {}).get((run, rank)) or verify_rank(run, rank, salvage=salvage, watch=watch)
        label = f"rank {rank}" if len(runs) == 1 else f"{run.absolute().name}, rank {rank}"
        sheet = _sheet(run, rank, label, report, share, tell, salvage, watch, DETAIL_EVENTS // len(named))
        sheets.append(sheet)
        ranks.append(_summary(sheet))
    title = ", ".join(dict.fromkeys(run.absolute().name for run in runs))
    written = page(title, sheets, made).encode()
    _replace(path, written)
    return ReportSummary(
        str(path), len(written), sum(each.events for each in ranks), all(sheet.report.clean for sheet in sheets), ranks
    )
