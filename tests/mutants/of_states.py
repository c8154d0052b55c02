"""Seeded faults of recurrent states: who has a slot, where a state comes from, where a request may start."""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from radixledger.cache.components.recurrent import RecurrentComponent
from radixledger.cache.state import State
from radixledger.journal.causes import Operation
from radixledger.journal.events import (
    Aborted,
    AnyEvent,
    Config,
    Matched,
    StateCopied,
    StateDonated,
    StateFreed,
)
from radixledger.journal.units import ROOT, Pages

from .desk import Desk
from .of_other_routes import on
from .of_requests import is_of
from .seeded import Mutant, decides, dropped, puts, twice, where

STATES = Config(1, 64, 0, 0, rows=8, context_pages=32, recurrent_slots=8, recurrent_mode="base")
"""Pages of one token; the state of a finished request stands on its leaf."""


def aborted(desk: Desk) -> None:
    desk.admit("a", "abcd")
    desk.fill("a")
    desk.abort("a")


def hit_beside_another(desk: Desk) -> None:
    desk.serve("x", "wxyz")
    desk.serve("a", "abcd")
    desk.admit("b", "abcdef")


def branch_without_a_state(desk: Desk) -> None:
    """Two prompts part behind four tokens, where no state stands."""
    desk.serve("a", "abcdef")
    desk.serve("b", "abcdxy", miss=True)
    desk.cache.match(desk.key("abcdzz"))


def finished(desk: Desk) -> None:
    desk.serve("a", "abcd")


def _of_another_node(state: State, event: StateCopied) -> Iterator[AnyEvent]:
    others = [each.recurrent for each in state.nodes.values() if each.recurrent not in (b"", event.source)]
    yield replace(event, source=Pages(others[0]))


def _has_a_slot(state: State, event: Any) -> bool:
    return bool(state.rows.states[state.requests[event.request].row].any())


OF_STATES = (
    Mutant(
        "an_abort_keeps_its_state",
        "the slot that an aborted request ran on is freed by nobody",
        decides(StateFreed, as_=where(is_of(Operation.ABORT), dropped)),
        aborted,
        "the first Aborted of a request that has a state slot",
        lambda state, event: isinstance(event, Aborted) and _has_a_slot(state, event),
        "an_ended_request_holds_no_state", "request_ended_with_pages", ("R141",), config=STATES, route="radix",
    ),
    Mutant(
        "a_state_is_copied_from_elsewhere",
        "a hit goes on from the state of another prompt",
        decides(StateCopied, as_=_of_another_node),
        hit_beside_another,
        "the first StateCopied from a slot that is not the node's",
        lambda state, event: isinstance(event, StateCopied) and event.source != state.nodes[event.node].recurrent,
        "what_is_copied_is_what_was_hit", "state_copied_from_elsewhere", ("R211",), config=STATES, route="radix",
    ),
    Mutant(
        "a_state_is_donated_twice",
        "a finished request gives its slot to the tree, and gives it again",
        decides(StateDonated, as_=twice),
        finished,
        "the first StateDonated to a node that has a state",
        lambda state, event: isinstance(event, StateDonated) and bool(state.nodes[event.node].recurrent),
        "a_state_goes_to_a_leaf_without_one", "two_owners", ("R211",), config=STATES, route="radix",
    ),
    Mutant(
        "a_match_ends_without_a_state",
        "a prefix is usable although no state stands at its end",
        puts(RecurrentComponent, "boundary", lambda _, __, node, pages: (node, pages)),
        branch_without_a_state,
        "the first Matched at a node without a state",
        lambda state, event: isinstance(event, Matched) and event.node != ROOT and not state.nodes[event.node].recurrent,
        "a_match_ends_where_a_state_stands", "", ("R71",), config=STATES, route="radix",
        unseen="SQL asks where a state was copied from, so a match that nobody goes on from is not seen",
    ),
    on("radix_with_states", "duplicates_are_not_freed", ("R211",), config=STATES),
    on("radix_with_states", "a_finish_keeps_its_lock", ("R211",), config=STATES),
    on("radix_with_states", "a_removed_leaf_keeps_a_page", ("R211",), config=STATES),
)  # fmt: skip
"""Of a model with recurrent layers."""
