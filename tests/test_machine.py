"""One machine over every command of a rank, with three witnesses after each step: live, folded, imagined.

The same commands are played twice: drawn by Hypothesis, which shrinks what it finds, and rolled by a fixed seed,
where the kinds of ownership transition that happened are counted and none may be missing. `make soak` plays longer.
"""

import inspect
import random
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from radixledger.cache.face_rank import FaceRank

from . import play_faces, play_host, play_pages, play_requests, play_slots, play_states, witnesses
from .machine import HOST_SETTINGS, LEGACY_SETTINGS, SETTINGS, WINDOW_SETTINGS, Command, Dice, Play, Setting
from .transitions import everywhere, somewhere

COMMANDS: dict[Command, int] = play_requests.COMMANDS | play_pages.COMMANDS | play_faces.COMMANDS
STATE_COMMANDS: dict[Command, int] = COMMANDS | play_states.COMMANDS
STEPS_BY_SEED = 900
SEEDS = {"legacy": (1, 3), "copies": (1, 3, 4)}
"""Where one play would be too short: leaves that are not cut at the window make tombstones rare, and copies are made, ended,
loaded and dropped between all the rest.
"""
EXAMPLES_SHARE = 3
"""A profile's examples are shared out: one setting gets this fraction of them."""


class Drawn:
    """Choices by Hypothesis."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data

    def number(self, least: int, most: int, /) -> int:
        return self.data.draw(st.integers(least, most))


def commands_of(setting: Setting) -> dict[Command, int]:
    """What can be asked of a rank of this setting, with weights."""
    if setting.shape.host:
        return COMMANDS | play_host.commands(setting.shape.write)
    return STATE_COMMANDS if setting.shape.states else COMMANDS


def machine_of(setting: Setting) -> type[RuleBasedStateMachine]:
    """A machine with a rule for each command."""

    class RankMachine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.play = play_host.prepare(Play(setting))

        def teardown(self) -> None:
            self.play.end()

    for command in commands_of(setting):
        setattr(RankMachine, command.__name__, rule(data=st.data())(_step(command)))
    return RankMachine


def _step(command: Command) -> Any:
    def step(machine: Any, data: st.DataObject) -> None:
        machine.play.run(command, Drawn(data))

    step.__name__ = command.__name__
    return step


def by_seed(setting: Setting, seed: int, steps: int) -> Play:
    """A play of so many commands, the same on every machine."""
    play, rolls = play_host.prepare(Play(setting)), random.Random(seed)
    chance = Dice(rolls)
    commands = commands_of(setting)
    for command in rolls.choices([*commands], [*commands.values()], k=steps):
        play.run(command, chance)
    play.end()
    return play


@cache
def seen_by_seed(name: str) -> Counter[str]:
    setting = SETTINGS[name]
    plays = [by_seed(setting, seed, STEPS_BY_SEED) for seed in SEEDS.get(setting.play, (1,))]
    return sum((play.seen() for play in plays), Counter())


@pytest.mark.parametrize("name", SETTINGS)
def test_three_witnesses_agree_after_every_command(name: str) -> None:
    """J2, J4, J6, J12, J19, R2, R28, R47: whatever is drawn, live, folded and imagined state are the same and lawful."""
    share = max(1, settings().max_examples // EXAMPLES_SHARE)
    run_state_machine_as_test(machine_of(SETTINGS[name]), settings=settings(max_examples=share))


@pytest.mark.parametrize("name", SETTINGS)
def test_a_long_play_meets_shortage_eviction_tombstones_and_heals(name: str) -> None:
    """R208, R253, R274: at every page size, window and policy; the witnesses agree all the way."""
    assert [kind for kind in everywhere(SETTINGS[name].play) if kind not in seen_by_seed(name)] == []


@pytest.mark.parametrize("play", sorted({setting.play for setting in SETTINGS.values()}))
def test_every_kind_of_ownership_transition_happens(play: str) -> None:
    """N19: a kind that no play meets would be proven by nothing."""
    names = [name for name, setting in SETTINGS.items() if setting.play == play]
    seen = sum((seen_by_seed(name) for name in names), Counter())
    assert [kind for kind in somewhere(play) if kind not in seen] == []


def test_every_command_of_a_rank_is_played() -> None:
    """What a rank can be asked, and is not played, would be proven by nothing."""
    source = "".join(
        inspect.getsource(module)
        for module in (play_faces, play_host, play_pages, play_requests, play_slots, play_states, witnesses)
    )
    asked = set(re.findall(r"live\.(\w+)", source))
    public = {name for name, _ in inspect.getmembers(FaceRank, inspect.isfunction) if name[0] != "_"}
    words = {
        "account_of", "check_told", "hand_receipt", "node_named", "number_of", "params_of", "row_slots", "seated", "state_brought",
    }  # fmt: skip
    played_by_parts = {"end", "evict_each", "make_room"}
    assert public - asked == words | played_by_parts, (
        "these turn a server's own objects into what is played here, or call what is played"
    )


def test_the_model_shares_no_code_with_the_cache() -> None:
    """J19: a second opinion that borrowed the first one's arithmetic would be none."""
    sources = [path.read_text("utf-8") for path in Path(__file__).parent.glob("model*.py")]
    assert len(sources) == 9
    taken = {name for source in sources for name in re.findall(r"(?:from|import) (radixledger\S*)", source)}
    assert taken == {"radixledger.journal.accounts", "radixledger.journal.units"}


def test_settings_cover_the_windows_that_formulas_get_wrong() -> None:
    """R269, R274, A26b: W below, at and above P; W mod P neither 0 nor P - 1; formulas, policies, key modes, page 1."""
    shapes = [setting.shape for setting in WINDOW_SETTINGS.values()]
    assert {shape.page for shape in shapes} >= {1, 4, 16, 128, 256}
    assert {(shape.window > shape.page) - (shape.window < shape.page) for shape in shapes} == {-1, 0, 1}
    odd = [shape for shape in shapes if shape.window > shape.page and shape.window % shape.page]
    assert {shape.formula for shape in odd if (shape.window + 1) % shape.page} == {"rfc", "tight"}
    assert {shape.leaf for shape in shapes} == {"veto", "materialise"}
    assert {(shape.ahead, shape.frees) for shape in shapes} == {(0, True), (1, True), (0, False), (1, False)}
    pairs = [shape for shape in odd if shape.ahead and (shape.window + 1) % shape.page]
    assert {shape.page for shape in pairs} >= {4, 128}
    assert {(setting.ranks, setting.strict) for setting in WINDOW_SETTINGS.values()} >= {
        (1, True),
        (2, True),
        (1, False),
    }


def test_the_rollback_route_is_played_at_every_kind_of_size() -> None:
    """R208, R274: pages 1, 16, 128, 256; W below, at and above P; both formulas; one rank and two."""
    shapes = [setting.shape for setting in LEGACY_SETTINGS.values()]
    assert {shape.page for shape in shapes} >= {1, 16, 128, 256}
    assert {(shape.window > shape.page) - (shape.window < shape.page) for shape in shapes} == {-1, 0, 1}
    odd = [
        shape
        for shape in shapes
        if shape.window % shape.page and (shape.window + 1) % shape.page and shape.window > shape.page
    ]
    assert {shape.formula for shape in odd} == {"rfc", "tight"}
    modes = {(setting.ranks, setting.strict) for setting in LEGACY_SETTINGS.values()}
    assert modes == {(1, True), (2, True), (1, False)}


def test_the_host_tier_is_played_at_every_page_size_and_both_ways_to_write() -> None:
    """R208, R211: pages 1, 16, 128, 256; one rank and two; larger and smaller than the device; several thresholds."""
    shapes = [setting.shape for setting in HOST_SETTINGS.values()]
    assert {shape.page for shape in shapes} == {1, 16, 128, 256}
    assert {
        (shape.write, setting.ranks) for shape, setting in zip(shapes, HOST_SETTINGS.values(), strict=True)
    } == {
        ("through", 1),
        ("through", 2),
        ("back", 1),
        ("back", 2),
    }
    assert {shape.threshold for shape in shapes} == {1, 2, 3}


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 18))
@pytest.mark.parametrize("name", SETTINGS)
def test_a_very_long_play(name: str, seed: int) -> None:
    by_seed(SETTINGS[name], seed, 4000)
