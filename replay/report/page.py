"""The page itself: verdict, charts and findings as HTML that needs no script, and the data that a script shows moments of.

Rule: every text that a journal could have brought goes through `shown`, and the page's policy forbids any script and style
but its own, and any request. So a hostile journal can be looked at.
"""

import base64
import hashlib
import unicodedata
from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files
from string import Template

from msgspec import Struct

from radixledger.journal.accounts import Pool, describe
from radixledger.journal.events import Opened
from radixledger.replay.report.drawing import ACCOUNTS, WIDTH, accounts_of, capacity_of, chart, lanes
from radixledger.replay.report.ranges import Range
from radixledger.replay.report.track import Track
from radixledger.replay.verdict import RankReport, Told

SCRIPTS = ("varints.js", "fold.js", "words.js", "closeup.js", "pagemap.js", "treemap.js", "panel.js", "moment.js")
"""In the order in which they stand in the page, as one script."""

LAWS_SHOWN = 12


class Sheet(Struct):
    """One rank on a page: whose it is, what was collected and found, and its data for the browser (empty: there is none)."""

    label: str
    track: Track
    report: RankReport
    bundle: str


def page(title: str, sheets: Sequence[Sheet], made: str) -> str:
    """The whole page as HTML."""
    style = _asset("page.css")
    script = "\n".join(map(_asset, SCRIPTS))
    assert "</" not in script, "a script that ends its own element"
    return Template(_asset("page.html")).substitute(
        policy=_policy(script, style),
        title=shown(title),
        style=style,
        verdict=_verdict(sheets),
        legend=_legend(),
        charts="".join(_rank(place, sheet) for place, sheet in enumerate(sheets)),
        findings="".join(_findings(place, sheet) for place, sheet in enumerate(sheets)) or "<p>There are none.</p>",
        detail=_detail(sheets),
        loading="Unpacking the run&#8230;",
        made=shown(made),
        data="\n".join(
            f'<script type="text/plain" class="track" data-track="{place}" data-label="{shown(sheet.label)}">{sheet.bundle}</script>'
            for place, sheet in enumerate(sheets)
            if sheet.bundle
        ),
        script=script,
    )


def shown(text: str) -> str:
    """A text of anybody's as HTML: nothing in it is markup, and what would change how it reads is made visible."""
    return escape("".join("\ufffd" if unicodedata.category(each) in _UNSEEN else each for each in text))


_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def _asset(name: str) -> str:
    return files(__package__ or "").joinpath(name).read_text("utf-8")


def _law(name: str) -> str:
    """The name of a law, which may be broken into lines between its words."""
    return f"<code>{shown(name).replace('_', '_<wbr>')}</code>"


def _policy(script: str, style: str) -> str:
    digests = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style)
    ]
    return (
        f"default-src 'none'; script-src 'sha256-{digests[0]}'; style-src 'sha256-{digests[1]}'; "
        "connect-src 'none'; base-uri 'none'; form-action 'none'"
    )


# -- the verdict -----------------------------------------------------------------------------------------------


def _verdict(sheets: Sequence[Sheet]) -> str:
    rows = "".join(_verdict_row(place, sheet) for place, sheet in enumerate(sheets))
    head = "<tr><th>rank<th class=n>events<th>verdict<th>first wrong event<th class=n>findings<th>besides</tr>"
    return f'{_banner(sheets)}<div class="wide"><table>{head}{rows}</table></div>'


def _banner(sheets: Sequence[Sheet]) -> str:
    events = sum(sheet.report.events for sheet in sheets)
    wrong = [(place, sheet) for place, sheet in enumerate(sheets) if sheet.report.findings]
    spoiled = [sheet for sheet in sheets if sheet.report.unreadable]
    if wrong:
        place, sheet = min(wrong, key=lambda each: each[1].report.findings[0].step)
        first = sheet.report.findings[0]
        more = "" if len(sheets) == 1 else f"{shown(sheet.label)}, "
        return (
            f'<div class="banner bad" role="status"><strong>&#10005; First wrong event: {more}'
            f"{_go(place, first.seq, f'event {first.seq:,}')}</strong>"
            f"<p>{_law(first.law)}</p><p>{shown(first.detail)}</p></div>"
        )
    if spoiled:
        text = shown(f"{spoiled[0].label}: {spoiled[0].report.unreadable}")
        return f'<div class="banner bad" role="status"><strong>&#10005; Not readable to the end</strong><p>{text}</p></div>'
    return (
        f'<div class="banner good" role="status"><strong>&#10003; Clean</strong><p>{events:,} events on '
        f"{_count(len(sheets), 'rank')}: every law holds, and what was recorded agrees.</p></div>"
    )


def _verdict_row(place: int, sheet: Sheet) -> str:
    report = sheet.report
    first = _go(place, report.findings[0].seq, f"event {report.findings[0].seq:,}") if report.findings else "&#8212;"
    if report.findings:
        first += f", step {report.findings[0].step}: {_law(report.findings[0].law)}"
    found = sum(report.broken.values())
    return (
        f"<tr><td>{shown(sheet.label)}<td class=n>{report.events:,}<td>{_word(report)}<td class=text>{first}"
        f"<td class=n>{found:,}<td class=text>{shown('; '.join(_besides(report)))}</tr>"
    )


def _word(report: RankReport) -> str:
    if report.unreadable:
        return "unreadable"
    if report.gaps:
        return "not clean: events are missing"
    return "clean" if report.clean else "not clean"


def _besides(report: RankReport) -> Iterator[str]:
    if report.gaps:
        yield f"{report.lost:,} events are lost in {_count(report.gaps, 'gap')}"
    if not report.closed and not report.unreadable:
        yield "not closed by its writer"
    if report.refusals:
        told = sorted(report.refusals.items(), key=lambda each: -each[1])[:4]
        yield "refused commands: " + ", ".join(f"{why} {many:,}" for why, many in told)
    if report.unreadable:
        yield f"unreadable from here on: {report.unreadable}"
    yield from report.notices[:3]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _go(place: int, seq: int, text: str) -> str:
    """A way to an event, where scripts are on."""
    return f'<button type="button" class="link go" data-track="{place}" data-seq="{seq}">{text}</button>'


# -- charts ----------------------------------------------------------------------------------------------------


def _legend() -> str:
    items = "".join(
        f'<li><span class="key k-{name}"></span><b>{title}</b> <span class="soft">{meaning}</span></li>'
        for name, title, meaning in reversed(ACCOUNTS)
    )
    return f'<ul class="legend">{items}</ul>'


def _rank(place: int, sheet: Sheet) -> str:
    track = sheet.track
    if not track.buckets:
        return f'<div class="rank"><h3>{shown(sheet.label)}</h3><p>No event could be read.</p></div>'
    pools = "".join(
        _pool(sheet, pool)
        for pool in Pool
        if any(capacity_of(pool, each.numbers) for each in track.buckets)
    )
    marks = "".join(f'<span class="name">{count:,} {name}</span>{lane}' for name, count, lane in lanes(track.buckets, track.first_seq))
    return (
        f'<div class="rank" data-track="{place}"><h3>{shown(sheet.label)}</h3>{pools}'
        f'<div class="plot lanes" data-first="{track.first_seq}" data-last="{track.last_seq}">{_wrongs(sheet)}{marks}</div>'
        f'<div class="axis"><span>event {track.first_seq:,}</span><span>event {track.last_seq:,}</span></div></div>'
    )


def _pool(sheet: Sheet, pool: Pool) -> str:
    track = sheet.track
    size = track.opened.config.page_size if track.opened else 1
    unit = "state slots" if pool is Pool.RECURRENT else f"pages of {_count(size, 'token')}"
    least = min(range(len(track.buckets)), key=lambda each: track.buckets[each].least_free[pool])
    end = dict(zip((name for name, _, _ in ACCOUNTS), accounts_of(pool, track.buckets[-1].numbers), strict=True))
    held = ", ".join(
        f"{title} {end[name]:,}" for name, title, _ in reversed(ACCOUNTS) if end[name] and name != "reserved"
    )
    fewest = track.buckets[least]
    return (
        f'<p class="pool"><b>{pool.name}</b><span class="soft">{capacity_of(pool, fewest.numbers):,} {unit}; '
        f"fewest free: {fewest.least_free[pool]:,}, first by event {fewest.seq:,}; at the end: {held}</span></p>"
        f'<div class="plot" data-first="{track.first_seq}" data-last="{track.last_seq}">'
        f"{chart(pool, track.buckets, track.first_seq)}</div>"
    )


def _wrongs(sheet: Sheet) -> str:
    """Findings as triangles on the time line."""
    track, report = sheet.track, sheet.report
    if not report.findings:
        return ""
    span = max(1, track.last_seq - track.first_seq)
    spots = "".join(
        f'<line class="w" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="16" vector-effect="non-scaling-stroke"/>'
        for x in sorted({round(WIDTH * (each.seq - track.first_seq) / span, 1) for each in report.findings})
    )
    found = sum(report.broken.values())
    return (
        f'<span class="name">{_count(found, "finding")}</span><div class="wrongs"><svg viewBox="0 0 {WIDTH} 16" '
        f'preserveAspectRatio="none" aria-hidden="true">{spots}</svg></div>'
    )


# -- tables ----------------------------------------------------------------------------------------------------


def _findings(place: int, sheet: Sheet) -> str:
    report = sheet.report
    if not report.findings:
        return ""
    rows = "".join(_finding(place, each) for each in report.findings)
    more = sum(report.broken.values()) - len(report.findings)
    rest = f"<p>and {more:,} more</p>" if more > 0 else ""
    laws = sorted(report.broken.items(), key=lambda each: -each[1])[:LAWS_SHOWN]
    told = ", ".join(f"{_law(law)} {many:,}" for law, many in laws)
    return (
        f"<h3>{shown(sheet.label)}</h3><p class=soft>By law: {told}</p>"
        f'<div class="wide"><table><tr><th class=n>event<th class=n>step<th>law<th>what<th>pages</tr>{rows}</table></div>'
        f"{rest}{_story(place, report)}"
    )


def _finding(place: int, told: Told) -> str:
    held = "" if told.lawful_at is None else f" (it held after event {told.lawful_at:,})"
    pages = f"{told.pool} {', '.join(map(str, told.pages[:12]))}" if told.pages and told.pool else ""
    return (
        f"<tr><td class=n>{_go(place, told.seq, f'{told.seq:,}')}<td class=n>{told.step}<td>{_law(told.law)}"
        f"<td class=text>{shown(told.detail)}{held}<td class=text>{pages}</tr>"
    )


def _story(place: int, report: RankReport) -> str:
    if not report.story:
        return ""
    first = report.findings[0]
    rows = "".join(
        f"<tr><td class=n>{_go(place, step.seq, f'{step.seq:,}')}<td class=n>{step.step}<td>{step.event}<td>{describe(step.giver)}"
        f"<td>{describe(step.taker)}<td class=text>{shown(step.rid)}<td>{shown(step.cause)}<td class=text>{shown(step.wrong)}</tr>"
        for step in report.story
    )
    head = "<th class=n>event<th class=n>step<th>what<th>from<th>to<th>request<th>why<th>wrong"
    return (
        f"<h3>{first.pool} page {first.pages[0]} until then</h3>"
        f'<div class="wide"><table><tr>{head}</tr>{rows}</table></div>'
    )


def _detail(sheets: Sequence[Sheet]) -> str:
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
    count = sum(last - first + 1 for first, last in detailed)
    events = track.events
    summaries = sum(1 for packet in track.packets if not packet.tag)
    rest = events - count
    summed = f"{rest:,} events in {_count(summaries, 'summary').replace('summarys', 'summaries')}" if rest > 0 else "nothing"
    shape = _shape(track.opened) if track.opened else "unknown"
    left = f"; {track.lives_left_out:,} earlier ones left out" if track.lives_left_out else ""
    return (
        f"<tr><td>{shown(sheet.label)}<td class=text>{shown(shape)}<td class=text>{_ranges(detailed, count == events)}"
        f"<td class=text>{summed}<td class=text>{len(track.lives):,}{left}</tr>"
    )


def _shape(opened: Opened) -> str:
    config = opened.config
    return f"{opened.route}, pages of {config.page_size}, window {config.window_tokens}, {opened.redaction} keys"


def _ranges(ranges: Sequence[Range], everything: bool) -> str:
    if everything:
        return "every event"
    told = [f"{first:,}&#8211;{last:,}" for first, last in ranges[:12]]
    return ", ".join(told) + (f" and {len(ranges) - 12} more" if len(ranges) > 12 else "")
