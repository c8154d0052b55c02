"""The unified radix cache as a server of sglang-jax builds it: one FULL-backed tree, with an SWA component, with states of a
recurrent model, or with neither.

What its calls do stands in `radix_face`. Rule: what it does not serve is refused with its name before anything exists.
"""

from collections.abc import Sequence

from radixledger.cache.arguments import told
from radixledger.cache.face_rank import rank_of
from radixledger.cache.faces.pool_allocator import PoolAllocator
from radixledger.cache.faces.radix_face import RadixFace
from radixledger.cache.faces.request_rows import ReqToTokenPool
from radixledger.cache.faces.unified_setup import WITH_WINDOWS, checked_window, state_mode
from radixledger.cache.prefix_cache import (
    CacheInitParams,
    ComponentType,
    InsertParams,
    InsertResult,
    MatchPrefixParams,
    MatchResult,
    Req,
    StateSlots,
)
from radixledger.cache.refusals import Refusal


class UnifiedRadixCache(RadixFace):
    """One tree per rank, over the ranks of an allocator and the rows of a pool: FULL and SWA, FULL and RECURRENT, or FULL
    alone (R198).

    component_init_params names the window; FULL alone needs none, and an allocator of one pool. disable: nothing is cached
    or matched, requests own all of their rows. is_eagle: keys are pairs of tokens, with SWA served only if `lift_bigram`
    says that it is wanted although no gate accepts it.
    enable_recurrent_extra_buffer: requests track a state at every `recurrent_track_interval` tokens, in two slots beside
    the one that they run on; else a finished request alone leaves one. How many slots there are says the allocator
    (`size_recurrent`).
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
            route="unified" if tuple(tree_components) == WITH_WINDOWS else "radix",
            sliding_window_size=window,
            disable=disable,
            keep_events=enable_kv_cache_events,
            key_mode="bigram" if is_eagle else "raw",
            states=state_mode(tree_components, enable_recurrent_extra_buffer, recurrent_track_interval),
        )

    def match_prefix(self, params: MatchPrefixParams) -> MatchResult:
        """The usable prefix, see `RadixFace`; with `cow_recurrent` the state slots of `req` are free behind it.

        Others than `req` may still take them first; it has them when it sits down in its row. The state that it goes on
        from is not evicted for them. Raises StateShort if there cannot be so many; then nothing is held (B78).
        """
        told(params, "params", "key", "req", "cow_recurrent")
        if params.cow_recurrent and params.req is None and self.supports_recurrent():
            raise ValueError("cow_recurrent without a request: nobody would take the copy")
        with rank_of(self.ranks, told(params.key, "key", "dp_rank").dp_rank).turn as _:
            found = super().match_prefix(params)
            if params.cow_recurrent:
                node = found.last_device_node
                rank_of(self.ranks, node.dp_rank).make_room(node.id)
            return found

    def state_slots(self, req: Req) -> StateSlots:
        """The state slots of a request that sits in its row: where it runs, what is to be copied there, what it tracks.

        Raises Refusal for a request that sits in none, NotImplementedError where there are no states.
        """
        if not self.supports_recurrent():
            raise NotImplementedError(f"{type(self).__name__} keeps no states")
        rank = self._rank_of(req)
        number = rank.number_of(req)
        if number is None:
            raise Refusal(
                f"request {req.rid!r} sits in no row of rank {rank.dp_rank}, so it has no state slots"
            )
        rows, row = rank.state.rows, rank.state.row_of(number)
        running, *track = rows.states[row, : rank.state.states_each].tolist()
        source = int.from_bytes(rank.state.requests[number].source, "little")
        return StateSlots(running, source, tuple(track), tuple(rows.tracked[row, : len(track)].tolist()))

    def recurrent_evictable_size(self, dp_rank: int = 0) -> int:
        """State slots of the tree that no lock holds."""
        return rank_of(self.ranks, dp_rank).state.recurrent_evictable

    def recurrent_protected_size(self, dp_rank: int = 0) -> int:
        """State slots of the tree that locks hold."""
        return rank_of(self.ranks, dp_rank).state.recurrent_protected

    def insert(self, params: InsertParams) -> InsertResult:
        """Give the tree slots of a key (R61-R63, R83-R97); how many of its tokens the tree had before.

        Slots that the tree has already are freed here (R62); without SWA they stay the caller's, who frees them. A state that
        comes along is the cache's, taken or freed. Raises
        Refusal if slots are not the caller's to give, ValueError if they do not line up with the key.
        """
        return self._inserted(params)
