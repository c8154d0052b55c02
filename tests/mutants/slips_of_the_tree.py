"""Slips in the core, its components, matches, inserts, evictions and locks."""

from .slip import Slip

_CORE, _WINDOW = "cache/decide/unified.py", "cache/components/window.py"

TREE = (
    Slip("components_do_without_parameters", "cache/faces/unified_setup.py", "        if components == FULL_ALONE:\n            return None\n", "        if params is None:\n            return 4\n", ("R56",)),
    Slip("a_window_of_nothing_is_taken", "cache/faces/radix_face.py", "sliding_window_size is None or sliding_window_size < 1", "sliding_window_size is None or sliding_window_size < -9", ("R57",)),
    Slip("parameters_are_not_compared", "cache/faces/unified_setup.py", "    elif told != value:", "    elif told is value is None:", ("R58",)),
    Slip("an_insert_tells_what_it_did_not_find", _CORE, "            prefix = done + shared\n", "            prefix = done\n", ("R63",)),
    Slip("components_recover_twice", _CORE, "        yield from component.recover(state, node, start, brought)\n", "        yield from component.recover(state, node, start, brought)\n        yield from component.recover(state, node, start, brought)\n", ("R64",)),
    Slip("the_first_component_is_taken_for_full", _CORE, "    for component in state.components:\n        yield from component.recover(", "    for component in state.components[1:]:\n        yield from component.recover(", ("R64", "R65")),
    Slip("two_halves_share_their_pages", "cache/tree.py", "    node.full = Pages(node.full[upper.pages * 4 :])", "    node.full = Pages(node.full[: upper.pages * 4])", ("R66",)),
    Slip("a_use_makes_tombstones_young", "cache/tree.py", "        if walk.swa:\n", "        if walk.full:\n", ("R67",)),
    Slip("losing_a_window_makes_a_node_young", "cache/fold/tree.py", "    state.totals.tombstones += 1\n", "    state.totals.tombstones += 1\n    touch(state, node)\n", ("R68",)),
    Slip("an_unlocked_window_is_no_candidate", "cache/locks.py", "            offer_window(state, node)\n", "            pass\n", ("R69",)),
    Slip("the_root_is_a_victim", "cache/decide/eviction.py", "        leaf = oldest_leaf(state)\n", "        leaf = oldest_leaf(state) or state.root\n", ("R70",)),
    Slip("every_match_asks_the_components", "cache/match.py", "    if not full_only:\n", "    if full_only is not None:\n", ("R72",)),
    Slip("a_path_from_the_root_needs_a_window_too", _WINDOW, "        return end, pages\n", "        return (end, pages) if run >= need else (each, 0)\n", ("R75",)),
    Slip("a_window_is_rounded_down", "cache/window.py", "    return pages_for(window_tokens, page_size)\n", "    return PageCount(window_tokens // page_size)\n", ("R77", "R78")),
    Slip("a_tombstone_is_made_young", "cache/tree.py", "        if walk.swa:\n            windows += walk", "        if walk.pages:\n            windows += walk", ("R81",)),
    Slip("floors_are_no_floors", "cache/window.py", "    return tokens - tokens % page_size\n", "    return tokens\n", ("R82", "R257")),
    Slip("a_heal_keeps_the_old_pages", "cache/fold/tree.py", "        move(state, state.full, event.old, account, event.to)\n", "", ("R87",)),
    Slip("a_stale_mapping_is_healed_over", _WINDOW, "        assert not state.mapping.mapped(node.full)[0], \"the FULL", "        assert node.pages, \"the FULL", ("R88",)),
    Slip("a_heal_takes_pages_without_windows", "cache/slices.py", "    if mapped != live:\n", "    if len(mapped) > len(live):\n", ("R89",)),
    Slip("a_leaf_is_not_cut_where_it_was_released", _WINDOW, "        live = max(start, min(brought.released, total))\n", "        live = start\n", ("R94",)),
    Slip("a_value_may_be_shorter_than_its_key", "cache/faces/radix_face.py", "        if slots.size < count * self.page_size:\n", "        if slots.size < 0:\n", ("R97",)),
    Slip("a_rank_is_guessed", "cache/face_rank.py", "        if len(ranks) > 1:\n", "        if len(ranks) > 9:\n", ("R98",)),
    Slip("an_order_believes_its_old_entries", "cache/eviction.py", "        elif node.swa_tick != tick:\n            heapreplace(order, (node.swa_tick, node.id, node))\n        else:\n            return node\n    return None\n\n\ndef oldest_copy", "        else:\n            return node\n    return None\n\n\ndef oldest_copy", ("R103",)),
    Slip("each_rank_is_asked_for_all_of_it", "cache/faces/radix_face.py", "max(0, want - got) for want, got", "want for want, got", ("R107",)),
    Slip("a_leaf_that_full_holds_goes", _WINDOW, "        if node.holds:\n", "        if node.holds < 0:\n", ("R109",)),
    Slip("a_released_mark_is_wiped_off", "cache/locks.py", "                offer_window(state, node)\n        if boundary and node.boundary == boundary:\n", "                offer_window(state, node)\n        if boundary and node.boundary == boundary:\n            node.boundary = type(boundary)(0)\n", ("R117",)),
    Slip("a_short_path_gets_a_mark", _WINDOW, "            if span <= 0:\n", "            if span <= 0 or node.parent.parent is None:\n", ("R119",)),
    Slip("a_window_healed_under_a_lock_may_go", "cache/fold/tree.py", "    if node.swa_locks:\n        state.swa_protected += node.pages\n", "", ("R123",)),
)  # fmt: skip
"""1.D to 1.H."""
