"""Slips in what a server asks and is told of its requests: capabilities, receipts, sizes, what is short."""

from .slip import Slip

_FACE, _ASKED = "cache/faces/radix_face.py", "cache/prefix_cache.py"

REQUESTS = (
    Slip("every_cache_has_a_window", _FACE, "        return self.traits.windowed\n", "        return True\n", ("R124",)),
    Slip("a_window_is_claimed_by_default", _ASKED, "`evict_req_swa` (R124).\"\"\"\n        return False", "`evict_req_swa` (R124).\"\"\"\n        return True", ("R124",)),
    Slip("a_ledger_of_nothing_is_shown", _ASKED, "says so (R125).\"\"\"\n        raise NotImplementedError(f\"{type(self).__name__} keeps no ledger\")", "says so (R125).\"\"\"\n        return []", ("R125",)),
    Slip("giving_back_without_a_window_is_passed_over", _ASKED, '        raise NotImplementedError(f"{type(self).__name__} has no sliding window")', "        return None", ("R126",)),
    Slip("a_frontier_is_a_page_too_high", "cache/window.py", "        reach = pre - window_tokens - page_size\n", "        reach = pre - window_tokens\n", ("R130", "R134", "R135")),
    Slip("a_protected_length_is_believed", "cache/face_rank.py", "        if found is not None and found.end * self.state.page_size != protected:", "        if found is not None and protected < 0:", ("R136",)),
    Slip("an_ended_request_keeps_its_receipt", _FACE, "            self.req_to_token_pool.forget(req)\n            req.cache_lock_params = req.swa_uuid_for_lock = None\n", "            self.req_to_token_pool.forget(req)\n", ("R138", "R142", "R143")),
    Slip("a_running_request_gets_no_new_receipt", _FACE, "        rank.hand_receipt(req, request)\n", "", ("R139", "R143")),
    Slip("a_pool_is_told_as_another", _FACE, "state.swa_protected * self.page_size", "state.full_protected * self.page_size", ("R145", "R146")),
    Slip("what_is_short_tells_no_evictable", "cache/decide/pages.py", "        swa_evictable=state.swa_evictable,\n", "        swa_evictable=0,\n", ("R152",)),
    Slip("a_request_without_a_tree_caches", "cache/decide/requests.py", "    if not state.traits.tree:\n        return TokenCount(0)\n", "    if not state.traits:\n        return TokenCount(0)\n", ("R150",)),
)  # fmt: skip
"""1.I."""
