"""A verdict in plain sentences: what happened first, where, and what made it so.

Rule: a sentence says what was found and no more; who wants the numbers has them in the structs that it was made of.
"""

from collections.abc import Iterator

from radixledger.journal.accounts import FREE, Kind
from radixledger.replay.counted import counted
from radixledger.replay.triage.causal_slice import Moved
from radixledger.replay.triage.ending import left_behind
from radixledger.replay.triage.explained import OF_DIGESTS, Explained
from radixledger.replay.triage.things import account_words, pages_words
from radixledger.replay.triage.triage import RankTriage
from radixledger.replay.verdict import MISSING


def verdict(told: RankTriage) -> list[str]:
    """The verdict on one rank: a sentence or two, without the rank's name."""
    report = told.report
    lines = list(_VERDICTS[told.kind](told))
    if told.kind in ("wrong", "turned down", "leak") and report.unreadable:
        lines.append(f"What lies behind event {report.seq_last:,} cannot be read: {report.unreadable}")
    return lines


def law_words(law: str) -> str:
    """A law as the sentence that its name is."""
    return law.replace("_", " ")


def where(seq: int, step: int) -> str:
    """`event 41,237, step 812`."""
    return f"event {seq:,}, step {step:,}"


def _wrong(told: RankTriage) -> Iterator[str]:
    explained = told.explained
    assert explained is not None, "what is wrong is explained"
    first = explained.first
    if first.law in OF_DIGESTS:
        begin = first.lawful_at or 0
        yield (
            f"between event {begin:,} and {where(first.seq, first.step)} the writer's state left its own journal: "
            "a recorded digest differs, and no event between them broke a law."
        )
        return
    yield f"{where(first.seq, first.step)}: {_what(explained)}."
    yield from _in_all(explained)
    origin = _origin(explained)
    if origin is not None:
        yield origin
    if first.by_pages:
        yield "It stands behind a gap, where only what events say of a page can be held against each other."
    elif any(each.law == MISSING and each.seq < first.seq for each in told.report.findings):
        yield "Events are missing before it, so that something may have been wrong earlier."
    for step in explained.steps[:1]:
        yield f"Device step {step.step} was running: it {step.uses[0] if step.uses else 'touches none of these pages'}."
    for each in explained.after[:1]:
        taker = account_words(each.moved[0].taker, explained.rids)
        look = "an answer to look at" if len(explained.astray.got) < 2 else "answers to look at"
        yield f"{_handed_out(explained)}{each.moved[0].page} went to {taker} next, in {where(each.seq, each.step)}: {look}."


def pages_by_pool(pages: dict[str, list[int]]) -> str:
    """`12 FULL and 12 SWA pages`."""
    many = sum(map(len, pages.values()))
    return f"{' and '.join(f'{len(each):,} {pool}' for pool, each in pages.items())} page{'s' * (many != 1)}"


def _in_all(explained: Explained) -> Iterator[str]:
    """How many pages the event is wrong about, where that is more than its first finding names."""
    gone = explained.astray
    if sum(map(len, gone.pages.values())) > explained.first.page_count:
        who = {Kind.REQUEST: "request", Kind.TREE: "node", Kind.IN_FLIGHT: "copy under way"}
        kinds = [who.get(Kind(each & 7), "other account") for each in gone.owners]
        had = " and ".join(f"{kinds.count(each):,} {each}{'s' * (kinds.count(each) != 1)}" for each in dict.fromkeys(kinds))  # fmt: skip
        yield f"In all that is {pages_by_pool(gone.pages)}" + (f", which {had} had." if had else ".")


def _handed_out(explained: Explained) -> str:
    """The beginning of the sentence on who was handed its pages, where several requests were."""
    gone = explained.astray
    if len(gone.got) < 2:
        return ""
    return f"{gone.handed_out:,} of its pages were handed out again, to {len(gone.got):,} requests: "


def _what(explained: Explained) -> str:
    first, rids = explained.first, explained.rids
    why = f" ({explained.cause})" if explained.cause else ""
    pages = pages_words(first.pool, first.pages, first.page_count) if first.pages else ""
    it = "them" if first.page_count > 1 else "it"
    giver, taker = (account_words(each, rids) for each in (explained.giver, explained.taker))
    found = account_words(first.found, rids)
    match first.law:
        case "a_page_is_freed_once":
            return f"{giver} freed {pages} again{why}"
        case "only_free_pages_are_allocated":
            return f"{pages} handed out to {taker}{why} while {found} had {it}"
        case "a_page_is_given_by_its_owner" if first.pool and explained.giver != -1:
            return f"{giver} gave up {pages}{why}, which {found} had"
        case "the_writer_saw_no_law_broken":
            return f"the writer noted it itself: {first.detail}"
        case law:
            about = next((name for name in _named(explained, rids)), "")
            return f"{explained.event}{why}{about} broke the law that {law_words(law)}: {first.detail}"


def _named(explained: Explained, rids: dict[int, str]) -> Iterator[str]:
    for name in explained.about:
        kind, _, number = name.partition(" ")
        if kind == "request" and number.isdecimal():
            yield f", {account_words(int(number) << 3 | Kind.REQUEST, rids)},"
        elif kind == "node":
            yield f", {name},"


def _origin(explained: Explained) -> str | None:
    """The event that made the pages what they were, where the first wrong event is about pages."""
    first = explained.first
    if not first.pages or not first.pool:
        return None
    name = pages_words(first.pool, first.pages[:1])
    for event in reversed(explained.slice.events):
        moved = next((each for each in event.moved if each.page == name), None)
        if moved is not None and not event.wrong:
            why = f" ({event.cause})" if event.cause else ""
            return f"{name} {_moved(moved, explained.rids)} in {where(event.seq, event.step)}{why}."
    return None


def _moved(moved: Moved, rids: dict[int, str]) -> str:
    giver, taker = (account_words(each, rids) for each in (moved.giver, moved.taker))
    if moved.giver == FREE:
        return f"had been handed out to {taker}"
    return f"had been freed by {giver}" if moved.taker == FREE else f"had gone from {giver} to {taker}"


def _turned_down(told: RankTriage) -> Iterator[str]:
    first = told.ending.turned_down[0]
    more = len(told.ending.turned_down) - 1
    yield (
        f"no event is wrong, a caller was: {where(first.seq, first.step)}: {first.reason} ({first.cause}), turned down: "
        f"{first.detail}" + (f"; {more} more like it" if more else "") + "."
    )
    yield "The cache kept its books, so the fault is in the server that called: it gave up what it did not have."


def _leak(told: RankTriage) -> Iterator[str]:
    for leak in told.ending.leaks[:2]:
        since = f", since event {leak.since:,}" if leak.since else ""
        what = f"{leak.page_count:,} {leak.what}" if leak.what.endswith("pages") else leak.what
        yield f"a leak: at the end nobody is live, and {leak.holder} holds {what}{since}: {leak.why}."
    for each in left_behind(told.ending)[:2]:
        yield (
            f"a leak, unless it waits for something: request {each.request} ({each.rid}) holds {each.pages:,} FULL pages and was "
            f"last heard of in {where(each.last_seq, each.last_step)}, while the journal goes on to "
            f"{where(told.report.seq_last, told.ending.last_step)}."
        )


def _damaged(told: RankTriage) -> Iterator[str]:
    report = told.report
    judged = max(report.events - report.unjudged - report.gaps, 0)
    if not (report.lost or report.unjudged):
        yield f"damaged, as told below; nothing is wrong in the {counted(judged, 'event')} that can be read."
        return
    verb = "are" if report.lost > 1 else "is"
    missing = f"{report.lost_words} {verb} missing, " if report.lost else ""
    yield (
        f"damaged: {missing}{report.unjudged:,} behind the damage can be judged by their pages alone; nothing is wrong in those, nor in the {judged:,} others."
    )


def _unreadable(told: RankTriage) -> Iterator[str]:
    report = told.report
    if report.events:
        yield f"nothing is wrong up to event {report.seq_last:,}; what lies behind cannot be read: {report.unreadable}"
    else:
        yield f"cannot be read: {report.unreadable}"


def _clean(told: RankTriage) -> Iterator[str]:
    report, ending = told.report, told.ending
    how = "its writer is at work, or died without saying so"
    if ending.closed:
        how = "closed by its writer"
    elif ending.sealed:
        how = "it ends with a sealed segment and without Closed: a later one may be missing, or its writer was closed before its rank"
    yield f"clean: no law is broken in {counted(report.events, 'event')} up to step {ending.last_step:,}; {how}."


_VERDICTS = {
    "wrong": _wrong, "turned down": _turned_down, "leak": _leak, "damaged": _damaged, "unreadable": _unreadable,
    "clean": _clean,
}  # fmt: skip
