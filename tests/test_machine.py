"""One machine over every command of a rank, three witnesses after each step: live, folded, imagined."""

import random

import pytest

from . import play_pages, play_requests
from .machine import SETTINGS, Command, Dice, Play, Setting

COMMANDS: dict[Command, int] = play_requests.COMMANDS | play_pages.COMMANDS


def by_seed(setting: Setting, seed: int, steps: int) -> Play:
    """A play of so many commands, the same on every machine."""
    play, dice = Play(setting), random.Random(seed)
    chance = Dice(dice)
    for command in dice.choices([*COMMANDS], [*COMMANDS.values()], k=steps):
        play.run(command, chance)
    play.end()
    return play


@pytest.mark.parametrize("name", SETTINGS)
def test_a_play_by_seed(name: str) -> None:
    by_seed(SETTINGS[name], 1, 400)
