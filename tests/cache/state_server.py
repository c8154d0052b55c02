"""A server of a recurrent model, for the faces: states in the mode that its page size says."""

from typing import Any

import pytest

from radixledger.cache.faces.allocator import TokenToKVPoolAllocator
from radixledger.cache.faces.unified import UnifiedRadixCache
from radixledger.cache.opening import StateMode, opened_ranks
from radixledger.cache.prefix_cache import (
    CacheInitParams,
    ComponentType,
)

from .server import FULL, EventList, Request, Server, text

RECURRENT = ComponentType.RECURRENT
STATES = (FULL, RECURRENT)


class StateServer(Server):
    """A server of a recurrent model, in the mode that its page size says: `base` at 1, else states are tracked."""

    def __init__(
        self,
        page_size: int = 1,
        *,
        slots: int = 6,
        full_pages: int = 40,
        dp_size: int = 1,
        disable: bool = False,
        interval_pages: int = 2,
    ) -> None:
        self.slots_given = slots * dp_size
        self.interval = interval_pages * page_size if page_size > 1 else None
        super().__init__(
            page_size, full_pages=full_pages, dp_size=dp_size, disable=disable, route="radix", events=True
        )

    def _pools(self, size: int, size_swa: int, strict: bool) -> Any:
        mode = StateMode("base") if self.interval is None else StateMode("extra_buffer", self.interval)
        opened = opened_ranks(
            size, 0, self.page_size, self.dp_size, route="radix", sliding_window_size=0, rows=8, max_context_len=8192,
            size_recurrent=self.slots_given, states=mode, run="test",
        )  # fmt: skip
        self.journals = [EventList(each) for each in opened]
        return TokenToKVPoolAllocator(
            size, None, self.page_size, self.dp_size, size_recurrent=self.slots_given, journals=self.journals,
            strict=strict,
        )  # fmt: skip

    def _built(self, route: str, disable: bool, events: bool, is_eagle: bool) -> UnifiedRadixCache:
        tracked = self.interval is not None
        params = CacheInitParams(
            self.pool, self.allocator, self.page_size, enable_recurrent_extra_buffer=tracked,
            recurrent_track_interval=self.interval,
        )  # fmt: skip
        return UnifiedRadixCache(
            self.pool, self.allocator, self.page_size, disable, tree_components=STATES,
            enable_recurrent_extra_buffer=tracked, recurrent_track_interval=self.interval,
            component_init_params=params, enable_kv_cache_events=events,
        )  # fmt: skip

    @property
    def states(self) -> UnifiedRadixCache:
        cache = self.cache
        assert isinstance(cache, UnifiedRadixCache)
        return cache

    def path(self, letter: str, pages: int) -> list[int]:
        return text(letter, 0, pages * self.page_size)

    def check(self, *, laws: bool = True) -> None:
        """Beside what holds for every server: the slots of each rank add up (R156, R211)."""
        super().check(laws=laws)
        for rank in self.ranks:
            row = rank.ledger()
            assert row.recurrent_capacity == (
                row.recurrent_available + row.recurrent_tree_evictable + row.recurrent_tree_protected
                + row.recurrent_request_running + row.recurrent_request_track
            )  # fmt: skip

    @property
    def ranks(self) -> Any:
        return self.allocator.ranks


def base(**changes: int) -> StateServer:
    return StateServer(**changes)  # type: ignore[arg-type]


def tracking(**changes: int) -> StateServer:
    return StateServer(128, **({"slots": 12} | changes))  # type: ignore[arg-type]


def state_of(req: Request) -> tuple[int, int]:
    """The state slot of the node that a request goes on from, 0 for none, and its locks."""
    assert req.last_node is not None, "it was admitted"
    value, locks = req.last_node.component_data[RECURRENT]
    return (0 if value is None else int(value[0])), locks


MODES = pytest.mark.parametrize("make", [base, tracking])
