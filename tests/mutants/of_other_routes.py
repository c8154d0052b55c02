"""Seeded faults on the routes with fewer parts: a model without a window, and servers without a tree.

They are faults of the unified route, planted where other rules hold: the same laws and checks have to name them.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from radixledger.cache.state import State
from radixledger.journal.events import AnyEvent, Config, Freed, Transferred
from radixledger.journal.units import ROOT, NodeId

from .of_ends import ENDS
from .of_evictions import EVICTIONS
from .of_requests import REQUESTS, is_tail
from .of_the_tree import TREE
from .schedules import with_a_tail
from .seeded import Mutant, decides, where

NO_WINDOW = Config(4, 40, 0, 0, rows=8, context_pages=16)
"""One pool, no window."""
KNOWN = {mutant.name: mutant for mutant in (*REQUESTS, *ENDS, *TREE, *EVICTIONS)}


def on(route: str, name: str, rows: tuple[str, ...], **changed: Any) -> Mutant:
    """A fault of the unified route, planted on another one."""
    mutant = KNOWN[name]
    return replace(
        mutant,
        name=f"{name}_on_{route}",
        route=route.partition("_with_")[0],
        rows=(*mutant.rows, *rows),
        bugs=(),
        **changed,
    )


def _into_a_tree(state: State, event: Freed) -> Iterator[AnyEvent]:
    """The pages of an ended request become a leaf instead of free."""
    key = bytes(state.stride * (len(event.full) // 4))
    yield Transferred(
        NodeId(state.next_node), ROOT, event.giver, key, event.full, event.swa, request=event.request
    )


GIVEN_TO_A_TREE = Mutant(
    "an_end_gives_its_pages_to_a_tree_that_is_not_there",
    "a request on a route without a tree is cached when it ends",
    decides(Freed, as_=where(is_tail, _into_a_tree)),
    with_a_tail,
    "the first Transferred",
    lambda _, event: isinstance(event, Transferred),
    "a_leaf_grows_where_there_is_a_tree", "kept_without_a_tree", ("R195", "R150"),
    config=NO_WINDOW, route="chunk",
)  # fmt: skip

OTHER_ROUTES = (
    GIVEN_TO_A_TREE,
    on("radix", "duplicates_are_not_freed", ("R198",), config=NO_WINDOW),
    on("radix", "a_finish_keeps_its_lock", ("R198",), config=NO_WINDOW),
    on("radix", "an_abort_frees_what_the_tree_gave", ("R198",), config=NO_WINDOW),
    on("radix", "a_protected_length_stays_behind", ("R198",), config=NO_WINDOW),
    on("chunk", "an_end_keeps_its_tail", ("R198", "R199"), config=NO_WINDOW),
    on("chunk", "an_end_frees_its_tail_twice", ("R198", "R199"), config=NO_WINDOW),
    on("chunk", "a_growth_takes_a_page_too_many", ("R198", "R199"), config=NO_WINDOW),
    on("swa_chunk", "the_published_frontier", ("R195", "R126")),
    on("swa_chunk", "a_reclaim_moves_its_cursor_only", ("R195", "R126")),
    on("swa_chunk", "a_reclaim_forgets_the_running_step", ("R195", "R151")),
    on("swa_chunk", "an_end_keeps_its_tail", ("R195", "R199")),
)
"""By route."""
