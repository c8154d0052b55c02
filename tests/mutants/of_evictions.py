"""Seeded faults of evictions, flushes and locks."""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from radixledger.cache.components.window import WindowComponent
from radixledger.cache.decide import eviction as decide_eviction
from radixledger.cache.decide import faces as decide_faces
from radixledger.cache.eviction import oldest_leaf
from radixledger.cache.state import Node, State
from radixledger.journal.causes import Operation, Site, cause
from radixledger.journal.events import (
    AnyEvent,
    Evicted,
    Flushed,
    Locked,
    Removed,
    Tombstoned,
)
from radixledger.journal.units import NO_PAGES, ROOT, TO_ROOT, Pages

from .of_requests import is_of
from .of_the_tree import height
from .schedules import (
    flushed,
    flushed_while_somebody_runs,
    leaf_in_use,
    leaf_under_pressure,
    leaf_under_window_pressure,
    locked_across_nodes,
    locked_over_a_tombstone,
    tombstone_above_a_leaf,
    two_leaves,
    window_in_use,
)
from .seeded import Mutant, decides, puts, saying, where

_FLUSH = cause(Operation.FLUSH)
_SWA_INTERNAL = cause(Operation.EVICT, Site.SWA_INTERNAL)


_segment = WindowComponent.segment


def _youngest_leaf(state: State) -> Node | None:
    leaves = [each for each in state.nodes.values() if each.parent and not each.children and not each.holds]
    return max(leaves, key=lambda node: node.tick) if oldest_leaf(state) else None


def _any_leaf(state: State) -> Node | None:
    leaves = [each for each in state.nodes.values() if each.parent and not each.children]
    return leaves[0] if leaves else None


def _any_window(_: WindowComponent, state: State) -> Node | None:
    live = [each for each in state.nodes.values() if each.swa and each.swa_locks]
    return live[0] if live else None


def _whole_leaf(state: State, event: Tombstoned) -> Iterator[AnyEvent]:
    parent = state.nodes[event.node].parent
    assert parent is not None
    yield Removed(event.node, parent.id, event.full, event.swa, cause=event.cause)


def _window_alone(_: State, event: Removed) -> Iterator[AnyEvent]:
    yield Tombstoned(event.node, event.full, event.swa, cause=_SWA_INTERNAL)


def _told_too_early(state: State, event: Removed) -> Iterator[AnyEvent]:
    if len(state.nodes) == 3:
        yield Flushed(0, _FLUSH)
    yield event


def _nobody_asks(patch: Any) -> None:
    for module in (decide_eviction, decide_faces):
        patch.setattr(module, "check_quiet", lambda _: None)


def is_oldest_leaf(state: State, node: Node) -> bool:
    """Whether no childless, unheld node was used before this one."""
    idle = [each for each in state.nodes.values() if each.parent and not each.children and not each.holds]
    return node.tick == min(each.tick for each in idle)


def _segment_of_one_page(component: WindowComponent, state: State, node: Node) -> Any:
    need, state.tail_pages = state.tail_pages, 1
    found = _segment(component, state, node)
    state.tail_pages = need
    return found


EVICTIONS = (
    Mutant(
        "the_youngest_leaf_goes_first",
        "FULL pressure takes the leaf that was used last",
        puts(decide_eviction, "oldest_leaf", _youngest_leaf),
        two_leaves,
        "the first Removed that is not the oldest leaf",
        lambda state, event: isinstance(event, Removed) and not is_oldest_leaf(state, state.nodes[event.node]),
        "the_victim_is_the_oldest_candidate", "younger_victim", ("R103", "R2"),
    ),
    Mutant(
        "a_locked_leaf_is_removed",
        "FULL pressure takes a leaf that a request holds",
        puts(decide_eviction, "oldest_leaf", _any_leaf),
        leaf_in_use,
        "the first Removed of a held node",
        lambda state, event: isinstance(event, Removed) and state.nodes[event.node].holds > 0,
        "the_victim_is_the_oldest_candidate", "locked_node_removed", ("R102", "R109"), ("B12",),
    ),
    Mutant(
        "a_locked_window_is_taken",
        "SWA pressure takes the window that a request reads",
        puts(WindowComponent, "oldest", _any_window),
        window_in_use,
        "the first Tombstoned of a node in a locked window",
        lambda state, event: isinstance(event, Tombstoned) and state.nodes[event.node].swa_locks > 0,
        "the_victim_is_the_oldest_candidate", "locked_window_taken", ("R102", "R111"), ("B9",),
    ),
    Mutant(
        "an_inner_node_is_removed",
        "SWA pressure removes a node that has children, FULL pages and all",
        decides(Tombstoned, as_=_whole_leaf),
        tombstone_above_a_leaf,
        "the first Removed of a node with children",
        lambda state, event: isinstance(event, Removed) and bool(state.nodes[event.node].children),
        "who_has_children_stays", "node_out_of_turn", ("R104", "R20", "R30"), ("B26",),
    ),
    Mutant(
        "a_childless_victim_stays",
        "SWA pressure tombstones a leaf that nothing holds",
        decides(Removed, as_=_window_alone),
        leaf_under_window_pressure,
        "the first Tombstoned of a node without children that is not held",
        lambda state, event: isinstance(event, Tombstoned) and not state.nodes[event.node].children,
        "who_has_children_stays", "node_out_of_turn", ("R104", "R110"), ("B14",),
    ),
    Mutant(
        "an_eviction_is_credited_too_much",
        "one SWA page more is reported than was freed",
        decides(Evicted, as_=lambda _, event: (replace(event, gained_swa=event.gained_swa + 1),)),
        leaf_under_pressure,
        "the first Evicted",
        lambda _, event: isinstance(event, Evicted),
        "an_eviction_is_credited_what_it_freed", "credit_differs_from_delta", ("R105", "R108", "R106"), ("B11",),
    ),
    Mutant(
        "a_removed_leaf_keeps_a_page",
        "the cascade of a leaf forgets its last FULL page",
        decides(Removed, as_=lambda _, event: (replace(event, full=Pages(event.full[:-4])),)),
        leaf_under_pressure,
        "the first Removed of fewer FULL pages than the node has",
        lambda state, event: isinstance(event, Removed) and len(event.full) < len(state.nodes[event.node].full),
        "a_removed_leaf_gives_up_all_its_pages", "node_out_of_turn", ("R100", "R101"),
    ),
    Mutant(
        "a_tombstone_keeps_its_mapping",
        "the window goes, the FULL pages keep leading to it",
        decides(Tombstoned, as_=saying(full=NO_PAGES)),
        tombstone_above_a_leaf,
        "the first Tombstoned that unmaps nothing",
        lambda _, event: isinstance(event, Tombstoned) and not event.full,
        "a_tombstone_keeps_no_mapping", "stale_mapping", ("R30", "R99", "R88"), ("B5",),
    ),
    Mutant(
        "a_flush_empties_the_tree_of_a_busy_rank",
        "a flush does not ask whether anybody runs",
        _nobody_asks,
        flushed_while_somebody_runs,
        "the first Removed of a flush while a request is live",
        lambda state, event: isinstance(event, Removed) and event.cause == _FLUSH and bool(state.requests),
        "a_flush_finds_the_rank_idle", "flush_of_a_busy_rank", ("R33", "R177"),
    ),
    Mutant(
        "a_flush_ends_too_early",
        "a flush is told while nodes are left",
        decides(Removed, as_=where(is_of(Operation.FLUSH), _told_too_early)),
        flushed,
        "the first Flushed while nodes are left",
        lambda state, event: isinstance(event, Flushed) and len(state.nodes) > 1,
        "a_flush_empties_the_tree", "flush_of_a_busy_rank", ("R166",),
    ),
    Mutant(
        "a_lock_ends_at_its_own_node",
        "as if every window were one page",
        puts(WindowComponent, "segment", _segment_of_one_page),
        locked_across_nodes,
        "the first Locked whose mark stands on a node that the window reaches beyond",
        lambda state, event: isinstance(event, Locked) and event.marked == event.node and state.nodes[event.node].pages < 2,
        "a_lock_covers_the_last_window", "lock_differs_from_window", ("R111",),
    ),
    Mutant(
        "a_lock_runs_to_the_root",
        "a window lock shields the whole path",
        decides(Locked, as_=saying(boundary=TO_ROOT, marked=ROOT)),
        locked_across_nodes,
        "the first Locked to the root although the window ends before it",
        lambda state, event: isinstance(event, Locked) and not event.boundary and sum(each.pages for each in height(state.nodes[event.node])) >= 2,
        "a_lock_covers_the_last_window", "lock_differs_from_window", ("R111", "R119", "R116"),
    ),
    Mutant(
        "a_lock_tells_no_tombstones",
        "the tombstones that a lock passed are not on its receipt",
        decides(Locked, as_=saying(skipped=b"")),
        locked_over_a_tombstone,
        "the first Locked of a tombstone that names none",
        lambda state, event: isinstance(event, Locked) and not state.nodes[event.node].swa and not event.skipped,
        "a_lock_covers_the_last_window", "lock_differs_from_window", ("R112",), ("B16",),
    ),
)  # fmt: skip
"""Eviction, flush, locks."""
