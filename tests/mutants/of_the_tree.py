"""Seeded faults of matches, inserts, heals, locks and evictions."""

from collections.abc import Iterator
from typing import Any

from radixledger.cache import match
from radixledger.cache.components.window import WindowComponent
from radixledger.cache.decide import unified as decide_unified
from radixledger.cache.state import Node, State
from radixledger.journal.causes import Operation, Site, cause
from radixledger.journal.events import (
    AnyEvent,
    Finished,
    Freed,
    Healed,
    HealMode,
    Matched,
    Repointed,
    Split,
    Transferred,
)
from radixledger.journal.units import TO_ROOT

from .of_requests import owns, site_of
from .schedules import (
    computed_again,
    cut_under_a_mark,
    healed,
    healed_in_part,
    healed_under_a_lock,
    keeps_less_than_a_window,
    keeps_over_tombstones,
    long_prompt,
    matched_behind_a_gap,
    of_another_tenant,
    released_to_its_end,
)
from .seeded import Mutant, decides, dropped, puts, saying, twice, where

_FLUSH = cause(Operation.FLUSH)
_SWA_INTERNAL = cause(Operation.EVICT, Site.SWA_INTERNAL)
_HEAL = cause(Operation.FINISH, Site.HEAL)


def is_at(site: Site) -> Any:
    """Whether an event is of this site."""
    return lambda _, event: site_of(event)[1] == site


def run_up(node: Node) -> int:
    """Pages of live SWA that end where a node does; many where they reach the root."""
    run, each = 0, node
    while each.parent is not None:
        if not each.swa:
            return run
        run, each = run + each.pages, each.parent
    return 1 << 30


def height(node: Node) -> list[Node]:
    """A node and those above it, without the root."""
    found, each = [], node
    while each.parent is not None:
        found.append(each)
        each = each.parent
    return found


def _live_anyway(_: WindowComponent, __: State, node: Node, pages: int) -> tuple[Node, int]:
    return node, pages


_boundary = WindowComponent.boundary


def _one_page_will_do(component: WindowComponent, state: State, node: Node, pages: int) -> tuple[Node, int]:
    need, state.tail_pages = state.tail_pages, 1
    found = _boundary(component, state, node, pages)
    state.tail_pages = need
    return found


def _any_tenants_child(state: State, node: Node, key: bytes, at: int, _: bytes) -> Node | None:
    page = key[at : at + state.stride]
    return next(
        (child for child in (node.children or {}).values() if child.key[: state.stride] == page), None
    )


def _heals_a_live_node(state: State, event: Freed) -> Iterator[AnyEvent]:
    """The first node with as many pages as the duplicate is taken for a tombstone."""
    node = next(each for each in state.nodes.values() if each.pages == len(event.full) // 4)
    yield Healed(
        node.id,
        HealMode.REPLACE,
        event.giver,
        event.full,
        node.full,
        event.swa,
        request=event.request,
        cause=_HEAL,
    )


def leaf_is_last(state: State, event: Transferred) -> bool:
    """Whether a new leaf is longer than a window, or a tombstone: nothing that a path may end with."""
    return not event.swa or len(event.full) // 4 > state.tail_pages


TREE = (
    Mutant(
        "a_match_looks_at_full_pages_only",
        "a prefix is usable although its window is dead",
        puts(WindowComponent, "boundary", _live_anyway),
        matched_behind_a_gap,
        "the first Matched at a node whose window is not live",
        lambda state, event: isinstance(event, Matched) and run_up(state.nodes[event.node]) < 2,
        "a_match_ends_in_a_live_window", "path_shorter_than_window", ("R73", "R71", "R266"),
    ),
    Mutant(
        "a_tombstone_does_not_end_the_live_run",
        "one live page behind a gap counts as a window",
        puts(WindowComponent, "boundary", _one_page_will_do),
        matched_behind_a_gap,
        "the first Matched at a node whose window is not live",
        lambda state, event: isinstance(event, Matched) and run_up(state.nodes[event.node]) < 2,
        "a_match_ends_in_a_live_window", "path_shorter_than_window", ("R74", "R76"), ("B24",),
    ),
    Mutant(
        "a_match_crosses_namespaces",
        "below the root the first page alone decides, whoever it belongs to",
        puts(match, "find_child", _any_tenants_child),
        of_another_tenant,
        "the first Matched at a node of another namespace",
        lambda state, event: isinstance(event, Matched) and event.node != 0 and state.nodes[event.node].namespace != event.namespace,
        "a_match_stays_within_its_question", "namespace_crossed", ("R98",),
    ),
    Mutant(
        "a_heal_takes_pages_from_under_a_request",
        "a tombstone whose FULL pages are locked is given others",
        decides(Healed, as_=saying(mode=HealMode.REPLACE)),
        healed_under_a_lock,
        "the first Healed by replacement of a node that is held",
        lambda state, event: isinstance(event, Healed) and event.mode == HealMode.REPLACE and state.nodes[event.node].holds > 0,
        "a_heal_keeps_what_is_locked_and_nothing_else", "heal_against_its_locks", ("R90", "R87"), ("B10",),
    ),
    Mutant(
        "a_heal_keeps_pages_that_nobody_locks",
        "a tombstone that nothing holds keeps its FULL pages",
        decides(Healed, as_=saying(mode=HealMode.TRANSFER)),
        healed,
        "the first Healed by transfer of a node that is not held",
        lambda state, event: isinstance(event, Healed) and event.mode == HealMode.TRANSFER and not state.nodes[event.node].holds,
        "a_heal_keeps_what_is_locked_and_nothing_else", "", ("R83", "R87", "R89"),
        unseen="both ways of healing are lawful events; which one a node gets is the writer's choice (A13)",
    ),
    Mutant(
        "a_live_node_is_healed",
        "a node that has its window is taken for a tombstone",
        decides(Freed, as_=where(is_at(Site.DUPLICATE), _heals_a_live_node)),
        computed_again,
        "the first Healed of a live node",
        lambda state, event: isinstance(event, Healed) and bool(state.nodes[event.node].swa),
        "only_tombstones_are_healed", "node_out_of_turn", ("R85", "R61", "R92"),
    ),
    Mutant(
        "a_heal_forgets_to_cut",
        "a tombstone is healed by fewer pages than it has",
        decides(Split, as_=where(is_at(Site.HEAL), dropped)),
        healed_in_part,
        "the first Healed with fewer fresh pages than old ones",
        lambda _, event: isinstance(event, Healed) and len(event.fresh) < len(event.old),
        "a_heal_covers_its_node", "node_out_of_turn", ("R84", "R86"),
    ),
    Mutant(
        "duplicates_are_not_freed",
        "what the tree had already is freed by nobody",
        decides(Freed, as_=where(is_at(Site.DUPLICATE), dropped)),
        computed_again,
        "the first Finished of a request that still owns a page",
        lambda state, event: isinstance(event, Finished) and owns(state, event.request),
        "an_ended_request_owns_nothing", "request_ended_with_pages", ("R61", "R59", "R60"),
    ),
    Mutant(
        "duplicates_are_freed_twice",
        "what the tree had already is freed by the cache and by its caller",
        decides(Freed, as_=where(is_at(Site.DUPLICATE), twice)),
        computed_again,
        "the first Freed of a page in `free`",
        lambda state, event: isinstance(event, Freed) and 0 in [int(each) for each in state.full.holders(event.full)],
        "a_page_is_freed_once", "double_free", ("R62", "R61"), ("B23",),
    ),
    Mutant(
        "a_leaf_hides_another",
        "an insert does not look whether the path is there",
        puts(decide_unified, "descend", lambda *_: (None, 0)),
        computed_again,
        "the first Transferred that begins like a child of its parent",
        lambda state, event: isinstance(event, Transferred) and any(
            child.key[: state.stride] == event.key[: state.stride] for child in (state.nodes[event.parent].children or {}).values()
        ),
        "a_new_leaf_is_whole_and_alone", "", ("R1", "R97"),
        unseen="keys are not loaded, and two leaves of one parent are lawful",
    ),
    Mutant(
        "a_cached_path_stays_a_tombstone",
        "a running request caches a path whose window is dead, and nothing is healed",
        decides(Healed, as_=dropped),
        keeps_over_tombstones,
        "the first Repointed to a node whose window is not live",
        lambda state, event: isinstance(event, Repointed) and run_up(state.nodes[event.node]) < 2,
        "a_cached_path_ends_in_a_live_window", "path_shorter_than_window", ("R31", "R72", "R259"), ("B24",),
    ),
    Mutant(
        "a_running_request_caches_less_than_a_window",
        "what is cached of a running request ends too close to where its window was given back",
        puts(WindowComponent, "cap", lambda _, __, ___, count, ____: count),
        keeps_less_than_a_window,
        "the first live Transferred of a running request behind a gap that is closer than a window",
        lambda state, event: isinstance(event, Transferred) and bool(event.swa) and len(event.full) // 4 < 2
        and not state.nodes[event.parent].swa,
        "an_insert_ends_in_a_live_leaf_of_one_window", "path_shorter_than_window", ("R150", "R259", "R94"), ("B1", "B18"),
    ),
    Mutant(
        "a_dead_leaf_is_kept",
        "a leaf wholly below the released length is materialised although it is vetoed",
        puts(WindowComponent, "vetoes", lambda *_: False),
        released_to_its_end,
        "the first Transferred without SWA pages (no live leaf follows it)",
        lambda _, event: isinstance(event, Transferred) and not event.swa,
        "an_insert_ends_in_a_live_leaf_of_one_window", "leaf_out_of_shape", ("R93",), ("B3",),
    ),
    Mutant(
        "a_leaf_is_not_cut_before_its_window",
        "one node for the whole prompt: a lock pins all of it",
        puts(WindowComponent, "cuts", lambda *_: ()),
        long_prompt,
        "the first Transferred of more pages than a window (no leaf follows it)",
        lambda state, event: isinstance(event, Transferred) and leaf_is_last(state, event),
        "an_insert_ends_in_a_live_leaf_of_one_window", "leaf_out_of_shape", ("R95",), ("B12",),
    ),
    Mutant(
        "a_split_loses_the_mark",
        "the boundary mark of a node that is cut goes to neither part",
        decides(Split, as_=saying(boundary=TO_ROOT)),
        cut_under_a_mark,
        "the first Split of a marked node that moves no mark",
        lambda state, event: isinstance(event, Split) and event.boundary != state.nodes[event.node].boundary,
        "a_split_moves_the_mark", "mark_lost_in_a_split", ("R114", "R121"), ("B13", "B15"),
    ),
)  # fmt: skip
"""In the order of a path's life, more or less."""
