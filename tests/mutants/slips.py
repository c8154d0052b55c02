"""Every slip, by name."""

from .slip import Slip
from .slips_of_ledgers import LEDGERS
from .slips_of_pages import PAGES
from .slips_of_pairs import PAIRS
from .slips_of_requests import REQUESTS
from .slips_of_routes import ROUTES
from .slips_of_the_tree import TREE

SLIPS: dict[str, Slip] = {slip.name: slip for slip in (*ROUTES, *PAGES, *TREE, *REQUESTS, *LEDGERS, *PAIRS)}
"""By the sections of the requirements."""
