"""Every law that a journal can be asked about, by name: of the whole state, of one event, and those that folding notices.

Rule: a name that is here can be asked for; a test compares `NOTICED` with what `cache/evolve.py` and `cache/fold/` note.
"""

from radixledger.cache.laws.invariants import LAWS
from radixledger.cache.laws.law import Law
from radixledger.cache.laws.of_events import NAMES

OF_STATES: dict[str, Law] = {law.__name__: law for law in LAWS}
"""Laws that hold between any two commands."""

NOTICED = (
    "a_backup_is_gathered_once",
    "a_copied_state_is_the_nodes",
    "a_copy_is_dropped_before_its_node",
    "a_copy_is_dropped_when_it_has_landed",
    "a_copy_lands_after_it_was_read",
    "a_copy_lands_where_it_was_meant",
    "a_copy_mirrors_what_is_on_the_device",
    "a_cursor_never_moves_backward",
    "a_fresh_page_has_no_mapping",
    "a_full_tombstone_has_a_copy",
    "a_group_is_flushed_once",
    "a_live_leaf_is_mapped_to_its_window",
    "a_load_lands_while_no_step_runs",
    "a_load_reads_copies_that_landed",
    "a_lock_is_released_once",
    "a_locked_copy_is_never_dropped",
    "a_locked_leaf_is_never_removed",
    "a_locked_state_is_kept",
    "a_locked_window_is_never_evicted",
    "a_mapping_is_cleared_once",
    "a_match_ends_where_its_node_ends",
    "a_node_gives_up_its_own_state",
    "a_node_has_one_copy",
    "a_page_is_freed_once",
    "a_page_is_given_by_its_owner",
    "a_protected_length_never_moves_backward",
    "a_request_takes_its_state_slots_once",
    "a_row_has_one_request",
    "a_split_keeps_the_pages",
    "a_state_goes_to_a_leaf_without_one",
    "a_state_is_tracked_in_a_track_slot",
    "a_step_begins_once",
    "a_step_ends_once",
    "a_tombstone_has_no_mapping",
    "a_transfer_begins_once",
    "a_transfer_ends_once",
    "an_ended_request_holds_no_lock",
    "an_ended_request_holds_no_state",
    "an_event_names_what_exists",
    "free_groups_do_not_nest",
    "locked_full_pages_are_never_given_up",
    "locked_full_pages_are_never_replaced",
    "only_free_pages_are_allocated",
    "only_full_tombstones_get_full_pages",
    "only_leaves_are_removed",
    "only_live_nodes_are_tombstoned",
    "only_tombstones_are_healed",
    "pages_are_read_before_they_are_given_up",
    "what_is_on_the_device_begins_at_the_root",
)
"""What `evolve` notices of an event that no lawful writer wrote."""

OF_EVENTS = frozenset((*NAMES, *NOTICED))
"""Laws that an event breaks on its own account."""
