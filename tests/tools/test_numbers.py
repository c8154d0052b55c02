"""Numbers on the command line: every option that takes one says its bounds, and refuses what is beyond them."""

import math
from collections.abc import Iterator

import click
import pytest

from radixledger.tools.cli import radixledger, run
from radixledger.tools.numbers import Seconds, Whole

from ..test_docs import leaves

ABSURD = ["nan", "inf", "-inf", "1e400", "-1", "9" * 30, "9" * 5000, "1.5.2", "", "two"]


def numeric_options() -> Iterator[tuple[str, click.Option]]:
    """Every option that takes a number, with its command."""
    for name, command in leaves(radixledger, "radixledger"):
        for each in command.params:
            numeric = isinstance(each.type, click.types.FloatParamType | click.types.IntParamType)
            if isinstance(each, click.Option) and numeric:
                yield name, each


OPTIONS = list(numeric_options())


def test_there_is_one_type_for_whole_numbers_and_one_for_lengths_of_time() -> None:
    assert len(OPTIONS) > 40
    others = [f"{name} {each.opts[0]}" for name, each in OPTIONS if type(each.type) not in (Whole, Seconds)]
    assert others == []


@pytest.mark.parametrize("text", ABSURD)
def test_a_number_that_makes_no_sense_is_wrong_usage_of_every_option(text: str) -> None:
    for name, each in OPTIONS:
        with pytest.raises(
            click.BadParameter, match=r"is not a (whole number|number of seconds) (from|of at least)"
        ):
            each.type.convert(text, each, None)
            pytest.fail(f"{name} {each.opts[0]} took {text[:20]!r}")


@pytest.mark.parametrize(("name", "option"), OPTIONS, ids=lambda each: getattr(each, "name", each))
def test_the_bounds_of_a_number_belong_to_it(name: str, option: click.Option) -> None:
    kind = option.type
    assert isinstance(kind, Whole | Seconds)
    for bound in (kind.least, kind.most):
        assert kind.convert(str(bound), option, None) == bound, f"{name} {option.opts[0]}"
    assert math.isfinite(kind.most)


@pytest.mark.parametrize("text", ABSURD[:6])
def test_absurd_seconds_end_the_command_before_it_reads(text: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["reduce", "nowhere", "--seconds", text]) == 2
    said = capfd.readouterr().err
    assert "is not a number of seconds from 0.1 to 604800" in said
    assert len(said) < 400
