"""The ledger row of one rank: what the gates read (R153-R157, R169-R171), in tokens.

Request-owned numbers come from live rows, never as a residual, so that a leak makes the identity fail instead of being
absorbed (R154); tree-owned numbers come from the nodes' counts, never from the mapping (R179). It reads the state
and writes nothing (R157), and costs what the live rows cost.
"""

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from radixledger.cache.ledger import PoolBook
from radixledger.cache.state import State
from radixledger.cache.window import pages_for
from radixledger.journal.accounts import Kind
from radixledger.journal.events import LedgerTaken
from radixledger.journal.units import Pages


def take_ledger(state: State, phase: str = "") -> LedgerTaken:
    """The numbers of this moment; `idle` says that nobody is live, no group is open, no step and no copy runs (A2)."""
    page_size = state.page_size
    full_rows, swa_rows, full_tokens, swa_tokens = _row_pages(state)
    full_unique, swa_unique = np.unique(full_rows), np.unique(swa_rows)
    mapped = state.mapping.swa_of[1:]
    targets = mapped[mapped != 0]
    full, swa, host = state.full.held, state.swa.held, state.host.held
    taken = LedgerTaken(
        phase=phase,
        idle=not (state.requests or state.group_open or state.running or state.transfers),
        full_capacity=state.full.capacity * page_size,
        full_available=full[Kind.FREE] * page_size,
        full_tree_evictable=state.full_evictable * page_size,
        full_tree_protected=state.full_protected * page_size,
        full_request_owned=full_tokens,
        full_reserved_page_slack=int(full_unique.size) * page_size - full_tokens,
        full_pending_free=full[Kind.PENDING] * page_size,
        swa_capacity=state.swa.capacity * page_size,
        swa_available=swa[Kind.FREE] * page_size,
        swa_tree_evictable=state.swa_evictable * page_size,
        swa_tree_protected=state.swa_protected * page_size,
        swa_request_owned=swa_tokens,
        swa_reserved_page_slack=int(swa_unique.size) * page_size - swa_tokens,
        swa_pending_free=swa[Kind.PENDING] * page_size,
        mapping_nonzero_count=int(targets.size) * page_size,
        mapping_invalid_count=int(np.count_nonzero((targets < 0) | (targets > state.swa.capacity)))
        * page_size,
        mapping_duplicate_count=(int(targets.size) - int(np.unique(targets).size)) * page_size,
        full_duplicate_request_owner_count=(int(full_rows.size) - int(full_unique.size)) * page_size,
        swa_duplicate_request_owner_count=(int(swa_rows.size) - int(swa_unique.size)) * page_size,
        full_request_tree_overlap_count=_tree_held(state.full, full_unique) * page_size,
        swa_request_tree_overlap_count=_tree_held(state.swa, swa_unique) * page_size,
        full_evicted_total=state.totals.full_evicted * page_size,
        swa_evicted_total=state.totals.swa_evicted * page_size,
        tombstone_created_total=state.totals.tombstones,
        tombstone_healed_total=state.totals.healed,
        full_in_flight=full[Kind.IN_FLIGHT] * page_size,
        host_capacity=state.host.capacity * page_size,
        host_available=host[Kind.FREE] * page_size,
        host_tree_evictable=state.host_evictable * page_size,
        host_tree_protected=state.host_protected * page_size,
        host_tree_mirrored=(host[Kind.TREE] - state.host_bare) * page_size,
        host_in_flight=host[Kind.IN_FLIGHT] * page_size,
    )
    return replace(taken, **_states(state))


def _row_pages(state: State) -> tuple[NDArray[np.int32], NDArray[np.int32], int, int]:
    """Pages that live rows own, FULL and SWA, one entry per occurrence; and how many tokens stand in them."""
    rows, page_size = state.rows, state.page_size
    full: list[NDArray[np.int32]] = [np.zeros(0, np.int32)]
    swa: list[NDArray[np.int32]] = [np.zeros(0, np.int32)]
    full_tokens = swa_tokens = 0
    for request in state.requests.values():
        row = request.row
        length, start = int(rows.length[row]), int(rows.protected[row])
        live = max(start, int(rows.cursor[row]))
        held = pages_for(length, page_size)
        full.append(rows.full_table[row, start // page_size : held])
        mapped = state.mapping.swa_of[rows.full_table[row, live // page_size : held]]
        swa.append(mapped[mapped != 0])
        full_tokens += max(0, length - start)
        swa_tokens += max(0, length - live) if state.windowed else 0
    return np.concatenate(full), np.concatenate(swa), full_tokens, swa_tokens


def _states(state: State) -> dict[str, int]:
    """State slots, by who has them; those of requests are counted from live rows: to run on, and to track."""
    slots = state.rows.states[[request.row for request in state.requests.values()]]
    return {
        "recurrent_capacity": state.recurrent.capacity,
        "recurrent_available": state.recurrent.available,
        "recurrent_tree_evictable": state.recurrent_evictable,
        "recurrent_tree_protected": state.recurrent_protected,
        "recurrent_request_running": int(np.count_nonzero(slots[:, 0])),
        "recurrent_request_track": int(np.count_nonzero(slots[:, 1:])),
    }


def _tree_held(book: PoolBook, pages: NDArray[np.int32]) -> int:
    holders = book.holders(Pages(pages.astype("<i4").tobytes()))
    return int(np.count_nonzero((holders & 7) == Kind.TREE))
