"""Every law of an event, by the event's type, and the one who asks them in order.

A rank that is watched (`watch`) asks before an event is recorded, `verify` before it is folded: the first wrong event is
blamed itself, not the state it left behind. Rule: what was wrong is told with the number of the event that was wrong,
also where only the next event shows it (the last leaf of an insert).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec.structs import asdict

from radixledger.cache.evolve import evolve
from radixledger.cache.laws import of_host_events as host
from radixledger.cache.laws import of_page_events as pages
from radixledger.cache.laws import of_request_events as requests
from radixledger.cache.laws import of_state_events as states
from radixledger.cache.laws import of_tree_events as tree
from radixledger.cache.laws.event_law import UNASKABLE, Check, EventLaw, check_of, event_law
from radixledger.cache.laws.law import Breach
from radixledger.cache.state import Finding, Receipt, State
from radixledger.cache.taken_ledger import take_ledger
from radixledger.journal import events as e
from radixledger.journal.accounts import Kind, Pool
from radixledger.journal.causes import Operation
from radixledger.journal.events import AnyEvent
from radixledger.journal.units import ROOT, UNBOUND, Seq

LAST_LEAF = "an_insert_ends_in_a_live_leaf_of_one_window"
CREDIT = "an_eviction_is_credited_what_it_freed"
RELEASE = "a_receipt_is_released_by_its_holder"
REPLACED = "a_replaced_receipt_is_given_back"
HOLDS = "who_names_a_path_holds_it"
ROW = "no_row_loses_its_page_to_a_free"


@event_law
def a_recorded_ledger_is_the_states(state: State, event: e.LedgerTaken) -> Iterator[Breach]:
    """The accounts that a writer took are those of its own events (R153-R157)."""
    recorded, folded = asdict(event), asdict(take_ledger(state, event.phase))
    for name in recorded.keys() - {"phase", "digest"}:
        if recorded[name] != folded[name]:
            text = f"{name}: recorded {recorded[name]}, folded {folded[name]}"
            yield Breach(text, expected=folded[name], found=recorded[name])


EVENT_LAWS: dict[type, tuple[EventLaw, ...]] = {
    e.Allocated: (
        pages.an_allocation_takes_pages_in_pairs,
        pages.nothing_is_handed_out_while_a_mapping_dangles,
    ),
    e.Remapped: (pages.a_mapping_moves_as_a_whole,),
    e.Freed: (pages.what_is_given_up_goes_where_the_group_says, pages.a_window_goes_with_its_mapping),
    e.GroupFlushed: (pages.a_flushed_group_gives_all_that_is_pending,),
    e.Matched: (
        tree.a_match_ends_in_a_live_window,
        tree.a_match_stays_within_its_question,
        host.a_match_reaches_copies_that_can_be_read,
        states.a_match_ends_where_a_state_stands,
    ),
    e.Transferred: (tree.a_leaf_grows_where_there_is_a_tree, tree.a_new_leaf_is_whole_and_alone),
    e.Split: (tree.a_split_moves_the_mark,),
    e.Tombstoned: (
        pages.what_is_given_up_goes_where_the_group_says,
        tree.a_tombstone_keeps_no_mapping,
        tree.the_victim_is_the_oldest_candidate,
        tree.who_has_children_stays,
    ),
    e.Healed: (
        pages.what_is_given_up_goes_where_the_group_says,
        tree.a_heal_covers_its_node,
        tree.a_heal_keeps_what_is_locked_and_nothing_else,
    ),
    e.Removed: (
        pages.what_is_given_up_goes_where_the_group_says,
        tree.a_removed_leaf_gives_up_all_its_pages,
        tree.the_victim_is_the_oldest_candidate,
        tree.who_has_children_stays,
        tree.a_flush_finds_the_rank_idle,
        states.who_goes_for_a_slot_was_used_longest_ago,
    ),
    e.Flushed: (tree.a_flush_finds_the_rank_idle, tree.a_flush_empties_the_tree),
    e.Locked: (tree.a_lock_covers_the_last_window, states.a_lock_tells_whether_it_holds_a_state),
    e.Admitted: (
        requests.an_admission_begins_behind_a_live_window,
        requests.a_request_is_admitted_once,
        states.an_admission_goes_on_from_a_state,
    ),
    e.Extended: (
        requests.pages_are_taken_as_tokens_need_them,
        pages.nothing_is_handed_out_while_a_mapping_dangles,
    ),
    e.Reclaimed: (
        pages.what_is_given_up_goes_where_the_group_says,
        pages.a_window_goes_with_its_mapping,
        requests.a_reclaim_leaves_a_window,
        requests.a_reclaim_gives_up_what_lies_between,
        requests.a_running_step_keeps_its_window,
    ),
    e.Repointed: (requests.a_cached_path_ends_in_a_live_window, requests.a_repointed_row_names_its_path),
    **dict.fromkeys(
        (e.Finished, e.Retracted, e.Aborted),
        (
            requests.a_request_outlives_the_steps_that_read_it,
            requests.an_ended_request_owns_nothing,
            requests.an_end_tells_what_was_there,
        ),
    ),
    e.StateTaken: (states.a_request_takes_all_of_its_slots,),
    e.StateCopied: (states.what_is_copied_is_what_was_hit,),
    e.StateTracked: (states.what_is_tracked_was_just_passed,),
    e.StateReplaced: (states.a_replaced_slot_holds_a_boundary,),
    e.StateDonated: (states.a_donated_state_is_the_one_after_its_node,),
    e.StateFreed: (states.a_node_gives_its_state_up_for_its_children,),
    e.Stepped: (requests.a_step_writes_behind_what_is_the_trees,),
    e.LedgerTaken: (a_recorded_ledger_is_the_states,),
    e.BackupBegun: (host.a_copy_is_made_when_it_is_due,),
    e.Demoted: (pages.what_is_given_up_goes_where_the_group_says, host.what_is_demoted_is_the_oldest_leaf),
    e.Adopted: (host.a_full_tombstone_takes_what_a_request_brings,),
    e.LoadBegun: (host.a_load_holds_its_path,),
    e.LoadEnded: (host.what_was_not_loaded_goes_where_the_group_says,),
    e.HostDropped: (host.what_is_dropped_is_the_oldest_copy, tree.a_flush_finds_the_rank_idle),
}
"""In the order in which they are asked."""

NAMES = tuple(
    dict.fromkeys(
        [
            *(law.__name__ for laws in EVENT_LAWS.values() for law in laws),
            LAST_LEAF,
            CREDIT,
            RELEASE,
            REPLACED,
            HOLDS,
            ROW,
        ]
    )
)
"""What findings of events can be called."""

_NONE: Sequence[Finding] = ()
_Memory = Callable[[State, Sequence[Any], int], Sequence[Finding]]
"""The state, a command, and the place of the event in it that something is remembered of, or told against those before it."""

_LEAF = e.Transferred
_NOBODY: tuple[tuple[Check, ...], _Memory | None] = (), None


class EventLaws:
    """Asks the laws of events, one event after the other; remembers what a command still owes."""

    def __init__(self) -> None:
        self._replaced: dict[int, tuple[Receipt, Seq]] = {}
        """Receipts that a request has still to give back, since it locked another path at that event."""
        self._paths: dict[int, Seq] = {}
        """Requests that have named a path, and where: its lock has to be theirs when the command ends."""
        self._cut: dict[int, tuple[Seq, e.Freed]] = {}
        """Live requests whose pages were freed by a call of the allocator: their row has to end before them."""
        remember: dict[type, _Memory] = {
            e.Freed: self._freed,
            e.Bound: self._bound,
            e.Admitted: self._named,
            e.Repointed: self._named,
            e.Locked: self._locked,
            e.Unlocked: self._unlocked,
            e.Evicted: self._credit,
        }
        self._asked: dict[type, tuple[tuple[Check, ...], _Memory | None]] = {
            kind: (tuple(map(check_of, EVENT_LAWS.get(kind, ()))), remember.get(kind))
            for kind in EVENT_LAWS.keys() | remember.keys()
        }
        """Who is asked about an event of a type: its checks, and what is remembered of it."""

    def broken_by(self, state: State, command: Sequence[AnyEvent], at: int) -> Sequence[Finding]:
        """What `command[at]` breaks, asked before it changes `state`; the ones before it are folded already."""
        event, found = command[at], _NONE
        if at and type(command[at - 1]) is _LEAF:
            found = self._last_leaf(state, command[at - 1], event)
        checks, remember = self._asked.get(type(event), _NOBODY)
        try:
            for check in checks:
                if check(state, event):
                    found = [*found, *_all_broken(state, event)]
                    break
        except UNASKABLE:
            found = [*found, *_all_broken(state, event)]
        if remember is not None:
            broken = remember(state, command, at)
            if broken:
                found = [*found, *broken]
        return found

    def follow(self, state: State, command: Sequence[AnyEvent]) -> None:
        """Ask about each event as `broken_by` does, and fold it; what was broken stands in the state's findings.

        Almost all of a journal comes this way, so what `broken_by` would be called for stands here.
        """
        asked, leaf = self._asked, None
        for at, event in enumerate(command):
            kind = type(event)
            checks, remember = asked.get(kind, _NOBODY)
            if leaf is not None:
                state.findings += self._last_leaf(state, leaf, event)
            leaf = event if kind is _LEAF else None
            try:
                for check in checks:
                    if check(state, event):
                        state.findings += _all_broken(state, event)
                        break
            except UNASKABLE:
                state.findings += _all_broken(state, event)
            if remember is not None:
                state.findings += remember(state, command, at)
            evolve(state, event)

    def at_the_end(self, state: State, command: Sequence[AnyEvent]) -> Sequence[Finding]:
        """What only the end of a command shows; its last event is folded already."""
        last_leaf = command and type(command[-1]) is _LEAF
        if not (last_leaf or self._paths or self._replaced or self._cut):
            return _NONE
        found: list[Finding] = []
        if last_leaf:
            found += self._last_leaf(state, command[-1], None)
        if self._paths:
            for number, seq in self._paths.items():
                request = state.requests.get(number)
                if request is not None and request.node != (
                    request.receipt.node if request.receipt else ROOT
                ):
                    text = (
                        f"request {number} goes on from node {request.node}, its receipt is {request.receipt}"
                    )
                    found.append(Finding(seq, HOLDS, text))
            self._paths.clear()
        if self._replaced:
            found += [
                Finding(seq, REPLACED, f"request {number} still holds {receipt}")
                for number, (receipt, seq) in self._replaced.items()
            ]
            self._replaced.clear()
        if self._cut:
            found += [
                Finding(seq, ROW, f"request {number} goes on naming what was freed", Pool.FULL, freed.full)
                for number, (seq, freed) in self._cut.items()
            ]
            self._cut.clear()
        return found

    def _last_leaf(self, state: State, leaf: Any, event: AnyEvent | None) -> Sequence[Finding]:
        if isinstance(event, e.Transferred) and event.parent == leaf.node:
            return _NONE
        wrong = tree.shape_of_the_last_leaf(state, leaf)
        return [Finding(state.seq, LAST_LEAF, wrong, Pool.FULL, leaf.full)] if wrong else _NONE

    def _credit(self, state: State, command: Sequence[Any], at: int) -> Sequence[Finding]:
        event: e.Evicted = command[at]
        breaches = tree.credited(event, command[max(0, at - event.events) : at])
        return [Finding(Seq(state.seq + 1), CREDIT, *breach) for breach in breaches]

    def _freed(self, state: State, command: Sequence[Any], at: int) -> Sequence[Finding]:
        event: e.Freed = command[at]
        if (
            (event.full or event.swa)
            and event.cause >> 5 == Operation.FREE
            and event.giver & 7 == Kind.REQUEST
            and event.giver >> 3 in state.requests
            and state.traits.chosen_here
        ):
            self._cut[event.giver >> 3] = Seq(state.seq + 1), event
        return _NONE

    def _bound(self, _: State, command: Sequence[Any], at: int) -> Sequence[Finding]:
        self._cut.pop(command[at].request, None)
        return _NONE

    def _named(self, state: State, command: Sequence[Any], at: int) -> Sequence[Finding]:
        self._paths[command[at].request] = state.seq + 1  # type: ignore[assignment]  # `Seq` would double the cost
        return _NONE

    def _locked(self, state: State, command: Sequence[Any], at: int) -> Sequence[Finding]:
        event: e.Locked = command[at]
        request = state.requests.get(event.request)
        if request is not None and request.receipt is not None:
            self._replaced[event.request] = request.receipt, Seq(state.seq + 1)
        return _NONE

    def _unlocked(self, state: State, command: Sequence[Any], at: int) -> Sequence[Finding]:
        """Exactly what a lock held is given back, by whom it was handed to (R113, R120, B9)."""
        event: e.Unlocked = command[at]
        number = event.request
        if number == UNBOUND:
            node = state.nodes.get(event.node)
            owned = [live.receipt for live in state.requests.values()]
            owned += [load.receipt for load in state.transfers.values()]
            receipts = [receipt.node for receipt in owned if receipt is not None]
            lawful = node is not None and node.anchors > receipts.count(event.node)
        else:
            request, given = state.requests.get(number), (event.node, event.boundary)
            receipt = request.receipt if request is not None else None
            lawful = receipt is not None and receipt[:2] == given
            if number in self._replaced and self._replaced[number][0][:2] == given:
                lawful = True
                del self._replaced[number]
        if lawful:
            return _NONE
        text = f"node {event.node}, boundary {event.boundary} is no receipt of request {event.request}"
        return [Finding(Seq(state.seq + 1), RELEASE, text)]


def _all_broken(state: State, event: AnyEvent) -> Iterator[Finding]:
    """What a law of the event says that is broken, law by law: asked once a check has told that there is something."""
    for law in EVENT_LAWS[type(event)]:
        yield from law(state, event)
