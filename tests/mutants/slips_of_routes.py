"""Slips in the choice of a route, in what is refused at start, in what the package promises, and in the gate."""

from .slip import Slip

_ROUTING, _MANIFEST = "cache/faces/routing.py", "tests/manifest.toml"


def _forgotten(file: str, *rows: str) -> Slip:
    """The gate does not run a file."""
    stem = file.rpartition("/")[2].removesuffix(".py")
    return Slip(f"the_gate_forgets_{stem}", _MANIFEST, f'    "tests/{file}",\n', "", rows)


def _unlocked(field: str, row: str) -> Slip:
    """The unified route takes what it does not serve."""
    return Slip(
        f"nothing_is_said_of_{field}", _ROUTING, f'    Gate("{field}",', '    Gate("page_size",', (row,)
    )


ROUTES = (
    Slip("a_second_tree_stands_in_the_state", "cache/state.py", "        self.nodes: dict[int, Node] = {ROOT: self.root}\n", "        self.nodes: dict[int, Node] = {ROOT: self.root}\n        self.second = self.root\n", ("R1",)),
    Slip("an_inner_node_goes_with_its_window", "cache/components/window.py", "        if node.children:\n            return Tomb", "        if not node.children:\n            return Tomb", ("R2", "R20", "R99")),
    Slip("every_route_follows_one", "cache/routes.py", "ROUTES[state.opened.route].tree", 'ROUTES["unified"].tree', ("R5", "R6")),
    Slip("a_face_lacks_a_call", "cache/faces/radix_face.py", "    def total_size(self)", "    def total_of_sizes(self)", ("R5", "R145")),
    Slip("the_rollback_route_takes_policies", "cache/config.py", "        if name != ruled:", '        if name != ruled and field != "tombstone_leaf":', ("R6", "R24")),
    Slip("a_host_tier_beside_a_window", "cache/config.py", "    if pages and not FOLDED[opened.route].hosted:", '    if pages and opened.route == "chunk":', ("R8",)),
    _unlocked("hierarchical_cache", "R8"),
    _unlocked("disaggregation", "R9"),
    _unlocked("speculative", "R10"),
    _unlocked("recurrent", "R11"),
    Slip("a_bench_that_misses_its_bar_fails", "tools/bench/command.py", "    met = {True:", "    if figure.meets is False:\n        raise SystemExit(1)\n    met = {True:", ("R12",)),
    Slip("the_rollback_route_is_gone", _ROUTING, 'config.disable_radix_cache else "legacy"', 'config.disable_radix_cache else "unified"', ("R13", "R24", "R197", "R203")),
    Slip("what_is_not_served_falls_back", _ROUTING, "            raise UnsupportedCombination(shut, config)", '            return "legacy"', ("R14", "R204")),
    Slip("a_component_takes_all_by_itself", "cache/components/component.py", "        return start + node.pages\n", "        return max(start, brought.prev)\n", ("R15", "R59")),
    Slip("the_core_looks_at_a_window", "cache/decide/unified.py", "    found = walk(state, key, namespace, full_only=full_only)\n", "    found = walk(state, key, namespace, full_only=full_only or not state.tail_pages)\n", ("R15",)),
    Slip("a_reclaim_believes_any_rank", "cache/faces/radix_face.py", "is not None and self._rank_of(req) is not rank:", "is not None and dp_rank < 0:", ("R16",)),
    Slip("the_unified_route_is_on_by_default", _ROUTING, "    unified: bool = False", "    unified: bool = True", ("R17", "R24")),
    Slip("a_free_goes_to_the_first_rank", "cache/faces/pool_allocator.py", "        return rank_of(self.ranks, dp_rank), pages_of_slots(", "        return self.ranks[0], pages_of_slots(", ("R3", "R18", "R47")),
    Slip("a_call_about_slots_takes_no_rank", "cache/faces/allocator.py", "    def count_swa_mapped(self, indices: ArrayLike, dp_rank: int = 0) -> int:", "    def count_swa_mapped(self, indices: ArrayLike, where: int = 0) -> int:", ("R18",)),
    Slip("key_lengths_are_token_counts", "journal/units.py", 'KeyLen = NewType("KeyLen", int)', "KeyLen = TokenCount", ("R19", "R256")),
    Slip("the_package_promises_a_name", "src/radixledger/__init__.py", '__all__ = ("__version__",)', '__all__ = ("__version__", "ledger")', ("R21", "R23")),
    Slip("a_hybrid_model_without_tree_loses_its_window", _ROUTING, '"swa_chunk" if config', '"chunk" if config', ("R195",)),
    Slip("nobody_gets_the_unified_route", _ROUTING, "        return \"unified\"\n", "        return \"legacy\"\n", ("R196",)),
    Slip("a_model_without_a_window_always_has_a_tree", _ROUTING, '    return "chunk" if config.disable_radix_cache else "radix"', '    return "radix"', ("R198",)),
    Slip("the_unified_flag_goes_before_a_disabled_cache", _ROUTING, "config.hybrid_swa and config.unified and not config.disable_radix_cache", "config.hybrid_swa and config.unified", ("R199", "R200")),
    Slip("the_unified_flag_is_enough", _ROUTING, "config.hybrid_swa and config.unified and not config.disable_radix_cache", "config.unified and not config.disable_radix_cache", ("R200",)),
    Slip("every_route_has_the_gates_of_one", _ROUTING, "    if asks_for_unified(config):\n", "    if config.unified or not config.unified:\n", ("R201",)),
    Slip("the_tree_imports_the_choice_of_routes", "cache/decide/unified.py", "from itertools import pairwise\n", "from itertools import pairwise\n\nfrom radixledger.cache.faces.routing import route_of as route_of\n", ("R202",)),
    _forgotten("cache/test_allocator.py", "R205", "R212"),
    _forgotten("cache/test_component_contract.py", "R206"),
    _forgotten("cache/test_healing.py", "R207"),
    _forgotten("test_machine.py", "R208"),
    _forgotten("cache/test_lifecycle.py", "R209"),
    _forgotten("cache/test_routing.py", "R210"),
    _forgotten("cache/test_legacy_tree.py", "R211"),
    Slip("a_missing_file_passes_the_gate", "tests/gate_cpu.py", "sorted(set(manifest.files) - there))", "())", ("R212",)),
    Slip("a_skip_passes_the_gate", "tests/gate_cpu.py", "        if skipped is not None and test not in manifest.allowed", "        if skipped is not None and not test and test not in manifest.allowed", ("R213",)),
    Slip("a_mark_passes_the_gate", "tests/gate_cpu.py", 'TURNED_OFF = {"skip", "skipif", "xfail", "importorskip"}', "TURNED_OFF = set()", ("R214",)),
    Slip("an_ugly_line_passes_the_gate", "tests/gate_cpu.py", "    return done.returncode == 0", "    return True", ("R215",)),
)  # fmt: skip
"""1.A, 1.L and 1.M."""
