"""The legacy SWA radix cache as a server of sglang-jax builds it: the rollback route, with rules of its own.

What its calls do stands in `radix_face`, its rules in `decide.legacy`. Rule: it keeps behaving as it does; what is
better elsewhere is the unified route's (R6, R13, R24).
"""

from radixledger.cache.faces.pool_allocator import PoolAllocator
from radixledger.cache.faces.radix_face import RadixFace
from radixledger.cache.faces.request_rows import ReqToTokenPool
from radixledger.cache.prefix_cache import InsertParams


class SWARadixCache(RadixFace):
    """FULL and SWA in one tree per rank, over the ranks of an allocator of both pools and the rows of a pool.

    sliding_window_size: tokens. disable: nothing is cached or matched, requests own all of their rows.
    enable_kv_cache_events: `take_events` hands out what the ranks record. Raises BadConfig, before anything is touched,
    without a positive window, or if allocator and cache do not agree (R14, R57).
    """

    def __init__(
        self,
        req_to_token_pool: ReqToTokenPool,
        token_to_kv_pool_allocator: PoolAllocator,
        sliding_window_size: int,
        page_size: int,
        disable: bool = False,
        *,
        enable_kv_cache_events: bool = False,
    ) -> None:
        super().__init__(
            req_to_token_pool,
            token_to_kv_pool_allocator,
            page_size,
            route="legacy",
            sliding_window_size=sliding_window_size,
            disable=disable,
            keep_events=enable_kv_cache_events,
        )

    def insert(self, params: InsertParams) -> int:
        """Give the tree slots of a key; how many of its tokens the tree had before, as a plain number.

        Slots that the tree has already are freed here. Raises Refusal if slots are not the caller's to give, ValueError
        if they do not line up with the key.
        """
        return self._inserted(params).prefix_len
