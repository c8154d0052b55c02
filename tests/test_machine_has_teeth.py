"""Faults that were made elsewhere, or could be made here, planted into the cache: a play notices each (J28).

A fault is a changed decider, arithmetic or fold; the journal then tells what it decides, so live and folded state may well
agree, and it takes the laws or the naive model to see it.
"""

from collections.abc import Callable
from typing import Any

import pytest

from radixledger.cache import locks, routes, traits, tree, weights
from radixledger.cache.decide import growth as decide_growth
from radixledger.cache.decide import pages as decide_pages
from radixledger.cache.decide import requests as decide_requests
from radixledger.cache.fold import requests as fold_requests
from radixledger.cache.fold import tree as fold_tree
from radixledger.cache.refusals import LawBroken, RankPoisoned
from radixledger.cache.state import Node, Request, State
from radixledger.journal.accounts import FREE
from radixledger.journal.causes import Operation
from radixledger.journal.events import Locked

from .machine import SETTINGS
from .mutants.table import MUTANTS
from .test_machine import STEPS_BY_SEED, by_seed

Fault = Callable[[pytest.MonkeyPatch], None]


PLAYED = (
    "a_heal_takes_pages_from_under_a_request",
    "a_match_looks_at_full_pages_only",
    "a_tombstone_does_not_end_the_live_run",
    "the_published_frontier",
    "a_reclaim_forgets_the_running_step",
    "an_insert_forgets_what_was_reclaimed",
    "duplicates_are_not_freed",
    "an_abort_frees_what_the_tree_gave",
    "the_youngest_leaf_goes_first",
    "a_locked_window_is_taken",
    "an_eviction_is_credited_too_much",
    "a_lock_ends_at_its_own_node",
    "freed_pages_pass_the_group",
    "a_free_forgets_the_mapping",
    "a_second_free_is_taken",
    "a_page_is_freed_out_of_a_live_row",
    "the_same_pages_are_handed_out_again",
)
"""Seeded faults, see `mutants`, that a play has to notice without being told where to look."""


def recency_stands_still_without_a_window(patch: pytest.MonkeyPatch) -> None:
    """R68, R102: what a use moves the clock by is the window, and there is none."""

    def touch(state: State, node: Node) -> None:
        before = state.clock
        lawful(state, node)
        if not state.tail_pages:
            state.tree_digest -= node.weight * weights.TICK * (node.tick - before)
            state.clock = node.tick = before

    lawful = tree.touch
    for module in (tree, fold_tree, fold_requests):
        patch.setattr(module, "touch", touch)


def a_stranger_loses_the_duplicates_he_brought(patch: pytest.MonkeyPatch) -> None:
    """R62, R63: freed for him, he frees them again."""
    patch.setitem(traits.TRAITS, "radix", traits.TRAITS["radix"]._replace(frees_duplicates=True))


def a_lock_without_a_window_marks_one(patch: pytest.MonkeyPatch) -> None:
    """R111: a node's window is counted as locked where it has none."""
    lawful = locks.lock

    def lock(state: State, node: Node, event: Locked) -> None:
        lawful(state, node, event)
        if not state.tail_pages:
            node.swa_locks += 1
            state.tree_digest += node.weight * weights.LOCKS

    patch.setattr(locks, "lock", lock)


def an_end_keeps_the_whole_pages_of_a_row(patch: pytest.MonkeyPatch) -> None:
    """R147, R150: as if a tree had taken them."""
    lawful = decide_requests._surrender

    def surrender(state: State, request: Request, kept: int, operation: Operation) -> Any:
        whole = int(state.rows.length[request.row]) // state.page_size
        return lawful(state, request, kept if state.traits.tree else whole, operation)

    patch.setattr(decide_requests, "_surrender", surrender)


def a_chunk_is_given_to_a_tree_that_is_not_there(patch: pytest.MonkeyPatch) -> None:
    """R150, R195: the route caches like the unified one, and the fold believes it."""
    for route in ("chunk", "swa_chunk"):
        patch.setitem(routes.ROUTES, route, routes.ROUTES["unified"])
        patch.setitem(traits.TRAITS, route, traits.TRAITS[route]._replace(tree=True))


def a_window_is_asked_of_a_pool_that_has_none(patch: pytest.MonkeyPatch) -> None:
    """R45, R198: both pools or none, where there is one."""
    lawful = decide_pages.check_free_pages

    def check(state: State, needed: int, request: int = 0) -> None:
        if state.swa.held[FREE] < needed:
            raise decide_pages.short(state, needed, request)
        lawful(state, needed, request)

    for module in (decide_pages, decide_growth):
        patch.setattr(module, "check_free_pages", check)


OTHER_ROUTES: tuple[tuple[Fault, str], ...] = (
    (recency_stands_still_without_a_window, "radix"),
    (a_stranger_loses_the_duplicates_he_brought, "radix"),
    (a_lock_without_a_window_marks_one, "radix"),
    (a_window_is_asked_of_a_pool_that_has_none, "radix"),
    (a_window_is_asked_of_a_pool_that_has_none, "chunk"),
    (an_end_keeps_the_whole_pages_of_a_row, "chunk"),
    (an_end_keeps_the_whole_pages_of_a_row, "swa_chunk"),
    (a_chunk_is_given_to_a_tree_that_is_not_there, "chunk"),
    (a_chunk_is_given_to_a_tree_that_is_not_there, "swa_chunk"),
    (MUTANTS["the_published_frontier"].change, "swa_chunk"),
    (MUTANTS["a_reclaim_forgets_the_running_step"].change, "swa_chunk"),
)
"""Faults of the routes with fewer parts, each with the one whose plays have to notice it."""


def is_noticed(route: str | None = None) -> bool:
    """Whether one of the plays that are part of every run, or of this route's, stops at the fault."""
    for setting in SETTINGS.values():
        if route not in (None, setting.play):
            continue
        try:
            by_seed(setting, 1, STEPS_BY_SEED)
        except (AssertionError, LawBroken, RankPoisoned):
            return True
    return False


@pytest.mark.parametrize("name", PLAYED)
def test_a_planted_fault_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name].change(monkeypatch)
    assert is_noticed()


@pytest.mark.parametrize(("fault", "route"), OTHER_ROUTES, ids=lambda each: getattr(each, "__name__", each))
def test_a_fault_is_noticed_by_the_plays_of_its_own_route(
    fault: Fault, route: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R211: the plays of the unified route alone would prove nothing of the others."""
    fault(monkeypatch)
    assert is_noticed(route)
