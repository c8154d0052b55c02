"""A prefix cache as a server of sglang-jax calls it, whatever its route: the calls, over the allocator's ranks.

It decides nothing itself: which rules the trees follow is the route that the ranks were opened with. Rule: a request
that the server caches, reclaims or ends is a request of its rank, so the journal tells its whole life; what the
server's object knows of the cache (`prefix_indices`, `last_node`, lengths, the receipt) is written here, after the rank
has said so.
"""

from typing import Any

import msgspec
import numpy as np

from radixledger.cache.arguments import number, sequence, told
from radixledger.cache.face_rank import FaceRank, as_slots, boundary_receipt, rank_of
from radixledger.cache.faces.pool_allocator import PoolAllocator
from radixledger.cache.faces.request_rows import ReqToTokenPool
from radixledger.cache.faces.tree_view import TreeNode, drawn
from radixledger.cache.keys import namespace
from radixledger.cache.laws.invariants import broken_laws
from radixledger.cache.match import Hit
from radixledger.cache.opening import NO_STATES, StateMode
from radixledger.cache.prefix_cache import (
    BasePrefixCache,
    ComponentType,
    DecLockRefParams,
    Ended,
    EvictParams,
    EvictResult,
    IncLockRefResult,
    InsertParams,
    InsertResult,
    MatchPrefixParams,
    MatchResult,
    RadixKey,
    Req,
    TakenEvent,
)
from radixledger.cache.refusals import LawBroken
from radixledger.cache.slices import Slice
from radixledger.cache.traits import TRAITS
from radixledger.cache.window import insert_stop, key_length, pages_for
from radixledger.journal.accounts import Kind, request_account
from radixledger.journal.causes import Operation
from radixledger.journal.sizes import BadConfig
from radixledger.journal.units import (
    ROOT,
    UNBOUND,
    Pages,
    RequestId,
    TokenCount,
)

BOTH = (ComponentType.FULL, ComponentType.SWA)


class RadixFace(BasePrefixCache):
    """The calls of a prefix cache, over the ranks of an allocator and the rows of a pool. Routes build it.

    route: the rules of the trees. sliding_window_size: tokens, 0 where the route has no window. disable: nothing is cached or matched, requests own all
    of their rows. states: how the states of a recurrent model are kept, if it has them. keep_events: `take_events` hands out what the ranks record. Raises BadConfig, before anything is
    touched, if allocator and cache do not agree (R14, R58).
    """

    def __init__(
        self,
        req_to_token_pool: ReqToTokenPool,
        token_to_kv_pool_allocator: PoolAllocator,
        page_size: int,
        *,
        route: str,
        sliding_window_size: int | None,
        disable: bool,
        keep_events: bool,
        key_mode: str = "raw",
        states: StateMode = NO_STATES,
    ) -> None:
        if page_size != token_to_kv_pool_allocator.page_size:
            theirs = token_to_kv_pool_allocator.page_size
            raise BadConfig("page_size", f"the allocator's is {theirs}, the cache's {page_size}")
        if TRAITS[route].windowed and (sliding_window_size is None or sliding_window_size < 1):
            raise BadConfig(
                "sliding_window_size", f"{sliding_window_size}; SWA needs a positive window (R57)"
            )
        token_to_kv_pool_allocator.settle(
            route=route,
            sliding_window_size=sliding_window_size or 0,
            rows=req_to_token_pool.size,
            max_context_len=req_to_token_pool.max_context_len,
            key_mode=key_mode,
            states=states,
            keep_events=keep_events,
        )
        self.req_to_token_pool = req_to_token_pool
        self.token_to_kv_pool_allocator = token_to_kv_pool_allocator
        self.page_size = page_size
        self.route, self.traits = route, TRAITS[route]
        self.tree_components: tuple[ComponentType, ...] = BOTH if self.traits.windowed else BOTH[:1]
        if states.name:
            self.tree_components += (ComponentType.RECURRENT,)
        self.disable = disable
        self.sliding_window_size = sliding_window_size or 0
        self.ranks = token_to_kv_pool_allocator.ranks
        req_to_token_pool.attach(self.ranks)

    # -- the tree --------------------------------------------------------------------------------------------

    def match_prefix(self, params: MatchPrefixParams) -> MatchResult:
        """The usable prefix, whole pages of it; the node it ends in is cut there, and its path becomes the youngest.

        Raises ValueError for a key without rank where there are several (R98), NotImplementedError if states are to be
        copied where there are none.
        """
        told(params, "params", "key", "req", "full_only", "cow_recurrent")
        if params.cow_recurrent and not self.supports_recurrent():
            raise NotImplementedError(f"{type(self).__name__} keeps no states that could be copied")
        rank, key = self._keyed(params.key)
        if self.disable or len(key) < rank.state.stride:
            return _matched(TreeNode(rank, ROOT))
        rid = "" if params.req is None else told(params.req, "req", "rid").rid
        name = namespace(extra_key=params.key.extra_key)
        with rank.turn:
            hit = rank.match(key, name, rid=rid, full_only=params.full_only)
            last = TreeNode(rank, hit.host_node) if hit.host_node else None
            return _matched(TreeNode(rank, hit.node), last, hit.host_tokens)

    def peek(self, key: RadixKey) -> Hit:
        """What a match would give; nothing is cut, no recency moves (A19)."""
        rank, raw = self._keyed(key)
        return rank.peek(b"" if self.disable else raw, namespace(extra_key=key.extra_key))

    def _inserted(self, params: InsertParams) -> InsertResult:
        """Give the tree slots that were handed out to nobody in particular; how many tokens of the key it had.

        Slots that it has already are freed here where there is SWA, and stay the caller's where there is none; those
        of the last, unfinished page are the caller's always. Raises Refusal if slots are not the caller's to give,
        ValueError if they do not line up with the key.
        """
        told(params, "params", "key", "value", "prev_prefix_len", "swa_evicted_seqlen", "recurrent_value")
        rank, key = self._keyed(params.key)
        count = len(key) // rank.state.stride
        slot = rank.state_brought(params.recurrent_value, len(params.key))
        if self.disable or not count:
            if slot:
                rank.free_states(slot)
            return InsertResult()
        self._check_aligned(params)
        pages = self._pages_of_value(params.value, count)
        prev, released = params.prev_prefix_len // self.page_size, params.swa_evicted_seqlen // self.page_size
        giver = request_account(UNBOUND)
        brought = Slice(pages, prev, released, giver, UNBOUND, Operation.INSERT, recurrent=slot)
        inserted = rank.insert(key, namespace(extra_key=params.key.extra_key), brought)
        stands = bool(slot and inserted.node.recurrent)
        return InsertResult(
            inserted.prefix * self.page_size, stands and not inserted.donated, inserted.donated
        )

    def _check_aligned(self, params: InsertParams) -> None:
        for field in ("prev_prefix_len", "swa_evicted_seqlen"):
            tokens = number(getattr(params, field), field)
            if tokens % self.page_size:
                raise ValueError(
                    f"{field} of {tokens} tokens is no boundary of pages of {self.page_size} (R82)"
                )

    def _pages_of_value(self, value: Any, count: int) -> Pages:
        """The pages of a value that is as long as its key, cut to whole pages (R97)."""
        slots = as_slots(value)[: count * self.page_size]
        if slots.size < count * self.page_size:
            raise ValueError(f"{slots.size} slots were given for {count * self.page_size} tokens (R97)")
        firsts = slots[:: self.page_size]
        strewn = slots != np.repeat(firsts, self.page_size) + np.tile(np.arange(self.page_size), count)
        if strewn.any() or (firsts % self.page_size).any():
            raise ValueError(f"slots do not lie in pages of {self.page_size} as tokens do (R272)")
        return Pages((firsts // self.page_size).astype("<i4").tobytes())

    def evict(self, params: EvictParams) -> EvictResult:
        """Free the tree's oldest slots, FULL first, whole pages; the answer is what the pools gained (R105-R108)."""
        told(params, "params", "num_tokens", "swa_num_tokens", "recurrent_num", "dp_rank")
        if self.disable:
            return EvictResult()
        ranks = self.ranks if params.dp_rank is None else [rank_of(self.ranks, params.dp_rank)]
        full, swa = (
            pages_for(max(0, number(getattr(params, field), field)), self.page_size)
            for field in ("num_tokens", "swa_num_tokens")
        )
        states = number(params.recurrent_num, "recurrent_num") * self.supports_recurrent()
        wanted, gained = (full, swa, states), (0, 0, 0)
        for rank in ranks:
            left = [max(0, want - got) for want, got in zip(wanted, gained, strict=True)]
            if any(left):
                more = rank.evict_each(*left)
                gained = gained[0] + more[0], gained[1] + more[1], gained[2] + more[2]
        return EvictResult(gained[0] * self.page_size, gained[1] * self.page_size, gained[2])

    def inc_lock_ref(self, node: Any) -> IncLockRefResult:
        """Shield a path: FULL to the root, SWA over its last window; the answer is the receipt (R111, R112)."""
        if self.disable:
            return IncLockRefResult()
        rank = rank_of(self.ranks, told(node, "node", "id", "dp_rank").dp_rank)
        params = rank.params_of(rank.lock(rank.node_named(node)))
        return IncLockRefResult(params.swa_uuid_for_lock, params.skip_lock_node_ids)

    def dec_lock_ref(self, node: Any, params: DecLockRefParams | None = None) -> None:
        """Release what a receipt holds. Raises Refusal if it is not held, or is a live request's own (R122)."""
        if not self.disable:
            rank = rank_of(self.ranks, told(node, "node", "id", "dp_rank").dp_rank)
            rank.unlock(boundary_receipt(rank.node_named(node), params))

    def reset(self) -> None:
        """Empty all trees. Raises Busy, and clears nothing, if anything but a tree holds slots (R33, R142)."""
        for rank in self.ranks:
            rank.check_flush()
        for rank in self.ranks:
            rank.flush()

    # -- requests --------------------------------------------------------------------------------------------

    def cache_unfinished_req(self, req: Req) -> None:
        """Give the tree the whole pages of `fill_ids`; the request goes on from there with a new receipt (R139, R149)."""
        rank = self._rank_of(req)
        with rank.turn:
            self._cache_unfinished(rank, req)

    def _cache_unfinished(self, rank: FaceRank, req: Req) -> None:
        fill = sequence(told(req, "req", "fill_ids").fill_ids, "fill_ids")
        key = rank.key_of(fill) if self.traits.tree and not self.disable else b""
        tokens, request = len(fill), rank.seated(req)
        rank.check_told(req, request, tokens)
        row = rank.state.row_of(request)
        if not self.disable:
            before = int(rank.state.rows.protected[row])
            protected = int(rank.cache_unfinished(request, key))
            self.req_to_token_pool.show(req, before, rank.row_slots(request, before, protected))
            req.cache_protected_len = req.last_matched_prefix_len = protected
            req.last_node = TreeNode(rank, rank.state.requests[request].node)
        req.swa_evicted_seqlen = int(rank.state.rows.cursor[row])
        req.prefix_indices = self.req_to_token_pool.read(row, tokens)
        rank.hand_receipt(req, request)

    def cache_finished_req(self, req: Req, is_insert: bool = True, *, ended: Ended | None = None) -> None:
        """End a request: what it computed is cached, or not; the rest of its row is freed, its lock released.

        ended: what became of it, for the journal. Not told, a request that is cached finished and one that is not
        was aborted; only the server knows that it will come back (`Ended.RETRACTED`).
        """
        rank = self._rank_of(told(req, "req", "pop_committed_kv_cache"))
        committed = number(req.pop_committed_kv_cache(), "pop_committed_kv_cache()")
        how = Ended(ended) if ended else Ended.FINISHED if is_insert else Ended.ABORTED
        with rank.turn:
            request = rank.number_of(req)
            if request is None:
                self._let_go(req)
                return
            rank.check_told(req, request, committed)
            key = None
            if is_insert and self.traits.tree and not self.disable:
                key = rank.key_of([*req.origin_input_ids, *req.output_ids][:committed])
            rank.end(request, key, how)
            self.req_to_token_pool.forget(req)
            req.cache_lock_params = req.swa_uuid_for_lock = None

    def evict_req_swa(self, req: Req, pre_len: int, dp_rank: int = 0, *, in_flight: int = 0) -> None:
        """Give back the request's own SWA below its window; `swa_evicted_seqlen` tells how far (R126-R132).

        pre_len: tokens before the next one, sequence length - 1 on decode; where keys are pairs no more than committed - 1
        counts, whatever is given (R259). in_flight: tokens below `pre_len` that batches on the device may still read
        (R151). Raises NotImplementedError where there is no window (R126).
        """
        if not self.traits.windowed:
            super().evict_req_swa(req, pre_len, dp_rank)
        rank, pre_len = rank_of(self.ranks, dp_rank), number(pre_len, "pre_len")
        if told(req, "req", "dp_rank").dp_rank is not None and self._rank_of(req) is not rank:
            raise ValueError(f"request {req.rid!r} is on rank {req.dp_rank}, dp_rank {dp_rank} was given")
        request = rank.number_of(req)
        if request is not None:
            ahead = rank.state.lookahead
            if ahead:
                committed = TokenCount(number(req.kv_committed_len, "kv_committed_len"))
                pre_len = min(pre_len, key_length(committed, ahead))
            req.swa_evicted_seqlen = int(rank.reclaim(request, pre_len, in_flight))

    def _let_go(self, req: Req) -> None:
        """A request that never sat in a row ends: it has a lock at most."""
        if req.cache_lock_params is not None and req.last_node is not None:
            self.dec_lock_ref(req.last_node, req.cache_lock_params)
        req.cache_lock_params = req.swa_uuid_for_lock = None

    # -- what a server asks ----------------------------------------------------------------------------------

    def supports_swa(self) -> bool:
        """Whether it owns a sliding window (R124)."""
        return self.traits.windowed

    def supports_recurrent(self) -> bool:
        """Whether it keeps states of a recurrent model beside FULL."""
        return ComponentType.RECURRENT in self.tree_components

    def full_evictable_size(self, dp_rank: int = 0) -> int:
        """FULL tokens of the tree that no lock holds."""
        return rank_of(self.ranks, dp_rank).state.full_evictable * self.page_size

    def full_protected_size(self, dp_rank: int = 0) -> int:
        """FULL tokens of the tree that locks hold."""
        return rank_of(self.ranks, dp_rank).state.full_protected * self.page_size

    def swa_evictable_size(self, dp_rank: int = 0) -> int:
        """SWA tokens of the tree that no lock holds."""
        return rank_of(self.ranks, dp_rank).state.swa_evictable * self.page_size

    def swa_protected_size(self, dp_rank: int = 0) -> int:
        """SWA tokens of the tree that locks hold."""
        return rank_of(self.ranks, dp_rank).state.swa_protected * self.page_size

    def total_size(self) -> tuple[int, int]:
        """Tokens in the trees of all ranks: FULL, SWA."""
        states = [rank.state for rank in self.ranks]
        full = sum(state.full.held[Kind.TREE] for state in states)
        return full * self.page_size, sum(state.swa.held[Kind.TREE] for state in states) * self.page_size

    def ledger(self, dp_rank: int | None = None) -> list[dict[str, Any]]:
        """The accounts of a rank in tokens, or of all ranks in order; reads only (R153-R157).

        Raises NotImplementedError where there is no SWA: half of the numbers would be made up (R125).
        """
        if not self.traits.windowed:
            return super().ledger(dp_rank)
        ranks = self.ranks if dp_rank is None else [rank_of(self.ranks, dp_rank)]
        rows = []
        for rank in ranks:
            taken = msgspec.structs.asdict(rank.ledger())
            del taken["phase"], taken["digest"]
            names = [component.name for component in self.tree_components]
            rows.append({"dp_rank": rank.dp_rank, "route": self.route, "components": names, **taken})
        return rows

    def record_ledger(self, phase: str) -> None:
        """Write the ledger of every rank into its journal, with the digest of its state."""
        for rank in self.ranks:
            rank.record_ledger(phase)

    def sanity_check(self) -> None:
        """Recount every rank and compare the server's rows with it; raises LawBroken with what does not hold."""
        for rank in self.ranks:
            with rank.turn:
                self._check_rank(rank)

    def _check_rank(self, rank: FaceRank) -> None:
        for finding in broken_laws(rank.state):
            raise LawBroken(f"rank {rank.dp_rank}: {finding.law}: {finding.detail}")
        for request, live in rank.state.requests.items():
            held = rank.row_slots(RequestId(request), 0, int(rank.state.rows.length[live.row]))
            if not np.array_equal(self.req_to_token_pool.read(live.row, held.size), held):
                raise LawBroken(f"rank {rank.dp_rank}: row {live.row} of {live.rid!r} is not what was told")

    def take_events(self) -> list[TakenEvent]:
        """The events since the last call, rank after rank; none unless `enable_kv_cache_events`."""
        return self.token_to_kv_pool_allocator.take_events()

    def pretty_print(self) -> str:
        """The trees of all ranks in lines of text."""
        return "\n".join(drawn(rank) for rank in self.ranks)

    def _keyed(self, key: RadixKey) -> tuple[FaceRank, bytes]:
        """The rank of a key and its whole pages as bytes."""
        rank = rank_of(self.ranks, told(key, "key", "token_ids", "extra_key", "dp_rank").dp_rank)
        sequence(key.token_ids, "key.token_ids")
        ahead = rank.state.lookahead
        whole = insert_stop(key_length(TokenCount(len(key)), ahead), self.page_size)
        return rank, rank.key_of(key.token_ids[: whole + ahead])

    def _rank_of(self, req: Req) -> FaceRank:
        return rank_of(self.ranks, told(req, "req", "dp_rank").dp_rank)


def _matched(node: TreeNode, last: TreeNode | None = None, host_tokens: int = 0) -> MatchResult:
    return MatchResult(node.path_slots, node, last or node, node, host_tokens)
