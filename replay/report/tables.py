"""The tables of a page: what led to the first wrong event, all findings, and what is at full detail."""

from collections.abc import Iterator, Sequence

from radixledger.journal.events import Opened
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
    rows = "".join(_slice_row(place, each) for each in [*explained.slice.events, *explained.after])
    left = ", ".join(f"{many:,} more of {thing}" for thing, many in explained.slice.left_out.items())
    more = f"<p class=soft>Left out: {shown(left)}.</p>" if left else ""
    head = "<th class=n>event<th class=n>step<th>what<th>why<th>did"
    return f"<h4>What led to it, and what came of it</h4>{_table(head, rows)}{more}"


def _slice_row(place: int, event: SliceEvent) -> str:
    did = shown("; ".join(event.what))
    return (
        f"<tr{' class=wrong' if event.wrong else ''}><td class=n>{go(place, event.seq, f'{event.seq:,}')}<td class=n>{event.step:,}"
        f"<td>{event.event}<td>{shown(event.cause)}<td class=text>{'<b>wrong:</b> ' if event.wrong else ''}{did}</tr>"
    )


def _got(place: int, sheet: Sheet) -> str:
    """The requests that were handed pages of the wrong event next, where they are several; all of them."""
    explained = sheet.told.explained
    if explained is None or len(explained.astray.got) < 2:
        return ""
    got = ["".join(_got_rows(place, each)) for each in explained.astray.got]
    head = "<th class=n>request<th>id<th class=n>event<th class=n>step<th>pages"
    later = f"<details><summary>{len(got) - GOT_AT_ONCE:,} more</summary>{_table(head, ''.join(got[GOT_AT_ONCE:]))}</details>"
    return (
        f"<h4>Requests that got its pages next: answers to look at</h4>{_table(head, ''.join(got[:GOT_AT_ONCE]))}"
        + (later if len(got) > GOT_AT_ONCE else "")
    )


def _got_rows(place: int, got: Got) -> Iterator[str]:
    """One for each event that handed the request some."""
    for each in got.handed:
        pages = "; ".join(f"{pool} {_first(pages)}" for pool, pages in each.pages.items())
        yield (
            f"<tr><td class=n>{got.request}<td>{shown(got.rid)}<td class=n>{go(place, each.seq, f'{each.seq:,}')}"
            f"<td class=n>{each.step:,}<td class=text>{pages}</tr>"
        )


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
        f"request {each.request} ({each.rid}): {each.state}, {each.length:,} tokens, {each.in_the_tree:,} of them in the tree"
        for each in explained.requests
    ]
    lines += [
        f"device step {each.step} was running: {'; '.join(each.uses) or 'it touches none of these pages'}"
        for each in explained.steps
    ] or ["no device step was told to run"]
    return "<h4>Just before it</h4><ul>" + "".join(f"<li>{shown(each)}</li>" for each in lines) + "</ul>"


def _turned_down(place: int, sheet: Sheet) -> str:
    rows = "".join(
        f"<tr><td class=n>{go(place, each.seq, f'{each.seq:,}')}<td class=n>{each.step:,}<td>{shown(each.reason)}"
        f"<td>{shown(each.cause)}<td class=text>{shown(each.detail)}</tr>"
        for each in sheet.told.ending.turned_down
    )
    head = "<th class=n>event<th class=n>step<th>reason<th>why<th>what"
    return f"<h4>Commands that gave up what was not theirs</h4>{_table(head, rows)}" if rows else ""


def _leaks(place: int, sheet: Sheet) -> str:
    rows = "".join(
        f"<tr><td>{shown(each.what)}<td class=n>{each.page_count:,}<td class=text>{_first(each.pages, each.page_count)}"
        f"<td>{shown(each.holder)}<td class=n>{go(place, each.since, f'{each.since:,}') if each.since else ''}"
        f"<td class=text>{shown(each.why)}</tr>"
        for each in sheet.told.ending.leaks
    )
    head = "<th>what<th class=n>pages<th>which<th>held by<th class=n>since event<th>why it is a leak"
    return f"<h4>Leaks</h4>{_table(head, rows)}" if rows else ""


def _found(place: int, sheet: Sheet) -> str:
    report = sheet.report
    if not report.findings:
        return ""
    more = sum(report.broken.values()) - len(report.findings)
    laws = sorted(report.broken.items(), key=lambda each: -each[1])[:LAWS_SHOWN]
    told = ", ".join(f"{law(name)} {many:,}" for name, many in laws)
    rows = [_finding(place, each) for each in report.findings]
    head = "<th class=n>event<th class=n>step<th>law<th>what<th>pages"
    later = _table(head, "".join(rows[SHOWN_AT_ONCE:])) + (f"<p>and {more:,} more</p>" if more > 0 else "")
    return (
        f"<h4>All findings</h4><p class=soft>By law: {told}</p>{_table(head, ''.join(rows[:SHOWN_AT_ONCE]))}"
        + (f"<details><summary>Later ones</summary>{later}</details>" if len(rows) > SHOWN_AT_ONCE else "")
    )


def _table(head: str, rows: str) -> str:
    return f'<div class="wide"><table><tr>{head}</tr>{rows}</table></div>'


def _finding(place: int, told: Told) -> str:
    held = (
        "" if told.lawful_at is None else f" (one of events {told.lawful_at + 1:,} to {told.seq:,} broke it)"
    )
    pages = f"{told.pool} {_first(told.pages, told.page_count)}" if told.pages and told.pool else ""
    return (
        f"<tr><td class=n>{go(place, told.seq, f'{told.seq:,}')}<td class=n>{told.step}<td>{law(told.law)}"
        f"<td class=text>{shown(told.detail)}{held}<td class=text>{pages}</tr>"
    )


def detail(sheets: Sequence[Sheet]) -> str:
    """What the page holds of each rank, and what it leaves out."""
    rows = "".join(_detail_row(sheet) for sheet in sheets)
    return (
        '<div class="wide"><table><tr><th>rank<th>served as<th>at full detail, event by event<th>summarised'
        f"<th>requests</tr>{rows}</table></div>"
        '<p class="soft">A summary shows what was different behind many events: what came and went in between is not in this '
        "page. Owners carry the number of the event that made them so, at any moment. Charts look at every event.</p>"
    )


def _detail_row(sheet: Sheet) -> str:
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
        f"<tr><td>{shown(sheet.label)}<td class=text>{shown(shape)}<td class=text>{_ranges(detailed, told == events)}"
        f"<td class=text>{summed}<td class=text>{len(track.lives):,}{left}</tr>"
    )


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
