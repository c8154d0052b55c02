"""Faults of recurrent states: on which token they stand, whose slot they are in, and who gives it back."""

from collections.abc import Sequence

import numpy as np
import pytest

from radixledger.cache.config import checked
from radixledger.cache.faces.allocator import SWATokenToKVPoolAllocator
from radixledger.cache.faces.request_rows import ReqToTokenPool
from radixledger.cache.faces.unified import UnifiedRadixCache
from radixledger.cache.prefix_cache import CacheInitParams, ComponentType, Ended, InsertParams
from radixledger.cache.refusals import ForeignFree, PoolShort, StateShort
from radixledger.journal.accounts import Kind
from radixledger.journal.events import Config, StateCopied
from radixledger.journal.sizes import BadConfig

from ..cache.driven import opened
from ..cache.server import FULL, SWA, Request, text
from ..cache.state_server import RECURRENT, StateServer, base, state_of, tracking

MODES = pytest.mark.parametrize("make", [base, tracking])


class Model:
    """What a device does with state slots: it folds tokens into the slot that a request runs on, and nothing is zeroed for it."""

    def __init__(self, server: StateServer) -> None:
        self.server = server
        self.states = np.full(server.slots_given + 1, -1, np.int64)

    def compute(self, req: Request) -> int:
        """The state after all tokens of a request that was just admitted."""
        self.server.prefill(req)
        slots = self.server.states.state_slots(req)
        state = int(self.states[slots.source]) if slots.source else 0
        self.states[slots.running] = folded(state, req.fill_ids[req.cache_protected_len :])
        return int(self.states[slots.running])


def folded(state: int, tokens: Sequence[int]) -> int:
    """A state in which every token so far and its place count."""
    for token in tokens:
        state = (state * 1_000_003 + token + 1) % (1 << 61)
    return state


# -- where a hit may land ----------------------------------------------------------------------------------------------


def test_windows_beside_states_are_refused_so_no_window_is_lost_below_a_state() -> None:
    """B41, R11: P=4, W=4, FULL+SWA+RECURRENT is refused with the reason; the frontier rule does not arise."""
    pool, allocator = ReqToTokenPool(4, 64), SWATokenToKVPoolAllocator(80, 80, None, 4)
    before = [rank.digest() for rank in allocator.ranks]
    params = CacheInitParams(pool, allocator, 4, sliding_window_size=4)
    with pytest.raises(BadConfig, match="a hit on a state needs the window below that state"):
        UnifiedRadixCache(
            pool,
            allocator,
            4,
            tree_components=(FULL, SWA, ComponentType.RECURRENT),
            component_init_params=params,
        )
    assert [rank.digest() for rank in allocator.ranks] == before
    config = Config(4, 20, 20, 4, rows=4, context_pages=16, recurrent_slots=6, recurrent_mode="base")
    with pytest.raises(BadConfig, match="'unified' keeps no states"):
        checked(opened((4, 4, 20, 20), config=config))


def test_without_windows_a_hit_lands_on_the_state_behind_the_tail() -> None:
    """B41: five pages, states at the second and fourth; the match is 4 pages of 5, the answer of the report (16 of 20)."""
    server = tracking()
    server.end(server.start(server.path("a", 5)))
    assert server.hit([*server.path("a", 5), 1]) == 4 * server.page_size
    server.check()


@pytest.mark.parametrize(("make", "letter"), [(base, 1), (tracking, 64)])
def test_the_same_prompt_again_finds_what_stands_and_never_a_state_that_was_cut_back(
    make: type[StateServer], letter: int
) -> None:
    """B73: prompt 8, output 1. The same prompt finds 0, as inner nodes keep no state, and never 7; a longer one finds 8."""
    server = make()
    prompt = text("a", 0, 8 * letter)
    first = server.admit(prompt)
    server.prefill(first, 4 * letter)
    server.cache_so_far(first)
    server.prefill(first)
    server.end(first)
    same = server.admit(prompt)
    assert same.cache_protected_len == 0
    server.prefill(same)
    server.end(same, insert=False)
    server.end(server.start([*prompt[: 4 * letter], *text("y", 0, 4 * letter)]))
    longer = server.admit([*prompt, *text("x", 0, 4 * letter)])
    assert longer.cache_protected_len == 8 * letter, "the end state survived the cut of its node"
    server.check()


def test_a_state_is_found_by_intervals_of_states_and_never_by_pages() -> None:
    """B75: an interval of 4 pages, a hit of 8: the second state tracked, (8-1)//4 = 1; slot 7 of 6 raises and is not clipped."""
    server = StateServer(128, slots=6, interval_pages=4)
    first = server.start(server.path("a", 8))
    slots = server.states.state_slots(first)
    assert slots.tracked == (4 * 128, 8 * 128)
    server.end(first)
    second = server.admit([*server.path("a", 8), 1])
    assert second.cache_protected_len == 8 * 128
    assert state_of(second) == (slots.track[(8 - 1) // 4], 1)
    for slot in ((8 * 128 - 1) // 128, -1, 1 << 20):
        with pytest.raises(ForeignFree):
            server.allocator.free_recurrent([slot])
        with pytest.raises(ForeignFree):
            server.cache.insert(
                InsertParams(server.key(server.path("b", 1)), server.slots(128), recurrent_value=slot)
            )
    server.check()


# -- whose slot it is --------------------------------------------------------------------------------------------------


def test_who_goes_on_has_a_copy_and_who_begins_has_nothing_of_the_last_owner() -> None:
    """B77: two slots; r2 hits 8 tokens and computes what a cold run does, r3 gets r2's slot and begins at zero."""
    server = base(slots=2)
    model = Model(server)
    first = server.admit(text("a", 0, 8))
    model.compute(first)
    kept = server.states.state_slots(first).running
    server.end(first)
    prompt = [*text("a", 0, 8), *text("b", 0, 3)]
    second = server.admit(prompt)
    assert second.cache_protected_len == 8
    assert model.compute(second) == folded(0, prompt)
    running = server.states.state_slots(second).running
    assert running != kept
    server.end(second, insert=False)
    third = server.admit(text("c", 0, 5))
    assert model.compute(third) == folded(0, text("c", 0, 5))
    slots = server.states.state_slots(third)
    assert (slots.running, slots.source) == (running, 0)
    server.end(third, insert=False)
    again = server.admit(prompt)
    assert model.compute(again) == folded(0, prompt), "the node's state is what it was"
    assert len(server.journal.of(StateCopied)) == 2
    server.check()


@pytest.mark.parametrize("gives_back", [False, True])
def test_a_request_that_cannot_grow_never_takes_a_second_slot(gives_back: bool) -> None:
    """B78: M=3, one state cached, one running, no page left. Five ticks with one slot at most, then success once.

    Whoever goes back to the queue gives the slot back; at idle free = 3 minus what is cached.
    """
    server = base(slots=3, full_pages=8)
    server.end(server.start(text("a", 0, 2)))
    running = server.start(text("m", 0, 6))
    prompt = [*text("a", 0, 2), *text("b", 0, 1)]
    waiting = server.admit(prompt)
    held = server.rank().state.recurrent.held
    for _ in range(5):
        assert server.allocator.alloc(1, owner=waiting) is None
        assert isinstance(server.allocator.last_refusal, PoolShort)
        assert held[Kind.REQUEST] == 2
        if gives_back:
            server.end(waiting, insert=False, ended=Ended.RETRACTED)
            assert held[Kind.REQUEST] == 1
            server.readmit(waiting)
    server.end(running, insert=False)
    server.prefill(waiting)
    assert server.states.state_slots(waiting).source != 0
    server.end(waiting)
    cached = server.states.recurrent_evictable_size()
    assert (held[Kind.REQUEST], server.allocator.recurrent_available_size()) == (0, 3 - cached)
    server.check()


def test_a_request_for_which_there_is_no_slot_holds_neither_slot_nor_pages() -> None:
    """B78: the other way round: pages there are, slots none; asked five times, it holds nothing."""
    server = base(slots=1, full_pages=8)
    running = server.start(text("m", 0, 2))
    waiting = server.admit(text("b", 0, 3))
    for _ in range(5):
        assert server.allocator.alloc(3, owner=waiting) is None
        assert isinstance(server.allocator.last_refusal, StateShort)
        state = server.rank().state
        assert (state.recurrent.held[Kind.REQUEST], state.full.held[Kind.REQUEST]) == (1, 2)
    server.end(running, insert=False)
    server.prefill(waiting)
    server.end(waiting)
    server.check()


@MODES
@pytest.mark.parametrize("prompt", [10, 8])
@pytest.mark.parametrize("retracted", [False, True])
def test_the_last_chunk_finds_its_row_and_its_slots(
    make: type[StateServer], prompt: int, retracted: bool
) -> None:
    """B80: prompts of 10 and 8, chunks of 4, also retracted in between: one row throughout, and all of them free at idle."""
    server = make()
    page = server.page_size
    req = server.admit(server.path("a", prompt))
    row, running = req.row, 0
    for stop in range(4, prompt + 4, 4):
        server.prefill(req, min(stop, prompt) * page)
        server.cache_so_far(req)
        running = running or server.states.state_slots(req).running
        assert (req.row, server.states.state_slots(req).running) == (row, running)
        if retracted and stop == 8:
            server.end(req, insert=False, ended=Ended.RETRACTED)
            server.readmit(req)
            server.prefill(req)
            break
    server.end(req)
    assert server.pool.available_size() == server.pool.size
    assert server.rank().state.recurrent.held[Kind.REQUEST] == 0
    assert RECURRENT in server.cache.tree_components
    server.check()
