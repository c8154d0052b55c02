"""Work by several processes: results in order, one count, and nobody left behind."""

import multiprocessing
import os
from functools import partial
from pathlib import Path

import pytest

from radixledger.replay.crew import LOOK_AFTER, Steps, WorkerLost, done_by


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers find the functions below, too."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2])


def counted(number: int, steps: Steps) -> int:
    for _ in range(3):
        steps.tick(number)
    return number


def endless(steps: Steps) -> None:
    while True:
        steps.tick(LOOK_AFTER)


def failing(steps: Steps) -> None:
    raise OSError(28, "No space left on device")


def killed(steps: Steps) -> None:
    os._exit(9)


@pytest.mark.parametrize("processes", [1, 2])
def test_results_come_in_order_and_every_step_is_counted(processes: int) -> None:
    told: list[int] = []
    work = [partial(counted, number) for number in (5, 700, 2000, 1)]
    assert done_by(processes, work, told.append) == [5, 700, 2000, 1]
    assert sum(told) == 3 * (5 + 700 + 2000 + 1)


def test_an_interrupt_leaves_nobody_behind() -> None:
    """Ctrl-C: the workers, deaf to it, are told to stop, and are gone when it goes on."""

    def interrupt(steps: int) -> None:
        if steps:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        done_by(2, [endless, endless, endless], interrupt)
    assert multiprocessing.active_children() == []


def test_a_failure_of_one_stops_the_others() -> None:
    with pytest.raises(OSError, match="No space left"):
        done_by(2, [failing, endless], lambda _: None)
    assert multiprocessing.active_children() == []


def test_a_worker_that_is_killed_is_missed() -> None:
    with pytest.raises(WorkerLost, match="--processes"):
        done_by(2, [killed, killed], lambda _: None)
