"""What the allocators of sglang-jax share, with one pool of slots or two: handing out, taking back, free groups.

It holds the ranks; the cache is built over it and shares them. Rule: a slot stands for its page: freeing one frees
the whole page with the page's whole mapping (B01), and a free that is not lawful raises before anything changed.
Slots are int32 arrays; page 0 of each pool, the padding sink, is never handed out (R51).
"""

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace
from numpy.typing import ArrayLike, NDArray

from radixledger.cache.arguments import number, sequence
from radixledger.cache.face_rank import FaceRank, as_slots, pages_of_slots, rank_of, slots_of_pages
from radixledger.cache.faces.kept_events import KeptEvents
from radixledger.cache.opening import NO_HOST, NO_STATES, HostCopies, StateMode, opened_ranks
from radixledger.cache.prefix_cache import Req, Slots, TakenEvent
from radixledger.cache.refusals import Busy, PoolShort, Refusal, StateShort
from radixledger.cache.shell import Journal
from radixledger.cache.traits import TRAITS
from radixledger.cache.window import pages_for
from radixledger.journal.accounts import Kind
from radixledger.journal.events import Opened
from radixledger.journal.moves import pages_of
from radixledger.journal.sizes import BadConfig
from radixledger.journal.units import FIRST, Pages

_NO_SLOTS = np.zeros(0, np.int32)


class PoolAllocator:
    """Slots of every rank; sizes are totals over ranks. `size_swa` is 0 where there is no SWA pool, `size_recurrent` where
    there are no states of a recurrent model, `host` none where nothing is copied to the host.

    kvcache: the device arrays, kept for `get_kvcache` and never touched. journals: one per rank, opened with
    `opened_ranks`, or none. strict: see `RankCache`. `last_refusal` says why the last allocation gave None (R152).
    """

    def __init__(
        self,
        size: int,
        size_swa: int,
        kvcache: object,
        page_size: int,
        dp_size: int,
        *,
        journals: Sequence[Journal] | None,
        strict: bool,
        size_recurrent: int = 0,
        host: HostCopies = NO_HOST,
    ) -> None:
        self.host = host
        self.page_size, self.dp_size = page_size, dp_size
        self.size_full, self.size_swa, self.size_recurrent = size, size_swa, size_recurrent
        self.last_refusal: PoolShort | StateShort | None = None
        self._kvcache = kvcache
        self._strict = strict
        self._journals = journals
        self._kept: list[KeptEvents] = []
        opened = self._opened("unified", 1) if size_swa else self._opened("radix", 0)
        if journals is not None:
            self._check_journals(opened, journals)
            opened = [journal.opened for journal in journals]
        self.ranks = self._built(opened)
        self._begun = [rank.state.seq for rank in self.ranks]

    def _opened(
        self, route: str, window: int, rows: int = 1, max_context_len: int = 1, key_mode: str = "raw",
        states: StateMode = NO_STATES,
    ) -> list[Opened]:  # fmt: skip
        return opened_ranks(
            self.size_full, self.size_swa, self.page_size, self.dp_size,
            route=route, sliding_window_size=window, rows=rows, max_context_len=max_context_len,
            key_mode=key_mode, size_recurrent=self.size_recurrent if states.name else 0, states=states,
            host=self.host,
        )  # fmt: skip

    def _check_pools(self, route: str, states: StateMode) -> None:
        wants = TRAITS[route].windowed
        if wants != (self.size_swa > 0):
            has, needs = ("FULL and SWA slots", "FULL slots alone")[:: 1 if self.size_swa else -1]
            raise BadConfig("token_to_kv_pool_allocator", f"it has {has}, route {route!r} needs {needs}")
        if bool(states.name) != (self.size_recurrent > 0):
            needs = "states of a recurrent model" if states.name else "no states"
            raise BadConfig(
                "token_to_kv_pool_allocator",
                f"it has {self.size_recurrent} state slots, the cache keeps {needs}",
            )

    def _check_journals(self, opened: list[Opened], journals: Sequence[Journal]) -> None:
        if len(journals) != len(opened):
            raise BadConfig("journals", f"{len(journals)} for {len(opened)} ranks")
        for ours, journal in zip(opened, journals, strict=True):
            config = replace(ours.config, recurrent_slots=self.size_recurrent // self.dp_size)
            for field in ("page_size", "full_pages", "swa_pages", "host_pages", "recurrent_slots"):
                value, told = getattr(config, field), getattr(journal.opened.config, field)
                if value != told:
                    raise BadConfig(
                        field, f"the journal of rank {ours.rank} says {told}, the allocator {value}"
                    )
            if (journal.opened.rank, journal.opened.ranks) != (ours.rank, ours.ranks):
                raise BadConfig("rank", f"journal {ours.rank} was opened for rank {journal.opened.rank}")

    def _built(self, opened: Sequence[Opened], *, keep_events: bool = False) -> list[FaceRank]:
        journals: Sequence[Journal | None] = self._journals or [None] * len(opened)
        if keep_events:
            journals = self._kept = [
                KeptEvents(each, journal) for each, journal in zip(opened, journals, strict=True)
            ]
        return [
            FaceRank(each, journal, strict=self._strict, seq=getattr(journal, "last_seq", FIRST))
            for each, journal in zip(opened, journals, strict=True)
        ]

    def settle(
        self,
        *,
        route: str,
        sliding_window_size: int,
        rows: int,
        max_context_len: int,
        key_mode: str = "raw",
        states: StateMode = NO_STATES,
        keep_events: bool = False,
    ) -> None:
        """Learn what the cache that is built over this allocator knows; nothing may have been handed out yet.

        Raises BadConfig if journals were opened for another cache, or the route wants other pools; Busy if a rank was
        used before.
        """
        if [rank.state.seq for rank in self.ranks] != self._begun:
            raise Busy("slots were handed out before the cache was built over the allocator")
        self._check_pools(route, states)
        opened = self._opened(route, sliding_window_size, rows, max_context_len, key_mode, states)
        if self._journals is not None:
            _check_settled(opened[0], self._journals[0].opened)
            opened = [journal.opened for journal in self._journals]
        self.ranks = self._built(opened, keep_events=keep_events)

    def close(self, reason: str = "") -> None:
        """Write the clean end of every rank's journal and let it go."""
        for rank in self.ranks:
            rank.close(reason)

    def take_events(self) -> list[TakenEvent]:
        """The events of all ranks since the last call, in the order of ranks; empty unless they are kept."""
        return [event for kept in self._kept for event in kept.take()]

    # -- sizes -----------------------------------------------------------------------------------------------

    def get_kvcache(self) -> object:
        """The device arrays that this allocator was built for."""
        return self._kvcache

    def full_available_size(self, dp_rank: int = 0) -> int:
        """Free FULL slots of a rank."""
        return rank_of(self.ranks, dp_rank).state.full.available * self.page_size

    def available_size(self, dp_rank: int = 0) -> int:
        """Tokens that the pools could take."""
        return self.full_available_size(dp_rank)

    # -- handing out -----------------------------------------------------------------------------------------

    def alloc(self, need_size: int, dp_rank: int = 0, *, owner: Req | None = None) -> Slots | None:
        """`need_size` FULL slots, whole pages, mapped to as many SWA slots if there are any; None if a pool is short (R45).

        owner: the slots are the next ones of this request's row.
        """
        need_size = number(need_size, "need_size")
        if need_size % self.page_size:
            raise ValueError(f"{need_size} slots are not whole pages of {self.page_size}")
        rank = rank_of(self.ranks, dp_rank)
        if need_size <= 0:
            return _NO_SLOTS.copy()
        if owner is not None:
            return self._extended(rank, [owner], [need_size])
        pages = self._handed_out(rank, need_size // self.page_size)
        return None if pages is None else slots_of_pages(pages, self.page_size)

    def alloc_extend(
        self,
        prefix_lens: ArrayLike,
        seq_lens: ArrayLike,
        last_loc: ArrayLike,
        extend_num_tokens: int,
        dp_rank: int = 0,
        *,
        owner: Sequence[Req] | None = None,
    ) -> Slots | None:
        """Slots for tokens [prefix_lens[i], seq_lens[i]) of each sequence, one after the other; all or None (R46).

        last_loc[i] is the slot of token prefix_lens[i] - 1; the rest of its page is used up first. owner: the requests
        whose rows grow so. Raises ValueError if lengths or slots do not fit each other.
        """
        rank, last = rank_of(self.ranks, dp_rank), as_slots(last_loc)
        starts, stops = as_slots(prefix_lens), as_slots(seq_lens)
        if not starts.size == stops.size == last.size or (stops < starts).any():
            raise ValueError("prefix_lens, seq_lens and last_loc differ in length, or a sequence shrinks")
        if int((stops - starts).sum()) != number(extend_num_tokens, "extend_num_tokens"):
            raise ValueError(
                f"sequences grow by {int((stops - starts).sum())} tokens, not {extend_num_tokens}"
            )
        self._check_last(rank, starts, last)
        if owner is not None:
            with rank.turn:
                self._check_lengths(rank, owner, starts.tolist())
                return self._extended(rank, owner, (stops - starts).tolist())
        held, wanted = -(-starts // self.page_size), -(-stops // self.page_size)
        pages = self._handed_out(rank, int((wanted - held).sum()))
        if pages is None:
            return None
        fresh = slots_of_pages(pages, self.page_size)
        slots, taken = [_NO_SLOTS], 0
        for start, stop, end, count in zip(
            starts.tolist(), stops.tolist(), last.tolist(), (wanted - held).tolist(), strict=True
        ):
            inside = min(stop, pages_for(start, self.page_size) * self.page_size) - start
            slots.append(np.arange(end + 1, end + 1 + inside, dtype=np.int32))
            slots.append(fresh[taken : taken + stop - start - inside])
            taken += count * self.page_size
        return np.concatenate(slots)

    def alloc_decode(
        self,
        seq_lens: ArrayLike,
        last_loc: ArrayLike,
        dp_rank: int = 0,
        *,
        owner: Sequence[Req] | None = None,
    ) -> Slots | None:
        """One slot for the last token of each sequence, which is `seq_lens[i]` tokens long with it; all or None."""
        stops = as_slots(seq_lens)
        return self.alloc_extend(stops - 1, stops, last_loc, stops.size, dp_rank, owner=owner)

    def _handed_out(self, rank: FaceRank, count: int) -> Pages | None:
        if not count:
            return Pages(b"")
        try:
            return rank.alloc(count)[0]
        except PoolShort as short:
            self.last_refusal = short
            return None

    def _extended(self, rank: FaceRank, owners: Sequence[Req], counts: Sequence[int]) -> Slots | None:
        """Let rows grow by `counts` tokens; their new slots, one row after the other."""
        with rank.turn:
            return self._grown(rank, owners, counts)

    def _grown(self, rank: FaceRank, owners: Sequence[Req], counts: Sequence[int]) -> Slots | None:
        growing = [at for at, count in enumerate(counts) if count]
        try:
            numbers = [rank.seated(req) for req in owners]
            lengths = [int(rank.state.rows.length[rank.state.row_of(request)]) for request in numbers]
            if growing:
                rank.extend(
                    np.array([numbers[at] for at in growing], np.int64),
                    np.array([counts[at] for at in growing], np.int32),
                )
        except (PoolShort, StateShort) as short:
            self.last_refusal = short
            return None
        parts = [
            rank.row_slots(request, length, length + count)
            for request, length, count in zip(numbers, lengths, counts, strict=True)
        ]
        return np.concatenate([_NO_SLOTS, *parts])

    def _check_last(self, rank: FaceRank, starts: NDArray[np.int64], last: NDArray[np.int64]) -> None:
        """A sequence goes on behind its last token, in a page that it may write."""
        inside = starts % self.page_size != 0
        wrong = inside & ((last + 1) % self.page_size != starts % self.page_size)
        if wrong.any():
            at = int(wrong.argmax())
            raise ValueError(
                f"slot {last[at]} cannot be the last of {starts[at]} tokens in pages of {self.page_size}"
            )
        pages = pages_of_slots(last[inside], self.page_size)
        foreign = pages_of(pages)[rank.state.full.holders(pages) & 7 != Kind.REQUEST]
        if foreign.size:
            raise Refusal(f"FULL page {foreign.tolist()[:8]} is no request's, so no sequence can grow in it")

    def _check_lengths(self, rank: FaceRank, owners: Sequence[Req], lengths: Sequence[int]) -> None:
        if len(sequence(owners, "owner")) != len(lengths):
            raise ValueError(f"owner names {len(owners)} requests for {len(lengths)} sequences")
        for req, length in zip(owners, lengths, strict=True):
            held = int(rank.state.rows.length[rank.state.row_of(rank.seated(req))])
            if held != length:
                raise ValueError(f"the row of {req.rid!r} has {held} tokens, not {length}")

    # -- taking back -----------------------------------------------------------------------------------------

    def free(self, indices: ArrayLike, dp_rank: int = 0, *, giver: Req | None = None) -> None:
        """Free FULL slots with their SWA slots; repeats in one call or group are no-ops (R41, R42).

        Raises DoubleFree or ForeignFree, and with a `giver` also if the pages are another request's.
        """
        rank, pages = self._named(indices, dp_rank)
        with rank.turn:
            if pages:
                rank.give_up(pages, rank.account_of(giver))

    def _named(self, slots: ArrayLike, dp_rank: int) -> tuple[FaceRank, Pages]:
        return rank_of(self.ranks, dp_rank), pages_of_slots(slots, self.page_size)

    def free_group_begin(self) -> None:
        """What is freed from now on becomes available at `free_group_end`; begun twice, it keeps what it has (R49)."""
        for rank in self.ranks:
            rank.open_group()

    def free_group_end(self) -> None:
        """Make available what the group took in. Raises Busy if none is open (B07)."""
        for rank in self.ranks:
            rank.flush_group()

    def clear(self, dp_rank: int | None = None) -> None:
        """Take back what was handed out and never cached, on one rank or all; an open group stays open (R48).

        Raises Busy while live requests or the tree hold slots of a rank.
        """
        for rank in self.ranks if dp_rank is None else [rank_of(self.ranks, dp_rank)]:
            rank.clear()


def _check_settled(ours: Opened, told: Opened) -> None:
    if told.route != ours.route:
        raise BadConfig("route", f"the journal was opened for {told.route!r}, the cache is {ours.route!r}")
    exactly = (
        "key_mode",
        "window_tokens",
        "recurrent_mode",
        "track_interval",
        "host_write",
        "host_threshold",
    )
    for field in (*exactly, "rows", "context_pages"):
        value, theirs = getattr(ours.config, field), getattr(told.config, field)
        if theirs != value if field in exactly else theirs < value:
            raise BadConfig(field, f"the journal was opened with {theirs}, the cache needs {value}")
