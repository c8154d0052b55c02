"""Fold one event into the state: the only place where a state changes.

No clock, no policy, no chance, no device: the same events give the same state anywhere; live, replay
and tests all come through here. Rule: evolving is total. What a lawful writer cannot have written is
noted in `state.findings` with what was expected and what was found, the event's word is taken, and the
fold goes on. A writer that finds a finding of its own stops (`rank`).
"""

from collections.abc import Callable
from typing import Any

from radixledger.cache.fold import host, pages, requests, states, tree
from radixledger.cache.fold.pages import note
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
    e.Admitted: requests.admitted,
    e.Finished: requests.ended,
    e.Retracted: requests.ended,
    e.Aborted: requests.ended,
    e.Allocated: pages.allocated,
    e.Extended: requests.extended,
    e.Bound: requests.bound,
    e.Stepped: requests.stepped,
    e.Refused: _nothing,
    e.Transferred: tree.transferred,
    e.Split: tree.split,
    e.Tombstoned: tree.tombstoned,
    e.Healed: tree.healed,
    e.Reclaimed: requests.reclaimed,
    e.Freed: pages.freed,
    e.GroupOpened: pages.group_opened,
    e.GroupFlushed: pages.group_flushed,
    e.Removed: tree.removed,
    e.Repointed: requests.repointed,
    e.Matched: tree.matched,
    e.Locked: tree.locked,
    e.Unlocked: tree.unlocked,
    e.LedgerTaken: _nothing,
    e.Snapshotted: _nothing,
    e.Flushed: _nothing,
    e.Violated: _nothing,
    e.Gap: _nothing,
    e.Closed: _closed,
    e.Digested: _nothing,
    e.Evicted: _nothing,
    e.Remapped: pages.remapped,
    e.BackupBegun: host.backup_begun,
    e.Gathered: host.gathered,
    e.BackupEnded: host.backup_ended,
    e.Demoted: host.demoted,
    e.Adopted: host.adopted,
    e.LoadBegun: host.load_begun,
    e.LoadEnded: host.load_ended,
    e.HostDropped: host.host_dropped,
    e.StateTaken: states.taken,
    e.StateCopied: states.copied,
    e.StateTracked: states.tracked,
    e.StateReplaced: states.replaced,
    e.StateDonated: states.donated,
    e.StateFreed: states.freed,
}
"""One function per event; a test compares the keys with the vocabulary."""
