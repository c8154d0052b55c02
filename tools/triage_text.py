"""What triage found, for people: the verdict first, then what it rests on, then what to run next.

Rule: each rank says what it is before it says why; a section that has nothing to say is left out.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from radixledger.journal.absent import Absent
from radixledger.journal.units import Rank
from radixledger.replay.triage.align import span_of_step
from radixledger.replay.triage.astray import Astray, Got
from radixledger.replay.triage.causal_slice import SliceEvent
from radixledger.replay.triage.ending import Ending
from radixledger.replay.triage.explained import Explained
from radixledger.replay.triage.many import by_verdict, verdict_of_many
from radixledger.replay.triage.sentences import law_words, verdict
from radixledger.replay.triage.triage import KINDS, RankTriage
from radixledger.tools.console import (
    count_of,
    count_text,
    print_facts,
    print_lines,
    print_title,
    stdout,
)
from radixledger.tools.event_text import ranges, time_text
from radixledger.tools.next_commands import next_commands
from radixledger.tools.printable import say
from radixledger.tools.run_argument import as_given
from radixledger.tools.table import print_table

LAST_SHOWN = 6
PAGE_RUNS = 12
GOT_SHOWN = 10
HANDED_SHOWN = 4


def print_triage(told: list[RankTriage], absent: Sequence[Absent] = ()) -> None:
    """Everything: ranks that are not here, then rank by rank, the worst first; of wrong ones that whose first wrong event has the lowest step.

    Of clean ranks beside others the verdict is enough, and of many one verdict. A command to run next is told once.
    """
    told = sorted(told, key=_order)
    runs = len({each.run for each in told})
    names = dict(zip(map(id, told), _names(told), strict=True))
    apart, alike = by_verdict(told)
    print_lines([f"{each.sentence()}." for each in absent])
    print_lines([f"{names[id(each)]}: {' '.join(verdict(each))}" for each in apart])
    if alike:
        print_lines([verdict_of_many(alike, others=bool(apart), one_run=runs == 1)])
    if runs > 1:
        print_lines([f"these are journals of {runs} runs: steps of one run are not those of another"])
    if len(told) > 1 and apart:
        _print_ranks(apart, [names[id(each)] for each in apart], alike)
    all_clean = all(each.kind == "clean" for each in told)
    said: set[tuple[str, str]] = set()
    for each in apart:
        if each.kind != "clean" or all_clean:
            name = f"{names[id(each)]}, " if len(told) > 1 else ""
            _print_rank(each, name)
            if not all_clean:
                _print_next([one for one in next_commands(each) if one not in said], name)
                said.update(next_commands(each))
    if all_clean:  # these commands are about whole runs
        _print_next(list(dict.fromkeys(one for each in apart for one in next_commands(each))), "")


def _names(told: list[RankTriage]) -> list[str]:
    """Ranks by number; where that does not tell them apart, by the run too, or by the folder that they lie in."""
    by_rank, by_run = (
        [f"rank {each.rank}" for each in told],
        [f"{each.run}, rank {each.rank}" for each in told],
    )
    if len(set(by_rank)) == len(told) and len({each.run for each in told}) == 1:
        return by_rank
    if len(set(by_run)) == len(told):
        return by_run
    return [f"{as_given(Path(each.folder))}, rank {each.rank}" for each in told]


def _order(told: RankTriage) -> tuple[int, int, str, int]:
    return KINDS.index(told.kind), told.step if told.explained else 0, told.run, told.rank


def _print_ranks(told: list[RankTriage], names: list[str], alike: list[RankTriage]) -> None:
    """Ranks beside each other at the step in which the first of them went wrong; those `alike` are one row."""
    wrong = [each for each in told if each.explained]
    step = min(each.step for each in wrong) if wrong else None
    columns = ["rank", "events", "last step", "verdict", "first wrong"]
    if step is not None:
        columns.append(f"its events in step {step}")
    rows: list[list[object]] = []
    lines = []
    for each, name in zip(told, names, strict=True):
        number, first = name.removeprefix("rank "), each.explained.first if each.explained else None
        found = f"event {count_text(first.seq)}, step {first.step}" if first else ""
        among = [_span(each, step)] if step is not None else []
        rows.append([number, each.report.events, each.ending.last_step, each.kind, found, *among])
        lines.append(
            f"  {name}: {each.kind}{', first wrong: ' * bool(found)}{found}; {count_of(each.report.events, 'event')}, "
            f"last step {each.ending.last_step}{''.join(f', {columns[-1]}: {span}' for span in among)}"
        )
    if alike:
        steps = sorted(each.ending.last_step for each in alike)
        events = sum(each.report.events for each in alike)
        last = f"{count_text(steps[0])} to {count_text(steps[-1])}"
        rows.append([f"{len(alike)} others", events, last, "clean"])
        rows[-1] += [""] * (len(columns) - len(rows[-1]))
        lines.append(f"  {len(alike)} other ranks: clean; {count_of(events, 'event')}, last steps {last}")
    print_table(columns, rows, title="\nranks, by step", otherwise=lines)


def _span(told: RankTriage, step: int) -> str:
    span = span_of_step(Path(told.folder), Rank(told.rank), step)
    if span is None or span.seq_last < span.seq_first:
        return "none"
    return f"{span.seq_first}-{span.seq_last}"


def _print_rank(told: RankTriage, name: str) -> None:
    _print_damage(told, name)
    if told.explained is not None:
        _print_explained(told.explained, name)
    else:
        _print_ending(told.ending, told, name)


def _print_next(commands: list[tuple[str, str]], name: str) -> None:
    if not commands:
        return
    print_title(f"{name}next")
    width = max(len(each) for each, _ in commands)
    if all(width + len(purpose) + 6 <= stdout().width for _, purpose in commands):
        lines = [f"  {each:<{width}}  # {purpose}" for each, purpose in commands]
    else:
        lines = [line for each, purpose in commands for line in (f"  # {purpose}", f"  {each}")]
    for line in lines:  # never wrapped: they are there to be copied
        say(line)


def _print_damage(told: RankTriage, name: str) -> None:
    report = told.report
    lines = list(dict.fromkeys([*told.damage, *report.notices]))
    if report.gaps or report.unjudged:
        lines.append(
            f"{report.lost_words} lost in {count_of(report.gaps, 'gap')}; {count_of(report.unjudged, 'event')} behind "
            "the damage can be judged by their pages alone"
        )
    if report.unreadable:
        lines.append(f"unreadable: {report.unreadable}")
    if lines:
        print_title(f"{name}damage, read around")
        print_lines([f"  {line}" for line in lines])


def _print_explained(explained: Explained, name: str) -> None:
    first = explained.first
    print_facts(
        {
            "event": f"{count_text(first.seq)}, {explained.event}",
            "time, step": f"{time_text(first.time_ns)}, step {first.step}",
            "cause": explained.cause or "none told",
            "law": law_words(first.law),
            "what was found": first.detail,
            **({"pages": f"{first.pool} {_pages(first.pages, first.page_count)}"} if first.pages else {}),
            **({"also broken": _also(explained)} if explained.also else {}),
            "about": ", ".join(explained.about) or "nothing that it names",
        },
        title=f"\n{name}first wrong event",
    )
    _print_slice(explained, name)
    _print_got(explained.astray, name)
    _print_scene(explained, name)


def _also(explained: Explained) -> str:
    """What else the event broke: each law once, with what it says first."""
    told: dict[str, list[str]] = {}
    for each in explained.also:
        told.setdefault(each.law, []).append(each.detail)
    return "; ".join(
        f"{law_words(law)}: {first}" + (f", and {count_text(len(more))} more" if more else "")
        for law, (first, *more) in told.items()
    )


def _pages(pages: list[int], count: int) -> str:
    """Pages as runs, and how many more there are than those that were kept."""
    return ranges(pages, PAGE_RUNS) + (f", of {count_text(count)}" if count > len(pages) else "")


def _print_slice(explained: Explained, name: str) -> None:
    story = explained.slice
    events = [*story.events, *explained.after]
    title = f"\n{name}what led to it, and what came of it"
    print_table(
        _SLICE,
        [_slice_row(each) for each in events],
        title=title,
        otherwise=[_slice_line(each) for each in events],
    )
    left = [f"{count_of(many, 'more event')} of {thing}" for thing, many in story.left_out.items()]
    if left:
        print_lines([f"left out: {', '.join(left)}"])
    if story.unfinished:
        print_lines(["the look back ended before the beginning of all of them"])


def _print_got(astray: Astray, name: str) -> None:
    """Whose answers are to be looked at; one that the verdict names already is not told again."""
    if len(astray.got) < 2:
        return
    print_table(
        ("request", "id", "event", "step", "pages"),
        [row for each in astray.got[:GOT_SHOWN] for row in _rows_got(each)],
        title=f"\n{name}requests that got its pages next",
    )
    more = len(astray.got) - GOT_SHOWN
    if more > 0:
        print_lines([f"and {count_of(more, 'more request')}; --json names them all"])
    if astray.cut:
        print_lines(["the look ahead ended before all of its pages were handed out again"])


def _rows_got(got: Got) -> Iterator[tuple[str, ...]]:
    """A row for each event that handed it some; of a request that got them one by one the first, and how many more."""
    shown = got.handed[:HANDED_SHOWN]
    for each in shown:
        pages = ", ".join(f"{pool} {ranges(pages, PAGE_RUNS)}" for pool, pages in each.pages.items())
        yield str(got.request), got.rid, count_text(each.seq), str(each.step), pages
    more = len(got.handed) - len(shown)
    if more:
        pages = count_of(got.count - Got(0, "", shown).count, "more page")
        yield str(got.request), got.rid, "", "", f"{pages} in {count_of(more, 'later event')}"


_SLICE = ("event", "step", "what", "why", "did")


def _slice_row(event: SliceEvent) -> Sequence[object]:
    return count_text(event.seq), str(event.step), event.event, event.cause, _did(event)


def _slice_line(event: SliceEvent) -> str:
    why = f" ({event.cause})" if event.cause else ""
    return f"  event {count_text(event.seq)}, step {event.step}: {event.event}{why}: {_did(event)}"


def _did(event: SliceEvent) -> str:
    return ("wrong: " if event.wrong else "") + "; ".join(event.what)


def _print_scene(explained: Explained, name: str) -> None:
    if explained.holders:
        rows = [
            (each.page, each.account, count_text(each.since), str(each.mapped_to or ""))
            for each in explained.holders
        ]
        print_table(
            ("page", "held by", "since event", "mapped to SWA"),
            rows,
            title=f"\n{name}just before it: the pages",
        )
    if explained.requests:
        rows2 = [
            [str(each.request), each.rid, each.state, *map(_or_dash, (each.prompt, each.length, each.in_the_tree, each.given_back))]
            for each in explained.requests
        ]  # fmt: skip
        columns = ("request", "id", "state", "prompt", "length", "in the tree", "SWA given back")
        print_table(columns, rows2, title=f"\n{name}requests involved, in tokens")
    print_title(f"{name}device steps in flight")
    for step in explained.steps:
        uses = "; ".join(step.uses) or "touches none of these pages"
        print_lines([f"  step {step.step}, {count_of(step.requests, 'request')}: {uses}"])
    if not explained.steps:
        print_lines(["  none was told to run"])
    if explained.pools:
        print_table(
            ("pool", "pages", "free", "pending", "requests", "in flight", "evictable", "protected"),
            [
                (each.pool, each.pages, each.free, each.pending, each.requests, each.in_flight, each.evictable, each.protected)
                for each in explained.pools
            ],
            title=f"\n{name}pools, in pages",
        )  # fmt: skip


def _or_dash(number: int | None) -> str:
    return "-" if number is None else count_text(number)


def _print_ending(ending: Ending, told: RankTriage, name: str) -> None:
    refused = ", ".join(f"{why} {count_text(many)}" for why, many in told.report.refusals.items())
    unknown = "not known behind the damage"
    facts = {
        "commands turned down": refused or ("none" if ending.known else "none that could be read"),
        "retractions": ending.retractions
        if ending.known or ending.retractions
        else "none that could be read",
        "live at the end": count_of(len(ending.live), "request") if ending.known else unknown,
        "closed": "yes" if ending.closed else "no" if ending.known else unknown,
    }
    if told.report.events:
        print_facts(facts, title=f"\n{name}how it ended")
    if ending.leaks:
        rows = [(each.what, each.page_count, _pages(each.pages, each.page_count), each.holder, str(each.since or ""), each.why) for each in ending.leaks]  # fmt: skip
        print_table(
            ("what", "pages", "which", "held by", "since event", "why it is a leak"),
            rows,
            title=f"\n{name}leaks",
        )
    if ending.live:
        rows3 = [
            (str(each.request), each.rid, each.pages, str(each.last_seq), str(each.last_step))
            for each in ending.live
        ]
        print_table(
            ("request", "id", "FULL pages", "last event", "its step"), rows3, title=f"\n{name}live at the end"
        )
    if ending.turned_down:
        rows4 = [(count_text(each.seq), str(each.step), each.reason, each.cause, each.detail, str(each.since or "")) for each in ending.turned_down]  # fmt: skip
        print_table(
            ("event", "step", "reason", "why", "detail", "since event"), rows4, title=f"\n{name}turned down"
        )
    if ending.last and told.report.events:
        rows5 = [
            (count_text(each.seq), str(each.step), each.event, each.cause)
            for each in ending.last[-LAST_SHOWN:]
        ]
        print_table(("event", "step", "what", "why"), rows5, title=f"\n{name}the last events")
