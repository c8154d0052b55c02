"""The unified radix cache as a server of sglang-jax builds it: one FULL-backed tree, with an SWA component or without.

What its calls do stands in `radix_face`. Rule: what it does not serve is refused with its name before anything exists.
"""

from collections.abc import Sequence

from radixledger.cache.pool_allocator import PoolAllocator
from radixledger.cache.prefix_cache import CacheInitParams, ComponentType, InsertParams, InsertResult
from radixledger.cache.radix_face import RadixFace
from radixledger.cache.request_rows import ReqToTokenPool
from radixledger.cache.unified_setup import FULL_ALONE, checked_window


class UnifiedRadixCache(RadixFace):
    """One tree per rank, over the ranks of an allocator and the rows of a pool: FULL and SWA, or FULL alone (R198).

    component_init_params names the window; FULL alone needs none, and an allocator of one pool. disable: nothing is cached
    or matched, requests own all of their rows. is_eagle: keys are pairs of tokens, with SWA served only if `lift_bigram`
    says that it is wanted although no gate accepts it.
    enable_kv_cache_events: `take_events` hands out what the ranks record. The shapes of device arrays, from
    kv_head_num to dtype, are the pool's business: they are taken and not looked at. Raises BadConfig, before anything is
    touched, for whatever is not served (R10, R11, R14, R56-R58).
    """

    def __init__(
        self,
        req_to_token_pool: ReqToTokenPool,
        token_to_kv_pool_allocator: PoolAllocator,
        page_size: int = 1,
        disable: bool = False,
        is_eagle: bool = False,
        tree_components: Sequence[ComponentType] = (ComponentType.FULL,),
        enable_recurrent_extra_buffer: bool = False,
        recurrent_track_interval: int | None = None,
        component_init_params: CacheInitParams | None = None,
        *,
        lift_bigram: bool = False,
        enable_kv_cache_events: bool = False,
        kv_head_num: int = 32,
        head_dim: int = 128,
        layer_num: int = 32,
        max_seq_len: int = 4096,
        dtype: object = None,
    ) -> None:
        window = checked_window(
            component_init_params,
            req_to_token_pool=req_to_token_pool,
            token_to_kv_pool_allocator=token_to_kv_pool_allocator,
            page_size=page_size,
            is_eagle=is_eagle,
            lift_bigram=lift_bigram,
            tree_components=tree_components,
            enable_recurrent_extra_buffer=enable_recurrent_extra_buffer,
            recurrent_track_interval=recurrent_track_interval,
        )
        super().__init__(
            req_to_token_pool,
            token_to_kv_pool_allocator,
            page_size,
            route="radix" if tuple(tree_components) == FULL_ALONE else "unified",
            sliding_window_size=window,
            disable=disable,
            keep_events=enable_kv_cache_events,
            key_mode="bigram" if is_eagle else "raw",
        )

    def insert(self, params: InsertParams) -> InsertResult:
        """Give the tree slots of a key (R61-R63, R83-R97); how many of its tokens the tree had before.

        Slots that the tree has already are freed here (R62); without SWA they stay the caller's, who frees them. Raises
        Refusal if slots are not the caller's to give, ValueError if they do not line up with the key.
        """
        return InsertResult(prefix_len=self._inserted(params))
