"""What the cache is meant to be and not to be: one tree per rank, no stable public names, ranks said by name."""

import ast
import inspect
from pathlib import Path

import pytest

import radixledger
from radixledger.cache.faces.allocator import SWATokenToKVPoolAllocator
from radixledger.cache.refusals import DoubleFree
from radixledger.cache.state import Node

from .server import Server, path, text

ROOT = Path(__file__).parents[2]


def test_one_tree_holds_both_pools_and_its_nodes_alone_say_which_windows_live() -> None:
    """R1: one root per rank; there is no second tree, and a window's pages stand in a node beside the FULL ones."""
    server = Server(4, 4, dp_size=2)
    for rank in range(2):
        path(server, "L LL", dp_rank=rank)
    for each in server.allocator.ranks:
        state = each.state
        trees = [name for name in vars(state) if isinstance(vars(state)[name], Node)]
        assert trees == ["root"]
        live = [node for node in state.nodes.values() if node.swa]
        assert all(state.mapping.swa_pages(node.full) == node.swa for node in live)
        assert len(live) == 3
    assert server.allocator.ranks[0].state.root is not server.allocator.ranks[1].state.root


def test_losing_a_window_inside_the_tree_costs_no_full_page_and_a_leaf_goes_from_both_pools() -> None:
    """R2, R20: the tombstone keeps node and FULL; only the removal of a leaf takes both."""
    server = Server(4, 4)
    path(server, "L L")
    nodes = len(server.rank().state.nodes)
    assert server.evict(swa=4) == (0, 4)
    assert len(server.rank().state.nodes) == nodes
    assert server.sizes()["full_evictable"] == 8
    assert server.evict(swa=4) == (4, 4)
    assert len(server.rank().state.nodes) == nodes - 1
    server.check()


def test_the_package_offers_no_names_of_its_own_but_its_version() -> None:
    """R21, R23: ledger, faces and events are imported by those who know what they are; nothing is promised by the door."""
    assert radixledger.__all__ == ("__version__",)
    source = ast.parse((ROOT / "src" / "radixledger" / "__init__.py").read_text("utf-8"))
    assert not any(isinstance(each, ast.Import | ast.ImportFrom) for each in ast.walk(source))


RANKED = (
    "alloc", "alloc_extend", "alloc_decode", "free", "free_full", "free_swa", "count_swa_mapped", "translate_full_to_swa",
    "transfer_swa_mapping", "full_available_size", "swa_available_size", "available_size",
)  # fmt: skip


@pytest.mark.parametrize("name", RANKED)
def test_every_call_about_slots_takes_a_rank(name: str) -> None:
    """R18."""
    assert "dp_rank" in inspect.signature(getattr(SWATokenToKVPoolAllocator, name)).parameters


def test_a_free_of_another_ranks_slots_is_not_believed() -> None:
    """R3, R18: slots that rank 0 has mean nothing on rank 1, and there nobody holds pages of these numbers."""
    server = Server(4, 4, dp_size=2)
    slots = server.slots(8, dp_rank=0)
    before = server.allocator.ranks[1].digest()
    with pytest.raises(DoubleFree):
        server.allocator.free(slots, 1)
    assert server.allocator.ranks[1].digest() == before
    server.allocator.free(slots, 0)
    assert server.allocator.available_size(0) == 64


def test_a_unified_cache_says_what_it_is_made_of() -> None:
    """A50: route and components stand in every ledger row."""
    server = Server(4, 4)
    server.end(server.start(text("a", 0, 9)))
    (row,) = server.cache.ledger()
    assert (row["route"], row["components"]) == ("unified", ["FULL", "SWA"])
