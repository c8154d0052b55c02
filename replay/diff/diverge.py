"""Where two journals part: the first event at which two caches did something else, and the first at which a request got it.

Two streams are compared, each event by event: all that the cache did, and what requests got of it (hits, admissions, growth,
ends, refusals), which two routes share where they serve alike. Numbers are names of first appearance (`naming`). Rule: it
is the order of the journals that is compared, no time and no step; behind a gap nothing is compared.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from typing import Any, NamedTuple

from msgspec.structs import asdict

from radixledger.journal.causes import Operation
from radixledger.journal.events import (
    Aborted,
    Admitted,
    AnyEvent,
    Extended,
    Finished,
    Gap,
    Matched,
    Opened,
    Refused,
    Retracted,
)
from radixledger.journal.frame import Frame
from radixledger.replay.diff.first_names import SILENT, Canonical, FirstNames

SHOWN_BEFORE = 3
SHOWN_BEHIND = 4
RENAMED_KEPT = 16


class Place(NamedTuple):
    """One event where it stands in its journal, and its fields without numbers."""

    frame: Frame
    seq: int
    event: AnyEvent
    told: Canonical


class Parting(NamedTuple):
    """The first difference; a side without a place has ended.

    fields: what differs, by name, as named by first appearance. before: the last events in common, side by side; behind:
    what came next on each side, the differing events first. compared: events in common. gap: why nothing more is compared.
    """

    a: Place | None
    b: Place | None
    fields: dict[str, tuple[Any, Any]]
    before: list[tuple[Place, Place]]
    behind: tuple[list[Place], list[Place]]
    compared: int
    gap: bool


class Compared(NamedTuple):
    """What came of comparing one stream: how many events are common, and where they part; None where they do not.

    renamed: request ids that stand in the same place and are spelt otherwise, the first ones.
    """

    compared: int
    parting: Parting | None
    renamed: list[tuple[str, str]]


_ASKED_FOR = (Operation.MATCH, Operation.ADMIT)
"""Look-ups that a request asked for; a cache looks up paths of its own too, on some routes."""

Tell = Callable[[FirstNames, AnyEvent], Canonical | None]
"""An event as a stream has it; None for one that is not in it."""


def comparable_keys(a: Opened, b: Opened) -> bool:
    """Whether equal keys were written as equal bytes: both plain, or hashed with one key, at one stride."""
    return (a.redaction, a.key_id, a.stride, a.config.key_mode) == (
        b.redaction, b.key_id, b.stride, b.config.key_mode,
    )  # fmt: skip


def openings_differ(a: Opened, b: Opened) -> dict[str, tuple[Any, Any]]:
    """What the two were opened with, where it is not the same; sizes, route and options, no names of runs."""
    mine, theirs = ({**asdict(each), **asdict(each.config)} for each in (a, b))
    left_out = ("run", "epoch", "config", "code", "dirty", "labels", "key_id", "schema")
    return {
        name: (mine[name], theirs[name])
        for name in mine
        if name not in left_out and mine[name] != theirs[name]
    }


def whole(names: FirstNames, event: AnyEvent) -> Canonical | None:
    """Everything that the cache did."""
    return None if isinstance(event, SILENT) else names.canonical(event)


def outcome(names: FirstNames, event: AnyEvent) -> Canonical | None:
    """What requests got: how far they hit, what was computed, how they ended."""
    match event:
        case Matched() if event.cause >> 5 in _ASKED_FOR:
            return {"rid": names.name("rid", event.rid), "asked": event.asked, "hit": event.hit}
        case Admitted():
            request = names.name("request", event.request)
            return {
                "request": request,
                "rid": names.name("rid", event.rid),
                "prompt": event.prompt,
                "prefix": event.prefix,
            }
        case Extended():
            told = names.canonical(event)
            grown = zip(told["requests"], told["grown"], strict=False)
            return {"grown": tuple(sorted(grown))}
        case Finished() | Retracted() | Aborted():
            return {"request": names.name("request", event.request), "tokens": event.tokens}
        case Refused():
            return {"request": names.name("request", event.request), "reason": event.reason}
        case Gap():
            return {}
        case _:
            return None


def compare(a: Iterable[Frame], b: Iterable[Frame], tell: Tell, *, keys: bool) -> Compared:
    """Compare two journals in one stream; raises whatever reading raises."""
    sides = [_places(frames, FirstNames(keys=keys), tell) for frames in (a, b)]
    before: deque[tuple[Place, Place]] = deque(maxlen=SHOWN_BEFORE)
    renamed: dict[tuple[str, str], None] = {}
    compared = 0
    for mine, theirs in zip_longest(*sides):
        gap = any(place is not None and isinstance(place.event, Gap) for place in (mine, theirs))
        if gap or not _same(mine, theirs):
            parting = Parting(
                mine, theirs, {} if gap else _fields(mine, theirs), list(before),
                (_behind(mine, sides[0]), _behind(theirs, sides[1])), compared, gap,
            )  # fmt: skip
            return Compared(compared, parting, list(renamed))
        compared += 1
        before.append((mine, theirs))
        rids = tuple(getattr(place.event, "rid", "") for place in (mine, theirs))
        if rids[0] != rids[1] and len(renamed) < RENAMED_KEPT:
            renamed[rids[0], rids[1]] = None
    return Compared(compared, None, list(renamed))


def _places(frames: Iterable[Frame], names: FirstNames, tell: Tell) -> Iterator[Place]:
    for frame in frames:
        for seq, event in enumerate(frame.events, frame.seq_first):
            told = tell(names, event)
            if told is not None:
                yield Place(frame, seq, event, told)


def _same(mine: Place | None, theirs: Place | None) -> bool:
    return (
        mine is not None
        and theirs is not None
        and type(mine.event) is type(theirs.event)
        and mine.told == theirs.told
    )


def _fields(mine: Place | None, theirs: Place | None) -> dict[str, tuple[Any, Any]]:
    """The fields that differ; none where the events are not of one kind, or one side has ended."""
    if mine is None or theirs is None or type(mine.event) is not type(theirs.event):
        return {}
    return {
        name: (value, theirs.told.get(name))
        for name, value in mine.told.items()
        if value != theirs.told.get(name)
    }


def _behind(place: Place | None, rest: Iterator[Place]) -> list[Place]:
    """The differing event and a few that came after it."""
    behind = [place] if place is not None else []
    for each in rest:
        if len(behind) >= SHOWN_BEHIND:
            break
        behind.append(each)
    return behind
