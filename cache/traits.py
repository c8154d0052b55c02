"""What is true of each route, as data: what the fold and the laws have to know of it.

How a route decides stands in `routes`. Rule: a trait says what a state of the route looks like or how an event
changes it, so that live, replay and tests agree without asking a decider.
"""

from collections import ChainMap
from typing import NamedTuple


class Traits(NamedTuple):
    """One route."""

    refreshes_path: bool = False
    """A use makes all live windows of its path the youngest, not the last window alone (R77)."""
    tree: bool = True
    """There is a tree that requests give their pages to; else there is its root and nothing more."""
    frees_duplicates: bool = True
    """An insert frees what the tree had already; else a stranger who brought it keeps it, and frees it himself (R62)."""
    orders: bool = False
    """The order of its victims may be chosen (`eviction`, `swa_victims`); else it is the route's own."""
    windowed: bool = True
    """There is SWA beside FULL; else the SWA pool, the window and what a boundary needs of it are 0."""
    live_ends: bool = False
    """A leaf is never a tombstone, and no tombstone lies in a locked window."""
    hosted: bool = False
    """Copies of FULL pages may be kept on the host (R8)."""
    recurrent: bool = False
    """There may be states of a recurrent model beside FULL."""
    chosen_here: bool = True
    """Victims, locks and shapes of leaves are chosen by our rules, and judged by them; else another server chose, and
    only what every server owes is judged: who owns what, what is mapped, which windows live.
    """


TRAITS: dict[str, Traits] = {
    "unified": Traits(orders=True),
    "radix": Traits(orders=True, frees_duplicates=False, windowed=False, hosted=True, recurrent=True),
    "swa_chunk": Traits(tree=False),
    "chunk": Traits(tree=False, windowed=False),
    "legacy": Traits(refreshes_path=True, live_ends=True),
}
"""Every route that a cache can be built with; the keys are those of `routes.ROUTES`."""

RECORDED: dict[str, Traits] = {
    "recorded": Traits(chosen_here=False),
    "recorded_full": Traits(chosen_here=False, windowed=False),
}
"""What other servers wrote by `journal.recorder`: folded and judged like the others, and never built."""

FOLDED = ChainMap(TRAITS, RECORDED)
"""Every route that a journal can be of."""

UNKNOWN = Traits()
"""What a fold takes for granted where a journal names a route that nobody knows; `config.checked` refuses it first."""
