"""Slips in keys of pairs, and in the one unit that frontiers are computed in."""

from .slip import Slip

_GROWTH, _WINDOW = "cache/decide/growth.py", "cache/window.py"

PAIRS = (
    Slip("a_frontier_is_told_the_tokens", _GROWTH, "    yield from _reclaim(state, live, units - 1, 0)\n", "    yield from _reclaim(state, live, int(state.rows.length[live.row]) - 1, 0)\n", ("R256", "R263")),
    Slip("a_key_of_pairs_is_as_long_as_its_tokens", _WINDOW, "    return KeyLen(max(tokens - lookahead, 0))\n", "    return KeyLen(max(tokens, 0))\n", ("R257",)),
    Slip("a_frontier_is_told_the_whole_key", _GROWTH, "    yield from _reclaim(state, live, units - 1, 0)\n", "    yield from _reclaim(state, live, units, 0)\n", ("R258",)),
    Slip("what_is_protected_is_told_as_it_was", "cache/decide/requests.py", "    return TokenCount(node.end * page_size)\n\n\ndef finish", "    return TokenCount(prev * page_size)\n\n\ndef finish", ("R260",)),
    Slip("the_published_formula_is_the_tight_one", _WINDOW, "        reach = pre - pages_for(max(window_tokens, page_size), page_size) * page_size\n    else", "        reach = pre - max(window_tokens, page_size)\n    else", ("R261", "R262", "R274")),
    Slip("the_published_formula_is_the_first_one", _WINDOW, "        reach = pre - window_tokens - page_size\n", "        reach = pre - max(window_tokens, page_size)\n", ("R261", "R262", "R263", "R269")),
    Slip("nobody_asks_whose_pages_are_brought", "cache/slices.py", "    if not held:\n        book", "    if held is None:\n        book", ("R263",)),
    Slip("two_keys_are_built_for_one_insert", "cache/faces/radix_face.py", "            key = rank.key_of([*req.origin_input_ids, *req.output_ids][:committed])\n", "            rank.key_of([*req.origin_input_ids, *req.output_ids])\n            key = rank.key_of([*req.origin_input_ids, *req.output_ids][:committed])\n", ("R264",)),
    Slip("raw_keys_look_ahead", "cache/keys.py", "KeyMode(raw_key, TOKEN_BYTES, TokenCount(0))", "KeyMode(raw_key, TOKEN_BYTES, TokenCount(1))", ("R265",)),
    Slip("pairs_keep_their_windows", _GROWTH, "    if not config.free_out_of_window:\n", "    if not config.free_out_of_window or state.lookahead:\n", ("R267",)),
    Slip("a_key_of_no_pairs_is_an_error", "cache/keys.py", "    if array.size < 2:\n", "    if array.size == 1:\n", ("R257", "R268")),
    Slip("a_window_of_one_token_pages_falls_short", _WINDOW, "        reach = pre - window_tokens - page_size\n", "        reach = pre - window_tokens - page_size + 3 * (page_size == 1)\n", ("R269",)),
    Slip("windows_alone_are_served", "cache/faces/unified_setup.py", "    if components not in SERVED:\n", "    if not components:\n", ("R270",)),
    Slip("a_position_below_zero_is_taken", "cache/slices.py", "        if at < 0:\n", "        if at < -99:\n", ("R271",)),
    Slip("strewn_slots_are_taken", "cache/faces/radix_face.py", "        if strewn.any() or (firsts % self.page_size).any():\n", "        if strewn.all() and (firsts % self.page_size).all():\n", ("R272",)),
    Slip("a_level_that_broke_holds", "tools/window_evidence.py", "    return Level.HELD if holds else Level.BROKEN\n", "    return Level.HELD\n", ("R273",)),
)  # fmt: skip
"""1.S."""
