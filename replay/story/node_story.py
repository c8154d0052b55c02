"""The story of one node of the radix tree: how it came, was cut, lost and got back its window, who locked it, how it went (J16).

A life begins when a node of that number enters the tree and ends when it leaves, or an epoch does; numbers are used once. What
happens to a node is often told of another one (a lock below, a cut), so the journal is folded and the node is looked at
behind every event. Rule: what is told is the difference between two looks.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec import Struct

from radixledger.cache.state import Node, State
from radixledger.journal.causes import label_of
from radixledger.journal.events import Admitted, AnyEvent, Finished, Opened, Split
from radixledger.journal.frame import Frame
from radixledger.journal.packed import whole_pages
from radixledger.journal.units import NO_PAGES, Pages
from radixledger.replay.known import Known
from radixledger.replay.walk import Walked, lost_here, told_wrong, walk


class NodeStep(Struct, frozen=True):
    """One thing that happened to a node, and what it was behind it; positions in tokens, [start, stop).

    life: which node of that number, from 1; 0 is one that was there before the journal begins. request: whom the event
    names, 0 for nobody. full, swa, host, recurrent: its pages and its state slot; none where it has none, or is gone.
    receipts: locks on this very node; full_locks: those and held children; swa_locks: windows that run through it.
    what: the difference, in words. wrong: laws that the event broke, empty where it broke none.
    """

    life: int
    seq: int
    time_ns: int
    step: int
    event: str
    what: str
    cause: str
    request: int
    rid: str
    parent: int
    start: int
    stop: int
    full: list[int]
    swa: list[int]
    host: list[int]
    recurrent: list[int]
    children: int
    receipts: int
    full_locks: int
    swa_locks: int
    boundary: int
    wrong: str


class _Look(NamedTuple):
    """A node as it stood."""

    parent: int
    start: int
    stop: int
    full: Pages
    swa: Pages
    host: Pages
    recurrent: Pages
    children: int
    receipts: int
    full_locks: int
    swa_locks: int
    boundary: int
    backup: int
    ticks: tuple[int, int, int]


def node_story(
    frames: Iterable[Frame],
    number: int,
    base: State | None = None,
    opened: Opened | None = None,
    known: Known | None = None,
) -> Iterator[NodeStep]:
    """Everything that happened to node `number`, in order; `base` is the state that the frames go on from; opened: as in `fold.begun`.

    known: as in `walk`. Where events are missing a step says so; what those behind it tell goes on from what was known before. Raises Unfoldable and whatever reading raises.
    """
    life, before = 0, _look(base, number)
    for walked in walk(frames, base, opened, known):
        now = _look(walked.state, number)
        if now == before and not _names(walked.event, number) and not lost_here(walked.event):
            continue
        if before is None and now is None:
            continue
        life += before is None
        yield _step(walked, life, before, now)
        before = now


def _look(state: State | None, number: int) -> _Look | None:
    node = state.nodes.get(number) if state is not None else None
    if state is None or node is None:
        return None
    size, children = state.page_size, node.children or {}
    return _Look(
        node.parent.id if node.parent else 0, (node.end - node.pages) * size, node.end * size, node.full, node.swa,
        node.host, node.recurrent, len(children), node.anchors, node.holds, node.swa_locks, node.boundary, node.backup,
        _ticks(node),
    )  # fmt: skip


def _ticks(node: Node) -> tuple[int, int, int]:
    return node.tick, node.swa_tick, node.recurrent_tick


def _names(event: AnyEvent, number: int) -> bool:
    """Whether an event is about the node, though it leaves it as it is: a request came to it, or ended with it."""
    return isinstance(event, Admitted | Finished) and event.node == number != 0


def _step(walked: Walked, life: int, before: _Look | None, now: _Look | None) -> NodeStep:
    event, shown = walked.event, now or before
    assert shown is not None, "there was a node before or behind"
    request = getattr(event, "request", 0)
    live = walked.state.requests.get(request)
    return NodeStep(
        life=life,
        seq=walked.seq,
        time_ns=walked.frame.time_ns,
        step=walked.frame.step,
        event=type(event).__name__,
        what=", ".join(_differences(before, now, event)) or ("not known" if lost_here(event) else "named"),
        cause=label_of(event),
        request=request,
        rid=live.rid if live is not None else getattr(event, "rid", ""),
        parent=shown.parent,
        start=shown.start,
        stop=shown.stop,
        full=whole_pages(now.full if now else NO_PAGES),
        swa=whole_pages(now.swa if now else NO_PAGES),
        host=whole_pages(now.host if now else NO_PAGES),
        recurrent=whole_pages(now.recurrent if now else NO_PAGES),
        children=now.children if now else 0,
        receipts=now.receipts if now else 0,
        full_locks=now.full_locks if now else 0,
        swa_locks=now.swa_locks if now else 0,
        boundary=shown.boundary,
        wrong=lost_here(event) or told_wrong(walked.broken),
    )


def _differences(before: _Look | None, now: _Look | None, event: AnyEvent) -> Iterator[str]:
    if now is None:
        yield "gone"
    elif before is None:
        yield f"cut from node {event.node}" if isinstance(event, Split) else "new"
    else:
        yield from _of_its_place(before, now, event)
        yield from _of_its_pages(before, now)
        yield from _of_its_locks(before, now)
        if before.ticks != now.ticks:
            yield "used"


def _of_its_place(before: _Look, now: _Look, event: AnyEvent) -> Iterator[str]:
    if now.start != before.start:
        upper = f" went to node {event.upper}" if isinstance(event, Split) else " went"
        yield f"cut: [{before.start}, {now.start}){upper}"
    elif now.parent != before.parent:
        yield f"under node {now.parent}"
    if now.children != before.children:
        yield f"children {before.children} → {now.children}"


def _of_its_pages(before: _Look, now: _Look) -> Iterator[str]:
    if now.start != before.start:
        return
    for name, was, is_now in (
        ("FULL", before.full, now.full), ("SWA", before.swa, now.swa), ("state", before.recurrent, now.recurrent),
        ("HOST copy", before.host, now.host),
    ):  # fmt: skip
        if was != is_now:
            yield f"{name} {'changed' if was and is_now else 'came' if is_now else 'went'}"
    if before.backup and not now.backup:
        yield "HOST copy landed"


def _of_its_locks(before: _Look, now: _Look) -> Iterator[str]:
    for name, was, is_now in (
        ("receipts", before.receipts, now.receipts), ("FULL locks", before.full_locks, now.full_locks),
        ("SWA locks", before.swa_locks, now.swa_locks), ("boundary", before.boundary, now.boundary),
    ):  # fmt: skip
        if was != is_now:
            yield f"{name} {was} → {is_now}"
