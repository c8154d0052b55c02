"""The allocators as a server of sglang-jax builds them: FULL slots alone, or FULL and SWA slots that come and go together.

What both do stands in `pool_allocator`; here is what they differ in. Rule: the mapping from FULL to SWA belongs to the
allocator that has both (R53), and is read here, never kept.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from radixledger.cache.face_rank import FaceRank, as_slots, pages_of_slots, rank_of
from radixledger.cache.faces.pool_allocator import PoolAllocator
from radixledger.cache.opening import NO_HOST, HostCopies
from radixledger.cache.prefix_cache import Req, Slots
from radixledger.cache.refusals import StateShort, Unmapped
from radixledger.cache.shell import Journal
from radixledger.journal.moves import pages_of
from radixledger.journal.units import Pages


class MissingMapping(ValueError):
    """FULL slots have no SWA slot where one was required; carries the rank and the slots (R35)."""

    def __init__(self, dp_rank: int, slots: list[int]) -> None:
        super().__init__(f"dp_rank={dp_rank}: FULL slots {slots[:16]} have no SWA slot")
        self.dp_rank, self.slots = dp_rank, slots


class TokenToKVPoolAllocator(PoolAllocator):
    """FULL slots of every rank, for models without a window; see `PoolAllocator`.

    size_recurrent: state slots of a recurrent model, over all ranks. A request takes its own when it sits down in its
    row; what is handed out here is for callers who bring states to an insert (`InsertParams.recurrent_value`).
    host: copies of FULL slots on the host, which a `HostTier` over each rank makes and loads.
    """

    def __init__(
        self,
        size: int,
        kvcache: object,
        page_size: int = 1,
        dp_size: int = 1,
        *,
        size_recurrent: int = 0,
        host: HostCopies = NO_HOST,
        journals: Sequence[Journal] | None = None,
        strict: bool = True,
    ) -> None:
        super().__init__(
            size,
            0,
            kvcache,
            page_size,
            dp_size,
            journals=journals,
            strict=strict,
            size_recurrent=size_recurrent,
            host=host,
        )

    @property
    def size(self) -> int:
        """Slots of all ranks."""
        return self.size_full

    def recurrent_available_size(self, dp_rank: int = 0) -> int:
        """Free state slots of a rank."""
        return rank_of(self.ranks, dp_rank).state.recurrent.available

    def alloc_recurrent(self, need_size: int, dp_rank: int = 0) -> Slots | None:
        """`need_size` state slots, int32 [need_size]; None, and nothing changed, if there are not so many."""
        try:
            taken = rank_of(self.ranks, dp_rank).take_states(need_size)
        except StateShort as short:
            self.last_refusal = short
            return None
        return pages_of(taken).astype(np.int32)

    def free_recurrent(self, slots: ArrayLike, dp_rank: int = 0) -> None:
        """Give back state slots that `alloc_recurrent` handed out; whatever else they are is refused by its name (A5)."""
        rank_of(self.ranks, dp_rank).free_states(Pages(as_slots(slots).astype("<i4").tobytes()))


class SWATokenToKVPoolAllocator(PoolAllocator):
    """Slots of both pools on every rank; see `PoolAllocator`. A pair is handed out and freed together (R41, R45)."""

    def __init__(
        self,
        size: int,
        size_swa: int,
        kvcache: object,
        page_size: int = 1,
        dp_size: int = 1,
        *,
        journals: Sequence[Journal] | None = None,
        strict: bool = True,
    ) -> None:
        if size_swa < 1:
            raise ValueError(
                f"size_swa of {size_swa} slots makes no pool; without a window take TokenToKVPoolAllocator"
            )
        super().__init__(size, size_swa, kvcache, page_size, dp_size, journals=journals, strict=strict)

    def available_size(self, dp_rank: int = 0) -> int:
        """Tokens that both pools could take: the smaller of the two."""
        return min(self.full_available_size(dp_rank), self.swa_available_size(dp_rank))

    def swa_available_size(self, dp_rank: int = 0) -> int:
        """Free SWA slots of a rank."""
        return rank_of(self.ranks, dp_rank).state.swa.available * self.page_size

    # -- the parts of a free ---------------------------------------------------------------------------------

    def free_full(self, full_indices: ArrayLike, *, dp_rank: int, giver: Req | None = None) -> None:
        """Free FULL slots alone; `free_swa` of the same slots must follow before the next allocation (R38, A4)."""
        rank, pages = self._named(full_indices, dp_rank)
        if pages:
            rank.free_full(pages, rank.account_of(giver))

    def free_swa(self, full_indices: ArrayLike, dp_rank: int = 0, *, giver: Req | None = None) -> None:
        """Free the SWA slots that FULL slots are mapped to, and clear that mapping; a repeat changes nothing (R39, R40)."""
        rank, pages = self._named(full_indices, dp_rank)
        if pages:
            rank.free_swa(pages, rank.account_of(giver))

    # -- the mapping -----------------------------------------------------------------------------------------

    def count_swa_mapped(self, indices: ArrayLike, dp_rank: int = 0) -> int:
        """How many of these FULL slots have an SWA slot."""
        slots = as_slots(indices)
        return int(np.count_nonzero(self._translated(rank_of(self.ranks, dp_rank), slots)))

    def translate_full_to_swa(
        self, full_indices: ArrayLike, *, dp_rank: int, require_mapped: bool = True
    ) -> Slots:
        """The SWA slot of each FULL slot, a copy (R34); 0 where there is none, if none is required (R36).

        Raises MissingMapping, which names rank and slots; the miss is recorded (R35, A7).
        """
        rank, slots = rank_of(self.ranks, dp_rank), as_slots(full_indices)
        found = self._translated(rank, slots)
        missing = slots[found == 0]
        if require_mapped and missing.size:
            try:
                rank.translate_recorded(pages_of_slots(missing, self.page_size))
            except Unmapped as unmapped:
                raise MissingMapping(rank.dp_rank, missing.tolist()) from unmapped
        return found

    def _translated(self, rank: FaceRank, slots: NDArray[np.int64]) -> Slots:
        pages = Pages((slots // self.page_size).astype("<i4").tobytes())
        swa = pages_of(rank.translate(pages, require_mapped=False)).astype(np.int32)
        offsets = (slots % self.page_size).astype(np.int32)
        translated: Slots = np.where(swa != 0, swa * self.page_size + offsets, 0).astype(np.int32)
        return translated

    def transfer_swa_mapping(
        self, source_full_indices: ArrayLike, target_full_indices: ArrayLike, *, dp_rank: int
    ) -> None:
        """Move the SWA slots of `source` to `target`, which had none; equal shapes, or nothing changes (R91)."""
        source, target = as_slots(source_full_indices), as_slots(target_full_indices)
        if source.size != target.size or (source % self.page_size != target % self.page_size).any():
            raise ValueError(f"{source.size} source slots do not line up with {target.size} target slots")
        rank_of(self.ranks, dp_rank).remap(
            pages_of_slots(source, self.page_size), pages_of_slots(target, self.page_size)
        )
