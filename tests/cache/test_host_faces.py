"""Copies as a server sees them: what a match says of the host, what an insert gives back, sizes, reset."""

import numpy as np

from radixledger.cache.faces.allocator import TokenToKVPoolAllocator
from radixledger.cache.faces.request_rows import ReqToTokenPool
from radixledger.cache.faces.unified import UnifiedRadixCache
from radixledger.cache.opening import HostCopies, opened_ranks
from radixledger.cache.prefix_cache import (
    ComponentType,
    EvictParams,
    InsertParams,
    MatchPrefixParams,
    MatchResult,
    RadixKey,
)
from radixledger.journal.events import Adopted

from .driven import FrameList

PAGE = 4


class Served:
    """One rank behind the faces, with a host tier of 12 pages beside 12 of the device."""

    def __init__(self) -> None:
        copies = HostCopies(12 * PAGE)
        (opened,) = opened_ranks(
            12 * PAGE, 0, PAGE, 1, sliding_window_size=0, route="radix", rows=2, max_context_len=40, host=copies,
            redaction="plain",
        )  # fmt: skip
        self.journal = FrameList(opened)
        self.pool = TokenToKVPoolAllocator(12 * PAGE, None, PAGE, host=copies, journals=[self.journal])
        self.cache = UnifiedRadixCache(ReqToTokenPool(2, 40), self.pool, PAGE)
        self.rank = self.cache.ranks[0]

    def insert(self, tokens: int) -> int:
        """Fresh slots for the first so many tokens of one text; how many of them were there already, and are freed here."""
        slots = self.pool.alloc(tokens)
        assert slots is not None
        had = self.cache.insert(InsertParams(RadixKey(list(range(tokens))), slots)).prefix_len
        if had:
            self.pool.free(slots[:had])
        return had

    def match(self, tokens: int) -> MatchResult:
        return self.cache.match_prefix(MatchPrefixParams(RadixKey(list(range(tokens)))))

    def back_up(self, result: MatchResult) -> None:
        """What of the matched path has no copy gets one."""
        for copy in self.rank.write_through(result.last_device_node.id):
            self.rank.gathered(copy.transfer)
            self.rank.end_backup(copy.transfer, True)


def test_a_match_tells_a_server_how_much_it_could_load_and_up_to_which_node() -> None:
    """R211: `device_indices` end where the device does; the next `host_hit_length` tokens end at `last_host_node`."""
    served = Served()
    served.insert(12)
    served.insert(24)
    served.back_up(served.match(24))
    before = served.match(24).device_indices
    assert served.cache.evict(EvictParams(num_tokens=1)).num_tokens_evicted == 12
    found = served.match(20)
    assert (found.device_indices.size, found.host_hit_length) == (12, 8)
    assert found.last_device_node != found.last_host_node
    assert found.last_host_node.component_data[ComponentType.FULL].value is None
    assert found.last_host_node.path_slots.tolist() == found.device_indices.tolist() == before[:12].tolist()
    assert "FULL tombstone copied to the host" in served.cache.pretty_print()
    copy = served.rank.load_back(found.last_host_node.id)
    served.rank.end_load(copy.transfer, True)
    loaded = served.match(20)
    assert (loaded.device_indices.size, loaded.host_hit_length) == (20, 0)
    assert loaded.last_host_node == loaded.last_device_node == loaded.best_match_node
    served.cache.sanity_check()


def test_what_an_insert_brings_for_a_full_tombstone_is_not_for_its_caller_to_free() -> None:
    """R64, R63: `prefix_len` counts what the device had; freeing just that leaves every slot with one owner."""
    served = Served()
    served.insert(12)
    served.insert(24)
    served.back_up(served.match(24))
    served.cache.evict(EvictParams(num_tokens=1))
    assert served.insert(24) == 12
    assert [type(event) for event in served.journal.events].count(Adopted) == 1
    assert served.match(24).device_indices.size == 24
    assert (served.pool.full_available_size(), served.cache.full_evictable_size()) == (24, 24)
    served.cache.sanity_check()
    row = served.rank.ledger()
    assert (row.host_capacity, row.host_tree_mirrored, row.host_available) == (48, 24, 24)
    served.cache.reset()
    assert served.rank.state.host.available == 12
    assert np.all(served.rank.state.host.account[1:] == 0)
