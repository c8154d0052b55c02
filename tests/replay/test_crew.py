"""Work by several processes: results in order, one count, and nobody left behind."""

import multiprocessing
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from threading import Event

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


def waiting(steps: Steps) -> None:
    os.write(1, b"here\n")
    Event().wait()


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


def test_workers_go_with_a_parent_that_is_killed() -> None:
    """Those that wait for work and those in the middle of it: the pipe that all of them write to comes to its end."""
    program = (
        "from tests.replay.test_crew import counted, done_by, partial, waiting\n"
        "if __name__ == '__main__': done_by(3, [partial(counted, 1), waiting, waiting], lambda _: None)"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2], text=True
    ) as parent:
        assert parent.stdout is not None
        assert [parent.stdout.readline() for _ in range(2)] == ["here\n"] * 2
        parent.kill()
        assert parent.stdout.read() == ""
