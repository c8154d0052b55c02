"""Which cache serves: one pure function from what a server was told to the name of a route.

| model | radix cache | unified flag | route |
|---|---|---|---|
| hybrid SWA | disabled | either | `swa_chunk` (R195, R199) |
| hybrid SWA | enabled | on | `unified` (R196) |
| hybrid SWA | enabled | off | `legacy` (R197) |
| other | disabled | either | `chunk` (R198, A43) |
| other | enabled | either | `radix` (R198) |

Rule: nothing falls back. What the unified FULL + SWA route does not serve is refused from the configuration alone, so
before a pool, a tree or a journal is touched, with the flag to change (R14, R204, A44); and only that route has such
refusals (R200, R201). What another route cannot be built with is for its builder to say.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Literal, NamedTuple

from radixledger.journal.sizes import BadConfig

RouteName = Literal["unified", "legacy", "swa_chunk", "radix", "chunk"]
"""What `Opened.route` says."""


class Disaggregation(StrEnum):
    """Which half of a server with separate prefill and decode this one is."""

    NONE = "null"
    PREFILL = "prefill"
    DECODE = "decode"


class Speculation(StrEnum):
    """How tokens are guessed ahead."""

    EAGLE = "EAGLE"
    EAGLE3 = "EAGLE3"
    DSPARK = "DSpark"
    DFLASH = "DFlash"


EAGLES = (Speculation.EAGLE, Speculation.EAGLE3)
"""These look prefixes up by pairs of neighbouring tokens (R257)."""


class ServerConfig(NamedTuple):
    """What a server was told, as far as it decides which cache it gets. The default of `unified` is off (R17)."""

    hybrid_swa: bool
    """The model has sliding-window layers beside its full ones."""
    unified: bool = False
    disable_radix_cache: bool = False
    page_size: int = 1
    hierarchical_cache: bool = False
    """A host tier below the device pools."""
    storage: str | None = None
    """A store below the host tier, by its name."""
    disaggregation: Disaggregation = Disaggregation.NONE
    speculative: Speculation | None = None
    recurrent: bool = False
    """The model has recurrent layers."""
    key_mode: str = "raw"
    """`raw` or `bigram`."""
    lift_bigram: bool = False
    """Bigram keys are wanted on the unified route too, knowing that no gate accepts such a run (R267)."""

    @property
    def key_units(self) -> str:
        """`raw` or `bigram`: what is asked for, or what the speculation needs."""
        return "bigram" if self.speculative in EAGLES else self.key_mode


class Gate(NamedTuple):
    """Something that the unified route does not serve."""

    field: str
    """The field of `ServerConfig`; its value stands in the message."""
    what: str
    flag: str
    """What to change on the command line."""
    row: str
    """The requirement that says so."""


GATES = (
    Gate("hierarchical_cache", "a host tier below it", "leave --hierarchical-cache out", "R8"),
    Gate("storage", "a store below it", "leave --hicache-storage-backend out", "R8"),
    Gate("disaggregation", "separate prefill and decode", "give --disaggregation null", "R9"),
    Gate("speculative", "speculative decoding", "leave --speculative out", "R10"),
    Gate("key_mode", "bigram keys", "give --key-mode raw, or --lift-bigram too", "R10"),
    Gate("recurrent", "recurrent layers as a third component", "take another model", "R11"),
)


class UnsupportedCombination(BadConfig):
    """The unified FULL + SWA route was asked for together with what it does not serve; `gates` are all of those."""

    def __init__(self, gates: Sequence[Gate], config: ServerConfig) -> None:
        told = "; ".join(
            f"{gate.what} ({gate.field} is {getattr(config, gate.field)}, {gate.row}): {gate.flag}"
            for gate in gates
        )
        super().__init__(
            gates[0].field,
            f"the unified FULL + SWA cache does not serve {told}; or turn it off with --no-unified",
        )
        self.gates = tuple(gates)


def asks_for_unified(config: ServerConfig) -> bool:
    """The predicate of the new route, exactly (R200)."""
    return config.hybrid_swa and config.unified and not config.disable_radix_cache


def route_of(config: ServerConfig) -> RouteName:
    """The route that serves `config`.

    Raises UnsupportedCombination for what the unified route does not serve, BadConfig for a value that means nothing.
    """
    _check_words(config)
    if asks_for_unified(config):
        shut = [gate for gate in GATES if _shuts(gate, config)]
        if shut:
            raise UnsupportedCombination(shut, config)
        return "unified"
    if config.hybrid_swa:
        return "swa_chunk" if config.disable_radix_cache else "legacy"
    return "chunk" if config.disable_radix_cache else "radix"


def _shuts(gate: Gate, config: ServerConfig) -> bool:
    """Whether a gate is shut to a configuration that asks for the unified route."""
    asked = getattr(config, gate.field)
    if asked == ServerConfig._field_defaults[gate.field]:
        return False
    return not (config.lift_bigram and (gate.field == "key_mode" or asked in EAGLES))


def _check_words(config: ServerConfig) -> None:
    """Refuse what no route can make sense of; a caller that does not check types may have given it."""
    if config.page_size < 1:
        raise BadConfig("page_size", f"{config.page_size} is less than 1")
    for field, value, known in (
        ("disaggregation", config.disaggregation, tuple(Disaggregation)),
        ("speculative", config.speculative, (None, *Speculation)),
        ("key_mode", config.key_mode, ("raw", "bigram")),
    ):
        if value not in known:
            names = ", ".join(str(name) for name in known if name is not None)
            raise BadConfig(field, f"{value!r} is not one of {names}")
