"""Work that is done by several processes at once, with one count of how far it is.

A worker is told to stop by a flag that it looks at now and then, so that an interrupt leaves nobody behind and prints no
tracebacks; it also ends when its parent is gone. Rule: the caller's process alone handles interrupts.
"""

import os
import resource
import signal
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

LOOK_AFTER = 1024
"""Steps between two looks at the flag."""
POLL_S = 0.1


class WorkerLost(RuntimeError):
    """A worker process was killed, most likely for want of memory."""

    def __init__(self) -> None:
        super().__init__(
            "a worker process was killed, most likely for want of memory: take fewer with --processes"
        )


class Stopped(Exception):
    """Somebody wants this worker to stop."""


class _Shared(NamedTuple):
    """What a worker shares with its parent."""

    done: Any
    """How many steps all workers did: a shared int64."""
    stop: Any
    """A shared flag."""


_shared: _Shared | None = None


def _begin(shared: _Shared) -> None:
    global _shared  # noqa: PLW0603 — a worker process is one job's, and this is how it is told of its parent
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _shared = shared
    Thread(target=_go_with_parent, daemon=True).start()


def _go_with_parent() -> None:
    """End this worker when its parent is gone: one that waits for work never looks, and would wait for ever."""
    parent = parent_process()
    assert parent is not None, "only a worker begins here"
    parent.join()
    os._exit(1)


class Steps:
    """Counts the steps of a piece of work; `tick` raises Stopped when it has to end."""

    def __init__(self, advance: Callable[[int], None] | None = None) -> None:
        self._advance = advance if advance is not None else self._share
        self._count = 0

    def tick(self, steps: int) -> None:
        """So many steps more."""
        self._count += steps
        if self._count >= LOOK_AFTER:
            self._advance(self._count)
            self._count = 0

    def close(self) -> None:
        """The work is done."""
        self._advance(self._count)
        self._count = 0

    def _share(self, steps: int) -> None:
        shared = _shared
        assert shared is not None, "a worker was told of its parent when it began"
        if shared.stop.is_set():
            raise Stopped
        with shared.done.get_lock():
            shared.done.value += steps


def done_by(processes: int, work: Sequence[Callable[[Steps], T]], advance: Callable[[int], None]) -> list[T]:
    """The results of each piece of work, in order; every piece and result has to be picklable where `processes` > 1.

    advance: told how many steps were done since it was told last. Raises WorkerLost, and what a piece of work raises.
    """
    if processes <= 1 or len(work) <= 1:
        results = []
        for each in work:
            steps = Steps(advance)
            results.append(each(steps))
            steps.close()
        return results
    context = get_context("spawn")
    shared = _Shared(context.Value("q", 0), context.Event())
    pool = ProcessPoolExecutor(
        min(processes, len(work)), mp_context=context, initializer=_begin, initargs=(shared,)
    )
    try:
        with _no_interrupt():  # until a worker ignores interrupts itself
            futures = [pool.submit(_work, each) for each in work]
        _watch(futures, shared, advance)
        return [each.result() for each in futures]
    except BrokenProcessPool:
        raise WorkerLost from None
    finally:
        shared.stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


def peak_bytes() -> int:
    """The most that this process held in memory so far; what `getrusage` says counts the one that started it, too."""
    try:
        status = Path("/proc/self/status").read_text("ascii", "replace").splitlines()
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _work(piece: Callable[[Steps], T]) -> T:
    steps = Steps()
    result = piece(steps)
    steps.close()
    return result


def _watch(futures: list["Future[T]"], shared: _Shared, advance: Callable[[int], None]) -> None:
    """Until all is done or something failed, tell how far it is."""
    told, waiting = 0, set(futures)
    while waiting:
        done, waiting = wait(waiting, timeout=POLL_S, return_when=FIRST_COMPLETED)
        reached = shared.done.value
        advance(reached - told)
        told = reached
        for each in done:
            each.result()


@contextmanager
def _no_interrupt() -> Any:
    """Processes that begin in here are deaf to interrupts from their first moment on; ours comes right after."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
