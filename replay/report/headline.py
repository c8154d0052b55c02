"""The verdict, first on a page: what triage says of the rank that went wrong first, and a line for each rank."""

from collections.abc import Iterator, Sequence

from radixledger.journal.absent import Absent
from radixledger.replay.counted import counted
from radixledger.replay.report.grid import NUMBER, TEXT, Column, Row, table
from radixledger.replay.report.phrases import Sheet, go, law, shown
from radixledger.replay.triage.many import by_verdict, verdict_of_many
from radixledger.replay.triage.sentences import verdict
from radixledger.replay.triage.triage import KINDS
from radixledger.replay.verdict import RankReport

NOTICES_SHOWN = 6
RANKS = (
    Column("rank"), Column("events", NUMBER), Column("verdict"), Column("first wrong event", TEXT),
    Column("findings", NUMBER), Column("besides", TEXT),
)  # fmt: skip
HEADS = {
    "wrong": "First wrong event", "turned down": "A caller was wrong", "leak": "A leak", "damaged": "Damaged",
    "unreadable": "Cannot be read",
}  # fmt: skip


def headline(sheets: Sequence[Sheet], absent: Sequence[Absent] = ()) -> str:
    """What is not here, the banner and the table of ranks."""
    gone = "".join(f"<p>{shown(_sentence(each.sentence()))}.</p>" for each in absent)
    first = (
        f'<div class="banner bad" role="status"><strong>&#10005; Incomplete</strong>{gone}</div>'
        if gone
        else ""
    )
    return f"{first}{_banner(sheets)}{_ranks(sheets)}"


def _ranks(sheets: Sequence[Sheet]) -> str:
    """The table of ranks; of many, those that are clean are folded away."""
    rows = {id(sheet.told): _row(place, sheet) for place, sheet in enumerate(sheets)}
    apart, alike = by_verdict([sheet.told for sheet in sheets])
    shown_rows = table(RANKS, [rows[id(each)] for each in apart], kind="ranks") if apart else ""
    if not alike:
        return shown_rows
    one_run = len({each.folder for each in alike}) == 1
    text = shown(_sentence(verdict_of_many(alike, others=bool(apart), one_run=one_run)))
    inside = table(RANKS, [rows[id(each)] for each in alike], kind="ranks")
    return f"{shown_rows}<details><summary>{text}</summary>{inside}</details>"


def _banner(sheets: Sequence[Sheet]) -> str:
    place = min(range(len(sheets)), key=lambda each: _badness(sheets[each]))
    sheet = sheets[place]
    told = sheet.told
    sentences = "".join(f"<p>{shown(_sentence(each))}</p>" for each in verdict(told))
    if told.kind == "clean":
        events = sum(each.report.events for each in sheets)
        text = f"{events:,} events on {counted(len(sheets), 'rank')}: every law holds, and what was recorded agrees."
        return f'<div class="banner good" role="status"><strong>&#10003; Clean</strong><p>{text}</p></div>'
    for other in sheets:
        if told.kind == other.told.kind == "damaged" and other is not sheet:
            sentences += f"<p>{shown(other.label)}: {shown(' '.join(verdict(other.told)))}</p>"
    if told.kind != "damaged":
        sentences += _others(sheets, sheet)
    where = "" if len(sheets) == 1 else f", {shown(sheet.label)}"
    seq = sheet.first_seq
    event = f": {go(place, seq, f'event {seq:,}')}" if seq else ""
    return f'<div class="banner bad" role="status"><strong>&#10005; {HEADS[told.kind]}{where}{event}</strong>{sentences}</div>'


def _others(sheets: Sequence[Sheet], first: Sheet) -> str:
    """Whom else something is to be said of, by kind; the table says what."""
    found = [sheet for sheet in sheets if sheet is not first and sheet.told.kind != "clean"]
    by_kind = {kind: [sheet.label for sheet in found if sheet.told.kind == kind] for kind in KINDS}
    told = "; ".join(f"{kind}: {', '.join(labels)}" for kind, labels in by_kind.items() if labels)
    return f"<p>Beside it {shown(told)}.</p>" if told else ""


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def _badness(sheet: Sheet) -> tuple[int, int]:
    """What is worst, and of that what came first by step."""
    return KINDS.index(sheet.told.kind), sheet.told.step


def _row(place: int, sheet: Sheet) -> Row:
    report, explained = sheet.report, sheet.told.explained
    first = "&#8212;"
    if explained is not None:
        first = go(place, explained.first.seq, f"event {explained.first.seq:,}")
        first += f", step {explained.first.step}: {law(explained.first.law)}"
    elif sheet.first_seq:
        first = go(place, sheet.first_seq, f"event {sheet.first_seq:,}")
    found = sum(report.broken.values())
    besides = shown("; ".join(_besides(report, known=sheet.told.ending.known)))
    return shown(sheet.label), f"{report.events:,}", sheet.told.kind, first, f"{found:,}", besides


def _besides(report: RankReport, *, known: bool) -> Iterator[str]:
    if report.gaps:
        yield f"{report.lost_words} lost in {counted(report.gaps, 'gap')}, {report.unjudged:,} behind them can be judged by their pages alone"
    if known and not report.closed and not report.unreadable:
        yield "not closed by its writer"
    if report.refusals:
        told = sorted(report.refusals.items(), key=lambda each: -each[1])[:4]
        yield "refused commands: " + ", ".join(f"{why} {many:,}" for why, many in told)
    if report.unreadable:
        yield f"unreadable from here on: {report.unreadable}"
    yield from report.notices[:NOTICES_SHOWN]
