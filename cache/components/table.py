"""Which components a state has beside FULL: a table, asked once when a rank is opened.

Rule: what a configuration has pages for is kept; combinations that nobody serves are refused before (`config`, R11).
"""

from radixledger.cache.components.component import Component
from radixledger.cache.components.recurrent import RecurrentComponent
from radixledger.cache.components.window import WindowComponent
from radixledger.journal.events import Config, Opened

COMPONENTS: tuple[tuple[str, Component], ...] = (
    ("swa_pages", WindowComponent()),
    ("recurrent_slots", RecurrentComponent()),
)
"""The field of a configuration that gives a component its pool, and the component, in the order in which they are asked."""


def components_of(opened: Opened) -> tuple[Component, ...]:
    """The components that this rank's deciders ask."""
    return tuple(component for field, component in COMPONENTS if _pages(opened.config, field))


def _pages(config: Config, field: str) -> int:
    pages: int = getattr(config, field)
    return pages
