"""The tables of a page: findings with the story of the first page concerned, and what is at full detail."""

from collections.abc import Sequence

from radixledger.journal.accounts import describe
from radixledger.journal.events import Opened
from radixledger.replay.report.phrases import Sheet, go, law, shown
from radixledger.replay.report.ranges import Range
from radixledger.replay.verdict import RankReport, Told

LAWS_SHOWN = 12


def findings(place: int, sheet: Sheet) -> str:
    """What was found on a rank; empty where that is nothing."""
    report = sheet.report
    if not report.findings:
        return ""
    rows = "".join(_finding(place, each) for each in report.findings)
    more = sum(report.broken.values()) - len(report.findings)
    rest = f"<p>and {more:,} more</p>" if more > 0 else ""
    laws = sorted(report.broken.items(), key=lambda each: -each[1])[:LAWS_SHOWN]
    told = ", ".join(f"{law(name)} {many:,}" for name, many in laws)
    return (
        f"<h3>{shown(sheet.label)}</h3><p class=soft>By law: {told}</p>"
        f'<div class="wide"><table><tr><th class=n>event<th class=n>step<th>law<th>what<th>pages</tr>{rows}</table></div>'
        f"{rest}{_story(place, report)}"
    )


def _finding(place: int, told: Told) -> str:
    held = "" if told.lawful_at is None else f" (it held after event {told.lawful_at:,})"
    pages = f"{told.pool} {', '.join(map(str, told.pages[:12]))}" if told.pages and told.pool else ""
    return (
        f"<tr><td class=n>{go(place, told.seq, f'{told.seq:,}')}<td class=n>{told.step}<td>{law(told.law)}"
        f"<td class=text>{shown(told.detail)}{held}<td class=text>{pages}</tr>"
    )


def _story(place: int, report: RankReport) -> str:
    if not report.story:
        return ""
    first = report.findings[0]
    rows = "".join(
        f"<tr><td class=n>{go(place, step.seq, f'{step.seq:,}')}<td class=n>{step.step}<td>{step.event}<td>{describe(step.giver)}"
        f"<td>{describe(step.taker)}<td class=text>{shown(step.rid)}<td>{shown(step.cause)}<td class=text>{shown(step.wrong)}</tr>"
        for step in report.story
    )
    head = "<th class=n>event<th class=n>step<th>what<th>from<th>to<th>request<th>why<th>wrong"
    return (
        f"<h3>{first.pool} page {first.pages[0]} until then</h3>"
        f'<div class="wide"><table><tr>{head}</tr>{rows}</table></div>'
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
