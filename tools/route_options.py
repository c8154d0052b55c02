"""What a command line says about routes: one set of options for all commands, and the one function that judges them.

Rule: a command names no route and guesses none. It hands what was asked for to `cache.faces.routing`; what is refused there,
or is not built into these programs, leaves with the flag to change before a model is loaded or a journal begun (R204).
"""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, NamedTuple

import click

from radixledger.cache.faces.routing import Disaggregation, RouteName, ServerConfig, Speculation, route_of
from radixledger.cache.keys import KEY_MODES
from radixledger.journal.sizes import BadConfig
from radixledger.tools.console import USAGE, CommandFailure


class Asked(NamedTuple):
    """What the options said; see their help."""

    unified: bool = False
    disable_radix_cache: bool = False
    hierarchical_cache: bool = False
    storage: str | None = None
    disaggregation: str = Disaggregation.NONE.value
    speculative: str | None = None
    key_mode: str = "raw"
    lift_bigram: bool = False

    def config(self, *, hybrid_swa: bool, page_size: int) -> ServerConfig:
        """The same as `cache.faces.routing` takes it, for a model that has sliding windows or has not."""
        return ServerConfig(
            hybrid_swa=hybrid_swa,
            unified=self.unified,
            disable_radix_cache=self.disable_radix_cache,
            page_size=page_size,
            hierarchical_cache=self.hierarchical_cache,
            storage=self.storage,
            disaggregation=Disaggregation(self.disaggregation),
            speculative=None if self.speculative is None else Speculation(self.speculative),
            key_mode=self.key_mode,
            lift_bigram=self.lift_bigram,
        )


NOT_BUILT_IN = (
    ("hierarchical_cache", "--hierarchical-cache", "there is no host tier in this program"),
    ("storage", "--hicache-storage-backend", "there is no store in this program"),
    ("disaggregation", "--disaggregation", "prefill and decode are one process here"),
    ("speculative", "--speculative", "nothing guesses tokens ahead here"),
)
"""What no route of these programs does, whichever it is: the field, its option, the reason."""

_OPTIONS = (
    click.option(
        "--unified/--no-unified", "--enable-unified-radix-tree", "unified", default=False, show_default=True,
        help="Serve a hybrid model from one tree of FULL and SWA; without, from the legacy SWA tree.",
    ),
    click.option(
        "--disable-radix-cache", is_flag=True,
        help="Keep no tree: requests own what they compute and share nothing. Goes before --unified.",
    ),
    click.option("--hierarchical-cache", is_flag=True, help="Ask for a host tier below the pools; refused, this program has none."),
    click.option("--hicache-storage-backend", "storage", metavar="NAME", help="Ask for a store below the host tier; refused, this program has none."),
    click.option(
        "--disaggregation", metavar="MODE", type=click.Choice([mode.value for mode in Disaggregation]),
        default=Disaggregation.NONE.value, show_default=True,
        help="Ask for one half of a server; all but null is refused, prefill and decode are one process here.",
    ),
    click.option(
        "--speculative", metavar="ALGO", type=click.Choice([each.value for each in Speculation], case_sensitive=False),
        help=f"Ask for tokens guessed ahead ({', '.join(each.value for each in Speculation)}); refused, nothing guesses here.",
    ),
    click.option(
        "--key-mode", type=click.Choice(list(KEY_MODES)), default="raw", show_default=True,
        help="Look prefixes up by tokens, or by pairs of neighbouring ones, as EAGLE does.",
    ),
    click.option(
        "--lift-bigram", is_flag=True,
        help="With --unified, take --key-mode bigram, though no gate accepts such a run.",
    ),
)  # fmt: skip


def route_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command these options; it is called with what they said as `asked`."""

    @wraps(command)
    def collected(**words: Any) -> None:
        command(asked=Asked(*(words.pop(field) for field in Asked._fields)), **words)

    for option in reversed(_OPTIONS):
        collected = option(collected)
    return collected


def route_for(asked: Asked, *, hybrid_swa: bool, page_size: int) -> RouteName:
    """The route of a command. Raises CommandFailure for what is refused, with what to change."""
    try:
        route = route_of(asked.config(hybrid_swa=hybrid_swa, page_size=page_size))
    except BadConfig as error:
        also = "".join(
            f"; in this program leave {option} out: {reason}" for option, reason in _missing(asked)
        )
        raise CommandFailure(f"{error}{also}", USAGE) from error
    for option, reason in _missing(asked):
        raise CommandFailure(f"leave {option} out: {reason} (the route would be {route})", USAGE)
    return route


def _missing(asked: Asked) -> Iterator[tuple[str, str]]:
    """The options that were given and that no route of these programs has, with the reason."""
    for field, option, reason in NOT_BUILT_IN:
        if getattr(asked, field) != Asked._field_defaults[field]:
            yield option, reason
