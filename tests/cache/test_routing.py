"""Which configuration gets which cache, and what is refused before there is any."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from radixledger.cache.faces.routing import (
    GATES,
    Disaggregation,
    RouteName,
    ServerConfig,
    Speculation,
    UnsupportedCombination,
    asks_for_unified,
    route_of,
)
from radixledger.journal.sizes import BadConfig

TRUTH: list[tuple[bool, bool, bool, RouteName]] = [
    # hybrid SWA, unified, radix disabled
    (False, False, False, "radix"),
    (False, False, True, "chunk"),
    (False, True, False, "radix"),
    (False, True, True, "chunk"),
    (True, False, False, "legacy"),
    (True, False, True, "swa_chunk"),
    (True, True, False, "unified"),
    (True, True, True, "swa_chunk"),
]

UNSUPPORTED: list[tuple[str, Any, str, str]] = [
    # field, value, the flag that the message has to name, the row
    ("hierarchical_cache", True, "--hierarchical-cache", "R8"),
    ("storage", "file", "--hicache-storage-backend", "R8"),
    ("disaggregation", Disaggregation.PREFILL, "--disaggregation null", "R9"),
    ("disaggregation", Disaggregation.DECODE, "--disaggregation null", "R9"),
    ("speculative", Speculation.EAGLE, "--speculative", "R10"),
    ("speculative", Speculation.EAGLE3, "--speculative", "R10"),
    ("speculative", Speculation.DSPARK, "--speculative", "R10"),
    ("speculative", Speculation.DFLASH, "--speculative", "R10"),
    ("key_mode", "bigram", "--key-mode raw", "R10"),
    ("recurrent", True, "another model", "R11"),
]

named = pytest.mark.parametrize(
    ("field", "value", "flag", "row"),
    UNSUPPORTED,
    ids=[f"{field} {value}" for field, value, *_ in UNSUPPORTED],
)


def config(hybrid_swa: bool, unified: bool, disabled: bool, **more: Any) -> ServerConfig:
    return ServerConfig(hybrid_swa, unified, disabled, **more)


@pytest.mark.parametrize(("hybrid", "unified", "disabled", "route"), TRUTH)
def test_the_route_is_the_one_of_the_truth_table(
    hybrid: bool, unified: bool, disabled: bool, route: RouteName
) -> None:
    """R195, R196, R197, R198, R199, A43: three switches, eight rows, five routes."""
    assert route_of(config(hybrid, unified, disabled)) == route


def test_the_table_has_every_row_once() -> None:
    """R200."""
    assert sorted(row[:3] for row in TRUTH) == list(product((False, True), repeat=3))


@pytest.mark.parametrize(("hybrid", "unified", "disabled"), [row[:3] for row in TRUTH])
def test_the_predicate_of_the_new_route_is_exact(hybrid: bool, unified: bool, disabled: bool) -> None:
    """R200: hybrid SWA and unified and not disabled, and nothing else."""
    told = config(hybrid, unified, disabled)
    assert asks_for_unified(told) == (hybrid and unified and not disabled) == (route_of(told) == "unified")


def test_who_says_nothing_gets_the_legacy_route() -> None:
    """R17, R24: the unified route is off until somebody turns it on."""
    assert route_of(ServerConfig(hybrid_swa=True)) == "legacy"
    assert route_of(ServerConfig(hybrid_swa=False)) == "radix"


def test_the_flag_alone_is_the_way_there_and_back() -> None:
    """R203: with the radix cache on, nothing but the flag differs."""
    on = ServerConfig(hybrid_swa=True, unified=True, page_size=128)
    assert [route_of(each) for each in (on, on._replace(unified=False), on)] == [
        "unified",
        "legacy",
        "unified",
    ]


@named
def test_the_unified_route_refuses_what_it_does_not_serve(
    field: str, value: Any, flag: str, row: str
) -> None:
    """R8, R9, R10, R11, R14, R204: by name, with the flag to change, and never with another route instead."""
    with pytest.raises(UnsupportedCombination) as refused:
        route_of(config(True, True, False, **{field: value}))
    assert refused.value.field == field
    assert [gate.field for gate in refused.value.gates] == [field]
    for part in (flag, f"{field} is {value}", row, "--no-unified"):
        assert part in str(refused.value)


@named
@pytest.mark.parametrize(
    ("hybrid", "unified", "disabled", "route"), [row for row in TRUTH if row[3] != "unified"]
)
def test_no_other_route_refuses_it(
    hybrid: bool, unified: bool, disabled: bool, route: RouteName, field: str, value: Any, flag: str, row: str
) -> None:
    """R201: a gate is shut to the predicate of the new route and to nobody else."""
    assert route_of(config(hybrid, unified, disabled, **{field: value})) == route


def test_routing_comes_last() -> None:
    """R202: who chooses between routes is known to the builder alone, so what he chooses from is tested without him."""
    folder = Path(__file__).parents[2] / "cache"
    knowing = {
        path.name for path in folder.rglob("*.py") if "cache.faces.routing import" in path.read_text("utf-8")
    }
    assert knowing == {"building.py"}
    built = {
        path.name for path in folder.rglob("*.py") if "cache.faces.building import" in path.read_text("utf-8")
    }
    assert built == set()


def test_everything_that_does_not_go_together_is_told_at_once() -> None:
    """R14: nobody has to be refused six times."""
    with pytest.raises(UnsupportedCombination) as refused:
        route_of(
            config(
                True, True, False, hierarchical_cache=True, storage="file", key_mode="bigram", recurrent=True,
                disaggregation=Disaggregation.DECODE, speculative=Speculation.DFLASH,
            )
        )  # fmt: skip
    assert refused.value.gates == GATES


def test_every_gate_has_a_combination_that_it_is_shown_to_refuse() -> None:
    assert {gate.field for gate in GATES} == {field for field, *_ in UNSUPPORTED}


@pytest.mark.parametrize(
    "asked", [{"key_mode": "bigram"}, *({"speculative": each} for each in list(Speculation)[:2])]
)
def test_bigram_keys_are_served_unified_by_who_asks_for_the_lifted_mode(asked: dict[str, Any]) -> None:
    """R10, R267: the keys, and the two algorithms that need no more than them."""
    told = config(True, True, False, lift_bigram=True, **asked)
    assert route_of(told) == "unified"
    assert told.key_units == "bigram"


@pytest.mark.parametrize(
    "gate", [gate for gate in GATES if gate.field != "key_mode"], ids=lambda gate: gate.field
)
def test_the_lifted_mode_lifts_nothing_else(gate: Any) -> None:
    """R10, R267."""
    value = next(value for field, value, *_ in reversed(UNSUPPORTED) if field == gate.field)
    with pytest.raises(UnsupportedCombination):
        route_of(config(True, True, False, lift_bigram=True, key_mode="bigram", **{gate.field: value}))


@pytest.mark.parametrize(
    ("speculative", "units"),
    [(None, "raw"), ("EAGLE", "bigram"), ("EAGLE3", "bigram"), ("DSpark", "raw"), ("DFlash", "raw")],
)
def test_the_speculation_says_what_keys_are_made_of(speculative: str | None, units: str) -> None:
    """R257."""
    told = ServerConfig(False, speculative=None if speculative is None else Speculation(speculative))
    assert told.key_units == units


@pytest.mark.parametrize(
    ("field", "value"),
    [("page_size", 0), ("disaggregation", "half"), ("speculative", "eagle"), ("key_mode", "trigram")],
)
@pytest.mark.parametrize(("hybrid", "unified", "disabled"), [row[:3] for row in TRUTH])
def test_a_word_that_means_nothing_is_refused_on_every_route(
    hybrid: bool, unified: bool, disabled: bool, field: str, value: Any
) -> None:
    """R14: it is no combination, and not passed over either."""
    with pytest.raises(BadConfig) as refused:
        route_of(config(hybrid, unified, disabled, **{field: value}))
    assert refused.value.field == field
    assert repr(value) in str(refused.value) or str(value) in str(refused.value)
