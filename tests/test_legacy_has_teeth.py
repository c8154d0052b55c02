"""Faults planted into the rollback route: its plays must stop at each of them, or its witnesses would be of no use (J19)."""

from typing import Any

import pytest

from radixledger.cache import traits
from radixledger.cache.decide import legacy as decide_legacy
from radixledger.cache.decide import unified as decide_unified
from radixledger.cache.decide.eviction import Gain
from radixledger.cache.match import Walk
from radixledger.cache.slices import Slice, split_at
from radixledger.cache.state import Node, State
from radixledger.journal.causes import Cause, Site
from radixledger.journal.events import HealMode, Matched

from .test_machine_has_teeth import Fault, is_noticed


def the_last_window_alone_is_refreshed(patch: pytest.MonkeyPatch) -> None:
    """R77 is the other route's rule."""
    patch.setitem(traits.TRAITS, "legacy", traits.TRAITS["legacy"]._replace(refreshes_path=False))


def the_end_of_the_walk_is_not_told(patch: pytest.MonkeyPatch) -> None:
    """What was walked beyond the usable prefix stays as old as it was."""
    patch.setattr(decide_legacy, "Matched", lambda *a, **named: Matched(*a[:10], **named))


def a_match_follows_the_other_route(patch: pytest.MonkeyPatch) -> None:
    """The node that the walk ends in is not cut where its window is dead."""
    patch.setattr(decide_legacy, "match", decide_unified.match)


def a_match_asks_no_window(patch: pytest.MonkeyPatch) -> None:
    """R73."""
    lawful = decide_legacy._boundary
    patch.setattr(decide_legacy, "_boundary", lambda state, way, **_: lawful(state, way, full_only=True))


def no_boundary_is_committed_before_a_gap(patch: pytest.MonkeyPatch) -> None:
    """R76: what was good before the tombstone is forgotten."""
    lawful = decide_legacy._boundary

    def boundary(state: State, way: Any, *, full_only: bool) -> Walk:
        return lawful(state, way._replace(best=state.root), full_only=full_only)

    patch.setattr(decide_legacy, "_boundary", boundary)


def a_leaf_is_cut_at_the_window(patch: pytest.MonkeyPatch) -> None:
    """R95 is the other route's rule: its last window becomes a node of its own."""
    lawful = decide_legacy._grow

    def grow(state: State, node: Node, key: bytes, namespace: bytes, start: int, brought: Slice) -> Any:
        leaf = yield from lawful(state, node, key, namespace, start, brought)
        if leaf.pages > state.tail_pages:
            yield split_at(state, leaf, leaf.pages - state.tail_pages, brought.why(Site.WHOLE))
        return leaf

    patch.setattr(decide_legacy, "_grow", grow)


def an_insert_refreshes_nothing_of_its_own(patch: pytest.MonkeyPatch) -> None:
    """An insert that adds nothing leaves its path as old as it was."""
    lawful = decide_legacy.insert

    def insert(*arguments: Any) -> Any:
        steps = lawful(*arguments)
        while True:
            try:
                event = next(steps)
            except StopIteration as stop:
                return stop.value
            if not isinstance(event, Matched):
                yield event

    patch.setattr(decide_legacy, "insert", insert)


class _AlwaysReplace:
    TRANSFER = REPLACE = HealMode.REPLACE


def a_heal_replaces_what_others_read(patch: pytest.MonkeyPatch) -> None:
    """A13, B10."""
    patch.setattr(decide_legacy, "HealMode", _AlwaysReplace)


def a_lock_passes_a_tombstone(patch: pytest.MonkeyPatch) -> None:
    """A21 is the other route's rule."""
    patch.setattr(decide_legacy, "segment", decide_unified.segment)


def a_childless_tombstone_stays(patch: pytest.MonkeyPatch) -> None:
    """A leaf is never a tombstone."""
    lawful = decide_legacy._delete

    def delete(state: State, leaf: Node, why: Cause) -> Any:
        gain = Gain(leaf.pages, len(leaf.swa) // 4)
        yield next(lawful(state, leaf, why))
        return gain

    patch.setattr(decide_legacy, "_delete", delete)


def the_clean_up_is_not_credited(patch: pytest.MonkeyPatch) -> None:
    """R105."""
    lawful = decide_legacy._delete

    def delete(state: State, leaf: Node, why: Cause) -> Any:
        gain = Gain(leaf.pages, len(leaf.swa) // 4)
        yield from lawful(state, leaf, why)
        return gain

    patch.setattr(decide_legacy, "_delete", delete)


FAULTS: tuple[Fault, ...] = (
    the_last_window_alone_is_refreshed,
    the_end_of_the_walk_is_not_told,
    a_match_follows_the_other_route,
    a_match_asks_no_window,
    no_boundary_is_committed_before_a_gap,
    a_leaf_is_cut_at_the_window,
    an_insert_refreshes_nothing_of_its_own,
    a_heal_replaces_what_others_read,
    a_lock_passes_a_tombstone,
    a_childless_tombstone_stays,
    the_clean_up_is_not_credited,
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_fault_of_the_rollback_route_is_noticed(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    fault(monkeypatch)
    assert is_noticed("legacy"), "no play of the route noticed it"
