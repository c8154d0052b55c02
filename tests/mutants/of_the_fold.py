"""Seeded faults of `evolve` itself: a wrong fold, so that the live state is wrong although every event is told rightly.

The journal then says what the wrong state decided. Two witnesses see that: the naive model, which has no fold, and the
digest, which the unspoilt fold gives another value from the first event on that was folded wrongly.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from radixledger.cache import locks, tree, tree_sum, weights
from radixledger.cache.evolve import EVOLVE
from radixledger.cache.fold import pages as fold_pages
from radixledger.cache.fold import requests as fold_requests
from radixledger.cache.fold import tree as fold_tree
from radixledger.cache.state import Node, State
from radixledger.journal.events import (
    AnyEvent,
    Extended,
    Finished,
    Freed,
    GroupFlushed,
    Healed,
    HealMode,
    Locked,
    Reclaimed,
    Removed,
    Repointed,
    Split,
    Stepped,
    Tombstoned,
    Transferred,
    Unlocked,
)
from radixledger.journal.units import BoundaryId

from .desk import Desk
from .of_the_tree import height
from .schedules import (
    cut_under_a_mark,
    healed,
    healed_under_a_lock,
    hit_and_finished,
    in_a_group,
    kept_side_by_side,
    leaf_under_pressure,
    locked_across_nodes,
    matched_behind_a_gap,
    reclaimed_twice,
    tombstone_above_a_leaf,
)
from .seeded import Change, Predicate


@dataclass(frozen=True)
class FoldMutant:
    """One wrong fold. `wrong` holds of the first event that is folded wrongly, asked of the state before it."""

    name: str
    what: str
    change: Change
    script: Callable[[Desk], None]
    says: str
    wrong: Predicate
    rows: tuple[str, ...]


def folds(kind: type, by: Callable[[Callable[[State, Any], None], State, Any], None]) -> Change:
    """One type of event is folded otherwise: `by` is given the lawful way too."""
    lawful = EVOLVE[kind]

    def change(patch: Any) -> None:
        patch.setitem(EVOLVE, kind, lambda state, event: by(lawful, state, event))

    return change


def before(kind: type) -> Predicate:
    """Every event of this type."""
    return lambda _, event: isinstance(event, kind)


def both(target: str, value: Any, *modules: Any) -> Change:
    """A function that several modules of the fold have by name."""

    def change(patch: Any) -> None:
        for module in modules:
            patch.setattr(module, target, value)

    return change


_cut, _touch = tree.cut, tree.touch


def _cut_without_locks(state: State, node: Node, upper: Node, boundary: BoundaryId) -> None:
    _cut(state, node, upper, boundary)
    state.swa_protected -= upper.pages if upper.swa and upper.swa_locks else 0
    state.tree_digest -= upper.weight * weights.LOCKS * upper.swa_locks
    upper.swa_locks = 0
    tree.offer_window(state, upper)


def _cut_copies_the_mark(state: State, node: Node, upper: Node, boundary: BoundaryId) -> None:
    mark = node.boundary
    _cut(state, node, upper, boundary)
    node.boundary = mark
    state.tree_digest += node.weight * weights.BOUNDARY * mark


def _touch_all(state: State, node: Node) -> None:
    need, state.tail_pages = state.tail_pages, node.end or 1
    _touch(state, node)
    state.tail_pages = need


def _kept_pending(lawful: Any, state: State, event: GroupFlushed) -> None:
    lawful(state, event)
    state.group_open = True


def _totals(name: str) -> Any:
    def folded(lawful: Any, state: State, event: AnyEvent) -> None:
        known = getattr(state.totals, name)
        lawful(state, event)
        setattr(state.totals, name, known)

    return folded


def _cursor_stays(lawful: Any, state: State, event: Reclaimed) -> None:
    row = state.row_of(event.request)
    known = int(state.rows.cursor[row])
    lawful(state, event)
    fold_requests._move_cursor(state, row, known)


def _untouched_end(_: Any, state: State, event: Finished) -> None:
    tick = state.clock
    known = {node.id: (node.tick, node.swa_tick) for node in state.nodes.values()}
    EVOLVE_FINISHED(state, event)
    for node in state.nodes.values():
        was, window = known[node.id]
        state.tree_digest -= node.weight * (
            weights.TICK * (node.tick - was) + weights.SWA_TICK * (node.swa_tick - window)
        )
        node.tick, node.swa_tick = was, window
    state.clock = tick


EVOLVE_FINISHED = EVOLVE[Finished]


def _one_token_short(lawful: Any, state: State, event: Extended) -> None:
    lawful(state, event)
    row = state.row_of(int.from_bytes(event.requests[:8], "little"))
    state.rows.length[row] -= 1


def _anchor_alone(state: State, node: Node, event: Locked) -> None:
    _lock(state, node, event)
    for above in height(node)[1:]:
        above.swa_locks -= 1
        state.tree_digest -= above.weight * weights.LOCKS
        if event.boundary and above.boundary == event.boundary:
            return


_lock = locks.lock


def _released_anchor_alone(state: State, node: Node, event: Unlocked) -> bool:
    known, node.anchors = node.anchors, node.anchors + 1
    state.tree_digest += node.weight * weights.ANCHORS
    balanced = _unlock(state, node, event)
    assert known == node.anchors
    return balanced


_unlock = locks.unlock


def _protected_stays(lawful: Any, state: State, event: Repointed) -> None:
    row = state.row_of(event.request)
    known = int(state.rows.protected[row])
    lawful(state, event)
    state.rows.protected[row] = known


def _runs_for_ever(lawful: Any, state: State, event: Stepped) -> None:
    known = dict(state.running)
    lawful(state, event)
    state.running = known | state.running


def _tombstone_with_window(lawful: Any, state: State, event: Tombstoned) -> None:
    node = state.nodes[event.node]
    window = node.swa
    lawful(state, event)
    node.swa = window
    state.tree_digest += node.weight * weights.LIVE


def _transferred_as_replaced(lawful: Any, state: State, event: Healed) -> None:
    node = state.nodes[event.node]
    lawful(state, event)
    if event.mode == HealMode.TRANSFER:
        content = tree_sum.place_sum(node.end - node.pages, event.fresh)
        state.tree_digest += node.weight * (content - node.content)
        node.content, node.full = content, event.fresh


def step_and_on(desk: Desk) -> None:
    """A step begins and ends, and its request goes on."""
    desk.admit("a", "abcd")
    desk.fill("a")
    desk.step(1, "a", 0)
    desk.cache.step_ended(1)
    desk.finish("a")


FOLDS = (
    FoldMutant(
        "a_cut_forgets_who_locked_the_window",
        "the upper part of a locked node is in no locked window any more",
        both("cut", _cut_without_locks, fold_tree), cut_under_a_mark,
        "the first Split of a node in a locked window",
        lambda state, event: isinstance(event, Split) and state.nodes[event.node].swa_locks > 0, ("R115", "R121"),
    ),
    FoldMutant(
        "a_cut_copies_the_mark",
        "both parts of a cut node carry its boundary mark",
        both("cut", _cut_copies_the_mark, fold_tree), cut_under_a_mark,
        "the first Split of a marked node",
        lambda state, event: isinstance(event, Split) and state.nodes[event.node].boundary != 0, ("R114",),
    ),
    FoldMutant(
        "the_whole_path_is_refreshed",
        "a use makes every window of its path young",
        both("touch", _touch_all, tree, fold_tree, fold_requests), tombstone_above_a_leaf,
        "the first use of a node that ends behind more than a window",
        lambda _, event: isinstance(event, Transferred) and len(event.full) // 4 > 2, ("R77", "R79", "R80"),
    ),
    FoldMutant(
        "a_mapping_is_never_cleared",
        "FULL pages keep their mapping whatever is freed",
        both("unmap_pages", lambda *_: None, fold_pages, fold_tree, fold_requests), in_a_group,
        "the first Freed of SWA pages",
        lambda _, event: isinstance(event, Freed) and bool(event.unmapped), ("R39", "R54"),
    ),
    FoldMutant(
        "a_flushed_group_stays_open",
        "what is freed behind a flush is pending",
        folds(GroupFlushed, _kept_pending), in_a_group,
        "the first GroupFlushed", before(GroupFlushed), ("R44",),
    ),
    FoldMutant(
        "tombstones_are_not_counted",
        "the total of tombstones stays",
        folds(Tombstoned, _totals("tombstones")), tombstone_above_a_leaf,
        "the first Tombstoned", before(Tombstoned), ("R110", "R172"),
    ),
    FoldMutant(
        "heals_are_not_counted",
        "the total of heals stays",
        folds(Healed, _totals("healed")), healed,
        "the first Healed", before(Healed), ("R92", "R172"),
    ),
    FoldMutant(
        "removals_are_not_counted",
        "the total of evicted FULL pages stays",
        folds(Removed, _totals("full_evicted")), leaf_under_pressure,
        "the first Removed", before(Removed), ("R172",),
    ),
    FoldMutant(
        "a_cursor_stays",
        "a reclaim frees its pages and the cursor does not move",
        folds(Reclaimed, _cursor_stays), reclaimed_twice,
        "the first Reclaimed", before(Reclaimed), ("R132",),
    ),
    FoldMutant(
        "a_finish_does_not_refresh",
        "the path of a request that ended is as old as before",
        folds(Finished, _untouched_end), hit_and_finished,
        "the first Finished", before(Finished), ("R103",),
    ),
    FoldMutant(
        "a_growth_is_a_token_short",
        "a row is one token shorter than what was computed",
        folds(Extended, _one_token_short), hit_and_finished,
        "the first Extended", before(Extended), ("R46",),
    ),
    FoldMutant(
        "a_lock_counts_its_own_node_alone",
        "of a window that reaches over several nodes one is locked",
        lambda patch: patch.setattr(locks, "lock", _anchor_alone), locked_across_nodes,
        "the first Locked of a node that is shorter than a window",
        lambda state, event: isinstance(event, Locked) and state.nodes[event.node].pages < 2, ("R111", "R116"),
    ),
    FoldMutant(
        "a_release_forgets_its_anchor",
        "a receipt that was given back is still counted on its node",
        lambda patch: patch.setattr(locks, "unlock", _released_anchor_alone), hit_and_finished,
        "the first Unlocked", before(Unlocked), ("R113", "R118"),
    ),
    FoldMutant(
        "a_row_protects_what_it_did_before",
        "after caching, a row owns what the tree has",
        folds(Repointed, _protected_stays), kept_side_by_side,
        "the first Repointed", before(Repointed), ("R149", "R133"),
    ),
    FoldMutant(
        "a_step_never_ends",
        "a device step is in flight for ever",
        folds(Stepped, _runs_for_ever), step_and_on,
        "the second Stepped",
        lambda state, event: isinstance(event, Stepped) and bool(state.running), ("R151",),
    ),
    FoldMutant(
        "a_tombstone_keeps_its_window",
        "a node that lost its SWA pages goes on naming them",
        folds(Tombstoned, _tombstone_with_window), matched_behind_a_gap,
        "the first Tombstoned", before(Tombstoned), ("R26", "R30"),
    ),
    FoldMutant(
        "a_transferred_mapping_takes_the_pages_too",
        "a locked tombstone is healed with the pages that were freed",
        folds(Healed, _transferred_as_replaced), healed_under_a_lock,
        "the first Healed by transfer",
        lambda _, event: isinstance(event, Healed) and event.mode == HealMode.TRANSFER, ("R90",),
    ),
)  # fmt: skip
"""In the order of the events that they fold."""
