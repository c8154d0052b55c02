"""Seeded faults of the ledger: numbers that are taken from the wrong place."""

from collections.abc import Callable

from msgspec.structs import replace

from radixledger.cache import shell
from radixledger.cache.state import State
from radixledger.cache.taken_ledger import take_ledger
from radixledger.journal.events import LedgerTaken

from .schedules import (
    evicted_and_flushed,
    half_a_page,
    in_an_open_group,
    lent_and_counted,
    with_a_tombstone,
)
from .seeded import Change, Mutant, puts

_take = take_ledger


def takes(change: Callable[[State, LedgerTaken], LedgerTaken]) -> Change:
    """A ledger is taken, and its numbers are others."""
    return puts(shell, "take_ledger", lambda state, phase="": change(state, _take(state, phase)))


def is_ledger(state: State, event: object) -> bool:
    """Whether this is a ledger with other numbers than the lawful one."""
    return isinstance(event, LedgerTaken) and replace(event, digest=b"") != _take(state, event.phase)


def _residual(_: State, row: LedgerTaken) -> LedgerTaken:
    held = row.full_available + row.full_tree_evictable + row.full_tree_protected
    return replace(row, full_request_owned=row.full_capacity - held)


def _after_a_flush(_: State, row: LedgerTaken) -> LedgerTaken:
    return replace(row, full_evicted_total=0, swa_evicted_total=0) if row.phase == "post_flush" else row


LEDGERS = (
    Mutant(
        "a_ledger_calls_the_rest_request_owned",
        "request-owned is what is left over, so that a leak is absorbed",
        takes(_residual),
        lent_and_counted,
        "the first LedgerTaken", is_ledger,
        "a_recorded_ledger_is_the_states", "ledger_identity", ("R154", "R156"),
    ),
    Mutant(
        "a_ledger_leaves_the_slack_out",
        "the rest of a partly filled page is nobody's",
        takes(lambda _, row: replace(row, full_reserved_page_slack=0)),
        half_a_page,
        "the first LedgerTaken", is_ledger,
        "a_recorded_ledger_is_the_states", "ledger_identity", ("R171", "R175"),
    ),
    Mutant(
        "a_ledger_reads_the_tree_off_the_mapping",
        "the tree's FULL pages are those that have a window",
        takes(lambda _, row: replace(row, full_tree_evictable=row.swa_tree_evictable)),
        with_a_tombstone,
        "the first LedgerTaken", is_ledger,
        "a_recorded_ledger_is_the_states", "ledger_identity", ("R179", "R156"),
    ),
    Mutant(
        "a_ledger_counts_the_padding_sink",
        "the capacity is a page more than what can be used",
        takes(lambda _, row: replace(row, full_capacity=row.full_capacity + 4, full_available=row.full_available + 4)),
        with_a_tombstone,
        "the first LedgerTaken", is_ledger,
        "a_recorded_ledger_is_the_states", "ledger_capacity_drift", ("R163", "R170", "R51"),
    ),
    Mutant(
        "a_flush_forgets_the_totals",
        "totals of evictions begin anew with a flush",
        takes(_after_a_flush),
        evicted_and_flushed,
        "the LedgerTaken behind the flush", is_ledger,
        "a_recorded_ledger_is_the_states", "ledger_total_decreased", ("R172",),
    ),
    Mutant(
        "a_ledger_counts_a_mapping_too_many",
        "one mapping more than there are SWA owners",
        takes(lambda _, row: replace(row, mapping_nonzero_count=row.mapping_nonzero_count + 4)),
        with_a_tombstone,
        "the first LedgerTaken", is_ledger,
        "a_recorded_ledger_is_the_states", "ledger_mapping_count", ("R169", "R155"),
    ),
    Mutant(
        "a_ledger_calls_pending_pages_available",
        "what waits in a free group is counted as free",
        takes(lambda _, row: replace(row, full_available=row.full_available + row.full_pending_free, full_pending_free=0)),
        in_an_open_group,
        "the first LedgerTaken", is_ledger,
        "a_recorded_ledger_is_the_states", "ledger_differs_from_events", ("R29", "R156"),
    ),
)  # fmt: skip
"""In the order of the fields."""
