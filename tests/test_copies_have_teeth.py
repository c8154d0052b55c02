"""Faults of a host tier, made elsewhere or possible here, planted into the cache: a play with copies notices each (J28).

Part of what `test_machine_has_teeth` does. Some break a law at once; others are lawful to the books, and only what a page
holds, or the naive model, tells them.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from radixledger.cache import eviction, tree
from radixledger.cache.components import component
from radixledger.cache.decide import host as decide_host
from radixledger.cache.decide import host_room as decide_host_room
from radixledger.cache.decide import host_tree as decide_host_tree
from radixledger.cache.decide import unified as decide_unified
from radixledger.cache.decide.pages import Decision
from radixledger.cache.eviction import oldest_copy
from radixledger.cache.fold import host as fold_host
from radixledger.cache.fold import tree as fold_tree
from radixledger.cache.slices import Slice
from radixledger.cache.state import Node, State, Transfer
from radixledger.journal.events import (
    Adopted,
    AnyEvent,
    BackupEnded,
    Demoted,
    Freed,
    LoadBegun,
    LoadEnded,
    Matched,
)
from radixledger.journal.units import NO_PAGES, Pages, TransferId

from .test_machine_has_teeth import is_noticed

Fault = Callable[[pytest.MonkeyPatch], None]


def told_otherwise(decide: Any, change: Callable[[AnyEvent], AnyEvent | None]) -> Any:
    """The decider with its events changed; None leaves one out."""

    def otherwise(*arguments: Any, **named: Any) -> Decision[Any]:
        decision = decide(*arguments, **named)
        while True:
            try:
                event = next(decision)
            except StopIteration as stop:
                return stop.value
            changed = change(event)
            if changed is not None:
                yield changed

    return otherwise


def pages_go_before_they_are_read(patch: pytest.MonkeyPatch) -> None:
    """B19: whoever holds them next has written over them by the time they are gathered."""
    for module in (eviction, tree, fold_tree):
        patch.setattr(module, "is_unread", lambda *_: False)
    patch.setattr("radixledger.cache.fold.host.is_unread", lambda *_: False)
    patch.setattr("radixledger.cache.laws.of_the_tree.is_unread", lambda *_: False)


def a_failed_copy_is_taken_for_good(patch: pytest.MonkeyPatch) -> None:
    """R211: it is in the tree, and nobody wrote it."""
    patch.setattr(
        decide_host,
        "end_backup",
        told_otherwise(
            decide_host.end_backup,
            lambda event: (
                replace(event, landed=True) if isinstance(event, BackupEnded) and event.node else event
            ),
        ),
    )


def a_copy_is_given_back_twice(patch: pytest.MonkeyPatch) -> None:
    """B150: once by whoever copies, once by whoever asked."""
    lawful = decide_host.end_backup

    def end_backup(state: State, transfer: TransferId, landed: bool) -> Decision[None]:
        found = state.transfers.get(transfer)
        yield from lawful(state, transfer, landed)
        if not landed and found is not None:
            yield BackupEnded(transfer, found.node, found.pages, landed=False)

    patch.setattr(decide_host, "end_backup", end_backup)


def a_node_that_lost_its_copy_stays(patch: pytest.MonkeyPatch) -> None:
    """R211: neither on the device nor on the host."""

    def lose(*_: Any) -> Iterator[AnyEvent]:
        yield from ()

    patch.setattr(decide_host, "lose", lose)


def what_lies_behind_a_lost_leaf_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """The leaf is demoted though it has no copy, so that it need not be removed with all behind it."""
    lawful = component.leaf_removal

    def remove(state: State, leaf: Node, why: Any) -> Any:
        return (
            Demoted(leaf.id, leaf.full, leaf.host, cause=why) if leaf.children else lawful(state, leaf, why)
        )

    patch.setattr(decide_host_tree, "leaf_removal", remove)
    patch.setattr(decide_host_tree, "lose", lambda *_: _nothing())


def _nothing() -> Decision[int]:
    yield from ()
    return 0


def a_lock_does_not_hold_a_copy(patch: pytest.MonkeyPatch) -> None:
    """B59: host pressure looks at children only."""

    def oldest(state: State) -> Node | None:
        found = [
            node
            for node in state.nodes.values()
            if node.host and not (node.full or node.backup or node.children)
        ]
        return min(found, key=lambda node: (node.tick, node.id), default=None)

    patch.setattr(decide_host_room, "oldest_copy", oldest)


def a_cut_does_not_take_the_lock_along(patch: pytest.MonkeyPatch) -> None:
    """B59: the upper half is not held."""
    lawful = tree.cut

    def cut(state: State, node: Node, upper: Node, *rest: Any) -> None:
        lawful(state, node, upper, *rest)
        if not node.full:
            upper.holds = 0

    patch.setattr(fold_tree, "cut", cut)


def the_youngest_copy_goes_first(patch: pytest.MonkeyPatch) -> None:
    """R211."""

    def youngest(state: State) -> Node | None:
        oldest_copy(state)
        found = [
            node
            for node in state.nodes.values()
            if node.host and not (node.full or node.backup or node.children or node.holds)
        ]
        return max(found, key=lambda node: (node.tick, node.id), default=None)

    patch.setattr(decide_host_room, "oldest_copy", youngest)


def children_are_copied_before_their_parents(patch: pytest.MonkeyPatch) -> None:
    """R211: from the end of the path up."""
    patch.setattr(decide_host, "_path_up", lambda node: reversed(list(_up(node))))


def _up(node: Node) -> Iterator[Node]:
    walk: Node | None = node
    while walk is not None and walk.parent is not None:
        yield walk
        walk = walk.parent


def a_use_is_not_counted(patch: pytest.MonkeyPatch) -> None:
    """R211: by a match, that is; copies come too late."""
    patch.setattr(fold_tree, "count_hit", lambda *_: None)


def a_match_uses_copies_that_are_still_written(patch: pytest.MonkeyPatch) -> None:
    """B19, R211."""
    lawful = decide_host_tree.look

    def look(state: State, *arguments: Any, **named: Any) -> Any:
        hidden = [(node, node.backup) for node in state.nodes.values() if node.backup]
        for node, _ in hidden:
            node.backup = TransferId(0)
        found = lawful(state, *arguments, **named)
        for node, backup in hidden:
            node.backup = backup
        return found

    patch.setattr(decide_host_tree, "look", look)


def a_match_forgets_the_copies(patch: pytest.MonkeyPatch) -> None:
    """R211."""

    def change(event: AnyEvent) -> AnyEvent:
        return replace(event, host_hit=0, host_node=0) if isinstance(event, Matched) else event

    patch.setattr(decide_host_tree, "match", told_otherwise(decide_host_tree.match, change))


def a_load_reads_its_copies_in_the_wrong_order(patch: pytest.MonkeyPatch) -> None:
    """R211: each page is somebody's, and none holds what it should."""

    def change(event: AnyEvent) -> AnyEvent:
        if not isinstance(event, LoadBegun):
            return event
        pages = [event.full[at : at + 4] for at in range(0, len(event.full), 4)]
        return replace(event, full=Pages(b"".join(reversed(pages))))

    patch.setattr(decide_host, "load_back", told_otherwise(decide_host.load_back, change))


def a_load_lands_under_a_step(patch: pytest.MonkeyPatch) -> None:
    """R151."""
    lawful = decide_host.end_load

    def end_load(state: State, transfer: TransferId, landed: bool) -> Decision[None]:
        running, state.running = state.running, {}
        decision = lawful(state, transfer, landed)
        event = next(decision)
        state.running = running
        yield event
        yield from decision

    patch.setattr(decide_host, "end_load", end_load)


def a_load_that_failed_keeps_its_path(patch: pytest.MonkeyPatch) -> None:
    """R211: everything as it was, but for a lock that nobody gives back."""

    def change(event: AnyEvent) -> AnyEvent | None:
        return None if type(event).__name__ == "Unlocked" else event

    patch.setattr(decide_host, "end_load", told_otherwise(decide_host.end_load, change))


def a_load_lands_on_what_an_insert_brought_back(patch: pytest.MonkeyPatch) -> None:
    """R211: the node's pages are lost."""

    def change(event: AnyEvent) -> AnyEvent:
        return replace(event, landed=True) if isinstance(event, LoadEnded) and event.cause & 31 else event

    patch.setattr(decide_host, "end_load", told_otherwise(decide_host.end_load, change))


def what_is_adopted_is_freed_as_a_duplicate(patch: pytest.MonkeyPatch) -> None:
    """R64: the caller believes that the tree had it, and gives it back."""
    lawful = decide_unified.unevict

    def unevict(state: State, node: Node, start: int, brought: Slice) -> Decision[None]:
        yield from lawful(state, node, start, brought)
        yield Freed(brought.giver, brought.part(start, node.end), NO_PAGES, NO_PAGES)

    patch.setattr(decide_unified, "unevict", unevict)


def what_is_adopted_counts_as_a_prefix(patch: pytest.MonkeyPatch) -> None:
    """R64, R63: an insert says that the tree had it."""
    lawful = decide_unified.insert

    def insert(*arguments: Any) -> Decision[Any]:
        count, decision = 0, lawful(*arguments)
        while True:
            try:
                event = next(decision)
            except StopIteration as stop:
                return stop.value._replace(prefix=stop.value.prefix + count)
            count += len(event.full) // 4 if isinstance(event, Adopted) else 0
            yield event

    patch.setattr(decide_host_tree, "insert", insert)


def a_transfer_forgets_the_upper_half_of_a_cut(patch: pytest.MonkeyPatch) -> None:
    """R211: only the node that it began with lands."""
    lawful = fold_host.parts_of

    def parts(state: State, transfer: Transfer) -> Iterator[tuple[Node, Pages]]:
        yield from [next(lawful(state, transfer), None)] if transfer.node in state.nodes else []  # type: ignore[misc]

    patch.setattr(decide_host, "parts_of", parts)


FAULTS: tuple[Fault, ...] = (
    pages_go_before_they_are_read,
    a_failed_copy_is_taken_for_good,
    a_copy_is_given_back_twice,
    a_node_that_lost_its_copy_stays,
    what_lies_behind_a_lost_leaf_is_forgotten,
    a_lock_does_not_hold_a_copy,
    a_cut_does_not_take_the_lock_along,
    the_youngest_copy_goes_first,
    children_are_copied_before_their_parents,
    a_use_is_not_counted,
    a_match_uses_copies_that_are_still_written,
    a_match_forgets_the_copies,
    a_load_reads_its_copies_in_the_wrong_order,
    a_load_lands_under_a_step,
    a_load_that_failed_keeps_its_path,
    a_load_lands_on_what_an_insert_brought_back,
    what_is_adopted_is_freed_as_a_duplicate,
    what_is_adopted_counts_as_a_prefix,
    a_transfer_forgets_the_upper_half_of_a_cut,
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_planted_fault_of_the_host_tier_is_noticed(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    """R211, J28."""
    fault(monkeypatch)
    assert is_noticed("copies")
