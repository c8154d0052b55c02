"""Fold one event into the state: the only place where a state changes.

No clock, no policy, no chance, no device: the same events give the same state anywhere; live, replay
and tests all come through here. Rule: evolving is total. What a lawful writer cannot have written is
noted in `state.findings` with what was expected and what was found, the event's word is taken, and the
fold goes on. A writer that finds a finding of its own stops (`rank`).
"""

from collections.abc import Callable
from typing import Any

from radixledger.cache import evolve_host, evolve_pages, evolve_requests, evolve_states, evolve_tree
from radixledger.cache.evolve_pages import note
from radixledger.cache.state import State, in_words
from radixledger.journal import events as e
from radixledger.journal.events import AnyEvent
from radixledger.journal.units import FIRST, Seq

STRANGE = (KeyError, IndexError, AssertionError, AttributeError, ValueError, TypeError, OverflowError)
"""What reading an event raises that names what does not exist, or whose columns are no columns."""


def begin(opened: e.Opened, seq: Seq = FIRST) -> State:
    """The state right after an epoch's first event, which has number `seq`.

    An event makes at most one node, boundary mark, request or transfer, so ids that begin at `seq` are above all ids of
    earlier epochs, whoever counts.
    """
    state = State(opened)
    state.seq = seq
    state.next_node = state.next_boundary = state.next_request = state.next_transfer = seq
    return state


def evolve(state: State, event: AnyEvent) -> None:
    """Apply one event; total over every event that the codec lets through."""
    state.seq += 1  # type: ignore[assignment]  # a call to `Seq` per event would show
    try:
        EVOLVE[type(event)](state, event)
    except STRANGE as error:
        # What the event names does not exist here: no lawful writer wrote it after these events.
        note(state, "an_event_names_what_exists", f"{type(event).__name__}: {in_words(error)}")


def _reopened(state: State, event: e.Opened) -> None:
    """A new epoch: process and device memory are new, so everything begins anew but the sequence and the findings."""
    findings = state.findings
    vars(state).update(vars(begin(event, state.seq)))
    state.findings = findings


def _nothing(state: State, event: AnyEvent) -> None:
    """The event tells something, and nothing changes."""


def _closed(state: State, event: e.Closed) -> None:
    state.closed = True


EVOLVE: dict[type, Callable[[State, Any], None]] = {
    e.Opened: _reopened,
    e.Admitted: evolve_requests.admitted,
    e.Finished: evolve_requests.ended,
    e.Retracted: evolve_requests.ended,
    e.Aborted: evolve_requests.ended,
    e.Allocated: evolve_pages.allocated,
    e.Extended: evolve_requests.extended,
    e.Bound: evolve_requests.bound,
    e.Stepped: evolve_requests.stepped,
    e.Refused: _nothing,
    e.Transferred: evolve_tree.transferred,
    e.Split: evolve_tree.split,
    e.Tombstoned: evolve_tree.tombstoned,
    e.Healed: evolve_tree.healed,
    e.Reclaimed: evolve_requests.reclaimed,
    e.Freed: evolve_pages.freed,
    e.GroupOpened: evolve_pages.group_opened,
    e.GroupFlushed: evolve_pages.group_flushed,
    e.Removed: evolve_tree.removed,
    e.Repointed: evolve_requests.repointed,
    e.Matched: evolve_tree.matched,
    e.Locked: evolve_tree.locked,
    e.Unlocked: evolve_tree.unlocked,
    e.LedgerTaken: _nothing,
    e.Snapshotted: _nothing,
    e.Flushed: _nothing,
    e.Violated: _nothing,
    e.Gap: _nothing,
    e.Closed: _closed,
    e.Digested: _nothing,
    e.Evicted: _nothing,
    e.Remapped: evolve_pages.remapped,
    e.BackupBegun: evolve_host.backup_begun,
    e.Gathered: evolve_host.gathered,
    e.BackupEnded: evolve_host.backup_ended,
    e.Demoted: evolve_host.demoted,
    e.Adopted: evolve_host.adopted,
    e.LoadBegun: evolve_host.load_begun,
    e.LoadEnded: evolve_host.load_ended,
    e.HostDropped: evolve_host.host_dropped,
    e.StateTaken: evolve_states.taken,
    e.StateCopied: evolve_states.copied,
    e.StateTracked: evolve_states.tracked,
    e.StateReplaced: evolve_states.replaced,
    e.StateDonated: evolve_states.donated,
    e.StateFreed: evolve_states.freed,
}
"""One function per event; a test compares the keys with the vocabulary."""
