"""Laws that hold on some routes only, by what `traits` says of them.

Rule: a law asks the traits of the state's route first, and says nothing where its trait is absent.
"""

from collections.abc import Iterator

from radixledger.cache.laws.law import Breach, law
from radixledger.cache.laws.of_the_tree import below_the_root
from radixledger.cache.state import State
from radixledger.journal.accounts import Pool


@law
def a_leaf_is_never_a_tombstone(state: State) -> Iterator[Breach]:
    """Where ends are live, who removes the last child of a tombstone removes the tombstone (legacy route)."""
    if state.traits.live_ends:
        for node in below_the_root(state):
            if not node.children and not node.swa:
                yield Breach(f"node {node.id} has neither children nor SWA", Pool.FULL, node.full)


@law
def a_locked_window_has_no_gap(state: State) -> Iterator[Breach]:
    """Where ends are live, a lock passes no tombstone, and what it holds never becomes one (legacy route)."""
    if state.traits.live_ends:
        for node in below_the_root(state):
            if node.swa_locks > 0 and not node.swa:
                yield Breach(
                    f"node {node.id} is a tombstone within {node.swa_locks} locked windows", Pool.SWA
                )


LAWS = (
    a_leaf_is_never_a_tombstone,
    a_locked_window_has_no_gap,
)
