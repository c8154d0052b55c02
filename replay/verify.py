"""Verify a journal: fold it again, compare everything that was recorded, check every law, and name the first wrong event.

Each rank is judged alone, because ranks share nothing. A journal begins at its first event or, after retention, at a
snapshot. Rule: reading is one pass, and memory does not grow with the journal; only when something was found is a
stretch of it read again, to tell where it came from.
"""

from collections import deque
from pathlib import Path

from radixledger.cache.laws.invariants import LAWS
from radixledger.cache.state import State
from radixledger.journal.accounts import Pool
from radixledger.journal.errors import JournalError
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Rank, Seq
from radixledger.replay.audit import Audit
from radixledger.replay.fold import first_wrong
from radixledger.replay.seek import (
    Beginning,
    Watch,
    beginning_before,
    beginning_of,
    frames_upto,
    opened_of,
    standing_in,
    state_at,
)
from radixledger.replay.story.blame import LifeStep, story
from radixledger.replay.verdict import RankReport, Told

STORY_STEPS = 6
"""So many steps of a page's life are told with the first finding."""


def verify_rank(
    run: Path, rank: Rank, *, from_snapshot: bool = False, salvage: bool = False, watch: Watch = iter
) -> RankReport:
    """Fold and compare one rank's journal, from its first event or, with `from_snapshot`, from its newest good snapshot.

    What cannot be read is told as `unreadable` in the report, behind everything that was found before it.
    """
    report = RankReport(run=run.absolute().name, rank=rank)
    try:
        reader = JournalReader(run, rank, salvage=salvage)
        begin = beginning_before(reader, reader.last_seq) if from_snapshot else beginning_of(reader)
        report.notices += begin.passed_over
        judge(reader, begin, report, watch)
        if report.findings:
            _explain(reader, report, report.findings[0])
        report.notices += reader.notices
    except JournalError as error:
        report.unreadable = str(error)
    return report


def judge(reader: JournalReader, begin: Beginning, report: RankReport, watch: Watch = iter) -> State | None:
    """Fold and compare all that can be read, from where `begin` says; the last state, None where it cannot be known.

    What is found stands in `report`, also where reading or folding raises: then what was found before that.
    """
    opened = opened_of(reader)
    if opened:
        report.run, report.route = opened.run, opened.route
    report.from_snapshot = begin.state.seq if begin.state is not None else None
    audit = Audit(report, begin.state, standing_in(reader, report.notices.append), opened)
    try:
        for frame in audit.known.frames(reader, watch(reader.frames(begin.next_seq))):
            audit.take(frame)
    finally:
        audit.finish()
    return None if audit.known.lost_at else audit.state


def _explain(reader: JournalReader, report: RankReport, first: Told) -> None:
    """Tell where the first finding came from: the first frame that broke a law, the story of a page."""
    if first.lawful_at is not None and first.law in {law.__name__ for law in LAWS}:
        report.first_frame = _first_frame(reader, first)
    if first.pages and first.pool:
        stop = report.first_frame[1] if report.first_frame else first.seq
        report.story = _story(reader, Pool[first.pool], first.pages[0], stop)


def _first_frame(reader: JournalReader, first: Told) -> tuple[int, int] | None:
    """First and last event of the first frame behind which a law does not hold that held at `lawful_at`."""
    laws = [law for law in LAWS if law.__name__ == first.law]
    state = state_at(reader, first.lawful_at) if first.lawful_at else None
    wrong = first_wrong(reader.frames(Seq(state.seq + 1) if state else None), state, laws, opened_of(reader))
    return (wrong.frame.seq_first, wrong.frame.seq_last) if wrong else None


def _story(reader: JournalReader, pool: Pool, page: int, stop: int) -> list[LifeStep]:
    """The last steps of a page's life up to event `stop`."""
    steps = story(frames_upto(reader, stop), pool, page, beginning_of(reader).state)
    return list(deque((step for step in steps if step.seq <= stop), STORY_STEPS))
