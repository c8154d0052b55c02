"""The hour of plays: who is asked, until when, and that a play which fails is told."""

import time
from itertools import islice

import pytest

from . import nightly
from .machine import SETTINGS, Play


def test_every_setting_is_played_with_one_seed_before_the_next_seed_comes() -> None:
    asked = list(islice(nightly.plays(7, 50, time.monotonic() + 1000), len(SETTINGS) + 1))
    assert asked == [*((name, 7, 50) for name in SETTINGS), (next(iter(SETTINGS)), 8, 50)]


def test_no_play_is_begun_when_the_time_is_up() -> None:
    assert list(nightly.plays(7, 50, time.monotonic())) == []


def test_a_play_in_which_the_witnesses_disagree_is_told_with_what_they_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def disagreeing(*_: object) -> Play:
        raise AssertionError("live and folded state differ")

    name = next(iter(SETTINGS))
    assert nightly.play((name, 1, 40)).failure == ""
    assert nightly.play((name, 1, 40)).kinds
    monkeypatch.setattr(nightly, "by_seed", disagreeing)
    played = nightly.play((name, 1, 40))
    assert (played.setting, played.seed) == (name, 1)
    assert "live and folded state differ" in played.failure
