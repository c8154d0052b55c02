"""Slips in the ledger, in what an idle server checks, and in the checks of ledgers in SQL."""

from .slip import Slip

_TAKEN, _IDLE = "cache/taken_ledger.py", "cache/faces/idle.py"

LEDGERS = (
    Slip("a_ledger_has_fields_of_its_route", "cache/faces/radix_face.py", '"components": names, **taken})', '"components": names, f"{self.route}_rows": 1, **taken})', ("R153",)),
    Slip("request_owned_is_what_the_books_say", _TAKEN, "        full_request_owned=full_tokens,\n", "        full_request_owned=full[Kind.REQUEST] * page_size,\n", ("R154",)),
    Slip("a_mapping_that_two_have_is_not_counted", _TAKEN, "(int(targets.size) - int(np.unique(targets).size)) * page_size", "0", ("R155",)),
    Slip("a_ledger_may_miss_tokens", _IDLE, "        if total != capacity:", "        if total > capacity:", ("R154", "R156")),
    Slip("a_look_may_change_what_it_looks_at", _IDLE, "    if after != before:\n", "    if len(after) != len(before):\n", ("R157",)),
    Slip("a_flush_does_not_look_before_it_clears", _IDLE, '        check_ledgers(cache.ledger(), require_idle=True)\n        cache.record_ledger("pre_flush")', '        cache.record_ledger("pre_flush")', ("R33", "R161", "R176")),
    Slip("a_cold_capacity_of_nothing_passes", "analytics/sql/ledger_capacity_drift.sql", " OR capacity <> built_with", "", ("R162",)),
    Slip("capacities_drift_with_what_is_free", _TAKEN, "        full_capacity=state.full.capacity * page_size,\n", "        full_capacity=(state.full.capacity - (phase == 'post_flush')) * page_size,\n", ("R163",)),
    Slip("pairs_of_unequal_pools_pass", "analytics/sql/ledger_pair_capacity.sql", "baseline.capacity <> other.capacity", "baseline.capacity < 0", ("R164",)),
    Slip("a_flush_may_leave_pages", _IDLE, "            if capacity != available:", "            if capacity < available:", ("R165",)),
    Slip("a_flush_may_leave_mappings", _IDLE, '        if row["mapping_nonzero_count"]:\n', '        if row["mapping_nonzero_count"] < 0:\n', ("R166",)),
    Slip("ranks_are_told_backwards", "cache/faces/radix_face.py", "        ranks = self.ranks if dp_rank is None else [rank_of(self.ranks, dp_rank)]\n        rows = []", "        ranks = self.ranks[::-1] if dp_rank is None else [rank_of(self.ranks, dp_rank)]\n        rows = []", ("R167",)),
    Slip("two_requests_of_one_name_pass", _IDLE, "        if by_rid.setdefault(req.rid, req) is not req:", "        if by_rid.setdefault(req.rid, req) is None:", ("R168",)),
    Slip("mappings_are_counted_in_pages", _TAKEN, "        mapping_nonzero_count=int(targets.size) * page_size,\n", "        mapping_nonzero_count=int(targets.size),\n", ("R169",)),
    Slip("the_rest_of_a_pool_is_counted", "cache/opening.py", "        full_pages=size // dp_size // page_size,\n", "        full_pages=-(-size // dp_size // page_size),\n", ("R170",)),
    Slip("a_look_counts_itself", _TAKEN, "    page_size = state.page_size\n    full_rows", "    page_size = state.page_size\n    state.totals.healed += 1\n    full_rows", ("R157", "R173")),
    Slip("sizes_are_found_by_a_walk", "cache/faces/radix_face.py", "        return rank_of(self.ranks, dp_rank).state.full_evictable * self.page_size", "        nodes = rank_of(self.ranks, dp_rank).state.nodes.values()\n        return sum(each.pages for each in nodes if not each.holds) * self.page_size", ("R174",)),
    Slip("half_pages_pass", _IDLE, "        if value % size:\n", "        if value < 0:\n", ("R175",)),
    Slip("rows_are_cleared_before_the_tree", _IDLE, "    cache.reset()\n    rows.clear()\n", "    rows.clear()\n    cache.reset()\n", ("R176",)),
    Slip("a_cache_without_windows_is_asked_for_a_ledger", _IDLE, "    asked = cache.supports_swa()\n", "    asked = True\n", ("R178",)),
)  # fmt: skip
"""1.J."""
