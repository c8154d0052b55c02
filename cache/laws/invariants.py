"""Every law of a state, in one table. They hold between any two commands of a lawful writer.

`evolve` notices what an event breaks on its own account; here the whole state is looked at, at the cost of its
size, so tests, `verify` and nobody on a serving path ask.
"""

from collections.abc import Iterator

from radixledger.cache.laws import of_pages as laws_of_pages
from radixledger.cache.laws import of_requests as laws_of_requests
from radixledger.cache.laws import of_routes as laws_of_routes
from radixledger.cache.laws import of_states as laws_of_states
from radixledger.cache.laws import of_the_host as laws_of_the_host
from radixledger.cache.laws import of_the_tree as laws_of_the_tree
from radixledger.cache.laws import of_use as laws_of_use
from radixledger.cache.laws.law import Law
from radixledger.cache.state import Finding, State

LAWS: tuple[Law, ...] = (
    *laws_of_pages.LAWS,
    *laws_of_the_tree.LAWS,
    *laws_of_use.LAWS,
    *laws_of_the_host.LAWS,
    *laws_of_states.LAWS,
    *laws_of_requests.LAWS,
    *laws_of_routes.LAWS,
)
"""In the order in which they are asked: what others build on comes first."""


def broken_laws(state: State) -> Iterator[Finding]:
    """What does not hold in `state` as it is now; nothing for a lawful one."""
    for law in LAWS:
        yield from law(state)
