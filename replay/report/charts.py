"""The charts of a page: a legend, and for each rank its pools and its time line."""

from collections.abc import Iterator, Sequence

from radixledger.journal.accounts import Pool
from radixledger.replay.counted import counted
from radixledger.replay.report.drawing import ACCOUNTS, WIDTH, accounts_of, capacity_of, chart, lanes
from radixledger.replay.report.packet import Record
from radixledger.replay.report.phrases import Sheet, shown
from radixledger.replay.triage.many import by_verdict

OPEN_AT_ONCE = 4
STRETCHES_SHOWN = 3
UNKNOWN = (
    '<li><span class="key k-unknown"></span><b>not known</b> <span class="soft">behind missing events, until a recorded digest '
    "agrees, a snapshot stands in, or a new epoch begins</span>"
)


def legend(sheets: Sequence[Sheet]) -> str:
    """What the colours mean, from the top of a chart to its bottom; shading, where some is."""
    items = "".join(
        f'<li><span class="key k-{name}"></span><b>{title}</b> <span class="soft">{meaning}</span></li>'
        for name, title, meaning in reversed(ACCOUNTS)
    )
    unknown = UNKNOWN if any(sheet.track.unknown for sheet in sheets) else ""
    return f'<ul class="legend">{items}{unknown}</ul>'


def charts(sheets: Sequence[Sheet]) -> str:
    """The charts of all ranks; of several, those in which nothing was found are folded away, of many behind all others."""
    several = len(sheets) > OPEN_AT_ONCE
    drawn = {
        id(sheet.told): _folded(sheet, _rank(place, sheet))
        if several and sheet.told.kind == "clean"
        else _rank(place, sheet)
        for place, sheet in enumerate(sheets)
    }
    apart, alike = by_verdict([sheet.told for sheet in sheets])
    others = "".join(drawn[id(each)] for each in alike)
    if others:
        others = f"<details><summary>{counted(len(alike), 'clean rank')}</summary>{others}</details>"
    return "".join(drawn[id(each)] for each in apart) + others


def _folded(sheet: Sheet, inside: str) -> str:
    return f"<details><summary>{shown(sheet.label)}, clean</summary>{inside}</details>"


def _rank(place: int, sheet: Sheet) -> str:
    """Every pool of a rank over all its events, and what happened when."""
    track = sheet.track
    if not track.buckets:
        return f'<div class="rank"><h3>{shown(sheet.label)}</h3><p>No event could be read.</p></div>'
    pools = "".join(
        _pool(sheet, pool) for pool in Pool if any(capacity_of(pool, each.numbers) for each in track.buckets)
    )
    marks = "".join(
        f'<span class="name">{many:,} {name if many > 1 else name[:-1]}</span>{lane}'
        for name, many, lane in lanes(track.buckets, track.first_seq)
    )
    return (
        f'<div class="rank" data-track="{place}"><h3>{shown(sheet.label)}</h3>{pools}'
        f'<div class="plot lanes" data-first="{track.first_seq}" data-last="{track.last_seq}">{_wrongs(sheet)}{marks}</div>'
        f'<div class="axis">{_axis(sheet)}</div></div>'
    )


def _axis(sheet: Sheet) -> str:
    """What stands where: the first event, the middle one, the last one, each with its step."""
    track = sheet.track
    middle = track.buckets[len(track.buckets) // 2]
    ends = (track.buckets[0].step, middle.step, track.buckets[-1].step)
    seqs = (track.first_seq, middle.seq, track.last_seq)
    return "".join(f"<span>event {seq:,}, step {step:,}</span>" for seq, step in zip(seqs, ends, strict=True))


def _pool(sheet: Sheet, pool: Pool) -> str:
    track = sheet.track
    size = track.opened.config.page_size if track.opened else 1
    unit = "state slots" if pool is Pool.RECURRENT else f"pages of {counted(size, 'token')}"
    size_told = f"{capacity_of(pool, track.buckets[-1].numbers):,} {unit}"
    return (
        f'<p class="pool"><b>{pool.name}</b><span class="soft">{size_told}; {"; ".join(_said(sheet, pool))}</span></p>'
        f'<div class="plot" data-first="{track.first_seq}" data-last="{track.last_seq}">'
        f"{chart(pool, track.buckets, track.first_seq, track.unknown)}</div>"
    )


def _said(sheet: Sheet, pool: Pool) -> Iterator[str]:
    """What a chart shows, in words."""
    track = sheet.track
    known, last = [each for each in track.buckets if each.known], track.buckets[-1]
    if known:
        fewest = min(known, key=lambda each: each.least_free[pool])
        where = ", where that is known" if track.unknown else ""
        yield f"fewest free{where}: {fewest.least_free[pool]:,}, first by event {fewest.seq:,}"
    if track.unknown:
        told = [f"events {each.since:,} to {each.until:,}" for each in track.unknown[:STRETCHES_SHOWN]]
        more = len(track.unknown) - len(told)
        yield f"not known, and shaded: {', '.join(told)}{f' and {more:,} more stretches' if more else ''}"
    lost = track.unknown[-1].lost_at if track.unknown else 0
    yield f"at the end: {_held(pool, last.numbers) if last.known else f'not known behind the gap of event {lost:,}'}"


def _held(pool: Pool, numbers: Record) -> str:
    """Who has the pages of a pool."""
    end = dict(zip((name for name, _, _ in ACCOUNTS), accounts_of(pool, numbers), strict=True))
    return ", ".join(
        f"{title} {end[name]:,}" for name, title, _ in reversed(ACCOUNTS) if end[name] and name != "reserved"
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
        f'<span class="name">{counted(found, "finding")}</span><div class="wrongs"><svg viewBox="0 0 {WIDTH} 16" '
        f'preserveAspectRatio="none" aria-hidden="true">{spots}</svg></div>'
    )
