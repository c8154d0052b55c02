"""Seeded faults where victims are chosen in other orders, keys are pairs, or FULL pages have copies on the host.

Most are faults of the unified route, planted where other rules hold; those of the orders are of their own.
"""

from dataclasses import replace as but
from typing import Any

from msgspec.structs import replace

from radixledger.cache.components import window
from radixledger.cache.decide import eviction as decide_eviction
from radixledger.cache.spare import spare_pages
from radixledger.cache.standing import age
from radixledger.cache.state import Node, State
from radixledger.journal.events import Config, Removed, Tombstoned

from .desk import SMALL
from .of_other_routes import KNOWN, NO_WINDOW, on
from .schedules import important_and_older, spare_and_younger, used_again_and_older
from .seeded import Mutant, puts

PAIRS = replace(SMALL, key_mode="bigram")
SLRU, PRIORITY = replace(SMALL, eviction="slru"), replace(SMALL, eviction="priority")
USE = replace(SMALL, swa_victims="use")
HOST = replace(NO_WINDOW, host_pages=40)


def under(way: str, config: Config, name: str, *rows: str) -> Mutant:
    """A fault of the unified route, planted under another configuration."""
    known = KNOWN[name]
    return but(known, name=f"{name}_with_{way}", config=config, rows=(*known.rows, *rows), bugs=())


def _idle(state: State) -> list[Node]:
    return [each for each in state.nodes.values() if each.parent and not each.children and not each.holds]


def _oldest_use(state: State) -> Node | None:
    return min(_idle(state), key=lambda node: node.tick, default=None)


def _is_outranked(state: State, event: Any) -> bool:
    return isinstance(event, Removed) and age(state, state.nodes[event.node]) > min(
        age(state, each) for each in _idle(state)
    )


def _recency_alone(way: str, config: Config, schedule: Any) -> Mutant:
    return Mutant(
        f"recency_alone_chooses_with_{way}",
        "FULL pressure takes the leaf that was used longest ago, whatever the order is",
        puts(decide_eviction, "oldest_leaf", _oldest_use),
        schedule,
        "the first Removed that another idle leaf should have gone before",
        _is_outranked,
        "the_victim_is_the_oldest_candidate", "", ("R103",), config=config,
        unseen="SQL asks for the order of victims where recency is the policy",
    )  # fmt: skip


SPARE_PAGES_STAY = Mutant(
    "spare_pages_stay_with_use",
    "windows that no boundary can need wait for their turn by age",
    puts(window, "oldest_spare", lambda _: None),
    spare_and_younger,
    "the first window that goes from a node without spare pages",
    lambda state, event: isinstance(event, Removed | Tombstoned) and not spare_pages(state, state.nodes[event.node]),
    "the_victim_is_the_oldest_candidate", "", ("R103",), config=USE,
    unseen="SQL asks for the order of victims where recency is the policy",
)  # fmt: skip

OTHER_SETTINGS = (
    on("legacy", "the_published_frontier", ("R6", "R197")),
    on("legacy", "duplicates_are_not_freed", ("R6", "R197")),
    on("legacy", "a_finish_keeps_its_lock", ("R6", "R197")),
    on("legacy", "a_live_node_is_healed", ("R6", "R197")),
    on("legacy", "a_split_loses_the_mark", ("R6", "R197")),
    on("legacy", "a_childless_victim_stays", ("R6", "R197")),
    under("pairs", PAIRS, "an_insert_forgets_what_was_reclaimed", "R259"),
    under("pairs", PAIRS, "a_match_looks_at_full_pages_only", "R266"),
    under("pairs", PAIRS, "a_tombstone_does_not_end_the_live_run", "R266"),
    under("pairs", PAIRS, "a_protected_length_stays_behind", "R260"),
    under("pairs", PAIRS, "a_cached_path_stays_a_tombstone", "R260"),
    _recency_alone("slru", SLRU, used_again_and_older),
    under("slru", SLRU, "a_locked_leaf_is_removed"),
    under("slru", SLRU, "an_eviction_is_credited_too_much"),
    _recency_alone("priority", PRIORITY, important_and_older),
    under("priority", PRIORITY, "a_locked_leaf_is_removed"),
    under("priority", PRIORITY, "a_removed_leaf_keeps_a_page"),
    SPARE_PAGES_STAY,
    under("use", USE, "a_locked_window_is_taken"),
    under("use", USE, "an_inner_node_is_removed"),
    on("radix_with_a_host", "duplicates_are_not_freed", ("R211",), config=HOST),
    on("radix_with_a_host", "a_removed_leaf_keeps_a_page", ("R211",), config=HOST),
    on("radix_with_a_host", "a_flush_empties_the_tree_of_a_busy_rank", ("R211",), config=HOST),
)
"""By setting."""
