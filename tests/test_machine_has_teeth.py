"""Faults that were made elsewhere, or could be made here, planted into the cache: a play notices each (J28).

A fault is a changed decider, arithmetic or fold; the journal then tells what it decides, so live and folded state may well
agree, and it takes the laws or the naive model to see it.
"""

from collections.abc import Callable
from typing import Any

import pytest

from radixledger.cache import (
    decide_eviction,
    decide_growth,
    decide_pages,
    decide_requests,
    decide_unified,
    evolve_pages,
    evolve_requests,
    evolve_tree,
    locks,
    match,
    routes,
    slices,
    traits,
    tree,
    weights,
    window,
    window_component,
)
from radixledger.cache.components import Segment
from radixledger.cache.decide_eviction import Gain
from radixledger.cache.eviction import oldest_leaf, oldest_window
from radixledger.cache.ledger import PoolBook
from radixledger.cache.refusals import LawBroken, RankPoisoned
from radixledger.cache.state import Node, Request, State
from radixledger.cache.window_component import WindowComponent
from radixledger.journal.accounts import FREE
from radixledger.journal.causes import Operation
from radixledger.journal.events import Healed, HealMode, Locked
from radixledger.journal.units import Pages

from .machine import SETTINGS
from .test_machine import STEPS_BY_SEED, by_seed

Fault = Callable[[pytest.MonkeyPatch], None]


def healing_takes_full_pages_from_under_a_request(patch: pytest.MonkeyPatch) -> None:
    """B38, R90."""
    lawful = WindowComponent.adopt

    def adopt(*arguments: Any) -> Any:
        for event in lawful(*arguments):
            yield (
                Healed(event.node, HealMode.REPLACE, *event_fields(event)[2:])
                if isinstance(event, Healed)
                else event
            )

    patch.setattr(WindowComponent, "adopt", adopt)


def event_fields(event: Any) -> list[Any]:
    return [getattr(event, name) for name in event.__struct_fields__]


def a_match_looks_at_full_pages_only(patch: pytest.MonkeyPatch) -> None:
    """R73, R266."""
    patch.setattr(decide_unified, "walk", lambda *a, **_: match.walk(*a, full_only=True))


def a_tombstone_does_not_end_the_live_run(patch: pytest.MonkeyPatch) -> None:
    """B43, R76: one live page behind a gap counts as a window."""

    def walk(state: State, *arguments: Any, **named: Any) -> match.Walk:
        need, state.tail_pages = state.tail_pages, 1
        found = match.walk(state, *arguments, **named)
        state.tail_pages = need
        return found

    patch.setattr(decide_unified, "walk", walk)


def the_published_frontier(patch: pytest.MonkeyPatch) -> None:
    """A26b, B34, R274."""

    def frontier(old: int, pre: int, *, window_tokens: int, page_size: int, **_: Any) -> int:
        return max(old, (pre - max(window_tokens, page_size)) // page_size * page_size)

    patch.setattr(window, "frontier", frontier)


def a_reclaim_forgets_the_running_step(patch: pytest.MonkeyPatch) -> None:
    """R151."""
    patch.setattr(decide_growth, "_oldest_in_flight", lambda *a: a[-1])


def an_insert_forgets_what_was_reclaimed(patch: pytest.MonkeyPatch) -> None:
    """B36, R96."""
    lawful = decide_requests._brought
    patch.setattr(decide_requests, "_brought", lambda *a: lawful(*a)._replace(released=0))


def duplicates_are_not_freed(patch: pytest.MonkeyPatch) -> None:
    """R61."""
    patch.setattr(decide_unified, "free_duplicate", lambda *_: iter(()))


def an_abort_frees_what_the_tree_got(patch: pytest.MonkeyPatch) -> None:
    """B24, R147: the row from its beginning."""
    lawful = decide_requests._surrender

    def surrender(state: State, request: Request, kept: int, operation: Operation) -> Any:
        return lawful(state, request, 0 if operation is Operation.ABORT else kept, operation)

    patch.setattr(decide_requests, "_surrender", surrender)


def the_youngest_leaf_goes_first(patch: pytest.MonkeyPatch) -> None:
    """R103."""

    def youngest(state: State) -> Node | None:
        leaves = [
            each for each in state.nodes.values() if each.parent and not each.children and not each.holds
        ]
        return max(leaves, key=lambda node: node.tick) if oldest_leaf(state) else None

    patch.setattr(decide_eviction, "oldest_leaf", youngest)


def a_locked_window_is_a_victim(patch: pytest.MonkeyPatch) -> None:
    """R102."""

    def any_window(state: State) -> Node | None:
        live = [each for each in state.nodes.values() if each.swa]
        return min(live, key=lambda node: node.swa_tick) if live else oldest_window(state)

    patch.setattr(WindowComponent, "oldest", lambda _, state: any_window(state))


def an_eviction_tells_more_than_it_gained(patch: pytest.MonkeyPatch) -> None:
    """R105, R108, B11."""
    patch.setattr(decide_eviction, "Gain", lambda full, swa: Gain(full, swa + (full > 0)))


def a_lock_ends_at_its_own_node(patch: pytest.MonkeyPatch) -> None:
    """R111: as if every window were one page."""
    lawful = WindowComponent.segment

    def segment(window: WindowComponent, state: State, node: Node) -> Segment:
        need, state.tail_pages = state.tail_pages, 1
        found = lawful(window, state, node)
        state.tail_pages = need
        return found

    patch.setattr(WindowComponent, "segment", segment)


def a_cut_forgets_who_locked_the_window(patch: pytest.MonkeyPatch) -> None:
    """R115, B51."""
    lawful = tree.cut

    def cut(state: State, node: Node, upper: Node, *rest: Any) -> None:
        lawful(state, node, upper, *rest)
        state.swa_protected -= upper.pages if upper.swa and upper.swa_locks else 0
        state.tree_digest -= upper.weight * weights.LOCKS * upper.swa_locks
        upper.swa_locks = 0
        tree.offer_window(state, upper)

    patch.setattr(evolve_tree, "cut", cut)


def the_whole_path_is_refreshed(patch: pytest.MonkeyPatch) -> None:
    """R77, B122."""

    def touch(state: State, node: Node) -> None:
        need, state.tail_pages = state.tail_pages, 99
        lawful(state, node)
        state.tail_pages = need

    lawful = tree.touch
    for module in (tree, evolve_tree, evolve_requests):
        patch.setattr(module, "touch", touch)


def pending_pages_are_handed_out(patch: pytest.MonkeyPatch) -> None:
    """R29, R43."""
    for module in (
        decide_pages,
        decide_growth,
        decide_requests,
        slices,
        decide_eviction,
        window_component,
    ):
        patch.setattr(module, "destination", lambda _: FREE)


def a_freed_page_keeps_its_mapping(patch: pytest.MonkeyPatch) -> None:
    """R39, R54, B8."""
    for module in (evolve_pages, evolve_tree, evolve_requests):
        patch.setattr(module, "unmap_pages", lambda *_: None)


def a_second_free_is_absorbed(patch: pytest.MonkeyPatch) -> None:
    """A5, B07."""
    lawful = decide_pages._lots
    patch.setattr(decide_pages, "_lots", lambda *a: ([], lawful(*a)[1]))


def a_page_that_stands_in_a_row_is_freed(patch: pytest.MonkeyPatch) -> None:
    """B12, R4."""
    patch.setattr(decide_pages, "_check_row", lambda *_: None)


def pages_are_handed_out_twice(patch: pytest.MonkeyPatch) -> None:
    """B14: a page that is taken stays in the queue behind the others."""
    lawful = PoolBook.move

    def move(book: PoolBook, pages: Pages, giver: int, taker: int, seq: int) -> Any:
        astray = lawful(book, pages, giver, taker, seq)
        if giver == FREE:
            book.free += pages
        return astray

    patch.setattr(PoolBook, "move", move)


FAULTS: tuple[Fault, ...] = (
    healing_takes_full_pages_from_under_a_request,
    a_match_looks_at_full_pages_only,
    a_tombstone_does_not_end_the_live_run,
    the_published_frontier,
    a_reclaim_forgets_the_running_step,
    an_insert_forgets_what_was_reclaimed,
    duplicates_are_not_freed,
    an_abort_frees_what_the_tree_got,
    the_youngest_leaf_goes_first,
    a_locked_window_is_a_victim,
    an_eviction_tells_more_than_it_gained,
    a_lock_ends_at_its_own_node,
    a_cut_forgets_who_locked_the_window,
    the_whole_path_is_refreshed,
    pending_pages_are_handed_out,
    a_freed_page_keeps_its_mapping,
    a_second_free_is_absorbed,
    a_page_that_stands_in_a_row_is_freed,
    pages_are_handed_out_twice,
)


def recency_stands_still_without_a_window(patch: pytest.MonkeyPatch) -> None:
    """R68, R102: what a use moves the clock by is the window, and there is none."""

    def touch(state: State, node: Node) -> None:
        before = state.clock
        lawful(state, node)
        if not state.tail_pages:
            state.tree_digest -= node.weight * weights.TICK * (node.tick - before)
            state.clock = node.tick = before

    lawful = tree.touch
    for module in (tree, evolve_tree, evolve_requests):
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
    (the_published_frontier, "swa_chunk"),
    (a_reclaim_forgets_the_running_step, "swa_chunk"),
)
"""Faults of the routes with fewer parts, each with the one whose plays have to notice it."""


def is_noticed(route: str | None = None) -> bool:
    """Whether one of the plays that are part of every run, or of this route's, stops at the fault."""
    for setting in SETTINGS.values():
        if route not in (None, setting.shape.route):
            continue
        try:
            by_seed(setting, 1, STEPS_BY_SEED)
        except (AssertionError, LawBroken, RankPoisoned):
            return True
    return False


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_planted_fault_is_noticed(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    fault(monkeypatch)
    assert is_noticed()


@pytest.mark.parametrize(("fault", "route"), OTHER_ROUTES, ids=lambda each: getattr(each, "__name__", each))
def test_a_fault_is_noticed_by_the_plays_of_its_own_route(
    fault: Fault, route: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R211: the plays of the unified route alone would prove nothing of the others."""
    fault(monkeypatch)
    assert is_noticed(route)
