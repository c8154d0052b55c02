"""A server of one page, written for sglang-jax's calls: what it does to a cache is what real ones do.

It keeps its requests and rows, matches, locks, allocates, writes rows, caches and ends. Every rank's events are kept,
so that `check` can fold them and compare.
"""

from collections.abc import Sequence
from itertools import count
from typing import Any, TypeVar

import numpy as np
from msgspec.structs import replace

from radixledger.cache.digest import digest, recount
from radixledger.cache.evolve import begin, evolve
from radixledger.cache.face_rank import FaceRank
from radixledger.cache.faces.allocator import SWATokenToKVPoolAllocator, TokenToKVPoolAllocator
from radixledger.cache.faces.chunk import ChunkCache, SWAChunkCache
from radixledger.cache.faces.legacy import SWARadixCache
from radixledger.cache.faces.radix_face import RadixFace
from radixledger.cache.faces.request_rows import ReqToTokenPool
from radixledger.cache.faces.tree_view import TreeNode
from radixledger.cache.faces.unified import UnifiedRadixCache
from radixledger.cache.laws.invariants import broken_laws
from radixledger.cache.opening import opened_ranks
from radixledger.cache.prefix_cache import (
    CacheInitParams,
    ComponentType,
    DecLockRefParams,
    Ended,
    EvictParams,
    InsertParams,
    InsertResult,
    MatchPrefixParams,
    MatchResult,
    RadixKey,
    Slots,
)
from radixledger.journal.events import AnyEvent, Opened

E = TypeVar("E")

SWA = ComponentType.SWA
FULL = ComponentType.FULL
BOTH = (FULL, SWA)
ONE_POOL = ("radix", "chunk")
"""Routes without SWA."""


class EventList:
    """A journal in memory: the events of whole commands."""

    def __init__(self, opened: Opened) -> None:
        self.opened = opened
        self.events: list[AnyEvent] = []
        self.commands: list[int] = []

    def append(self, event: AnyEvent, /) -> None:
        self.events.append(event)

    def end_command(self) -> None:
        self.commands.append(len(self.events))

    def end_step(self, step: int) -> None:
        """Everything is safe already."""

    def close(self) -> None:
        """Nothing to let go."""

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]


class Request:
    """The server's own request."""

    def __init__(
        self, rid: str, prompt: Sequence[int], *, dp_rank: int | None = None, extra_key: str | None = None
    ) -> None:
        self.rid = rid
        self.origin_input_ids = list(prompt)
        self.output_ids: list[int] = []
        self.fill_ids = list(prompt)
        self.extra_key = extra_key
        self.dp_rank = dp_rank
        self.req_pool_idx: int | None = None
        self.prefix_indices: Slots = np.zeros(0, np.int32)
        self.last_node: TreeNode | None = None
        self.cache_protected_len = 0
        self.last_matched_prefix_len = 0
        self.swa_evicted_seqlen = 0
        self.cache_lock_params: DecLockRefParams | None = None
        self.swa_uuid_for_lock: int | None = None
        self.kv_committed_len = 0
        self.kv_allocated_len = 0
        self._popped = False

    def pop_committed_kv_cache(self) -> int:
        assert not self._popped, "the committed length is asked for once"
        self._popped = True
        return self.kv_committed_len

    @property
    def row(self) -> int:
        assert self.req_pool_idx is not None, "the request has a row"
        return self.req_pool_idx


class Server:
    """One cache with its pool of rows, and what a scheduler does with them."""

    usual_route = "unified"
    """Who serves unless a test says otherwise."""

    def __init__(
        self,
        page_size: int = 4,
        window: int = 4,
        *,
        full_pages: int = 16,
        swa_pages: int = 16,
        dp_size: int = 1,
        rows: int = 8,
        context: int = 8192,
        disable: bool = False,
        strict: bool = True,
        events: bool = False,
        tombstone_leaf: str = "veto",
        is_eagle: bool = False,
        route: str | None = None,
    ) -> None:
        route = route or Server.usual_route
        if route in ONE_POOL:
            window = swa_pages = 0
        self.page_size, self.window, self.dp_size = page_size, window, dp_size
        size, size_swa = full_pages * page_size * dp_size, swa_pages * page_size * dp_size
        opened = opened_ranks(
            size, size_swa, page_size, dp_size, route=route, sliding_window_size=window, rows=rows, max_context_len=context,
            key_mode="bigram" if is_eagle else "raw",
        )  # fmt: skip
        opened = [
            replace(each, run="test", config=replace(each.config, tombstone_leaf=tombstone_leaf))
            for each in opened
        ]
        self.journals = [EventList(each) for each in opened]
        self.pool = ReqToTokenPool(rows, context)
        self.allocator = self._pools(size, size_swa, strict)
        self.cache = self._built(route, disable, events, is_eagle)
        self._names = count(1)

    def _pools(self, size: int, size_swa: int, strict: bool) -> Any:
        if not size_swa:
            return TokenToKVPoolAllocator(
                size, None, self.page_size, self.dp_size, journals=self.journals, strict=strict
            )
        return SWATokenToKVPoolAllocator(
            size, size_swa, None, self.page_size, self.dp_size, journals=self.journals, strict=strict
        )

    def _built(self, route: str, disable: bool, events: bool, is_eagle: bool) -> RadixFace:
        if route == "chunk":
            return ChunkCache(self.pool, self.allocator, self.page_size, enable_kv_cache_events=events)
        if route == "swa_chunk":
            return SWAChunkCache(
                self.pool, self.allocator, self.page_size, self.window, enable_kv_cache_events=events
            )
        if route == "legacy":
            return SWARadixCache(
                self.pool, self.allocator, self.window, self.page_size, disable, enable_kv_cache_events=events
            )
        window = self.window or None
        params = CacheInitParams(
            self.pool, self.allocator, self.page_size, is_eagle, sliding_window_size=window
        )
        return UnifiedRadixCache(
            self.pool, self.allocator, self.page_size, disable, is_eagle, tree_components=BOTH if window else (FULL,),
            component_init_params=params, lift_bigram=is_eagle, enable_kv_cache_events=events,
        )  # fmt: skip

    def rank(self, dp_rank: int = 0) -> FaceRank:
        rank: FaceRank = self.allocator.ranks[dp_rank]
        return rank

    @property
    def journal(self) -> EventList:
        return self.journals[0]

    def key(
        self, tokens: Sequence[int], dp_rank: int | None = None, extra_key: str | None = None
    ) -> RadixKey:
        return RadixKey(tokens, extra_key, dp_rank)

    # -- the tree, without a request ---------------------------------------------------------------------------

    def match(
        self, tokens: Sequence[int], dp_rank: int | None = None, *, full_only: bool = False
    ) -> MatchResult:
        return self.cache.match_prefix(MatchPrefixParams(self.key(tokens, dp_rank), full_only=full_only))

    def hit(self, tokens: Sequence[int], dp_rank: int | None = None) -> int:
        """Tokens that a match would give; nothing moves."""
        return int(self.cache.peek(self.key(tokens, dp_rank)).tokens)

    def slots(self, tokens: int, dp_rank: int = 0) -> Slots:
        """Slots that nobody named yet."""
        given: Slots | None = self.allocator.alloc(tokens, dp_rank)
        assert given is not None, "the pools have enough"
        return given

    def insert(
        self, tokens: Sequence[int], slots: Slots | None = None, *, prev: int = 0, released: int = 0,
        dp_rank: int | None = None,
    ) -> InsertResult:  # fmt: skip
        whole = len(tokens) - len(tokens) % self.page_size
        value = self.slots(whole, dp_rank or 0) if slots is None else slots
        inserted: InsertResult | int = self.cache.insert(
            InsertParams(self.key(tokens, dp_rank), value, prev, released)
        )
        return InsertResult(inserted) if isinstance(inserted, int) else inserted

    def evict(self, full: int = 0, swa: int = 0, dp_rank: int | None = None) -> tuple[int, int]:
        gained = self.cache.evict(EvictParams(full, swa, dp_rank=dp_rank))
        return gained.num_tokens_evicted, gained.swa_num_tokens_evicted

    # -- requests ----------------------------------------------------------------------------------------------

    def admit(
        self, prompt: Sequence[int], rid: str | None = None, *, dp_rank: int | None = None, extra_key: str | None = None
    ) -> Request:  # fmt: skip
        """Match what can be used of a prompt, lock it, take a row; nothing is computed yet."""
        req = Request(rid or f"r{next(self._names)}", prompt, dp_rank=dp_rank, extra_key=extra_key)
        self.readmit(req)
        return req

    def readmit(self, req: Request) -> None:
        """The same for a request that was retracted, or is new."""
        req.fill_ids = [*req.origin_input_ids, *req.output_ids]
        req._popped = False  # a new life
        key = RadixKey(req.fill_ids[:-1], req.extra_key, req.dp_rank)
        found = self.cache.match_prefix(MatchPrefixParams(key, req=req))
        req.prefix_indices, req.last_node = found.device_indices, found.last_device_node
        req.cache_protected_len = req.last_matched_prefix_len = found.device_indices.size
        req.kv_committed_len = req.kv_allocated_len = found.device_indices.size
        req.swa_evicted_seqlen = 0
        receipt = self.cache.inc_lock_ref(req.last_node).to_dec_params()
        req.cache_lock_params, req.swa_uuid_for_lock = receipt, receipt.swa_uuid_for_lock
        assert self.pool.alloc([req]) is not None, "there is a row"

    def prefill(self, req: Request, upto: int | None = None) -> None:
        """Compute the prompt up to token `upto`, in pages that are taken now."""
        whole = [*req.origin_input_ids, *req.output_ids]
        stop, start = len(whole) if upto is None else upto, req.kv_allocated_len
        given = self.allocator.alloc_extend(
            [start], [stop], [self.last_slot(req)], stop - start, req.dp_rank or 0
        )
        assert given is not None, "the pools have enough"
        self.pool.write((req.row, slice(0, req.prefix_indices.size)), req.prefix_indices)
        self.pool.write((req.row, slice(start, stop)), given)
        req.fill_ids = whole[:stop]
        req.kv_committed_len = req.kv_allocated_len = stop

    def last_slot(self, req: Request) -> int:
        """The slot of the last token that has one, -1 if none has."""
        at = req.kv_allocated_len - 1
        if at < 0:
            return -1
        return int(
            req.prefix_indices[at] if at < req.prefix_indices.size else self.pool.read(req.row, at + 1)[at]
        )

    def start(self, prompt: Sequence[int], rid: str | None = None, *, dp_rank: int | None = None) -> Request:
        """Admit and compute a whole prompt."""
        req = self.admit(prompt, rid, dp_rank=dp_rank)
        self.prefill(req)
        return req

    def decode(self, *reqs: Request, token: int = 7) -> None:
        """One more token of each request of one rank gets its place."""
        stops = [req.kv_allocated_len + 1 for req in reqs]
        given = self.allocator.alloc_decode(
            stops, [self.last_slot(req) for req in reqs], reqs[0].dp_rank or 0
        )
        assert given is not None, "the pools have enough"
        self.pool.write(([req.row for req in reqs], [stop - 1 for stop in stops]), given)
        for req in reqs:
            req.output_ids.append(token)
            req.fill_ids = [*req.fill_ids, token]
            req.kv_committed_len = req.kv_allocated_len = req.kv_allocated_len + 1

    def reclaim(self, req: Request, pre: int | None = None) -> None:
        """Give back the SWA of a request that lies below its window."""
        self.cache.evict_req_swa(req, req.kv_allocated_len - 1 if pre is None else pre, req.dp_rank or 0)

    def cache_so_far(self, req: Request) -> None:
        self.cache.cache_unfinished_req(req)

    def end(self, req: Request, *, insert: bool = True, ended: Ended | None = None) -> None:
        """End a request and give its row back."""
        self.cache.cache_finished_req(req, insert, ended=ended)
        self.pool.free(req)

    # -- what holds ------------------------------------------------------------------------------------------

    def sizes(self, dp_rank: int = 0) -> dict[str, int]:
        """Tokens: FULL and SWA, free, evictable and protected."""
        cache, allocator = self.cache, self.allocator
        return {
            "full_free": allocator.full_available_size(dp_rank),
            "full_evictable": cache.full_evictable_size(dp_rank),
            "full_protected": cache.full_protected_size(dp_rank),
            "swa_free": allocator.swa_available_size(dp_rank) if self.window else 0,
            "swa_evictable": cache.swa_evictable_size(dp_rank),
            "swa_protected": cache.swa_protected_size(dp_rank),
        }

    def check(self, *, laws: bool = True) -> None:
        """Every law holds, the kept sums are right, and each rank's events alone give its state."""
        if laws:
            self.cache.sanity_check()
        for rank, journal in zip(self.allocator.ranks, self.journals, strict=True):
            assert [*broken_laws(rank.state)] == [] or not laws
            assert digest(rank.state) == recount(rank.state)
            folded = begin(journal.opened)
            for event in journal.events:
                evolve(folded, event)
            assert folded.findings == []
            assert digest(folded) == digest(rank.state)


def text(letter: str, start: int, stop: int) -> list[int]:
    """Tokens [start, stop) of the stream of this letter; tokens of different streams differ."""
    return [ord(letter) * 100_000 + at for at in range(start, stop)]


def owners(rank: FaceRank) -> dict[str, list[int]]:
    """Where each page of both pools is named: in a queue, by a node, by a row.

    Read off the holders themselves, not off the accounts.
    """
    state, page_size = rank.state, rank.state.page_size
    named: dict[str, list[int]] = {"full": [], "swa": []}
    named["full"] += np.frombuffer(bytes(state.full.free + state.full.pending), "<i4").tolist()
    named["swa"] += np.frombuffer(bytes(state.swa.free + state.swa.pending), "<i4").tolist()
    for node in state.nodes.values():
        named["full"] += np.frombuffer(node.full, "<i4").tolist()
        named["swa"] += np.frombuffer(node.swa, "<i4").tolist()
    for live in state.requests.values():
        start, stop = int(state.rows.protected[live.row]), int(state.rows.length[live.row])
        own = state.rows.full_table[live.row, start // page_size : -(-stop // page_size)]
        swa = state.mapping.swa_of[own]
        named["full"] += own.tolist()
        named["swa"] += swa[swa != 0].tolist()
    return named


def every_page_is_named_once(rank: FaceRank, unbound: Sequence[int] = ()) -> bool:
    """Whether each page of each pool has exactly one owner; `unbound` are FULL pages handed out to nobody."""
    named = owners(rank)
    named["full"] += unbound
    named["swa"] += [page for each in unbound if (page := int(rank.state.mapping.swa_of[each]))]
    capacity = {"full": rank.state.full.capacity, "swa": rank.state.swa.capacity}
    return all(sorted(named[pool]) == list(range(1, capacity[pool] + 1)) for pool in capacity)


def path(server: Server, groups: str, letter: str = "a", dp_rank: int | None = None) -> list[int]:
    """A path of live (`L`) and dead (`d`) pages, one insert per group: `path(server, "LL dL ddL")`; returns its tokens."""
    pages = dead = 0
    for group in groups.split():
        dead = pages + group.count("d") if "d" in group else dead
        pages += len(group)
        assert group == "d" * group.count("d") + "L" * group.count("L"), "dead pages come before live ones"
        server.insert(
            text(letter, 0, pages * server.page_size), released=dead * server.page_size, dp_rank=dp_rank
        )
    return text(letter, 0, pages * server.page_size)


def shape(server: Server, tokens: Sequence[int], dp_rank: int | None = None) -> str:
    """The nodes of a path and the state of their pages, as `path` takes them."""
    node, groups = server.match(tokens, dp_rank, full_only=True).last_device_node, []
    while node.parent is not None:
        pages = len(node.key) // server.page_size
        groups.append(("d" if node.component_data[SWA].value is None else "L") * pages)
        node = node.parent
    return " ".join(reversed(groups))
