"""`radixledger replay diff`: where two journals part, or what is different between two states.

Not here: the comparing (`radixledger.replay.diff.diverge`, `radixledger.replay.diff.state_diff`); this module parses and prints.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from radixledger.cache.state import State
from radixledger.journal.errors import JournalError
from radixledger.journal.events import Opened
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Seq
from radixledger.replay.diff.diverge import (
    Compared,
    Parting,
    Place,
    comparable_keys,
    compare,
    openings_differ,
    outcome,
    whole,
)
from radixledger.replay.diff.state_diff import Differs, StateDiff, state_diff
from radixledger.replay.seek import state_at
from radixledger.tools.console import (
    FINDINGS,
    count_of,
    examples,
    exit_with,
    json_flag,
    print_json,
    print_lines,
    remark,
)
from radixledger.tools.event_text import as_json, line, ranges, time_text
from radixledger.tools.printable import say
from radixledger.tools.ranks import rank_option, the_rank
from radixledger.tools.replay.arguments import salvage_flag, seq_of
from radixledger.tools.run_argument import RunPath, is_url, located, one_rank
from radixledger.tools.table import print_table
from radixledger.tools.watching import watched

SHOWN = 40
"""So many differences of a kind are shown in a table; JSON has them all."""

LEVELS = {"events": whole, "requests": outcome}
"""What can be compared: all that the cache did, and what requests got of it."""


KEYS_APART = "keys cannot be compared (A: {}; B: {}): equal ones are told by where they first appear"


class _Side(NamedTuple):
    """One side: its journal, as it was given, and the event whose state is meant; None for the whole journal."""

    given: str
    reader: JournalReader
    seq: Seq | None


@click.command(
    epilog=examples(
        "radixledger replay diff baseline unified",
        "radixledger replay diff before after --level events --rank 1",
        "radixledger replay diff RUN@41200 RUN@41237",
        "radixledger replay diff RUN@+1500ms OTHER@+1500ms --json",
    ),
)
@click.argument("a", type=RunPath(), metavar="A[@SEQ|@TIME]")
@click.argument("b", type=RunPath(), metavar="B[@SEQ|@TIME]")
@rank_option
@click.option(
    "--level",
    type=click.Choice([*LEVELS]),
    help="Which difference of two journals counts as a finding.  [default: requests for two routes, else events]",
)
@salvage_flag
@json_flag
def command(
    a: Path | str, b: Path | str, rank: int | None, level: str | None, salvage: bool, as_json: bool
) -> None:
    """Show where two journals part, or, with @SEQ or @TIME, what is different between two states.

    Nodes, requests and pages are named by first appearance, so that other numbers are no difference. Exit code 1: they differ.
    """
    sides = [_side(each, rank, salvage) for each in (a, b)]
    if any(side.seq is not None for side in sides):
        differs = _states(sides, as_json=as_json)
    else:
        differs = _journals(sides, level, as_json=as_json)
    for side in sides:
        for notice in side.reader.notices:
            remark(f"{side.given}: {notice}")
    if differs:
        exit_with(FINDINGS)


def _side(given: Path | str, rank: int | None, salvage: bool) -> _Side:
    text = str(given)
    run, at = (text, "") if Path(text).exists() or "@" not in text else text.rsplit("@", 1)
    folder = located(run if is_url(run) else Path(run), one_rank(run, rank))
    reader = JournalReader(folder, the_rank(folder, rank), salvage=salvage)
    return _Side(text, reader, seq_of(reader, at) if at else None)


def _states(sides: Sequence[_Side], *, as_json: bool) -> bool:
    states = [_state(side) for side in sides]
    found = state_diff(*states)
    if as_json:
        print_json(
            {"a": sides[0].given, "b": sides[1].given, "seqs": [state.seq for state in states], "diff": found}
        )
    else:
        _print_states(sides, states, found)
    return found.differs


def _state(side: _Side) -> State:
    with watched(side.reader.run, side.reader.rank) as watch:
        return state_at(side.reader, side.reader.last_seq if side.seq is None else side.seq, watch)


def _print_states(sides: Sequence[_Side], states: Sequence[State], found: StateDiff) -> None:
    for name, side, state in zip("AB", sides, states, strict=True):
        print_lines([f"{name}: {side.given}, behind event {state.seq}"])
    if not found.same_run:
        by = (
            "the keys of their path"
            if found.keys
            else "length and order in the tree, as keys were hashed differently and cannot be compared"
        )
        print_lines([f"two runs: requests are compared by request id, nodes by {by}"])
    if not found.differs:
        say("\nno difference")
    for title, rows in (("numbers", found.numbers), ("requests", found.requests), ("tree", found.nodes)):
        _print_differences(title, rows)
    pages = [(each.pool, each.a, each.b, len(each.pages), ranges(each.pages, 8)) for each in found.pages]
    if pages:
        print_table(("pool", "A", "B", "pages", "which"), pages[:SHOWN], title="\npages")
        _print_more(len(pages))


def _print_differences(title: str, rows: Sequence[Differs]) -> None:
    if rows:
        told = [((row.what + " " + row.field).strip(), row.a, row.b) for row in rows[:SHOWN]]
        print_table(("what", "A", "B"), told, title=f"\n{title}")
        _print_more(len(rows))


def _print_more(count: int) -> None:
    if count > SHOWN:
        say(f"... and {count - SHOWN} more; --json has them all")


def _journals(sides: Sequence[_Side], level: str | None, *, as_json: bool) -> bool:
    opened = [side.reader.opened for side in sides]
    keys, openings = comparable_keys(*opened), openings_differ(*opened)
    counts = level or ("requests" if "route" in openings else "events")
    found = {name: _compared(sides, name, keys=keys) for name in LEVELS}
    differs = found[counts].parting is not None
    if as_json:
        told = {name: _compared_json(each) for name, each in found.items()}
        print_json({"differ": differs, "level": counts, "openings": openings, "keys": keys} | told)
        return differs
    for name, side in zip("AB", sides, strict=True):
        print_lines([f"{name}: {side.given}, rank {side.reader.rank}, route {side.reader.opened.route}"])
    if not keys:
        print_lines([KEYS_APART.format(*(_hashing(each) for each in opened))])
        openings = {name: pair for name, pair in openings.items() if name not in ("redaction", "stride")}
    if openings:
        rows = [(name, str(mine), str(theirs)) for name, (mine, theirs) in openings.items()]
        print_table(("opened with", "A", "B"), rows, title="\nnot opened alike")
    _print_compared("what requests got", found["requests"])
    _print_compared("what the cache did", found["events"])
    if (parting := found[counts].parting) is not None:
        _print_pools(sides, parting)
    return differs


def _hashing(opened: Opened) -> str:
    """How a journal has its prompts, in a few words."""
    page = f"{opened.config.key_mode}, {opened.config.page_size} tokens to a page"
    return (
        f"{page}, as they are" if opened.redaction == "plain" else f"{page}, hashed with key {opened.key_id}"
    )


def _compared(sides: Sequence[_Side], level: str, *, keys: bool) -> Compared:
    mine, theirs = (side.reader for side in sides)
    with watched(mine.run, mine.rank) as watch:
        return compare(watch(mine.frames()), theirs.frames(), LEVELS[level], keys=keys)


def _print_compared(title: str, found: Compared) -> None:
    parting = found.parting
    if parting is None:
        print_lines(["", f"{title}: the same, {count_of(found.compared, 'event')}"])
    else:
        print_lines(
            ["", f"{title}: {_verdict(parting)}, behind {count_of(found.compared, 'event')} in common"]
        )
        print_lines([f"  = {_text(mine)}  (B: {theirs.seq})" for mine, theirs in parting.before])
        for sign, places in zip("AB", parting.behind, strict=True):
            print_lines([f"  {sign} {_text(place)}" for place in places])
        if parting.fields:
            print_lines(["  what differs, numbers being names of first appearance:"])
        for name, (mine, theirs) in parting.fields.items():
            print_lines([f"    {name}: A {_short(mine)}, B {_short(theirs)}"])
    if found.renamed:
        names = ", ".join(f"{a} is {b}" for a, b in found.renamed[:4])
        print_lines([f"  request ids are spelt otherwise: {names}"])


def _verdict(parting: Parting) -> str:
    if parting.gap:
        return "events are missing, and nothing is compared from there on"
    if parting.a is None or parting.b is None:
        return f"{'A' if parting.a is None else 'B'} ends"
    return "they part"


def _text(place: Place) -> str:
    name = type(place.event).__name__
    return f"{place.seq}  step {place.frame.step}  {name}  {line(place.event)}".rstrip()


def _short(value: Any) -> str:
    text = (
        ranges([*value])
        if isinstance(value, tuple) and all(isinstance(each, int) for each in value)
        else str(value)
    )
    return text if len(text) <= 100 else f"{text[:100]}…"


def _print_pools(sides: Sequence[_Side], parting: Parting) -> None:
    """What the two states had in common no more, just before they part."""
    places = (parting.a, parting.b)
    if parting.gap or any(place is None or place.seq < 2 for place in places):
        return
    try:
        states = [
            state_at(side.reader, place.seq - 1) for side, place in zip(sides, places, strict=True) if place
        ]
    except JournalError as error:
        remark(f"the states before are not shown: {error}")
        return
    _print_differences("numbers just before they part", state_diff(*states).numbers)


def _compared_json(found: Compared) -> dict[str, object]:
    parting = found.parting
    told: dict[str, object] = {"compared": found.compared, "same": parting is None, "renamed": found.renamed}
    if parting is None:
        return told
    return told | {
        "verdict": _verdict(parting),
        "a": _place_json(parting.a),
        "b": _place_json(parting.b),
        "fields": {name: {"a": mine, "b": theirs} for name, (mine, theirs) in parting.fields.items()},
        "before": [{"a": _place_json(mine), "b": _place_json(theirs)} for mine, theirs in parting.before],
        "behind": {
            side: [_place_json(each) for each in places]
            for side, places in zip("ab", parting.behind, strict=True)
        },
    }


def _place_json(place: Place | None) -> dict[str, object] | None:
    if place is None:
        return None
    frame = place.frame
    return {
        "seq": place.seq, "step": frame.step, "time": time_text(frame.time_ns), "type": type(place.event).__name__,
        **as_json(place.event),
    }  # fmt: skip
