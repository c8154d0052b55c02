"""The verdict, first on a page: the first wrong event or that there is none, and a line for each rank."""

from collections.abc import Iterator, Sequence

from radixledger.replay.report.phrases import Sheet, count, go, law, shown
from radixledger.replay.verdict import RankReport


def verdict(sheets: Sequence[Sheet]) -> str:
    """The banner and the table of ranks."""
    rows = "".join(_verdict_row(place, sheet) for place, sheet in enumerate(sheets))
    head = (
        "<tr><th>rank<th class=n>events<th>verdict<th>first wrong event<th class=n>findings<th>besides</tr>"
    )
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
            f"{go(place, first.seq, f'event {first.seq:,}')}</strong>"
            f"<p>{law(first.law)}</p><p>{shown(first.detail)}</p></div>"
        )
    if spoiled:
        text = shown(f"{spoiled[0].label}: {spoiled[0].report.unreadable}")
        return f'<div class="banner bad" role="status"><strong>&#10005; Not readable to the end</strong><p>{text}</p></div>'
    return (
        f'<div class="banner good" role="status"><strong>&#10003; Clean</strong><p>{events:,} events on '
        f"{count(len(sheets), 'rank')}: every law holds, and what was recorded agrees.</p></div>"
    )


def _verdict_row(place: int, sheet: Sheet) -> str:
    report = sheet.report
    first = (
        go(place, report.findings[0].seq, f"event {report.findings[0].seq:,}")
        if report.findings
        else "&#8212;"
    )
    if report.findings:
        first += f", step {report.findings[0].step}: {law(report.findings[0].law)}"
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
        yield f"{report.lost:,} events are lost in {count(report.gaps, 'gap')}"
    if not report.closed and not report.unreadable:
        yield "not closed by its writer"
    if report.refusals:
        told = sorted(report.refusals.items(), key=lambda each: -each[1])[:4]
        yield "refused commands: " + ", ".join(f"{why} {many:,}" for why, many in told)
    if report.unreadable:
        yield f"unreadable from here on: {report.unreadable}"
    yield from report.notices[:3]
