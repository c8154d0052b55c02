"""The tables of a page: what led to the first wrong event, all findings, and what is at full detail."""

from collections.abc import Iterator, Sequence

from radixledger.journal.events import Opened
from radixledger.replay.report.grid import NUMBER, TEXT, Column, Row, table
from radixledger.replay.report.phrases import Sheet, go, law, shown
from radixledger.replay.report.ranges import Range
from radixledger.replay.triage.astray import Got
from radixledger.replay.triage.causal_slice import SliceEvent
from radixledger.replay.verdict import Told

LAWS_SHOWN = 12
PAGES_SHOWN = 12
GOT_AT_ONCE = 10
SHOWN_AT_ONCE = 8
"""Findings before a fold; what follows the first is often its consequence."""

_EVENT, _STEP = Column("event", NUMBER), Column("step", NUMBER)
SLICE = (_EVENT, _STEP, Column("what"), Column("why"), Column("did", TEXT))
GOT = (Column("request", NUMBER), Column("id"), _EVENT, _STEP, Column("pages", TEXT))
TURNED_DOWN = (_EVENT, _STEP, Column("reason"), Column("why"), Column("what", TEXT))
LEAKS = (
    Column("what"), Column("pages", NUMBER), Column("which", TEXT), Column("held by"), Column("since event", NUMBER),
    Column("why it is a leak", TEXT),
)  # fmt: skip
FOUND = (_EVENT, _STEP, Column("law"), Column("what", TEXT), Column("pages", TEXT))
DETAIL = (
    Column("rank"), Column("served as", TEXT), Column("at full detail, event by event", TEXT), Column("summarised", TEXT),
    Column("requests", TEXT),
)  # fmt: skip


def findings(place: int, sheet: Sheet) -> str:
    """What was found on a rank and what led to it; empty where nothing was."""
    parts = "".join(
        [
            _slice(place, sheet),
            _got(place, sheet),
            _scene(sheet),
            _turned_down(place, sheet),
            _leaks(place, sheet),
            _found(place, sheet),
        ]
    )
    return f"<h3>{shown(sheet.label)}</h3>{parts}" if parts else ""


def _slice(place: int, sheet: Sheet) -> str:
    explained = sheet.told.explained
    if explained is None:
        return ""
    events = [*explained.slice.events, *explained.after]
    wrong = {at for at, each in enumerate(events) if each.wrong}
    told = table(SLICE, [_slice_row(place, each) for each in events], wrong=wrong)
    left = ", ".join(f"{many:,} more of {thing}" for thing, many in explained.slice.left_out.items())
    more = f"<p class=soft>Left out: {shown(left)}.</p>" if left else ""
    return f"<h4>What led to it, and what came of it</h4>{told}{more}"


def _slice_row(place: int, event: SliceEvent) -> Row:
    did = ("<b>wrong:</b> " if event.wrong else "") + shown("; ".join(event.what))
    return go(place, event.seq, f"{event.seq:,}"), f"{event.step:,}", event.event, shown(event.cause), did


def _got(place: int, sheet: Sheet) -> str:
    """The requests that were handed pages of the wrong event next, where they are several; all of them."""
    explained = sheet.told.explained
    if explained is None or len(explained.astray.got) < 2:
        return ""
    got = explained.astray.got
    first, later = (
        table(GOT, [row for each in some for row in _got_rows(place, each)])
        for some in (got[:GOT_AT_ONCE], got[GOT_AT_ONCE:])
    )
    return f"<h4>Requests that got its pages next: answers to look at</h4>{first}" + (
        f"<details><summary>{len(got) - GOT_AT_ONCE:,} more</summary>{later}</details>"
        if len(got) > GOT_AT_ONCE
        else ""
    )


def _got_rows(place: int, got: Got) -> Iterator[Row]:
    """One for each event that handed the request some."""
    for each in got.handed:
        pages = "; ".join(f"{pool} {_first(pages)}" for pool, pages in each.pages.items())
        yield str(got.request), shown(got.rid), go(place, each.seq, f"{each.seq:,}"), f"{each.step:,}", pages


def _first(pages: Sequence[int], count: int = 0) -> str:
    """The first pages, and how many more there are; count: of all, where `pages` are the first of them."""
    many = max(count, len(pages))
    more = f" and {many - PAGES_SHOWN:,} more" if many > PAGES_SHOWN else ""
    return ", ".join(map(str, pages[:PAGES_SHOWN])) + more


def _scene(sheet: Sheet) -> str:
    explained = sheet.told.explained
    if explained is None:
        return ""
    lines = [
        f"{each.page}: {each.account}, since event {each.since:,}"
        + (f", mapped to SWA page {each.mapped_to}" if each.mapped_to else "")
        for each in explained.holders
    ]
    lines += [
        f"request {each.request} ({each.rid}): {each.state}"
        + (
            ""
            if each.length is None
            else f", {each.length:,} tokens, {each.in_the_tree:,} of them in the tree"
        )
        for each in explained.requests
    ]
    lines += [
        f"device step {each.step} was running: {'; '.join(each.uses) or 'it touches none of these pages'}"
        for each in explained.steps
    ] or ["no device step was told to run"]
    return "<h4>Just before it</h4><ul>" + "".join(f"<li>{shown(each)}</li>" for each in lines) + "</ul>"


def _turned_down(place: int, sheet: Sheet) -> str:
    rows = [
        (go(place, each.seq, f"{each.seq:,}"), f"{each.step:,}", shown(each.reason), shown(each.cause), shown(each.detail))
        for each in sheet.told.ending.turned_down
    ]  # fmt: skip
    return f"<h4>Commands that gave up what was not theirs</h4>{table(TURNED_DOWN, rows)}" if rows else ""


def _leaks(place: int, sheet: Sheet) -> str:
    rows = [
        (
            shown(each.what), f"{each.page_count:,}", _first(each.pages, each.page_count), shown(each.holder),
            go(place, each.since, f"{each.since:,}") if each.since else "", shown(each.why),
        )
        for each in sheet.told.ending.leaks
    ]  # fmt: skip
    return f"<h4>Leaks</h4>{table(LEAKS, rows)}" if rows else ""


def _found(place: int, sheet: Sheet) -> str:
    report = sheet.report
    if not report.findings:
        return ""
    more = sum(report.broken.values()) - len(report.findings)
    laws = sorted(report.broken.items(), key=lambda each: -each[1])[:LAWS_SHOWN]
    told = ", ".join(f"{law(name)} {many:,}" for name, many in laws)
    rows = [_finding(place, each) for each in report.findings]
    later = table(FOUND, rows[SHOWN_AT_ONCE:]) + (f"<p>and {more:,} more</p>" if more > 0 else "")
    return f"<h4>All findings</h4><p class=soft>By law: {told}</p>{table(FOUND, rows[:SHOWN_AT_ONCE])}" + (
        f"<details><summary>Later ones</summary>{later}</details>" if len(rows) > SHOWN_AT_ONCE else ""
    )


def _finding(place: int, told: Told) -> Row:
    held = (
        "" if told.lawful_at is None else f" (one of events {told.lawful_at + 1:,} to {told.seq:,} broke it)"
    )
    pages = f"{told.pool} {_first(told.pages, told.page_count)}" if told.pages and told.pool else ""
    return (
        go(place, told.seq, f"{told.seq:,}"),
        f"{told.step:,}",
        law(told.law),
        shown(told.detail) + held,
        pages,
    )


def detail(sheets: Sequence[Sheet]) -> str:
    """What the page holds of each rank, and what it leaves out."""
    return (
        table(DETAIL, [_detail_row(sheet) for sheet in sheets])
        + '<p class="soft">A summary shows what was different behind many events: what came and went in between is not in this '
        "page. Owners carry the number of the event that made them so, at any moment. Charts look at every event.</p>"
    )


def _detail_row(sheet: Sheet) -> Row:
    track = sheet.track
    detailed = track.detail
    told = sum(last - first + 1 for first, last in detailed)
    events = track.events
    summaries = sum(1 for packet in track.packets if not packet.tag)
    rest = events - told
    summed = (
        f"{rest:,} events in {summaries:,} summar{'y' if summaries == 1 else 'ies'}"
        if rest > 0
        else "nothing"
    )
    shape = _shape(track.opened) if track.opened else "unknown"
    left = f"; {track.lives_left_out:,} earlier ones left out" if track.lives_left_out else ""
    return (
        shown(sheet.label), shown(shape), _ranges(detailed, told == events), summed, f"{len(track.lives):,}{left}",
    )  # fmt: skip


def _shape(opened: Opened) -> str:
    config = opened.config
    return (
        f"{opened.route}, pages of {config.page_size}, window {config.window_tokens}, {opened.redaction} keys"
    )


def _ranges(ranges: Sequence[Range], everything: bool) -> str:
    if everything:
        return "every event"
    told = [f"{first:,}&#8211;{last:,}" for first, last in ranges[:12]]
    return ", ".join(told) + (f" and {len(ranges) - 12} more" if len(ranges) > 12 else "")
