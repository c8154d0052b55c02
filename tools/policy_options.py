"""What a command line says about policies: who is evicted first, and what is kept of dead windows.

Rule: what was asked for goes into the configuration of the cache, which refuses what its route cannot do, and from there
into the journal's first event.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

import click
from msgspec.structs import replace

from radixledger.cache.standing import POLICIES
from radixledger.cache.window import FORMULAS
from radixledger.journal.events import Config


class Policies(NamedTuple):
    """What the options said; see their help. The names are those of `Config`."""

    swa_victims: str = "lru"
    eviction: str = "lru"
    tombstone_leaf: str = "veto"
    formula: str = "rfc"

    def put_into(self, config: Config) -> Config:
        """The same configuration with these policies."""
        return replace(config, **self._asdict())


_OPTIONS = (
    click.option(
        "--swa-victims", type=click.Choice(["lru", "use"]), default="lru", show_default=True,
        help="Which window pages go first: the oldest, or those that no request can need any more.",
    ),
    click.option(
        "--eviction", type=click.Choice(POLICIES), default="lru", show_default=True,
        help="Which leaves go first: the oldest; those not hit twice; those of the least priority.",
    ),
    click.option(
        "--tombstone-leaf", type=click.Choice(["veto", "materialise"]), default="veto", show_default=True,
        help="Whether a leaf without a live window is kept.",
    ),
    click.option(
        "--formula", type=click.Choice(FORMULAS), default="rfc", show_default=True,
        help="How much of its window a running request gives back: with a page to spare, or all it can.",
    ),
)  # fmt: skip


def policy_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command these options; it is called with what they said as `policies`."""

    @wraps(command)
    def collected(**words: Any) -> None:
        command(policies=Policies(*(words.pop(field) for field in Policies._fields)), **words)

    for option in reversed(_OPTIONS):
        collected = option(collected)
    return collected
