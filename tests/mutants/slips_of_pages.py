"""Slips in the allocators, the mapping and free groups."""

from .slip import Slip

_FACE, _POOL, _DECIDE = "cache/faces/allocator.py", "cache/faces/pool_allocator.py", "cache/decide/pages.py"

PAGES = (
    Slip("a_node_tells_other_slots", "cache/faces/tree_view.py", "full = slots_of_pages(node.full, page_size) if", "full = slots_of_pages(node.full, page_size) + 1 if", ("R25",)),
    Slip("a_lock_goes_to_the_first_rank", "cache/faces/radix_face.py", "        rank = rank_of(self.ranks, told(node, \"node\", \"id\", \"dp_rank\").dp_rank)\n        params = rank.params_of(", "        rank = self.ranks[0]\n        params = rank.params_of(", ("R27",)),
    Slip("a_key_goes_to_the_first_rank", "cache/faces/radix_face.py", "        rank = rank_of(self.ranks, told(key, \"key\", \"token_ids\", \"extra_key\", \"dp_rank\").dp_rank)\n", "        rank = self.ranks[0]\n", ("R27", "R32", "R98")),
    Slip("a_mapping_moves_on_the_first_rank", _FACE, "        rank_of(self.ranks, dp_rank).remap(", "        self.ranks[0].remap(", ("R32", "R47")),
    Slip("a_translation_is_the_mapping_itself", _FACE, "        return found\n\n    def _translated", "        swa_of = rank.state.mapping.swa_of\n        return swa_of[slots[0] : slots[0] + slots.size] if self.page_size == 1 else found\n\n    def _translated", ("R34",)),
    Slip("a_missing_mapping_is_passed_over", _FACE, "        if require_mapped and missing.size:", "        if require_mapped and missing.size > slots.size:", ("R35",)),
    Slip("a_mapping_is_always_required", _FACE, "        if require_mapped and missing.size:", "        if missing.size:", ("R36",)),
    Slip("slots_are_translated_to_another_type", _FACE, "np.where(swa != 0, swa * self.page_size + offsets, 0).astype(np.int32)", "np.where(swa != 0, swa * self.page_size + offsets, 0).astype(np.int64)", ("R37",)),
    Slip("a_second_free_of_a_window_is_an_error", _DECIDE, "    if not lots and not illegal:\n", "    if not lots and not illegal:\n        raise Refusal('nothing to free')\n", ("R40",)),
    Slip("one_pool_is_not_asked", _DECIDE, " or (state.swa.held[_FREE] < needed and state.windowed):", ":", ("R45", "R46")),
    Slip("the_last_page_is_not_used_up", _POOL, "pages_for(start, self.page_size) * self.page_size) - start\n", "start) - start\n", ("R46",)),
    Slip("clearing_ends_a_group", "cache/decide/faces.py", "    if was_open:\n        yield GroupOpened()", "    if not was_open:\n        yield GroupOpened()", ("R48",)),
    Slip("pools_are_not_looked_at", _POOL, "        if wants != (self.size_swa > 0):", "        if wants is None:", ("R14", "R53", "R58")),
)  # fmt: skip
"""1.B and 1.C."""
