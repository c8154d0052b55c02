"""Leaving by the door: work that has something to clean up is ended by a signal as by an error.

Not for all of a command: Python would keep such a signal until a query of DuckDB has ended.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import NoReturn

from radixledger.tools.console import SIGNALLED


@contextmanager
def leaving_when_told() -> Iterator[None]:
    """Meanwhile SIGTERM and SIGHUP end the command by the door, so that no half of a copy and no process is left."""
    signals = [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) is signal.SIG_DFL]
    if current_thread() is not main_thread():
        signals = []  # those are the main thread's to take
    for each in signals:
        signal.signal(each, _leave)
    try:
        yield
    finally:
        for each in signals:
            signal.signal(each, signal.SIG_DFL)


def _leave(number: int, _: object) -> NoReturn:
    raise SystemExit(SIGNALLED + number)
