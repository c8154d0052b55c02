"""How a benchmark measures: many fresh operations, the median in microseconds, a primitive of the same run beside it.

Nothing here judges; a bar is printed next to what was measured. Rule: one process, one machine, one run. A figure
is told together with the cost of the least that the operation could do (a memcmp of the same bytes, one `os.write`),
measured in the same run, so that a slow machine shows as a slow primitive.
"""

import gc
import os
import platform
import statistics
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import NamedTuple


class Figure(NamedTuple):
    """One measured number. `bar` is what good looks like (None where there is none); `more` says that more is better."""

    topic: str
    name: str
    value: float
    unit: str
    bar: float | None = None
    more: bool = False
    floor: float | None = None
    """The primitive of the same run, in the same unit."""
    note: str = ""

    @property
    def meets(self) -> bool | None:
        """Whether the bar is met; None without one."""
        if self.bar is None:
            return None
        return self.value >= self.bar if self.more else self.value <= self.bar


class Machine(NamedTuple):
    """What the figures were measured on."""

    processor: str
    cores: int
    python: str
    memcmp_64k_us: float
    write_200_us: float


@contextmanager
def still() -> Iterator[None]:
    """The garbage collector held still: its pauses are a matter of their own."""
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def time_us(operation: Callable[[], object]) -> float:
    """Microseconds of one call."""
    begun = perf_counter()
    operation()
    return (perf_counter() - begun) * 1e6


def times_us(operations: Iterable[Callable[[], object]]) -> list[float]:
    """Run each operation once, in order, the garbage collector held still; microseconds of each."""
    with still():
        return [time_us(operation) for operation in operations]


def median_us(operations: Iterable[Callable[[], object]]) -> float:
    """The median of `times_us`."""
    return statistics.median(times_us(operations))


def machine(folder: Path) -> Machine:
    """This machine, with two primitives measured now: a memcmp of 64 KiB and a write of 200 bytes to `folder`."""
    left, right = bytes(1 << 16), bytes(bytearray(1 << 16))
    compare = median_us([lambda: left == right] * 2000)
    handle = os.open(folder / "write-probe", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        write = median_us([lambda: os.write(handle, left[:200])] * 2000)
    finally:
        os.close(handle)
        (folder / "write-probe").unlink()
    return Machine(_processor(), os.cpu_count() or 1, platform.python_version(), compare, write)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
