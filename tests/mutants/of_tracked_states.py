"""Seeded faults of slots that requests run on and track in: how many they take, which one holds what, and who is freed."""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from radixledger.cache.components import recurrent
from radixledger.cache.components.recurrent import RecurrentComponent, slot_of
from radixledger.cache.eviction import oldest_state
from radixledger.cache.state import Node, State
from radixledger.journal.causes import Site
from radixledger.journal.events import (
    Admitted,
    AnyEvent,
    Config,
    Locked,
    Removed,
    StateDonated,
    StateFreed,
    StateReplaced,
    StateTaken,
    StateTracked,
)
from radixledger.journal.moves import pages_of
from radixledger.journal.units import ROOT, UNBOUND, Pages, TokenCount

from .desk import Desk
from .of_requests import is_tail
from .seeded import Mutant, decides, puts, saying, twice, where

RUNNING = Config(1, 64, 0, 0, rows=8, context_pages=32, recurrent_slots=8, recurrent_mode="base")
"""A request has one slot; it leaves its state when it finishes."""
TRACKING = Config(
    128, 40, 0, 0, rows=8, context_pages=16, recurrent_slots=9, recurrent_mode="extra_buffer", track_interval=256
)  # fmt: skip
"""A request has three; a letter is a page, and a state is tracked at every second one."""


def branched(desk: Desk) -> None:
    """Two prompts part behind four tokens, where no state stands; a third one goes on from there."""
    desk.serve("a", "abcdef")
    desk.serve("b", "abcdxy", miss=True)
    desk.admit("c", "abcdzz")


def kept_half_way(desk: Desk) -> None:
    desk.admit("a", "abcdef")
    desk.grow("a", 4)
    desk.keep("a")


def admitted(desk: Desk) -> None:
    desk.admit("a", "abcd")


def served_beside_another(desk: Desk) -> None:
    desk.serve("a", "abcd")
    desk.admit("b", "wxyz")


def five_pages(desk: Desk) -> None:
    """The last boundary lies a page before the end."""
    desk.admit("a", "abcde")
    desk.fill("a")
    desk.finish("a")


def kept_at_a_boundary(desk: Desk) -> None:
    desk.admit("a", "abcde")
    desk.grow("a", 2 * 128)
    desk.keep("a")


def outgrown_under_a_lock(desk: Desk) -> None:
    """The path of a running request gets a child from another one."""
    desk.serve("a", "abcd")
    desk.admit("b", "abcdef")
    desk.serve("c", "abcdxy")


def short_of_slots(desk: Desk) -> None:
    desk.serve("a", "abcd")
    desk.serve("x", "wxyz")
    desk.cache.evict_states(1)


def _behind_what_has_no_state(state: State, event: Admitted) -> Iterator[AnyEvent]:
    bare = next(each for each in state.nodes.values() if each.parent and not each.recurrent)
    yield replace(event, node=bare.id, prefix=TokenCount(bare.end * state.page_size))


def _misses_behind_something(state: State, event: Admitted) -> bool:
    return event.node == ROOT and any(each.parent and not each.recurrent for each in state.nodes.values())


def _one_more(state: State, event: StateTaken) -> Iterator[AnyEvent]:
    yield replace(event, slots=state.recurrent.next_free(len(event.slots) // 4 + 1))


def _the_trees(state: State, event: StateTaken) -> Iterator[AnyEvent]:
    yield replace(event, slots=next(each.recurrent for each in state.nodes.values() if each.recurrent))


def _tree_has_one(state: State, _: StateTaken) -> bool:
    return any(each.recurrent for each in state.nodes.values())


def _a_page_later(state: State, event: StateTracked) -> Iterator[AnyEvent]:
    later = pages_of(event.ends) + state.page_size
    yield replace(event, ends=later.astype("<i4").tobytes())


def _the_running_one(state: State, event: StateReplaced) -> Iterator[AnyEvent]:
    running = int(state.rows.states[state.requests[event.request].row, 0])
    yield replace(event, former=slot_of(running))


def _runs_on(_: Any, state: State, request: Any, __: int, ___: Any) -> Pages:
    return slot_of(int(state.rows.states[request.row, 0]))


def _outgrown(_: Any, __: State, node: Node, brought: Any) -> Iterator[AnyEvent]:
    if node.recurrent:
        yield recurrent._freed_by(node, brought.request, brought.why(Site.OUTGROWN))


def _youngest(_: Any, state: State) -> Node | None:
    idle = [each for each in state.nodes.values() if each.recurrent and not each.children and not each.holds]
    return max(idle, key=lambda node: node.recurrent_tick, default=None)


def _misses_a_node(state: State, event: Any) -> bool:
    return isinstance(event, Locked) and not state.nodes[event.node].recurrent and not event.skipped


def _is_not_the_oldest(state: State, event: Any) -> bool:
    if not isinstance(event, Removed) or event.cause & 31 != Site.STATE_LEAF:
        return False
    oldest = oldest_state(state)
    return oldest is None or oldest.id != event.node


TRACKED_STATES = (
    Mutant(
        "an_admission_goes_on_without_a_state",
        "a request that missed starts behind an inner node, where no state stands",
        decides(Admitted, as_=where(_misses_behind_something, _behind_what_has_no_state)),
        branched,
        "the first Admitted behind a node without a state",
        lambda state, event: isinstance(event, Admitted) and event.node != ROOT and not state.nodes[event.node].recurrent,
        "an_admission_goes_on_from_a_state", "admission_out_of_line", ("R71",), config=RUNNING, route="radix",
    ),
    Mutant(
        "a_lock_claims_a_state",
        "the receipt of a node without a state does not say that it was passed over",
        decides(Locked, as_=saying(skipped=b"")),
        kept_half_way,
        "the first Locked of a node without a state that names none",
        _misses_a_node,
        "a_lock_tells_whether_it_holds_a_state", "", ("R112",), config=RUNNING, route="radix",
        unseen="SQL keeps what a lock holds, not what it says that it passed over",
    ),
    Mutant(
        "an_admission_takes_a_slot_too_many",
        "a request gets a state slot more than it runs on",
        decides(StateTaken, as_=_one_more),
        admitted,
        "the first StateTaken of two slots",
        lambda _, event: isinstance(event, StateTaken) and event.request != UNBOUND and len(event.slots) > 4,
        "a_request_takes_all_of_its_slots", "", ("R211",), config=RUNNING, route="radix",
        unseen="how many slots a request needs follows from the mode, of which SQL knows nothing",
    ),
    Mutant(
        "an_admission_takes_the_trees_slot",
        "a request runs on the slot in which a node keeps its state",
        decides(StateTaken, as_=where(_tree_has_one, _the_trees)),
        served_beside_another,
        "the first StateTaken of a slot that is not free",
        lambda state, event: isinstance(event, StateTaken) and not state.recurrent.all_with(event.slots, 0),
        "only_free_pages_are_allocated", "two_owners", ("R211",), config=RUNNING, route="radix",
    ),
    Mutant(
        "an_end_frees_its_slots_twice",
        "the slots of an ended request are freed, and freed again",
        decides(StateFreed, as_=where(is_tail, twice)),
        five_pages,
        "the first StateFreed of slots that are free",
        lambda state, event: isinstance(event, StateFreed) and state.recurrent.all_with(event.slots, 0),
        "a_page_is_freed_once", "double_free", ("R211", "R141"), config=TRACKING, route="radix",
    ),
    Mutant(
        "a_boundary_is_a_page_late",
        "a state is noted down for the page behind the boundary that it is of",
        decides(StateTracked, as_=_a_page_later),
        five_pages,
        "the first StateTracked between two boundaries",
        lambda state, event: isinstance(event, StateTracked)
        and bool((pages_of(event.ends) % state.config.track_interval).any()),
        "what_is_tracked_was_just_passed", "", ("R211",), config=TRACKING, route="radix",
        unseen="SQL counts slots, and does not know which token a state is of",
    ),
    Mutant(
        "a_replaced_slot_holds_nothing",
        "a running request gets another slot for the one that it runs on",
        decides(StateReplaced, as_=_the_running_one),
        kept_at_a_boundary,
        "the first StateReplaced of a slot that tracks nothing",
        lambda state, event: isinstance(event, StateReplaced)
        and pages_of(event.former)[0] == state.rows.states[state.requests[event.request].row, 0],
        "a_replaced_slot_holds_a_boundary", "", ("R211",), config=TRACKING, route="radix",
        unseen="SQL counts slots, and does not know which token a state is of",
    ),
    Mutant(
        "the_running_state_is_donated",
        "the tree gets the state after all tokens for a path that ends at a boundary before",
        puts(RecurrentComponent, "carried", _runs_on),
        five_pages,
        "the first StateDonated of the slot that a request ran past the node in",
        lambda state, event: isinstance(event, StateDonated)
        and pages_of(event.slot)[0] == state.rows.states[state.requests[event.giver >> 3].row, 0],
        "a_donated_state_is_the_one_after_its_node", "", ("R150", "R211"), config=TRACKING, route="radix",
        unseen="SQL counts slots, and does not know which token a state is of",
    ),
    Mutant(
        "a_locked_state_is_dropped",
        "a node that gets a child gives its state up although it is locked",
        puts(RecurrentComponent, "outgrown", _outgrown),
        outgrown_under_a_lock,
        "the first StateFreed of a locked node",
        lambda state, event: isinstance(event, StateFreed) and event.node != ROOT and state.nodes[event.node].anchors > 0,
        "a_node_gives_its_state_up_for_its_children", "", ("R109", "R211"), config=RUNNING, route="radix",
        unseen="SQL asks for locks when a leaf or a window goes",
    ),
    Mutant(
        "the_youngest_state_goes",
        "a shortage of slots takes the leaf whose state was used last",
        puts(RecurrentComponent, "oldest", _youngest),
        short_of_slots,
        "the first Removed for a slot that is not the oldest",
        _is_not_the_oldest,
        "who_goes_for_a_slot_was_used_longest_ago", "", ("R67", "R211"), config=RUNNING, route="radix",
        unseen="SQL asks for the order of victims under FULL pressure",
    ),
)  # fmt: skip
"""In the order in which a request meets them."""
