"""Every seeded fault, by name: what others ask for."""

from .of_ends import ENDS
from .of_evictions import EVICTIONS
from .of_ledgers import LEDGERS
from .of_other_routes import OTHER_ROUTES
from .of_other_settings import OTHER_SETTINGS
from .of_pages import PAGES
from .of_requests import REQUESTS
from .of_states import OF_STATES
from .of_the_tree import TREE
from .of_tracked_states import TRACKED_STATES
from .seeded import Mutant

MUTANTS: dict[str, Mutant] = {
    mutant.name: mutant
    for mutant in (
        *PAGES,
        *REQUESTS,
        *ENDS,
        *TREE,
        *EVICTIONS,
        *LEDGERS,
        *OTHER_ROUTES,
        *OTHER_SETTINGS,
        *OF_STATES,
        *TRACKED_STATES,
    )
}
"""Wrong deciders, in the order of the pages that tell of them."""
