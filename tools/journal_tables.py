"""What `radixledger journal` prints for people: the tables of stats, doctor and recover."""

from collections.abc import Iterator, Sequence

from radixledger.journal.doctor import RankReport, SegmentReport
from radixledger.journal.recover import Recovered
from radixledger.journal.tally import RankTally
from radixledger.tools.console import (
    bytes_text,
    count_of,
    count_text,
    print_facts,
    print_lines,
    remark,
    seconds_text,
)
from radixledger.tools.event_text import time_text
from radixledger.tools.printable import say
from radixledger.tools.table import print_table


def print_tally(counts: RankTally) -> None:
    """The counts of one rank: facts, epochs, event types."""
    segments = f"{counts.sealed_segments} sealed, {counts.live_segments} live"
    facts: dict[str, object] = {
        "events": f"{count_text(counts.events)} (numbers {counts.first_seq} to {counts.last_seq})",
        "frames": f"{count_text(counts.frames)} ({counts.events / max(1, counts.frames):.1f} events each)",
        "segments": f"{segments}, {bytes_text(counts.disk_bytes)}",
        "bytes per event": f"{counts.bytes_per_event:.1f} on disk",
        "snapshots": f"{counts.snapshots}, {bytes_text(counts.snapshot_bytes)}",
    }
    if counts.lost:
        facts["lost"] = f"{count_text(counts.lost)} events: this journal has gaps"
    print_facts(facts, title=f"run {counts.run}, rank {counts.rank}")
    say()
    print_table(
        ("epoch", "policy", "route", "tokens", "first event", "events", "from", "to", "lasted", "code"),
        [
            (
                each.epoch,
                each.policy,
                each.route,
                each.redaction,
                each.seq_first,
                each.events,
                time_text(each.time_first_ns),
                time_text(each.time_last_ns),
                seconds_text(max(0, each.time_last_ns - each.time_first_ns) / 1e9),
                each.code[:12] + ("+" if each.dirty else ""),
            )
            for each in counts.epochs
        ],
    )
    say()
    total = sum(each.bytes for each in counts.types.values()) or 1
    print_table(
        ("event", "count", "share", "bytes each", "share of bytes"),
        [
            (
                name,
                each.events,
                f"{each.events / counts.events:.1%}",
                round(each.bytes / each.events),
                f"{each.bytes / total:.1%}",
            )
            for name, each in sorted(counts.types.items(), key=lambda item: -item[1].events)
        ],
    )
    for notice in counts.notices:
        remark(notice)


RANKS_WHOLE = 8
"""Of more ranks than so many, the sound ones have a line each."""


def print_reports(reports: Sequence[RankReport]) -> None:
    """Rank by rank; of many, those first that something is wrong with."""
    if len(reports) <= RANKS_WHOLE:
        told, sound = list(reports), []
    else:
        told = [each for each in reports if each.has_findings]
        sound = [each for each in reports if not each.has_findings]
    for place, each in enumerate(told):
        if place:
            say()
        print_report(each)
    print_lines([""] if told and sound else [])
    for each in sound:
        print_lines([_summary(each), *(f"  - {notice}" for notice in _notices(each))])


def print_report(report: RankReport) -> None:
    """The verdict on one rank, file by file, then what is wrong (`!`) and what is worth knowing (`-`)."""
    columns = ("segment", "form", "verdict", "epoch", "first", "last", "events", "frames", "lost", "bytes")
    rows = [_segment_row(each) for each in report.segments]
    print_table(columns, rows, title=_summary(report))
    if report.snapshots:
        say()
        rows = [(each.name, each.verdict, each.seq, bytes_text(each.bytes)) for each in report.snapshots]
        print_table(("snapshot", "verdict", "after event", "bytes"), rows)
    print_lines([f"  ! {problem}" for problem in _problems(report)])
    print_lines([f"  - {notice}" for notice in _notices(report)])


def _summary(report: RankReport) -> str:
    events = sum(each.events for each in report.segments)
    lost = sum(each.lost for each in report.segments)
    verdict = "has findings" if report.has_findings else "is sound"
    summary = f"rank {report.rank} {verdict}: {count_of(events, 'event')} in {count_of(len(report.segments), 'segment')}"
    summary += f", {count_text(lost)} lost" if lost else ""
    summary += f"; process {report.writer} may be writing it" if report.writer else ""
    return summary


def _segment_row(each: SegmentReport) -> tuple[object, ...]:
    last = each.seq_last or None
    size = bytes_text(each.bytes)
    return (
        each.name, each.form, each.verdict, each.epoch, each.seq_first, last, each.events, each.frames, each.lost, size
    )  # fmt: skip


def _problems(report: RankReport) -> Iterator[str]:
    yield from report.problems
    for each in report.segments:
        if each.verdict.is_finding:
            yield from (f"{each.name}: {problem}" for problem in each.problems)
    yield from (f"{each.name}: {each.problem}" for each in report.snapshots if each.verdict.is_finding)


def _notices(report: RankReport) -> Iterator[str]:
    yield from report.notices
    for each in report.segments:
        yield from each.notices
        if not each.verdict.is_finding:
            yield from each.problems


def print_recovered(done: Sequence[Recovered]) -> None:
    """What was copied and lost, rank by rank."""
    print_table(
        ("rank", "events", "lost", "segments", "snapshots", "folder"),
        [(each.rank, each.events, each.lost, each.segments, each.snapshots, each.folder) for each in done],
    )
    for each in done:
        print_lines([f"  - rank {each.rank}: {notice}" for notice in each.notices])
