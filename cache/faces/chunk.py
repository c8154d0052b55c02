"""The caches without a tree as a server of sglang-jax builds them: nothing is matched, nothing is kept.

Their requests are told to the ranks like all others, so that ownership, ledger and journal are exact; what the calls do
stands in `radix_face`. Rule: what there is nothing of is refused, never faked: no insert, and without SWA no window and no
ledger (R124-R126).
"""

from typing import NoReturn

from radixledger.cache.faces.pool_allocator import PoolAllocator
from radixledger.cache.faces.radix_face import RadixFace
from radixledger.cache.faces.request_rows import ReqToTokenPool
from radixledger.cache.prefix_cache import InsertParams


class _NoTree(RadixFace):
    """What both have in common."""

    def insert(self, params: InsertParams) -> NoReturn:
        """Raises NotImplementedError: slots stay with whoever holds them."""
        raise NotImplementedError(f"{type(self).__name__} has no tree that slots could go to")


class ChunkCache(_NoTree):
    """FULL slots alone, for models without a window when the radix cache is turned off (R198).

    enable_kv_cache_events: `take_events` hands out what the ranks record. Raises BadConfig for an allocator of two pools.
    """

    def __init__(
        self,
        req_to_token_pool: ReqToTokenPool,
        token_to_kv_pool_allocator: PoolAllocator,
        page_size: int,
        *,
        enable_kv_cache_events: bool = False,
    ) -> None:
        super().__init__(
            req_to_token_pool,
            token_to_kv_pool_allocator,
            page_size,
            route="chunk",
            sliding_window_size=0,
            disable=False,
            keep_events=enable_kv_cache_events,
        )


class SWAChunkCache(_NoTree):
    """FULL and SWA slots, for hybrid models when the radix cache is turned off (R195).

    A request gives back what lies below its window from its first token on: nothing of it is the tree's (R128). Raises
    BadConfig without a positive window, or for an allocator of one pool (R57).
    """

    def __init__(
        self,
        req_to_token_pool: ReqToTokenPool,
        token_to_kv_pool_allocator: PoolAllocator,
        page_size: int,
        sliding_window_size: int | None,
        *,
        enable_kv_cache_events: bool = False,
    ) -> None:
        super().__init__(
            req_to_token_pool,
            token_to_kv_pool_allocator,
            page_size,
            route="swa_chunk",
            sliding_window_size=sliding_window_size,
            disable=False,
            keep_events=enable_kv_cache_events,
        )
