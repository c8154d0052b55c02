"""What to run next, once triage has a verdict: commands that can be pasted, each with what it answers.

Rule: every command is one of ours, but for the look at what may not be read, with the run, the rank and the numbers filled in; a damaged journal is read with
`--salvage`, and only by commands that have it; what another server decided is not sent to `reduce`.
"""

import shlex
from pathlib import Path

from radixledger.cache.traits import RECORDED
from radixledger.replay.triage.explained import Explained
from radixledger.replay.triage.triage import RankTriage
from radixledger.tools.run_argument import as_given

BEHIND = 20
"""So many events before the slice's own are shown around the first wrong one."""


def next_commands(told: RankTriage) -> list[tuple[str, str]]:
    """Command and purpose, the most useful first."""
    run = shlex.quote(as_given(Path(told.folder)))
    salvage = " --salvage" if told.report.gaps or told.damage else ""
    out: list[tuple[str, str]] = []
    if told.explained is not None:
        out += _of_the_event(told.explained, f"{run} --rank {told.rank}", salvage)
        if told.explained.located and not salvage and told.report.route not in RECORDED:
            again = f"radixledger reduce {run} --rank {told.rank} -o test_incident.py"
            out.append((again, "a small test that fails while the fault is in the code"))
    elif told.kind == "leak":
        out += _of_a_leak(told, f"{run} --rank {told.rank}", salvage)
    elif told.kind == "turned down":
        out += _of_a_refusal(told, f"{run} --rank {told.rank}", salvage)
    if told.denied:
        path = shlex.quote(as_given(Path(told.denied)))
        out.append(
            (f"ls -ld {path}", "who may read it: ask as that user, or have it made readable (chmod, chown)")
        )
    elif told.report.gaps and not (told.damage or told.report.unreadable):
        out += _of_a_told_gap(told, f"{run} --rank {told.rank}")
    elif told.damage or told.report.gaps or told.kind == "unreadable":
        out.append((f"radixledger journal doctor {run}", "which files are damaged, and where"))
        out.append((f"radixledger journal recover {run} --to copy", "a copy of all that can be read"))
    elif told.kind == "clean":
        if told.report.refusals:
            out.append((f"radixledger sql {run} refusals_by_reason", "what was turned down, and why"))
        out.append((f"radixledger sql {run} occupancy", "whether a pool was full, and who had it"))
    if not salvage and told.kind != "unreadable":
        out.append((f"radixledger sql {run} --checks", "a second opinion, and how many more like it"))
    return out


def _of_a_told_gap(told: RankTriage, place: str) -> list[tuple[str, str]]:
    """Of a journal whose files are whole, as a copy that `recover` made: another copy would be the same."""
    out = []
    if told.report.whole_until:
        state = f"radixledger replay state {place} --at {told.report.whole_until}"
        out.append((state, "what was true just before the first gap"))
    out.append((f"radixledger journal cat {place} --type Gap", "what is lost, and why"))
    return out


def _of_the_event(explained: Explained, place: str, salvage: str) -> list[tuple[str, str]]:
    first, out = explained.first, []
    if first.pool and first.pages:
        page = f"--pool {first.pool.lower()} {'--slot' if first.pool == 'RECURRENT' else '--page'} {first.pages[0]}"
        out.append((f"radixledger replay blame {place} {page}{salvage}", "every life of that page"))
    out += _of_holders(explained, place, salvage)
    if first.seq > 1:
        out.append(
            (f"radixledger replay state {place} --at {first.seq - 1}{salvage}", "what was true just before")
        )
    begin = max(1, first.seq - BEHIND)
    cat = f"radixledger journal cat {place} --from {begin} --to {first.seq}{salvage}"
    out.append((cat, "the events around it, as they were written"))
    return out


def _of_holders(explained: Explained, place: str, salvage: str) -> list[tuple[str, str]]:
    """The story of the request, or else the node, that the event is about."""
    for kind, what in (("request", "what that request did"), ("node", "what became of that node")):
        for name in explained.about:
            number = name.removeprefix(f"{kind} ")
            if number != name and number.isdecimal():
                return [(f"radixledger replay blame {place} --{kind} {number}{salvage}", what)]
    return []


def _of_a_leak(told: RankTriage, place: str, salvage: str) -> list[tuple[str, str]]:
    out = [(f"radixledger replay state {place}{salvage}", "who holds what at the end")]
    for leak in told.ending.leaks:
        pool = leak.what.partition(" ")[0].lower()
        if leak.pages and pool in ("full", "swa"):
            out.append((f"radixledger replay blame {place} --pool {pool} --page {leak.pages[0]}{salvage}", "the life of a page that is lost"))  # fmt: skip
            break
    return out


def _of_a_refusal(told: RankTriage, place: str, salvage: str) -> list[tuple[str, str]]:
    first, out = told.ending.turned_down[0], []
    pool = {0: "full", 1: "swa"}.get(first.pool)
    if first.pages and pool:
        out.append((f"radixledger replay blame {place} --pool {pool} --page {first.pages[0]}{salvage}", "every life of the page that was given up"))  # fmt: skip
    begin = max(1, first.seq - BEHIND)
    out.append(
        (f"radixledger journal cat {place} --from {begin} --to {first.seq}{salvage}", "the events before it")
    )
    return out
