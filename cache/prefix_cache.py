"""What a server written for sglang-jax says and hears: the values of its calls, and what every prefix cache answers.

Names, fields and defaults are that server's. Rule: no decision stands here. Slots are token slots as int32 arrays,
lengths are tokens; pages and bytes keys begin behind the faces.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from radixledger.cache.keys import Tokens
from radixledger.cache.match import Hit
from radixledger.journal.events import AnyEvent
from radixledger.journal.units import Seq

Slots = NDArray[np.int32]


class ComponentType(IntEnum):
    """What is stored per node."""

    FULL = 0
    SWA = 1
    RECURRENT = 2


class Ended(StrEnum):
    """What became of a request that leaves its row."""

    FINISHED = "finished"
    RETRACTED = "retracted"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True)
class RadixKey:
    """A token sequence in the namespace `extra_key`, on one rank. `len` counts tokens, a slice keeps the rest."""

    token_ids: Tokens
    extra_key: str | None = None
    dp_rank: int | None = None

    def __len__(self) -> int:
        return len(self.token_ids)

    def __getitem__(self, at: slice) -> "RadixKey":
        return RadixKey(self.token_ids[at], self.extra_key, self.dp_rank)


class Node(Protocol):
    """An opaque handle of a tree node; its values may be read and never written."""

    @property
    def id(self) -> int:
        """The node's number; 0 is the root of its rank."""

    @property
    def dp_rank(self) -> int:
        """The rank whose tree it is in."""


class Req(Protocol):
    """The server's own request: what the cache reads of it, and what it also writes (from `prefix_indices` on)."""

    @property
    def rid(self) -> str:
        """The server's name for the request; one life at a time."""

    @property
    def origin_input_ids(self) -> Sequence[int]:
        """The prompt."""

    @property
    def output_ids(self) -> Sequence[int]:
        """What was sampled so far."""

    @property
    def fill_ids(self) -> Sequence[int]:
        """The tokens whose KV is computed with the present chunk."""

    @property
    def extra_key(self) -> str | None:
        """The namespace of its prefixes."""

    @property
    def dp_rank(self) -> int | None:
        """The rank that serves it."""

    @property
    def kv_committed_len(self) -> int:
        """Tokens whose KV is computed."""

    @property
    def kv_allocated_len(self) -> int:
        """Tokens that have slots."""

    req_pool_idx: int | None
    prefix_indices: Any
    last_node: Any
    cache_protected_len: int
    last_matched_prefix_len: int
    swa_evicted_seqlen: int
    cache_lock_params: Any
    swa_uuid_for_lock: int | None

    def pop_committed_kv_cache(self) -> int:
        """Tokens whose KV is computed; asked once, when the request ends."""


@dataclass(slots=True)
class MatchPrefixParams:
    """What to look up. `full_only` ignores SWA and states, for a request that looks up its own path again (R72).

    `cow_recurrent`: `req` is going to start there with a copy of the state, so its state slots are made free at once.
    """

    key: RadixKey
    req: Req | None = None
    full_only: bool = False
    cow_recurrent: bool = False


class MatchResult(NamedTuple):
    """The usable prefix: its slots, int32 [n], and the node that it ends at; without a host tier all three are one.

    With one, copies of the next `host_hit_length` tokens end at `last_host_node`: they can be loaded.
    """

    device_indices: Slots
    last_device_node: Any
    last_host_node: Any
    best_match_node: Any
    host_hit_length: int = 0


@dataclass(slots=True)
class InsertParams:
    """Slots of a key's tokens. The tree gave the first `prev_prefix_len`; SWA is gone below `swa_evicted_seqlen`.

    recurrent_value: the slot of the state after the key's last token; the cache's from then on, taken or not.
    """

    key: RadixKey
    value: Any
    prev_prefix_len: int = 0
    swa_evicted_seqlen: int = 0
    recurrent_value: Any = None


@dataclass(slots=True)
class InsertResult:
    """How many tokens of the key were in the tree before (R63), and what became of a state that was brought.

    It was freed if the node had one already (`recurrent_exist`), it is the node's if `recurrent_committed`; with
    neither it was freed because the key does not end in a leaf.
    """

    prefix_len: int = 0
    recurrent_exist: bool = False
    recurrent_committed: bool = False


@dataclass(slots=True)
class EvictParams:
    """How many tokens each pool wants, and how many state slots; without a rank, of all ranks together (R107)."""

    num_tokens: int = 0
    swa_num_tokens: int = 0
    recurrent_num: int = 0
    dp_rank: int | None = None


@dataclass(slots=True)
class EvictResult:
    """How many tokens each pool gained, and how many state slots (R105)."""

    num_tokens_evicted: int = 0
    swa_num_tokens_evicted: int = 0
    recurrent_num_evicted: int = 0


@dataclass(slots=True)
class DecLockRefParams:
    """A receipt: all that is needed to release exactly one lock (R112). Without a boundary it runs to the root."""

    swa_uuid_for_lock: int | None = None
    skip_lock_node_ids: Mapping[ComponentType, Sequence[int]] = field(default_factory=dict)


@dataclass(slots=True)
class IncLockRefResult:
    """What a lock holds: the boundary of its window, and the tombstones within."""

    swa_uuid_for_lock: int | None = None
    skip_lock_node_ids: Mapping[ComponentType, Sequence[int]] = field(default_factory=dict)

    def to_dec_params(self) -> DecLockRefParams:
        """The receipt, a copy."""
        skipped = {component: list(ids) for component, ids in self.skip_lock_node_ids.items()}
        return DecLockRefParams(self.swa_uuid_for_lock, skipped)


@dataclass(slots=True)
class CacheInitParams:
    """What every component of a cache is built with; it has to say what the cache says (R56, R58)."""

    req_to_token_pool: Any
    token_to_kv_pool_allocator: Any
    page_size: int
    is_eagle: bool = False
    sliding_window_size: int | None = None
    enable_recurrent_extra_buffer: bool = False
    recurrent_track_interval: int | None = None


class StateSlots(NamedTuple):
    """The state slots of a live request.

    running: the one that it computes in. source: the one whose state has to be copied to it before the first step, 0 for
    none: it begins at zero. track: those that take turns, one for every tracked boundary. tracked: the tokens after
    which each of them holds the state, 0 for nothing yet.
    """

    running: int
    source: int
    track: tuple[int, ...] = ()
    tracked: tuple[int, ...] = ()


class TakenEvent(NamedTuple):
    """An event of one rank's journal, for whoever follows it in the server's own process."""

    dp_rank: int
    seq: Seq
    event: AnyEvent


class BasePrefixCache(ABC):
    """What a server may ask of any prefix cache. Capabilities default to no, numbers that nobody counted are not zero."""

    @abstractmethod
    def reset(self) -> None:
        """Empty an idle cache; a leak is told and nothing is cleared (R33)."""

    @abstractmethod
    def match_prefix(self, params: MatchPrefixParams) -> MatchResult:
        """Find the usable prefix of a key."""

    @abstractmethod
    def insert(self, params: InsertParams) -> Any:
        """Give the tree the slots of a key."""

    @abstractmethod
    def evict(self, params: EvictParams) -> EvictResult:
        """Ask the tree for free slots."""

    @abstractmethod
    def inc_lock_ref(self, node: Any) -> IncLockRefResult:
        """Shield the path to a node."""

    @abstractmethod
    def dec_lock_ref(self, node: Any, params: DecLockRefParams | None = None) -> None:
        """Release a lock with its receipt."""

    @abstractmethod
    def cache_finished_req(self, req: Req, is_insert: bool = True) -> None:
        """End a request: cache what it computed, free the rest."""

    @abstractmethod
    def cache_unfinished_req(self, req: Req) -> None:
        """Cache what a running request has computed so far."""

    def supports_swa(self) -> bool:
        """Whether the cache owns a sliding window, and with it `evict_req_swa` (R124)."""
        return False

    def supports_recurrent(self) -> bool:
        """Whether the cache owns recurrent states."""
        return False

    def evict_req_swa(self, req: Req, pre_len: int, dp_rank: int = 0) -> None:
        """Give back what of a request's SWA lies below its window (R126)."""
        raise NotImplementedError(f"{type(self).__name__} has no sliding window")

    def peek(self, key: RadixKey) -> Hit:
        """What a match would give; nothing moves (A19)."""
        raise NotImplementedError(f"{type(self).__name__} cannot look without touching")

    def ledger(self, dp_rank: int | None = None) -> list[dict[str, Any]]:
        """The accounts of one rank, or of all in order; a cache that keeps none says so (R125)."""
        raise NotImplementedError(f"{type(self).__name__} keeps no ledger")

    def record_ledger(self, phase: str) -> None:
        """Write the ledgers into the journals, under the name of a moment."""
        raise NotImplementedError(f"{type(self).__name__} keeps no ledger")

    def full_evictable_size(self, dp_rank: int = 0) -> int:
        """FULL tokens of the tree that no lock holds."""
        return 0

    def full_protected_size(self, dp_rank: int = 0) -> int:
        """FULL tokens of the tree that locks hold."""
        return 0

    def swa_evictable_size(self, dp_rank: int = 0) -> int:
        """SWA tokens of the tree that no lock holds."""
        return 0

    def swa_protected_size(self, dp_rank: int = 0) -> int:
        """SWA tokens of the tree that locks hold."""
        return 0

    def evictable_size(self, dp_rank: int = 0) -> int:
        """FULL tokens that could be evicted: the size that decides admission without a window."""
        return self.full_evictable_size(dp_rank)

    def protected_size(self, dp_rank: int = 0) -> int:
        """FULL tokens that locks hold."""
        return self.full_protected_size(dp_rank)

    def total_size(self) -> tuple[int, int]:
        """Tokens in the trees of all ranks: FULL, SWA."""
        raise NotImplementedError(f"{type(self).__name__} counts no sizes")

    def sanity_check(self) -> None:
        """Recount everything; raises what does not hold."""
        raise NotImplementedError(f"{type(self).__name__} cannot recount itself")

    def take_events(self) -> list[TakenEvent]:
        """The events since the last call, if the cache was told to keep them."""
        return []

    def pretty_print(self) -> str:
        """The trees in lines of text."""
        raise NotImplementedError(f"{type(self).__name__} has no tree")
